/* Folds of cross-validation; see split.h. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/builder.h"
#include "data/rows.h"
#include "data/split.h"

#include <stdlib.h>
#include <string.h>

/* Sets the fold of every row. The folds of a client's rows start at the client's own number, so that clients with few
 * rows do not fill the first folds only. */
static void deal(const dataset *d, const fold_rule *rule, size_t *fold_of, size_t *order)
{
    char name[HFSAD_TIERS_MAX * 256 + 8] = "fold/";
    rng all = {rng_key(rule->seed, rng_stream("folds")), 0};
    for (size_t leaf = 0; leaf < d->n_leaves && rule->clients; leaf++)
        order[leaf] = leaf;
    if (rule->clients)
        rng_shuffle(&all, order, d->n_leaves);
    for (size_t i = 0; i < d->n_leaves; i++) {
        const size_t leaf = rule->clients ? order[i] : i, first = d->rows.first[leaf];
        const size_t count = d->rows.first[leaf + 1] - first;
        for (size_t r = 0; r < count && rule->clients; r++)
            fold_of[first + r] = i % rule->folds;
        if (rule->clients)
            continue;
        dataset_leaf_name(d, leaf, name + 5, sizeof name - 5);
        rng own = {rng_key(rule->seed, rng_stream(name)), 0};
        for (size_t r = 0; r < count; r++)
            order[r] = r;
        rng_shuffle(&own, order, count);
        for (size_t r = 0; r < count; r++)
            fold_of[first + order[r]] = (r + leaf) % rule->folds;
    }
}

static hfsad_status add_fold_row(dataset_builder *b, const client_rows *rows, size_t r, const char *path,
                                 const char *client, hfsad_error *err)
{
    const size_t first = row_from(rows, r), end = rows->start ? rows->start[r + 1] : first + rows->F;
    hfsad_status status = HFSAD_OK;
    if (builder_is_full(b))
        status = dataset_builder_reserve(b, 2 * rows->count + 1024, err);
    if (status)
        return status;
    if (!rows->start)
        memcpy(builder_next_row(b), rows->x + first, rows->F * sizeof *rows->x);
    for (size_t i = first; i < end && rows->start; i++)
        if (!builder_push(b, rows->column[i], rows->x[i]))
            return error_memory(err, (end - first) * sizeof(double), "a fold");
    const builder_entry entry = {.path = {path, strlen(path)},
                                 .client = {client, strlen(client)},
                                 .y = rows->y[r],
                                 .weight = row_weight(rows, r)};
    return builder_commit(b, &entry, err);
}

/* Counts the rows within the fold, or outside it. */
static hfsad_status gather(const dataset *d, const fold_rule *rule, const size_t *fold_of, bool within, dataset **made,
                           hfsad_error *err)
{
    dataset_builder *b = NULL;
    const bool sparse = d->rows.start != NULL;
    hfsad_status status = sparse ? builder_create_sparse(&b, err) : dataset_builder_create(&b, d->rows.F, err);
    if (status)
        return status;
    dataset_builder_use_rows(b);
    status = dataset_builder_reserve(b, d->n_rows, err);
    if (!status && sparse) {
        builder_widen(b, d->rows.F);
        status = builder_reserve_entries(b, d->rows.start[d->n_rows], err);
    }
    size_t taken = 0;
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        const char *path = d->inner[dataset_parent(d, leaf)].name, *client = d->names + d->leaf_name[leaf];
        for (size_t r = 0; r < rows.count && !status; r++) {
            if ((fold_of[d->rows.first[leaf] + r] == rule->fold) != within)
                continue;
            status = add_fold_row(b, &rows, r, strcmp(path, "cloud") ? path : "", client, err);
            taken++;
        }
    }
    if (!status && !taken)
        status = error_set(err, HFSAD_ERROR_INPUT, "fold %zu of %zu has no %s; give fewer folds", rule->fold + 1,
                           rule->folds, rule->clients ? "client" : "row");
    if (status) {
        dataset_builder_free(b);
        return status;
    }
    return dataset_builder_finish(b, made, err);
}

/* Copies what the table states about its columns. */
static bool copy_columns(dataset *to, const dataset *d)
{
    size_t size = 0;
    for (size_t m = 0; m < d->rows.F && d->feature_names; m++)
        size += strlen(d->feature_names + size) + 1;
    to->feature_names = size ? alloc_raw(size, 1) : NULL;
    to->categorical = d->categorical ? strdup(d->categorical) : NULL;
    to->labels = d->labels ? strdup(d->labels) : NULL;
    to->means = d->means ? alloc_raw(d->n_means, sizeof *d->means) : NULL;
    if ((size && !to->feature_names) || (d->categorical && !to->categorical) || (d->labels && !to->labels) ||
        (d->means && !to->means))
        return false;
    if (size)
        memcpy(to->feature_names, d->feature_names, size);
    if (d->means)
        memcpy(to->means, d->means, d->n_means * sizeof *d->means);
    to->n_means = d->n_means;
    return true;
}

hfsad_status dataset_fold(const dataset *d, const fold_rule *rule, dataset **train, dataset **held, hfsad_error *err)
{
    size_t *fold_of = alloc_raw(d->n_rows, sizeof *fold_of);
    size_t *order = alloc_raw(d->n_rows > d->n_leaves ? d->n_rows : d->n_leaves, sizeof *order);
    hfsad_status status = HFSAD_OK;
    *train = *held = NULL;
    if (!fold_of || !order)
        status = error_memory(err, d->n_rows * sizeof *order, "the folds");
    else
        deal(d, rule, fold_of, order);
    if (!status)
        status = gather(d, rule, fold_of, true, held, err);
    if (!status)
        status = gather(d, rule, fold_of, false, train, err);
    if (!status && !copy_columns(*train, d))
        status = error_memory(err, 0, "the features' names");
    free(fold_of);
    free(order);
    if (!status)
        return HFSAD_OK;
    dataset_free(*train);
    dataset_free(*held);
    *train = *held = NULL;
    return status;
}
