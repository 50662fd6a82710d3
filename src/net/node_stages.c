/* Stages: what is trained before the run to find its start, one after another, and how all nodes pass on to the next.
 */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

hfsad_status stages_create(node *n, hfsad_error *err)
{
    n->root.least = INFINITY;
    if (is_prelude(n))
        n->answer.round = 0; /* nothing is measured before its end */
    if (!is_root(n) || n->s.stages < 2)
        return HFSAD_OK;
    n->root.first = alloc_zero(n->s.M, sizeof *n->root.first);
    if (!n->root.first)
        return error_memory(err, n->s.M * sizeof *n->root.first, "the starts");
    memcpy(n->root.first, n->s.start, n->s.M * sizeof *n->root.first);
    return HFSAD_OK;
}

/* What the next stage needs of the one before. */
static void carry_over(node *to, const node *from)
{
    to->now = from->now;
    to->begun = from->begun;
    to->status = from->status;
    to->up.patience = from->up.patience;
    to->answer.models.patience = from->answer.models.patience;
    to->down.patience = from->down.patience;
    to->question.ask.patience = from->question.ask.patience;
    to->root.least = from->root.least;
    to->root.prelude = from->root.prelude;
    if (to->root.first)
        memcpy(to->root.first, from->root.first, from->s.M * sizeof *to->root.first);
}

bool stage_begin(node *n, uint64_t stage, const double *start)
{
    node *next;
    hfsad_error err;
    if (n->s.make(n->s.maker, n->s.number, stage, start, &next, &err))
        return false;
    carry_over(next, n);
    if (n->state != NODE_RESTS)
        node_move(n, NODE_RESTS);
    const node done = *n;
    *n = *next;
    *next = done;
    node_free(next);
    n->changed = true;
    return true;
}

/* ---- the root ---- */

static bool is_consensus(const node *n)
{
    return n->s.consensus && n->s.stage == 0;
}

void stage_conclude(node *n, const hfsad_figures *f)
{
    node_move(n, NODE_STAGE_OVER);
    if (!f || !figures_are_finite(f) || !all_finite(n->w, n->s.M))
        return; /* as if it had not been tried */
    n->root.prelude.bytes_up += f->bytes_up;
    n->root.prelude.bytes_down += f->bytes_down;
    if (is_consensus(n)) {
        node_model(n, n->root.first);
    } else if (f->consensus_objective < n->root.least) {
        n->root.least = f->consensus_objective;
        n->root.prelude.kept = n->s.stage - n->s.consensus;
    }
}

void stage_next_start(const node *n, double *w)
{
    const uint64_t next = n->s.stage + 1, tried = next - n->s.consensus;
    start_try(w, n->root.first, n->s.M, n->s.p->seed, next + 1 == n->s.stages ? n->root.prelude.kept : tried,
              n->s.p->length);
}
