/* The data of the paper's experiment; see generator.h. */
#include "made/generator.h"

#include "base/alloc.h"
#include "base/error.h"
#include "made/draws.h"
#include "math/dot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The mixture: exponential with rate lambda_1 with this probability, with rate lambda_1 / 10 otherwise. */
static const double USUAL = 0.9, SLOWER = 10;
/* Its second moment times lambda_1^2: 2 (0.9 + 0.1 * 100) */
static const double SECOND_MOMENT = 21.8;

phase_retrieval phase_retrieval_paper(void)
{
    return (phase_retrieval){
        .edges = 5, .clients = 50, .features = 25, .snr_db = 20, .keep_x = 0.8, .keep_w = 0.3, .seed = 1};
}

size_t kept_count(double ratio, size_t M)
{
    /* 0.07 * 100 is slightly above 7 in binary; the user means 7. */
    const size_t kept = (size_t)ceil(ratio * (double)M - 1e-9 * (double)M);
    return kept < 1 ? 1 : kept > M ? M : kept;
}

double noise_scale(size_t n, double sum, double snr_db)
{
    return sqrt(sum / ((double)n * SECOND_MOMENT * pow(10, snr_db / 10)));
}

double noise_draw(double scale, double pick, double u)
{
    return -same_log(u) * scale * (pick < USUAL ? 1 : SLOWER);
}

static rng draws_of(const phase_retrieval *g, const char *what, size_t number, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "phase-retrieval/%s%zu%s", what, number, part);
    return (rng){.key = rng_key(g->seed, rng_stream(name)), .counter = 0};
}

void support_draw(rng r, size_t kept, size_t M, size_t *index, double *keep)
{
    for (size_t m = 0; m < M; m++) {
        index[m] = m;
        keep[m] = 0;
    }
    rng_shuffle(&r, index, M);
    for (size_t i = 0; i < kept; i++)
        keep[index[i]] = 1;
}

void phase_retrieval_support(const phase_retrieval *g, size_t l, size_t *index, double *keep)
{
    support_draw(draws_of(g, "edge", l, "/support"), kept_count(g->keep_x, g->features), g->features, index, keep);
}

double phase_retrieval_observe(const phase_retrieval *g, size_t number, double s, double scale)
{
    rng r = draws_of(g, "client", number, "/noise");
    const double pick = rng_next_uniform(&r), u = rng_next_uniform(&r);
    return s * s + noise_draw(scale, pick, u);
}

typedef struct {
    double *keep, *row;
    size_t *index;
} room;

static size_t rows_of(const phase_retrieval *g)
{
    return g->rows ? g->rows : 1;
}

/* Calls use(context, edge, number, x) for every observation in order, until it returns false; both count from 1. */
static void each_observation(const phase_retrieval *g, room *r, void *context,
                             bool (*use)(void *context, size_t edge, size_t number, const double *x))
{
    const size_t per_edge = g->clients * rows_of(g);
    bool more = true;
    for (size_t l = 1; l <= g->edges && more; l++) {
        phase_retrieval_support(g, l, r->index, r->keep);
        for (size_t i = 1; i <= per_edge && more; i++) {
            const size_t number = (l - 1) * per_edge + i;
            draw_masked(draws_of(g, "client", number, "").key, g->features, r->keep, r->row, 1);
            more = use(context, l, number, r->row);
        }
    }
}

/* The noise level needs all <x,w> before the first y, so the rows are drawn twice instead of kept. */
typedef struct {
    const phase_retrieval *g;
    const double *truth;
    double sum, scale;
    row_use use;
    void *context;
} making;

static bool add_square(void *context, size_t edge, size_t number, const double *x)
{
    making *k = context;
    (void)edge, (void)number;
    const double s = dot8(k->g->features, x, k->truth);
    k->sum += s * s;
    return true;
}

static bool give_observation(void *context, size_t edge, size_t number, const double *x)
{
    const making *k = context;
    const double s = dot8(k->g->features, x, k->truth);
    char path[32], name[32];
    snprintf(path, sizeof path, "edge%zu", edge);
    snprintf(name, sizeof name, "client%zu", (number - 1) / rows_of(k->g) + 1);
    const generated_row row = {path, name, phase_retrieval_observe(k->g, number, s, k->scale), x};
    return k->use(k->context, &row);
}

static hfsad_status room_make(room *r, size_t M, hfsad_error *err)
{
    *r = (room){alloc_raw(M, sizeof(double)), alloc_raw(M, sizeof(double)), alloc_raw(M, sizeof(size_t))};
    if (r->keep && r->row && r->index)
        return HFSAD_OK;
    return error_memory(err, 3 * M * sizeof(double), "one row of the data");
}

static void room_free(room *r)
{
    free(r->keep);
    free(r->row);
    free(r->index);
}

static void draw_truth(const phase_retrieval *g, room *r, double *truth)
{
    const size_t M = g->features;
    support_draw(draws_of(g, "w", 0, "/support"), kept_count(g->keep_w, M), M, r->index, r->keep);
    draw_masked(draws_of(g, "w", 0, "").key, M, r->keep, truth, 1);
}

hfsad_status phase_retrieval_truth(const phase_retrieval *g, double *truth, hfsad_error *err)
{
    room r;
    const hfsad_status status = room_make(&r, g->features, err);
    if (!status)
        draw_truth(g, &r, truth);
    room_free(&r);
    return status;
}

hfsad_status phase_retrieval_prepare(const phase_retrieval *g, double *truth, double *scale, hfsad_error *err)
{
    const size_t M = g->features;
    room r;
    const hfsad_status status = room_make(&r, M, err);
    if (!status) {
        draw_truth(g, &r, truth);
        making k = {.g = g, .truth = truth};
        each_observation(g, &r, &k, add_square);
        *scale = noise_scale(g->edges * g->clients * rows_of(g), k.sum, g->snr_db);
    }
    room_free(&r);
    return status;
}

hfsad_status phase_retrieval_rows(const phase_retrieval *g, const double *truth, double scale, row_use use,
                                  void *context, hfsad_error *err)
{
    room r;
    const hfsad_status status = room_make(&r, g->features, err);
    if (!status) {
        making k = {.g = g, .truth = truth, .scale = scale, .use = use, .context = context};
        each_observation(g, &r, &k, give_observation);
    }
    room_free(&r);
    return status;
}
