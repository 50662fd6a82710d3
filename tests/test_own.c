/* A loss supplied by a program: the squared loss, written by hand, must give the result of the library's; and which
 * losses are refused. */
#include "tools.h"

#include "run/handle.h"

#include <stdatomic.h>
#include <unistd.h>

enum { EDGES = 3, CLIENTS = 4, ROWS = 7, F = 4 };

static int make_data(void **state)
{
    rng r = {rng_key(11, rng_stream("own")), 0};
    FILE *f = enter_folder(state) ? NULL : fopen(in_folder("data.csv"), "w");
    if (!f)
        return 1;
    fprintf(f, "edge,client,y,weight,x1,x2,x3,x4\n");
    for (int i = 0; i < EDGES * CLIENTS * ROWS; i++) {
        const double weight = uniform(&r, 0.5, 2), noise = rng_next_normal(&r);
        double x[F], y = 3 + noise;
        for (int m = 0; m < F; m++) {
            x[m] = rng_next_normal(&r);
            y += m % 2 ? x[m] : -2 * x[m];
        }
        fprintf(f, "e%d,c%d,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g\n", i / ROWS / CLIENTS, i / ROWS, y, weight, x[0], x[1],
                x[2], x[3]);
    }
    return fclose(f);
}

/* What the callbacks count, to see that they and nobody else were asked. */
typedef struct {
    atomic_int values, proxes, gradients;
} calls;

static double own_value(void *context, const hfsad_client *c, const double *w)
{
    double sum = 0;
    ((calls *)context)->values++;
    for (size_t r = 0; r < c->rows; r++) {
        const double e = c->y[r] - hfsad_client_dot(c, r, w);
        sum += c->weight[r] * e * e / 2;
    }
    return sum;
}

static double own_gradient(void *context, const hfsad_client *c, const double *w, double *g)
{
    ((calls *)context)->gradients++;
    memset(g, 0, c->M * sizeof *g);
    for (size_t r = 0; r < c->rows; r++)
        hfsad_client_add(c, r, -c->weight[r] * (c->y[r] - hfsad_client_dot(c, r, w)), g);
    double sum = 0;
    for (size_t r = 0; r < c->rows; r++) {
        const double e = c->y[r] - hfsad_client_dot(c, r, w);
        sum += c->weight[r] * e * e / 2;
    }
    return sum;
}

/* Gaussian elimination of (X^T W X + sigma) w = X^T W y + sigma v. */
static void own_prox(void *context, const hfsad_client *c, const double *v, double sigma, double *w)
{
    enum { MOST = F + 1 };
    double a[MOST][MOST + 1] = {{0}}, x[MOST];
    ((calls *)context)->proxes++;
    assert_true(c->M <= MOST && c->rows == ROWS);
    for (size_t i = 0; i < c->M; i++) {
        a[i][i] = sigma;
        a[i][c->M] = sigma * v[i];
    }
    for (size_t r = 0; r < c->rows; r++) {
        hfsad_client_row(c, r, x);
        for (size_t i = 0; i < c->M; i++) {
            for (size_t j = 0; j < c->M; j++)
                a[i][j] += c->weight[r] * x[i] * x[j];
            a[i][c->M] += c->weight[r] * x[i] * c->y[r];
        }
    }
    for (size_t i = 0; i < c->M; i++)
        for (size_t k = i + 1; k < c->M; k++)
            for (size_t j = c->M + 1; j-- > i;)
                a[k][j] -= a[k][i] / a[i][i] * a[i][j];
    for (size_t i = c->M; i-- > 0;) {
        w[i] = a[i][c->M];
        for (size_t j = i + 1; j < c->M; j++)
            w[i] -= a[i][j] * w[j];
        w[i] /= a[i][i];
    }
}

static hfsad_spec *spec_of(const char *const *sets)
{
    hfsad_error err;
    hfsad_spec *spec;
    ok(hfsad_spec_create(&spec, &err), &err);
    ok(hfsad_spec_set(spec, "data", in_folder("data.csv"), &err), &err);
    for (; *sets; sets += 2)
        ok(hfsad_spec_set(spec, sets[0], sets[1], &err), &err);
    return spec;
}

/* The cloud's model after 300 iterations. */
static void trained(const char *const *sets, const hfsad_own_loss *own, unsigned threads, double *w)
{
    hfsad_error err;
    hfsad_run *run;
    hfsad_spec *spec = spec_of(sets);
    if (own)
        ok(hfsad_spec_own_loss(spec, own, &err), &err);
    ok(hfsad_run_create(&run, spec, threads, &err), &err);
    hfsad_spec_free(spec);
    for (int i = 0; i < 300; i++)
        hfsad_run_iterate(run);
    hfsad_run_node_model(run, 0, w);
    hfsad_run_free(run);
}

static void close_to(const double *a, const double *b, double tolerance)
{
    for (int m = 0; m <= F; m++)
        if (!(fabs(a[m] - b[m]) <= tolerance))
            fail_msg("coordinate %d: %.17g, expected %.17g", m, a[m], b[m]);
}

#define COMMON "features.intercept", "global", "features.standardize", "true"

static void the_same_model(void **state)
{
    (void)state;
    calls by_prox = {0}, by_gradient = {0};
    const hfsad_own_loss prox = {sizeof(hfsad_own_loss), &by_prox, own_value, own_prox, NULL};
    const hfsad_own_loss gradient = {sizeof(hfsad_own_loss), &by_gradient, own_value, NULL, own_gradient};
    const hfsad_own_loss both = {sizeof(hfsad_own_loss), &by_prox, own_value, own_prox, own_gradient};
    double w[4][F + 1], again[F + 1];
    trained((const char *const[]){"loss.kind", "squared", COMMON, NULL}, NULL, 1, w[0]);
    trained((const char *const[]){"loss.kind", "own", COMMON, NULL}, &prox, 1, w[1]);
    trained((const char *const[]){"loss.kind", "own", COMMON, NULL}, &gradient, 1, w[2]);
    assert_true(by_prox.proxes > 300 * EDGES * CLIENTS && by_gradient.gradients > 300 * EDGES * CLIENTS);
    const int proxes = by_prox.proxes;
    trained((const char *const[]){"loss.kind", "own", "loss.solver", "linearized", COMMON, NULL}, &both, 1, w[3]);
    assert_int_equal(by_prox.proxes, proxes);
    close_to(w[1], w[0], 1e-5);
    close_to(w[2], w[0], 1e-4);
    assert_memory_equal(w[3], w[2], sizeof w[2]);
    trained((const char *const[]){"loss.kind", "own", COMMON, NULL}, &prox, 2, again);
    assert_memory_equal(again, w[1], sizeof again);
}

/* One client with a loss of its own among others; the same loss, so the same model. */
static void one_of_many(void **state)
{
    (void)state;
    calls count = {0};
    const hfsad_own_loss prox = {sizeof(hfsad_own_loss), &count, own_value, own_prox, NULL};
    double w[2][F + 1];
    trained((const char *const[]){"loss.kind", "squared", COMMON, NULL}, NULL, 1, w[0]);
    trained(
        (const char *const[]){"loss.kind", "squared", COMMON, "overrides", "[{node: e1/c5, loss: {kind: own}}]", NULL},
        &prox, 1, w[1]);
    assert_int_equal(count.proxes, 300 * 10);
    close_to(w[1], w[0], 1e-6);
}

static void refused(const char *const *sets, const hfsad_own_loss *own, const char *words)
{
    hfsad_error err = {0};
    hfsad_run *run = NULL;
    hfsad_spec *spec = spec_of(sets);
    if (own)
        ok(hfsad_spec_own_loss(spec, own, &err), &err);
    assert_int_equal(hfsad_run_create(&run, spec, 1, &err), HFSAD_ERROR_INPUT);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
    hfsad_spec_free(spec);
}

static void what_is_refused(void **state)
{
    (void)state;
    calls count = {0};
    const hfsad_own_loss prox = {sizeof(hfsad_own_loss), &count, own_value, own_prox, NULL},
                         gradient = {sizeof(hfsad_own_loss), &count, own_value, NULL, own_gradient};
    const hfsad_own_loss no_value = {sizeof(hfsad_own_loss), &count, NULL, own_prox, NULL},
                         no_step = {sizeof(hfsad_own_loss), &count, own_value, NULL, NULL};
    hfsad_error err;
    hfsad_spec *spec = spec_of((const char *const[]){NULL});
    assert_int_equal(hfsad_spec_own_loss(spec, &no_value, &err), HFSAD_ERROR_INPUT);
    assert_int_equal(hfsad_spec_own_loss(spec, &no_step, &err), HFSAD_ERROR_INPUT);
    hfsad_spec_free(spec);
    refused((const char *const[]){"loss.kind", "own", NULL}, NULL, "hfsad_spec_own_loss");
    refused((const char *const[]){"loss.kind", "own", "loss.solver", "linearized", NULL}, &prox, "gradient");
    refused((const char *const[]){"loss.kind", "own", "loss.solver", "exact", NULL}, &gradient, "prox");
    refused((const char *const[]){"loss.kind", "own", "loss.box", "2", NULL}, &prox, "loss.box");
    refused((const char *const[]){"loss.kind", "own", "loss.scale", "mean", NULL}, &prox, "loss.scale");
}

/* Theorem 1 asks for a bound of the gradient that nobody knows. */
static void no_theorem(void **state)
{
    (void)state;
    calls count = {0};
    const hfsad_own_loss prox = {sizeof(hfsad_own_loss), &count, own_value, own_prox, NULL};
    hfsad_error err;
    hfsad_run *run;
    hfsad_spec *spec = spec_of((const char *const[]){"loss.kind", "own", "preset", "paper", "link.client.weight", "1e9",
                                                     "link.edge.weight", "1e12", NULL});
    ok(hfsad_spec_own_loss(spec, &prox, &err), &err);
    ok(hfsad_run_create(&run, spec, 1, &err), &err);
    theorem_report t;
    theorem_check(&t, run->data, run->plan, run->nu_f);
    assert_false(t.holds);
    assert_non_null(strstr(t.reason, "own loss"));
    hfsad_run_free(run);
    hfsad_spec_free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_model),
        cmocka_unit_test(one_of_many),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(no_theorem),
    };
    return cmocka_run_group_tests(tests, make_data, leave_folder);
}
