/* Questions as numbers; see mixture.h. */
#include "personal/mixture.h"

#include <math.h>
#include <string.h>

enum { HEAD = 8, CUT_HEAD = 3 };

static size_t mixture_size(size_t K, size_t M)
{
    return 2 + K + K * M;
}

static bool has_cut(const mixture_question *q)
{
    return q->kind == MIXTURE_STATS && q->from.K > 0;
}

size_t mixture_length(const mixture_question *q, size_t M)
{
    const size_t K = q->now.K;
    switch (q->kind) {
    case MIXTURE_COLUMNS:
        return M + 1;
    case MIXTURE_STATS:
        return MIXTURE_TOTALS + K * (MIXTURE_SUMS + M + triangle(M));
    case MIXTURE_SPREAD:
        return K * (2 * triangle(M) + 1);
    case MIXTURE_CUTS:
        return K * 2 * MIXTURE_BINS;
    case MIXTURE_CROSS:
        return 2;
    case MIXTURE_MEMBERS:
        return q->count * K;
    case MIXTURE_SIZES:
        return K;
    case MIXTURE_KINDS:
        break;
    }
    return 0;
}

size_t mixture_count(const mixture_question *q, size_t M)
{
    size_t count = HEAD + mixture_size(q->now.K, M);
    if (q->from.K)
        count += mixture_size(q->from.K, M);
    if (has_cut(q))
        count += M;
    if (q->kind == MIXTURE_CUTS)
        count += q->now.K * (M + 1);
    return count;
}

static double *put(double *to, const double *from, size_t count)
{
    memcpy(to, from, count * sizeof *to);
    return to + count;
}

static double *put_mixture(double *to, const mixture *m, size_t M)
{
    *to++ = (double)m->K;
    *to++ = m->T;
    to = put(to, m->share, m->K);
    return put(to, m->w, m->K * M);
}

void mixture_pack(const mixture_question *q, size_t M, double *values)
{
    const bool cut = has_cut(q);
    const double head[HEAD] = {
        q->kappa,
        (double)q->first,
        (double)q->count,
        (double)q->now.K,
        (double)q->from.K,
        cut ? (double)q->cut.group : 0,
        cut ? q->cut.at : 0,
        cut ? q->cut.mix : 0,
    };
    double *to = put_mixture(put(values, head, HEAD), &q->now, M);
    if (q->from.K)
        to = put_mixture(to, &q->from, M);
    if (cut)
        to = put(to, q->cut.u, M);
    if (q->kind == MIXTURE_CUTS)
        put(put(to, q->u, q->now.K * M), q->reach, q->now.K);
}

static bool take_whole(double v, double most, size_t *number)
{
    if (!(v >= 0 && v <= most) || v != floor(v))
        return false;
    *number = (size_t)v;
    return true;
}

static const double *take_mixture(const double *from, mixture *m, size_t M)
{
    m->T = from[1];
    m->share = from + 2;
    m->w = m->share + m->K;
    return m->w + m->K * M;
}

bool mixture_unpack(mixture_question *q, mixture_kind kind, size_t M, const double *values, size_t count)
{
    *q = (mixture_question){.kind = kind};
    if (count < HEAD || !take_whole(values[1], 0x1p53, &q->first) || !take_whole(values[2], 0x1p53, &q->count) ||
        !take_whole(values[3], MIXTURE_MOST, &q->now.K) || !take_whole(values[4], MIXTURE_MOST, &q->from.K) ||
        !take_whole(values[5], MIXTURE_MOST, &q->cut.group) || !q->now.K || mixture_count(q, M) != count ||
        (kind == MIXTURE_CROSS && !q->from.K) ||
        (has_cut(q) && (q->cut.group >= q->from.K || q->now.K != q->from.K + 1)))
        return false;
    q->kappa = values[0];
    q->cut.at = values[6];
    q->cut.mix = values[7];
    const double *at = take_mixture(values + HEAD, &q->now, M);
    if (q->from.K)
        at = take_mixture(at, &q->from, M);
    if (has_cut(q))
        q->cut.u = at;
    if (kind == MIXTURE_CUTS) {
        q->u = at;
        q->reach = at + q->now.K * M;
    }
    return q->now.T > 0 && (!q->from.K || q->from.T > 0) && q->kappa >= 0;
}
