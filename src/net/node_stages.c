/* Stages: trainings before the run that find its start, in sequence, and the transition of all nodes to the next stage.
 */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

hfsad_status stages_create(node *n, hfsad_error *err)
{
    start_search *search = &n->root.search;
    if (is_prelude(n))
        n->answer.round = 0; /* nothing is measured before its end */
    if (!is_root(n) || n->s.stages < 2)
        return HFSAD_OK;
    *search = (start_search){.M = n->s.M,
                             .seed = n->s.p->seed,
                             .stages = n->s.stages,
                             .likely = n->s.p->length,
                             .consensus = n->s.consensus,
                             .first = alloc_zero(n->s.M, sizeof *search->first),
                             .least = INFINITY};
    if (!search->first)
        return error_memory(err, n->s.M * sizeof *search->first, "the starts");
    memcpy(search->first, n->s.start, n->s.M * sizeof *search->first);
    return HFSAD_OK;
}

/* What the next stage needs from the previous one. */
static void carry_over(node *to, node *from)
{
    to->life = from->life;
    memcpy(to->root.orders, from->root.orders, sizeof to->root.orders);
    for (size_t c = 0; c < from->s.n_children; c++) {
        child_state *child = &to->inner.child[c], *before = &from->inner.child[c];
        child->life = before->life;
        child->admitted = before->admitted;
        child->begun_at = before->begun_at;
        child->where = before->where;
        child->begin = before->begin;
        before->begin = NULL;
    }
    to->now = from->now;
    to->begun = from->begun;
    to->status = from->status;
    to->up.patience = from->up.patience;
    to->answer.models.patience = from->answer.models.patience;
    to->down.patience = from->down.patience;
    to->question.ask.patience = from->question.ask.patience;
    double *first = to->root.search.first;
    if (!first)
        return;
    memcpy(first, from->root.search.first, from->s.M * sizeof *first);
    to->root.search = from->root.search;
    to->root.search.first = first;
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

void stage_conclude(node *n, const hfsad_figures *f)
{
    node_move(n, NODE_STAGE_OVER);
    if (!f)
        return;
    node_model(n, n->u);
    start_search_conclude(&n->root.search, n->s.stage, f, n->u);
}
