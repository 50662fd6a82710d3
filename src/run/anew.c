/* See anew.h. */
#define _POSIX_C_SOURCE 200809L
#include "run/anew.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/nodes.h"
#include "run/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- links ---- */

static size_t parent_of(const dataset *d, size_t node)
{
    return node < d->n_inner ? d->inner[node].parent : dataset_parent(d, node - d->n_inner);
}

static size_t tied_of(const sim *s, size_t node)
{
    const size_t inner = s->d->n_inner;
    const hfsad_link_rule *rule = node < inner ? &s->p->inner[node].rule : &plan_leaf(s->p, node - inner)->rule;
    return s->M - rule->penalty.free;
}

void sim_anew_model(const sim *s, size_t node, const double *w_parent, double *w)
{
    const size_t tied = tied_of(s, node);
    memcpy(w, w_parent, tied * sizeof *w);
    memset(w + tied, 0, (s->M - tied) * sizeof *w);
}

void sim_restart(sim *s, size_t node, const double *w, bool repaired)
{
    cell_link l = {0};
    sim_place(s, node, w);
    if (node < s->d->n_inner) {
        l.k = &s->inner[node].k;
        l.dual = &s->inner[node].dual;
    } else {
        const size_t leaf = node - s->d->n_inner;
        l.k = &s->k[leaf];
        l.dual = s->many.slope ? &s->many.dual[leaf] : s->leaf_dual ? &s->leaf_dual[leaf] : NULL;
        l.eta = s->many.eta ? &s->many.eta[leaf] : NULL;
        if (s->many.slope) {
            l.slope = s->many.slope + s->d->rows.first[leaf];
            l.rows = dataset_rows(s->d, leaf).count;
        }
    }
    cell_begin_anew(&l, s->M, w, repaired);
}

/* A node begins with what all links on the way to it tie, and with 0 elsewhere. */
static void place_below(sim *s, size_t node, const double *w, size_t tied)
{
    const size_t inner = s->d->n_inner, here = tied_of(s, node) < tied ? tied_of(s, node) : tied;
    double *own = s->spaces[0].rows + s->M; /* its first row may be w */
    memcpy(own, w, here * sizeof *w);
    memset(own + here, 0, (s->M - here) * sizeof *w);
    sim_restart(s, node, own, false);
    if (node >= inner)
        return;
    const inner_node *at = &s->d->inner[node];
    for (size_t c = at->first_inner; c < at->first_inner + at->n_inner; c++)
        place_below(s, c, w, here); /* no deeper than HFSAD_TIERS_MAX */
    for (size_t leaf = at->first_leaf; leaf < at->first_leaf + at->n_leaves; leaf++)
        place_below(s, inner + leaf, w, here);
}

void sim_place_anew(sim *s, size_t node, const double *w)
{
    place_below(s, node, w, s->M);
}

/* The last round's residuals, without those of links that have begun since. */
static void sum_duals(sim *s)
{
    const double *dual = s->many.slope ? s->many.dual : s->leaf_dual;
    for (size_t r = 0; r < s->n_runs; r++) {
        const size_t first = run_first_leaf(s, &s->runs[r]);
        s->runs[r].dual = 0;
        for (size_t leaf = first; leaf < first + s->runs[r].count; leaf++)
            s->runs[r].dual += dual[leaf];
    }
}

void sim_begin_anew(sim *s, bool last)
{
    bool any = false, before = false; /* the row */
    double *w = s->spaces[0].rows;
    for (; s->next_anew < s->n_anew && s->anew[s->next_anew].round == s->round &&
           (last || s->anew[s->next_anew].where == ANEW_BEFORE);
         s->next_anew++) {
        const size_t node = s->anew[s->next_anew].node;
        device_collect(s);
        sim_anew_model(s, node, s->inner_w + parent_of(s->d, node) * s->M, w);
        sim_place_anew(s, node, w);
        any = true;
        before = before || s->anew[s->next_anew].where == ANEW_BEFORE;
    }
    if (any)
        sum_duals(s);
    if (before &&
        s->d->rows.constant != 0) /* otherwise the intercepts above stay those of the row, as in a federation */
        many_settle(s);
}

/* ---- the record ---- */

static int by_place(const void *a, const void *b)
{
    const anew *x = a, *y = b;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->where != y->where)
        return x->where < y->where ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static bool is_below(const dataset *d, size_t node, size_t above)
{
    while (node != above && node != 0)
        node = parent_of(d, node);
    return node == above;
}

/* The node went back to this place, and all below it with it: what they did there or later is void. */
static void go_back(sim *s, const anew *to)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n_anew; i++) {
        const anew *past = &s->anew[i];
        const bool before = past->round < to->round || (past->round == to->round && past->where < to->where);
        if (before || !is_below(s->d, past->node, to->node))
            s->anew[kept++] = *past;
    }
    s->n_anew = kept;
}

/* Runs are stepped leaf by leaf, to the same bits, so that each leaf's residual is known. */
static hfsad_status take_duals(sim *s, hfsad_error *err)
{
    if (s->many.slope || s->leaf_dual)
        return HFSAD_OK;
    s->leaf_dual = alloc_zero(s->d->n_leaves, sizeof *s->leaf_dual);
    for (size_t r = 0; r < s->n_runs; r++)
        s->runs[r].class = MIXED;
    return s->leaf_dual ? HFSAD_OK : error_memory(err, s->d->n_leaves * sizeof(double), "the record");
}

hfsad_status run_check_early(const hfsad_run *run, const char *path, hfsad_error *err)
{
    for (size_t i = 0; i < run->n_readmitted; i++)
        if (run->readmitted[i].where == ANEW_EARLY)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%s: %s was readmitted in a stage before the run, which a replay cannot repeat", path,
                             run->readmitted[i].path);
    return HFSAD_OK;
}

hfsad_status sim_take_anew(sim *s, const run_readmission *all, size_t count, const char *path, hfsad_error *err)
{
    s->anew = alloc_zero(count, sizeof *s->anew);
    if (!s->anew)
        return error_memory(err, count * sizeof *s->anew, "the record");
    for (size_t i = 0; i < count; i++) {
        const size_t node = nodes_find(s->d, all[i].path);
        if (node == SIZE_MAX || node == 0)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%s: no node %s in this tree; a replay needs the same spec and data", path, all[i].path);
        if (all[i].where >= ANEW_ELSEWHERE)
            continue;
        const anew next = {all[i].round, all[i].where, node};
        go_back(s, &next);
        s->anew[s->n_anew++] = next;
    }
    qsort(s->anew, s->n_anew, sizeof *s->anew, by_place);
    const hfsad_status status = s->n_anew ? take_duals(s, err) : HFSAD_OK;
    if (!status)
        sim_begin_anew(s, false);
    return status;
}

void sim_free_anew(sim *s)
{
    free(s->anew);
}

/* ---- for trace and summary ---- */

hfsad_status run_note_readmission(hfsad_run *run, const run_readmission *done, hfsad_error *err)
{
    char *copy = strdup(done->path);
    if (!copy ||
        !alloc_grow((void **)&run->readmitted, &run->readmitted_room, run->n_readmitted + 1, sizeof *run->readmitted)) {
        free(copy);
        return error_memory(err, strlen(done->path), "a readmission");
    }
    run->readmitted[run->n_readmitted] = *done;
    run->readmitted[run->n_readmitted++].path = copy;
    return HFSAD_OK;
}

static bool read_line(char *line, run_readmission *done)
{
    int where, end = 0;
    if (sscanf(line, "cloud admitted %" SCNu64 " %" SCNu64 " %d%n", &done->iteration, &done->round, &where, &end) !=
            3 ||
        where < 0 || where > ANEW_RETIRED || line[end] != ' ')
        return false;
    done->where = (anew_where)where;
    done->path = line + end + 1;
    return true;
}

hfsad_status run_take_readmissions(hfsad_run *run, const char *text, size_t size, bool *only, hfsad_error *err)
{
    char *copy = strndup(text, size), *at = copy;
    hfsad_status status = copy ? HFSAD_OK : error_memory(err, size, "the record");
    bool others = size == 0;
    for (char *end; !status && (end = strchr(at, '\n')); at = end + 1) {
        run_readmission done;
        *end = 0;
        if (read_line(at, &done))
            status = run_note_readmission(run, &done, err);
        else
            others = true;
    }
    if (only)
        *only = !status && !others && at == copy + size; /* otherwise it is cut off */
    free(copy);
    return status;
}

void run_free_readmissions(hfsad_run *run)
{
    for (size_t i = 0; i < run->n_readmitted; i++)
        free(run->readmitted[i].path);
    free(run->readmitted);
}

static bool has_left(const hfsad_run *run, size_t node)
{
    char name[HFSAD_TIERS_MAX * 256];
    bool left = false;
    nodes_name(run->data, node, name, sizeof name);
    for (size_t i = 0; i < run->n_readmitted; i++)
        if (strcmp(run->readmitted[i].path, name) == 0)
            left = run->readmitted[i].where == ANEW_RETIRED;
    return left;
}

size_t run_may_be_absent(const hfsad_run *run)
{
    const bool any = run->engine->absence && run->spec && run->spec->federation.mode == MODE_ASYNC;
    return any ? run->data->n_inner + run->data->n_leaves : 0;
}

const char *run_why_absent(const hfsad_run *run, size_t node)
{
    const run_absence why = run->engine->absence(run, node);
    const size_t parent = why ? parent_of(run->data, node) : 0;
    if (!why || (parent && run->engine->absence(run, parent)))
        return NULL;
    return has_left(run, node) ? "left" : why == ABSENCE_ASIDE ? "set aside" : "did not answer";
}
