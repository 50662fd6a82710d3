/*
 * The set-up of a federation in one process, without sockets: the questions of presets, standardisation and starts, and
 * their result, while messages are lost, doubled, delayed and overtake each other, nodes are killed at any instant and
 * restart with nothing but the committed result, and strangers send nonsense. Every node must come to the numbers of
 * the simulator, bit for bit; and the root may begin to train only when all others have the result on disk.
 *
 * HFSAD_CHAOS=20 in the environment: twenty times the runs, with other seeds.
 */
#define _POSIX_C_SOURCE 200809L
#include "federation.h"
#include "process.h"
#include "weather.h"

#include "base/error.h"
#include "run/handle.h"

enum { NODES_MOST = 64 };

/* ---- what is set up ---- */

static const problem setups[] = {
    {"robust", 3, two, two_clients, 6, 1, 0, false, "loss: {kind: phase-retrieval, box: 5}\n"},
    {"robust of many rows", 5, deep, deep_clients, 5, 9, 0, false, "loss: {kind: phase-retrieval}\n"},
    {"spectral", 1, flat, flat_clients, 4, 1, 0, false, "loss: {kind: phase-retrieval, box: 3}\npreset: paper\n"},
    {"standardised", 5, deep, deep_clients, 5, 9, INTERCEPT_EDGE, false,
     "loss: {kind: quantile, tau: 0.3}\nfeatures: {intercept: edge, standardize: true}\n"},
    {"an intercept", 3, two, two_clients, 5, 9, INTERCEPT_GLOBAL, true,
     "loss: {kind: logistic}\nfeatures: {intercept: global}\nrun: {start: normal, seed: 4}\n"},
};

/* rows: in the table of rows, as a client of a federation has them. */
static dataset *data_of(const problem *p, uint64_t seed, bool rows)
{
    rng r = {rng_key(seed, rng_stream(p->name)), 0};
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    double x[16];
    ok(dataset_builder_create(&b, p->M, &err), &err);
    for (size_t e = 0, number = 0; e < p->edges; e++)
        for (size_t c = 0; c < p->clients[e]; c++) {
            char name[32];
            snprintf(name, sizeof name, "client%zu", ++number);
            for (size_t row = p->rows == 1 ? 1 : 2 + below(&r, p->rows - 1); row > 0; row--) {
                double s = 0.5 * (p->intercept != 0);
                for (size_t m = 0; m < p->M; m++)
                    s += x[m] = 2 * rng_next_normal(&r) + (double)m;
                ok(dataset_builder_add(b, p->paths[e], name, p->labels ? (s > 3 ? 1 : -1) : s * s, x, NULL, 0, &err),
                   &err);
            }
        }
    if (rows)
        dataset_builder_use_rows(b);
    ok(dataset_builder_finish(b, &d, &err), &err);
    return d;
}

/* ---- the world ---- */

typedef struct {
    process at;
    double *result; /* committed */
    size_t n_result;
    bool waits; /* it has something to commit or to send, perhaps */
} place;

typedef struct {
    const problem *p;
    uint64_t seed;
    hfsad_spec *spec;
    dataset *d; /* the tree */
    size_t nodes;
    place all[NODES_MOST];
    sky sky;
    bool root_dead; /* killed, and not begun again yet: its script has to end first */
    size_t steps;
    uint64_t crashes, hostile;
} world;

/* ---- a process ---- */

static size_t read_again;

/* The clients that keep their rows once get them here. */
static hfsad_status read_rows(void *context, dataset **rows, hfsad_error *err)
{
    const world *w = context;
    (void)err;
    read_again++;
    *rows = data_of(w->p, w->seed, true);
    return HFSAD_OK;
}

static void begin(world *w, size_t number)
{
    place *here = &w->all[number];
    hfsad_error err;
    process_begin(&here->at, w->spec, w->d, number, number < w->d->n_inner ? NULL : data_of(w->p, w->seed, true));
    if (number >= w->d->n_inner && number % 3)
        federation_set_reader(here->at.f, read_rows, w);
    inquiry_tick(here->at.q, w->sky.now);
    if (here->result)
        ok(inquiry_remember(here->at.q, here->result, here->n_result, &err), &err);
}

/* A root that begins again begins with its first question: killed as often as others it would never be done. */
static bool is_killed(world *w, size_t number)
{
    return chance(&w->sky, number == 0 ? w->sky.weather.crash / 20 : w->sky.weather.crash);
}

static void begin_again(world *w, size_t number)
{
    process_end(&w->all[number].at);
    begin(w, number);
    sky_return(&w->sky, number);
}

static void crash(world *w, size_t number)
{
    w->crashes++;
    if (number == 0)
        w->root_dead = true;
    else
        begin_again(w, number);
}

/* Commits the result if there is one, then sends; killed before, between or after. */
static void commit_and_send(world *w, size_t number)
{
    place *here = &w->all[number];
    node_letter letter;
    size_t count;
    if (number == 0 && w->root_dead)
        return;
    here->waits = false;
    if (is_killed(w, number)) {
        crash(w, number);
        return;
    }
    const double *result = inquiry_result(here->at.q, &count);
    if (result && !here->result) {
        for (size_t i = 1; number == 0 && i < w->nodes; i++)
            if (!w->all[i].result)
                fail_msg("%s, weather %" PRIu64 ": the root trains before node %zu has the result", w->p->name, w->seed,
                         i);
        here->result = malloc(count * sizeof *result);
        assert_non_null(here->result);
        memcpy(here->result, result, count * sizeof *result);
        here->n_result = count;
    }
    while (!is_killed(w, number)) {
        if (!inquiry_next_letter(here->at.q, &letter))
            return;
        sky_publish(&w->sky, number, &letter);
    }
    crash(w, number);
}

static void hand_over(world *w, size_t to, size_t from, const message *m)
{
    hfsad_error err;
    hfsad_status failed;
    node_refusal why;
    if (to == 0 && w->root_dead)
        return;
    inquiry_tick(w->all[to].at.q, w->sky.now);
    (void)inquiry_handle(w->all[to].at.q, from, m, &why, &failed, &err);
    ok(failed, &err);
}

/* What no node may believe: of another run, of a wrong size or kind, or an answer to a question nobody has asked. */
static void attack(world *w)
{
    double values[400] = {0};
    const size_t to = below(&w->sky.r, w->nodes), children = tree_children(w->d, to);
    const size_t from = children && (to == 0 || below(&w->sky.r, 2)) ? below(&w->sky.r, children) : NODE_PARENT;
    message m = {.kind = from == NODE_PARENT ? MESSAGE_ASK : MESSAGE_ANSWER,
                 .run = federation_run(w->all[to].at.f),
                 .phase = NODE_PHASE_SETUP,
                 .round = 1 + below(&w->sky.r, 30),
                 .values = values};
    hfsad_error err;
    hfsad_status failed;
    node_refusal why;
    switch (below(&w->sky.r, 4)) {
    case 0:
        m.run ^= (uint64_t)1 << below(&w->sky.r, 64);
        m.count = 1 + below(&w->sky.r, 40);
        break;
    case 1:
        m.count = from == NODE_PARENT ? below(&w->sky.r, INQUIRY_HEAD) : 399;
        break;
    case 2:
        m.kind = MESSAGE_MODEL;
        break;
    default: /* the end, as a broker remembers it: it comes once in a connection */
        inquiry_repeat(w->all[to].at.q);
        m.kind = MESSAGE_ASK;
        m.round = UINT32_MAX;
        m.count = INQUIRY_HEAD + 3;
        values[0] = INQUIRY_END;
        values[2] = 1;
    }
    if (inquiry_handle(w->all[to].at.q, from, &m, &why, &failed, &err))
        fail_msg("%s, weather %" PRIu64 ": node %zu has believed a stranger: kind %d, count %zu", w->p->name, w->seed,
                 to, (int)m.kind, m.count);
    inquiry_repeat(w->all[to].at.q);
    w->hostile++;
}

/* ---- time goes by ---- */

static bool all_have_it(const world *w)
{
    for (size_t i = 0; i < w->nodes; i++)
        if (!w->all[i].result)
            return false;
    return true;
}

static uint64_t next_event(const world *w)
{
    uint64_t next = sky_next(&w->sky);
    for (size_t i = 0; i < w->nodes; i++) {
        const uint64_t due = w->all[i].waits ? w->sky.now : inquiry_due(w->all[i].at.q);
        next = due < next ? due : next;
    }
    return next;
}

#define ROOT_DEAD ((hfsad_status)1000)

/* A turn for the root's script. */
static hfsad_status step(void *context, hfsad_error *err)
{
    enum { STEPS = 1000000 };
    world *w = context;
    (void)err;
    if (++w->steps > STEPS)
        fail_msg("%s, weather %" PRIu64 ": it does not end", w->p->name, w->seed);
    const uint64_t next = next_event(w);
    if (next == UINT64_MAX)
        fail_msg("%s, weather %" PRIu64 ": nobody has anything to say any more", w->p->name, w->seed);
    w->sky.now = next > w->sky.now ? next : w->sky.now;
    parcel p;
    for (size_t i = 0; sky_take(&w->sky, &i, &p);) {
        hand_over(w, p.to, p.from, &p.m);
        free(p.m.values);
        w->all[p.to].waits = true;
        if (chance(&w->sky, 0.7)) /* otherwise it goes on to the next before it commits */
            commit_and_send(w, p.to);
    }
    for (size_t i = 0; i < w->nodes; i++)
        if (inquiry_due(w->all[i].at.q) <= w->sky.now || inquiry_speaks(w->all[i].at.q) ||
            (w->all[i].waits && chance(&w->sky, 0.5))) {
            inquiry_tick(w->all[i].at.q, w->sky.now);
            commit_and_send(w, i);
        }
    if (chance(&w->sky, w->sky.weather.hostile))
        attack(w);
    return w->root_dead ? ROOT_DEAD : HFSAD_OK;
}

static void play(world *w)
{
    const inquiry_turns turns = {w, step};
    place *root = &w->all[0];
    hfsad_error err;
    while (!all_have_it(w)) {
        size_t count;
        const hfsad_status status = inquiry_result(root->at.q, &count)
                                        ? step(w, &err)
                                        : federation_set_up(root->at.f, root->at.q, &turns, &err);
        ok(status == ROOT_DEAD ? HFSAD_OK : status, &err);
        root->waits = true;
        if (w->root_dead) {
            w->root_dead = false;
            begin_again(w, 0);
        }
    }
}

/* ---- the comparison ---- */

static bool same_rule(const hfsad_link_rule *a, const hfsad_link_rule *b)
{
    return memcmp(&a->schedule, &b->schedule, sizeof a->schedule) == 0 && a->penalty.kind == b->penalty.kind &&
           same(&a->penalty.weight, &b->penalty.weight, 1);
}

static bool same_plan(const plan *a, const plan *b, const dataset *d)
{
    for (size_t i = 1; i < d->n_inner; i++)
        if (!same_rule(&a->inner[i].rule, &b->inner[i].rule) || a->inner[i].watched != b->inner[i].watched)
            return false;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        if (!same_rule(&plan_leaf(a, leaf)->rule, &plan_leaf(b, leaf)->rule))
            return false;
    return same(&a->length, &b->length, 1) && a->iterations == b->iterations && a->edge_rounds == b->edge_rounds;
}

/* What every node makes of the result, against the run of the simulator. */
static void compare_all(const world *w, const hfsad_run *run)
{
    for (size_t i = 0; i < w->nodes; i++) {
        const place *here = &w->all[i];
        node *n = process_node(&here->at, w->d, i, here->result, here->n_result);
        const federation_result *got = federation_outcome(here->at.f);
        const plan *p = federation_plan(here->at.f);
        const double mine[] = {got->scales.omega,
                               got->scales.bend,
                               got->scales.noise,
                               got->scales.length,
                               got->nu_f,
                               got->constant,
                               (double)got->n_rows,
                               (double)got->cost.questions,
                               (double)got->cost.bytes_up,
                               (double)got->cost.bytes_down};
        const double its[] = {run->scales.omega,
                              run->scales.bend,
                              run->scales.noise,
                              run->scales.length,
                              run->nu_f,
                              run->data->rows.constant,
                              (double)run->data->n_rows,
                              (double)run->before.questions,
                              (double)run->before.bytes_up,
                              (double)run->before.bytes_down};
        for (size_t k = 0; k < sizeof mine / sizeof *mine; k++)
            if (!same(&mine[k], &its[k], 1))
                fail_msg("%s, weather %" PRIu64 ", node %zu: number %zu of the set-up is %.17g, not %.17g", w->p->name,
                         w->seed, i, k, mine[k], its[k]);
        if (!same(got->start, run->start, run->data->M))
            fail_msg("%s, weather %" PRIu64 ", node %zu: the start differs: %.17g, not %.17g", w->p->name, w->seed, i,
                     got->start[0], run->start[0]);
        if (!same_plan(p, run->plan, w->d))
            fail_msg("%s, weather %" PRIu64 ", node %zu: the plan differs", w->p->name, w->seed, i);
        node_free(n);
    }
}

/* What a broker remembers of an earlier run of the same spec with other data: a question with other columns, or with
 * another intercept's column, comes before all others. */
static void remember_others(world *w)
{
    const size_t columns = strstr(w->p->spec, "standardize") ? 2 * w->p->M : 0;
    for (size_t i = w->d->n_inner; i < w->nodes; i++) {
        double values[100] = {SURVEY_CENTRE, 0, 2, w->p->intercept ? 7 : 0, (double)columns};
        for (size_t c = 0; c < columns; c++)
            values[INQUIRY_HEAD + c] = 1 + rng_next_uniform(&w->sky.r);
        const message m = {.kind = MESSAGE_ASK,
                           .run = federation_run(w->all[i].at.f),
                           .phase = NODE_PHASE_SETUP,
                           .round = 3,
                           .count = INQUIRY_HEAD + columns,
                           .values = values};
        hfsad_error err = {0};
        hfsad_status failed;
        node_refusal why;
        /* refused if the spec has no such question */
        (void)inquiry_handle(w->all[i].at.q, NODE_PARENT, &m, &why, &failed, &err);
    }
}

/* Who has a result does not take another one. */
static void refuse_another(world *w)
{
    for (size_t i = 1; i < w->nodes; i++) {
        const place *here = &w->all[i];
        double values[100] = {INQUIRY_RESULT, 0, 1, 0, 0};
        assert_true(INQUIRY_HEAD + here->n_result <= sizeof values / sizeof *values);
        for (uint64_t round = 8; round < 10; round++) {
            memcpy(values + INQUIRY_HEAD, here->result, here->n_result * sizeof *values);
            values[INQUIRY_HEAD + here->n_result - 1] += round == 9;
            const message m = {.kind = MESSAGE_ASK,
                               .run = federation_run(here->at.f),
                               .phase = NODE_PHASE_SETUP,
                               .round = round,
                               .count = INQUIRY_HEAD + here->n_result,
                               .values = values};
            hfsad_error err = {0};
            hfsad_status failed;
            node_refusal why;
            (void)inquiry_handle(here->at.q, NODE_PARENT, &m, &why, &failed, &err);
            assert_int_equal(failed, round == 9 ? HFSAD_ERROR_INPUT : HFSAD_OK);
        }
    }
}

typedef struct {
    uint64_t crashes, sent, hostile;
} totals;

static void run_setup(const problem *p, weather outside, bool remembers, uint64_t seed, totals *sum)
{
    world *w = alloc_zero(1, sizeof *w);
    hfsad_error err;
    hfsad_run *run;
    char text[1000];
    snprintf(text, sizeof text, "data: x\n%s", p->spec);
    w->p = p;
    w->seed = seed;
    ok(spec_load_text(&w->spec, "spec.yaml", text, strlen(text), &err), &err);
    ok(run_create_on(&run, w->spec, data_of(p, seed, p->intercept != 0), 1, &err), &err);
    w->d = data_of(p, seed, true);
    w->nodes = w->d->n_inner + w->d->n_leaves;
    sky_open(&w->sky, w->d, outside, seed);
    assert_true(w->nodes <= NODES_MOST);
    for (size_t i = 0; i < w->nodes; i++)
        begin(w, i);
    if (remembers)
        remember_others(w);
    play(w);
    compare_all(w, run);
    if (remembers)
        refuse_another(w);
    sum->crashes += w->crashes;
    sum->sent += w->sky.sent;
    sum->hostile += w->hostile;
    for (size_t i = 0; i < w->nodes; i++) {
        process_end(&w->all[i].at);
        free(w->all[i].result);
    }
    sky_close(&w->sky);
    hfsad_run_free(run);
    hfsad_spec_free(w->spec);
    dataset_free(w->d);
    free(w);
}

static const weather fair = {0}, foul[] = {
                                     {.lose = 0.3, .twice = 0.2, .late = 0.1},
                                     {.crash = 0.02},
                                     {.lose = 0.2, .twice = 0.3, .late = 0.2, .crash = 0.01, .hostile = 0.5},
                                     {.lose = 0.5, .twice = 0.1, .late = 0.5, .crash = 0.02, .hostile = 0.1},
};

static void test_fair_weather(void **state)
{
    (void)state;
    totals sum = {0};
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        run_setup(&setups[i], fair, false, 1, &sum);
    assert_true(sum.crashes == 0);
}

static void test_remembered(void **state)
{
    (void)state;
    totals sum = {0};
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        run_setup(&setups[i], fair, true, 1, &sum);
}

static void test_chaos(void **state)
{
    (void)state;
    totals sum = {0};
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        for (size_t k = 0; k < 4 * chaos_times(); k++)
            run_setup(&setups[i], foul[k % 4], false, 100 + k, &sum);
    print_message("%" PRIu64 " crashes, %" PRIu64 " messages, %" PRIu64 " of strangers, rows read again %zu times\n",
                  sum.crashes, sum.sent, sum.hostile, read_again);
    assert_true(sum.crashes > 100 && sum.hostile > 100 && read_again > 0);
}

/* ---- rows that cannot be read again ---- */

static hfsad_status read_nothing(void *context, dataset **rows, hfsad_error *err)
{
    (void)context;
    *rows = NULL;
    return error_set(err, HFSAD_ERROR_INPUT, "data.csv cannot be read");
}

static hfsad_status read_others(void *context, dataset **rows, hfsad_error *err)
{
    const problem *p = context;
    (void)err;
    *rows = data_of(p, 2, true);
    return HFSAD_OK;
}

static void ask_moments(process *at, const problem *p, uint64_t round, bool standard)
{
    double numbers[100] = {SURVEY_MOMENTS};
    const size_t F = p->M, n = standard ? 2 * F : 0;
    node_refusal why;
    hfsad_status failed = HFSAD_OK;
    hfsad_error err;
    numbers[2] = (double)(1 + 2 * F);
    numbers[4] = (double)n;
    for (size_t m = 0; m < n; m++)
        numbers[INQUIRY_HEAD + m] = 1 + (double)m;
    const message m = {.kind = MESSAGE_ASK,
                       .run = federation_run(at->f),
                       .phase = NODE_PHASE_SETUP,
                       .round = round,
                       .count = INQUIRY_HEAD + n + 1 + F,
                       .values = numbers};
    (void)inquiry_handle(at->q, NODE_PARENT, &m, &why, &failed, &err);
    assert_true(failed == HFSAD_OK);
}

static void test_rows_are_gone(void **state)
{
    (void)state;
    const problem *p = &setups[3];
    assert_non_null(strstr(p->spec, "standardize"));
    char text[1000];
    hfsad_spec *spec;
    hfsad_error err;
    federation_reader *const readers[] = {read_nothing, read_others};
    const char *const words[] = {"cannot be read", "have changed"};
    snprintf(text, sizeof text, "data: x\n%s", p->spec);
    ok(spec_load_text(&spec, "spec.yaml", text, strlen(text), &err), &err);
    for (int i = 0; i < 2; i++) {
        process at;
        dataset *d = data_of(p, 1, true);
        process_begin(&at, spec, d, d->n_inner, data_of(p, 1, true));
        federation_set_reader(at.f, readers[i], (void *)p);
        ask_moments(&at, p, 1, false);
        ask_moments(&at, p, 2, true);
        assert_null(federation_broken(at.f));
        ask_moments(&at, p, 3, false); /* a root that begins anew */
        assert_non_null(federation_broken(at.f));
        assert_non_null(strstr(federation_broken(at.f)->message, words[i]));
        process_end(&at);
        dataset_free(d);
    }
    hfsad_spec_free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_gone),
        cmocka_unit_test(test_fair_weather),
        cmocka_unit_test(test_remembered),
        cmocka_unit_test(test_chaos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
