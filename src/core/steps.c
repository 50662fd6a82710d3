/* The link, leaf, inner and root steps on plain rows, which an embedded client, an edge and the cloud call. */
#include "core/kernels.h"
#include "math/box.h"

#include <math.h>
#include <string.h>

static const double ROOT_MOST = 1e8;

/* growth^n by repeated squaring, so that every machine rounds alike. */
static double power(double growth, uint64_t n)
{
    double result = 1;
    for (; n > 0 && result < ROOT_MOST; n >>= 1) {
        if (n & 1)
            result *= growth;
        growth *= growth;
    }
    return result;
}

double hfsad_schedule_root(const hfsad_schedule *s, uint64_t k)
{
    if (!(s->growth > 0) || (double)k <= s->turn)
        return sqrt((double)k);
    return fmin(sqrt(s->turn) * power(s->growth, k - (uint64_t)s->turn), ROOT_MOST);
}

double hfsad_schedule_sigma(const hfsad_schedule *s, uint64_t k)
{
    return s->c * hfsad_schedule_root(s, k);
}

double hfsad_schedule_mu(const hfsad_schedule *s, uint64_t k)
{
    return s->alpha / hfsad_schedule_root(s, k);
}

void hfsad_link_start(hfsad_link *link, size_t M, const double *start)
{
    memcpy(link->z, start, M * sizeof *start);
    memcpy(link->q, start, M * sizeof *start);
    link->k = 0;
}

void hfsad_link_step(const hfsad_link_rule *rule, hfsad_link *link, size_t M, const double *w_child,
                     const double *w_parent)
{
    (void)kernels()->link_step(rule, link, M, w_child, w_parent);
}

double hfsad_link_message(const hfsad_link_rule *rule, const hfsad_link *link, size_t M, double *u)
{
    return kernels()->link_message(rule, link, M, u);
}

size_t hfsad_loss_scratch(const hfsad_loss *loss, size_t M)
{
    return M + (isfinite(loss->box) ? box_scratch(M) : 0);
}

void hfsad_loss_prox(const hfsad_loss *loss, size_t M, const double *x, double y, double n, const double *v,
                     double sigma, double *w, double *scratch)
{
    kernels()->loss_prox(loss, M, x, y, n, v, sigma, w, scratch);
}

void hfsad_leaf_step(const hfsad_leaf *leaf, const hfsad_link_rule *rule, hfsad_link *link, size_t M,
                     const double *w_parent, double *w, double *scratch)
{
    leaf_run run = {
        .M = M,
        .count = 1,
        .lanes = 1,
        .loss = leaf->loss,
        .rule = rule,
        .local_steps = 1,
        .x = leaf->x,
        .y = &leaf->y,
        .n = &leaf->n,
        .z = link->z,
        .q = link->q,
        .w = w,
        .k = &link->k,
        .w_parent = w_parent,
        .scratch = scratch,
    };
    kernels()->leaf_step(&run);
}

double inner_step(const hfsad_penalty *prior, const hfsad_link_rule *rule, hfsad_link *link, size_t M,
                  const double *sum_u, double sum_sigma, const double *w_parent, double *w)
{
    if (link)
        link->k++;
    kernels()->inner_update(prior, rule, link, M, sum_u, sum_sigma, w);
    return link ? kernels()->link_step(rule, link, M, w, w_parent) : 0;
}

void hfsad_inner_step(const hfsad_penalty *prior, const hfsad_link_rule *rule, hfsad_link *link, size_t M,
                      const double *sum_u, double sum_sigma, const double *w_parent, double *w)
{
    (void)inner_step(prior, rule, link, M, sum_u, sum_sigma, w_parent, w);
}

void hfsad_root_step(const hfsad_penalty *prior, size_t M, const double *sum_u, double sum_sigma, double *w)
{
    (void)inner_step(prior, NULL, NULL, M, sum_u, sum_sigma, NULL, w);
}
