/*
 * A lost node is replaced. Its link starts anew from its parent's model, and so do all links below it:
 *
 *     z = q = w = w_parent,   k = 0,   the coordinates that no link ties are 0
 *
 * The parent begins the link first (node_child_begin), as if the child had just said so; the child follows when it is
 * told (node_admit). Whatever a child said in an earlier life of the link is old: each of its messages has the number
 * of the life. In lock step the link begins before the round that follows the parent's last one, and before or after
 * the measurement of that round, as the cloud's record says; the simulator repeats it (run/anew.h).
 */
#include "net/node_parts.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of an admission before its model. */
enum { LIFE, STAGE, REPAIRS, ROUND, ANSWERED, TURNS, VERSION, STEPS };
_Static_assert(STEPS + 1 == NODE_ADMISSION, "numbers of an admission");

size_t node_admission_count(const node *n)
{
    return NODE_ADMISSION + n->s.M;
}

/* ---- draws of the rounds that are done ---- */

typedef struct {
    uint32_t last;
    uint64_t draws, iterations; /* rounds and global iterations in which it took part */
} history;

static history history_of(const node *n, double participation, uint64_t key, uint64_t rounds)
{
    history h = {0};
    for (uint64_t r = 1; r <= rounds; r++) {
        const uint32_t before = h.last;
        if (!node_draw(n, participation, key, &h.last, r))
            continue;
        h.draws++;
        h.iterations += before < h.last;
    }
    return h;
}

/* ---- the parent ---- */

/* What the child begins with is kept until it has: the parent may go on meanwhile. false: no memory. */
static bool take_begin(node *n, size_t c)
{
    child_state *child = &n->inner.child[c];
    const size_t tied = n->s.M - n->s.children[c].rule.penalty.free;
    if (!child->begin && !(child->begin = alloc_zero(n->s.M, sizeof *child->begin)))
        return false;
    memcpy(child->begin, n->w, tied * sizeof *n->w);
    memset(child->begin + tied, 0, (n->s.M - tied) * sizeof *n->w);
    /* The record names the version that the children receive; in fixed point only UPs are rounded. */
    if (n->s.async && n->s.p->rounds && !n->s.p->fixed)
        (void)wire_round(child->begin, n->s.M);
    return true;
}

static void assume_anew(node *n, size_t c)
{
    child_state *child = &n->inner.child[c];
    const hfsad_link_rule rule = child_rule(n, c);
    inner_assume(n, c, &rule, child->begin);
    child->k = child->due_k = 0;
    child->strain = (guard_strain){0, 0};
    memset(child->strain_words, 0, sizeof child->strain_words);
    child->admitted = false;
}

/* In lock step: what it has to send in the round that is open. */
static void owe_round(node *n, size_t c)
{
    const node_child *as = &n->s.children[c];
    child_state *child = &n->inner.child[c];
    history h = history_of(n, as->participation, as->key, n->round);
    uint64_t draws = 0;
    for (uint64_t r = n->round + 1; r <= n->inner.opened; r++)
        draws += node_draw(n, as->participation, as->key, &h.last, r);
    child->due_k = draws * (as->leaf ? as->local_steps : 1);
    child->has = child->need <= n->round;
    child->need = child->has ? n->round : child->need;
    child->told = child->has;
    if (n->state == NODE_TRAINS)
        node_send(n, &n->down);
    if (n->question.state == QUESTION_ASKED) {
        child->answered = false;
        child->parts = 0;
    }
}

/* The end is on its way: nothing of the child is used any more. */
bool node_is_over(const node *n)
{
    return n->answer.final || n->state == NODE_FINISHED ||
           (n->s.async && n->answer.round >= 0 && (uint64_t)n->answer.round >= n->end_round);
}

bool node_child_begin(node *n, size_t c, uint64_t life)
{
    child_state *child = &n->inner.child[c];
    if (life <= child->life)
        return false;
    if (!take_begin(n, c) || (n->s.async && !node_is_over(n) && !async_begin_child(n, c, life)))
        return false; /* no memory: it will be asked for again */
    child->life = life;
    child->begun_at = n->s.async ? n->async.version : n->round;
    child->where = n->s.async || node_is_over(n)          ? ANEW_ELSEWHERE
                   : is_prelude(n)                        ? ANEW_EARLY
                   : n->answer.round == (int64_t)n->round ? ANEW_AFTER
                                                          : ANEW_BEFORE;
    child->admitted = false;
    n->changed = true;
    if (node_is_over(n)) { /* the model that belongs to its last figures is lost */
        child->out = child->out || n->s.async;
        return true;
    }
    record_child_begins(n, c);
    assume_anew(n, c);
    if (n->s.async)
        return true;
    owe_round(n, c);
    inner_advance(n); /* it may sit out the round that waited for the lost one only */
    return true;
}

bool node_child_retire(node *n, size_t c, uint64_t life)
{
    child_state *child = &n->inner.child[c];
    if (life <= child->life || !n->s.async || !n->s.children[c].leaf ||
        (!node_is_over(n) && !async_leave_child(n, c, life)))
        return false;
    child->life = life;
    child->begun_at = n->async.version;
    child->where = ANEW_RETIRED;
    child->k = 0;
    child->out = child->out || node_is_over(n); /* its last figures stay; its model is not waited for */
    child->admitted = true;                     /* the only message left is that it may end */
    free(child->begin);
    child->begin = NULL;
    n->changed = true;
    inner_advance(n);
    return true;
}

/* It outlasts a crash, so that the same one is given again. */
uint64_t node_order(node *n, const char *path, bool retires)
{
    node_readmission *free_one = NULL;
    for (size_t i = 0; i < NODE_ORDERS; i++) {
        node_readmission *o = &n->root.orders[i];
        if (o->number && strcmp(o->path, path) == 0 && o->retires == retires)
            return o->number;
        if (!free_one && !o->number)
            free_one = o;
    }
    if (!free_one)
        return 0;
    free_one->number = ++n->life;
    free_one->retires = retires;
    snprintf(free_one->path, sizeof free_one->path, "%s", path);
    n->changed = true;
    return free_one->number;
}

const char *node_pending_order(const node *n, size_t i, bool *retires)
{
    *retires = n->root.orders[i].retires;
    return n->root.orders[i].number ? n->root.orders[i].path : NULL;
}

uint64_t node_child_life(const node *n, size_t c)
{
    return n->inner.child[c].life;
}

bool node_child_is_admitted(const node *n, size_t c)
{
    return n->inner.child[c].admitted;
}

run_readmission node_child_readmission(const node *n, size_t c)
{
    const child_state *child = &n->inner.child[c];
    const uint64_t at = child->begun_at, steps = n->s.async && is_root(n) ? 1 : n->K;
    const uint64_t iteration = child->where == ANEW_EARLY    ? 0
                               : child->where == ANEW_BEFORE ? (at + n->K - 1) / n->K
                                                             : at / steps + 1;
    return (run_readmission){iteration, at, child->where, NULL};
}

void node_child_confirm(node *n, size_t c, uint64_t life)
{
    child_state *child = &n->inner.child[c];
    n->changed = n->changed || (child->life == life && !child->admitted);
    child->admitted = child->admitted || child->life == life;
    if (child->admitted) {
        free(child->begin);
        child->begin = NULL;
    }
}

void node_admission(node *n, size_t c, double *numbers)
{
    const child_state *child = &n->inner.child[c];
    const double head[NODE_ADMISSION] = {
        [LIFE] = (double)child->life,          [STAGE] = (double)n->s.stage,   [REPAIRS] = (double)n->repairs,
        [ROUND] = (double)child->begun_at, /* this node may have gone on if the child sits out; those below it do not */
        [ANSWERED] = (double)n->answer.round,  [TURNS] = (double)child->turns, [VERSION] = (double)child->need,
        [STEPS] = (double)child->copied.steps,
    };
    memcpy(numbers, head, sizeof head);
    memcpy(numbers + NODE_ADMISSION, child->begin, n->s.M * sizeof *numbers);
}

void node_note_readmission(node *n, uint64_t number, const run_readmission *done)
{
    char text[1200];
    snprintf(text, sizeof text, "admitted %" PRIu64 " %" PRIu64 " %d %.1000s\n", done->iteration, done->round,
             (int)done->where, done->path);
    for (size_t i = 0; i < NODE_ORDERS; i++)
        if (n->root.orders[i].number == number)
            n->root.orders[i] = (node_readmission){0};
    async_put(n, text);
    n->changed = true;
}

/* ---- the child ---- */

/* Asynchronous: its steps are counted on from those that its parent knows. The earlier state of its clients is unknown
 * here: clients that were absent at the set-up join again, the others are members. */
static bool admit_edge(node *n, const double *numbers, uint64_t life)
{
    char text[80];
    n->async.version = (uint64_t)numbers[STEPS];
    n->async.turn_left = n->async.held = n->async.n_heard = 0;
    n->async.steps_on = n->async.stopping = false;
    n->sent_up = (uint64_t)numbers[TURNS];
    n->sent_down = 0;
    n->up_round = n->down_round = (uint64_t)numbers[VERSION];
    n->inner.has_settled = n->inner.has_models = false;
    memcpy(n->inner.w_parent, n->w, n->s.M * sizeof *n->w);
    record_begin_anew(n);
    const bool over = n->answer.round >= 0 && (uint64_t)n->answer.round >= n->end_round; /* nothing of it is used */
    snprintf(text, sizeof text, over ? "over %" PRIu64 "\n" : "anew %" PRIu64 " %" PRIu64 "\n", life, n->async.version);
    async_put(n, text);
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        if (!take_begin(n, c))
            return false;
        assume_anew(n, c);
        child->life = life;
        child->need = n->async.version;
        child->turns = 0;
        child->fresh = child->aside = child->out = child->missed = false;
        child->absent = !n->s.pace.stale_waits; /* until it speaks */
        child->begun_at = n->async.version;
        child->where = ANEW_ELSEWHERE;
        if (n->s.children[c].out && !async_leave_child(n, c, life))
            return false;
        child->admitted = child->out; /* it asks to join */
    }
    n->life = life;
    return true;
}

/* false: no memory; the order is repeated. */
static bool admit_children(node *n, uint64_t life)
{
    const history own = history_of(n, n->s.inner->participation, n->s.key, n->round);
    n->sent_down = own.draws * n->s.n_children;
    n->inner.opened = n->round;
    n->inner.has_settled = n->inner.has_models = false;
    memcpy(n->inner.w_parent, n->w, n->s.M * sizeof *n->w);
    for (size_t c = 0; c < n->s.n_children; c++) {
        const node_child *as = &n->s.children[c];
        child_state *child = &n->inner.child[c];
        if (!take_begin(n, c))
            return false;
        assume_anew(n, c);
        child->last = history_of(n, as->participation, as->key, n->round).last;
        child->life = life;
        child->need = n->round;
        child->begun_at = n->round;
        child->where = ANEW_ELSEWHERE;
        child->told = true;
    }
    n->life = life;
    return true;
}

static bool are_whole(const double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (i != ANSWERED && !(numbers[i] >= 0 && numbers[i] <= 0x1p53))
            return false;
    return numbers[ANSWERED] >= -1 && numbers[ANSWERED] <= 0x1p53;
}

static void admit_leaf(node *n, const double *numbers)
{
    if (!n->s.async)
        return;
    n->sent_up = (uint64_t)numbers[TURNS];
    n->async.held = 0;
    n->up_round = n->down_round = (uint64_t)numbers[VERSION];
}

bool node_admit(node *n, const double *numbers, size_t count, uint64_t parent_begun)
{
    const double *w = numbers + NODE_ADMISSION;
    /* With noise, a restarted link would send other rounds with the noise of the first rounds, and too many rounds. */
    if (plan_has_noise(n->s.p) || count < node_admission_count(n) || is_root(n) ||
        !are_whole(numbers, NODE_ADMISSION) || (n->s.async && n->s.inner && inner_first_leaf(n) > 0) ||
        !all_finite(w, n->s.M))
        return false;
    const uint64_t life = (uint64_t)numbers[LIFE], stage = (uint64_t)numbers[STAGE];
    if (life <= n->life)
        return life == n->life;
    if (stage >= n->s.stages || (stage != n->s.stage && !stage_begin(n, stage, w)))
        return false;
    n->repairs = (uint64_t)numbers[REPAIRS];
    node_begin_anew(n, w, false);
    n->state = NODE_RESTS; /* of whatever it was in: its parent has no use for that */
    n->question.state = QUESTION_NONE;
    n->answer.say = NULL;
    n->answer.final = false;
    n->answer.look = 0;
    n->answer.round = (int64_t)numbers[ANSWERED];
    n->ack_down = false; /* of the life before */
    channel_stop(&n->down);
    channel_stop(&n->question.ask);
    channel_stop(&n->answer.models);
    n->round = n->s.async ? n->round : (uint64_t)numbers[ROUND];
    n->down_round = n->round;
    n->up_round = numbers[VERSION] < (double)n->round ? (uint64_t)numbers[VERSION] : n->round;
    /* In lock step the next DOWN asks for an UP: a parent that has begun again since has forgotten the one that it
     * assumed. */
    n->parent_begun = parent_begun - (n->s.async ? 0 : 1);
    const history own =
        history_of(n, n->s.leaf ? n->s.leaf->participation : n->s.inner->participation, n->s.key, n->round);
    n->last = own.last;
    n->sent_up = n->s.depth > 1 ? own.draws : own.iterations;
    if (n->s.leaf) {
        n->life = life;
        admit_leaf(n, numbers);
        return true;
    }
    if (n->begun >> NODE_BEGUN_BIT < life) /* what it has said before is old for its children */
        n->begun = (life << NODE_BEGUN_BIT) + 1;
    if (!(n->s.async ? admit_edge(n, numbers, life) : admit_children(n, life)))
        return false;
    inner_advance(n);
    return true;
}
