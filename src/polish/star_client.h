/*
 * A client's part in the star (star.h). In the metric
 *
 *     B_j = c_j/C (G/4 + D) + 3/4 G_j        G = sum over all rows of c x x', G_j: over this client's; D: a small
 * diagonal
 *
 * whose sum over the clients is G + D, it answers the cloud's z with
 *
 *     x = argmin f_j(x) + sigma/2 |x - v|^2_B,  v = 2 z - s       s <- anchor/(t+2) + (t+1)/(t+2) (s + 2 (x - z))
 *
 * by coordinate ascent on the rows' slopes a_r, which are the multipliers of answers.h: x = v - B^-1 sum a_r x_r /
 * sigma.
 */
#ifndef HFSAD_POLISH_STAR_CLIENT_H
#define HFSAD_POLISH_STAR_CLIENT_H

#include "polish/answers.h"

/* Numbers after the sum of a_r x_r. */
enum {
    STAR_LOSS,     /* at z */
    STAR_RESIDUAL, /* |x - z|^2_B */
    STAR_MOVED,    /* squared distance, in B, of sigma (s - z) from its value at the last restart */
    STAR_GAP,      /* polish_gap of the rows, at z */
    STAR_NUMBERS
};

/* Allocates a star, and computes G_j. answer: G_j, then the sum of c. false: no memory. */
bool star_client_gram(const polish_client *o, bool diagonal, double *answer);
/* Then sets the metric. answer: 1, or 0 without memory; then c times the loss's likely second derivative. kappa: the
 * scale of y. */
void star_client_begin(const polish_client *o, const polish_question *question, double *answer);
/* question->kappa: sigma; beta: by how much the last sweep may move x; step: t. */
void star_client_round(const polish_client *o, const polish_question *question, double *answer);
/* Before the first round of a later star with the same metric (star_memory). answer: sum of a_r x_r, M numbers. Losses
 * without kinks have the slopes at w, the others those that they were left with. */
void star_client_resume(const polish_client *o, const double *w, double sigma, double *answer);
void star_client_free(star_client *c);

/* A client with a star for each of K scores, and room for that many numbers: *all, or a new one. NULL: no memory. */
star_client *star_client_split(star_client **all, size_t K, size_t room);
star_client **star_client_part(star_client *all, size_t k);
double *star_client_room(star_client *all);

#endif
