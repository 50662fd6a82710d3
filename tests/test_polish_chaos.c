/*
 * The polish of a federation in one process, without sockets: the cloud's questions through the tree while messages are
 * lost, doubled, delayed and overtake each other, and cloud, edges and clients are killed at any instant and restart
 * from their committed state. The result, the polish and all models, must be the simulator's, bit for bit. Some runs go
 * all the way, from the first question of the set-up on.
 *
 * HFSAD_CHAOS=20 in the environment: twenty times the runs, with other seeds.
 */
#define _POSIX_C_SOURCE 200809L
#include "federation.h"
#include "process.h"
#include "weather.h"

#include "plan/owners.h"
#include "run/handle.h"

#include <limits.h>

enum { NODES_MOST = 32, MODEL_MOST = 520 };

static const size_t pair_clients[] = {2, 1}, star_clients[] = {3}, deep_few[] = {1, 2, 1, 1, 1};

static const problem polished[] = {
    {"quantile", 2, two, pair_clients, 3, 6, 0, false,
     "loss: {kind: quantile, tau: 0.7}\nrun: {polish: true, iterations: 3, edge_rounds: 2}\n"},
    {"a star", 1, flat, star_clients, 2, 5, 0, false,
     "loss: {kind: absolute}\nrun: {polish: true, iterations: 4, trace_every: 2}\n"},
    {"phase retrieval", 5, deep, deep_few, 2, 4, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\nrun: {polish: true, iterations: 2, edge_rounds: 2}\n"},
    {"an intercept", 2, two, pair_clients, 2, 6, INTERCEPT_GLOBAL, true,
     "loss: {kind: logistic}\nprior: {cloud: {penalty: l1, weight: 0.1}}\nfeatures: {intercept: global}\nrun: {polish: "
     "true, iterations: 2}\n"},
    {"algorithm star", 2, two, pair_clients, 3, 6, 0, false,
     "algorithm: star\nloss: {kind: absolute}\nrun: {iterations: 50}\n"},
    {"intercepts of clients", 2, two, pair_clients, 2, 6, INTERCEPT_CLIENT, false,
     "algorithm: star\nloss: {kind: absolute}\nfeatures: {intercept: client}\nrun: {iterations: 50}\n"},
    {"chosen columns", 2, two, pair_clients, 70, 6, INTERCEPT_GLOBAL, false,
     "algorithm: star\nloss: {kind: absolute}\nprior: {cloud: {penalty: l1, weight: 1, lambda: 4}}\nfeatures: "
     "{intercept: "
     "global}\nrun: {iterations: 50}\n"},
    {"projections", 1, flat, star_clients, 513, 4, INTERCEPT_GLOBAL, false,
     "algorithm: star\nloss: {kind: absolute}\nprior: {cloud: {penalty: l2, weight: 1, lambda: 0.05}}\nfeatures: "
     "{intercept: global}\nrun: {iterations: 50}\n"},
    {"intercepts of edges", 5, deep, deep_few, 2, 4, INTERCEPT_EDGE, false,
     "loss: {kind: huber}\nfeatures: {intercept: edge}\nrun: {polish: true, iterations: 2}\n"},
};
enum { PROBLEMS_HERE = sizeof polished / sizeof *polished };

/* ---- what must come out ---- */

typedef struct {
    const problem *p;
    hfsad_spec *spec;
    dataset *d; /* the tree */
    size_t nodes;
    hfsad_run *run;
    double *models;  /* of the simulator, by node, before the polish */
    double *numbers; /* of the undisturbed federation's polish */
    size_t n_numbers;
    double *result; /* of the set-up */
    size_t n_result;
    blob trained[NODES_MOST]; /* states of nodes that stand before the polish */
} expected;

static dataset *data_of(const problem *p, bool rows)
{
    rng r = {rng_key(1, rng_stream(p->name)), 0};
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    double x[MODEL_MOST];
    ok(dataset_builder_create(&b, p->M, &err), &err);
    for (size_t e = 0, number = 0; e < p->edges; e++)
        for (size_t c = 0; c < p->clients[e]; c++) {
            char name[32];
            snprintf(name, sizeof name, "client%zu", ++number);
            for (size_t row = 2 + below(&r, p->rows - 1); row > 0; row--) {
                double s = 0.3;
                for (size_t m = 0; m < p->M; m++)
                    s += x[m] = rng_next_normal(&r);
                ok(dataset_builder_add(b, p->paths[e], name, p->labels ? (s > 0 ? 1 : -1) : s * s, x, NULL, 0, &err),
                   &err);
            }
        }
    if (rows)
        dataset_builder_use_rows(b);
    ok(dataset_builder_finish(b, &d, &err), &err);
    return d;
}

static void simulate_run(expected *e)
{
    hfsad_error err;
    hfsad_figures f;
    hfsad_polish result;
    const size_t M = e->run->data->M;
    e->models = alloc_zero(e->nodes * M, sizeof *e->models);
    ok(run_measure(e->run, &f, &err), &err); /* every row counts: the polish of phase retrieval begins at the best */
    for (uint64_t i = 0; i < e->run->plan->iterations; i++) {
        hfsad_run_iterate(e->run);
        ok(run_measure(e->run, &f, &err), &err);
    }
    for (size_t i = 0; i < e->d->n_inner; i++)
        memcpy(e->models + i * M, e->run->engine->inner_model(e->run, i), M * sizeof *e->models);
    for (size_t leaf = 0; leaf < e->d->n_leaves; leaf++)
        e->run->engine->leaf_model(e->run, leaf, e->models + (e->d->n_inner + leaf) * M);
    ok(run_polish(e->run, NULL, NULL, &result, &err), &err);
    if (!result.accepted)
        fail_msg("%s: the simulator's polish is not accepted: %s", e->p->name, result.reason);
}

/* ---- the world ---- */

typedef struct {
    process at;
    node *n;         /* NULL: the set-up has not come to it */
    bool has_result; /* of the set-up, committed */
    blob state;      /* likewise */
} place;

typedef struct {
    const expected *e;
    uint64_t seed;
    sky sky;
    unsigned kills, root_kills; /* that are still to come */
    bool root_dead;             /* killed, and not begun again yet: its script has to end first */
    bool stops;                 /* where the polish would begin */
    size_t steps;
    place all[NODES_MOST];
    uint64_t crashes, attempts, events;
    double last_attempt;
} world;

/* As a process that finds in its store the result of the set-up and the node's state, or nothing. */
static void begin(world *w, size_t number)
{
    const expected *e = w->e;
    place *here = &w->all[number];
    hfsad_error err;
    process_begin(&here->at, e->spec, e->d, number, number < e->d->n_inner ? NULL : data_of(e->p, true));
    here->n = NULL;
    if (!here->has_result) {
        inquiry_tick(here->at.q, w->sky.now);
        return;
    }
    here->n = process_node(&here->at, e->d, number, e->result, e->n_result);
    node_tick(here->n, w->sky.now);
    if (here->state.size) {
        word_reader reader = {here->state.bytes, here->state.size / WORD_BYTES, false};
        assert_true(node_unpack(here->n, &reader));
    }
    ok(inquiry_remember(here->at.q, e->result, e->n_result, &err), &err);
    inquiry_tick(here->at.q, w->sky.now);
}

static void end(place *here)
{
    node_free(here->n);
    process_end(&here->at);
}

static void begin_again(world *w, size_t number)
{
    end(&w->all[number]);
    begin(w, number);
    sky_return(&w->sky, number);
}

static bool is_killed(world *w, size_t number)
{
    unsigned *left = number == 0 ? &w->root_kills : &w->kills;
    if (number == 0 && w->root_dead)
        return true;
    if (*left == 0 || !chance(&w->sky, w->sky.weather.crash))
        return false;
    (*left)--;
    w->crashes++;
    if (number == 0)
        w->root_dead = true;
    else
        begin_again(w, number);
    return true;
}

static void note_attempt(world *w, size_t number, const message *m)
{
    if (number != 0 || m->phase != NODE_PHASE_SETUP || m->kind != MESSAGE_ASK || m->values[0] < INQUIRY_POLISH ||
        m->values[INQUIRY_HEAD] == w->last_attempt)
        return;
    w->last_attempt = m->values[INQUIRY_HEAD];
    w->attempts++;
}

static void take_result(world *w, size_t number)
{
    const expected *e = w->e;
    place *here = &w->all[number];
    size_t count;
    const double *result = inquiry_result(here->at.q, &count);
    if (here->n || !result)
        return;
    if (count != e->n_result || !same(result, e->result, count))
        fail_msg("%s, weather %" PRIu64 ": node %zu has another result of the set-up", e->p->name, w->seed, number);
    here->n = process_node(&here->at, e->d, number, result, count);
    node_tick(here->n, w->sky.now);
}

static void commit(place *here)
{
    hfsad_figures row;
    (void)node_take_figures(here->n, &row);
    if (!node_changed(here->n))
        return;
    word_writer writer = {.put = blob_append, .to = &here->state};
    here->state.size = 0;
    node_pack(here->n, &writer);
    here->has_result = true;
}

/* Commits what has changed, then sends; killed before, between or after. */
static void commit_and_send(world *w, size_t number)
{
    place *here = &w->all[number];
    node_letter letter;
    take_result(w, number);
    if (is_killed(w, number))
        return;
    if (here->n)
        commit(here);
    while (!is_killed(w, number)) {
        if (!inquiry_next_letter(here->at.q, &letter) && !(here->n && node_next_letter(here->n, &letter)))
            return;
        note_attempt(w, number, &letter.m);
        sky_publish(&w->sky, number, &letter);
    }
}

static void hand_over(world *w, const parcel *p)
{
    const place *here = &w->all[p->to];
    hfsad_error err;
    hfsad_status failed = HFSAD_OK;
    node_refusal why = NODE_REFUSED_OLD;
    bool news = false;
    if (p->to == 0 && w->root_dead)
        return;
    w->events++;
    inquiry_tick(here->at.q, w->sky.now);
    if (here->n)
        node_tick(here->n, w->sky.now);
    if (p->m.phase == NODE_PHASE_SETUP)
        news = inquiry_handle(here->at.q, p->from, &p->m, &why, &failed, &err);
    else if (here->n)
        news = node_handle(here->n, p->from, &p->m, &why);
    ok(failed, &err);
    if (!news && why != NODE_REFUSED_OLD)
        fail_msg("%s, weather %" PRIu64 ": node %zu refuses what its neighbour has said, %s: kind %d, phase %" PRIx64
                 ", round %" PRIu64,
                 w->e->p->name, w->seed, p->to, node_refusal_text(why), (int)p->m.kind, p->m.phase, p->m.round);
}

static bool goes_on(const world *w)
{
    uint64_t begun;
    if (w->stops)
        return !node_wants_polish(w->all[0].n, &begun);
    for (size_t i = 0; i < w->e->nodes; i++)
        if (!w->all[i].n || node_ended(w->all[i].n) == NODE_RUNNING)
            return true;
    return false;
}

static uint64_t due_of(const place *here)
{
    const uint64_t trains = here->n ? node_due(here->n) : UINT64_MAX, asks = inquiry_due(here->at.q);
    return trains < asks ? trains : asks;
}

#define ROOT_DEAD ((hfsad_status)1000)

/* A turn for the root's script. */
static hfsad_status step(void *context, hfsad_error *err)
{
    enum { STEPS = 1000000 };
    world *w = context;
    (void)err;
    if (++w->steps > STEPS)
        fail_msg("%s, weather %" PRIu64 ": it does not end", w->e->p->name, w->seed);
    uint64_t next = sky_next(&w->sky);
    for (size_t i = 0; i < w->e->nodes; i++) {
        const place *here = &w->all[i];
        const bool waits = (here->n && node_changed(here->n)) || inquiry_speaks(here->at.q);
        const uint64_t due = waits ? w->sky.now : due_of(here);
        next = due < next ? due : next;
    }
    if (next == UINT64_MAX)
        fail_msg("%s, weather %" PRIu64 ": nobody has anything to say any more", w->e->p->name, w->seed);
    w->sky.now = next > w->sky.now ? next : w->sky.now;
    parcel p;
    for (size_t i = 0; sky_take(&w->sky, &i, &p);) {
        hand_over(w, &p);
        free(p.m.values);
        if (chance(&w->sky, 0.7)) /* otherwise it goes on to the next before it commits */
            commit_and_send(w, p.to);
    }
    for (size_t i = 0; i < w->e->nodes; i++) {
        inquiry_tick(w->all[i].at.q, w->sky.now);
        if (w->all[i].n)
            node_tick(w->all[i].n, w->sky.now);
        commit_and_send(w, i);
    }
    return w->root_dead ? ROOT_DEAD : HFSAD_OK;
}

/* As federation_play, in one life of the root. */
static hfsad_status play_root(world *w, hfsad_error *err)
{
    const inquiry_turns turns = {w, step};
    const place *root = &w->all[0];
    hfsad_status status = HFSAD_OK;
    if (!root->n && !(status = federation_set_up(root->at.f, root->at.q, &turns, err)))
        take_result(w, 0);
    while (!status && goes_on(w)) {
        if (!w->stops)
            status = federation_polish(root->at.f, root->at.q, &turns, root->n, NULL, err);
        if (!status)
            status = step(w, err);
    }
    return status;
}

static void play(world *w)
{
    hfsad_error err;
    hfsad_status status;
    for (size_t i = 0; i < w->e->nodes; i++)
        commit_and_send(w, i);
    while ((status = play_root(w, &err)) == ROOT_DEAD) {
        w->root_dead = false;
        begin_again(w, 0);
    }
    ok(status, &err);
}

typedef enum { NOTHING, SET_UP, TRAINED } standing;

static world *world_create(const expected *e, weather outside, uint64_t seed, standing done)
{
    world *w = alloc_zero(1, sizeof *w);
    assert_non_null(w);
    w->e = e;
    w->seed = seed;
    sky_open(&w->sky, e->d, outside, seed);
    for (size_t i = 0; i < e->nodes; i++) {
        w->all[i].has_result = done > NOTHING;
        if (done == TRAINED)
            blob_append(&w->all[i].state, e->trained[i].bytes, e->trained[i].size);
        begin(w, i);
    }
    return w;
}

static void world_free(world *w)
{
    for (size_t i = 0; i < w->e->nodes; i++) {
        end(&w->all[i]);
        free(w->all[i].state.bytes);
    }
    sky_close(&w->sky);
    free(w);
}

/* ---- the comparison ---- */

static size_t coordinates(const expected *e)
{
    return owners_coordinates(e->run->plan, e->run->data);
}

static void compare_world(const world *w)
{
    const expected *e = w->e;
    const size_t M = e->run->data->M;
    const double *numbers = node_get_polish(w->all[0].n), *models = node_models_below(w->all[0].n);
    size_t order[NODES_MOST];
    if (!numbers || federation_polish_failure(numbers) || !models)
        fail_msg("%s, weather %" PRIu64 ": there is no polish: %s", e->p->name, w->seed,
                 numbers ? federation_polish_failure(numbers) : "none");
    const polish_result found = federation_polish_result(numbers);
    if (!found.finished || !same(&found.after, &e->run->polish.objective_after, 1) ||
        found.exchanges != e->run->polish.exchanges ||
        !same(numbers + FEDERATION_POLISH_HEAD, e->run->owned ? e->run->owned : e->run->polished, coordinates(e)))
        fail_msg("%s, weather %" PRIu64 ": polished to %.17g in %" PRIu64 " exchanges, not to %.17g in %" PRIu64,
                 e->p->name, w->seed, found.after, found.exchanges, e->run->polish.objective_after,
                 e->run->polish.exchanges);
    if (e->numbers && !same(numbers, e->numbers, e->n_numbers))
        fail_msg("%s, weather %" PRIu64 ": the polish is not the undisturbed one's", e->p->name, w->seed);
    tree_order(e->d, order);
    for (size_t i = 0; i < e->nodes; i++) {
        double own[MODEL_MOST];
        node_model(w->all[order[i]].n, own);
        const double *wanted = e->models + order[i] * M;
        if (!same(own, wanted, M) || (i && !same(models + (i - 1) * M, wanted, M)))
            fail_msg("%s, weather %" PRIu64 ": the model of node %zu differs: %.17g, not %.17g", e->p->name, w->seed,
                     order[i], own[0], wanted[0]);
    }
}

/* ---- set-up, training and polish without any weather ---- */

typedef struct {
    const expected *e;
    process all[NODES_MOST];
} calm_world;

/* Every letter comes at once. */
static hfsad_status pass_letters(void *context, hfsad_error *err)
{
    const calm_world *w = context;
    const dataset *d = w->e->d;
    node_letter letter;
    for (size_t i = 0; i < w->e->nodes; i++)
        while (inquiry_next_letter(w->all[i].q, &letter)) {
            hfsad_status failed = HFSAD_OK;
            if (letter.to_parent)
                (void)inquiry_handle(w->all[tree_parent(d, i)].q, tree_slot(d, i), &letter.m, NULL, &failed, err);
            for (size_t c = 0; !letter.to_parent && c < tree_children(d, i); c++)
                (void)inquiry_handle(w->all[tree_child(d, i, c)].q, NODE_PARENT, &letter.m, NULL, &failed, err);
            ok(failed, err);
        }
    return HFSAD_OK;
}

static void set_up(expected *e)
{
    calm_world w = {.e = e};
    const inquiry_turns turns = {&w, pass_letters};
    hfsad_error err;
    for (size_t i = 0; i < e->nodes; i++)
        process_begin(&w.all[i], e->spec, e->d, i, i < e->d->n_inner ? NULL : data_of(e->p, true));
    ok(federation_set_up(w.all[0].f, w.all[0].q, &turns, &err), &err);
    const double *result = inquiry_result(w.all[0].q, &e->n_result);
    e->result = alloc_zero(e->n_result, sizeof *result);
    memcpy(e->result, result, e->n_result * sizeof *result);
    for (size_t i = 0; i < e->nodes; i++)
        process_end(&w.all[i]);
}

static expected prepare_polish(const problem *p)
{
    expected e = {.p = p};
    hfsad_error err;
    char text[1000];
    snprintf(text, sizeof text, "data: x\n%s", p->spec);
    ok(spec_load_text(&e.spec, "spec.yaml", text, strlen(text), &err), &err);
    ok(run_create_on(&e.run, e.spec, data_of(p, p->intercept != 0), 1, &err), &err);
    e.d = data_of(p, true);
    e.nodes = e.d->n_inner + e.d->n_leaves;
    assert_true(e.nodes <= NODES_MOST);
    simulate_run(&e);
    set_up(&e);
    world *w = world_create(&e, (weather){0}, 0, SET_UP);
    w->stops = true;
    play(w);
    for (size_t i = 0; i < e.nodes; i++)
        blob_append(&e.trained[i], w->all[i].state.bytes, w->all[i].state.size);
    w->stops = false;
    play(w);
    compare_world(w);
    e.n_numbers = FEDERATION_POLISH_HEAD + coordinates(&e);
    e.numbers = alloc_zero(e.n_numbers, sizeof *e.numbers);
    memcpy(e.numbers, node_get_polish(w->all[0].n), e.n_numbers * sizeof *e.numbers);
    print_message("%s: %zu nodes, %" PRIu64 " exchanges, %" PRIu64 " messages\n", p->name, e.nodes,
                  e.run->polish.exchanges, w->events);
    assert_int_equal(w->attempts, 1);
    world_free(w);
    return e;
}

static void forget(expected *e)
{
    for (size_t i = 0; i < e->nodes; i++)
        free(e->trained[i].bytes);
    free(e->models);
    free(e->numbers);
    free(e->result);
    hfsad_run_free(e->run);
    hfsad_spec_free(e->spec);
    dataset_free(e->d);
}

static void test_chaos(void **state)
{
    static const weather foul[] = {
        {.lose = 0.1, .twice = 0.2, .late = 0.02},
        {.crash = 0.002},
        {.lose = 0.05, .twice = 0.3, .late = 0.05, .crash = 0.001},
        {.lose = 0.2, .twice = 0.1, .late = 0.1, .crash = 0.003},
    };
    enum { RUNS = 60 };
    (void)state;
    uint64_t crashes = 0, attempts = 0, events = 0;
    for (size_t i = 0; i < PROBLEMS_HERE; i++) {
        expected e = prepare_polish(&polished[i]);
        const size_t runs = polished[i].M > 100 ? RUNS / 6 : RUNS; /* a metric of many columns takes its time */
        for (size_t k = 0; k < runs * chaos_times(); k++) {
            world *w = world_create(&e, foul[k % 4], 100 + k, k % 5 > 1 ? TRAINED : k % 5 ? SET_UP : NOTHING);
            w->kills = (unsigned)below(&w->sky.r, 8);
            w->root_kills = (unsigned)below(&w->sky.r, 3);
            play(w);
            compare_world(w);
            if (w->crashes == 0 && w->attempts != 1) /* an old question must not make a client forget */
                fail_msg("%s, weather %" PRIu64 ": %" PRIu64 " attempts, and nobody was killed", e.p->name, w->seed,
                         w->attempts);
            crashes += w->crashes;
            attempts += w->attempts;
            events += w->events;
            world_free(w);
        }
        forget(&e);
    }
    print_message("%" PRIu64 " crashes, %" PRIu64 " attempts, %" PRIu64 " messages\n", crashes, attempts, events);
    assert_true(crashes > 300);
}

/* However often clients are killed the polish comes through, as long as it comes further now and then. */
static void test_many_attempts(void **state)
{
    static const double crash[] = {0.005, 0.01};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        expected e = prepare_polish(&polished[i]);
        world *w = world_create(&e, (weather){.crash = crash[i]}, i, TRAINED);
        w->kills = UINT_MAX;
        play(w);
        compare_world(w);
        print_message("%" PRIu64 " crashes, %" PRIu64 " attempts\n", w->crashes, w->attempts);
        assert_true(w->attempts > 100);
        world_free(w);
        forget(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chaos), cmocka_unit_test(test_many_attempts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
