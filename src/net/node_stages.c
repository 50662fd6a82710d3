/* Stages: what is trained before the run to find its start, one after another, and how all nodes pass on to the next.
 */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

hfsad_status stages_create(node *n, hfsad_error *err)
{
    n->least = INFINITY;
    if (is_prelude(n))
        n->answered = 0; /* nothing is measured before its end */
    if (!is_root(n) || n->s.stages < 2)
        return HFSAD_OK;
    n->first = alloc_zero(n->s.M, sizeof *n->first);
    if (!n->first)
        return error_memory(err, n->s.M * sizeof *n->first, "the starts");
    memcpy(n->first, n->s.start, n->s.M * sizeof *n->first);
    return HFSAD_OK;
}

/* What the next stage needs of the one before. */
static void carry_over(node *to, const node *from)
{
    to->now = from->now;
    to->begun = from->begun;
    to->status = from->status;
    to->up.patience = from->up.patience;
    to->answer.patience = from->answer.patience;
    to->down.patience = from->down.patience;
    to->ask.patience = from->ask.patience;
    to->least = from->least;
    to->prelude = from->prelude;
    if (to->first)
        memcpy(to->first, from->first, from->s.M * sizeof *to->first);
}

bool stage_begin(node *n, uint64_t stage, const double *start)
{
    node *next;
    hfsad_error err;
    if (n->s.make(n->s.maker, n->s.number, stage, start, &next, &err))
        return false;
    carry_over(next, n);
    const node done = *n;
    *n = *next;
    *next = done;
    node_free(next);
    n->changed = true;
    return true;
}

bool stage_handle(node *n, size_t from, const message *m, uint64_t stage, node_refusal *why)
{
    if (m->kind != MESSAGE_ASK && m->kind != MESSAGE_ANSWER)
        return node_refuse(n, why, NODE_REFUSED_KIND);
    if (m->count != (m->kind == MESSAGE_ASK ? n->s.M : 0))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (!all_finite(m->values, m->count))
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    if (stage > n->s.stage + 1 || stage >= n->s.stages)
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    const bool asking = n->asking && n->ask_phase == NODE_PHASE_STAGE;
    if (stage <= n->s.stage || asking != (m->kind == MESSAGE_ANSWER)) {
        n->say_stage = n->say_stage || (m->kind == MESSAGE_ASK && stage == n->s.stage);
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    if (m->kind == MESSAGE_ANSWER) {
        n->child[from].answered = true;
    } else if (n->s.leaf) {
        if (!stage_begin(n, stage, m->values)) /* it will be asked again */
            return node_refuse(n, why, NODE_REFUSED_OLD);
        n->say_stage = true;
    } else {
        memcpy(n->ask_w, m->values, n->s.M * sizeof *n->ask_w);
        n->open = false; /* where it is, other numbers have ended the stage */
        channel_stop(&n->down);
        channel_stop(&n->up);
        channel_stop(&n->answer);
        inner_ask(n, NODE_PHASE_STAGE, 0);
    }
    if (n->s.inner)
        inner_advance(n);
    return true;
}

/* ---- the root ---- */

static bool is_consensus(const node *n)
{
    return n->s.consensus && n->s.stage == 0;
}

void stage_conclude(node *n, const hfsad_figures *f)
{
    n->changed = n->stage_over = true;
    if (!f || !figures_are_finite(f) || !all_finite(n->w, n->s.M))
        return; /* as if it had not been tried */
    n->prelude.bytes_up += f->bytes_up;
    n->prelude.bytes_down += f->bytes_down;
    if (is_consensus(n)) {
        node_model(n, n->first);
    } else if (f->consensus_objective < n->least) {
        n->least = f->consensus_objective;
        n->prelude.kept = n->s.stage - n->s.consensus;
    }
}

void stage_next_start(const node *n, double *w)
{
    const uint64_t next = n->s.stage + 1, tried = next - n->s.consensus;
    start_try(w, n->first, n->s.M, n->s.p->seed, next + 1 == n->s.stages ? n->prelude.kept : tried, n->s.p->length);
}
