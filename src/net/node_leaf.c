/* A client: it steps on its parent's DOWN, and answers questions. */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cell/client.h"
#include "plan/client_terms.h"

#include <stdlib.h>
#include <string.h>

static uint64_t add_reals(uint64_t sum, const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        sum = words_sum_add(sum, bits);
    }
    return sum;
}

/* A fingerprint of all rows: a stored state is valid only with the same rows. */
static uint64_t print_of_rows(const node_setup *s)
{
    const client_rows *rows = &s->rows;
    if (s->x)
        return add_reals(add_reals(1, &s->y, 1), s->x, s->M);
    uint64_t sum = add_reals(rows->count, rows->y, rows->count);
    if (rows->weight)
        sum = add_reals(sum, rows->weight, rows->count);
    for (size_t r = 0; r < rows->count; r++) {
        const size_t first = rows->start ? rows->start[r] : r * rows->F,
                     count = rows->start ? rows->start[r + 1] - first : rows->F;
        if (rows->pages)
            pages_visit(rows->pages, rows->x + first);
        sum = add_reals(sum, rows->x + first, count);
        for (size_t i = first; rows->start && i < first + count; i++)
            sum = words_sum_add(sum, rows->column[i]);
    }
    if (rows->pages)
        pages_leave(rows->pages);
    return sum;
}

static bool begin_noise(node *n)
{
    n->leaf.noise.before = alloc_zero(2 * n->s.M, sizeof(double));
    n->leaf.noise.steps = alloc_zero(n->s.M, sizeof(int64_t));
    n->leaf.noise.seeded.key = n->s.noise_key;
    n->leaf.noise.words = n->s.noise.next ? n->s.noise : seeded_words_source(&n->leaf.noise.seeded);
    return n->leaf.noise.before && n->leaf.noise.steps;
}

hfsad_status leaf_create(node *n, hfsad_error *err)
{
    const node_setup *s = &n->s;
    const size_t rows = s->x ? 0 : s->rows.count;
    n->leaf.slope = alloc_zero(rows, sizeof(double));
    n->leaf.anchor = alloc_zero(rows_anchored(&s->leaf->loss) ? rows : 0, sizeof(double));
    n->leaf.solver =
        alloc_zero(s->x ? s->M + hfsad_loss_scratch(&s->leaf->loss, s->M) : rows_scratch(s->M, rows), sizeof(double));
    n->leaf.centre = alloc_zero(s->M, sizeof(double));
    n->leaf.x = s->x ? alloc_zero(s->M, sizeof(double)) : NULL;
    if (n->leaf.x)
        memcpy(n->leaf.x, s->x, s->M * sizeof *n->leaf.x);
    if (!n->leaf.slope || !n->leaf.anchor || !n->leaf.solver || !n->leaf.centre || (s->x && !n->leaf.x))
        return error_memory(err, rows * sizeof(double), "a client's rows");
    if (plan_has_noise(s->p) && !begin_noise(n))
        return error_memory(err, 3 * s->M * sizeof(double), "the noise of a client");
    n->leaf.data_print = print_of_rows(s);
    if (!s->x) {
        n->leaf.factor = client_factor(s->leaf, &s->rows);
        if (n->a->links && client_is_factored(s->leaf, &s->rows, s->M))
            n->leaf.squared = squared_create(&s->rows, s->M, n->leaf.factor);
    }
    return HFSAD_OK;
}

void leaf_free(node *n)
{
    free(n->leaf.slope);
    free(n->leaf.anchor);
    free(n->leaf.solver);
    free(n->leaf.centre);
    free(n->leaf.x);
    free(n->leaf.noise.before);
    free(n->leaf.noise.steps);
    squared_free(n->leaf.squared);
}

static leaf_run run_of(node *n, const double *w_parent)
{
    return (leaf_run){
        .M = n->s.M,
        .count = 1,
        .lanes = 1,
        .loss = &n->s.leaf->loss,
        .rule = &n->rule,
        .x = n->leaf.x,
        .y = &n->s.y,
        .n = &n->s.n,
        .z = n->z,
        .q = n->q,
        .w = n->w,
        .k = &n->k,
        .w_parent = w_parent,
        .split = n->s.p->split,
        .majorant = guard_majorises(n->s.p, n->repairs),
        .scratch = n->leaf.solver,
        .sum_u = n->u,
        .want_dual = true,
    };
}

static rows_leaf rows_of(node *n, const double *w_parent)
{
    const leaf_class *class = n->s.leaf;
    return (rows_leaf){
        .problem =
            {
                .loss = &class->loss,
                .solver = &class->solver,
                .rows = n->s.rows,
                .M = n->s.M,
                .factor = n->leaf.factor,
                .slope = n->leaf.slope,
                .anchor = rows_anchored(&class->loss) ? n->leaf.anchor : NULL,
                .eta = &n->leaf.eta,
                .squared = n->leaf.squared,
                .own = plan_client_loss(n->s.p, class),
                .node = n->s.number,
                .scratch = n->leaf.solver,
            },
        .rule = &n->rule,
        .z = n->z,
        .q = n->q,
        .w = n->w,
        .k = &n->k,
        .w_parent = w_parent,
        .majorant = guard_majorises(n->s.p, n->repairs),
        .centre = n->leaf.centre,
    };
}

void leaf_step(node *n, const double *w_parent, uint32_t times)
{
    if (n->s.x) {
        leaf_run run = run_of(n, w_parent);
        run.local_steps = times;
        kernels()->leaf_run(&run);
        n->dual = run.dual;
        return;
    }
    const rows_leaf leaf = rows_of(n, w_parent);
    double *before = n->leaf.noise.before;
    client_noise noise = {n->s.p, n->leaf.noise.words, before, before ? before + n->s.M : NULL, n->leaf.noise.steps};
    n->dual = client_steps(&leaf, times, before ? &noise : NULL, &n->too_large);
}

void leaf_skip_to(node *n, uint64_t round, uint32_t last)
{
    if (round > n->round)
        n->dual = 0;
    n->round = round;
    n->last = last;
}

/* The rounds of one DOWN. */
static bool play(node *n, uint64_t first, const double *w_parent)
{
    bool took_part = false;
    for (uint64_t r = first; r < first + n->period; r++) {
        const uint32_t last = n->last;
        n->dual = 0;
        if (node_draw(n, n->s.leaf->participation, n->s.key, &n->last, r)) {
            n->a->leaf_round(n, w_parent, r);
            took_part = true;
            n->sent_up += n->period == 1 || last < n->last; /* the cloud uses only the last of an iteration */
        }
    }
    n->round = first + n->period - 1;
    return took_part;
}

bool leaf_handle_down(node *n, const message *m, node_refusal *why)
{
    uint32_t last;
    if (m->count != n->s.M + n->a->down)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round <= n->down_round || m->round <= n->round) {
        if (m->round == n->down_round && memcmp(m->digest, n->down_digest, sizeof m->digest) != 0)
            return node_refuse(n, why, NODE_REFUSED_VALUE);
        if (m->round == n->down_round)
            node_greet(n, m->k);
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    const uint64_t before = m->round - 1;
    if (m->round > n->end_round || before % n->period || before >= node_next_measure(n) ||
        !node_sits_out_until(n, before, &last))
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    leaf_skip_to(n, before, last);
    n->down_round = m->round;
    memcpy(n->down_digest, m->digest, sizeof m->digest);
    channel_stop(&n->up);
    node_greet(n, m->k);
    if (play(n, m->round, m->values)) {
        n->up_round = n->round;
        memcpy(n->up_digest, n->down_digest, sizeof n->up_digest);
        node_send(n, &n->up);
    }
    n->changed = true;
    return true;
}

const double *leaf_consensus(node *n, const double *w0, const double *w_parent)
{
    const double *from = n->s.intercept == INTERCEPT_CLIENT ? (n->s.keeps_w ? n->w : n->z)
                         : n->s.intercept == INTERCEPT_EDGE ? w_parent
                                                            : NULL;
    return client_consensus(n->s.M, w0, from ? from + n->s.M - 1 : NULL, n->u);
}

void links_measure_leaf(node *n, const double *w0, const double *w_parent, tally *t)
{
    const size_t tier = n->s.depth - 1;
    *t = (tally){.up = (double)n->sent_up, .clients = 1};
    if (plan_has_noise(n->s.p))
        return;
    t->dual[tier] = n->dual;
    if (n->s.intercept == INTERCEPT_CLIENT)
        t->intercepts = (n->s.keeps_w ? n->w : n->z)[n->s.M - 1];
    if (n->s.x) {
        leaf_run run = run_of(n, w_parent);
        run.w = n->s.keeps_w ? n->w : NULL;
        kernels()->leaf_measure(&run, w0, &t->tier[tier]);
        return;
    }
    const rows_leaf leaf = rows_of(n, w_parent);
    client_measure(&leaf, n->s.keeps_w ? n->w : n->z, leaf_consensus(n, w0, w_parent), &t->tier[tier]);
}
