/*
 * Encoding of numbers that are not finite: frames contain only finite numbers, so these are sent as the largest
 * doubles,
 *
 *     +-infinity as +-DBL_MAX,  +-nan as +- the number before it
 *
 * and a run that has overflowed continues as in the simulator, until the safeguard or a row of the trace detects it.
 */
#include "net/node_parts.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGN_BIT (UINT64_C(1) << 63)
#define INFINITE (UINT64_C(0x7ff) << 52)
#define ABSENT (INFINITE - 3) /* of a model that is not there: set aside, if negative */

/* Without a branch, so that it becomes vector code. */
bool all_finite(const double *v, size_t count)
{
    uint64_t over = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        over |= (bits & ~SIGN_BIT) + (SIGN_BIT - INFINITE);
    }
    return !(over & SIGN_BIT);
}

static double not_a_number(void)
{
    return nextafter(DBL_MAX, 0);
}

double number_hide(double v)
{
    return isfinite(v) ? v : copysign(isnan(v) ? not_a_number() : DBL_MAX, v);
}

static double number_show(double v)
{
    return fabs(v) < not_a_number() ? v : copysign(fabs(v) < DBL_MAX ? (double)NAN : (double)INFINITY, v);
}

bool numbers_hide(double *v, size_t count)
{
    if (message_is_plain(v, count))
        return true;
    for (size_t i = 0; i < count; i++)
        v[i] = number_hide(v[i]);
    return false;
}

double *numbers_to_say(double *room, double *v, size_t count, bool *plain)
{
    *plain = message_is_plain(v, count);
    if (*plain || all_finite(v, count))
        return v;
    memcpy(room, v, count * sizeof *v);
    (void)numbers_hide(room, count);
    return room;
}

bool numbers_take(node *n, message *m, node_refusal *why)
{
    assert(!m->plain || message_is_plain(m->values, m->count));
    const bool hidden = !m->plain && !message_is_plain(m->values, m->count);
    if ((hidden && !all_finite(m->values, m->count)) || !isfinite(m->sigma))
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    m->sigma = number_show(m->sigma);
    if (!hidden)
        return true;
    if (n->shown_room < m->count) {
        double *grown = realloc(n->shown, m->count * sizeof *grown);
        if (!grown) /* it will be sent again */
            return node_refuse(n, why, NODE_REFUSED_OLD);
        n->shown = grown;
        n->shown_room = m->count;
    }
    for (size_t i = 0; i < m->count; i++)
        n->shown[i] = number_show(m->values[i]);
    m->values = n->shown;
    return true;
}

void model_mark_absent(double *w, bool aside)
{
    const uint64_t bits = ABSENT | (aside ? SIGN_BIT : 0);
    memcpy(w, &bits, sizeof bits);
}

run_absence node_model_absence(const double *w)
{
    uint64_t bits;
    memcpy(&bits, w, sizeof bits);
    return (bits & ~SIGN_BIT) != ABSENT ? ABSENCE_NONE : bits & SIGN_BIT ? ABSENCE_ASIDE : ABSENCE_SILENT;
}
