/* Figures on held-out rows; see model_evaluation.h. Sums are formed in the order of rows, clients and nodes. */
#include "out/model_evaluation.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hfsad_status evaluation_create(evaluation *e, const scoring *s, const double *truth, hfsad_error *err)
{
    const size_t nodes = s->data->n_inner + s->data->n_leaves;
    *e = (evaluation){.scoring = s, .truth = truth};
    if (!scoring_has_y(s))
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s has no y to compare with; hfsad predict needs none", s->path);
    e->nodes = alloc_zero(nodes, sizeof *e->nodes);
    return e->nodes ? HFSAD_OK : error_memory(err, nodes * sizeof *e->nodes, "the figures of the nodes");
}

void evaluation_free(evaluation *e)
{
    free(e->nodes);
    free(e->groups);
    free(e->scores);
    free(e->confusion);
    free(e->levels_by_node);
    free(e->levels_by_group);
    *e = (evaluation){0};
}

void evaluation_name(const evaluation *e, size_t node, char *buffer, size_t size)
{
    const dataset *d = e->scoring->data;
    if (node < d->n_inner)
        snprintf(buffer, size, "%s", d->inner[node].name);
    else
        dataset_leaf_name(d, node - d->n_inner, buffer, size);
}

static hfsad_status refuse_label(const evaluation *e, size_t leaf, size_t row, double y, hfsad_loss_kind kind,
                                 hfsad_error *err)
{
    char name[EVALUATION_NAME_SIZE];
    dataset_leaf_name(e->scoring->data, leaf, name, sizeof name);
    return error_set(err, HFSAD_ERROR_INPUT, "%.300s: row %zu of %.300s has y = %g: the %s loss takes %s",
                     e->scoring->path, row + 1, name, y, loss_names[kind],
                     scores_take(&(hfsad_loss){.kind = kind}, e->scoring->model->classes));
}

/* A loss that a program supplied is not available here; the models are. */
static hfsad_status refuse_loss(const evaluation *e, size_t leaf, hfsad_error *err)
{
    char name[EVALUATION_NAME_SIZE];
    dataset_leaf_name(e->scoring->data, leaf, name, sizeof name);
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%.300s: %.300s was trained with a loss that its program supplied, so only that program can "
                     "evaluate it; hfsad predict can use its model",
                     e->scoring->folder, name);
}

/* Adds a client whose rows have a score for each class. */
static hfsad_status add_classes(evaluation *e, size_t leaf, const client_law *law, hfsad_error *err)
{
    const scoring *s = e->scoring;
    const client_rows rows = dataset_rows(s->data, leaf);
    const size_t K = s->model->classes;
    double p[SOFTMAX_CLASSES];
    row_figures f = {.rows = rows.count};
    if (!e->confusion && !(e->confusion = alloc_zero(K * K, sizeof *e->confusion)))
        return error_memory(err, K * K * sizeof *e->confusion, "the confusion matrix");
    for (size_t r = 0; r < rows.count; r++) {
        const double y = rows.y[r], weight = row_weight(&rows, r);
        if (!scores_fit(&law->loss, K, y))
            return refuse_label(e, leaf, r, y, law->loss.kind, err);
        f.weight += weight;
        f.loss += weight * scoring_class(s, leaf, &rows, r, y, p);
        if (!isfinite(f.loss))
            return scoring_overflow(s, leaf, r, "loss", err);
        const double predicted = most_likely(K, p);
        f.right += predicted == y ? weight : 0;
        e->confusion[(size_t)y * K + (size_t)predicted] += weight;
    }
    f.labelled = f.weight;
    f.total = f.loss;
    e->nodes[s->data->n_inner + leaf] = f;
    return HFSAD_OK;
}

size_t evaluation_levels(const evaluation *e)
{
    return scoring_has_levels(e->scoring) ? e->scoring->model->classes : 0;
}

/* Adds a client whose rows have a score for each level. */
static hfsad_status add_levels(evaluation *e, size_t leaf, const client_law *law, hfsad_error *err)
{
    const scoring *s = e->scoring;
    const client_rows rows = dataset_rows(s->data, leaf);
    const size_t K = s->model->classes, nodes = s->data->n_inner + s->data->n_leaves, node = s->data->n_inner + leaf;
    double p[SOFTMAX_CLASSES];
    row_figures f = {.rows = rows.count};
    if (!e->levels_by_node && !(e->levels_by_node = alloc_zero(nodes * K, sizeof *e->levels_by_node)))
        return error_memory(err, nodes * K * sizeof *e->levels_by_node, "the figures of the levels");
    for (size_t r = 0; r < rows.count; r++) {
        const double y = rows.y[r], weight = row_weight(&rows, r);
        f.weight += weight;
        f.loss += weight * scoring_class(s, leaf, &rows, r, y, p);
        if (!isfinite(f.loss))
            return scoring_overflow(s, leaf, r, "loss", err);
        measures_number(&f.measures, weight, y, p[scoring_middle(s)]);
        for (size_t k = 0; k < K; k++) {
            const double tau = s->model->scores.levels[k], left = y - p[k];
            level_sums *sums = &e->levels_by_node[node * K + k];
            sums->pinball += weight * fmax(tau * left, (tau - 1) * left);
            sums->covered += left <= 0 ? weight : 0;
        }
    }
    e->numbers = true;
    f.total = law->mean ? f.loss / f.weight : f.loss;
    e->nodes[node] = f;
    return HFSAD_OK;
}

static void add_level_sums(size_t K, level_sums *to, const level_sums *from)
{
    for (size_t k = 0; k < K; k++) {
        to[k].pinball += from[k].pinball;
        to[k].covered += from[k].covered;
    }
}

hfsad_status evaluation_add(evaluation *e, size_t leaf, double *scores, hfsad_error *err)
{
    const scoring *s = e->scoring;
    const client_law law = scoring_law(s, leaf);
    const hfsad_loss_kind kind = law.loss.kind;
    const bool labels = loss_kinds[kind]->labels, levels = loss_kinds[kind]->levels;
    labels_settle_leaf(s->data, leaf, &law.loss, s->model->classes, &e->signs);
    hfsad_status status = labels_check(&e->signs, err);
    if (status)
        return status;
    const client_rows rows = dataset_rows(s->data, leaf);
    row_figures f = {.rows = rows.count};
    if (kind == HFSAD_LOSS_OWN)
        return refuse_loss(e, leaf, err);
    if (scoring_has_levels(s))
        return add_levels(e, leaf, &law, err);
    if (s->model->classes)
        return add_classes(e, leaf, &law, err);
    if ((status = scoring_scores(s, leaf, kind, scores, err)))
        return status;
    for (size_t r = 0; r < rows.count; r++) {
        const double y = rows.y[r], weight = row_weight(&rows, r);
        if (!loss_fits(&law.loss, y))
            return refuse_label(e, leaf, r, y, kind, err);
        f.weight += weight;
        f.loss += weight * hfsad_loss_value(&law.loss, y, scores[r]);
        if (!isfinite(f.loss))
            return scoring_overflow(s, leaf, r, "loss", err);
        if (labels)
            measures_label(&f.measures, weight, y > 0, score_label(scores[r]) > 0);
        else
            measures_number(&f.measures, weight, y, score_prediction(kind, scores[r]));
        f.right += labels && y == score_label(scores[r]) ? weight : 0;
        if (levels)
            measures_level(&f.measures, weight, law.loss.tau, y, scores[r]);
        f.covered += levels && y <= scores[r] ? weight : 0;
    }
    if (labels && !e->scores && !(e->scores = alloc_zero(s->data->n_rows, sizeof *e->scores)))
        return error_memory(err, s->data->n_rows * sizeof *e->scores, "the predictions");
    if (labels)
        memcpy(e->scores + s->data->rows.first[leaf], scores, rows.count * sizeof *scores);
    e->numbers |= !labels;
    f.labelled = labels ? f.weight : 0;
    f.ranked = levels ? f.weight : 0;
    f.level = levels ? f.weight * law.loss.tau : 0;
    f.total = law.mean ? f.loss / f.weight : f.loss;
    e->labels |= labels;
    e->levels |= levels;
    e->nodes[s->data->n_inner + leaf] = f;
    return HFSAD_OK;
}

static void add_figures(row_figures *to, const row_figures *f)
{
    to->rows += f->rows;
    to->weight += f->weight;
    to->loss += f->loss;
    to->total += f->total;
    to->labelled += f->labelled;
    to->right += f->right;
    to->ranked += f->ranked;
    to->covered += f->covered;
    to->level += f->level;
    measures_add(&to->measures, &f->measures);
}

/* Appends the leaf's rows with labels to the list; returns its new length. */
static size_t list_rows(const evaluation *e, size_t leaf, ranked_row *list, size_t count)
{
    const client_rows rows = dataset_rows(e->scoring->data, leaf);
    const hfsad_loss_kind kind = scoring_law(e->scoring, leaf).loss.kind;
    const double *scores = e->scores + e->scoring->data->rows.first[leaf];
    for (size_t r = 0; r < rows.count && loss_kinds[kind]->labels; r++)
        list[count++] = (ranked_row){
            .score = scores[r],
            .weight = row_weight(&rows, r),
            .probability = loss_kinds[kind]->predict ? score_prediction(kind, scores[r]) : NAN,
            .positive = rows.y[r] > 0,
        };
    return count;
}

/* The same for all leaves below an inner node. */
static size_t list_below(const evaluation *e, size_t i, ranked_row *list, size_t count)
{
    const inner_node *node = &e->scoring->data->inner[i];
    for (size_t leaf = node->first_leaf; leaf < node->first_leaf + node->n_leaves; leaf++)
        count = list_rows(e, leaf, list, count);
    for (size_t child = node->first_inner; child < node->first_inner + node->n_inner; child++)
        count = list_below(e, child, list, count);
    return count;
}

static hfsad_status rank_nodes(evaluation *e, hfsad_error *err)
{
    const dataset *d = e->scoring->data;
    if (!e->labels)
        return HFSAD_OK;
    ranked_row *list = alloc_raw(d->n_rows, sizeof *list);
    if (!list)
        return error_memory(err, d->n_rows * sizeof *list, "the ranks of the rows");
    for (size_t i = 0; i < d->n_inner; i++)
        measures_rank(&e->nodes[i].measures, list, list_below(e, i, list, 0));
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        measures_rank(&e->nodes[d->n_inner + leaf].measures, list, list_rows(e, leaf, list, 0));
    free(list);
    return HFSAD_OK;
}

static hfsad_status rank_groups(evaluation *e, const uint32_t *group_of, hfsad_error *err)
{
    const dataset *d = e->scoring->data;
    if (!e->labels)
        return HFSAD_OK;
    ranked_row *list = alloc_raw(d->n_rows, sizeof *list);
    if (!list)
        return error_memory(err, d->n_rows * sizeof *list, "the ranks of the rows");
    for (uint32_t g = 0; g < e->sets->count; g++) {
        size_t count = 0;
        for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
            count = group_of[leaf] == g ? list_rows(e, leaf, list, count) : count;
        measures_rank(&e->groups[g].rows.measures, list, count);
    }
    free(list);
    return HFSAD_OK;
}

static void add_node(evaluation *e, size_t to, size_t from)
{
    const size_t K = evaluation_levels(e);
    add_figures(&e->nodes[to], &e->nodes[from]);
    if (K)
        add_level_sums(K, e->levels_by_node + to * K, e->levels_by_node + from * K);
}

static void sum_up(evaluation *e)
{
    const dataset *d = e->scoring->data;
    for (size_t i = d->n_inner; i-- > 0;) { /* backwards, because children come after their parents */
        const inner_node *node = &d->inner[i];
        for (size_t leaf = node->first_leaf; leaf < node->first_leaf + node->n_leaves; leaf++)
            add_node(e, i, d->n_inner + leaf);
        for (size_t child = node->first_inner; child < node->first_inner + node->n_inner; child++)
            add_node(e, i, child);
    }
}

static int compare_reals(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static hfsad_status find_median(evaluation *e, hfsad_error *err)
{
    const dataset *d = e->scoring->data;
    const size_t n = d->n_leaves;
    double *losses = alloc_raw(n, sizeof *losses);
    if (!losses)
        return error_memory(err, n * sizeof *losses, "the clients' losses");
    for (size_t leaf = 0; leaf < n; leaf++)
        losses[leaf] = mean_loss(&e->nodes[d->n_inner + leaf]);
    qsort(losses, n, sizeof *losses, compare_reals);
    e->median_loss = losses[(n - 1) / 2] + (losses[n / 2] - losses[(n - 1) / 2]) / 2;
    free(losses);
    return HFSAD_OK;
}

hfsad_status evaluation_finish(evaluation *e, hfsad_error *err)
{
    const dataset *d = e->scoring->data;
    const model *m = e->scoring->model;
    sum_up(e);
    for (size_t i = 1; i < d->n_inner; i++)
        if (!e->worst_edge || mean_loss(&e->nodes[i]) > mean_loss(&e->nodes[e->worst_edge]))
            e->worst_edge = i;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const uint32_t node = e->scoring->node[leaf];
        if (mean_loss(&e->nodes[d->n_inner + leaf]) > mean_loss(&e->nodes[d->n_inner + e->worst_client]))
            e->worst_client = leaf;
        e->used_own += node >= m->n_inner;
        e->used_edge += node > 0 && node < m->n_inner;
        e->used_cloud += node == 0;
    }
    const hfsad_status status = rank_nodes(e, err);
    return status ? status : find_median(e, err);
}

hfsad_status evaluation_split(evaluation *e, const client_groups *sets, const char *path, hfsad_error *err)
{
    const dataset *d = e->scoring->data;
    char name[EVALUATION_NAME_SIZE];
    const size_t K = evaluation_levels(e);
    e->groups = alloc_zero(sets->count, sizeof *e->groups);
    e->levels_by_group = K ? alloc_zero(sets->count * K, sizeof *e->levels_by_group) : NULL;
    if (!e->groups || (K && !e->levels_by_group))
        return error_memory(err, sets->count * sizeof *e->groups, "the groups");
    e->sets = sets;
    uint32_t *group_of = alloc_raw(d->n_leaves, sizeof *group_of);
    if (!group_of)
        return error_memory(err, d->n_leaves * sizeof *group_of, "the groups");
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        dataset_leaf_name(d, leaf, name, sizeof name);
        const uint32_t group = client_groups_find(sets, name);
        group_of[leaf] = group;
        if (group == GROUP_NONE) {
            free(group_of);
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.300s lists no group for %.300s, a client of %.300s; add a line for it", path, name,
                             e->scoring->path);
        }
        group_figures *g = &e->groups[group];
        g->clients++;
        add_figures(&g->rows, &e->nodes[d->n_inner + leaf]);
        if (K)
            add_level_sums(K, e->levels_by_group + group * K, e->levels_by_node + (d->n_inner + leaf) * K);
        g->relative_error += evaluation_support(e, e->scoring->node[leaf]).relative_error;
    }
    for (size_t i = 0; i < sets->count; i++)
        e->groups[i].relative_error /= (double)e->groups[i].clients;
    const hfsad_status status = rank_groups(e, group_of, err);
    free(group_of);
    return status;
}

double mean_loss(const row_figures *f)
{
    return f->loss / f->weight;
}

double accuracy_of(const row_figures *f)
{
    return f->labelled > 0 ? f->right / f->labelled : NAN;
}

double coverage_of(const row_figures *f)
{
    return f->ranked > 0 ? f->covered / f->ranked : NAN;
}

double level_of(const row_figures *f)
{
    return f->ranked > 0 ? f->level / f->ranked : NAN;
}

uint32_t evaluation_model(const evaluation *e, size_t node)
{
    const dataset *d = e->scoring->data;
    const model *m = e->scoring->model;
    if (node >= d->n_inner)
        return e->scoring->node[node - d->n_inner];
    const uint32_t own = model_find(m, d->inner[node].name);
    return own < m->n_inner ? own : MODEL_NONE;
}

support_figures evaluation_support(const evaluation *e, uint32_t node)
{
    const model *m = e->scoring->model;
    const double *w = model_weights(m, node), *t = e->truth;
    support_figures f = {.recall = NAN, .precision = NAN, .relative_error = NAN};
    size_t true_nonzero = 0, found = 0;
    double away = 0, opposite = 0, size = 0;
    for (size_t i = 0; i < model_slopes(m); i++) {
        f.nonzero += w[i] != 0;
        if (!t)
            continue;
        true_nonzero += t[i] != 0;
        found += t[i] != 0 && w[i] != 0;
        away += (w[i] - t[i]) * (w[i] - t[i]);
        opposite += (w[i] + t[i]) * (w[i] + t[i]);
        size += t[i] * t[i];
    }
    if (!t)
        return f;
    const bool either = loss_kinds[model_law(m, node < m->n_inner ? "" : model_name(m, node)).loss.kind]->majorised;
    f.recall = true_nonzero ? (double)found / (double)true_nonzero : NAN;
    f.precision = f.nonzero ? (double)found / (double)f.nonzero : NAN;
    f.relative_error = size > 0 ? (either && opposite < away ? opposite : away) / size : NAN;
    return f;
}
