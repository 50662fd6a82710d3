/*
 * A trained model, read from the output folder of a run: the models of model.csv and, from summary.json, the loss of
 * every client, the number of inner nodes, and the groups.
 */
#ifndef HFSAD_OUT_MODEL_H
#define HFSAD_OUT_MODEL_H

#include "base/patterns.h"
#include "core/scores.h"
#include "data/dataset.h"
#include "out/client_groups.h"
#include "spec/settings.h"

enum { MODEL_NONE = 0xffffffff };

/* The loss settings in an entry of the spec's `overrides`; settings that the entry does not have are unset. */
typedef struct {
    char *pattern;
    LOSS_settings loss;
} model_override;

typedef struct {
    size_t n_nodes, n_inner; /* order: the cloud, the other inner nodes, then the clients */
    size_t F;                /* numbers of a model without the intercept: one per feature, or per feature and class */
    bool intercept;          /* the last number of every model is an intercept */
    size_t classes;          /* classes with a score each, whose intercepts are among the F; 0: one score */
    score_losses scores;     /* losses of these scores; K is 0 if the scores are those of softmax.h */
    size_t features;         /* features of the data */
    double *scales;          /* divisors of the features from standardisation; NULL: not standardised */
    char *feature_names;     /* one text per feature, each with a terminating 0; NULL: unknown */
    table_settings table;    /* how rows are read; texts and means belong to the model */
    double *w;               /* n_nodes models of F numbers, each followed by the intercept if there is one */
    size_t *name_at;         /* n_nodes offsets into names */
    char *names;
    uint32_t *slots; /* hash table from names to nodes, open addressing */
    size_t n_slots;  /* a power of 2 */
    LOSS_settings loss;
    size_t n_overrides;
    model_override *overrides;
    pattern_list patterns; /* patterns of the overrides */
    client_groups groups;  /* groups that the run found, named 1 (the cloud's), 2, …; none if no link lets go */
} model;

/* HFSAD_ERROR_INPUT if the folder is missing, was not written by hfsad, is cut short, or has a number that is not
 * finite. */
hfsad_status model_read(model **m, const char *folder, hfsad_error *err);
/* Reads the models only, of any nodes, from an output folder or a model.csv. n_inner is 0 and no loss is known. */
hfsad_status model_read_models(model **m, const char *path, hfsad_error *err);
/* Makes the model from a run in memory. */
hfsad_status model_of_run(model **m, const hfsad_run *run, hfsad_error *err);
void model_free(model *m);

/* How tables are read, as the settings in a summary state. root: the summary. */
hfsad_status model_read_columns(model *m, const void *root, hfsad_error *err);
void model_free_columns(model *m);

/* For code that fills a model: makes the table of names (path is for messages), and the patterns of the overrides;
 * false: no memory. */
hfsad_status model_index(model *m, const char *path, hfsad_error *err);
bool model_list_patterns(model *m);

/* The node with this name ("cloud", "edge1", "edge1/client7"); MODEL_NONE if there is none. */
uint32_t model_find(const model *m, const char *name);

static inline size_t model_width(const model *m)
{
    return m->F + m->intercept;
}

/* Numbers of a model that multiply features. */
static inline size_t model_slopes(const model *m)
{
    return m->classes ? m->classes * m->features : m->F;
}

static inline const double *model_weights(const model *m, uint32_t node)
{
    return m->w + node * model_width(m);
}

static inline const char *model_name(const model *m, uint32_t node)
{
    return m->names + m->name_at[node];
}

/* The loss of a client: the run's, with the overrides that match its name. */
typedef struct {
    hfsad_loss loss; /* without the box */
    bool mean;       /* f is the mean over the rows, not their sum */
} client_law;
client_law model_law(const model *m, const char *client);

#endif
