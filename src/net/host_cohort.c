/*
 * Secure aggregation in a process: the cards of the children go up to their parent, the list of all of them comes down
 * (veil.h), and what a node says in fixed point is masked. ASK and ANSWER in NODE_PHASE_COHORT, round 1 for a card, 2
 * for the list; bytes travel four to a number, behind their count. A parent retransmits its ASK until all have
 * answered. It keeps nothing: after a restart it asks again, and gets the same cards, because keys are in state
 * folders.
 */
#include "base/clock.h"
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS = 1, LIST = 2, WITHOUT = 3, PER_NUMBER = 4 };

/* ---- bytes as numbers ---- */

static size_t numbers_for(size_t bytes)
{
    return 1 + (bytes + PER_NUMBER - 1) / PER_NUMBER;
}

static void put_bytes(double *to, const unsigned char *bytes, size_t size)
{
    *to++ = (double)size;
    for (size_t i = 0; i < size; i += PER_NUMBER) {
        unsigned char part[PER_NUMBER] = {0};
        memcpy(part, bytes + i, size - i < PER_NUMBER ? size - i : PER_NUMBER);
        *to++ = (double)get32(part);
    }
}

/* The bytes of a message, malloc'ed; NULL: it is not one, or no memory. */
static unsigned char *get_bytes(const message *m, size_t *size)
{
    const double most = (double)MESSAGE_COUNT_MAX * PER_NUMBER;
    if (m->count < 1 || !(m->values[0] >= 0 && m->values[0] <= most) || m->values[0] != floor(m->values[0]))
        return NULL;
    *size = (size_t)m->values[0];
    unsigned char *bytes = m->count == numbers_for(*size) ? alloc_raw(*size + PER_NUMBER, 1) : NULL;
    for (size_t i = 0; bytes && i + 1 < m->count; i++) {
        const double v = m->values[1 + i];
        put32(bytes + i * PER_NUMBER, v >= 0 && v <= UINT32_MAX ? (uint32_t)v : 0);
    }
    return bytes;
}

/* ---- entering ---- */

static hfsad_status make_call(hosted *at, const host_place *place, hfsad_error *err)
{
    const size_t n = place->n_children;
    cohort_call *c = at->call = alloc_zero(1, sizeof *c);
    if (c) {
        c->in = alloc_zero(n, sizeof *c->in);
        c->cards = alloc_zero(n, sizeof *c->cards);
        c->sizes = alloc_zero(n, sizeof *c->sizes);
        c->has_list = alloc_zero(n, sizeof *c->has_list);
        c->without = alloc_zero(n, sizeof *c->without);
        c->patience = (node_patience){.first_ms = 200, .most_ms = 5000};
    }
    if (!c || !c->in || !c->cards || !c->sizes || !c->has_list || !c->without)
        return error_memory(err, n * sizeof *c, "the cohorts of a node");
    memcpy(c->in, place->in_cohort, n * sizeof *c->in);
    channel_start(&c->ask, clock_ms(), &c->patience);
    return HFSAD_OK;
}

hfsad_status host_cohort_enter(host *h, hosted *at, const host_place *place, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    if (place->cohort && !h->veil)
        status = veil_create(&h->veil, host_folder(h), host_has_state(h), place->ca, h->s.run_id, err);
    if (!status && place->cohort)
        status = veil_join(h->veil, &at->veil, place->cohort, err);
    if (!status && place->cohort && !veil_signs(h->veil))
        host_tell(h, HOST_KEYS_UNSIGNED, at->path, "", "", NULL);
    if (!status && place->in_cohort)
        status = make_call(at, place, err);
    return status;
}

void host_cohort_leave(hosted *at)
{
    cohort_call *c = at->call;
    veil_leave(at->veil);
    if (!c)
        return;
    for (size_t i = 0; c->cards && i < at->n_children; i++)
        free(c->cards[i]);
    free(c->in);
    free(c->cards);
    free(c->sizes);
    free(c->has_list);
    free(c->without);
    free(c->list);
    free(c);
}

/* ---- the parent ---- */

/* All cards are there: the list goes out. */
static void make_list(cohort_call *c, size_t n, uint64_t now)
{
    const unsigned char **cards = alloc_zero(n, sizeof *cards);
    size_t *sizes = alloc_zero(n, sizeof *sizes), count = 0, size = 0;
    for (size_t i = 0; i < n && cards && sizes; i++)
        if (c->in[i]) {
            cards[count] = c->cards[i];
            sizes[count++] = c->sizes[i];
        }
    unsigned char *list = cards && sizes ? veil_make_list(cards, sizes, count, &size) : NULL;
    c->list = list ? alloc_zero(numbers_for(size), sizeof *c->list) : NULL;
    if (c->list) {
        c->list_count = numbers_for(size);
        put_bytes(c->list, list, size);
        channel_start(&c->ask, now, &c->patience);
    }
    free(list);
    free(cards);
    free(sizes);
}

static void take_card(cohort_call *c, size_t from, const message *m)
{
    size_t size = 0;
    unsigned char *card = get_bytes(m, &size);
    if (card && size > VEIL_CARD_MOST) {
        free(card);
        card = NULL;
    }
    c->cards[from] = card;
    c->sizes[from] = size;
}

/* Whether an answer is about the member in hand: the broker remembers those about others. */
static bool names_lost(const cohort_call *c, const message *m)
{
    size_t size;
    unsigned char *path = get_bytes(m, &size);
    const bool same = path && size == strcspn(c->lost_text, "\n") && memcmp(path, c->lost_text, size) == 0;
    free(path);
    return same;
}

static void hear_child(hosted *at, size_t from, const message *m, uint64_t now)
{
    cohort_call *c = at->call;
    if (m->kind != MESSAGE_ANSWER || !c || !c->in[from])
        return;
    if (m->round == WITHOUT) {
        c->without[from] = c->without[from] || names_lost(c, m);
        return;
    }
    if (m->round == LIST && c->list) {
        c->has_list[from] = true;
        for (size_t i = 0; i < at->n_children; i++)
            if (c->in[i] && !c->has_list[i])
                return;
        channel_stop(&c->ask);
        return;
    }
    if (m->round != CARDS || c->list)
        return;
    if (!c->cards[from])
        take_card(c, from, m);
    for (size_t i = 0; i < at->n_children; i++)
        if (c->in[i] && !c->cards[i])
            return;
    make_list(c, at->n_children, now); /* without memory: again when the next card comes */
}

bool host_cohort_without(hosted *at, size_t slot, const char *text)
{
    cohort_call *c = at->call;
    size_t first, end;
    node_child_wish(at->n, slot);
    if (!node_child_may_leave(at->n, slot))
        return false;
    node_child_close(at->n, slot); /* committed before the other nodes receive it */
    if (c->renew.live && c->lost != slot && node_child_is_closing(at->n, c->lost))
        return false; /* one after another; the order is repeated */
    if (!c->renew.live || c->lost != slot) {
        c->lost = slot;
        memset(c->without, 0, at->n_children * sizeof *c->without);
        channel_start(&c->renew, clock_ms(), &c->patience);
    }
    snprintf(c->lost_text, sizeof c->lost_text, "%s", text); /* perhaps with another proof */
    node_unit(at->n, slot, &first, &end);
    for (size_t i = first; i < end; i++)
        if (i != slot && !c->without[i] && node_child_stays(at->n, i))
            return false;
    channel_stop(&c->renew);
    return true;
}

static hfsad_status send_lost(host *h, hosted *at, hfsad_error *err)
{
    cohort_call *c = at->call;
    double values[2 + INQUIRY_WHY_MOST / PER_NUMBER + 1];
    uint64_t repeated = 0;
    message m = {.kind = MESSAGE_ASK, .run = h->s.run_id, .phase = NODE_PHASE_COHORT, .round = WITHOUT};
    if (!channel_take(&c->renew, &repeated))
        return HFSAD_OK;
    m.values = values;
    m.count = numbers_for(strlen(c->lost_text));
    put_bytes(values, (const unsigned char *)c->lost_text, strlen(c->lost_text));
    return host_send(h, at, BELOW, TOPIC_ASK, &m, err);
}

hfsad_status host_cohort_send(host *h, hosted *at, hfsad_error *err)
{
    cohort_call *c = at->call;
    uint64_t repeated = 0;
    const hfsad_status status = send_lost(h, at, err);
    if (status)
        return status;
    message m = {.kind = MESSAGE_ASK, .run = h->s.run_id, .phase = NODE_PHASE_COHORT, .round = c->list ? LIST : CARDS};
    if (!channel_take(&c->ask, &repeated))
        return HFSAD_OK;
    m.values = c->list;
    m.count = c->list ? c->list_count : 0;
    return host_send(h, at, BELOW, TOPIC_ASK, &m, err);
}

/* ---- a member ---- */

static void say(host *h, hosted *at, uint64_t round, const unsigned char *bytes, size_t size)
{
    double values[1 + VEIL_CARD_MOST / PER_NUMBER + 1];
    hfsad_error err;
    message m = {.kind = MESSAGE_ANSWER, .run = h->s.run_id, .phase = NODE_PHASE_COHORT, .round = round};
    m.values = values;
    m.count = bytes ? numbers_for(size) : 0;
    if (bytes)
        put_bytes(values, bytes, size);
    host_break_down(h, host_send(h, at, ABOVE, TOPIC_ANSWER, &m, &err), &err);
}

/* Another member has left: "path\nproof". */
static void hear_lost(host *h, hosted *at, const message *m)
{
    char why[VEIL_WHY] = "it is damaged";
    size_t size;
    unsigned char *bytes = get_bytes(m, &size);
    char *text = (char *)bytes, *proof = NULL;
    if (text) {
        text[size] = 0;
        proof = strchr(text, '\n');
    }
    if (proof)
        *proof++ = 0;
    const veil_answer answer = proof && at->n ? veil_renew(at->veil, text, proof, node_said(at->n), why) : VEIL_REFUSED;
    if (answer == VEIL_TAKEN)
        say(h, at, WITHOUT, bytes, strlen(text));
    else if (answer == VEIL_REFUSED)
        host_tell(h, HOST_COHORT_REFUSED, at->path, why, at->parent, NULL);
    free(bytes);
}

static void hear_parent(host *h, hosted *at, const message *m)
{
    char why[VEIL_WHY] = "it is damaged";
    size_t size;
    if (m->kind != MESSAGE_ASK || !at->veil)
        return;
    if (m->round == WITHOUT) {
        hear_lost(h, at, m);
        return;
    }
    if (m->round == CARDS) {
        const unsigned char *card = veil_card(at->veil, &size);
        say(h, at, CARDS, card, size);
        return;
    }
    unsigned char *list = m->round == LIST ? get_bytes(m, &size) : NULL;
    const bool taken = list && veil_take_list(at->veil, list, size, why);
    free(list);
    if (taken)
        say(h, at, LIST, NULL, 0);
    else
        host_tell(h, HOST_LIST_REFUSED, at->path, why, at->parent, NULL);
}

void host_cohort_hear(host *h, hosted *at, size_t from, const message *m)
{
    if (m->run != h->s.run_id || m->fixed)
        return;
    if (from == NODE_PARENT)
        hear_parent(h, at, m);
    else
        hear_child(at, from, m, clock_ms());
}

bool host_cohort_mask(host *h, hosted *at, message *m)
{
    if (!m->fixed || !at->veil)
        return true;
    if (!veil_is_ready(at->veil) || !veil_may_say(at->veil, m) ||
        !alloc_grow((void **)&h->masked.bytes, &h->masked.room, m->count * sizeof *m->values, 1))
        return false;
    memcpy(h->masked.bytes, m->values, m->count * sizeof *m->values);
    m->values = (double *)(void *)h->masked.bytes;
    return veil_mask(at->veil, m, (uint64_t *)(void *)h->masked.bytes);
}
