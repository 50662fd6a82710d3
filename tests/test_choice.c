/*
 * Columns that the cloud chooses (polish/choice.h): sparse problems with more columns than a choice begins with, every
 * convex loss, l1 and elastic-net, with box, weights and intercepts. The judge is the polish of all columns, which
 * chooses none: no objective above it by more than the gap that was reported, and the same to 1e-4 where the verdict is
 * "converged".
 */
#include "defined_losses.h"

#include "base/alloc.h"
#include "polish/polish.h"
#include "polish/star_client.h"

enum { ROWS = 60, COLUMNS = 100, CLIENTS = 5 };

typedef struct {
    hfsad_loss loss;
    double lambda; /* of the value at which the model is 0 */
    const char *penalty, *intercept, *more;
} setting;

typedef struct {
    setting s;
    double x[ROWS][COLUMNS], y[ROWS], c[ROWS];
    int64_t client[ROWS];
    double l1;
} table;

typedef struct {
    double value, gap;
    bool converged;
} answer;

static const char *const paths[CLIENTS] = {"a/1", "a/2", "b/3", "b/4", "b/5"};

static void draw(table *t, uint64_t seed)
{
    rng r = {rng_key(seed, rng_stream("choice")), 0};
    double slopes[COLUMNS] = {0}, most = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double s = 0;
        for (size_t m = 0; m < COLUMNS; m++) {
            t->x[i][m] = rng_next_normal(&r) * (m % 7 == 3 ? 5 : 1);
            s += m < 5 ? t->x[i][m] : 0;
        }
        t->c[i] = 0.5 + fabs(rng_next_normal(&r));
        t->client[i] = (int64_t)(i % CLIENTS);
        t->y[i] = observation_near(&r, t->s.loss.kind, t->s.loss.kind == HFSAD_LOSS_POISSON ? s / 4 : s);
        for (size_t m = 0; m < COLUMNS; m++)
            slopes[m] += t->c[i] * defined_slope(&t->s.loss, t->y[i], 0, 1) * t->x[i][m];
    }
    for (size_t m = 0; m < COLUMNS; m++)
        most = fmax(most, fabs(slopes[m]));
    t->l1 = t->s.lambda * most;
}

/* F by its definition, from the models of the clients. */
static double value_at(const table *t, const hfsad_run *run)
{
    const double ratio = strcmp(t->s.penalty, "l1") ? 0.5 : 1;
    double model[COLUMNS + 1] = {0};
    long double sum = 0;
    char name[40];
    for (size_t node = 0; node < hfsad_run_nodes(run); node++) {
        hfsad_run_node_model(run, node, model);
        hfsad_run_node_name(run, node, name, sizeof name);
        for (size_t m = 0; m < COLUMNS && node == 0; m++)
            sum += fabs(model[m]) <= t->s.loss.box
                       ? t->l1 * (ratio * fabs(model[m]) + (1 - ratio) / 2 * model[m] * model[m])
                       : INFINITY;
        for (size_t i = 0; i < ROWS; i++) {
            long double s = strcmp(t->s.intercept, "none") ? model[COLUMNS] : 0;
            for (size_t m = 0; m < COLUMNS; m++)
                s += (long double)t->x[i][m] * model[m];
            if (!strcmp(paths[t->client[i]], name))
                sum += t->c[i] * defined_loss(&t->s.loss, t->y[i], s);
        }
    }
    return (double)sum;
}

static answer train(const table *t, const char *more)
{
    hfsad_error err;
    hfsad_data *data;
    hfsad_run *run;
    hfsad_result *result;
    hfsad_spec *spec;
    char text[800], box[40] = "";
    answer a = {0};
    if (isfinite(t->s.loss.box))
        snprintf(box, sizeof box, ", box: %.17g", t->s.loss.box);
    const int n = snprintf(text, sizeof text,
                           "loss: {kind: %s, tau: 0.7, delta: 1, h: 1%s}\nfeatures: {intercept: %s}\n"
                           "prior: {cloud: {penalty: %s, weight: 1, lambda: %.17g}}\n%s%s",
                           loss_names[t->s.loss.kind], box, t->s.intercept, t->s.penalty, t->l1, t->s.more, more);
    ok(hfsad_spec_parse(&spec, text, (size_t)n, &err), &err);
    ok(hfsad_data_create(&data, ROWS, COLUMNS, HFSAD_BORROW, &err), &err);
    ok(hfsad_data_dense(data, t->x[0], COLUMNS, 1, &err), &err);
    ok(hfsad_data_y(data, t->y, 1, &err), &err);
    ok(hfsad_data_codes(data, t->client, paths, CLIENTS, &err), &err);
    ok(hfsad_data_weights(data, t->c, 1, &err), &err);
    ok(hfsad_run_create_on(&run, spec, data, 1, &err), &err);
    ok(hfsad_run_train(run, NULL, NULL, &result, &err), &err);
    const hfsad_verdict *v = hfsad_result_verdict(result);
    a.gap = v->gap;
    a.converged = v->kind == HFSAD_VERDICT_CONVERGED;
    a.value = value_at(t, run);
    hfsad_result_free(result);
    hfsad_run_free(run);
    hfsad_data_free(data);
    hfsad_spec_free(spec);
    return a;
}

static void same_as_all_columns(void **state)
{
    (void)state;
    static const char *const intercepts[] = {"none", "global", "client"};
    static const double lambdas[] = {0.05, 0.3, 1.1, 0.6};
    size_t converged = 0, number = 0;
    table *t = alloc_zero(1, sizeof *t);
    for (size_t i = 0; i < 2 * LOSSES; i++) {
        const hfsad_loss_kind kind = kind_at(i);
        if (kind == HFSAD_LOSS_PHASE_RETRIEVAL)
            continue;
        t->s = (setting){.loss = {.kind = kind, .tau = 0.7, .delta = 1, .h = 1, .box = i % 5 == 4 ? 0.5 : INFINITY},
                         .lambda = lambdas[i % 4],
                         .penalty = i % 6 == 5 ? "elastic-net" : "l1",
                         .intercept = intercepts[i % 3],
                         .more = ""};
        draw(t, i);
        const answer chosen = train(t, ""), all = train(t, "algorithm: hfsad\nrun: {iterations: 3, polish: true}\n");
        if (chosen.value - all.value > chosen.gap + 1e-9 * all.value)
            fail_msg("%s, %zu: %.17g, gap %g, and %.17g by all columns", loss_names[kind], i, chosen.value, chosen.gap,
                     all.value);
        if (chosen.converged && chosen.value - all.value > 1.01e-4 * all.value)
            fail_msg("%s, %zu: converged to %.17g, not to %.17g", loss_names[kind], i, chosen.value, all.value);
        converged += chosen.converged;
        number++;
    }
    free(t);
    if (converged < number)
        fail_msg("%zu of %zu converged", converged, number);
}

/* PARTS clients with as many rows each, asked directly. */
enum { PARTS = 3, PART = ROWS / PARTS };
typedef struct {
    const table *t;
    size_t columns, projections; /* questions of that kind */
    double x[ROWS * COLUMNS], multiplier[ROWS], bend[ROWS];
    star_client *star[PARTS];
    polish_chosen *chosen[PARTS];
} solo;

static bool ask_solo(void *context, const polish_question *q, double *sum)
{
    solo *c = context;
    static double part[COLUMNS * (COLUMNS + 1)];
    const size_t length = polish_length(q->kind, q->chosen ? q->chosen : c->columns);
    memset(sum, 0, length * sizeof *sum);
    for (size_t k = 0, first = 0; k < PARTS; k++, first += PART) {
        const polish_client client = {
            .loss = &c->t->s.loss,
            .rows = {.count = PART,
                     .F = c->columns,
                     .x = c->x + first * c->columns,
                     .y = c->t->y + first,
                     .weight = c->t->c + first},
            .M = c->columns,
            .factor = 1,
            .multiplier = c->multiplier + first,
            .bend = c->bend + first,
            .star = &c->star[k],
            .chosen = &c->chosen[k],
        };
        polish_answer(&client, q, part);
        for (size_t i = 0; i < length; i++)
            sum[i] += part[i];
    }
    c->projections += q->kind == POLISH_PROJECT;
    return true;
}

/* The first columns. Up to `direct` coordinates second derivatives are asked for; a metric may be whole up to `whole`,
 * and begins so unless a choice or more than `direct` coordinates prevent it. */
static polish_result solve_part(const table *t, size_t columns, bool chooses, size_t direct, size_t whole,
                                size_t *projections)
{
    const bool both = !strcmp(t->s.penalty, "elastic-net");
    const hfsad_penalty prior = {
        .kind = both ? HFSAD_PENALTY_ELASTIC_NET : HFSAD_PENALTY_L1, .weight = 1, .lambda = t->l1, .ratio = 0.5};
    static solo c;
    c = (solo){.t = t, .columns = columns};
    for (size_t i = 0; i < ROWS; i++)
        memcpy(c.x + i * columns, t->x[i], columns * sizeof *c.x);
    double w[COLUMNS] = {0};
    polish_result result;
    const polish_problem p = {.M = columns,
                              .boxed = columns,
                              .box = t->s.loss.box,
                              .n_priors = 1,
                              .priors = &prior,
                              .direct = direct,
                              .star = true,
                              .rounds = true,
                              .whole_metric = !chooses && columns <= direct,
                              .whole_most = whole,
                              .may_choose = chooses,
                              .clients = PARTS,
                              .gap = 1e-4,
                              .ask = ask_solo,
                              .context = &c};
    assert_true(polish_solve(&p, w, &result) && result.finished);
    for (size_t k = 0; k < PARTS; k++) {
        star_client_free(c.star[k]);
        free(c.chosen[k]);
    }
    *projections = c.projections;
    return result;
}

static polish_result solve_solo(const table *t, bool chooses, size_t direct)
{
    size_t projections;
    return solve_part(t, COLUMNS, chooses, direct, direct, &projections);
}

/* More chosen columns than second derivatives are asked for: repairs go by conjugate gradients, and the slopes of the
 * best repair are those that all columns are asked for. */
static void without_second_derivatives(void **state)
{
    (void)state;
    static const hfsad_loss_kind kinds[] = {HFSAD_LOSS_HUBER, HFSAD_LOSS_HINGE, HFSAD_LOSS_SQUARED, HFSAD_LOSS_QUANTILE,
                                            HFSAD_LOSS_ABSOLUTE};
    table *t = alloc_zero(1, sizeof *t);
    for (size_t i = 0; i < 40; i++) {
        t->s = (setting){
            .loss = {.kind = kinds[i % 5], .tau = 0.7, .delta = 1, .h = 1, .box = i % 3 == 1 ? 0.5 : INFINITY},
            .lambda = i % 4 < 2 ? 0.3 : 0.1,
            .penalty = i % 3 ? "l1" : "elastic-net"};
        draw(t, i);
        const polish_result chosen = solve_solo(t, true, 4), all = solve_solo(t, false, COLUMNS);
        if (!(chosen.bound <= 1.01e-4 * chosen.after))
            fail_msg("%zu: %.17g, proven to %g of it", i, chosen.after, chosen.bound / chosen.after);
        if (chosen.after - all.after > chosen.bound + 1e-9 * all.after)
            fail_msg("%zu: %.17g, gap %g, and %.17g by all columns", i, chosen.after, chosen.bound, all.after);
    }
    free(t);
}

/* Too many coordinates for second derivatives, and a diagonal metric that does not do: it becomes whole, and the bound
 * goes by projections. Without a prior the columns' sums of slopes must be 0. */
static void by_projections(void **state)
{
    (void)state;
    enum { SOME = 20 };
    static const hfsad_loss_kind kinds[] = {HFSAD_LOSS_ABSOLUTE, HFSAD_LOSS_QUANTILE, HFSAD_LOSS_HUBER,
                                            HFSAD_LOSS_SMOOTHED_QUANTILE, HFSAD_LOSS_HINGE};
    size_t asked = 0;
    table *t = alloc_zero(1, sizeof *t);
    for (size_t i = 0; i < 60; i++) {
        size_t projections, none;
        t->s = (setting){.loss = {.kind = kinds[i % 5], .tau = 0.7, .delta = 1, .h = 1, .box = INFINITY},
                         .lambda = i % 5 == 4 || i % 2 ? 0.05 : 0,
                         .penalty = "l1"};
        draw(t, 100 + i);
        const polish_result found = solve_part(t, SOME, false, 4, SOME, &projections),
                            judge = solve_part(t, SOME, false, SOME, SOME, &none);
        asked += projections;
        assert_int_equal(none, 0);
        if (!(found.bound <= 1.01e-4 * found.after) || found.exchanges > 1500)
            fail_msg("%zu: %.17g, proven to %g of it, %zu exchanges", i, found.after, found.bound / found.after,
                     (size_t)found.exchanges);
        if (found.after - judge.after > found.bound + 1e-9 * judge.after)
            fail_msg("%zu: %.17g, gap %g, and %.17g by second derivatives", i, found.after, found.bound, judge.after);
    }
    free(t);
    assert_true(asked > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_all_columns),
                                       cmocka_unit_test(without_second_derivatives), cmocka_unit_test(by_projections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
