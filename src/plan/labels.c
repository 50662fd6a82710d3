#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "plan/labels.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/ranks.h"
#include "core/scores.h"
#include "plan/choices.h"

#include <stdio.h>
#include <stdlib.h>

void labels_settle_leaf(dataset *d, size_t leaf, const hfsad_loss *loss, size_t classes, label_signs *found)
{
    if (!loss_kind_of(loss)->labels || classes || (d->rows.first && !d->rows.y) || !dataset_holds(d, leaf))
        return;
    double *y = d->rows.first ? d->rows.y + d->rows.first[leaf] : d->y + leaf;
    const size_t count = d->rows.first ? d->rows.first[leaf + 1] - d->rows.first[leaf] : 1;
    for (size_t r = 0; r < count; r++) {
        if (y[r] != 0 && y[r] != -1)
            continue;
        const bool zero = y[r] == 0;
        if (!(*(zero ? &found->zeros : &found->minus_ones))++) {
            char name[60] = "the held-out rows", *text = zero ? found->zero : found->minus_one;
            if (d->inner) /* rows of a share have no tree of their own */
                dataset_leaf_name(d, leaf, name, sizeof name);
            snprintf(text, sizeof found->zero, "row %zu of %s", r + 1, name);
        }
        y[r] = -1;
    }
}

bool labels_same(const double *read, const double *settled, size_t count)
{
    for (size_t r = 0; r < count; r++)
        if (read[r] != settled[r] && !(read[r] == 0 && settled[r] == -1))
            return false;
    return true;
}

hfsad_status labels_check(const label_signs *found, hfsad_error *err)
{
    if (!found->zeros || !found->minus_ones)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "y is 0 in %s and -1 in %s; two classes are 0 and 1, or -1 and 1; for three see loss.classes",
                     found->zero, found->minus_one);
}

/* Whether the table's labels are those of the loss. */
static hfsad_status check_count(const dataset *d, const hfsad_loss *loss, size_t classes, hfsad_error *err)
{
    const size_t count = labels_count(d->labels);
    const char *name = loss_names[loss->kind];
    const bool takes = loss_kind_of(loss)->labels || loss_kind_of(loss)->several;
    slice first;
    char shown[EXCERPT_SIZE];
    if (takes && count == (classes ? classes : 2))
        return HFSAD_OK;
    (void)label_at(d->labels, 0, &first);
    if (!takes)
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "y has labels (\"%s\", ...), but the %s loss takes numbers; use logistic, hinge or multinomial, "
            "or name another column as data.y",
            excerpt(shown, first), name);
    return error_set(err, HFSAD_ERROR_INPUT,
                     "y has %zu labels (\"%s\", ...), but the loss %zu classes; write loss: {kind: %s, classes: %zu}",
                     count, excerpt(shown, first), classes ? classes : 2,
                     count > 2 && loss->kind == HFSAD_LOSS_LOGISTIC ? "multinomial" : name, count);
}

typedef struct {
    label_signs found;
    bool all; /* clients have losses of two classes */
} settled;

static hfsad_status settle_leaf(dataset *d, size_t leaf, const hfsad_loss *loss, size_t classes, settled *s,
                                hfsad_error *err)
{
    s->all = s->all && loss_kind_of(loss)->labels && !classes;
    labels_settle_leaf(d, leaf, loss, classes, &s->found);
    return d->labels ? check_count(d, loss, classes, err) : HFSAD_OK;
}

static hfsad_status settle_overridden(dataset *d, const hfsad_spec *spec, size_t classes, settled *s, hfsad_error *err)
{
    choice_table t;
    override_settings special;
    char name[NODE_NAME_SIZE];
    hfsad_status status = choices_make(&t, spec, d) ? HFSAD_OK : error_memory(err, spec->n_overrides, "the overrides");
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        bool any = false;
        status = leaf_override(&t, leaf, name, sizeof name, &special, &any, err);
        const hfsad_loss loss = loss_of(&spec->loss, any && !status ? &special.loss : NULL);
        if (!status)
            status = settle_leaf(d, leaf, &loss, classes, s, err);
    }
    choices_free(&t);
    return status;
}

/* Ranks that hold a part of the rows each (data/part.h) find what one that holds all would. */
static hfsad_status settle_ranks(label_signs *found, hfsad_status status, hfsad_error *err)
{
    status = ranks_agree(status, err);
    const bool zeros = ranks_any(found->zeros > 0), minus_ones = ranks_any(found->minus_ones > 0);
    if (!status && zeros && minus_ones)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "y is 0 in some rows and -1 in others; two classes are 0 and 1, or -1 and 1; for three see "
                         "loss.classes");
    found->zeros = zeros;
    return status;
}

hfsad_status labels_settle(dataset *d, const hfsad_spec *spec, hfsad_error *err)
{
    const hfsad_loss loss = loss_of(&spec->loss, NULL);
    const size_t classes = spec_scores(spec);
    settled s = {.all = true};
    hfsad_status status = HFSAD_OK;
    if (spec->n_overrides)
        status = settle_overridden(d, spec, classes, &s, err);
    for (size_t leaf = 0; leaf < d->n_leaves && !spec->n_overrides && !status; leaf++)
        status = settle_leaf(d, leaf, &loss, classes, &s, err);
    if (!status)
        status = labels_check(&s.found, err);
    if (d->held)
        status = settle_ranks(&s.found, status, err);
    if (status || d->labels || !s.all || !s.found.zeros)
        return status;
    d->labels = strdup("0,1");
    return d->labels ? HFSAD_OK : error_memory(err, 4, "the labels");
}

char *labels_text(const dataset *d)
{
    char *text = NULL;
    size_t size;
    slice label;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    for (size_t i = 0; label_at(d->labels, i, &label); i++)
        fprintf(o, "%s%.*s is %s%zu", i ? ", " : "", (int)label.length, label.text, d->classes || i ? "" : "-",
                d->classes ? i : (size_t)1);
    if (fclose(o) == 0)
        return text;
    free(text);
    return NULL;
}
