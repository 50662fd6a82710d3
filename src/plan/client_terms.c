#include "plan/client_terms.h"

#include <math.h>

double client_factor(const leaf_class *class, const client_rows *rows)
{
    return class->mean ? 1 / rows_weight(rows) : 1;
}

bool client_is_factored(const leaf_class *class, const client_rows *rows, size_t M)
{
    const size_t held = rows->start ? rows->start[rows->count] - rows->start[0] : rows->count * rows->F;
    return loss_kind_of(&class->loss)->squared && class->solver.method == ROWS_EXACT && isinf(class->loss.box) &&
           rows->count > 1 && squared_doubles(rows->count, M) <= 2 * held + 2 * M;
}

/* Whether a client's next step begins at its last w: that of many rows, but by their slopes. */
static bool needs_w(const leaf_class *class)
{
    return class->solver.method == ROWS_LINEARIZED || loss_kind_of(&class->loss)->majorised ||
           class->loss.kind == HFSAD_LOSS_OWN;
}

bool plan_keeps_w(const plan *p, bool many)
{
    bool needed = false;
    for (size_t c = 0; many && c < p->n_leaf_classes; c++)
        needed = needed || needs_w(&p->leaf_classes[c]);
    return p->keep_w || needed;
}

bool plan_leaves_sit_out(const plan *p)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (p->leaf_classes[c].participation < 1)
            return true;
    return false;
}

bool plan_inner_sit_out(const plan *p, size_t n_inner)
{
    for (size_t i = 1; i < n_inner; i++)
        if (p->inner[i].participation < 1)
            return true;
    return false;
}
