/*
 * Data that is drawn instead of read. A spec names it by the words of a command and its options,
 *
 *     data: generate phase-retrieval edges=5 clients=50 seed=7
 *
 * and has the rows of data.csv that `hfsad generate` would write. With one row per client, x is drawn at its
 * first use (dataset_x): a device draws its own copy (run/device.h), and the host then needs no memory for it.
 */
#ifndef HFSAD_DATA_GENERATED_H
#define HFSAD_DATA_GENERATED_H

#include "data/columns.h"
#include "data/dataset.h"
#include "made/draws.h"
#include "made/generator_population.h"

/* Rows into a data set: begin, row_collect as the row_use, end. */
typedef struct {
    dataset_builder *builder;
    hfsad_status status;
    hfsad_error *err;
} row_collector;
hfsad_status row_collector_begin(row_collector *c, size_t features, hfsad_error *err);
bool row_collect(void *context, const generated_row *row);
/* status: the generator's own. Frees the builder in any case. */
hfsad_status row_collector_end(row_collector *c, hfsad_status status, dataset **d);

/* The data set, with edges edge1, edge2, … and clients numbered through the federation, and the true w in truth. */
hfsad_status phase_retrieval_generate(const phase_retrieval *g, dataset **d, double *truth, hfsad_error *err);
hfsad_status population_dataset(const population *p, population_part part, size_t rows, dataset **d, hfsad_error *err);

/* text: such a command (base/read_file.h, is_command). Refuses settings of columns. */
hfsad_status generated_read(dataset **d, const char *text, const table_settings *table, bool as_rows, hfsad_error *err);
/* The true model, which `hfsad generate` writes to truth.csv. */
hfsad_status generated_truth(const char *text, double *truth, size_t count, hfsad_error *err);

typedef struct generated generated;
/* How a device draws x. keep: M numbers for every edge; NULL: no masks. */
const feature_law *generated_features(const generated *g, const double **keep, size_t *clients);
/* Whether x is there; if not, it is drawn. */
bool generated_is_drawn(const generated *g);
void generated_draw(generated *g, const dataset *d);
/* The row of one client, by any thread. */
void generated_row_of(const generated *g, size_t leaf, double *x);
void generated_free(generated *g);

#endif
