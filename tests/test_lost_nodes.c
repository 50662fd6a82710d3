/*
 * Nodes of a federation in lock step lose their state and are readmitted, one below another and several at once, while
 * messages are lost and nodes crash. The simulator, given the readmissions as the cloud notes them, must make the same
 * rows and models, bit for bit.
 *
 * HFSAD_CHAOS=20 in the environment: twenty times the runs, with other seeds.
 */
#define _POSIX_C_SOURCE 200809L
#include "federation_world.h"

#include "data/nodes.h"
#include "run/anew.h"

enum { ORDERS = 24 };

/* The operator's request to readmit a node, as the cloud keeps it. */
typedef struct {
    size_t number;
    uint64_t life;
    bool noted;
} order;

typedef struct {
    order orders[ORDERS];
    size_t n_orders, n_noted;
    run_readmission noted[ORDERS]; /* the cloud's record, in its order */
    double often;                  /* chance that a node is lost, in a step of the world */
    bool elsewhere; /* a readmission that no replay repeats: in a stage before the run, or after the end */
} losses;

/* The child of a node on the way to another; SIZE_MAX: it is not below. */
static size_t step_towards(const dataset *d, size_t at, size_t number)
{
    for (size_t up = number; up != 0; up = tree_parent(d, up))
        if (tree_parent(d, up) == at)
            return up;
    return SIZE_MAX;
}

static char *path_of(const dataset *d, size_t number)
{
    char name[1024];
    nodes_name(d, number, name, sizeof name);
    return strdup(name);
}

/* The link begins anew at the parent; then its answer may be lost on the way to the cloud. */
static void begin_at(world *w, size_t parent, size_t slot, order *o)
{
    losses *l = w->context;
    if (node_child_life(w->node[parent], slot) < o->life) {
        if (!node_child_begin(w->node[parent], slot, o->life))
            return;
        l->elsewhere = l->elsewhere || node_decided(w->node[0]) != NODE_RUNNING; /* a model may be on its way already */
        if (chance(&w->sky, 0.1)) {                                              /* before the commit */
            restart(w, parent);
            return;
        }
        commit_now(w, parent);
    }
    if (chance(&w->sky, 0.3))
        return;
    const run_readmission done = node_child_readmission(w->node[parent], slot);
    l->noted[l->n_noted] = done;
    l->noted[l->n_noted++].path = path_of(w->d, o->number);
    l->elsewhere = l->elsewhere || done.where >= ANEW_EARLY;
    o->noted = true;
}

/* An order for a node above it is not done yet. */
static bool is_held(const world *w, const order *o)
{
    const losses *l = w->context;
    for (size_t i = 0; i < l->n_orders; i++)
        for (size_t up = tree_parent(w->d, o->number); up != 0; up = tree_parent(w->d, up))
            if (!l->orders[i].noted && l->orders[i].number == up)
                return true;
    return false;
}

/* An order goes down from the cloud as far as nodes live and know of their own lives. */
static void pass_order(world *w, order *o)
{
    size_t at = 0, child;
    if (is_held(w, o))
        return;
    while ((child = step_towards(w->d, at, o->number)) != o->number) {
        const size_t slot = tree_slot(w->d, child);
        if (is_lost(w, child) || (node_child_life(w->node[at], slot) > 0 && !node_child_is_admitted(w->node[at], slot)))
            return;
        at = child;
    }
    begin_at(w, at, tree_slot(w->d, child), o);
}

static void admit_one(world *w, size_t parent, size_t slot)
{
    double numbers[NODE_ADMISSION + 64];
    const size_t number = tree_child(w->d, parent, slot);
    if (node_child_life(w->node[parent], slot) == 0 || node_child_is_admitted(w->node[parent], slot) ||
        chance(&w->sky, 0.6))
        return;
    node_admission(w->node[parent], slot, numbers);
    assert_true(
        node_admit(w->node[number], numbers, node_admission_count(w->node[number]), node_begun(w->node[parent])));
    if (chance(&w->sky, 0.1)) { /* before the commit */
        restart(w, number);
        return;
    }
    w->lost[number] = false;
    commit_now(w, number);
    if (chance(&w->sky, 0.7))
        node_child_confirm(w->node[parent], slot, node_life(w->node[number]));
}

static void lose_one(world *w)
{
    losses *l = w->context;
    hfsad_error err;
    const size_t number = 1 + below(&w->sky.r, w->nodes - 1);
    const size_t parent = tree_parent(w->d, number), slot = tree_slot(w->d, number);
    const uint64_t K = w->t.p->edge_rounds;
    /* Lost before its parent knows of its life, it would begin that life a second time: its children name an old copy.
     */
    if (node_child_life(w->node[parent], slot) > 0 && !node_child_is_admitted(w->node[parent], slot) &&
        !is_lost(w, number))
        return;
    if (l->n_orders == ORDERS || node_last_row(w->node[0]) < 0 ||
        node_get_status(w->node[0]).round + 2 * K >= w->t.p->iterations * K)
        return;
    node_free(w->node[number]);
    ok(tree_node(&w->node[number], &w->t, number, &err), &err);
    node_tick(w->node[number], w->sky.now);
    w->committed[number].size = 0;
    w->lost[number] = true;
    l->orders[l->n_orders++] = (order){number, ++w->lives, false};
}

static void lose_and_readmit(world *w)
{
    losses *l = w->context;
    if (chance(&w->sky, l->often))
        lose_one(w);
    for (size_t i = 0; i < l->n_orders; i++)
        if (!l->orders[i].noted && chance(&w->sky, 0.2))
            pass_order(w, &l->orders[i]);
    for (size_t parent = 0; parent < w->d->n_inner; parent++)
        for (size_t c = 0; !is_lost(w, parent) && c < tree_children(w->d, parent); c++)
            admit_one(w, parent, c);
}

static void simulate_readmitted(outcome *o, const prepared *made, const losses *l)
{
    hfsad_error err;
    pool *threads;
    sim *s;
    const dataset *d = made->d;
    const plan *p = made->p;
    ok(pool_create(&threads, 1, &err), &err);
    ok(sim_create(&s, d, p, made->found, NULL, threads, &err), &err);
    ok(sim_take_anew(s, l->noted, l->n_noted, "record", &err), &err);
    *o = (outcome){.nodes = d->n_inner + d->n_leaves, .M = d->M};
    o->models = alloc_zero(o->nodes * o->M, sizeof *o->models);
    for (uint64_t t = 0; t <= p->iterations && !sim_converged(s); t++) {
        if (t)
            sim_iterate(s);
        if (plan_measures(p, t))
            sim_measure(s, &o->rows[o->n_rows++]);
    }
    sim_begin_anew(s, true);
    for (size_t i = 0; i < d->n_inner; i++)
        memcpy(o->models + i * o->M, sim_inner_model(s, i), o->M * sizeof(double));
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        sim_leaf_model(s, leaf, o->models + (d->n_inner + leaf) * o->M);
    sim_free(s);
    pool_free(threads);
}

/* Whether the simulator could repeat the losses. */
static bool run_losing(const problem *p, weather outside, uint64_t seed, double often, uint64_t *lives,
                       uint64_t *crashes)
{
    prepared made = prepare(p, seed);
    const tree t = tree_of(&made, p, 77, (node_patience){20, 1000});
    world *w = world_create(&t, outside, seed);
    losses l = {.often = often};
    w->lost = alloc_zero(w->nodes, sizeof *w->lost);
    w->context = &l;
    w->also = lose_and_readmit;
    play(w);
    const bool repeated = !l.elsewhere && l.n_noted == l.n_orders;
    if (repeated) {
        outcome again;
        simulate_readmitted(&again, &made, &l);
        compare(&again, made.d, w->rows, w->n_rows, w->node, node_models_below(w->node[0]), p->name, seed);
        free(again.models);
    }
    *lives += repeated ? l.n_noted : 0;
    *crashes += w->crashes;
    for (size_t i = 0; i < l.n_noted; i++)
        free(l.noted[i].path);
    free(w->lost);
    world_free(w);
    unprepare(&made);
    return repeated;
}

static void test_lost_nodes(void **state)
{
    static const weather foul[4] = {{.lose = 0.3, .twice = 0.2, .late = 0.1},
                                    {.crash = 0.02},
                                    {.lose = 0.2, .twice = 0.3, .late = 0.2, .crash = 0.01},
                                    {.late = 0.05}};
    (void)state;
    uint64_t lives = 0, crashes = 0;
    size_t repeated = 0, runs = 0;
    for (size_t i = 0; i < PROBLEMS; i++) {
        if (strstr(problems[i].name, "diverge"))
            continue;
        const size_t times = strstr(problems[i].name, "repairs") ? 1 : chaos_times(); /* not all seeds have repairs */
        for (uint64_t seed = 2100; seed < 2100 + 8 * times; seed++, runs++)
            repeated += run_losing(&problems[i], foul[seed % 4], seed, seed % 2 ? 0.002 : 0.02, &lives, &crashes);
    }
    print_message("%zu of %zu runs were repeated, with %" PRIu64 " lost nodes; %" PRIu64 " crashes\n", repeated, runs,
                  lives, crashes);
    assert_true(lives > 100 && crashes > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lost_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
