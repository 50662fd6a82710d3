/* Nodes, unreliable messages between them, crashes and strangers: one federation of test_federation in one process. */
#ifndef HFSAD_TESTS_FEDERATION_WORLD_H
#define HFSAD_TESTS_FEDERATION_WORLD_H

#include "federation.h"
#include "plan/cohort.h"
#include "weather.h"

#include <float.h>

/* ---- the world ---- */

enum { REMEMBERED = 64 };

/* What a mask is made of (veil.h), and the words under it. */
typedef struct {
    size_t number, first; /* the node, and the first of its cohort */
    message m;
} masked;

typedef struct world {
    const dataset *d;
    tree t;
    uint64_t seed;  /* of the weather */
    masked *masked; /* secure: what has been said under masks */
    size_t n_masked, masked_room;
    sky sky;
    size_t nodes;
    node **node;
    blob *committed, *lines; /* of every node; lines: of the record */
    uint64_t look;           /* the round from which on the root is to look; 0: never */
    size_t sleeper;          /* a node that hears nothing before it wakes */
    uint64_t wakes;
    bool narrow;                    /* a RECORD takes the place of one that has not arrived, as on a slow link */
    bool hushed;                    /* parents hold that a child does not live until it speaks */
    message remembered[REMEMBERED]; /* old ones, to be played again */
    size_t n_remembered;
    uint64_t crashes, lives;         /* lives: edges that have begun anew */
    double edges;                    /* chance that an edge loses its folder, in a step of the world */
    uint64_t hostile[NODE_REFUSALS]; /* messages that had to be refused for that reason, or another fault of theirs */
    bool *lost;                      /* nodes without a state, which hear and say nothing; NULL: none */
    void (*also)(struct world *);    /* called in every step of the world */
    void *context;                   /* of also */
    size_t n_rows;                   /* committed with the root's state */
    hfsad_figures rows[64];
} world;

/* A letter as it is heard: through a frame where the plan says that messages are rounded. */
static node_letter on_wire(const world *w, const node_letter *letter)
{
    enum { MOST = 64 };
    static double heard[MOST];
    static unsigned char frame[MESSAGE_HEAD_BYTES + 8 * MOST + 8];
    node_letter by_frame = *letter;
    size_t size;
    if (!w->t.p->rounds || w->t.p->fixed || (letter->m.kind != MESSAGE_UP && letter->m.kind != MESSAGE_DOWN))
        return by_frame;
    assert_true(letter->m.count <= MOST && message_bytes_most(letter->m.count) <= sizeof frame);
    if (message_encode(NULL, &letter->m, WIRE_FLOAT, NULL, frame, &size) != MESSAGE_FAULT_NONE)
        return by_frame;
    assert_int_equal(message_decode(NULL, frame, size, NULL, heard, MOST, &by_frame.m), MESSAGE_FAULT_NONE);
    return by_frame;
}

static size_t cohort_begin(const world *w, size_t number)
{
    const inner_node *parent = &w->d->inner[tree_parent(w->d, number)];
    const bool leaf = number >= w->d->n_inner;
    const size_t base = leaf ? w->d->n_inner + parent->first_leaf : parent->first_inner;
    return base + cohort_of(w->t.p, leaf ? parent->n_leaves : parent->n_inner, number - base);
}

/* Two messages under one mask give their difference away; masks of different questions do not cancel. */
static void note_masked(world *w, size_t number, const message *m)
{
    const size_t first = cohort_begin(w, number);
    bool there = false;
    for (size_t i = 0; i < w->n_masked && !there; i++) {
        const masked *old = &w->masked[i];
        if (old->first != first || old->m.kind != m->kind || old->m.phase != m->phase || old->m.round != m->round)
            continue;
        if (memcmp(old->m.digest, m->digest, sizeof m->digest) != 0 || old->m.count != m->count)
            fail_msg("weather %" PRIu64 ": nodes %zu and %zu answer different questions: kind %d, round %" PRIu64,
                     w->seed, old->number, number, (int)m->kind, m->round);
        there = old->number == number;
        if (there && memcmp(old->m.values, m->values, m->count * sizeof *m->values) != 0)
            fail_msg("weather %" PRIu64 ": node %zu says two things under one mask: kind %d, round %" PRIu64, w->seed,
                     number, (int)m->kind, m->round);
    }
    if (there)
        return;
    assert_true(alloc_grow((void **)&w->masked, &w->masked_room, w->n_masked + 1, sizeof *w->masked));
    w->masked[w->n_masked++] = (masked){number, first, copy_of(m)};
}

static void publish(world *w, size_t number, const node_letter *letter)
{
    if (letter->to_parent && letter->m.fixed && w->t.p->secure)
        note_masked(w, number, &letter->m);
    if (w->narrow && letter->m.kind == MESSAGE_RECORD)
        sky_clear(&w->sky, tree_parent(w->d, number), tree_slot(w->d, number), MESSAGE_RECORD);
    sky_publish(&w->sky, number, letter);
    if (chance(&w->sky, 0.1)) {
        message *old = &w->remembered[w->n_remembered % REMEMBERED];
        if (w->n_remembered++ >= REMEMBERED)
            free(old->values);
        *old = copy_of(&letter->m);
    }
}

static void hush(const world *w, size_t number)
{
    const inner_node *at = number < w->d->n_inner ? &w->d->inner[number] : NULL;
    for (size_t c = 0; w->hushed && at && c < (size_t)at->n_inner + at->n_leaves; c++)
        node_child_lives(w->node[number], c, false);
}

static bool is_lost(const world *w, size_t number)
{
    return w->lost && w->lost[number];
}

static void restart(world *w, size_t number)
{
    hfsad_error err;
    blob *state = &w->committed[number];
    node_free(w->node[number]);
    ok(tree_node(&w->node[number], &w->t, number, &err), &err);
    node_tick(w->node[number], w->sky.now);
    if (state->size) {
        word_reader reader = {state->bytes, state->size / WORD_BYTES, false};
        assert_true(node_unpack(w->node[number], &reader));
    }
    hush(w, number);
    sky_return(&w->sky, number);
    w->crashes++;
}

/* Commits what has changed, then sends; killed before, between or after. */
static void commit_and_send(world *w, size_t number)
{
    node *n = w->node[number];
    node_letter letter;
    hfsad_figures row;
    if (is_lost(w, number))
        return;
    const bool has_row = node_take_figures(n, &row);
    char *lines = node_take_lines(n);
    if (chance(&w->sky, w->sky.weather.crash)) {
        free(lines);
        restart(w, number);
        return;
    }
    assert_true(!lines || node_changed(n));
    if (lines)
        blob_append(&w->lines[number], lines, strlen(lines));
    free(lines);
    if (node_changed(n)) {
        word_writer writer = {.put = blob_append, .to = &w->committed[number]};
        w->committed[number].size = 0;
        node_pack(n, &writer);
        if (has_row) {
            assert_true(w->n_rows < 64);
            w->rows[w->n_rows++] = row;
        }
    } else {
        assert_false(has_row);
    }
    do {
        if (chance(&w->sky, w->sky.weather.crash)) {
            restart(w, number);
            return;
        }
        if (!node_next_letter(n, &letter))
            return;
        letter = on_wire(w, &letter);
        publish(w, number, &letter);
    } while (true);
}

/* Commits without a crash, and sends nothing. */
static void commit_now(world *w, size_t number)
{
    hfsad_figures row;
    node *n = w->node[number];
    const bool has_row = node_take_figures(n, &row);
    char *lines = node_take_lines(n);
    if (lines)
        blob_append(&w->lines[number], lines, strlen(lines));
    free(lines);
    word_writer writer = {.put = blob_append, .to = &w->committed[number]};
    w->committed[number].size = 0;
    node_pack(n, &writer);
    if (has_row)
        w->rows[w->n_rows++] = row;
}

static void admit(world *w, size_t parent, size_t slot, size_t number)
{
    double numbers[NODE_ADMISSION + 64];
    const size_t count = node_admission_count(w->node[number]);
    assert_true(count <= sizeof numbers / sizeof *numbers);
    node_admission(w->node[parent], slot, numbers);
    assert_true(node_admit(w->node[number], numbers, count, node_begun(w->node[parent])));
    commit_now(w, number);
    node_child_confirm(w->node[parent], slot, w->lives);
    commit_now(w, parent);
}

/* An edge loses its state and its record, and is readmitted with its clients. */
static void replace_edge(world *w)
{
    hfsad_error err;
    const size_t number = below(&w->sky.r, w->d->n_inner), parent = tree_parent(w->d, number);
    const inner_node *at = &w->d->inner[number];
    const int64_t last = node_last_row(w->node[0]), end = (int64_t)(w->t.p->iterations * w->t.p->edge_rounds);
    if (number == 0 || at->n_inner > 0 || last < 0 || last >= end) /* sim_replay does not make the first row */
        return;
    const size_t slot = number - w->d->inner[parent].first_inner;
    node_free(w->node[number]);
    ok(tree_node(&w->node[number], &w->t, number, &err), &err);
    node_tick(w->node[number], w->sky.now);
    free(node_take_lines(w->node[number]));
    w->lines[number].size = 0;
    assert_true(node_child_begin(w->node[parent], slot, ++w->lives));
    commit_now(w, parent);
    admit(w, parent, slot, number);
    for (size_t leaf = 0; leaf < at->n_leaves; leaf++)
        admit(w, number, leaf, w->d->n_inner + at->first_leaf + leaf);
    hush(w, number);
    sky_return(&w->sky, number);
}

/* ---- strangers ---- */

/* Whether sigma never overflows, which ends all bounds. */
static bool is_tame(const tree *t)
{
    const plan *const all[] = {t->p, t->tied, t->trial};
    for (size_t i = 0; i < 3; i++)
        for (size_t c = 0; all[i] && c < all[i]->n_leaf_classes; c++)
            if (all[i]->leaf_classes[c].rule.schedule.c > 1e100)
                return false;
    return true;
}

static message nonsense(world *w, double *values, size_t to, node_refusal *why)
{
    const size_t M = w->d->M;
    message m = {.kind = (message_kind)below(&w->sky.r, MESSAGE_KINDS), .run = w->t.run, .phase = NODE_PHASE_TRAIN};
    const uint64_t round = node_get_status(w->node[to]).round;
    m.round = round + below(&w->sky.r, 3);
    m.k = below(&w->sky.r, 50);
    m.sigma = 1;
    m.count = below(&w->sky.r, 2) ? M : below(&w->sky.r, 3 * M);
    m.values = values;
    for (size_t i = 0; i < m.count; i++)
        values[i] = 1e3;
    switch (below(&w->sky.r, is_tame(&w->t) ? 6 : 5)) {
    case 5: /* a lie of the right form */
        m.kind = MESSAGE_UP;
        m.round = round + (to ? 1 : w->t.p->edge_rounds);
        m.count = M;
        m.sigma = below(&w->sky.r, 2) ? 1e12 : 1;
        for (size_t i = 0; i < M; i++)
            values[i] = below(&w->sky.r, 2) ? 1e30 : -1e300;
        *why = NODE_REFUSED_BOUND;
        break;
    case 0:
        m.run ^= (uint64_t)1 << below(&w->sky.r, 64);
        *why = NODE_REFUSED_RUN;
        break;
    case 1:
        m.count = 200 + below(&w->sky.r, 50); /* neither a model nor a tally */
        memset(values, 0, m.count * sizeof *values);
        *why = NODE_REFUSED_SIZE;
        break;
    case 2:
        m.count += !m.count;
        values[below(&w->sky.r, m.count)] = below(&w->sky.r, 2) ? (double)NAN : (double)INFINITY;
        *why = NODE_REFUSED_VALUE;
        break;
    case 3:
        m.round += w->t.p->edge_rounds * w->t.p->trace_every * (1 + below(&w->sky.r, 1000000)) + 2;
        if (w->t.async) /* nobody knows how far a parent is */
            m.round += w->t.p->edge_rounds * w->t.p->iterations;
        *why = NODE_REFUSED_FUTURE;
        break;
    default:
        m.kind = MESSAGE_STATUS;
        *why = NODE_REFUSED_KIND;
    }
    return m;
}

/* Something that no node may believe; an acknowledgement can at most make a sender repeat less, which only delays. */
static void attack(world *w)
{
    double values[256];
    const size_t to = below(&w->sky.r, w->nodes), children = tree_children(w->d, to);
    size_t from = children && below(&w->sky.r, 2) ? below(&w->sky.r, children + 2) : NODE_PARENT;
    node_refusal meant, why;
    if (w->n_remembered && below(&w->sky.r, 2)) { /* an old one, to anybody, from anybody */
        const size_t held = w->n_remembered < REMEMBERED ? w->n_remembered : REMEMBERED;
        const message *old = &w->remembered[below(&w->sky.r, held)];
        if (from == NODE_PARENT ? old->kind == MESSAGE_UP : old->kind == MESSAGE_DOWN)
            assert_false(node_handle(w->node[to], from, old, NULL));
        return;
    }
    const message m = nonsense(w, values, to, &meant);
    if (m.kind == MESSAGE_ACK)
        return;
    if (node_handle(w->node[to], from, &m, &why))
        fail_msg("a message was believed that is %s: kind %d, round %" PRIu64
                 ", count %zu, to node %zu at round %" PRIu64,
                 node_refusal_text(meant), (int)m.kind, m.round, m.count, to, node_get_status(w->node[to]).round);
    w->hostile[why]++;
}

/* ---- time goes by ---- */

static uint64_t next_event(const world *w)
{
    uint64_t next = sky_next(&w->sky);
    for (size_t i = 0; i < w->nodes; i++) {
        const uint64_t due = is_lost(w, i) ? UINT64_MAX : node_due(w->node[i]);
        next = due < next ? due : next;
    }
    return next;
}

/* A child's message with a lie in it, handed over before the true one. */
static void lie(world *w, const parcel *p)
{
    message m = copy_of(&p->m);
    if (m.kind == MESSAGE_UP && m.phase) {
        switch (below(&w->sky.r, 5)) {
        case 0:
            m.sigma *= below(&w->sky.r, 2) ? 1e12 : 1.001;
            break;
        case 1:
            m.sigma = DBL_MAX;
            break;
        case 2:
            m.values[0] = below(&w->sky.r, 2) ? 1e300 : -1e40;
            break;
        case 3:
            m.values[0] = DBL_MAX; /* infinity */
            break;
        default:
            m.k += 1 + below(&w->sky.r, 5000) + 3 * w->t.p->edge_rounds * !!w->t.async;
        }
    } else if (m.kind == MESSAGE_ANSWER && !m.fixed && m.count > w->d->M + 7 && (m.phase & 255) == NODE_PHASE_TRAIN) {
        m.values[below(&w->sky.r, 2) ? 5 : 9] = below(&w->sky.r, 2) ? -1 : -1e300; /* clients, penalty */
    } else {
        free(m.values);
        return;
    }
    if (node_handle(w->node[p->to], p->from, &m, NULL))
        fail_msg("weather %" PRIu64 ": node %zu believes a lie: kind %d, round %" PRIu64 ", k %" PRIu64
                 ", sigma %g, %g",
                 w->seed, p->to, (int)m.kind, m.round, m.k, m.sigma, m.values[0]);
    free(m.values);
}

static void deliver(world *w, parcel p)
{
    if (is_lost(w, p.to)) {
        free(p.m.values);
        return;
    }
    node_tick(w->node[p.to], w->sky.now);
    if (p.from != NODE_PARENT && w->sky.weather.hostile > 0 && is_tame(&w->t) && below(&w->sky.r, 4) == 0)
        lie(w, &p);
    if (w->t.async && !w->t.p->fixed && p.to >= w->d->n_inner && below(&w->sky.r, 4) == 0)
        node_set_local_steps(w->node[p.to], 1 + (uint32_t)below(&w->sky.r, 3));
    node_refusal why = NODE_REFUSED_OLD;
    if ((p.to != w->sleeper || w->sky.now >= w->wakes) && !node_handle(w->node[p.to], p.from, &p.m, &why) &&
        why != NODE_REFUSED_OLD)
        fail_msg("weather %" PRIu64 ": node %zu refuses what its neighbour has said, %s: kind %d, phase %" PRIx64
                 ", round %" PRIu64,
                 w->seed, p.to, node_refusal_text(why), (int)p.m.kind, p.m.phase, p.m.round);
    free(p.m.values);
    if (chance(&w->sky, 0.5)) /* otherwise it goes on to the next before it commits */
        commit_and_send(w, p.to);
}

static bool all_ended(const world *w)
{
    for (size_t i = 0; i < w->nodes; i++)
        if (node_ended(w->node[i]) == NODE_RUNNING)
            return false;
    return true;
}

/* Until all have ended, or the root has looked at the models of the others. */
static bool goes_on(const world *w)
{
    return w->look == 0 ? !all_ended(w) : !node_models_below(w->node[0]);
}

static void play(world *w)
{
    enum { STEPS = 2000000 };
    for (size_t i = 0; i < w->nodes; i++)
        commit_and_send(w, i);
    for (size_t step = 0; step < STEPS && goes_on(w); step++) {
        if (w->look && node_get_status(w->node[0]).round >= w->look)
            node_look(w->node[0]);
        uint64_t next = next_event(w);
        /* The end was lost on the way to a client that has nothing to say: it hears it when it is connected anew. */
        if (w->lives && (next == UINT64_MAX || step % 50000 == 49999)) {
            for (size_t i = 0; i < w->nodes; i++)
                sky_return(&w->sky, i);
            next = next_event(w);
        }
        if (next == UINT64_MAX)
            fail_msg("%s, weather %" PRIu64 ": nobody has anything to say any more",
                     w->d->inner[w->d->n_inner - 1].name, w->seed);
        w->sky.now = next > w->sky.now ? next : w->sky.now;
        parcel p;
        for (size_t i = 0; sky_take(&w->sky, &i, &p);)
            deliver(w, p);
        for (size_t i = 0; i < w->nodes; i++)
            if (!is_lost(w, i) && (node_due(w->node[i]) <= w->sky.now || node_changed(w->node[i]))) {
                node_tick(w->node[i], w->sky.now);
                commit_and_send(w, i);
            }
        if (chance(&w->sky, w->sky.weather.hostile))
            attack(w);
        if (w->edges > 0 && chance(&w->sky, w->edges))
            replace_edge(w);
        if (w->also)
            w->also(w);
    }
    if (goes_on(w))
        for (size_t i = 0; i < w->nodes; i++) {
            const node_status s = node_get_status(w->node[i]);
            print_message("node %zu: round %" PRIu64 " k %" PRIu64 " ended %d due %" PRIu64 "\n", i, s.round, s.k,
                          (int)node_ended(w->node[i]), node_due(w->node[i]));
        }
    assert_false(goes_on(w));
}

static world *world_create(const tree *t, weather outside, uint64_t seed)
{
    hfsad_error err;
    world *w = alloc_zero(1, sizeof *w);
    const dataset *d = t->d;
    w->d = d;
    w->t = *t;
    w->sleeper = SIZE_MAX;
    sky_open(&w->sky, d, outside, seed);
    w->seed = seed;
    w->nodes = d->n_inner + d->n_leaves;
    w->node = alloc_zero(w->nodes, sizeof(node *));
    w->committed = alloc_zero(w->nodes, sizeof *w->committed);
    w->lines = alloc_zero(w->nodes, sizeof *w->lines);
    for (size_t i = 0; i < w->nodes; i++)
        ok(tree_node(&w->node[i], &w->t, i, &err), &err);
    return w;
}

static void world_free(world *w)
{
    for (size_t i = 0; i < w->nodes; i++) {
        node_free(w->node[i]);
        free(w->committed[i].bytes);
        free(w->lines[i].bytes);
    }
    sky_close(&w->sky);
    for (size_t i = 0; i < w->n_masked; i++)
        free(w->masked[i].m.values);
    free(w->masked);
    for (size_t i = 0; i < REMEMBERED && i < w->n_remembered; i++)
        free(w->remembered[i].values);
    free(w->node);
    free(w->committed);
    free(w->lines);
    free(w);
}

#endif
