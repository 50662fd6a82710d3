/* The features of generated rows, for the processor and for a device: number m goes to x[m * stride]. */
#ifndef HFSAD_MADE_DRAWS_H
#define HFSAD_MADE_DRAWS_H

#include "base/rng.h"

/* N(0, I) on the coordinates to keep. All are drawn, so that the values do not depend on which are kept. */
RNG_FN void draw_masked(uint64_t key, size_t M, const double *keep, double *x, size_t stride)
{
    rng r = {key, 0};
    for (size_t m = 0; m < M; m++) {
        const double value = rng_next_normal(&r);
        x[m * stride] = keep[m] != 0 ? value : 0;
    }
}

/* Row number `row` of a client: a stationary autoregression along the features has the covariances rho^|i-j|. */
RNG_FN void draw_correlated(uint64_t key, uint64_t row, uint64_t centre_key, size_t M, double rho, double shift,
                            double *x, size_t stride)
{
    const double fresh = sqrt((1 - rho) * (1 + rho));
    rng r = {key, 2 * M * row}, centre = {centre_key, 0};
    double last = 0;
    for (size_t m = 0; m < M; m++) {
        const double drawn = rng_next_normal(&r);
        last = m ? rho * last + fresh * drawn : drawn;
        x[m * stride] = shift > 0 ? last + shift * rng_next_normal(&centre) : last;
    }
}

/* How one row per client is drawn; made by data/generated.h. Clients are counted from 1. */
typedef struct {
    uint64_t seed, stream; /* stream: of a client's name before its number */
    double rho, shift;     /* of draw_correlated; not used if there are masks */
} feature_law;

/* keep: of the client's edge; NULL: correlated features. */
RNG_FN void draw_client(const feature_law *law, uint64_t number, const double *keep, size_t M, double *x, size_t stride)
{
    const uint64_t name = rng_stream_number(law->stream, number);
    if (keep)
        draw_masked(rng_key(law->seed, name), M, keep, x, stride);
    else
        draw_correlated(rng_key(law->seed, rng_stream_more(name, "/features")), 0,
                        rng_key(law->seed, rng_stream_more(name, "/centre")), M, law->rho, law->shift, x, stride);
}

#endif
