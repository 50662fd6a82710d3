/* What `hfsad compare` compares: the traces of runs, read from their output folders. */
#ifndef HFSAD_CLI_COMPARE_H
#define HFSAD_CLI_COMPARE_H

#include "base/batch.h"
#include "dash/history.h"

#include <stdio.h>

/* The columns of trace.csv that are compared. The first few locate a row, the others are the choices of --metric, the
 * default first. */
#define COMPARE_PLACES(X)                                                                                              \
    X(iteration)                                                                                                       \
    X(seconds)                                                                                                         \
    X(bytes_up)                                                                                                        \
    X(bytes_down)
#define COMPARE_METRICS(X)                                                                                             \
    X(consensus_objective)                                                                                             \
    X(objective)                                                                                                       \
    X(relative_error)                                                                                                  \
    X(consensus_gap)                                                                                                   \
    X(primal_residual)                                                                                                 \
    X(dual_residual)                                                                                                   \
    X(smoothing_gap)

typedef enum {
#define COMPARE_ENUM(name) COMPARE_##name,
    COMPARE_PLACES(COMPARE_ENUM) COMPARE_METRICS(COMPARE_ENUM)
#undef COMPARE_ENUM
        COMPARE_COLUMNS
} compare_column;

extern const char *const compare_names[COMPARE_COLUMNS + 1]; /* ends with NULL */

typedef struct {
    char *name;   /* in tables, plot and compare.csv */
    char *folder; /* where trace.csv and summary.json lie */
    char algorithm[32];
    double edge_rounds;
    size_t rows;
    double *column[COMPARE_COLUMNS]; /* rows numbers each, NAN if the trace has none */
} compared_run;

/* Fills the other members from r->folder. HFSAD_ERROR_INPUT if the run has not ended or the folder holds no run. */
hfsad_status compared_run_read(compared_run *r, hfsad_error *err);
void compared_run_free(compared_run *r);
/* Whether a word can name a run of the history, and that run. */
bool compared_run_is_number(const char *word);
hfsad_status compared_run_recall(compared_run *r, history *h, const char *word, hfsad_error *err);

typedef enum { AGAINST_ITERATIONS, AGAINST_ROUNDS, AGAINST_BYTES, AGAINST_SECONDS } compare_against;

enum { ACCURACIES_MOST = 8 };

typedef struct {
    size_t n_runs;
    compared_run *runs;
    compare_column metric;
    compare_against against;
    size_t n_accuracies;
    double accuracies[ACCURACIES_MOST];
} comparison;

/* Writes compare.csv, compare.md and, if requested, compare.png and compare.svg into a batch that was begun. */
hfsad_status comparison_write(const comparison *c, file_batch *files, bool plotted, hfsad_error *err);
/* The text of compare.md. */
void comparison_print(FILE *out, const comparison *c);

#endif
