/*
 * Groups of clients as a mixture of models w_1 ... w_K (docs/personal.md): what the cloud asks, and what a client
 * answers. Client j belongs to group k with the weight
 *
 *     p_jk ~ share_k exp(-f_jk / T)        f_jk: its loss with w_k;  T: scale of the loss, 1 for classes and counts
 *
 * which it computes from the models of the question and does not send. Every answer is a vector, and the cloud needs
 * only the sum over all clients. A question contains everything that its answer depends on, so a restarted client gives
 * the same answer.
 */
#ifndef HFSAD_PERSONAL_MIXTURE_H
#define HFSAD_PERSONAL_MIXTURE_H

#include "data/rows.h"
#include "plan/questions.h"

enum { MIXTURE_MOST = 32, MIXTURE_BINS = 64 };

/* A mixture as numbers: K, T, the shares (K), the models (K M). */
typedef struct {
    size_t K;
    double T;
    const double *share, *w;
} mixture;

/* The rows of GROUPS_QUESTIONS (plan/questions.h).
 *
 * COLUMNS: answer: sums over rows of c x_m^2 (M) and of c, a row's weight
 *
 * STATS: answer: mixture_totals, then of every group mixture_sums, gradient (M), second derivative
 *
 * SPREAD: answer: of every group the sums over clients of p g g'/n and over rows of p c slope^2 x x', lower
 *   triangles; then the weight of its clients
 *
 * CUTS: answer: of every group the histogram of its clients along its direction (MIXTURE_BINS weights) and the
 *   sums of weight times place
 *
 * CROSS: answer: the sums of d_j and d_j^2, d_j: what the second mixture takes off the client's loss on the half
 *   of its rows that the weights do not come from
 *
 * MEMBERS: answer: p of the clients numbered from `first` on, K numbers each
 *
 * SIZES: answer: 1 for the group of the client's largest weight, 0 for the others (K)
 */
typedef enum {
#define MIXTURE_ENUM(name, ...) MIXTURE_##name,
    GROUPS_QUESTIONS(MIXTURE_ENUM)
#undef MIXTURE_ENUM
        MIXTURE_KINDS
} mixture_kind;

enum { MIXTURE_LIKELIHOOD, MIXTURE_ROWS, MIXTURE_TOTALS }; /* sum of -log sum_k share exp(-f/T); weight of all rows */
enum { MIXTURE_CLIENTS, MIXTURE_LOSS, MIXTURE_SUMS };      /* sums of p and of p f */

/* The cut of a group in two: clients whose coordinate <u, g_j> / sqrt(n_j) is beyond `at` move to a new group after the
 * last. */
typedef struct {
    size_t group;
    double at;
    double mix; /* share of a client's weight that is divided like the whole group */
    const double *u;
} mixture_cut;

typedef struct {
    mixture_kind kind;
    mixture now;     /* point at which losses and derivatives are evaluated */
    double kappa;    /* half the width over which kinks are rounded */
    mixture from;    /* K = 0: the weights are those of `now`. STATS: they are those of this mixture, cut. CROSS: the
                        mixture that `now` is compared with */
    mixture_cut cut; /* of `from` */
    const double *u; /* CUTS: K directions */
    const double *reach; /* CUTS: K; bins span from -reach to reach */
    size_t first, count; /* MEMBERS */
} mixture_question;

/* Number of elements of a lower triangle, stored row by row. */
static inline size_t triangle(size_t n)
{
    return n * (n + 1) / 2;
}

size_t mixture_length(const mixture_question *q, size_t M);
/* A question as numbers, and back; false: the numbers are not a question. The question's pointers refer to `values`. */
size_t mixture_count(const mixture_question *q, size_t M);
void mixture_pack(const mixture_question *q, size_t M, double *values);
bool mixture_unpack(mixture_question *q, mixture_kind kind, size_t M, const double *values, size_t count);

typedef struct {
    const hfsad_loss *loss;
    client_rows rows;
    size_t M, number; /* number: index of the client */
    double *scratch;  /* mixture_scratch(M) */
} mixture_client;

size_t mixture_scratch(size_t M);
/* answer: mixture_length numbers, all written. */
void mixture_answer(const mixture_client *client, const mixture_question *q, double *answer);
/* A client's model: the groups' models weighted by the client's weights. */
void mixture_model(const mixture *m, size_t M, const double *p, double *w);
/* The group of the largest of K weights; the first if several are equal. */
size_t mixture_largest(const double *p, size_t K);
/* p of a client: K numbers. */
void mixture_weights(const mixture_client *client, const mixture *m, double *p);

#endif
