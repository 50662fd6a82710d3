/*
 * The nodes of a federation in one process, without sockets: messages are lost, doubled, delayed and overtake each
 * other, nodes are killed at any instant and begin again from what they had committed, the broker forgets what it
 * retained, and strangers send nonsense. What comes out must be the simulator's, bit for bit.
 */
#include "tools.h"

#include "model/features.h"
#include "net/tree.h"

#include <inttypes.h>

/* ---- what is trained ---- */

typedef struct {
    const char *name;
    size_t edges;
    const char *const *paths;
    const size_t *clients;
    size_t M, rows; /* rows: of a client, at most; 1: the layout in blocks */
    int intercept;
    bool labels;
    const char *spec;
} problem;

static const char *const flat[] = {""}, *const two[] = {"a", "b", "c"}, *const deep[] = {"r/a", "r/b", "s/c", "d", ""};
static const size_t flat_clients[] = {11}, two_clients[] = {9, 3, 1}, deep_clients[] = {3, 2, 9, 4, 2};

static const problem problems[] = {
    {"flat", 1, flat, flat_clients, 5, 1, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\nrun: {iterations: 6, edge_rounds: 3}\n"},
    {"phase retrieval", 3, two, two_clients, 7, 1, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\npreset: paper\nrun: {iterations: 5, edge_rounds: 4}\n"},
    {"absences", 3, two, two_clients, 6, 1, 0, false,
     "loss: {kind: absolute}\nrun: {iterations: 12, edge_rounds: 2, trace_every: 3, participation: {client: 0.3, edge: "
     "0.6, at_least_every: 2}}\n"},
    {"deep", 5, deep, deep_clients, 9, 1, 0, false,
     "loss: {kind: phase-retrieval}\nrun: {iterations: 6, edge_rounds: 2, local_steps: 2, trace_every: 4}\n"},
    {"deep absences", 5, deep, deep_clients, 4, 1, 0, false,
     "loss: {kind: quantile, tau: 0.3}\nrun: {iterations: 10, edge_rounds: 3, trace_every: 2, participation: {client: "
     "0.4, edge: 0.5, at_least_every: 3}}\n"},
    {"rows", 3, two, two_clients, 6, 12, 0, false,
     "loss: {kind: quantile, tau: 0.7}\nrun: {iterations: 6, edge_rounds: 2}\n"},
    {"intercept of clients", 5, deep, deep_clients, 5, 9, INTERCEPT_CLIENT, false,
     "loss: {kind: huber}\nfeatures: {intercept: client}\nrun: {iterations: 4, edge_rounds: 2, participation: {client: "
     "0.5}}\n"},
    {"intercept of edges", 5, deep, deep_clients, 5, 9, INTERCEPT_EDGE, true,
     "loss: {kind: logistic}\nfeatures: {intercept: edge}\nrun: {iterations: 4, edge_rounds: 2}\n"},
    {"one intercept", 3, two, two_clients, 5, 9, INTERCEPT_GLOBAL, false,
     "loss: {kind: squared, scale: mean}\nfeatures: {intercept: global}\nrun: {iterations: 6, edge_rounds: 3, stop: "
     "{relative: 0.3}}\noutput: {clients: false}\n"},
    {"overrides", 3, two, two_clients, 6, 1, 0, true,
     "loss: {kind: logistic}\nlink: {client: {penalty: mcp}}\nrun: {iterations: 5, edge_rounds: 3}\n"
     "overrides:\n  - {node: a/client2, loss: {kind: hinge}, local_steps: 3}\n"
     "  - {node: b, prior: {penalty: mcp, lambda: 0.2, gamma: 3}}\n  - {node: 'c/*', participation: 0.4}\n"},
    {"linearized", 3, two, two_clients, 5, 6, 0, false,
     "loss: {kind: phase-retrieval, solver: linearized}\nrun: {iterations: 5, edge_rounds: 2}\n"
     "overrides:\n  - {node: 'a/*', loss: {solver: exact}}\n"},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static dataset *make_data(const problem *p, rng *r)
{
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    double x[32];
    ok(dataset_builder_create(&b, p->M, &err), &err);
    for (size_t e = 0, number = 0; e < p->edges; e++)
        for (size_t c = 0; c < p->clients[e]; c++) {
            char name[32];
            snprintf(name, sizeof name, "client%zu", ++number);
            for (size_t row = p->rows == 1 ? 1 : 2 + below(r, p->rows - 1); row > 0; row--) {
                double s = 0.5 * (p->intercept != 0);
                for (size_t m = 0; m < p->M; m++) {
                    x[m] = below(r, 5) ? rng_next_normal(r) : 0;
                    s += m % 3 ? 0 : x[m];
                }
                const double y = p->labels ? (s > 0 ? 1 : -1) : s * s + 0.1 * rng_next_exponential(r);
                ok(dataset_builder_add(b, p->paths[e], name, y, x, NULL, 0, &err), &err);
            }
        }
    if (p->intercept)
        dataset_builder_use_rows(b);
    ok(dataset_builder_finish(b, &d, &err), &err);
    if (p->intercept)
        ok(features_prepare(d, true, true, "data", &err), &err);
    return d;
}

/* ---- what the simulator makes of it ---- */

typedef struct {
    size_t nodes, M, n_rows;
    double *models; /* as the run has them */
    hfsad_figures rows[64];
} outcome;

static void simulate(outcome *o, const dataset *d, const plan *p, const double *start)
{
    hfsad_error err;
    pool *threads;
    sim *s;
    ok(pool_create(&threads, 1, &err), &err);
    ok(sim_create(&s, d, p, start, NULL, threads, &err), &err);
    *o = (outcome){.nodes = d->n_inner + d->n_leaves, .M = d->M};
    o->models = alloc_zero(o->nodes * o->M, sizeof *o->models);
    for (uint64_t t = 0; t <= p->iterations && !sim_converged(s); t++) {
        if (t)
            sim_iterate(s);
        if (plan_measures(p, t))
            sim_measure(s, &o->rows[o->n_rows++]);
    }
    for (size_t i = 0; i < d->n_inner; i++)
        memcpy(o->models + i * o->M, sim_inner_model(s, i), o->M * sizeof(double));
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        sim_leaf_model(s, leaf, o->models + (d->n_inner + leaf) * o->M);
    sim_free(s);
    pool_free(threads);
}

/* ---- the world ---- */

enum { FLYING = 4096, REMEMBERED = 64 };

typedef struct {
    size_t to, from; /* node; NODE_PARENT or slot */
    uint64_t at;
    uint64_t order;
    message m;
} parcel;

typedef struct {
    unsigned char *bytes;
    size_t size, room;
} blob;

typedef struct {
    double lose, twice, late, crash, hostile;
} weather;

typedef struct {
    const dataset *d;
    tree t;
    weather weather;
    rng r;
    size_t nodes;
    node **node;
    blob *committed;
    message *retained; /* of every node and kind */
    parcel flying[FLYING];
    size_t n_flying;
    message remembered[REMEMBERED]; /* old ones, to be played again */
    size_t n_remembered;
    uint64_t now, order, crashes, sent;
    uint64_t hostile[NODE_REFUSALS]; /* messages that had to be refused for that reason, or another fault of theirs */
    size_t n_rows;                   /* committed with the root's state */
    hfsad_figures rows[64];
} world;

static bool chance(world *w, double p)
{
    return rng_next_uniform(&w->r) < p;
}

static message copy_of(const message *m)
{
    message copy = *m;
    copy.values = NULL;
    if (m->count) {
        copy.values = malloc(m->count * sizeof(double));
        assert_non_null(copy.values);
        memcpy(copy.values, m->values, m->count * sizeof(double));
    }
    return copy;
}

static void append(void *to, const void *bytes, size_t count)
{
    blob *b = to;
    if (b->size + count > b->room) {
        b->room = 2 * (b->size + count);
        b->bytes = realloc(b->bytes, b->room);
        assert_non_null(b->bytes);
    }
    if (count)
        memcpy(b->bytes + b->size, bytes, count);
    b->size += count;
}

static void throw_at(world *w, size_t to, size_t from, const message *m)
{
    if (w->n_flying == FLYING) /* a queue that is full loses the new one */
        return;
    const uint64_t delay = chance(w, w->weather.late) ? below(&w->r, 3000) : below(&w->r, 10);
    w->flying[w->n_flying++] = (parcel){to, from, w->now + delay, w->order++, copy_of(m)};
}

static void post(world *w, size_t to, size_t from, const message *m)
{
    w->sent++;
    if (!chance(w, w->weather.lose))
        throw_at(w, to, from, m);
    if (chance(w, w->weather.twice))
        throw_at(w, to, from, m);
    if (chance(w, 0.1)) {
        message *old = &w->remembered[w->n_remembered % REMEMBERED];
        if (w->n_remembered++ >= REMEMBERED)
            free(old->values);
        *old = copy_of(m);
    }
}

static void publish(world *w, size_t number, const node_letter *letter)
{
    message *kept = &w->retained[number * MESSAGE_KINDS + letter->m.kind];
    free(kept->values);
    *kept = copy_of(&letter->m);
    if (letter->to_parent) {
        post(w, tree_parent(w->d, number), tree_slot(w->d, number), &letter->m);
        return;
    }
    for (size_t c = 0; c < tree_children(w->d, number); c++)
        post(w, tree_child(w->d, number, c), NODE_PARENT, &letter->m);
}

static void get_retained(world *w, size_t to, size_t from, size_t sender)
{
    for (size_t kind = 0; kind < MESSAGE_KINDS; kind++) {
        const message *m = &w->retained[sender * MESSAGE_KINDS + kind];
        if (m->run && chance(w, 0.5)) /* or the broker has forgotten it */
            throw_at(w, to, from, m);
    }
}

static void restart(world *w, size_t number)
{
    hfsad_error err;
    blob *state = &w->committed[number];
    node_free(w->node[number]);
    ok(tree_node(&w->node[number], &w->t, number, &err), &err);
    node_tick(w->node[number], w->now);
    if (state->size) {
        word_reader reader = {state->bytes, state->size / WORD_BYTES, false};
        assert_true(node_unpack(w->node[number], &reader));
    }
    if (number)
        get_retained(w, number, NODE_PARENT, tree_parent(w->d, number));
    for (size_t c = 0; c < tree_children(w->d, number); c++)
        get_retained(w, number, c, tree_child(w->d, number, c));
    w->crashes++;
}

/* Commits what has changed, then sends; killed before, between or after. */
static void commit_and_send(world *w, size_t number)
{
    node *n = w->node[number];
    node_letter letter;
    hfsad_figures row;
    const bool has_row = node_take_figures(n, &row);
    if (chance(w, w->weather.crash)) {
        restart(w, number);
        return;
    }
    if (node_changed(n)) {
        word_writer writer = {.put = append, .to = &w->committed[number]};
        w->committed[number].size = 0;
        node_pack(n, &writer);
        if (has_row) {
            assert_true(w->n_rows < 64);
            w->rows[w->n_rows++] = row;
        }
    } else {
        assert_false(has_row);
    }
    do {
        if (chance(w, w->weather.crash)) {
            restart(w, number);
            return;
        }
        if (!node_next_letter(n, &letter))
            return;
        publish(w, number, &letter);
    } while (true);
}

/* ---- strangers ---- */

static message nonsense(world *w, double *values, size_t to, node_refusal *why)
{
    const size_t M = w->d->M;
    message m = {.kind = (message_kind)below(&w->r, MESSAGE_KINDS), .run = w->t.run, .phase = NODE_PHASE_TRAIN};
    const uint64_t round = node_get_status(w->node[to]).round;
    m.round = round + below(&w->r, 3);
    m.k = below(&w->r, 50);
    m.sigma = 1;
    m.count = below(&w->r, 2) ? M : below(&w->r, 3 * M);
    m.values = values;
    for (size_t i = 0; i < m.count; i++)
        values[i] = 1e3;
    switch (below(&w->r, 5)) {
    case 0:
        m.run ^= (uint64_t)1 << below(&w->r, 64);
        *why = NODE_REFUSED_RUN;
        break;
    case 1:
        m.count = 200 + below(&w->r, 50); /* neither a model nor a tally */
        memset(values, 0, m.count * sizeof *values);
        *why = NODE_REFUSED_SIZE;
        break;
    case 2:
        m.count += !m.count;
        values[below(&w->r, m.count)] = below(&w->r, 2) ? (double)NAN : (double)INFINITY;
        *why = NODE_REFUSED_VALUE;
        break;
    case 3:
        m.round += w->t.p->edge_rounds * w->t.p->trace_every * (1 + below(&w->r, 1000000)) + 2;
        *why = NODE_REFUSED_FUTURE;
        break;
    default:
        m.kind = MESSAGE_STATUS;
        *why = NODE_REFUSED_KIND;
    }
    return m;
}

/* Something that no node may believe; an acknowledgement can at most make a sender repeat less, which only delays. */
static void attack(world *w)
{
    double values[256];
    const size_t to = below(&w->r, w->nodes), children = tree_children(w->d, to);
    size_t from = children && below(&w->r, 2) ? below(&w->r, children + 2) : NODE_PARENT;
    node_refusal meant, why;
    if (w->n_remembered && below(&w->r, 2)) { /* an old one, to anybody, from anybody */
        const size_t held = w->n_remembered < REMEMBERED ? w->n_remembered : REMEMBERED;
        const message *old = &w->remembered[below(&w->r, held)];
        if (from == NODE_PARENT ? old->kind == MESSAGE_UP : old->kind == MESSAGE_DOWN)
            assert_false(node_handle(w->node[to], from, old, NULL));
        return;
    }
    const message m = nonsense(w, values, to, &meant);
    if (m.kind == MESSAGE_ACK)
        return;
    if (node_handle(w->node[to], from, &m, &why))
        fail_msg("a message was believed that is %s: kind %d, round %" PRIu64
                 ", count %zu, to node %zu at round %" PRIu64,
                 node_refusal_text(meant), (int)m.kind, m.round, m.count, to, node_get_status(w->node[to]).round);
    w->hostile[why]++;
}

/* ---- time goes by ---- */

static uint64_t next_event(const world *w)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < w->n_flying; i++)
        next = w->flying[i].at < next ? w->flying[i].at : next;
    for (size_t i = 0; i < w->nodes; i++) {
        const uint64_t due = node_due(w->node[i]);
        next = due < next ? due : next;
    }
    return next;
}

static void deliver(world *w, size_t i)
{
    const parcel p = w->flying[i];
    w->flying[i] = w->flying[--w->n_flying];
    node_tick(w->node[p.to], w->now);
    (void)node_handle(w->node[p.to], p.from, &p.m, NULL);
    free(p.m.values);
    if (chance(w, 0.8)) /* otherwise it goes on to the next before it commits */
        commit_and_send(w, p.to);
}

static bool all_ended(const world *w)
{
    for (size_t i = 0; i < w->nodes; i++)
        if (node_ended(w->node[i]) == NODE_RUNNING)
            return false;
    return true;
}

static void play(world *w)
{
    enum { STEPS = 2000000 };
    for (size_t i = 0; i < w->nodes; i++)
        commit_and_send(w, i);
    for (size_t step = 0; step < STEPS && !all_ended(w); step++) {
        const uint64_t next = next_event(w);
        if (next == UINT64_MAX)
            fail_msg("nobody has anything to say any more");
        w->now = next > w->now ? next : w->now;
        for (size_t i = 0; i < w->n_flying;)
            if (w->flying[i].at <= w->now)
                deliver(w, i);
            else
                i++;
        for (size_t i = 0; i < w->nodes; i++)
            if (node_due(w->node[i]) <= w->now || node_changed(w->node[i])) {
                node_tick(w->node[i], w->now);
                commit_and_send(w, i);
            }
        if (chance(w, w->weather.hostile))
            attack(w);
    }
    if (!all_ended(w))
        for (size_t i = 0; i < w->nodes; i++) {
            const node_status s = node_get_status(w->node[i]);
            print_message("node %zu: round %" PRIu64 " k %" PRIu64 " ended %d due %" PRIu64 "\n", i, s.round, s.k,
                          (int)node_ended(w->node[i]), node_due(w->node[i]));
        }
    assert_true(all_ended(w));
}

static world *world_create(const dataset *d, const plan *p, const double *start, int intercept, weather outside,
                           uint64_t seed)
{
    hfsad_error err;
    world *w = alloc_zero(1, sizeof *w);
    w->d = d;
    w->t = (tree){d, p, start, intercept, 77, {20, 1000}};
    w->weather = outside;
    w->r = (rng){rng_key(seed, rng_stream("weather")), 0};
    w->nodes = d->n_inner + d->n_leaves;
    w->node = alloc_zero(w->nodes, sizeof(node *));
    w->committed = alloc_zero(w->nodes, sizeof *w->committed);
    w->retained = alloc_zero(w->nodes * MESSAGE_KINDS, sizeof *w->retained);
    for (size_t i = 0; i < w->nodes; i++)
        ok(tree_node(&w->node[i], &w->t, i, &err), &err);
    return w;
}

static void world_free(world *w)
{
    for (size_t i = 0; i < w->nodes; i++) {
        node_free(w->node[i]);
        free(w->committed[i].bytes);
    }
    for (size_t i = 0; i < w->nodes * MESSAGE_KINDS; i++)
        free(w->retained[i].values);
    for (size_t i = 0; i < w->n_flying; i++)
        free(w->flying[i].m.values);
    for (size_t i = 0; i < REMEMBERED && i < w->n_remembered; i++)
        free(w->remembered[i].values);
    free(w->node);
    free(w->committed);
    free(w->retained);
    free(w);
}

/* ---- the comparison ---- */

static bool same(const double *a, const double *b, size_t count)
{
    return memcmp(a, b, count * sizeof *a) == 0;
}

static bool same_row(const hfsad_figures *a, const hfsad_figures *b)
{
    const double mine[] = {a->objective,     a->consensus_objective, a->primal_residual,
                           a->dual_residual, a->consensus_gap,       a->smoothing_gap};
    const double its[] = {b->objective,     b->consensus_objective, b->primal_residual,
                          b->dual_residual, b->consensus_gap,       b->smoothing_gap};
    return same(mine, its, sizeof mine / sizeof *mine) && a->iteration == b->iteration && a->bytes_up == b->bytes_up &&
           a->bytes_down == b->bytes_down && a->tiers == b->tiers && same(a->primal_tier, b->primal_tier, a->tiers) &&
           same(a->dual_tier, b->dual_tier, a->tiers);
}

static void compare(const world *w, const outcome *o, const char *name, uint64_t seed)
{
    size_t order[128];
    const double *below_root = node_models_below(w->node[0]);
    if (w->n_rows != o->n_rows)
        fail_msg("%s, seed %" PRIu64 ": %zu rows of the trace, not %zu", name, seed, w->n_rows, o->n_rows);
    for (size_t i = 0; i < o->n_rows; i++)
        if (!same_row(&w->rows[i], &o->rows[i])) {
            for (int t = 0; t < 3; t++)
                print_message("tier %d: %.17g %.17g %.17g %.17g\n", t, w->rows[i].primal_tier[t],
                              o->rows[i].primal_tier[t], w->rows[i].dual_tier[t], o->rows[i].dual_tier[t]);
            fail_msg("%s, seed %" PRIu64
                     ": row %zu differs: objective %.17g %.17g (%.17g %.17g), residuals %.17g %.17g, "
                     "%.17g %.17g, gaps %.17g %.17g, %.17g %.17g, bytes %" PRIu64 " %" PRIu64 ", %" PRIu64 " %" PRIu64,
                     name, seed, i, w->rows[i].objective, o->rows[i].objective, w->rows[i].consensus_objective,
                     o->rows[i].consensus_objective, w->rows[i].primal_residual, o->rows[i].primal_residual,
                     w->rows[i].dual_residual, o->rows[i].dual_residual, w->rows[i].consensus_gap,
                     o->rows[i].consensus_gap, w->rows[i].smoothing_gap, o->rows[i].smoothing_gap, w->rows[i].bytes_up,
                     o->rows[i].bytes_up, w->rows[i].bytes_down, o->rows[i].bytes_down);
        }
    assert_non_null(below_root);
    assert_true(w->nodes <= 128);
    tree_order(w->d, order);
    for (size_t i = 0; i < w->nodes; i++) {
        double own[64];
        node_model(w->node[order[i]], own);
        const double *wanted = o->models + order[i] * o->M;
        if (!same(own, wanted, o->M) || (i && !same(below_root + (i - 1) * o->M, wanted, o->M)))
            fail_msg("%s, seed %" PRIu64 ": the model of node %zu differs: %.17g %.17g", name, seed, order[i], own[0],
                     wanted[0]);
    }
}

typedef struct {
    uint64_t crashes, sent, hostile[NODE_REFUSALS];
} totals;

static void run_problem(const problem *p, const weather *weathers, size_t runs, uint64_t seed, totals *sum)
{
    rng r = {rng_key(seed, rng_stream(p->name)), 0};
    hfsad_error err;
    char text[1000];
    hfsad_spec *spec;
    plan *made;
    outcome expected;
    dataset *d = make_data(p, &r);
    double *start = alloc_zero(d->M, sizeof *start);
    snprintf(text, sizeof text, "data: x\n%s", p->spec);
    ok(spec_load_text(&spec, "spec.yaml", text, strlen(text), &err), &err);
    ok(plan_create(&made, spec, d, &err), &err);
    for (size_t m = 0; m < d->M; m++)
        start[m] = rng_next_normal(&r);
    simulate(&expected, d, made, start);
    for (size_t i = 0; i < runs; i++) {
        world *w = world_create(d, made, start, p->intercept, weathers[i % 4], seed + i);
        play(w);
        compare(w, &expected, p->name, seed + i);
        sum->crashes += w->crashes;
        sum->sent += w->sent;
        for (size_t k = 0; k < NODE_REFUSALS; k++)
            sum->hostile[k] += w->hostile[k];
        world_free(w);
    }
    free(expected.models);
    free(start);
    plan_free(made);
    hfsad_spec_free(spec);
    dataset_free(d);
}

static void test_fair_weather(void **state)
{
    static const weather fair[4];
    (void)state;
    totals sum = {0};
    for (size_t i = 0; i < PROBLEMS; i++)
        run_problem(&problems[i], fair, 1, 1, &sum);
    assert_true(sum.crashes == 0);
}

static void test_chaos(void **state)
{
    static const weather foul[4] = {
        {.lose = 0.3, .twice = 0.2, .late = 0.1},
        {.crash = 0.02},
        {.lose = 0.2, .twice = 0.3, .late = 0.2, .crash = 0.01, .hostile = 0.5},
        {.lose = 0.5, .twice = 0.1, .late = 0.5, .crash = 0.03, .hostile = 0.1},
    };
    (void)state;
    totals sum = {0};
    for (size_t i = 0; i < PROBLEMS; i++)
        run_problem(&problems[i], foul, 12, 100, &sum);
    print_message("%" PRIu64 " crashes, %" PRIu64 " messages\n", sum.crashes, sum.sent);
    assert_true(sum.crashes > 2000);
    for (size_t k = 0; k < NODE_REFUSALS; k++)
        assert_true(sum.hostile[k] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fair_weather),
        cmocka_unit_test(test_chaos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
