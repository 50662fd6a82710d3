/*
 * Performance of models on held-out rows: the loss of every client, summed up the tree; shares of correct labels and of
 * covered rows; the non-zero coefficients of a model, compared with the truth if it is known.
 */
#ifndef HFSAD_OUT_MODEL_EVALUATION_H
#define HFSAD_OUT_MODEL_EVALUATION_H

#include "base/batch.h"
#include "out/measures.h"
#include "out/model_scoring.h"
#include "plan/labels.h"

/* Sums over the rows of a client, or of all clients below a node. A row counts by its weight. */
typedef struct {
    size_t rows;
    double weight;
    double loss;                   /* sum over the rows of weight times loss */
    double total;                  /* sum over the clients of f: sum or mean over a client's rows, by loss.scale */
    double labelled, right;        /* weight of the rows with labels, and of those predicted correctly */
    double ranked, covered, level; /* rows with the quantile loss: weight, weight with y <= prediction, sum of tau */
    measure_sums measures;
} row_figures;

/* Sums for one of several levels. */
typedef struct {
    double pinball, covered; /* sum of the losses; weight of the rows with y <= prediction */
} level_sums;

typedef struct {
    size_t nonzero; /* features with a non-zero coefficient, without the intercept */
    /* Set if the truth is known; NAN if they are 0/0. */
    double recall, precision;
    double relative_error; /* |w - t|^2 / |t|^2; for phase retrieval the smaller of the values for t and -t */
} support_figures;

/* Figures of the clients of a group. */
typedef struct {
    size_t clients;
    row_figures rows;
    double relative_error; /* mean over the models that the clients got; NAN if the truth is unknown */
} group_figures;

typedef struct {
    const scoring *scoring;
    const double *truth;          /* F numbers; NULL: not known */
    row_figures *nodes;           /* figures of the nodes of the data: n_inner, then n_leaves */
    bool labels, levels, numbers; /* whether any client has labels, quantiles or numbers */
    label_signs signs;
    double *confusion;                      /* several classes: weight of rows by class, predicted class; or NULL */
    level_sums *levels_by_node;             /* several levels: K for each node; otherwise NULL */
    level_sums *levels_by_group;            /* the same for each group */
    double *scores;                         /* scores of all rows, if there are labels; otherwise NULL */
    size_t worst_client;                    /* leaf with the largest loss; the first if several are equal */
    size_t worst_edge;                      /* inner node with the largest loss; 0: there are no edges */
    double median_loss;                     /* over the clients; the mean of the middle two if their number is even */
    size_t used_own, used_edge, used_cloud; /* number of clients by the kind of node whose model they got */
    const client_groups *sets;              /* NULL: no groups */
    group_figures *groups;                  /* sets->count */
} evaluation;

/* scoring and truth must outlive e. Refuses data without y. */
hfsad_status evaluation_create(evaluation *e, const scoring *s, const double *truth, hfsad_error *err);
/* Adds a leaf. Leaves must be added in order. scores: room for scoring.most_rows numbers. Refuses labels other than -1
 * and 1, or 0 and 1. */
hfsad_status evaluation_add(evaluation *e, size_t leaf, double *scores, hfsad_error *err);
/* Called after the last leaf. */
hfsad_status evaluation_finish(evaluation *e, hfsad_error *err);
/* Then fills `groups`. sets must outlive e; path: their file, for messages. An error if a client has no group. */
hfsad_status evaluation_split(evaluation *e, const client_groups *sets, const char *path, hfsad_error *err);
void evaluation_free(evaluation *e);

/* Whether some row has this measure. */
static inline bool evaluation_has(const evaluation *e, measure kind)
{
    return measure_kinds[kind].rows == ROWS_LABELS   ? e->labels
           : measure_kinds[kind].rows == ROWS_LEVELS ? e->levels
                                                     : e->numbers;
}

double mean_loss(const row_figures *f);
/* NAN if no row counts. */
double accuracy_of(const row_figures *f);
double coverage_of(const row_figures *f);
double level_of(const row_figures *f);

/* Number of levels of a model; 0 if it does not have several. */
size_t evaluation_levels(const evaluation *e);

/* The node whose model is reported for a node of the data: for a client the model that it got, for an inner node its
 * own; MODEL_NONE: none. */
uint32_t evaluation_model(const evaluation *e, size_t node);
support_figures evaluation_support(const evaluation *e, uint32_t model_node);
/* The node's name, "edge1/client7", cut to size. */
void evaluation_name(const evaluation *e, size_t node, char *buffer, size_t size);
enum { EVALUATION_NAME_SIZE = (HFSAD_TIERS_MAX + 1) * 256 };

/* evaluation.csv has a row per node of the data; evaluation.json has the figures of the whole. */
void evaluation_table(whole_file *f, const evaluation *e);
hfsad_status evaluation_summary(whole_file *f, const evaluation *e, model_choice with, const char *truth_path,
                                hfsad_error *err);

#endif
