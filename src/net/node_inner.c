/* An edge, any inner node, and the root: it opens a round, waits for its children, steps, and passes questions on. */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hfsad_status inner_create(node *n, hfsad_error *err)
{
    const size_t M = n->s.M, children = n->s.n_children;
    node_child *copy = alloc_zero(children, sizeof *copy);
    if (copy)
        memcpy(copy, n->s.children, children * sizeof *copy);
    n->s.children = copy;
    n->w_parent = alloc_zero(M, sizeof(double));
    n->child = alloc_zero(children, sizeof *n->child);
    n->child_u = alloc_zero(children * M, sizeof(double));
    n->child_figures = alloc_zero(children * node_figures_count(n), sizeof(double));
    n->partial = alloc_zero(tree_lanes(M) * M + M, sizeof(double));
    n->sum = alloc_zero(M, sizeof(double));
    n->ask_w = alloc_zero(2 * M, sizeof(double));
    n->ask_parent = alloc_zero(M, sizeof(double));
    n->slots = alloc_zero(2 * children + 1, sizeof(double));
    if (!copy || !n->w_parent || !n->child || !n->child_u || !n->child_figures || !n->partial || !n->sum || !n->ask_w ||
        !n->ask_parent || !n->slots)
        return error_memory(err, children * M * sizeof(double), "the messages of a node's children");
    memcpy(n->w_parent, n->s.start, M * sizeof *n->w_parent);
    n->nodes = 1;
    for (size_t c = 0; c < children; c++)
        n->nodes += copy[c].nodes;
    return HFSAD_OK;
}

void inner_free(node *n)
{
    free((node_child *)n->s.children);
    free(n->w_parent);
    free(n->child);
    free(n->child_u);
    free(n->child_figures);
    free(n->partial);
    free(n->sum);
    free(n->ask_w);
    free(n->ask_parent);
    free(n->slots);
    free(n->models);
}

/* ---- rounds ---- */

/* The first leaf among the children. */
static size_t first_leaf(const node *n)
{
    size_t c = 0;
    while (c < n->s.n_children && !n->s.children[c].leaf)
        c++;
    return c;
}

/* Sum of the children's u in the order of the simulator: inner ones, then the leaves in runs. Returns that of sigma. */
double inner_sum(node *n)
{
    const size_t M = n->s.M, leaves = first_leaf(n), slots = run_slots(M);
    double sigma = 0, *run_u = n->partial + tree_lanes(M) * M;
    memset(n->sum, 0, M * sizeof *n->sum);
    for (size_t c = 0; c < leaves; c++) {
        sigma += n->child[c].sigma;
        kernels()->add(M, n->sum, n->child_u + c * M);
    }
    for (size_t first = leaves; first < n->s.n_children; first += slots) {
        fold run;
        fold_begin(&run, M, n->partial, run_u);
        for (size_t c = first; c < n->s.n_children && c < first + slots; c++)
            fold_add(&run, n->child_u + c * M, n->child[c].sigma);
        fold_end(&run);
        sigma += run.sum_sigma;
        kernels()->add(M, n->sum, run_u);
    }
    return sigma;
}

static uint64_t period_start(const node *n, uint64_t round)
{
    return (round - 1) / n->period * n->period + 1;
}

static bool takes_part_in(const node *n, uint64_t round)
{
    uint32_t last = n->last;
    return node_draw(n, n->s.inner->participation, n->s.key, &last, round);
}

/* After a measurement a round begins only when the parent goes on, which may have ended the run instead. (The root
 * whose run has ended may still wait for the polish.) */
static bool may_open(const node *n)
{
    if (n->finished || n->end != NODE_RUNNING || n->round >= n->end_round || n->asking ||
        (n->pending && n->ask_round == n->round))
        return false;
    if (n->round == node_next_measure(n) || (is_root(n) && look_holds(n)))
        return false;
    const bool measured = (int64_t)n->round == n->answered || (n->s.guarded && n->round % n->K == 0);
    const bool passed_over = n->pending && n->ask_round > n->round; /* no DOWN: it sits out until that question */
    return is_root(n) || !measured || n->down_round > n->round || passed_over;
}

static void open_round(node *n)
{
    const uint64_t end = n->round + n->unit;
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->child[c];
        const node_child *as = &n->s.children[c];
        bool takes_part = false;
        for (uint64_t r = n->round + 1; r <= end; r++)
            takes_part |= node_draw(n, as->participation, as->key, &child->last, r);
        takes_part |= n->s.guarded && !as->leaf;
        child->told = !takes_part;
        if (!takes_part)
            continue;
        child->need = end;
        child->has = false;
    }
    n->open = true;
    n->changed = true;
    channel_start(n, &n->down);
}

static bool is_ready(const node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++)
        if (!n->child[c].has)
            return false;
    const uint64_t round = n->round + n->unit;
    return is_root(n) || (!n->s.guarded && !takes_part_in(n, round)) || n->down_round == period_start(n, round);
}

static void step_root(node *n)
{
    const double sigma = inner_sum(n);
    hfsad_root_step(&n->s.inner->prior, n->s.M, n->sum, sigma, n->w);
    n->sent_down += n->s.n_children;
    n->diverged = !all_finite(n->w, n->s.M);
}

static void step_inner(node *n, uint64_t round)
{
    const inner_class *class = n->s.inner;
    const uint32_t last = n->last;
    n->dual = 0;
    if (!node_draw(n, class->participation, n->s.key, &n->last, round))
        return;
    const double sigma = inner_sum(n);
    hfsad_link link = {n->z, n->q, n->k + 1};
    kernels()->inner_update(&class->prior, &n->rule, &link, n->s.M, n->sum, sigma, n->w);
    n->dual = kernels()->link_step(&n->rule, &link, n->s.M, n->w, n->w_parent);
    n->k = link.k;
    n->took_part = true;
    n->sent_down += n->s.n_children;
    n->sent_up += n->s.depth > 1 || last < n->last; /* the cloud uses only the last of an iteration */
}

static void step(node *n)
{
    if (is_root(n))
        step_root(n);
    else
        step_inner(n, n->round + 1);
    n->round += n->unit;
    n->open = false;
    n->changed = true;
    channel_stop(&n->down);
    if (is_root(n) && n->s.guarded) {
        n->anew = guard_decide(&n->guard, n->s.p, n->s.M, n->s.tied, n->w, n->round / n->K, inner_strain(n));
        n->diverged = n->diverged && !n->anew;
    }
    if (is_root(n) || n->round % n->period || !(n->took_part || n->s.guarded))
        return;
    n->took_part = false;
    n->up_round = n->round;
    channel_start(n, &n->up);
}

/* ---- the safeguard ---- */

guard_strain inner_strain(const node *n)
{
    guard_strain all = {0, 0};
    for (size_t c = 0; c < n->s.n_children && !n->s.children[c].leaf; c++) {
        all.sum += n->child[c].strain.sum;
        all.count += n->child[c].strain.count;
    }
    return all;
}

void inner_assume(node *n, size_t c, const hfsad_link_rule *rule, const hfsad_link *link)
{
    double *u = n->child_u + c * n->s.M;
    n->child[c].sigma = hfsad_link_message(rule, link, n->s.M, u);
    n->child[c].has = true;
    if (n->s.p->rounds)
        (void)wire_round(u, n->s.M);
}

/* What its children say after they have begun anew is known without asking. */
void inner_begin_anew(node *n)
{
    node_begin_anew(n, n->ask_w);
    n->anew = false;
    memcpy(n->w_parent, n->w, n->s.M * sizeof *n->w);
    const hfsad_link link = {n->w, n->w, 0};
    for (size_t c = 0; c < n->s.n_children; c++) {
        const node_child *as = &n->s.children[c];
        const hfsad_link_rule rule = !as->leaf   ? guard_rule(&as->rule, n->repairs)
                                     : n->s.star ? guard_star_rule(n->s.p, &as->rule, n->repairs)
                                                 : as->rule;
        child_state *child = &n->child[c];
        inner_assume(n, c, &rule, &link);
        child->k = 0;
        child->strain = (guard_strain){0, 0};
    }
}

/* ---- questions ---- */

/* This node's part of the figures. Asynchronous training goes on while the answers come. */
static void take_own(node *n)
{
    const inner_class *class = n->s.inner;
    n->own = (tally){.priors = kernels()->prior_value(&class->prior, n->s.M, n->w),
                     .consensus_priors = kernels()->prior_value(&class->prior, n->s.M, n->ask_w),
                     .up = (double)n->sent_up,
                     .down = (double)n->sent_down};
    n->asked_version = n->version;
    n->changed = n->changed || n->s.async;
    if (is_root(n))
        return;
    const hfsad_link link = {n->z, n->q, n->k};
    kernels()->link_measure(&class->rule, &link, n->s.M, n->w, n->ask_parent, n->ask_w, &n->own.tier[n->s.depth - 1]);
    n->own.dual[n->s.depth - 1] = n->dual;
}

/* On lack of memory the answers are dropped; they come again, and so does this. */
static bool has_room_for_models(node *n)
{
    if (!n->models)
        n->models = alloc_zero(n->nodes * n->s.M, sizeof(double));
    return n->models != NULL;
}

void inner_ask(node *n, uint64_t phase, uint64_t round)
{
    n->pending = n->asking = true;
    n->ask_phase = phase;
    n->ask_round = round;
    if (phase == NODE_PHASE_TRAIN) {
        memcpy(n->ask_w + (is_root(n) ? 0 : n->s.M), n->w, n->s.M * sizeof *n->w);
        take_own(n);
    }
    if (phase == NODE_PHASE_FINAL)
        (void)has_room_for_models(n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        n->child[c].answered = false;
        n->child[c].parts = 0;
    }
    channel_start(n, &n->ask);
}

/* The children's tallies in the order of plan/tally.h; intercepts one after another. */
static void add_children(const node *n, tally *t)
{
    const size_t count = node_figures_count(n), leaves = first_leaf(n), slots = run_slots(n->s.M);
    tally child;
    for (size_t c = 0; c < leaves; c++) {
        tally_unpack(&child, n->s.tiers, n->child_figures + c * count);
        tally_add(t, &child);
    }
    for (size_t first = leaves; first < n->s.n_children; first += slots) {
        tally run = {0};
        for (size_t c = first; c < n->s.n_children && c < first + slots; c++) {
            tally_unpack(&child, n->s.tiers, n->child_figures + c * count);
            t->intercepts += child.intercepts;
            child.intercepts = 0;
            tally_add(&run, &child);
        }
        tally_add(t, &run);
    }
}

/* Where clients or edges have intercepts of their own, nothing ties the nodes above: they show the mean over the
 * clients below. */
static void settle(node *n, tally *t)
{
    const size_t leaves = n->s.n_children - first_leaf(n);
    const bool own_client = n->s.intercept == INTERCEPT_CLIENT;
    const double *w = n->ask_w + (is_root(n) ? 0 : n->s.M);
    if (n->s.intercept == INTERCEPT_EDGE)
        t->intercepts += (double)leaves * w[n->s.M - 1];
    n->has_settled = own_client || (n->s.intercept == INTERCEPT_EDGE && leaves == 0);
    if (n->has_settled)
        n->settled = t->intercepts / t->clients;
}

/* The root has the tree's tally: a row of the trace, and whether to go on. */
static void conclude(node *n, const tally *t)
{
    hfsad_figures *f = &n->row;
    *f = (hfsad_figures){.relative_error = NAN, .seconds = NAN};
    const bool last = n->ask_round >= n->end_round;
    tally_figures(t, n->s.M, n->s.tiers, n->s.async && last ? n->version : n->ask_round / n->K, true, f);
    if (is_prelude(n)) {
        n->answered = (int64_t)n->ask_round;
        stage_conclude(n, f);
        return;
    }
    stop_rule(&n->stop, n->s.p, t, f, n->s.M, n->s.links, n->s.absences);
    n->stopping = n->stopping || (n->s.async && n->stop.converged); /* nobody stands still yet */
    n->row_ready = true;
    memcpy(n->row_w, n->ask_w, n->s.M * sizeof *n->row_w);
    n->answered = (int64_t)n->ask_round;
    if (!figures_are_finite(f))
        n->end = NODE_DIVERGED;
    else if (n->s.async ? n->stopping && last : n->stop.converged)
        n->end = NODE_CONVERGED;
    else if (last)
        n->end = NODE_DONE;
}

static void finish_measurement(node *n)
{
    tally t = n->own;
    if (n->s.async && n->ask_round == n->end_round)
        async_end(n);
    else if (n->s.async && n->ask_round > 0)
        async_row(n);
    add_children(n, &t);
    settle(n, &t);
    if (is_root(n)) {
        conclude(n, &t);
        return;
    }
    node_answer(n, &t, n->ask_round);
    n->answer_phase = NODE_PHASE_TRAIN;
    channel_start(n, &n->answer);
}

void inner_ack_all(node *n)
{
    n->ack_answer = true;
    for (size_t c = 0; c < n->s.n_children; c++)
        n->child[c].ack_answer = true;
}

static void finish_question(node *n)
{
    n->pending = n->asking = false;
    n->changed = true;
    channel_stop(&n->ask);
    if (n->ask_phase == NODE_PHASE_ANEW) {
        inner_begin_anew(n);
        return;
    }
    if (n->ask_phase == NODE_PHASE_STAGE) {
        if (!stage_begin(n, n->s.stage + 1, n->ask_w)) /* who asks will ask again */
            return;
        n->say_stage = !is_root(n);
        return;
    }
    if (n->ask_phase == NODE_PHASE_TRAIN) {
        finish_measurement(n);
        return;
    }
    node_model(n, n->models);
    n->answer_phase = NODE_PHASE_FINAL;
    n->part = 0;
    if (is_root(n)) {
        n->finished = true;
        inner_ack_all(n);
    } else {
        channel_start(n, &n->answer);
    }
}

static bool all_answered(const node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++)
        if (!n->child[c].answered)
            return false;
    return true;
}

static bool measures_now(const node *n, uint64_t *round)
{
    if (n->s.async)
        return async_measures(n, round);
    *round = node_next_measure(n);
    return n->round == *round;
}

/* The root asks by itself. */
static void root_questions(node *n)
{
    uint64_t round;
    if (n->finished || n->open || n->pending)
        return;
    if (n->diverged && is_prelude(n) && !n->stage_over)
        stage_conclude(n, NULL); /* nothing can come of it any more */
    if (n->stage_over) {
        stage_next_start(n, n->ask_w);
        inner_ask(n, NODE_PHASE_STAGE, 0);
    } else if (n->anew) {
        memcpy(n->ask_w, n->guard.calm, n->s.M * sizeof *n->ask_w);
        inner_ask(n, NODE_PHASE_ANEW, n->round);
    } else if (n->end != NODE_RUNNING && n->end != NODE_DIVERGED && n->polish && !n->polished) {
        return; /* somebody will see to it, node_wants_polish */
    } else if (n->end != NODE_RUNNING) {
        inner_ask(n, NODE_PHASE_FINAL, (uint64_t)n->answered);
    } else if (measures_now(n, &round)) {
        memcpy(n->ask_w, n->w, n->s.M * sizeof *n->w);
        inner_ask(n, NODE_PHASE_TRAIN, round);
    }
}

void inner_advance(node *n)
{
    for (;;) {
        if (is_root(n)) {
            root_questions(n);
            look_advance(n);
        }
        if (n->asking && all_answered(n)) {
            finish_question(n);
        } else if (n->pending && !n->asking && (n->s.async || (!n->open && n->ask_round == n->round))) {
            inner_ask(n, n->ask_phase, n->ask_round);
        } else if (n->open && (n->s.async ? async_is_ready(n) : is_ready(n))) {
            (n->s.async ? async_step : step)(n);
        } else if (!n->open && (n->s.async ? async_may_open(n) : may_open(n))) {
            (n->s.async ? async_open : open_round)(n);
        } else {
            return;
        }
    }
}

/* ---- messages ---- */

/* Whether it takes no part in any round after the last one done, up to `round`. */
static bool sits_out_until(const node *n, uint64_t round)
{
    uint32_t last = n->last;
    for (uint64_t r = n->round + 1; r <= round; r++)
        if (node_draw(n, n->s.inner->participation, n->s.key, &last, r))
            return false;
    return true;
}

static bool handle_down(node *n, const message *m, node_refusal *why)
{
    if (m->count != n->s.M)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round <= n->down_round) {
        if (m->round == n->down_round) {
            node_greet(n, m->k);
            n->ack_down = true;
        }
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    const uint64_t before = m->round - 1;
    if (before % n->period || before >= node_next_measure(n) ||
        (n->s.guarded ? before != n->round : !sits_out_until(n, before)))
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (m->round > n->up_round)
        channel_stop(&n->up);
    channel_stop(&n->answer);
    n->down_round = m->round;
    memcpy(n->w_parent, m->values, n->s.M * sizeof *n->w_parent);
    n->changed = true;
    node_greet(n, m->k);
    return true;
}

static bool handle_ask(node *n, const message *m, node_refusal *why)
{
    const bool final = m->phase == NODE_PHASE_FINAL;
    if (m->count != (final ? 0 : node_ask_count(n)))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    const bool in_hand = n->pending && n->ask_phase == m->phase && n->ask_round == m->round;
    const bool repeated = m->phase == n->answer_phase && (int64_t)m->round == n->answered;
    if (in_hand || repeated || m->phase < n->answer_phase || (!final && (int64_t)m->round < n->answered)) {
        if (repeated && !in_hand && m->k > n->asker_begun) {
            n->part = 0;
            channel_start(n, &n->answer);
        }
        n->asker_begun = m->k > n->asker_begun ? m->k : n->asker_begun;
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    if (final        ? (int64_t)m->round != n->answered
        : n->s.async ? !async_may_ask(n, m->round)
                     : m->round != node_next_measure(n) || m->round < n->round)
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (n->s.async && !final) {
        if (!async_can_answer(n, m->round)) /* it will be asked again */
            return node_refuse(n, why, NODE_REFUSED_OLD);
        n->changed = true;
    } else if (m->round >= n->up_round && !n->took_part) {
        channel_stop(&n->up);
    }
    if (n->s.async && (final || m->round == n->end_round)) {
        n->open = false;
        n->turn_left = 0;
        n->halted = true; /* also after a crash: what the children have answered must stay true */
        n->changed = true;
        channel_stop(&n->down);
    }
    channel_stop(&n->answer);
    n->asker_begun = m->k;
    n->pending = true;
    n->asking = false;
    n->ask_phase = m->phase;
    n->ask_round = m->round;
    if (!final) {
        memcpy(n->ask_w, m->values, n->s.M * sizeof *n->ask_w);
        memcpy(n->ask_parent, m->values + (n->s.depth > 1 ? n->s.M : 0), n->s.M * sizeof *n->ask_parent);
    }
    return true;
}

static bool handle_up(node *n, size_t c, const message *m, node_refusal *why)
{
    child_state *child = &n->child[c];
    const bool strained = n->s.guarded && !n->s.children[c].leaf;
    if (m->count != n->s.M + (strained ? 2 : 0))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round != child->need || child->has) {
        child->ack_up = child->ack_up || m->round == child->need;
        n->ack_up = n->ack_up || child->ack_up;
        return node_refuse(n, why, m->round > child->need ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    }
    if (!(m->sigma > 0) || m->k < child->k || m->k > UINT32_MAX)
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    if (strained)
        child->strain = (guard_strain){m->values[n->s.M], m->values[n->s.M + 1]};
    child->has = child->told = true;
    child->k = m->k;
    child->sigma = m->sigma;
    memcpy(n->child_u + c * n->s.M, m->values, n->s.M * sizeof(double));
    return true;
}

size_t node_models_before(const node *n, size_t c)
{
    size_t nodes = 1;
    for (size_t i = 0; i < c; i++)
        nodes += n->s.children[i].nodes;
    return nodes * n->s.M;
}

/* The models of a child's subtree, part after part. */
static bool take_part(node *n, size_t c, const message *m, node_refusal *why)
{
    child_state *child = &n->child[c];
    if (!has_room_for_models(n))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    const bool wanted = m->k == child->parts;
    if (wanted) {
        memcpy(n->models + node_models_before(n, c) + m->k * n->s.part, m->values, m->count * sizeof *m->values);
        child->answered = ++child->parts == node_parts_of(n, n->s.children[c].nodes);
    }
    child->ack_part = !child->answered;
    n->ack_part = n->ack_part || child->ack_part;
    return wanted || node_refuse(n, why, NODE_REFUSED_OLD);
}

static bool handle_answer(node *n, size_t c, const message *m, node_refusal *why)
{
    const bool final = m->phase == NODE_PHASE_FINAL;
    const size_t count = final ? node_part_size(n, n->s.children[c].nodes, m->k) : node_figures_count(n);
    if (m->count != count || count == 0)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    const bool in_hand = n->asking && m->phase == n->ask_phase && m->round == n->ask_round;
    if (!in_hand || n->child[c].answered) { /* also where we have begun again and not asked again yet */
        const bool known = in_hand || n->finished || (!final && (int64_t)m->round <= n->answered);
        n->child[c].ack_answer = n->child[c].ack_answer || (known && (!final || n->finished));
        n->ack_answer = n->ack_answer || n->child[c].ack_answer;
        const bool early = final ? (int64_t)m->round > n->answered : m->round > node_next_measure(n);
        return node_refuse(n, why, early && !in_hand ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    }
    if (final)
        return take_part(n, c, m, why);
    memcpy(n->child_figures + c * count, m->values, count * sizeof *m->values);
    n->child[c].answer_k = m->k;
    n->child[c].answered = true;
    return true;
}

/* A child has the DOWN of the open round, from this life of ours: where all who are needed have, it is not repeated. */
static bool handle_ack(node *n, size_t c, const message *m, node_refusal *why)
{
    if (m->count != 1)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (!n->open || m->round != n->round + 1 || m->values[0] != (double)n->begun ||
        !(n->child[c].has || n->child[c].need == n->round + n->unit))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    n->child[c].told = true;
    return true;
}

static bool all_told(const node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++)
        if (!n->child[c].told || (!n->child[c].has && n->child[c].need != n->round + n->unit))
            return false;
    return true;
}

bool inner_handle(node *n, size_t from, const message *m, node_refusal *why)
{
    bool news;
    if (n->finished && from != NODE_PARENT) {
        n->ack_answer = n->child[from].ack_answer = true;
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    switch (m->kind) {
    case MESSAGE_DOWN:
        news = n->s.async ? async_handle_down(n, m, why) : handle_down(n, m, why);
        break;
    case MESSAGE_ASK:
        news = handle_ask(n, m, why);
        break;
    case MESSAGE_UP:
        news = n->s.async ? async_handle_up(n, from, m, why) : handle_up(n, from, m, why);
        break;
    case MESSAGE_ACK:
        news = handle_ack(n, from, m, why);
        break;
    default:
        news = handle_answer(n, from, m, why);
    }
    if (!news)
        return false;
    inner_advance(n);
    if (n->open && !n->s.async && all_told(n))
        channel_stop(&n->down);
    return true;
}
