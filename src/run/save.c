#include "run/save.h"

#include "run/state.h"

#include <math.h>
#include <string.h>

/* iteration and round are first: sim_unpack checks them before it changes anything. */
static void pass_state(const word_transfer *t, sim *s)
{
    const dataset *d = s->d;
    words_pass(t, &s->iteration);
    words_pass(t, &s->round);
    words_pass(t, &s->bytes_up);
    words_pass(t, &s->bytes_down);
    words_pass(t, &s->stop.met_since);
    guard_pass(t, &s->guard);
    words_pass_flag(t, &s->dual_known);
    words_pass_reals(t, s->z, d->leaf_doubles);
    words_pass_reals(t, s->q, d->leaf_doubles);
    words_pass_reals(t, s->w, d->leaf_doubles);
    for (size_t i = 0; i < d->n_leaves; i++)
        words_pass_32(t, &s->k[i]);
    for (size_t i = 0; s->last && i < d->n_leaves; i++)
        words_pass_32(t, &s->last[i]);
    words_pass_reals(t, s->many.slope, d->n_rows);
    words_pass_reals(t, s->many.eta, d->n_leaves);
    words_pass_reals(t, s->inner_w, d->n_inner * s->M);
    words_pass_reals(t, s->inner_z, d->n_inner * s->M);
    words_pass_reals(t, s->inner_q, d->n_inner * s->M);
    words_pass_reals(t, s->guard.calm, GUARD_VECTORS * s->M);
    for (size_t i = 0; i < d->n_inner; i++) {
        words_pass_32(t, &s->inner[i].k);
        words_pass_32(t, &s->inner[i].last);
        words_pass_reals(t, &s->inner[i].dual, 1);
    }
    for (size_t i = 0; i < s->n_runs; i++)
        words_pass_reals(t, &s->runs[i].dual, 1);
}

void sim_pack(word_writer *w, sim *s)
{
    const word_transfer t = {.out = w};
    sim_settle_leaves(s);
    pass_state(&t, s);
}

bool sim_unpack(sim *s, word_reader *r)
{
    word_writer counted = {0};
    word_reader head = *r;
    sim_pack(&counted, s);
    const uint64_t iteration = words_get(&head), round = words_get(&head);
    if (counted.count != r->left || iteration > UINT32_MAX || round != iteration * s->p->edge_rounds)
        return false;
    const word_transfer t = {.in = r};
    pass_state(&t, s);
    device_changed(s);
    sim_find_rules(s);
    s->stop.converged = false;
    return true;
}

static void put_leaf(sim *s, size_t leaf, const run_share *share)
{
    const dataset *d = s->d;
    const uint32_t parent = dataset_parent(d, leaf);
    const size_t slot = leaf - d->inner[parent].first_leaf;
    sim_settle_leaves(s);
    dataset_scatter(d, s->z, leaf, share->z);
    dataset_scatter(d, s->q, leaf, share->q);
    if (s->w)
        dataset_scatter(d, s->w, leaf, share->w);
    s->k[leaf] = share->k;
    if (s->last)
        s->last[leaf] = share->last;
    if (s->many.slope && share->slope)
        memcpy(s->many.slope + d->rows.first[leaf], share->slope,
               (d->rows.first[leaf + 1] - d->rows.first[leaf]) * sizeof *share->slope);
    if (s->many.eta)
        s->many.eta[leaf] = share->eta;
    s->runs[s->inner[parent].first_run + slot / run_slots(s->M)].dual += share->dual;
}

void sim_put_share(sim *s, size_t node, const run_share *share)
{
    const size_t M = s->M, bytes = M * sizeof *share->w;
    if (node >= s->d->n_inner) {
        put_leaf(s, node - s->d->n_inner, share);
        return;
    }
    memcpy(s->inner_w + node * M, share->w, bytes);
    s->inner[node].last = share->last;
    if (node == 0)
        return;
    memcpy(s->inner_z + node * M, share->z, bytes);
    memcpy(s->inner_q + node * M, share->q, bytes);
    s->inner[node].k = share->k;
    s->inner[node].dual = share->dual;
}

void sim_rest_guard(sim *s)
{
    if (!s->guard.calm)
        return;
    guard_begin(&s->guard, s->guard.calm, s->M, s->inner_w);
    s->guard.first_step = INFINITY;
    s->guard.noted = s->iteration; /* the row of this iteration is behind it */
}

void sim_put_ledger(sim *s, const sim_ledger *ledger)
{
    const guard_state *guard = ledger->guard;
    s->iteration = ledger->iteration;
    s->round = ledger->iteration * s->p->edge_rounds;
    s->bytes_up = ledger->bytes_up;
    s->bytes_down = ledger->bytes_down;
    s->stop = ledger->stop;
    s->dual_known = ledger->iteration > 0; /* the row was measured */
    if (!s->guard.calm || !guard->calm) {
        sim_rest_guard(s);
        return;
    }
    double *room = s->guard.calm;
    const bool star = s->guard.star;
    memcpy(room, guard->calm, GUARD_VECTORS * s->M * sizeof *guard->calm);
    s->guard = *guard;
    s->guard.star = star;
    s->guard.calm = room;
    s->guard.before = room + s->M;
    s->guard.best = room + 2 * s->M;
    sim_find_rules(s);
}

void sim_rewind(sim *s)
{
    s->iteration = s->round = s->bytes_up = s->bytes_down = 0;
    s->stop.met_since = UINT64_MAX;
    s->dual_known = s->stop.converged = false;
    s->guard.least = INFINITY; /* of another objective, maybe */
    s->guard.noted = 0;
    if (s->last)
        memset(s->last, 0, s->d->n_leaves * sizeof *s->last);
    for (size_t i = 0; i < s->d->n_inner; i++) {
        s->inner[i].last = 0;
        s->inner[i].dual = 0;
    }
    for (size_t i = 0; i < s->n_runs; i++)
        s->runs[i].dual = 0;
}

void sim_forget_tolerances(sim *s)
{
    s->stop.met_since = UINT64_MAX;
}

uint64_t sim_iteration(const sim *s)
{
    return s->iteration;
}

bool sim_dual_known(const sim *s)
{
    return s->dual_known || s->iteration == 0;
}

/* A writer that only sums. */
static void nowhere(void *to, const void *bytes, size_t count)
{
    (void)to;
    (void)bytes;
    (void)count;
}

/* Puts numbers of the clients from `leaf` to `end`. */
typedef void (*put_part)(word_writer *w, const dataset *d, size_t leaf, size_t end, const double *v);

static void put_reals(word_writer *w, const dataset *d, size_t leaf, size_t end, const double *v)
{
    const size_t *first = d->rows.first, each = v == d->rows.x ? d->rows.F : 1;
    words_put_reals(w, v + first[leaf] * each, (first[end] - first[leaf]) * each);
}

/* Element by element and not block by block: the space between blocks holds anything. */
static void put_blocks(word_writer *w, const dataset *d, size_t leaf, size_t end, const double *v)
{
    const inner_node *node = &d->inner[dataset_parent(d, leaf)];
    for (; leaf < end; leaf++) {
        const leaf_place place = dataset_place(d, node, (uint32_t)(leaf - node->first_leaf));
        words_put_real(w, d->y[leaf]);
        for (size_t m = 0; m < d->M; m++)
            words_put_real(w, v[place.first + m * place.stride]);
    }
}

/* Of all clients in their order. If ranks have a part of the rows each (data/part.h), the sum goes from one to the
 * next. */
static void put_all(word_writer *w, const dataset *d, put_part put, const double *v)
{
    const rank_group *group = ranks();
    for (size_t i = 0; i < d->n_inner; i++) {
        const inner_node *node = &d->inner[i];
        const size_t wave = d->held && i == 0 ? run_slots(d->M) : node->n_leaves;
        for (size_t slot = 0; slot < node->n_leaves; slot += wave) {
            const size_t leaf = node->first_leaf + slot, left = node->n_leaves - slot;
            if (dataset_holds(d, leaf))
                put(w, d, leaf, leaf + (left < wave ? left : wave), v);
            if (d->held)
                group->share(group->context, share_rank(share_units(d), share_of_slot(d, i, slot)), &w->sum,
                             sizeof w->sum);
        }
    }
}

static void put_rows(word_writer *w, const dataset *d)
{
    const row_table *t = &d->rows;
    const size_t numbers = t->start ? t->start[d->n_rows] : 0;
    words_put(w, t->F);
    words_put_real(w, t->constant);
    if (d->centre) { /* other data may look the same once they are standardised */
        words_put_reals(w, d->centre, t->F);
        words_put_reals(w, d->scale, t->F);
    }
    for (size_t leaf = 0; leaf <= d->n_leaves; leaf++)
        words_put(w, t->first[leaf]);
    for (size_t r = 0; t->start && r <= d->n_rows; r++)
        words_put(w, t->start[r]);
    for (size_t i = 0; t->start && i < numbers; i++)
        words_put(w, t->column[i]);
    if (t->start)
        words_put_reals(w, t->x, numbers);
    else
        put_all(w, d, put_reals, t->x);
    put_all(w, d, put_reals, t->y);
    if (t->weight)
        put_all(w, d, put_reals, t->weight);
}

/* Names, tree and every number of the rows. */
static uint64_t dataset_fingerprint(const dataset *d)
{
    word_writer w = {.put = nowhere};
    words_put(&w, d->M);
    words_put(&w, d->n_inner);
    words_put(&w, d->n_leaves);
    words_put(&w, d->n_rows);
    for (size_t i = 0; i < d->n_inner; i++) {
        words_put(&w, d->inner[i].parent);
        words_put(&w, d->inner[i].n_leaves);
        words_put_text(&w, d->inner[i].name, strlen(d->inner[i].name));
    }
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const char *name = d->names + d->leaf_name[leaf];
        words_put_text(&w, name, strlen(name));
    }
    if (d->rows.first)
        put_rows(&w, d);
    else
        put_all(&w, d, put_blocks, dataset_x(d));
    return w.sum | 1; /* 0 means none */
}

void run_take_prints(hfsad_run *r)
{
    word_writer w = {.put = nowhere};
    const dataset *d = r->data;
    words_put(&w, r->truth != NULL);
    if (r->truth)
        words_put_reals(&w, r->truth, d->rows.first ? d->rows.F : d->M);
    r->data_print = dataset_fingerprint(d);
    r->truth_print = w.sum | 1;
}
