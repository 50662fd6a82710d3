/*
 * Whole runs on clients with many rows, from files, with the default preset: the objective at the cloud's model against
 * solutions found in other ways (solutions.h).
 */
#include "run/handle.h"
#include "solutions.h"

enum { SEEDS = 2 };

static double measured(hfsad_run *run)
{
    hfsad_figures f;
    hfsad_error err;
    ok(run_measure(run, &f, &err), &err);
    return f.consensus_objective;
}

/* In a box w_0 may lie outside by as much as the links still give. */
static void play(const setting *s, uint64_t seed, double soon, double late)
{
    problem p = make_problem(seed, s, 1);
    const double best = solve(&p), least = isfinite(s->loss.box) ? -late : -1e-9;
    hfsad_run *run = open_run(s, 1);
    assert_true(best > 0 && measured(run) > 1.1 * best); /* the start is no solution */
    for (uint64_t k = 1; k <= s->more; k++) {
        hfsad_run_iterate(run);
        if (k != 400 && k != s->more)
            continue;
        const double gap = (measured(run) - best) / best, most = k == 400 ? soon : late;
        if (!(gap >= (k == 400 ? fmin(least, -soon) : least) && gap <= most))
            fail_msg("%s, K_m = %d, seed %llu: %.3g above the solution %.9g after %llu iterations, at most %g", s->name,
                     s->edge_rounds, (unsigned long long)seed, gap, best, (unsigned long long)k, most);
    }
    hfsad_run_free(run);
    free_problem(&p);
}

/* The iterations of a setting are half as many again, or more, as the slowest of seeds 1 to 8 needs to stay below the
 * smaller gap. */
static void play_all(size_t n, const setting *list, double late)
{
    for (size_t i = 0; i < n; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            play(&list[i], seed, 1e-3, late);
}

static void quantile_regression(void **state)
{
    (void)state;
    static const setting list[] = {
        {"quantile 0.5", LOSS(QUANTILE, 0.5, 1), 0, 1, 1, flat_tree, 7000, PLAIN},
        {"quantile 0.9 with l1", LOSS(QUANTILE, 0.9, 1), 20, 1, 1, flat_tree, 2500, PLAIN},
        {"quantile 0.9 with l1", LOSS(QUANTILE, 0.9, 1), 20, 10, 1, flat_tree, 6000, PLAIN},
        {"quantile 0.3, half take part", LOSS(QUANTILE, 0.3, 1), 0, 1, 0.5, flat_tree, 5000, PLAIN},
        {"quantile 0.3, depth 3", LOSS(QUANTILE, 0.3, 1), 0, 1, 1, deep_tree, 4000, PLAIN},
        {"quantile 0.3, depth 3", LOSS(QUANTILE, 0.3, 1), 0, 10, 1, deep_tree, 600, PLAIN},
        {"quantile 0.3, weighted rows", LOSS(QUANTILE, 0.3, 1), 0, 1, 1, deep_tree, 5000, WEIGHTED},
        {"absolute, weighted means", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 5000, WEIGHTED + MEAN},
        {"absolute in a box", {HFSAD_LOSS_ABSOLUTE, 0.5, 1, 0.5, 0.3}, 0, 1, 1, flat_tree, 1500, PLAIN},
    };
    /* Goes on wobbling around 1e-5. */
    static const setting slow = {"quantile 0.9", LOSS(QUANTILE, 0.9, 1), 0, 10, 1, flat_tree, 3000, PLAIN};
    play_all(sizeof list / sizeof *list, list, 1e-5);
    play_all(1, &slow, 5e-5);
}

static void smooth_regression(void **state)
{
    (void)state;
    static const setting list[] = {
        {"squared", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 500, PLAIN},
        {"squared", LOSS(SQUARED, 0.5, 1), 0, 10, 1, flat_tree, 500, PLAIN},
        {"squared, weighted means", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 500, WEIGHTED + MEAN},
        {"squared with l1", LOSS(SQUARED, 0.5, 1), 60, 1, 1, flat_tree, 500, PLAIN},
        {"squared with l1", LOSS(SQUARED, 0.5, 1), 60, 10, 1, deep_tree, 500, PLAIN},
        {"huber", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, flat_tree, 500, PLAIN},
        {"huber", LOSS(HUBER, 0.5, 0.5), 0, 10, 1, deep_tree, 500, PLAIN},
        {"huber, weighted rows", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, deep_tree, 500, WEIGHTED},
        {"expectile", LOSS(EXPECTILE, 0.8, 1), 0, 1, 1, flat_tree, 500, PLAIN},
        {"smoothed quantile", LOSS(SMOOTHED_QUANTILE, 0.3, 1), 0, 1, 1, flat_tree, 4000, PLAIN},
        {"poisson", LOSS(POISSON, 0.5, 1), 0, 1, 1, flat_tree, 1500, PLAIN},
        {"huber, linearised", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, flat_tree, 500, LINEARIZED},
    };
    play_all(sizeof list / sizeof *list, list, 1e-5);
}

static void two_classes(void **state)
{
    (void)state;
    static const setting list[] = {
        {"logistic", LOSS(LOGISTIC, 0.5, 1), 0, 1, 1, flat_tree, 500, PLAIN},
        {"hinge", LOSS(HINGE, 0.5, 1), 0, 1, 1, flat_tree, 15000, PLAIN},
        {"hinge", LOSS(HINGE, 0.5, 1), 0, 10, 1, deep_tree, 1200, PLAIN},
    };
    play_all(sizeof list / sizeof *list, list, 1e-5);
}

/* Every number of every model. */
static double *models(const hfsad_run *run, size_t *count)
{
    *count = hfsad_run_nodes(run) * M;
    double *all = alloc_zero(*count, sizeof *all);
    for (size_t node = 0; node < hfsad_run_nodes(run); node++)
        hfsad_run_node_model(run, node, all + node * M);
    return all;
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    static const setting list[] = {
        {"quantile", LOSS(QUANTILE, 0.3, 1), 20, 2, 0.6, deep_tree, 10, PLAIN},
        {"squared", LOSS(SQUARED, 0.5, 1), 0, 2, 1, flat_tree, 10, PLAIN},
        {"phase retrieval", {HFSAD_LOSS_PHASE_RETRIEVAL, 0.5, 1, 2, 0.3}, 0, 2, 1, deep_tree, 10, PLAIN},
        {"phase retrieval, linearised", LOSS(PHASE_RETRIEVAL, 0.5, 1), 0, 2, 1, flat_tree, 10, LINEARIZED},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        problem p = make_problem(2, &list[i], 6); /* enough rows for the threads to share */
        double *first = NULL;
        for (unsigned threads = 1; threads <= 3; threads++) {
            size_t count;
            hfsad_run *run = open_run(&list[i], threads);
            for (uint64_t k = 0; k < list[i].more; k++)
                hfsad_run_iterate(run);
            double *all = models(run, &count);
            if (first && memcmp(first, all, count * sizeof *all))
                fail_msg("%s: %u threads differ from one", list[i].name, threads);
            hfsad_run_free(run);
            free(first ? all : NULL);
            first = first ? first : all;
        }
        free(first);
        free_problem(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile_regression),
        cmocka_unit_test(smooth_regression),
        cmocka_unit_test(two_classes),
        cmocka_unit_test(threads_change_no_bit),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
