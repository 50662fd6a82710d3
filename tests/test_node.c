/* Single nodes of a federation: what must not be lost between one message and the next, and where memory is short. */
#include "allocations.h"
#include "federation.h"

enum { NODES_MOST = 64 };

static const problem *problem_named(const char *name)
{
    for (size_t i = 0; i < PROBLEMS; i++)
        if (!strcmp(problems[i].name, name))
            return &problems[i];
    fail_msg("there is no problem \"%s\"", name);
    return NULL;
}

static bool next_of_phase(node *n, uint64_t phase)
{
    node_letter letter;
    bool found = false;
    while (node_next_letter(n, &letter))
        found = found || letter.m.phase == phase;
    return found;
}

/* A repair is answered, also where the question of an older one comes before the answer is out. */
static void test_late_repair(void **state)
{
    (void)state;
    const problem *p = problem_named("repairs");
    prepared made = prepare(p, 1);
    const tree t = tree_of(&made, p, 77, (node_patience){20, 1000});
    hfsad_error err;
    node *n;
    ok(tree_node(&n, &t, made.d->n_inner, &err), &err);
    message ask[3];
    for (uint64_t epoch = 1; epoch < 3; epoch++)
        ask[epoch] = (message){.kind = MESSAGE_ASK,
                               .run = 77,
                               .phase = NODE_PHASE_ANEW + (epoch << NODE_PHASE_BITS),
                               .k = 1,
                               .count = made.d->M,
                               .values = made.start};
    assert_true(node_handle(n, NODE_PARENT, &ask[1], NULL));
    assert_true(next_of_phase(n, ask[1].phase));
    assert_true(node_handle(n, NODE_PARENT, &ask[2], NULL));
    assert_false(node_handle(n, NODE_PARENT, &ask[1], NULL));
    assert_true(next_of_phase(n, ask[2].phase));
    node_free(n);
    unprepare(&made);
}

/* ---- a run in which every message arrives ---- */

typedef struct {
    const dataset *d;
    size_t nodes;
    node *node[NODES_MOST];
    uint64_t now;
    size_t starved; /* no memory for the models when it is first asked for them; 0: nobody */
} talk;

static void hand_over(talk *w, size_t to, size_t from, const message *m)
{
    const bool starves = to == w->starved && m->kind == MESSAGE_ASK && m->phase == NODE_PHASE_FINAL;
    if (starves) {
        w->starved = 0;
        allocations_left = 0;
    }
    (void)node_handle(w->node[to], from, m, NULL);
    allocations_left = SIZE_MAX;
}

static bool say(talk *w, size_t number)
{
    node_letter letter;
    hfsad_figures row;
    (void)node_take_figures(w->node[number], &row);
    node_keep(w->node[number]);
    if (!node_next_letter(w->node[number], &letter))
        return false;
    if (letter.to_parent)
        hand_over(w, tree_parent(w->d, number), tree_slot(w->d, number), &letter.m);
    for (size_t c = 0; !letter.to_parent && c < tree_children(w->d, number); c++)
        hand_over(w, tree_child(w->d, number, c), NODE_PARENT, &letter.m);
    return true;
}

static bool all_ended(const talk *w)
{
    for (size_t i = 0; i < w->nodes; i++)
        if (node_ended(w->node[i]) == NODE_RUNNING)
            return false;
    return true;
}

static void converse(talk *w)
{
    enum { TICKS = 10000 };
    for (size_t tick = 0; tick < TICKS && !all_ended(w); tick++) {
        for (bool more = true; more;) {
            more = false;
            for (size_t i = 0; i < w->nodes; i++)
                while (say(w, i))
                    more = true;
        }
        w->now += 100;
        for (size_t i = 0; i < w->nodes; i++)
            node_tick(w->node[i], w->now);
    }
}

static void test_no_memory_for_models(void **state)
{
    (void)state;
    const problem *p = problem_named("deep");
    prepared made = prepare(p, 1);
    const tree t = tree_of(&made, p, 77, (node_patience){20, 1000});
    for (size_t starved = 0; starved < made.d->n_inner; starved++) {
        talk w = {.d = made.d, .nodes = made.d->n_inner + made.d->n_leaves, .starved = starved};
        hfsad_error err;
        for (size_t i = 0; i < w.nodes; i++)
            ok(tree_node(&w.node[i], &t, i, &err), &err);
        converse(&w);
        if (!all_ended(&w))
            fail_msg("node %zu had no memory once, and the run does not end", starved);
        assert_true(w.starved == 0 && node_models_below(w.node[0]));
        for (size_t i = 0; i < w.nodes; i++)
            node_free(w.node[i]);
    }
    unprepare(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_repair),
        cmocka_unit_test(test_no_memory_for_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
