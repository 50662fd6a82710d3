/*
 * The polish of runs that were ended early: the objective at the polished model, computed here from the model itself,
 * against the least value found in other ways (solutions.h); what it does for phase retrieval; when it does nothing.
 */
#define _XOPEN_SOURCE 700
#include "solutions.h"

#include "sim/run.h"

/* F at w, with whatever l1 the problem has. */
static double objective_at(const problem *p, const double *w)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->weight[i] * hfsad_loss_value(&p->loss, p->y[i], dot(p->x + i * M, w));
    for (size_t m = 0; m < M; m++)
        sum += p->l1 * fabs(w[m]);
    return sum;
}

static hfsad_polish polish(hfsad_run *run)
{
    hfsad_polish result;
    hfsad_error err;
    ok(hfsad_run_polish(run, NULL, NULL, &result, &err), &err);
    return result;
}

static void play(const setting *s, uint64_t seed)
{
    problem p = make_problem(seed, s, 1);
    const double best = solve(&p);
    hfsad_run *run = open_run(s, 1);
    for (uint64_t k = 1; k <= s->more; k++)
        hfsad_run_iterate(run);
    const hfsad_polish result = polish(run);
    double w[M];
    hfsad_run_node_model(run, hfsad_run_nodes(run) - 1, w);
    const double there = objective_at(&p, w), gap = (there - best) / best;
    printf("%-40s K %d seed %llu: before %.2e after %.2e bound %.1e res %.1e exch %llu %.3fs %s\n", s->name,
           s->edge_rounds, (unsigned long long)seed, (result.objective_before - best) / best, gap, result.gap / best,
           result.residual, (unsigned long long)result.exchanges, result.seconds, result.reason);
    hfsad_run_free(run);
    free_problem(&p);
}

static const setting convex[] = {
    {"quantile 0.5", LOSS(QUANTILE, 0.5, 1), 0, 1, 1, flat_tree, 30, PLAIN},
    {"quantile 0.9", LOSS(QUANTILE, 0.9, 1), 0, 10, 1, flat_tree, 30, PLAIN},
    {"quantile 0.9 with l1", LOSS(QUANTILE, 0.9, 1), 20, 1, 1, flat_tree, 30, PLAIN},
    {"quantile 0.9 with l1", LOSS(QUANTILE, 0.9, 1), 20, 10, 1, flat_tree, 30, PLAIN},
    {"absolute", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, star, 30, PLAIN},
    {"absolute, one row each", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 30, ONE_ROW},
    {"quantile 0.3, one row each, l1", LOSS(QUANTILE, 0.3, 1), 10, 10, 1, deep_tree, 30, ONE_ROW},
    {"quantile 0.3, half take part", LOSS(QUANTILE, 0.3, 1), 0, 1, 0.5, flat_tree, 30, PLAIN},
    {"quantile 0.3, depth 3, weighted", LOSS(QUANTILE, 0.3, 1), 0, 10, 1, deep_tree, 30, WEIGHTED},
    {"absolute, weighted means", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 30, WEIGHTED + MEAN},
    {"absolute, intercept", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 30, INTERCEPT},
    {"quantile 0.9, intercept, standardised", LOSS(QUANTILE, 0.9, 1), 0, 10, 1, deep_tree, 30, INTERCEPT + STANDARDIZE},
    {"absolute in a box", {HFSAD_LOSS_ABSOLUTE, 0.5, 1, 0.5}, 0, 1, 1, flat_tree, 30, PLAIN},
    {"quantile 0.7 in a box with l1", {HFSAD_LOSS_QUANTILE, 0.7, 1, 0.6}, 20, 10, 1, flat_tree, 30, PLAIN},
    {"absolute in a box, one row each", {HFSAD_LOSS_ABSOLUTE, 0.5, 1, 0.5}, 0, 1, 1, deep_tree, 30, ONE_ROW},
    {"squared", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 30, PLAIN},
    {"squared, one row each", LOSS(SQUARED, 0.5, 1), 0, 10, 1, flat_tree, 30, ONE_ROW},
    {"squared, weighted means", LOSS(SQUARED, 0.5, 1), 0, 1, 1, star, 30, WEIGHTED + MEAN},
    {"squared, intercept, standardised", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 30, INTERCEPT + STANDARDIZE},
    {"squared with l1", LOSS(SQUARED, 0.5, 1), 60, 10, 1, deep_tree, 30, PLAIN},
    {"huber", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, flat_tree, 30, PLAIN},
    {"huber, linearised", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, flat_tree, 30, LINEARIZED},
    {"huber, weighted rows", LOSS(HUBER, 0.5, 0.5), 0, 10, 1, deep_tree, 30, WEIGHTED},
    {"logistic", LOSS(LOGISTIC, 0.5, 1), 0, 1, 1, flat_tree, 30, PLAIN},
    {"logistic, intercept", LOSS(LOGISTIC, 0.5, 1), 0, 10, 1, star, 30, INTERCEPT},
    {"hinge", LOSS(HINGE, 0.5, 1), 0, 1, 1, flat_tree, 30, PLAIN},
    {"hinge", LOSS(HINGE, 0.5, 1), 0, 10, 1, deep_tree, 30, PLAIN},
    {"hinge with l1, one row each", LOSS(HINGE, 0.5, 1), 5, 1, 1, deep_tree, 30, ONE_ROW},
};

static void convex_losses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof convex / sizeof *convex; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            play(&convex[i], seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convex_losses),
    };
    return cmocka_run_group_tests(tests, make_folder, leave_folder);
}
