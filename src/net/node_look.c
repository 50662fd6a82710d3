/*
 * A look at all models while the run goes on, for who is about to interrupt it: the root stays where everybody stands
 * still, and asks. Nothing of it is kept, and nobody repeats anything but the parents their question, so it leaves no
 * trace where it is given up.
 */
#include "net/node_parts.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void look_free(node *n)
{
    free(n->look_models);
}

void node_look(node *n)
{
    n->pausing = true;
    inner_advance(n);
}

/* In lock step nobody moves between a row of the trace and the next DOWN. */
static bool stands_still(const node *n)
{
    return n->s.async ? n->answered >= 0 : !n->open && !n->pending && (int64_t)n->round == n->answered;
}

bool look_holds(const node *n)
{
    return n->pausing && !n->s.async && n->end == NODE_RUNNING && stands_still(n);
}

/* While somebody polishes all stand still, too. */
static bool has_time(const node *n)
{
    return n->end == NODE_RUNNING || (n->end != NODE_DIVERGED && n->polish && !n->polished);
}

static void begin(node *n, uint64_t number)
{
    if (!n->look_models)
        n->look_models = alloc_zero(n->nodes * n->s.M, sizeof(double));
    if (!n->look_models) /* it will be asked again */
        return;
    n->look = number;
    n->looked = false;
    n->look_part = 0;
    for (size_t c = 0; c < n->s.n_children; c++)
        n->child[c].look_parts = 0;
    channel_start(n, &n->look_ask);
}

void look_advance(node *n)
{
    enum { BITS = 16 };
    if (n->pausing && !n->look && !is_prelude(n) && has_time(n) && stands_still(n))
        begin(n, (n->begun << BITS) + 1);
}

static bool handle_ask(node *n, const message *m, node_refusal *why)
{
    if (m->count != 0)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round <= n->look) {
        n->say_look = n->say_look || (m->round == n->look && n->looked);
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    if (n->s.inner) {
        begin(n, m->round);
        return true;
    }
    n->look = m->round;
    n->look_part = 0;
    n->looked = n->say_look = true;
    return true;
}

static bool all_looked(const node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++)
        if (n->child[c].look_parts < node_parts_of(n, n->s.children[c].nodes))
            return false;
    return true;
}

static bool handle_model(node *n, size_t c, const message *m, node_refusal *why)
{
    child_state *child = &n->child[c];
    if (m->count == 0 || m->count != node_part_size(n, n->s.children[c].nodes, m->k))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round != n->look || !n->look_models || n->looked)
        return node_refuse(n, why, NODE_REFUSED_OLD);
    child->ack_look = n->ack_look = true;
    if (m->k != child->look_parts)
        return node_refuse(n, why, NODE_REFUSED_OLD);
    memcpy(n->look_models + node_models_before(n, c) + m->k * n->s.part, m->values, m->count * sizeof *m->values);
    child->look_parts++;
    if (!all_looked(n))
        return true;
    node_model(n, n->look_models);
    n->looked = true;
    n->say_look = !is_root(n);
    channel_stop(&n->look_ask);
    return true;
}

static bool handle_ack(node *n, const message *m, node_refusal *why)
{
    for (size_t i = 1; i + 1 < m->count; i += 2) {
        const double part = m->values[i + 1];
        if (m->values[i] != (double)n->s.slot || m->round != n->look || !n->looked || part == (double)n->look_part ||
            !(part >= 0 && part < (double)node_parts_of(n, n->nodes)))
            continue;
        n->look_part = (uint64_t)part;
        return n->say_look = true;
    }
    return node_refuse(n, why, NODE_REFUSED_OLD);
}

bool look_handle(node *n, size_t from, const message *m, node_refusal *why)
{
    if (from == NODE_PARENT && m->kind == MESSAGE_ASK)
        return handle_ask(n, m, why);
    if (from == NODE_PARENT && m->kind == MESSAGE_ACK)
        return handle_ack(n, m, why);
    if (from != NODE_PARENT && m->kind == MESSAGE_MODEL)
        return handle_model(n, from, m, why);
    return node_refuse(n, why, NODE_REFUSED_KIND);
}

/* ---- what goes out; n->say_look, n->look_ask and n->ack_look say whether ---- */

message look_model_letter(node *n)
{
    message m = {.kind = MESSAGE_MODEL, .run = n->s.run, .phase = NODE_PHASE_LOOK, .round = n->look, .k = n->look_part};
    if (n->s.leaf)
        node_model(n, n->u);
    m.values = (n->s.leaf ? n->u : n->look_models) + n->look_part * n->s.part;
    m.count = node_part_size(n, n->nodes, n->look_part);
    numbers_hide(m.values, m.count);
    n->say_look = false;
    return m;
}

message look_ask_letter(const node *n)
{
    return (message){.kind = MESSAGE_ASK, .run = n->s.run, .phase = NODE_PHASE_LOOK, .round = n->look, .k = n->begun};
}

message look_ack_letter(node *n)
{
    message m = {.kind = MESSAGE_ACK, .run = n->s.run, .phase = NODE_PHASE_LOOK, .round = n->look, .k = 2};
    m.values = n->slots;
    n->slots[m.count++] = (double)n->begun;
    for (size_t c = 0; c < n->s.n_children; c++) {
        if (!n->child[c].ack_look)
            continue;
        n->child[c].ack_look = false;
        n->slots[m.count++] = (double)c;
        n->slots[m.count++] = (double)n->child[c].look_parts;
    }
    n->ack_look = false;
    return m;
}
