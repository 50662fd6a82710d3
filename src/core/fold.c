#include "core/fold.h"

#include "core/kernels.h"
#include "data/dataset.h"

#include <string.h>

static void begin_run(fold *f)
{
    memset(f->partial, 0, f->lanes * f->M * sizeof *f->partial);
    memset(f->partial_sigma, 0, sizeof f->partial_sigma);
}

static double total_of(const double p[8])
{
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

static void end_run(fold *f)
{
    for (size_t m = 0; m < f->M; m++) {
        double p[8] = {0};
        for (uint32_t lane = 0; lane < f->lanes; lane++)
            p[lane] = f->partial[lane * f->M + m];
        f->sum_u[m] += total_of(p);
    }
    f->sum_sigma += total_of(f->partial_sigma);
}

void fold_begin(fold *f, size_t M, double *partial, double *sum_u)
{
    *f = (fold){.M = M, .slots = run_slots(M), .lanes = tree_lanes(M), .partial = partial, .sum_u = sum_u};
    memset(sum_u, 0, M * sizeof *sum_u);
    begin_run(f);
}

void fold_add(fold *f, const double *u, double sigma)
{
    if (f->next && f->next % f->slots == 0) {
        end_run(f);
        begin_run(f);
    }
    const size_t lane = f->next++ % f->lanes;
    kernels()->add(f->M, f->partial + lane * f->M, u);
    f->partial_sigma[lane] += sigma;
}

void fold_end(fold *f)
{
    if (f->next)
        end_run(f);
}
