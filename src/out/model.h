/*
 * A trained model, read back from the output folder of a run: the models of model.csv and, of summary.json, the loss of
 * every client, how many of the nodes are inner ones, and the groups.
 */
#ifndef HFSAD_OUT_MODEL_H
#define HFSAD_OUT_MODEL_H

#include "base/patterns.h"
#include "core/scores.h"
#include "data/dataset.h"
#include "out/client_groups.h"
#include "spec/settings.h"

enum { MODEL_NONE = 0xffffffff };

/* What an entry of the spec's `overrides` says of the loss; what it does not say is unset. */
typedef struct {
    char *pattern;
    LOSS_settings loss;
} model_override;

typedef struct {
    size_t n_nodes, n_inner; /* the cloud, the other inner nodes, then the clients */
    size_t F;                /* numbers of a model without the intercept: one for a feature, or as many as classes */
    bool intercept;          /* the last number of every model is one */
    size_t classes;          /* with scores of their own, their intercepts among the F; 0: one score */
    score_losses scores;     /* that they belong to; its K is 0 if they are those of softmax.h */
    size_t features;         /* of the data */
    double *scales;          /* of the features: by what standardisation divided them; NULL: there was none */
    char *feature_names;     /* as many texts, each closed by a 0; NULL: unknown */
    table_settings table;    /* how rows are read; texts and means are the model's */
    double *w;               /* n_nodes models of F numbers and, if there is one, the intercept */
    size_t *name_at;         /* n_nodes offsets into names */
    char *names;
    uint32_t *slots; /* names to nodes, open addressing */
    size_t n_slots;  /* a power of 2 */
    LOSS_settings loss;
    size_t n_overrides;
    model_override *overrides;
    pattern_list patterns; /* of these */
    client_groups groups;  /* that the run found, called 1 (the cloud's), 2, …; none if no link lets go */
} model;

/* A folder that is missing, of something else, cut short or with numbers that are not finite is HFSAD_ERROR_INPUT. */
hfsad_status model_read(model **m, const char *folder, hfsad_error *err);
/* The models alone, of whichever nodes, from an output folder or a model.csv; n_inner is 0 and no loss is known. */
hfsad_status model_read_models(model **m, const char *path, hfsad_error *err);
/* The same of a run in memory. */
hfsad_status model_of_run(model **m, const hfsad_run *run, hfsad_error *err);
void model_free(model *m);

/* How the spec of a summary says that tables are read. root: the summary. */
hfsad_status model_read_columns(model *m, const void *root, hfsad_error *err);
void model_free_columns(model *m);

/* For those that fill one: the table of names; path is for messages. And the patterns of the overrides; false: no
 * memory. */
hfsad_status model_index(model *m, const char *path, hfsad_error *err);
bool model_list_patterns(model *m);

/* The node of that name: "cloud", "edge1", "edge1/client7"; MODEL_NONE if there is none. */
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
