/*
 * Readmission: the cloud's order to begin the link of a lost node anew, on its way down to the node's parent; and the
 * parent's admission of the node, until that has it on its disk.
 *
 *     ASK     ORDER  round: number; k: 1 if the node leaves  the path of the node, a byte a number
 *     ANSWER  ORDER  the same                                iteration, round and place of run_readmission
 *     ASK     ADMIT  the same; k: starts of the parent       slot (-1: all), M, node_admission, the set-up's result
 *     ANSWER  ADMIT  the same                                none
 *
 * A client that leaves is an order like another, without an admission: it ends when it hears an admission of no numbers
 * (M = 0) twice in one connection. A parent whose child has never been a member, and lives, asks the cloud for an order
 * by an ANSWER of number 0 with the path of the child.
 *
 * An order and an admission are retransmitted until they are answered. A node answers when its state is committed.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const node_patience patience = {200, 1000};
enum { PATH_MOST = INQUIRY_WHY_MOST, ADMISSIONS = 16 /* sent in one turn */ };

static bool is_of(const message *m, uint64_t phase)
{
    return (m->phase & ((UINT64_C(1) << NODE_LIFE_BIT) - 1)) == phase;
}

bool host_is_admission(const message *m)
{
    return (m->kind == MESSAGE_ASK || m->kind == MESSAGE_ANSWER) &&
           (is_of(m, NODE_PHASE_ORDER) || is_of(m, NODE_PHASE_ADMIT));
}

/* ---- orders ---- */

/* The child on the way to a path; NULL: it is not below this node. */
static child_name *way_to(const hosted *at, const char *path)
{
    for (size_t c = 0; c < at->n_children; c++) {
        const size_t length = strlen(at->children[c].path);
        if (strncmp(at->children[c].path, path, length) == 0 && strchr("/\n", path[length])) /* or its end */
            return &at->children[c];
    }
    return NULL;
}

/* The one with this number, or a free one for it; NULL: there are too many. */
static host_order *find_order(hosted *at, uint64_t number)
{
    host_order *free_one = NULL;
    for (size_t i = 0; at->orders && i < NODE_ORDERS; i++) {
        if (at->orders[i].number == number)
            return &at->orders[i];
        if (!free_one && !at->orders[i].number)
            free_one = &at->orders[i];
    }
    return free_one;
}

/* The order is done: the cloud notes it, another node tells its parent once that is committed. */
static void conclude_order(host_order *o, run_readmission done)
{
    o->done = done;
    o->tell = true;
    channel_stop(&o->way);
}

/* An order for a node above this path is not done yet: the cloud's record has orders of one branch as they were done.
 */
static bool is_held(const hosted *at, const char *path)
{
    for (size_t i = 0; i < NODE_ORDERS; i++) {
        const size_t length = strcspn(at->orders[i].path, "\n");
        if (at->orders[i].number && strncmp(at->orders[i].path, path, length) == 0 && path[length] == '/')
            return true;
    }
    return false;
}

/* An order about a child of this node is carried out at once; any other order is passed on. */
static void take_order(hosted *at, uint64_t number, const char *path, bool retires)
{
    const child_name *child = way_to(at, path);
    if (!at->orders)
        at->orders = alloc_zero(NODE_ORDERS, sizeof *at->orders); /* without memory the order is repeated */
    host_order *o = find_order(at, number);
    if (!at->n || !child || !o || o->way.live || is_held(at, path))
        return;
    const bool own = strcspn(path, "\n") == strlen(child->path);
    if (!own && node_child_life(at->n, child->slot) > 0 && !node_child_is_admitted(at->n, child->slot))
        return; /* in its old life it would begin a link that its new one begins again; the order is repeated */
    if (own && at->call && at->call->in[child->slot] && node_child_life(at->n, child->slot) < number &&
        !(retires && host_cohort_without(at, child->slot, path)))
        return; /* the order is repeated */
    if (own && node_child_life(at->n, child->slot) < number &&
        !(retires ? node_child_retire : node_child_begin)(at->n, child->slot, number))
        return;
    o->number = number;
    o->retires = retires;
    snprintf(o->path, sizeof o->path, "%s", path);
    if (!own) {
        channel_start(&o->way, clock_ms(), &patience);
        return;
    }
    at->status_due = 0; /* it may be the last client here, or the first */
    conclude_order(o, node_child_readmission(at->n, child->slot));
    channel_start(&at->admit, clock_ms(), &patience);
}

static bool is_counter(double v)
{
    return v >= 0 && v <= 0x1p53;
}

static void read_path(const message *m, char path[PATH_MOST + 1])
{
    for (size_t i = 0; i < m->count; i++)
        path[i] = m->values[i] > 0 && m->values[i] < 256 ? (char)(unsigned char)m->values[i] : '?';
    path[m->count] = 0;
}

/* A client that was not there at the set-up lives: an inner node asks for an order, up to the cloud. */
static void hear_wish(host *h, hosted *at, size_t from, const message *m)
{
    char path[PATH_MOST + 1];
    read_path(m, path);
    const child_name *child = way_to(at, path);
    if (!child || child->slot != from || from >= at->n_inner || !at->n || !node_is_async(at->n) ||
        (h->s.knows && !h->s.knows(h->s.maker, path))) /* an edge could fill all orders with names that are none */
        return;
    host_wish(h, at, path);
}

/* It is asked for again as long as the client speaks. */
void host_wish(host *h, hosted *at, const char *path)
{
    if (at->parent)
        snprintf(at->wish, sizeof at->wish, "%s", path);
    else
        (void)host_readmit(h, path, false);
}

static void hear_order(host *h, hosted *at, size_t from, const message *m)
{
    char path[PATH_MOST + 1];
    if (m->kind == MESSAGE_ASK && from == NODE_PARENT && m->round > 0 && m->count <= PATH_MOST) {
        read_path(m, path);
        take_order(at, m->round, path, m->k == 1);
    } else if (m->kind == MESSAGE_ANSWER && from != NODE_PARENT && m->round == 0 && m->count <= PATH_MOST) {
        hear_wish(h, at, from, m);
    } else if (m->kind == MESSAGE_ANSWER && from != NODE_PARENT && m->round > 0 && m->count == 3 &&
               is_counter(m->values[0]) && is_counter(m->values[1]) && is_counter(m->values[2]) &&
               m->values[2] <= ANEW_RETIRED) {
        host_order *o = find_order(at, m->round);
        const child_name *child = o && o->number ? way_to(at, o->path) : NULL;
        if (child && child->slot == from && o->way.live && at->n &&
            m->phase >> NODE_LIFE_BIT == node_child_life(at->n, from)) /* what it did in an earlier life is void */
            conclude_order(o, (run_readmission){(uint64_t)m->values[0], (uint64_t)m->values[1],
                                                (anew_where)(int)m->values[2], NULL});
    }
}

bool host_readmit(host *h, const char *path, bool retires)
{
    hosted *root = &h->all[0];
    const uint64_t number = root->n ? node_order(root->n, path, retires) : 0;
    if (number)
        take_order(root, number, path, retires);
    return number != 0;
}

const run_readmission *host_readmitted(host *h)
{
    hosted *root = &h->all[0];
    host_order *o = root->orders;
    while (o && o < root->orders + NODE_ORDERS && !o->tell)
        o++;
    if (!o || root->parent || o == root->orders + NODE_ORDERS)
        return NULL;
    h->readmitted = *o;
    h->readmitted.path[strcspn(h->readmitted.path, "\n")] = 0;
    h->readmitted.done.path = h->readmitted.path;
    if (node_decided(root->n) != NODE_RUNNING && h->last.iteration != UINT64_MAX) /* rows of a star, or none */
        h->readmitted.done.iteration = h->last.iteration + 1;
    node_note_readmission(root->n, o->number, &h->readmitted.done);
    *o = (host_order){0};
    return &h->readmitted.done;
}

/* ---- admissions ---- */

/* A child that does not know of its link's new life; n_children: none. The child asked last comes last. */
static size_t next_stranger(hosted *at, bool *all)
{
    size_t first = at->n_children;
    *all = true;
    for (size_t i = 0; i < at->n_children; i++) {
        const size_t c = (at->admit_next + i) % at->n_children;
        const bool waits = node_child_life(at->n, c) > 0 && !node_child_is_admitted(at->n, c);
        if (waits && first == at->n_children)
            first = c;
        *all = *all && waits && node_child_life(at->n, c) == node_child_life(at->n, first);
    }
    at->admit_next = first < at->n_children ? first + 1 : 0;
    return first;
}

/* *all: no other is needed. */
static hfsad_status send_admission(host *h, hosted *at, bool *all, hfsad_error *err)
{
    const size_t c = next_stranger(at, all), head = node_admission_count(at->n), count = 2 + head + h->n_result;
    if (c == at->n_children) {
        channel_stop(&at->admit);
        return HFSAD_OK;
    }
    double *values = alloc_zero(count, sizeof *values);
    if (!values)
        return error_memory(err, count * sizeof *values, "a message");
    *all = *all && !node_is_async(at->n);
    values[0] = *all ? -1 : (double)c;
    values[1] = (double)(head - NODE_ADMISSION);
    node_admission(at->n, c, values + 2);
    memcpy(values + 2 + head, h->result, h->n_result * sizeof *values);
    const message m = {.kind = MESSAGE_ASK,
                       .run = h->s.run_id,
                       .phase = NODE_PHASE_ADMIT,
                       .round = node_child_life(at->n, c),
                       .k = node_begun(at->n),
                       .count = count,
                       .values = values};
    const hfsad_status status = host_send(h, at, BELOW, TOPIC_ASK, &m, err);
    free(values);
    return status;
}

/* A client that has left and is still running is told that it has left. */
static hfsad_status dismiss_child(host *h, hosted *at, child_name *child, hfsad_error *err)
{
    child->dismissed = false;
    const double values[2] = {(double)child->slot, 0};
    const message m = {.kind = MESSAGE_ASK,
                       .run = h->s.run_id,
                       .phase = NODE_PHASE_ADMIT,
                       .round = node_child_life(at->n, child->slot),
                       .k = node_begun(at->n),
                       .count = 2,
                       .values = (double *)values};
    return host_send(h, at, BELOW, TOPIC_ASK, &m, err);
}

static void hear_dismissal(host *h, hosted *at, const message *m)
{
    if (m->values[0] != (double)at->slot || at->n_children || at->left || (at->n && node_life(at->n) >= m->round))
        return;
    if (at->admit_heard != m->round) {
        at->admit_heard = m->round; /* one that the broker remembers comes once in a connection */
        return;
    }
    at->left = at->ended = true;
    at->status_due = 0;
    host_tell(h, HOST_LEFT, at->path, "", "", NULL);
}

/* A node with an empty state folder is made from the result of the set-up, as its parent has it. */
static bool make_lost_node(host *h, hosted *at, const double *result, size_t count)
{
    hfsad_error err;
    if (at->n || !at->q)
        return at->n != NULL;
    if (inquiry_remember(at->q, result, count, &err))
        return false;
    host_take_setup(h, at);
    return at->n != NULL;
}

/* slot, M, the admission, the result */
static void hear_admission(host *h, hosted *at, const message *m)
{
    enum { HEAD = 2 };
    const double most = (double)m->count;
    if (m->count == HEAD) {
        hear_dismissal(h, at, m);
        return;
    }
    if (m->count < HEAD + NODE_ADMISSION || (m->values[0] >= 0 && m->values[0] != (double)at->slot) ||
        !(m->values[1] >= 1 && m->values[1] < most))
        return;
    if (!(at->n && node_life(at->n) >= m->round) && at->admit_heard != m->round) {
        at->admit_heard = m->round; /* one that the broker remembers comes once in a connection */
        return;
    }
    const size_t head = HEAD + NODE_ADMISSION + (size_t)m->values[1];
    double *numbers = head < m->count ? alloc_zero(m->count, sizeof *numbers) : NULL;
    if (!numbers)
        return;
    memcpy(numbers, m->values, m->count * sizeof *numbers); /* those of m may move when a node is made */
    const bool made = make_lost_node(h, at, numbers + head, m->count - head);
    const uint64_t before = made ? node_life(at->n) : 0;
    const bool admitted = made && node_admit(at->n, numbers + HEAD, head - HEAD, m->k);
    free(numbers);
    if (!admitted)
        return;
    at->tell_admitted = true;
    if (at->left)
        at->left = at->ended = false;
    if (h->s.lived)
        h->s.lived(h->s.maker, at->path, node_life(at->n));
    at->unkept = true; /* messages alone do not give its state */
    at->status_due = 0;
    if (node_life(at->n) > before)
        host_tell(h, HOST_READMITTED, at->path, "", "", NULL);
    if (at->n_children && node_life(at->n) > before)
        channel_start(&at->admit, clock_ms(), &patience);
}

void host_hear_admission(host *h, hosted *at, size_t from, const message *m)
{
    const bool cohorts = at->veil || at->call, leaves = is_of(m, NODE_PHASE_ORDER) || m->count == 2;
    if (m->run != h->s.run_id || (cohorts && !leaves)) /* it could send other numbers under the masks of a round */
        return;
    if (is_of(m, NODE_PHASE_ORDER))
        hear_order(h, at, from, m);
    else if (m->kind == MESSAGE_ASK && from == NODE_PARENT)
        hear_admission(h, at, m);
    else if (m->kind == MESSAGE_ANSWER && from != NODE_PARENT && at->n)
        node_child_confirm(at->n, from, m->round);
}

/* ---- time ---- */

void host_admit_resume(hosted *at)
{
    bool all;
    if (at->n && at->n_children && next_stranger(at, &all) < at->n_children && !at->admit.live)
        channel_start(&at->admit, clock_ms(), &patience);
}

void host_admit_tick(hosted *at, uint64_t now)
{
    for (size_t i = 0; at->orders && i < NODE_ORDERS; i++)
        channel_tick(&at->orders[i].way, now, &patience);
    channel_tick(&at->admit, now, &patience);
}

void host_admit_repeat(hosted *at)
{
    for (size_t i = 0; at->orders && i < NODE_ORDERS; i++)
        channel_repeat(&at->orders[i].way);
    channel_repeat(&at->admit);
    at->admit_heard = 0;
}

uint64_t host_admit_due(const hosted *at)
{
    uint64_t due = channel_due(&at->admit);
    for (size_t i = 0; at->orders && i < NODE_ORDERS; i++)
        due = channel_due(&at->orders[i].way) < due ? channel_due(&at->orders[i].way) : due;
    return due;
}

/* A completed order is reported once; the parent asks again if it has not received the report. */
static hfsad_status send_order(host *h, hosted *at, host_order *o, hfsad_error *err)
{
    uint64_t repeated = 0;
    double values[PATH_MOST];
    message m = {
        .kind = MESSAGE_ANSWER, .run = h->s.run_id, .phase = NODE_PHASE_ORDER, .round = o->number, .values = values};
    if (o->tell && at->parent) {
        values[m.count++] = (double)o->done.iteration;
        values[m.count++] = (double)o->done.round;
        values[m.count++] = (double)o->done.where;
        *o = (host_order){0};
        m.phase += node_life(at->n) << NODE_LIFE_BIT;
        return host_send(h, at, ABOVE, TOPIC_ANSWER, &m, err);
    }
    if (!channel_take(&o->way, &repeated))
        return HFSAD_OK;
    m.kind = MESSAGE_ASK;
    m.k = o->retires;
    for (; o->path[m.count]; m.count++)
        values[m.count] = (unsigned char)o->path[m.count];
    return host_send(h, at, BELOW, TOPIC_ASK, &m, err);
}

static hfsad_status send_wish(host *h, hosted *at, hfsad_error *err)
{
    double values[PATH_MOST];
    message m = {.kind = MESSAGE_ANSWER, .run = h->s.run_id, .phase = NODE_PHASE_ORDER, .values = values};
    for (; at->wish[m.count]; m.count++)
        values[m.count] = (unsigned char)at->wish[m.count];
    at->wish[0] = 0;
    return host_send(h, at, ABOVE, TOPIC_ANSWER, &m, err);
}

/* After a commit. */
hfsad_status host_admit_send(host *h, hosted *at, hfsad_error *err)
{
    uint64_t repeated = 0;
    hfsad_status status = at->wish[0] ? send_wish(h, at, err) : HFSAD_OK;
    for (size_t i = 0; at->orders && i < NODE_ORDERS && !status; i++)
        if (at->orders[i].number)
            status = send_order(h, at, &at->orders[i], err);
    for (size_t c = 0; at->dismisses && c < at->n_children && !status; c++)
        if (at->children[c].dismissed)
            status = dismiss_child(h, at, &at->children[c], err);
    at->dismisses = false;
    if (!status && at->tell_admitted) {
        const message m = {
            .kind = MESSAGE_ANSWER, .run = h->s.run_id, .phase = NODE_PHASE_ADMIT, .round = node_life(at->n)};
        at->tell_admitted = false;
        status = host_send(h, at, ABOVE, TOPIC_ANSWER, &m, err);
    }
    const size_t most = channel_take(&at->admit, &repeated) ? ADMISSIONS : 0;
    bool all = false;
    for (size_t i = 0; i < most && i < at->n_children && at->admit.live && !all && !status; i++)
        status = send_admission(h, at, &all, err);
    return status;
}
