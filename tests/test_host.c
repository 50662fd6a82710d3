/* Processes of a federation: nodes, store and transport together give the simulator's bits under all interruptions. */
#define _POSIX_C_SOURCE 200809L
#include "federation.h"

#include "net/host_parts.h"
#include "transport_local.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RUN = 99 };

typedef struct {
    const prepared *made;
    tree t;
    store *state;
    host *h;
    transport *wire;
    hfsad_figures rows[64];
    size_t n_rows, refused, failures;
    wire_encoding encoding;
    bool silent;    /* nobody says that it lives */
    uint64_t bytes; /* sent in all lives */
    uint64_t room;  /* of the log, 0: its own */
} process;

static void on_event(void *context, const host_event *event)
{
    process *p = context;
    p->refused += event->kind == HOST_MESSAGE_REFUSED;
    p->failures += event->kind == HOST_STORE_FAILED;
    if (event->kind == HOST_MESSAGE_REFUSED)
        print_message("%s: %s (%s)\n", event->node, event->text, event->from);
}

static void on_row(void *context, const hfsad_figures *f)
{
    process *p = context;
    p->rows[p->n_rows++] = *f;
}

static void name_of(const dataset *d, size_t number, char name[256])
{
    if (number < d->n_inner)
        snprintf(name, 256, "%s", d->inner[number].name);
    else
        dataset_leaf_name(d, number - d->n_inner, name, 256);
}

static void join(process *p, size_t number)
{
    hfsad_error err;
    static char names[64][256];
    const char *list[64];
    char path[256];
    node *n;
    const size_t children = tree_children(p->made->d, number);
    for (size_t c = 0; c < children; c++) {
        name_of(p->made->d, tree_child(p->made->d, number, c), names[c]);
        list[c] = names[c];
    }
    name_of(p->made->d, number, path);
    const host_place place = {.path = path, .children = list, .n_children = children};
    ok(tree_node(&n, &p->t, number, &err), &err);
    ok(host_join(p->h, n, &place, &err), &err);
}

static void begin(process *p)
{
    hfsad_error err;
    ok(store_open(&p->state, in_folder("state"), RUN, &err), &err);
    if (p->room)
        store_set_room(p->state, p->room);
    const host_settings settings = {.run = "test",
                                    .run_id = RUN,
                                    .state = p->state,
                                    .local_seconds = p->t.async ? 1e-5 : 0,
                                    .status_ms = p->silent ? 0 : 1,
                                    .encoding = p->encoding,
                                    .context = p,
                                    .event = on_event};
    ok(host_create(&p->h, &settings, &err), &err);
    const transport_handler handler = host_handler(p->h, true);
    ok(transport_local_create(&p->wire, &handler, &err), &err);
    host_connect(p->h, p->wire, p->wire);
    for (size_t i = 0; i < p->made->expected.nodes; i++)
        join(p, i);
}

static void end(process *p)
{
    p->bytes += host_get_counts(p->h).frames.bytes_sent;
    host_free(p->h);
    transport_free(p->wire);
    store_close(p->state);
}

static void check(process *p, const char *name, uint64_t seed)
{
    hfsad_error err;
    node *nodes[128];
    p->n_rows = 0;
    ok(store_get_rows(p->state, on_row, p, &err), &err);
    for (size_t i = 0; i < p->made->expected.nodes; i++)
        nodes[i] = host_node(p->h, i);
    compare(&p->made->expected, p->made->d, p->rows, p->n_rows, nodes, node_models_below(nodes[0]), name, seed);
    assert_int_equal(p->refused, 0);
}

/* ---- what comes back ---- */

enum { WORDS_MOST = 1 << 16, AT_BEGUN = 2 };

typedef struct {
    uint64_t words[WORDS_MOST];
    size_t count;
} states;

static void add_words(void *to, const void *bytes, size_t count)
{
    states *s = to;
    assert_true(s->count + count / WORD_BYTES <= WORDS_MOST);
    memcpy(&s->words[s->count], bytes, count);
    s->count += count / WORD_BYTES;
}

/* Of the clients; how often they have begun aside, which nobody asks them. */
static void pack_clients(const process *p, states *s)
{
    s->count = 0;
    for (size_t i = 0; i < host_nodes(p->h); i++) {
        node *n = host_node(p->h, i);
        const size_t first = s->count;
        word_writer writer = {.put = add_words, .to = s};
        if (!node_follows(n))
            continue;
        node_pack(n, &writer);
        s->words[first + AT_BEGUN] = 0;
    }
}

static uint64_t number_at(const unsigned char *at)
{
    uint64_t v = 0;
    for (size_t i = 8; i-- > 0;)
        v = v << 8 | at[i];
    return v;
}

/* As if the power had failed within the last write: the last record ends somewhere before its end, and the mark is that
 * of the commit before. */
static void tear_state(rng *r)
{
    static unsigned char all[8 << 20]; /* a log of 4 MiB and its snapshot */
    FILE *f = fopen(in_folder("state/state"), "r+");
    assert_non_null(f);
    const size_t size = fread(all, 1, sizeof all, f);
    assert_true(size < sizeof all);
    size_t next = 0, last = 0;
    while (next + 40 < size && !memcmp(all + next, "hfs", 3)) {
        last = next;
        next += (40 + (size_t)number_at(all + last + 24) + 4 + 511) / 512 * 512;
    }
    assert_int_equal(fclose(f), 0);
    if (last == 0) /* the snapshot, which took the place of another as a whole */
        return;
    assert_int_equal(truncate(in_folder("state/state"), (off_t)(last + below(r, next - last))), 0);
    f = fopen(in_folder("state/mark"), "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, number_at(all + last + 16) % 2 ? 512 : 0, SEEK_SET), 0);
    assert_int_equal(fputc(0, f), 0);
    assert_int_equal(fclose(f), 0);
}

static states old_states, new_states;
static size_t torn, compared;

/* The process is thrown away and begun again. */
static void begin_again(process *p, rng *r, const char *name, uint64_t seed)
{
    hfsad_error err;
    pack_clients(p, &old_states);
    end(p);
    const bool tear = below(r, 3) == 0;
    if (tear)
        tear_state(r);
    begin(p);
    ok(host_recall(p->h, &err), &err);
    pack_clients(p, &new_states);
    torn += tear;
    compared += !tear;
    if (!tear && (old_states.count != new_states.count ||
                  memcmp(old_states.words, new_states.words, WORD_BYTES * old_states.count) != 0))
        fail_msg("%s, seed %" PRIu64 ": another state came back", name, seed);
}

/* Steps of the process before it is thrown away are drawn; 0 of `pauses`: it is never. */
static uint64_t run_with_pauses(const problem *which, uint64_t seed, size_t pauses, wire_encoding encoding)
{
    hfsad_error err;
    prepared made = prepare(which, seed);
    rng r = {rng_key(seed, rng_stream("pauses")), 0};
    process p = {.made = &made,
                 .encoding = encoding,
                 .room = below(&r, 2) * below(&r, 20000),
                 .silent = pauses == 0, /* nothing goes by the clock, so it sends the same bytes every time */
                 .t = tree_of(&made, which, RUN, (node_patience){pauses ? 50 : 5000, 5000})};
    begin(&p);
    while (!host_ended(p.h)) {
        ok(host_step(p.h, 1000, &err), &err);
        if (pauses && below(&r, pauses) == 0 && !host_ended(p.h))
            begin_again(&p, &r, which->name, seed);
    }
    check(&p, which->name, seed);
    end(&p);
    const uint64_t bytes = p.bytes;
    begin(&p); /* what has ended has ended */
    for (int i = 0; i < 3; i++)
        ok(host_step(p.h, 0, &err), &err);
    assert_true(host_ended(p.h));
    check(&p, which->name, seed);
    end(&p);
    unprepare(&made);
    return bytes;
}

static uint64_t each_problem(uint64_t seed, size_t pauses, wire_encoding encoding)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < PROBLEMS; i++) {
        assert_int_equal(leave_folder(NULL), 0);
        assert_int_equal(enter_folder(NULL), 0);
        char text[1000];
        const problem p = encoding == WIRE_FLOAT ? rounded(&problems[i], text) : problems[i];
        bytes += run_with_pauses(&p, seed, pauses, encoding);
    }
    return bytes;
}

static void test_undisturbed(void **state)
{
    (void)state;
    (void)each_problem(1, 0, WIRE_DOUBLE);
}

static void test_begun_again(void **state)
{
    (void)state;
    for (uint64_t seed = 2; seed < 5; seed++)
        (void)each_problem(seed, 10, WIRE_DOUBLE);
    assert_true(torn > 30 && compared > 60);
}

/* Differences are exact, and whoever has not heard what they are taken to gets them whole. */
static void test_differences(void **state)
{
    (void)state;
    (void)each_problem(3, 20, WIRE_DELTA);
    assert_true(each_problem(1, 0, WIRE_DELTA) < each_problem(1, 0, WIRE_DOUBLE));
}

/* The simulator rounds as the frames do. */
static void test_floats(void **state)
{
    (void)state;
    assert_true(each_problem(1, 0, WIRE_FLOAT) < each_problem(1, 0, WIRE_DOUBLE));
    (void)each_problem(4, 20, WIRE_FLOAT);
}

static char record[1 << 20];
static size_t record_size;

static void on_line(void *context, const char *line)
{
    (void)context;
    record_size += (size_t)snprintf(record + record_size, sizeof record - record_size, "%s\n", line);
    assert_true(record_size < sizeof record);
}

/* The record is in the store too, and gives the same in the simulator. */
static void test_async(void **state)
{
    (void)state;
    static const size_t which[] = {0, 3, 5, 7};
    hfsad_error err;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        const problem *of = &problems[which[i]];
        rng r = {rng_key(i, rng_stream("pauses")), 0};
        assert_int_equal(leave_folder(NULL), 0);
        assert_int_equal(enter_folder(NULL), 0);
        prepared made = prepare(of, 4);
        free(made.expected.models);
        process p = {.made = &made,
                     .room = i % 2 ? 3000 : 0,
                     .t = {.d = made.d,
                           .p = made.p,
                           .start = made.start,
                           .intercept = of->intercept,
                           .run = RUN,
                           .patience = {5, 100},
                           .async = true,
                           .pace = {0.5, 20, true, 0, NODE_STEPS_MOST, 0}}};
        begin(&p);
        while (!host_ended(p.h)) {
            ok(host_step(p.h, 1000, &err), &err);
            if (below(&r, 40) == 0 && !host_ended(p.h)) {
                end(&p);
                begin(&p);
            }
        }
        record_size = 0;
        ok(store_get_record(p.state, on_line, NULL, &err), &err);
        replay_record(&made.expected, &p.t, record, record_size);
        check(&p, of->name, 4);
        end(&p);
        unprepare(&made);
    }
}

/* A disk that is full for a while only takes time. */
static void test_no_room(void **state)
{
    (void)state;
    hfsad_error err;
    struct rlimit before, none;
    prepared made = prepare(&problems[1], 3);
    process p = {.made = &made,
                 .t = {.d = made.d, .p = made.p, .start = made.start, .run = RUN, .patience = {50, 1000}}};
    signal(SIGXFSZ, SIG_IGN);
    begin(&p);
    for (int i = 0; i < 30; i++)
        ok(host_step(p.h, 1000, &err), &err);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    for (int i = 0; i < 30 && !p.failures; i++)
        ok(host_step(p.h, 0, &err), &err);
    assert_int_equal(p.failures, 1);
    const uint64_t round = node_get_status(host_node(p.h, 0)).round;
    for (int i = 0; i < 30; i++)
        ok(host_step(p.h, 0, &err), &err);
    assert_true(node_get_status(host_node(p.h, 0)).round <= round + 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    while (!host_ended(p.h))
        ok(host_step(p.h, 1000, &err), &err);
    check(&p, problems[1].name, 3);
    end(&p);
    unprepare(&made);
}

/* An older process of the same name is believed in when it has met this one: what a broker remembers, or somebody
 * repeats, is none. Who has met one does not end the run of the others. */
static void test_twin(void **state)
{
    (void)state;
    hfsad_error err;
    prepared made = prepare(&problems[1], 3);
    process p = {.made = &made,
                 .t = {.d = made.d, .p = made.p, .start = made.start, .run = RUN, .patience = {50, 1000}}};
    double values[HOST_STATUS_ITERATION] = {[HOST_STATUS_PROCESS] = 5, [HOST_STATUS_MEETS] = 4};
    message m = {.kind = MESSAGE_STATUS, .run = RUN, .k = 1, .count = HOST_STATUS_ITERATION, .values = values};
    unsigned char frame[1000];
    size_t size;
    assert_true(message_bytes_most(m.count) <= sizeof frame);
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_NONE);
    begin(&p);
    const transport_handler to = host_handler(p.h, true);
    for (int i = 0; i < 3; i++) {
        to.event(to.context, 0, TRANSPORT_UP, "");
        to.receive(to.context, 0, "hfsad/test/cloud/status", frame, size);
        ok(host_step(p.h, 0, &err), &err);
    }
    for (int i = 0; i < 3; i++) /* it has no state, and this one has */
        to.receive(to.context, 0, "hfsad/test/cloud/status", frame, size);
    ok(host_step(p.h, 0, &err), &err);
    m.phase = NODE_PHASE_TRAIN;
    values[HOST_STATUS_K] = (double)node_get_status(host_node(p.h, 0)).k + 1e6; /* it is further */
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_NONE);
    for (int i = 0; i < 3; i++) {
        to.event(to.context, 0, TRANSPORT_UP, "");
        to.receive(to.context, 0, "hfsad/test/cloud/status", frame, size);
        ok(host_step(p.h, 0, &err), &err);
    }
    values[HOST_STATUS_MEETS] = 0; /* the number of this process */
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_NONE);
    to.receive(to.context, 0, "hfsad/test/cloud/status", frame, size);
    assert_int_equal(host_step(p.h, 0, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "cloud already runs"));
    assert_int_equal(host_dismiss(p.h, "whatever", &err), HFSAD_ERROR_INPUT);
    assert_non_null(host_node(p.h, 0));
    end(&p);
    unprepare(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_undisturbed, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_begun_again, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_differences, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_floats, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_async, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_no_room, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_twin, enter_folder, leave_folder),
    };
    if (access("/dev/shm", W_OK) == 0) /* thousands of syncs */
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
