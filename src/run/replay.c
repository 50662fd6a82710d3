#include "run/replay_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/wire.h"
#include "cell/client.h"
#include "data/nodes.h"
#include "plan/tally.h"
#include "run/anew.h"
#include "run/save.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

/* Vectors that an inner node has sent. */
static void add_sent(const replay *r, size_t node, uint64_t *up, uint64_t *down)
{
    const inner_node *as = &r->s->d->inner[node];
    const inner_record *of = &r->inner[node];
    const uint64_t turn = as->depth == 1 ? r->s->p->edge_rounds : 1;
    *down += of->down;
    *up += node ? of->turns_before + (of->steps - of->base) / turn : 0;
}

/* Everything of a node that figures are made of. */
static void show_node(replay *r, row *to, size_t node)
{
    sim *s = r->s, *shown = to->shown;
    const size_t M = s->M, inner = s->d->n_inner;
    if (node < inner) {
        memcpy(shown->inner_w + node * M, s->inner_w + node * M, M * sizeof(double));
        memcpy(shown->inner_z + node * M, s->inner_z + node * M, M * sizeof(double));
        memcpy(shown->inner_q + node * M, s->inner_q + node * M, M * sizeof(double));
        shown->inner[node].k = s->inner[node].k;
        shown->inner[node].dual = s->inner[node].dual;
        add_sent(r, node, &to->up, &to->down);
    } else {
        const size_t leaf = node - inner;
        double *const from[] = {s->z, s->q, s->w}, *const into[] = {shown->z, shown->q, shown->w};
        for (size_t i = 0; i < 3; i++) {
            if (!from[i])
                continue;
            dataset_gather(s->d, from[i], leaf, s->spaces[0].rows);
            dataset_scatter(s->d, into[i], leaf, s->spaces[0].rows);
        }
        shown->k[leaf] = s->k[leaf];
        to->leaf_dual[leaf] = r->leaf_dual[leaf];
        to->up += r->turns[leaf];
    }
    to->filled++;
}

static uint64_t record_place(const replay *r, size_t node)
{
    const size_t inner = r->s->d->n_inner;
    return node < inner ? (r->inner[node].life << 32) + r->inner[node].steps : r->leaf_k[node - inner];
}

/* Nodes below an absent one are absent, whatever lines they have. */
static hfsad_status find_wanted(const replay *r, row *to)
{
    const dataset *d = r->s->d;
    const size_t nodes = nodes_of(r->s);
    for (size_t node = 1; node < nodes; node++) {
        const bool unknown = node >= d->n_inner && dataset_is_later(d, node - d->n_inner) && to->at[node] == NO_LINE;
        if (to->at[parent_of(d, node)] == ABSENT || unknown)
            to->at[node] = ABSENT;
    }
    to->wanted = 0;
    for (size_t node = 0; node < nodes; node++)
        to->wanted += to->at[node] != ABSENT;
    if (to->wanted == nodes)
        return HFSAD_OK;
    to->here = alloc_zero(nodes, 1);
    if (!to->here)
        return error_memory(r->err, nodes, "a row of the trace");
    for (size_t node = 0; node < nodes; node++)
        to->here[node] = to->at[node] != ABSENT;
    return HFSAD_OK;
}

/* A simulation as after this number of iterations of the record, except for its nodes. */
static void settle_replayed(sim *s, uint64_t iteration, uint64_t up, uint64_t down, const double *leaf_dual)
{
    s->iteration = iteration;
    s->round = iteration * s->p->edge_rounds;
    s->dual_known = true;
    s->bytes_up = up * s->M * sizeof(double);
    s->bytes_down = down * s->M * sizeof(double);
    for (size_t n = 0; n < s->n_runs; n++) {
        const size_t first = run_first_leaf(s, &s->runs[n]);
        s->runs[n].dual = 0;
        for (size_t leaf = first; leaf < first + s->runs[n].count; leaf++)
            if (leaf_is_here(s, leaf))
                s->runs[n].dual += leaf_dual[leaf];
        for (size_t leaf = first; leaf < first + s->runs[n].count && s->p->fixed; leaf++)
            (s->leaf_dual ? s->leaf_dual : s->many.dual)[leaf] = leaf_dual[leaf];
    }
    if (s->d->rows.constant != 0)
        many_settle(s);
}

/* In order, because the stop rule uses earlier rows. */
static void tell_rows(replay *r)
{
    while (r->told < r->opened && r->rows[r->told].filled == r->rows[r->told].wanted) {
        row *next = &r->rows[r->told++];
        hfsad_figures f = {0};
        next->shown->here = next->here;
        settle_replayed(next->shown, next->round / r->s->p->edge_rounds, next->up, next->down, next->leaf_dual);
        next->shown->stop = r->stop;
        sim_measure(next->shown, &f);
        next->shown->here = NULL;
        r->stop = next->shown->stop;
        r->met = r->met || r->stop.converged;
        if (r->listener)
            r->listener->row(r->listener->context, &f);
        r->spare[r->n_spare++] = next->shown; /* it came from there */
        next->shown = NULL;
        free(next->leaf_dual);
        next->leaf_dual = NULL;
    }
}

/* A node has moved: rows that were asked of it there. */
static void note(replay *r, size_t node)
{
    for (size_t i = r->told; i < r->opened; i++)
        if (r->rows[i].at[node] == record_place(r, node))
            show_node(r, &r->rows[i], node);
    tell_rows(r);
}

/* The cloud has reached the step at which it asked. No node goes beyond the step at which it answers before it has
 * answered. */
static hfsad_status open_rows(replay *r)
{
    const sim *s = r->s;
    while (r->opened < r->n_rows && r->rows[r->opened].at[0] <= r->inner[0].steps) {
        row *next = &r->rows[r->opened];
        next->leaf_dual = alloc_zero(s->d->n_leaves, sizeof(double));
        hfsad_status status =
            next->leaf_dual && alloc_grow((void **)&r->spare, &r->spare_room, r->opened + 2, sizeof(sim *))
                ? HFSAD_OK
                : error_memory(r->err, s->d->n_leaves * sizeof(double), "a row of the trace");
        if (!status && r->n_spare)
            next->shown = r->spare[--r->n_spare];
        else if (!status)
            status = sim_create(&next->shown, s->d, s->p, s->inner_w, s->truth, s->threads, r->err);
        if (!status)
            status = find_wanted(r, next);
        if (status)
            return status;
        r->opened++;
        for (size_t node = 0; node < nodes_of(s); node++)
            if (next->at[node] == record_place(r, node))
                show_node(r, next, node);
    }
    tell_rows(r);
    return HFSAD_OK;
}

/* ---- playing ---- */

/* Version v of inner node i's model, or NULL if it is not available; while the plan is checked, any pointer. */
static const double *model_at(replay *r, size_t i, uint64_t version)
{
    inner_record *of = &r->inner[i];
    if (version == 0 || version > of->steps + 1)
        return NULL;
    const uint64_t behind = of->steps + 1 - version;
    if (!of->ring) {
        of->lag = behind > of->lag ? (size_t)behind : of->lag;
        return r->s->inner_w;
    }
    return of->ring + (version - 1) % (of->lag + 1) * r->s->M;
}

/* As its children hear it. */
static void keep_model(replay *r, size_t i)
{
    inner_record *of = &r->inner[i];
    const size_t M = r->s->M;
    double *kept = of->ring + of->steps % (of->lag + 1) * M;
    memcpy(kept, r->s->inner_w + i * M, M * sizeof *kept);
    if (r->s->said && !r->s->p->fixed)
        (void)wire_round(kept, M);
}

static void step_leaf(replay *r, size_t leaf, uint32_t parent, uint32_t steps, const double *w_parent)
{
    sim *s = r->s;
    thread_space *space = &s->spaces[0];
    if (s->many.slope) {
        r->leaf_dual[leaf] = many_step(s, leaf, w_parent, steps, space);
        return;
    }
    leaf_run one = leaf_view(s, leaf, parent, space);
    one.w_parent = w_parent;
    one.local_steps = steps;
    one.want_dual = true;
    sim_step_leaf(s, leaf, &one);
    r->leaf_dual[leaf] = one.dual;
}

/* As in a simulated round, from the current links. */
static void step_inner(replay *r, size_t i, const double *w_parent)
{
    sim *s = r->s;
    thread_space *space = &s->spaces[0];
    for (size_t n = s->inner[i].first_run; n < s->inner[i].first_run + s->inner[i].n_runs; n++)
        sim_sum_run(s, n, space);
    sim_step_inner(s, i, space, w_parent);
}

/* A lost client was readmitted. */
static void begin_leaf(replay *r, size_t leaf, const double *w_parent)
{
    const size_t node = r->s->d->n_inner + leaf;
    sim_anew_model(r->s, node, w_parent, r->model);
    sim_place_anew(r->s, node, r->model);
    r->leaf_dual[leaf] = 0;
}

static hfsad_status play_until(replay *r, size_t i, uint64_t steps);
static hfsad_status play_line(replay *r, size_t i);

/* A leaf's turn on a version of its parent's model; k: its counter afterwards. */
static void play_turn(replay *r, size_t i, size_t leaf, const double *w, uint64_t k)
{
    if (r->inner[i].ring)
        step_leaf(r, leaf, (uint32_t)i, (uint32_t)(k - r->leaf_k[leaf]), w);
    r->leaf_k[leaf] = k;
    r->turns[leaf]++;
    r->up++;
    if (r->inner[i].ring)
        note(r, r->s->d->n_inner + leaf);
}

/* A life of a link ends: a row may show a turn of the client that its parent has not received. */
static hfsad_status play_ahead(replay *r, size_t i, size_t leaf)
{
    for (size_t n = 0; n < r->n_rows; n++) {
        const uint64_t at = r->rows[n].at[r->s->d->n_inner + leaf], now = r->leaf_k[leaf];
        if (at == NO_LINE || at == ABSENT || at >> 32 != now >> 32 || at <= now)
            continue;
        const double *w = model_at(r, i, r->rows[n].version[leaf]);
        if (!w)
            return error_set(r->err, HFSAD_ERROR_INPUT, "%s: the version of a client in row %llu cannot be", r->path,
                             (unsigned long long)r->rows[n].round);
        play_turn(r, i, leaf, w, at);
    }
    return HFSAD_OK;
}

/* What is left of the life of an edge: steps, and turns of its clients. */
static hfsad_status end_life(replay *r, size_t i)
{
    const inner_node *at = &r->s->d->inner[i];
    inner_record *of = &r->inner[i];
    hfsad_status status = HFSAD_OK;
    while (of->next < of->n_lines && !of->lines[of->next].life && !status)
        status = play_line(r, i);
    for (size_t leaf = at->first_leaf; leaf < (size_t)at->first_leaf + at->n_leaves && !status; leaf++)
        status = play_ahead(r, i, leaf);
    return status;
}

/* A lost edge was readmitted: its link and the links of its clients restart. */
static hfsad_status begin_edge(replay *r, size_t child, const double *w_parent, uint64_t life)
{
    sim *s = r->s;
    const inner_node *at = &s->d->inner[child];
    inner_record *of = &r->inner[child];
    const hfsad_status status = end_life(r, child);
    if (status)
        return status;
    if (of->next < of->n_lines && of->lines[of->next].life == life && of->lines[of->next++].step != of->steps)
        return replay_bad_line(r, of->lines[of->next - 1].number, "its parent knows of another number of steps");
    of->life = life;
    of->base = of->steps;
    of->turns_before = of->turns;
    r->down -= of->down;
    of->down = 0;
    for (size_t leaf = at->first_leaf; leaf < (size_t)at->first_leaf + at->n_leaves; leaf++) {
        r->up -= r->turns[leaf];
        r->turns[leaf] = 0;
        r->leaf_k[leaf] = life << 32;
        r->leaf_dual[leaf] = 0;
        r->out[leaf] = 0;
    }
    if (!of->ring)
        return HFSAD_OK;
    sim_anew_model(s, child, w_parent, r->model);
    sim_place_anew(s, child, r->model);
    keep_model(r, child);
    note(r, child);
    for (size_t leaf = at->first_leaf; leaf < (size_t)at->first_leaf + at->n_leaves; leaf++)
        note(r, s->d->n_inner + leaf);
    return HFSAD_OK;
}

/* An inner child has sent its model, or its link restarts. */
static hfsad_status play_child(replay *r, size_t i, const line *l, const entry *e)
{
    const size_t child = r->s->d->inner[i].first_inner + e->slot;
    inner_record *of = &r->inner[child];
    const double *w = model_at(r, i, e->version);
    const bool begins = e->k >> 32 > of->told >> 32;
    if (e->k <= of->told || !w || (begins && (e->k & UINT32_MAX) != 0))
        return replay_bad_line(r, l->number, "a child's counter does not grow");
    of->told = e->k;
    of->turns += !begins;
    r->up += !begins;
    return begins ? begin_edge(r, child, w, e->k >> 32) : play_until(r, child, of->base + (e->k & UINT32_MAX));
}

static hfsad_status play_entry(replay *r, size_t i, const line *l, const entry *e)
{
    const inner_node *at = &r->s->d->inner[i];
    if (e->slot < at->n_inner)
        return play_child(r, i, l, e);
    const size_t slot = e->slot - at->n_inner, leaf = at->first_leaf + slot;
    if (slot >= at->n_leaves)
        return replay_bad_line(r, l->number, "there is no such slot");
    const double *w = model_at(r, i, e->version);
    const uint64_t life = e->k >> 32, before = r->leaf_k[leaf];
    const bool leaves = (e->k & UINT32_MAX) == UINT32_MAX, begins = !leaves && life > before >> 32;
    if (!w || e->k <= before || (!leaves && (e->k & UINT32_MAX) > INT32_MAX) || (begins && e->k != life << 32) ||
        (leaves && before && life == before >> 32 && before != life << 32))
        return replay_bad_line(r, l->number, "a version or a counter cannot be");
    r->out[leaf] = leaves || (r->out[leaf] && !begins);
    if (!begins && !leaves) {
        play_turn(r, i, leaf, w, e->k);
        return HFSAD_OK;
    }
    const hfsad_status status = play_ahead(r, i, leaf);
    if (r->inner[i].ring && begins)
        begin_leaf(r, leaf, w);
    r->leaf_k[leaf] = e->k;
    if (r->inner[i].ring)
        note(r, r->s->d->n_inner + leaf);
    return status;
}

/* All, but those that came to the list later and have not joined. */
static uint64_t heard_children(const replay *r, size_t i)
{
    const dataset *d = r->s->d;
    const inner_node *node = &d->inner[i];
    uint64_t heard = (uint64_t)node->n_inner + node->n_leaves;
    for (size_t leaf = node->first_leaf; d->later && leaf < (size_t)node->first_leaf + node->n_leaves; leaf++)
        heard -= d->later[leaf] && r->leaf_k[leaf] >> 32 == 0;
    return heard;
}

static hfsad_status play_line(replay *r, size_t i)
{
    inner_record *of = &r->inner[i];
    const line *l = &of->lines[of->next++];
    hfsad_status status = HFSAD_OK;
    for (size_t e = 0; r->entries && e < l->count && !status; e++)
        status = play_entry(r, i, l, &r->entries[l->first + e]);
    if (status || l->end || l->heard)
        return status;
    const double *w_parent = i ? model_at(r, r->s->d->inner[i].parent, l->version) : NULL;
    if (i && !w_parent)
        return replay_bad_line(r, l->number, "its parent's version cannot be");
    if (of->ring)
        step_inner(r, i, w_parent);
    of->steps++;
    of->down += heard_children(r, i);
    r->down += heard_children(r, i);
    if (!of->ring)
        return HFSAD_OK;
    keep_model(r, i);
    note(r, i);
    return i ? HFSAD_OK : open_rows(r);
}

/* A node's steps depend on those of its subtree and on models of its parent that are there: no other order is needed.
 * It goes no deeper than HFSAD_TIERS_MAX. */
static hfsad_status play_until(replay *r, size_t i, uint64_t steps)
{
    inner_record *of = &r->inner[i];
    hfsad_status status = HFSAD_OK;
    while (of->steps < steps && !status) {
        if (of->next == of->n_lines || of->lines[of->next].end || of->lines[of->next].life)
            return error_set(r->err, HFSAD_ERROR_INPUT,
                             "%s: step %llu of %s is missing; a replay needs the whole record", r->path,
                             (unsigned long long)of->steps + 1, r->s->d->inner[i].name);
        status = play_line(r, i);
    }
    return status;
}

/* All of it: the cloud's steps, then what the others did that it never heard of. */
static hfsad_status play_all(replay *r)
{
    sim *s = r->s;
    const bool stops = s->p->stop_absolute > 0 || s->p->stop_relative > 0;
    const size_t lines = r->inner[0].n_lines, made = lines > 0 ? lines - 1 : 0;
    hfsad_status status = play_until(r, 0, stops && made < s->p->iterations ? made : s->p->iterations);
    for (size_t i = 0; i < s->d->n_inner && !status; i++) {
        inner_record *of = &r->inner[i];
        status = end_life(r, i); /* of nodes that the end went without, too: rows may need it */
        if (!status && !r->gone[i] && of->next == of->n_lines && (of->n_lines == 0 || !of->lines[of->n_lines - 1].end))
            status =
                error_set(r->err, HFSAD_ERROR_INPUT, "%s: the end of %s is missing; a replay needs the whole record",
                          r->path, s->d->inner[i].name);
    }
    return status;
}

/* Whether rows are complete, and the run ended at its last iteration. */
static hfsad_status check_end(const replay *r)
{
    if (r->told < r->n_rows)
        return error_set(r->err, HFSAD_ERROR_INPUT, "%s: row %llu is incomplete; a replay needs the whole record",
                         r->path, (unsigned long long)r->rows[r->told].round);
    if (r->inner[0].steps < r->s->p->iterations && !r->met)
        return error_set(r->err, HFSAD_ERROR_INPUT,
                         "%s: step %llu of cloud is missing; a replay needs the whole record", r->path,
                         (unsigned long long)r->inner[0].steps + 1);
    return HFSAD_OK;
}

static hfsad_status take_rings(replay *r)
{
    const size_t M = r->s->M;
    for (size_t i = 0; i < r->s->d->n_inner; i++) {
        inner_record *of = &r->inner[i];
        of->ring = alloc_zero((of->lag + 1) * M, sizeof(double));
        if (!of->ring)
            return error_memory(r->err, (of->lag + 1) * M * sizeof(double), "the models that late clients worked with");
        of->next = 0;
        of->steps = of->down = of->life = of->told = of->turns = of->turns_before = of->base = 0;
        keep_model(r, i);
    }
    memset(r->leaf_k, 0, r->s->d->n_leaves * sizeof *r->leaf_k);
    memset(r->turns, 0, r->s->d->n_leaves * sizeof *r->turns);
    for (size_t leaf = 0; leaf < r->s->d->n_leaves; leaf++)
        r->out[leaf] = dataset_is_later(r->s->d, leaf);
    r->s->out = r->out;
    r->up = r->down = 0;
    return HFSAD_OK;
}

static void free_all(replay *r)
{
    for (size_t i = 0; r->inner && i < r->s->d->n_inner; i++) {
        free(r->inner[i].lines);
        free(r->inner[i].ring);
    }
    for (size_t i = 0; i < r->n_rows; i++) {
        free(r->rows[i].at);
        free(r->rows[i].version);
        free(r->rows[i].leaf_dual);
        free(r->rows[i].here);
        sim_free(r->rows[i].shown);
    }
    for (size_t i = 0; i < r->n_spare; i++)
        sim_free(r->spare[i]);
    free(r->rows);
    free(r->spare);
    free(r->inner);
    free(r->entries);
    free(r->leaf_k);
    free(r->leaf_dual);
    free(r->turns);
    free(r->model);
    free(r->gone);
    free(r->lent);
    free(r->out);
}

/* ---- nodes that the end went without ---- */

static void find_gone(replay *r)
{
    for (size_t node = 1; r->n_lent && node < nodes_of(r->s); node++) {
        const size_t parent = parent_of(r->s->d, node);
        r->gone[node] = r->gone[node] || r->gone[parent];
        r->lent[node] = r->lent[parent] ? r->lent[parent] : r->lent[node];
    }
}

/* The last row is of the others: what they have sent, and the mask of the simulation. */
static void leave_gone(replay *r)
{
    sim *s = r->s;
    if (!r->n_gone)
        return;
    r->up = r->down = 0;
    for (size_t node = 0; node < nodes_of(s); node++) {
        const size_t leaf = node - s->d->n_inner;
        if (r->gone[node])
            continue;
        if (node >= s->d->n_inner) {
            r->up += r->turns[leaf];
            continue;
        }
        add_sent(r, node, &r->up, &r->down);
    }
    for (size_t node = 0; node < nodes_of(s); node++)
        r->gone[node] = !r->gone[node];
    s->here = r->gone; /* until sim_free */
    r->gone = NULL;
}

static hfsad_status begin_replay(replay *r, sim *s, const char *path, hfsad_error *err)
{
    *r = (replay){.s = s, .path = path, .stop = s->stop, .met = s->stop.converged, .err = err};
    r->inner = alloc_zero(s->d->n_inner, sizeof *r->inner);
    r->leaf_k = alloc_zero(s->d->n_leaves, sizeof *r->leaf_k);
    r->leaf_dual = alloc_zero(s->d->n_leaves, sizeof *r->leaf_dual);
    r->turns = alloc_zero(s->d->n_leaves, sizeof *r->turns);
    r->model = alloc_zero(s->M, sizeof *r->model);
    r->gone = alloc_zero(nodes_of(s), sizeof *r->gone);
    r->lent = alloc_zero(nodes_of(s), sizeof *r->lent);
    r->out = alloc_zero(s->d->n_leaves + 1, sizeof *r->out);
    return r->inner && r->out && r->leaf_k && r->leaf_dual && r->turns && r->model && r->gone && r->lent
               ? HFSAD_OK
               : error_memory(err, s->d->n_leaves * sizeof(double), "the record");
}

/* The first row was measured before (find_first). */
static void forget_first(replay *r)
{
    if (!r->n_rows || r->rows[0].round > 0)
        return;
    free(r->rows[0].at);
    free(r->rows[0].version);
    memmove(r->rows, r->rows + 1, --r->n_rows * sizeof *r->rows);
}

hfsad_status sim_replay(sim *s, const char *text, size_t size, const char *path, const replay_rows *rows, bool *met,
                        hfsad_error *err)
{
    (void)dataset_x(s->d);
    sim_settle_leaves(s);
    replay r;
    hfsad_status status = begin_replay(&r, s, path, err);
    r.listener = rows;
    if (!status)
        status = replay_read(&r, text, size);
    if (!status)
        forget_first(&r);
    if (!status)
        find_gone(&r);
    if (!status)
        status = play_all(&r); /* without the numbers: whether it is whole, and which models are needed how long */
    if (!status)
        status = take_rings(&r);
    if (!status)
        status = play_all(&r);
    if (!status)
        status = check_end(&r);
    if (!status) {
        leave_gone(&r);
        settle_replayed(s, r.inner[0].steps, r.up, r.down, r.leaf_dual);
        if (r.n_lent) { /* until sim_free */
            s->lent = r.lent;
            r.lent = NULL;
        }
        for (size_t i = 0; i < s->d->n_inner; i++)
            s->inner[i].last = (uint32_t)s->iteration;
        s->stop = r.stop;
        sim_rest_guard(s);
    }
    *met = r.met;
    s->out = NULL;
    s->unpolished = r.unpolished;
    if (!status && memchr(r.out, 1, s->d->n_leaves)) { /* until sim_free */
        s->left = r.out;
        r.out = NULL;
    }
    free_all(&r);
    return status;
}

/* A client that was readmitted before the first row has begun with what it heard of its parent's model, also if that is
 * rounded; its entry follows. */
static void begin_first(replay *r, const row *first)
{
    sim *s = r->s;
    const size_t inner = s->d->n_inner, M = s->M;
    bool any = false;
    for (size_t node = 1; node < nodes_of(s); node++) { /* parents first */
        const uint64_t at = first->at[node];
        if (at == NO_LINE || at == ABSENT || at >> 32 == 0)
            continue;
        double *heard = s->spaces[0].rows;
        memcpy(heard, s->inner_w + parent_of(s->d, node) * M, M * sizeof *heard);
        if (s->said && !s->p->fixed)
            (void)wire_round(heard, M);
        if (node < inner) {
            sim_anew_model(s, node, heard, r->model);
            sim_place_anew(s, node, r->model);
        } else {
            begin_leaf(r, node - inner, heard);
        }
        any = true;
    }
    if (any && s->d->rows.constant != 0)
        many_settle(s);
}

/* The first row went without some nodes: the mask of the simulation. */
static hfsad_status find_first(sim *s, const char *text, size_t size, const char *path, hfsad_error *err)
{
    replay r;
    hfsad_status status = begin_replay(&r, s, path, err);
    if (!status)
        status = replay_read(&r, text, size);
    if (!status && s->d->later && !replay_row(&r, 0))
        status = error_memory(err, nodes_of(s), "a row of the trace");
    if (!status && r.n_rows && r.rows[0].round == 0) {
        status = find_wanted(&r, &r.rows[0]);
        if (!status)
            begin_first(&r, &r.rows[0]);
        s->here = r.rows[0].here;
        r.rows[0].here = NULL;
    }
    free_all(&r);
    return status;
}

/* Which clients are members at the end: the cloud has noted each that joined or left, also if its edge, without another
 * client, has made no step since. */
static hfsad_status find_left(hfsad_run *r, hfsad_error *err)
{
    dataset *d = r->data;
    for (size_t i = 0; i < r->n_readmitted; i++) {
        const size_t node = nodes_find(d, r->readmitted[i].path);
        const bool leaves = r->readmitted[i].where == ANEW_RETIRED;
        if (node == SIZE_MAX || node < d->n_inner || (!leaves && !d->left))
            continue;
        if (!d->left && !(d->left = alloc_zero(d->n_leaves, sizeof *d->left)))
            return error_memory(err, d->n_leaves, "the record");
        d->left[node - d->n_inner] = leaves;
    }
    return HFSAD_OK;
}

/* With noise a run shows no figures of its clients' rows, as run_measure. */
static void hide_row(void *context, const hfsad_figures *figures)
{
    const replay_rows *to = context;
    hfsad_figures hidden = *figures;
    figures_hide(&hidden);
    to->row(to->context, &hidden);
}

static hfsad_status play_record(hfsad_run *r, const char *text, size_t size, const char *path, const replay_rows *rows,
                                bool *met, hfsad_error *err)
{
    hfsad_figures first;
    hfsad_status status = find_first(r->sim, text, size, path, err);
    if (!status)
        status = run_measure(r, &first, err);
    free(r->sim->here);
    r->sim->here = NULL;
    if (status)
        return status;
    if (r->spec->run.iterations > 0)
        rows->row(rows->context, &first);
    replay_rows to = *rows;
    const replay_rows hiding = {&to, hide_row};
    status = sim_replay(r->sim, text, size, path, plan_has_noise(r->plan) ? &hiding : rows, met, err);
    r->unpolished = r->sim->unpolished;
    r->data->left = r->sim->left;
    r->sim->left = NULL;
    return status ? status : find_left(r, err);
}

hfsad_status run_replay(hfsad_run *r, const char *path, const replay_rows *rows, bool *all, bool *met, hfsad_error *err)
{
    if (!r->sim)
        return error_set(err, HFSAD_ERROR_INPUT, "algorithm: only hfsad has records to replay");
    char *text;
    size_t size;
    const int reason = file_read(path, SIZE_MAX, &text, &size);
    if (reason)
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be read: %s", path, strerror(reason));
    bool only;
    hfsad_status status = run_take_readmissions(r, text, size, &only, err);
    *all = r->spec->federation.mode == MODE_ASYNC || !only;
    if (!status)
        status = run_check_early(r, path, err);
    if (!status && *all)
        status = play_record(r, text, size, path, rows, met, err);
    else if (!status)
        status = sim_take_anew(r->sim, r->readmitted, r->n_readmitted, path, err);
    free(text);
    return status;
}
