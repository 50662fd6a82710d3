/*
 * The inner loops of the steps, compiled for AVX-512, AVX2 and plain C from one source (kernels_body.h) and
 * chosen at run time. All give the same bits.
 *
 * Order of summation. The leaves of a parent are cut into runs of run_slots(M) consecutive slots. In a run, leaf i adds
 * to partial sum i mod tree_lanes(M); the partial sums of a run are added up as vec_sum does; the runs' sums are added
 * in order. A driver that receives the leaves' messages one by one gets the same bits by fold.h.
 */
#ifndef HFSAD_CORE_KERNELS_H
#define HFSAD_CORE_KERNELS_H

#include "core/rows_prox.h"

/* Consecutive leaves of one parent and of one class, in the block layout of data/dataset.h. */
typedef struct {
    size_t M, count;
    uint32_t lanes; /* 8 or 1 */
    const hfsad_loss *loss;
    const hfsad_link_rule *rule;
    uint32_t local_steps;
    const double *x, *y, *n;
    double *z, *q;
    double *w; /* NULL: not kept */
    uint32_t *k;
    const uint8_t *active; /* one per leaf; NULL: all leaves take part */
    const double *w_parent;
    double split;     /* of core/precision.h; 0: z and q are kept as they are */
    bool majorant;    /* phase retrieval: the prox of the majorant around <x, w_parent> */
    double *scratch;  /* leaf_run_scratch doubles */
    double *sum_u;    /* out, M: sum over the run of u */
    double sum_sigma; /* out: sum over the run of sigma(k+1) */
    bool want_dual;
    double dual; /* out, if want_dual: sum of sigma^2 (|dz|^2 + |dq|^2) over the links that stepped */
} leaf_run;

/* Number of M * 8 vectors in the scratch of a run in blocks: sums, two centres, z before a step, w in the box. A leaf's
 * x and w and the box's events follow them. */
enum { LEAF_RUN_ROWS = 5 };
size_t leaf_run_scratch(size_t M);

/* A leaf with many rows. */
typedef struct {
    rows_problem problem;
    const hfsad_link_rule *rule;
    double *z, *q, *w;
    uint32_t *k;
    const double *w_parent;
    bool majorant;  /* as in leaf_run; the exact method only */
    double *centre; /* M */
} rows_leaf;

/* Sums that a measurement forms over links. */
typedef struct {
    double loss, consensus_loss;             /* f at w_child and at w_0; for leaves only */
    double penalty, smoothing;               /* R_c, and by how much the smoothed R_c exceeds it */
    double primal;                           /* |w_child - z|^2 + |w_parent - q|^2 */
    double gap;                              /* largest |w_child - w_0| over all coordinates */
    double size_w, size_zq, size_multiplier; /* squared norms for the stop rule */
} link_sums;

typedef struct {
    const char *name;
    void (*leaf_run)(leaf_run *run);
    /* one step of a run that is a single leaf stored as a row; w is not NULL; scratch: M numbers and the loss's
     * scratch; no sums */
    void (*leaf_step)(leaf_run *run);
    void (*loss_prox)(const hfsad_loss *loss, size_t M, const double *x, double y, double n, const double *v,
                      double sigma, double *w, double *scratch);
    /* one step of a leaf with many rows; returns sigma^2 (|dz|^2 + |dq|^2) */
    double (*rows_step)(const rows_leaf *leaf);
    /* loss of the rows at w */
    double (*rows_loss)(const rows_problem *problem, const double *w);
    /* the same, with a sub-gradient in g */
    double (*rows_subgradient)(const rows_problem *problem, const double *w, double *g);
    /* compares run->w (z if run->w is NULL) with w_parent and w_0 */
    void (*leaf_measure)(const leaf_run *run, const double *w0, link_sums *sums);
    /* returns sigma^2 (|dz|^2 + |dq|^2) */
    double (*link_step)(const hfsad_link_rule *rule, hfsad_link *link, size_t M, const double *w_child,
                        const double *w_parent);
    double (*link_message)(const hfsad_link_rule *rule, const hfsad_link *link, size_t M, double *u);
    void (*link_measure)(const hfsad_link_rule *rule, const hfsad_link *link, size_t M, const double *w_child,
                         const double *w_parent, const double *w0, link_sums *sums);
    /* w = prox_prior(scale * (sum_u + sigma z - Lambda); scale); link may be NULL (the root) */
    void (*inner_update)(const hfsad_penalty *prior, const hfsad_link_rule *rule, const hfsad_link *link, size_t M,
                         const double *sum_u, double sum_sigma, double *w);
    double (*prior_value)(const hfsad_penalty *prior, size_t M, const double *w);
    void (*add)(size_t M, double *sum, const double *term);
    double (*dot)(size_t M, const double *a, const double *b);
    /* product of a with four vectors that are `stride` numbers apart */
    void (*dot4)(size_t M, const double *a, const double *b, size_t stride, double *products);
    /* y += factor x */
    void (*add_scaled)(size_t M, double factor, const double *x, double *y);
    /* y += the sum of factors[i] times four vectors that are `stride` numbers apart */
    void (*add4)(size_t M, const double *factors, const double *x, size_t stride, double *y);
    /* y += factors[i] x[i], i = 0, 1, ... one after the other, each product rounded before it is added */
    void (*add_terms)(size_t M, size_t count, const double *factors, const double *const *x, double *y);
} kernel_table;

const kernel_table *kernels(void);
/* For tests and benchmarks: "plain", "avx2" or "avx512"; false if this machine does not support the instruction set. */
bool kernels_choose(const char *name);

extern const kernel_table kernels_plain;
#if defined(__x86_64__)
extern const kernel_table kernels_avx2, kernels_avx512;
#endif

/* The step of an inner node on the sum of its children's messages, then the step of its link on the parent's w. Returns
 * sigma^2 (|dz|^2 + |dq|^2). For the root, rule, link and parent are NULL. */
double inner_step(const hfsad_penalty *prior, const hfsad_link_rule *rule, hfsad_link *link, size_t M,
                  const double *sum_u, double sum_sigma, const double *w_parent, double *w);

#endif
