/*
 * A federation of real processes through a real mosquitto: the cloud, every inner node and the clients of every parent
 * each in a process with a state folder of its own. Processes and the broker are killed with -9 at drawn moments and
 * started again; what is in the state folders at the end must be the simulator's, bit for bit.
 */
#define _POSIX_C_SOURCE 200809L
#include "broker.h"
#include "federation.h"

#include "net/host.h"

#include <sys/stat.h>

enum { RUN = 321, PROCESSES_MOST = 16 };

typedef struct {
    size_t nodes[64], count;
    char state[300];
    pid_t pid;
    int ended; /* pipe: a byte comes when all its nodes have ended */
    bool done;
} process;

typedef struct {
    const tree *t;
    test_broker *broker;
    process all[PROCESSES_MOST];
    size_t count;
    uint64_t kills;
} federation;

static void name_of(const dataset *d, size_t number, char name[256])
{
    if (number < d->n_inner)
        snprintf(name, 256, "%s", d->inner[number].name);
    else
        dataset_leaf_name(d, number - d->n_inner, name, 256);
}

/* ---- in a process ---- */

static void must(hfsad_status status, const hfsad_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", err->message);
    _exit(1);
}

static void join(const federation *f, host *h, size_t number)
{
    static char names[64][256];
    const dataset *d = f->t->d;
    const char *list[64];
    char path[256];
    hfsad_error err;
    node *n;
    const size_t children = tree_children(d, number);
    for (size_t c = 0; c < children; c++) {
        name_of(d, tree_child(d, number, c), names[c]);
        list[c] = names[c];
    }
    name_of(d, number, path);
    const host_place place = {.path = path, .children = list, .n_children = children};
    must(tree_node(&n, f->t, number, &err), &err);
    must(host_join(h, n, &place, &err), &err);
}

static _Noreturn void work(const federation *f, const process *p, int ended)
{
    hfsad_error err;
    store *state;
    host *h;
    transport *wire;
    bool said = false;
    must(store_open(&state, p->state, RUN, &err), &err);
    if (p->nodes[0] % 2)
        store_set_room(state, 5000); /* it begins anew every few rounds */
    const host_settings settings = {.run = "test", .run_id = RUN, .state = state};
    must(host_create(&h, &settings, &err), &err);
    const transport_handler handler = host_handler(h, true);
    const transport_broker at = {.url = f->broker->url, .backoff_least_ms = 2, .backoff_most_ms = 50};
    must(transport_mqtt_create(&wire, &at, &handler, &err), &err);
    host_connect(h, wire, wire);
    for (size_t i = 0; i < p->count; i++)
        join(f, h, p->nodes[i]);
    for (;;) { /* also when it has ended: others may not have heard of that */
        must(host_step(h, 1000, &err), &err);
        if (!said && host_ended(h))
            said = write(ended, "", 1) == 1;
    }
}

/* ---- outside ---- */

static void start(federation *f, process *p)
{
    int ends[2];
    const pid_t parent = getpid();
    assert_int_equal(pipe(ends), 0);
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        work(f, p, ends[1]);
    }
    close(ends[1]);
    p->ended = ends[0];
}

static void stop(process *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->ended);
}

static process *add_process(federation *f)
{
    assert_true(f->count < PROCESSES_MOST);
    process *p = &f->all[f->count];
    snprintf(p->state, sizeof p->state, "%s/%zu", in_folder("states"), f->count++);
    return p;
}

static void share_out(federation *f)
{
    const dataset *d = f->t->d;
    for (size_t i = 0; i < d->n_inner; i++) {
        process *p = add_process(f);
        p->nodes[p->count++] = i;
        if (d->inner[i].n_leaves == 0)
            continue;
        p = add_process(f);
        for (size_t slot = 0; slot < d->inner[i].n_leaves; slot++)
            p->nodes[p->count++] = d->n_inner + d->inner[i].first_leaf + slot;
    }
}

/* Waits for at most so long, or until a process that had not ended has; 0: it is dead. */
static void watch(federation *f, int timeout_ms)
{
    struct pollfd fds[PROCESSES_MOST];
    for (size_t i = 0; i < f->count; i++)
        fds[i] = (struct pollfd){f->all[i].done ? -1 : f->all[i].ended, POLLIN, 0};
    if (poll(fds, f->count, timeout_ms) <= 0)
        return;
    for (size_t i = 0; i < f->count; i++) {
        char byte;
        if (!fds[i].revents)
            continue;
        if (read(f->all[i].ended, &byte, 1) != 1)
            fail_msg("a process has ended by itself");
        f->all[i].done = true;
    }
}

static bool all_done(const federation *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (!f->all[i].done)
            return false;
    return true;
}

static void disturb(federation *f, rng *r)
{
    f->kills++;
    if (below(r, 6) == 0) {
        broker_kill(f->broker);
        assert_true(broker_start(f->broker));
        return;
    }
    process *p = &f->all[below(r, f->count)];
    stop(p);
    p->done = false;
    start(f, p);
}

static void add_row(void *context, const hfsad_figures *figures)
{
    outcome *o = context;
    o->rows[o->n_rows++] = *figures;
}

typedef struct {
    const federation *f;
    node **nodes;
} reader;

static hfsad_status hear(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                         hfsad_error *err)
{
    const reader *r = context;
    const dataset *d = r->f->t->d;
    double values[100];
    message m;
    (void)err;
    assert_int_equal(message_decode(NULL, frame, size, NULL, values, 100, &m), MESSAGE_FAULT_NONE);
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < d->n_inner + d->n_leaves; n++) {
            char path[256];
            name_of(d, n, path);
            if (!strcmp(path, names[i]))
                assert_true(node_handle(r->nodes[n], NODE_PARENT, &m, NULL));
        }
    return HFSAD_OK;
}

/* What the state folders hold. */
static void check(const federation *f, const prepared *made, const char *name, uint64_t seed)
{
    node *nodes[128];
    static outcome found;
    found.n_rows = 0;
    for (size_t i = 0; i < f->count; i++) {
        const process *p = &f->all[i];
        hfsad_error err;
        store *state;
        ok(store_open(&state, p->state, RUN, &err), &err);
        for (size_t n = 0; n < p->count; n++) {
            void *bytes;
            size_t size;
            char path[256];
            name_of(made->d, p->nodes[n], path);
            ok(store_get_state(state, path, &bytes, &size, &err), &err);
            assert_non_null(bytes);
            word_reader words = {bytes, size / WORD_BYTES, false};
            ok(tree_node(&nodes[p->nodes[n]], f->t, p->nodes[n], &err), &err);
            assert_true(node_unpack(nodes[p->nodes[n]], &words));
            free(bytes);
        }
        ok(store_get_heard(state, hear, &(reader){f, nodes}, &err), &err);
        ok(store_get_rows(state, add_row, &found, &err), &err);
        store_close(state);
    }
    compare(&made->expected, made->d, found.rows, found.n_rows, nodes, node_models_below(nodes[0]), name, seed);
    for (size_t i = 0; i < made->expected.nodes; i++)
        node_free(nodes[i]);
}

/* Returns how many were killed. */
static uint64_t run_killed(const problem *of, uint64_t seed, size_t kills)
{
    prepared made = prepare_longer(of, seed, kills ? 30 : 1);
    rng r = {rng_key(seed, rng_stream("kills")), 0};
    const tree t = tree_of(&made, of, RUN, (node_patience){20, 200});
    test_broker broker;
    federation f = {.t = &t, .broker = &broker};
    assert_int_equal(leave_folder(NULL), 0);
    assert_int_equal(enter_folder(NULL), 0);
    assert_true(broker_create(&broker, folder, NULL, ""));
    assert_int_equal(mkdir(in_folder("states"), 0700), 0);
    share_out(&f);
    for (size_t i = 0; i < f.count; i++)
        start(&f, &f.all[i]);
    const int64_t end = broker_now_ms() + 60000;
    while ((f.kills < kills || !all_done(&f)) && broker_now_ms() < end) {
        watch(&f, kills ? (int)below(&r, 30) : 1000);
        if (f.kills < kills)
            disturb(&f, &r);
    }
    const bool done = all_done(&f);
    for (size_t i = 0; i < f.count; i++)
        stop(&f.all[i]);
    broker_free(&broker);
    if (!done)
        fail_msg("%s, seed %" PRIu64 ": not at its end after a minute", of->name, seed);
    check(&f, &made, of->name, seed);
    unprepare(&made);
    return f.kills;
}

static const problem *problem_named(const char *name)
{
    for (size_t i = 0; i < PROBLEMS; i++)
        if (!strcmp(problems[i].name, name))
            return &problems[i];
    return NULL;
}

static void test_undisturbed(void **state)
{
    (void)state;
    (void)run_killed(problem_named("phase retrieval"), 1, 0);
}

static void test_killed(void **state)
{
    (void)state;
    static const char *const names[] = {"phase retrieval", "deep absences", "rows", "repairs"};
    uint64_t kills = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        kills += run_killed(problem_named(names[i]), 10 + i, 100);
    assert_true(kills == 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_undisturbed, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_killed, enter_folder, leave_folder),
    };
    if (access("/dev/shm", W_OK) == 0) /* thousands of syncs */
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
