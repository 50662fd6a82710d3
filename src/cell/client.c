/* See client.h. */
#include "cell/client.h"

#include <string.h>

static double step_with_noise(const rows_leaf *leaf, client_noise *noise, bool *too_large)
{
    const size_t M = leaf->problem.M;
    hfsad_link link = {leaf->z, leaf->q, 0};
    memcpy(noise->z, leaf->z, M * sizeof *noise->z);
    memcpy(noise->q, leaf->q, M * sizeof *noise->q);
    rows_leaf one = *leaf;
    one.problem.pull = noise_pull(&noise->p->noise);
    one.problem.inexact = too_large;
    const double dual = kernels()->rows_step(&one);
    link.k = *leaf->k;
    if (noise->p->secure) {
        if (!noise_clip_link(noise->p, leaf->rule, &link, M, leaf->w_parent, noise->z, noise->q, noise->steps))
            *too_large = true;
        return dual;
    }
    memcpy(leaf->z, noise->z, M * sizeof *leaf->z); /* the link steps again, with the noise in w */
    memcpy(leaf->q, noise->q, M * sizeof *leaf->q);
    noise_model(&noise->p->noise, &noise->words, link.k, hfsad_schedule_sigma(&leaf->rule->schedule, link.k), M,
                leaf->w_parent, leaf->w, noise->steps);
    return kernels()->link_step(leaf->rule, &link, M, leaf->w, leaf->w_parent);
}

double client_steps(const rows_leaf *leaf, uint32_t times, client_noise *noise, bool *too_large)
{
    double dual = 0;
    for (; times > 0; times--)
        dual = noise ? step_with_noise(leaf, noise, too_large) : kernels()->rows_step(leaf);
    return dual;
}

void client_measure(const rows_leaf *leaf, const double *w, const double *w0, link_sums *sums)
{
    const hfsad_link link = {leaf->z, leaf->q, *leaf->k};
    sums->loss += kernels()->rows_loss(&leaf->problem, w);
    sums->consensus_loss += kernels()->rows_loss(&leaf->problem, w0);
    kernels()->link_measure(leaf->rule, &link, leaf->problem.M, w, leaf->w_parent, w0, sums);
}

const double *client_consensus(size_t M, const double *w0, const double *intercept, double *room)
{
    if (!intercept)
        return w0;
    memcpy(room, w0, (M - 1) * sizeof *room);
    room[M - 1] = *intercept;
    return room;
}
