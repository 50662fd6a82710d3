/* Processes of a federation through net.h only, each in a thread, with rows in memory: the cloud writes the models of a
 * run on the same rows, bit for bit; a member that waits can be cancelled; wrong settings are refused. */
#include "tools.h"

#include "broker.h"
#include "hfsad/net.h"

#include <pthread.h>

enum { CLIENTS = 4, ROWS = 6, F = 3, MEMBERS = CLIENTS + 3 };

static const char nodes[] = "features 3\nnorth/a\nnorth/b\nsouth/c\nsouth/d\n";
static const char *const paths[CLIENTS] = {"north/a", "north/b", "south/c", "south/d"};
static double x[CLIENTS * ROWS][F], y[CLIENTS * ROWS];

static hfsad_spec *make_spec(void)
{
    static const char text[] = "loss: {kind: absolute}\n"
                               "features: {intercept: global, standardize: true}\n"
                               "run: {iterations: 12, polish: true}\n"
                               "federation: {name: members}\n";
    hfsad_spec *spec;
    hfsad_error err;
    ok(hfsad_spec_parse(&spec, text, sizeof text - 1, &err), &err);
    return spec;
}

/* Rows of `count` clients from `first` on; paths: with their names. */
static hfsad_data *rows_of(size_t first, size_t count, bool named)
{
    hfsad_data *data;
    hfsad_error err;
    int64_t codes[CLIENTS * ROWS];
    for (size_t i = 0; i < count * ROWS; i++)
        codes[i] = (int64_t)(i / ROWS);
    ok(hfsad_data_create(&data, count * ROWS, F, HFSAD_BORROW, &err), &err);
    ok(hfsad_data_dense(data, x[first * ROWS], F, 1, &err), &err);
    ok(hfsad_data_y(data, y + first * ROWS, 1, &err), &err);
    if (named)
        ok(hfsad_data_codes(data, codes, paths + first, count, &err), &err);
    return data;
}

static void draw(void)
{
    rng r = {rng_key(5, rng_stream("members")), 0};
    for (size_t i = 0; i < CLIENTS * ROWS; i++) {
        y[i] = rng_next_normal(&r);
        for (size_t m = 0; m < F; m++)
            y[i] += (double)(m + 1) * (x[i][m] = rng_next_normal(&r));
    }
}

typedef struct {
    hfsad_member_settings settings;
    hfsad_status status;
    hfsad_stop stop;
    hfsad_error err;
    char state[200];
    hfsad_member *member;
    pthread_t thread;
    bool has_table;
} process;

static void *run_process(void *context)
{
    process *p = context;
    p->status = hfsad_member_run(p->member, &p->stop, &p->err);
    return NULL;
}

static void take_end(void *context, const hfsad_member_end *end)
{
    process *p = context;
    p->has_table = strstr(end->table, "verdict") && !*end->line;
}

static void start(process *p, const hfsad_spec *spec, const char *state)
{
    snprintf(p->state, sizeof p->state, "%s", in_folder(state));
    p->settings.size = sizeof p->settings;
    p->settings.nodes = nodes;
    p->settings.state = p->state;
    p->settings.context = p;
    p->settings.ended = take_end;
    ok(hfsad_member_create(&p->member, spec, &p->settings, &p->err), &p->err);
    assert_int_equal(pthread_create(&p->thread, NULL, run_process, p), 0);
}

static void test_same_models(void **state)
{
    (void)state;
    hfsad_spec *spec = make_spec();
    hfsad_error err;
    hfsad_run *run;
    hfsad_result *result, *written;
    hfsad_data *all, *own[3];
    test_broker broker;
    process p[MEMBERS - 1] = {0};
    char out[200];
    draw();
    snprintf(out, sizeof out, "%s", in_folder("out"));
    assert_true(broker_create(&broker, in_folder(""), NULL, ""));
    p[0].settings = (hfsad_member_settings){.role = HFSAD_ROLE_CLOUD, .out = out};
    p[1].settings = (hfsad_member_settings){.role = HFSAD_ROLE_EDGE, .name = "north"};
    p[2].settings = (hfsad_member_settings){.role = HFSAD_ROLE_EDGE, .name = "south"};
    p[3].settings = (hfsad_member_settings){.role = HFSAD_ROLE_CLIENT, .name = "north/a"};
    p[4].settings = (hfsad_member_settings){.role = HFSAD_ROLE_CLIENT, .name = "north/b"};
    p[5].settings = (hfsad_member_settings){.role = HFSAD_ROLE_CLIENT, .all_of = "south"};
    own[0] = p[3].settings.data = rows_of(0, 1, false);
    own[1] = p[4].settings.data = rows_of(1, 1, true);
    own[2] = p[5].settings.data = rows_of(2, 2, true);
    for (size_t i = 0; i < MEMBERS - 1; i++) {
        char name[20];
        snprintf(name, sizeof name, "state%zu", i);
        p[i].settings.broker = broker.url;
        start(&p[i], spec, name);
    }
    for (size_t i = 0; i < MEMBERS - 1; i++) {
        assert_int_equal(pthread_join(p[i].thread, NULL), 0);
        ok(p[i].status, &p[i].err);
        assert_int_equal(p[i].stop, HFSAD_STOP_ITERATIONS);
        hfsad_member_free(p[i].member);
    }
    assert_true(p[0].has_table);
    broker_free(&broker);
    all = rows_of(0, CLIENTS, true);
    ok(hfsad_run_create_on(&run, spec, all, 1, &err), &err);
    ok(hfsad_run_train(run, NULL, NULL, &result, &err), &err);
    ok(hfsad_result_load(&written, out, &err), &err);
    assert_int_equal(hfsad_result_nodes(result), hfsad_result_nodes(written));
    assert_memory_equal(hfsad_result_models(result), hfsad_result_models(written),
                        hfsad_result_nodes(result) * hfsad_result_width(result) * sizeof(double));
    assert_int_equal(hfsad_result_verdict(written)->kind, HFSAD_VERDICT_CONVERGED);
    for (size_t i = 0; i < 3; i++)
        hfsad_data_free(own[i]);
    hfsad_result_free(written);
    hfsad_result_free(result);
    hfsad_run_free(run);
    hfsad_data_free(all);
    hfsad_spec_free(spec);
}

static void test_cancel(void **state)
{
    (void)state;
    hfsad_spec *spec = make_spec();
    process p = {.settings = {.role = HFSAD_ROLE_EDGE, .name = "north", .broker = "unix:///nowhere"}};
    start(&p, spec, "waits");
    hfsad_member_cancel(p.member);
    assert_int_equal(pthread_join(p.thread, NULL), 0);
    ok(p.status, &p.err);
    assert_int_equal(p.stop, HFSAD_STOP_INTERRUPTED);
    hfsad_member_free(p.member);
    assert_int_equal(access(p.state, F_OK), -1); /* there was nothing to keep */
    hfsad_spec_free(spec);
}

static void refused(hfsad_member_settings settings, const char *words)
{
    hfsad_spec *spec = make_spec();
    hfsad_member *member;
    hfsad_error err;
    char fresh[200];
    snprintf(fresh, sizeof fresh, "%s", in_folder("refused"));
    settings.size = sizeof settings;
    settings.state = settings.state ? NULL : fresh;
    assert_int_equal(hfsad_member_create(&member, spec, &settings, &err), HFSAD_ERROR_INPUT);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
    assert_null(member);
    hfsad_spec_free(spec);
}

static void test_refusals(void **state)
{
    (void)state;
    hfsad_data *data = rows_of(0, 1, false);
    refused((hfsad_member_settings){.role = HFSAD_ROLE_EDGE, .nodes = nodes}, "name of the node");
    refused((hfsad_member_settings){.role = HFSAD_ROLE_EDGE, .nodes = nodes, .name = "north", .state = "not given"},
            "needs a state folder");
    refused((hfsad_member_settings){.role = HFSAD_ROLE_CLOUD, .nodes = nodes}, "needs an output folder");
    refused((hfsad_member_settings){.role = HFSAD_ROLE_EDGE, .nodes = nodes, .name = "west"}, "no inner node west");
    refused((hfsad_member_settings){.role = HFSAD_ROLE_EDGE, .name = "north"}, "data");
    refused(
        (hfsad_member_settings){
            .role = HFSAD_ROLE_CLIENT, .nodes = "features 2\nnorth/a\n", .name = "north/a", .data = data},
        "3 features; the federation has 2");
    refused((hfsad_member_settings){.role = HFSAD_ROLE_CLIENT, .nodes = nodes, .name = "north/b", .data = data},
            "no rows of this client");
    hfsad_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_models, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cancel, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_refusals, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
