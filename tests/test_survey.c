/*
 * Questions to the clients: totals against loops over all rows, the eigenvectors that the starts take against LAPACK's,
 * and starts against the truth.
 */
#include "tools.h"

#include "data/generated.h"
#include "data/rows.h"
#include "math/lanczos.h"
#include "spec/table.h"

extern void dsyev_(const char *job, const char *half, const int *n, double *a, const int *lda, double *w, double *work,
                   const int *lwork, int *info);

enum { MOST = 40 };

static void close_to(double have, double want, const char *what, uint64_t seed)
{
    if (!(fabs(have - want) <= 1e-12 * (1 + fabs(want))))
        fail_msg("seed %llu: %s is %.17g, expected %.17g", (unsigned long long)seed, what, have, want);
}

static void ask(local_survey *s, survey_kind kind, size_t count, const double *values, size_t most, size_t sums,
                double *totals)
{
    hfsad_error err;
    const surveyor asker = local_surveyor(s);
    const survey_question q = {kind, count, values, most, sums};
    ok(asker.ask(asker.context, &q, totals, &err), &err);
}

/* A tree of depth 3 with leaves at every depth; one row per client or several. */
static dataset *tree(rng *r, size_t M, size_t rows)
{
    static const char *const paths[] = {"", "a", "b/c", "b/d", "b"};
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    double x[MOST];
    ok(dataset_builder_create(&b, M, &err), &err);
    for (size_t i = 0; i < 23 * rows; i++) {
        char name[32];
        snprintf(name, sizeof name, "client%zu", i % 23);
        for (size_t m = 0; m < M; m++)
            x[m] = below(r, 4) ? rng_next_normal(r) : 0;
        const double y = fabs(rng_next_normal(r)) * (below(r, 8) ? 1 : -1);
        ok(dataset_builder_add(b, paths[i % 23 % 5], name, y, x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(b, &d, &err), &err);
    return d;
}

/* All rows one after the other, by another road than the survey's. */
typedef struct {
    size_t n, M;
    double x[200][MOST], y[200];
} flat;

static void flatten(const dataset *d, flat *f)
{
    double row[MOST];
    *f = (flat){.M = d->M};
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows_any(d, leaf, row);
        for (size_t r = 0; r < rows.count; r++, f->n++) {
            row_add(&rows, r, 1, f->x[f->n]);
            f->y[f->n] = rows.y[r];
        }
    }
}

static double along(const flat *f, size_t i, const double *v)
{
    double s = 0;
    for (size_t m = 0; m < f->M; m++)
        s += f->x[i][m] * v[m];
    return s;
}

static void check_scale(local_survey *s, const flat *f, uint64_t seed)
{
    const double centre = 0.3;
    double have[6], pull = 0, energy = 0, deviation = 0;
    for (size_t i = 0; i < f->n; i++) {
        const double n = along(f, i, f->x[i]);
        energy += n;
        deviation += fabs(f->y[i] - centre);
        pull = fmax(pull, sqrt(n)); /* absolute loss, one row per client */
    }
    ask(s, SURVEY_SCALE, 1, &centre, 1, 5, have);
    if (f->n == s->d->n_leaves)
        close_to(have[0], pull, "the hardest pull", seed);
    close_to(have[1], energy, "the energy", seed);
    close_to(have[3], (double)f->n, "the weight", seed);
    close_to(have[4], deviation, "the deviation", seed);
}

static void check_below(local_survey *s, const flat *f, uint64_t seed)
{
    double values[SURVEY_THRESHOLDS + MOST], have[SURVEY_THRESHOLDS + 1];
    for (size_t i = 0; i < SURVEY_THRESHOLDS; i++)
        values[i] = 0.05 * (double)i - 0.2;
    for (size_t m = 0; m < f->M; m++)
        values[SURVEY_THRESHOLDS + m] = sin((double)m + 1);
    ask(s, SURVEY_BELOW_FIT, SURVEY_THRESHOLDS + f->M, values, 0, SURVEY_THRESHOLDS + 1, have);
    for (size_t t = 0; t < SURVEY_THRESHOLDS; t++) {
        double sum = 0;
        for (size_t i = 0; i < f->n; i++) {
            const double p = along(f, i, values + SURVEY_THRESHOLDS), ratio = f->y[i] / (p * p);
            sum += isfinite(ratio) && ratio <= values[t] ? p * p : 0;
        }
        close_to(have[1 + t], sum, "a weight below", seed);
    }
}

static void check_direction(local_survey *s, const flat *f, uint64_t seed)
{
    double values[1 + MOST] = {0.7}, have[MOST], want[MOST] = {0};
    for (size_t m = 0; m < f->M; m++)
        values[1 + m] = cos((double)m);
    for (size_t i = 0; i < f->n; i++) {
        const double n = along(f, i, f->x[i]), t = f->y[i] / n / values[0];
        const double T = t > 0 ? fmax(1 - 1 / t, -10) : -10;
        for (size_t m = 0; m < f->M && n > 0; m++)
            want[m] += T / n * f->x[i][m] * along(f, i, values + 1);
    }
    ask(s, SURVEY_ROBUST, 1 + f->M, values, 0, f->M, have);
    for (size_t m = 0; m < f->M; m++)
        close_to(have[m], want[m], "a sum of directions", seed);
}

static void totals_are_sums_over_rows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        rng r = {rng_key(seed, rng_stream("survey")), 0};
        dataset *d = tree(&r, 1 + below(&r, MOST), seed % 2 ? 1 : 4);
        hfsad_error err;
        hfsad_spec *spec;
        local_survey s;
        flat f;
        ok(spec_create(&spec, "test.yaml", &err), &err);
        ok(hfsad_spec_set(spec, "loss", "{kind: absolute}", &err), &err);
        ok(local_survey_make(&s, spec, d, &err), &err);
        flatten(d, &f);
        check_scale(&s, &f, seed);
        check_below(&s, &f, seed);
        check_direction(&s, &f, seed);
        local_survey_free(&s);
        hfsad_spec_free(spec);
        dataset_free(d);
    }
}

typedef struct {
    size_t M;
    const double *a;
} square;

static hfsad_status square_times(void *context, const double *v, double *product, hfsad_error *err)
{
    const square *s = context;
    (void)err;
    for (size_t i = 0; i < s->M; i++) {
        product[i] = 0;
        for (size_t j = 0; j < s->M; j++)
            product[i] += s->a[i * s->M + j] * v[j];
    }
    return HFSAD_OK;
}

static void eigenvectors_are_lapacks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rng r = {rng_key(seed, rng_stream("lanczos")), 0};
        const size_t M = 1 + below(&r, MOST);
        double a[MOST * MOST], copy[MOST * MOST], w[MOST], work[64 * MOST], v[MOST], value, dot = 0;
        for (size_t i = 0; i < M; i++) {
            v[i] = rng_next_normal(&r);
            for (size_t j = 0; j <= i; j++)
                a[i * M + j] = a[j * M + i] = rng_next_normal(&r) - (i == j ? (double)(seed % 3) * 9 : 0);
        }
        memcpy(copy, a, sizeof a);
        const int n = (int)M, lwork = 64 * MOST;
        int info;
        dsyev_("V", "L", &n, copy, &n, w, work, &lwork, &info);
        hfsad_error err;
        square s = {M, a};
        ok(lanczos_largest(M, MOST, 1e-12, square_times, &s, v, &value, &err), &err);
        for (size_t m = 0; m < M; m++)
            dot += v[m] * copy[(M - 1) * M + m];
        if (!(fabs(value - w[M - 1]) <= 1e-9 * (1 + fabs(w[M - 1]))) || !(fabs(dot) >= 1 - 1e-8))
            fail_msg("seed %llu, M = %zu: %.17g for %.17g, cosine %.17g", (unsigned long long)seed, M, value, w[M - 1],
                     dot);
    }
}

/* Columns that no row has keep 0, and cost the others nothing; the mean over the seeds is a tenth of the usual start's.
 */
static void robust_start_beats_the_spectral_one(void **state)
{
    (void)state;
    double spectral = 0, robust = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        phase_retrieval g = phase_retrieval_paper();
        hfsad_error err;
        dataset *d;
        double truth[25], start[25];
        g.seed = 4000 + seed;
        ok(phase_retrieval_generate(&g, &d, truth, &err), &err);
        ok(start_of(start, "spectral", d, 1, &err), &err);
        spectral += relative_error(25, start, truth, true) / 20;
        ok(start_of(start, "robust", d, 1, &err), &err);
        const double error = relative_error(25, start, truth, true);
        robust += error / 20;
        if (!(error < 0.2))
            fail_msg("seed %llu: the robust start's error is %g", (unsigned long long)g.seed, error);
        dataset_free(d);
    }
    assert_true(robust < spectral / 10);
}

/* With two edges most data sets have a column that no row has; with noise a hundred times the signal every eigenvalue
 * of the others may be negative, and the empty column's, 0, is not to be taken for the largest. */
static void empty_columns_are_left_out(void **state)
{
    (void)state;
    double mean = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        phase_retrieval g = phase_retrieval_paper();
        hfsad_error err;
        dataset *d;
        double truth[25], start[25];
        g.edges = 2;
        g.clients = 100;
        g.snr_db = -20;
        g.seed = 6000 + seed;
        ok(phase_retrieval_generate(&g, &d, truth, &err), &err);
        ok(start_of(start, "robust", d, 1, &err), &err);
        mean += relative_error(25, start, truth, true) / 20;
        dataset_free(d);
    }
    if (!(mean < 0.5))
        fail_msg("the mean error of the start is %g", mean);
}

/* 300 edges are more than are asked at once; leaves of the cloud's own come after them. The order of a sum shows in its
 * last bits, so that a wrong order fails. */
static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    enum { M = 7, EDGES = 300 };
    for (uint64_t seed = 1; seed <= 5; seed++) {
        rng r = {rng_key(seed, rng_stream("threads")), 0};
        hfsad_error err;
        dataset_builder *b;
        dataset *d;
        double x[M], one[M + 2], many[M + 2];
        ok(dataset_builder_create(&b, M, &err), &err);
        for (size_t i = 0; i < 1000; i++) {
            char edge[40], name[32];
            const size_t e = below(&r, EDGES + 1);
            if (e % 7)
                snprintf(edge, sizeof edge, "edge%zu", e);
            else
                snprintf(edge, sizeof edge, "north%zu/south", e);
            snprintf(name, sizeof name, "client%zu", i);
            for (size_t m = 0; m < M; m++)
                x[m] = rng_next_normal(&r) * exp(5 * rng_next_normal(&r));
            ok(dataset_builder_add(b, e ? edge : "", name, rng_next_normal(&r), x, NULL, 0, &err), &err);
        }
        ok(dataset_builder_finish(b, &d, &err), &err);
        local_survey s;
        ok(local_survey_make(&s, NULL, d, &err), &err);
        ask(&s, SURVEY_COLUMNS, 0, NULL, 0, M + 2, one);
        for (unsigned threads = 1; threads <= 5; threads += 2) {
            ok(pool_create(&s.threads, threads, &err), &err);
            ask(&s, SURVEY_COLUMNS, 0, NULL, 0, M + 2, many);
            if (memcmp(one, many, sizeof one) != 0)
                fail_msg("seed %llu: %u threads have other sums", (unsigned long long)seed, threads);
            pool_free(s.threads);
        }
        local_survey_free(&s);
        dataset_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_sums_over_rows),           cmocka_unit_test(eigenvectors_are_lapacks),
        cmocka_unit_test(robust_start_beats_the_spectral_one), cmocka_unit_test(empty_columns_are_left_out),
        cmocka_unit_test(threads_do_not_change_a_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
