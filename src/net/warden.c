#include "net/warden.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "net/catalogue.h"
#include "personal/mixture.h"
#include "plan/refusal.h"
#include "plan/scales.h"
#include "plan/survey.h"
#include "polish/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which questions a spec implies ---- */

static bool always(const hfsad_spec *spec)
{
    (void)spec;
    return true;
}

static bool standardizes(const hfsad_spec *spec)
{
    return refusal_is_implied(spec, REFUSAL_STANDARDIZE);
}

static bool has_intercept(const hfsad_spec *spec)
{
    return spec->features.intercept != INTERCEPT_NONE;
}

static bool has_own_loss(const hfsad_spec *spec)
{
    return spec->loss.kind == (int)HFSAD_LOSS_OWN;
}

static bool asks_start(const hfsad_spec *spec)
{
    return refusal_is_implied(spec, REFUSAL_ROBUST_START);
}

static bool asks_step(const hfsad_spec *spec)
{
    return refusal_is_implied(spec, REFUSAL_STEP);
}

static bool settles_intercept(const hfsad_spec *spec)
{
    return has_intercept(spec) && scales_are_settled(spec);
}

/* The set-up in the order of federation_root.c, and how often a question may come at most. */
typedef struct {
    int kind;
    unsigned times;
    bool (*implied)(const hfsad_spec *spec);
} step;

enum { HALF_POINT = 7, LANCZOS = 100, POWER = 12 };

static const step steps[] = {
    {INQUIRY_SHAPE, 1, always},
    {SURVEY_MOMENTS, 3, standardizes},
    {SURVEY_ENERGY, 1, has_intercept},
    {SURVEY_CENTRE, 1, has_intercept},
    {SURVEY_SCALE, 1, always},
    {SURVEY_OWN, 1, has_own_loss},
    {SURVEY_LEVELS, 8, lambda_is_wanted},
    {SURVEY_GRADIENT, 1, lambda_is_wanted},
    {SURVEY_LEVELS, 8, settles_intercept},
    {SURVEY_MISFIT, 2, spread_is_settled},
    {SURVEY_BOUND, 1, always},
    {SURVEY_COLUMNS, 1, asks_start},
    {SURVEY_BELOW, HALF_POINT, asks_start},
    {SURVEY_BELOW_ONE, HALF_POINT, asks_start},
    {SURVEY_TRUNCATED, LANCZOS, asks_start},
    {SURVEY_ROBUST, LANCZOS, asks_start},
    {SURVEY_BELOW_FIT, HALF_POINT, asks_start},
    {SURVEY_COLUMNS, 1, asks_start}, /* the robust start beside another one */
    {SURVEY_BELOW_ONE, HALF_POINT, asks_start},
    {SURVEY_ROBUST, LANCZOS, asks_start},
    {SURVEY_BELOW_FIT, HALF_POINT, asks_start},
    {SURVEY_LOSS, 1, asks_start},
    {SURVEY_GRADIENT, START_STEPS, asks_start}, /* the end of the path from the given start */
    {SURVEY_LOSS, 2, asks_start},
    {SURVEY_GRADIENT, START_STEPS, asks_start}, /* and the robust one */
    {SURVEY_LOSS, 1, asks_start},
    {SURVEY_CENTRE, 1, has_intercept},
    {SURVEY_LEVELS, 8, settles_intercept},
    {SURVEY_LEFT, 1, has_intercept},
    {SURVEY_MISFIT, HALF_POINT, asks_step},
    {SURVEY_BELOW, HALF_POINT, asks_step},
    {SURVEY_CENTRE, 1, asks_step},
    {SURVEY_CURVE_ALONE, 1, asks_step},
    {SURVEY_CURVE, POWER, asks_step},
};
enum { STEPS = sizeof steps / sizeof *steps };

unsigned warden_most(const hfsad_spec *spec, int kind)
{
    const size_t scores = spec_scores(spec);
    const catalogue_row *row = catalogue_find(kind);
    unsigned most = 0;
    if (kind >= INQUIRY_POLISH)
        return row && row->implied(spec) ? row->most * (unsigned)(scores ? scores : 1) : 0;
    for (size_t s = 0; s < STEPS; s++)
        most += steps[s].kind == kind && steps[s].implied(spec) ? steps[s].times : 0;
    return most;
}

/* ---- numbers ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t print_of(uint64_t h, const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        h = mix(h, bits_of(v[i]));
    return mix(h, count) | 1;
}

static uint64_t print_question(const inquiry_question *q)
{
    const double head[] = {q->kind, (double)q->most, (double)q->sums, q->constant};
    return print_of(print_of(print_of(1, head, 4), q->columns, q->n_columns), q->values, q->count);
}

static bool is_within(const hfsad_spec *spec, const double *v, size_t count)
{
    for (size_t i = 0; i < count && !isnan(spec->privacy.largest); i++)
        if (!(fabs(v[i]) <= spec->privacy.largest))
            return false;
    return true;
}

/* The numbers that the question's row bounds. */
static bool has_good_models(const hfsad_spec *spec, const inquiry_question *q, size_t M)
{
    const catalogue_row *row = catalogue_find(q->kind);
    const size_t vectors = q->count > POLISH_HEAD ? q->count - POLISH_HEAD : 0, point = q->count - vectors / 2;
    mixture_question groups;
    if (row->bound == BOUND_NONE)
        return true;
    if (row->bound == BOUND_GROUPS)
        return mixture_unpack(&groups, (mixture_kind)(q->kind - INQUIRY_GROUPS), M, q->values, q->count) &&
               is_within(spec, groups.now.w, groups.now.K * M) && is_within(spec, groups.from.w, groups.from.K * M);
    const size_t from = row->bound == BOUND_POINT ? point : (size_t)row->bound;
    return from >= q->count || is_within(spec, q->values + from, q->count - from);
}

/* ---- the set-up ---- */

static const char not_implied[] = "a question that this spec does not have";
static const char again[] = "another question with the number of one that was answered";
static const char too_large[] = WARDEN_TOO_LARGE;

/* Index of the first question asked with this round or a later one. */
static size_t round_place(const warden *w, uint64_t round)
{
    size_t i = 0;
    while (i < w->count && w->asked[i].round < round)
        i++;
    return i;
}

static unsigned times_of(const warden *w, size_t s)
{
    unsigned times = 0;
    for (size_t i = 0; i < w->count; i++)
        times += w->asked[i].step == s;
    return times;
}

/* The rows must be seen in one way: with one column of the intercept, and standardised by the same numbers. */
static const char *judge_columns(warden *w, const inquiry_question *q)
{
    const uint64_t columns = q->n_columns ? print_of(2, q->columns, q->n_columns) : 0;
    if ((columns && w->columns && columns != w->columns) ||
        (q->constant != 0 && w->constant != 0 && q->constant != w->constant))
        return "columns or intercept differ from those of earlier questions";
    w->columns = columns ? columns : w->columns;
    w->constant = q->constant != 0 ? q->constant : w->constant;
    return NULL;
}

/* The first question. What came before it in this life was of an earlier run, which the broker remembers, or the root
 * starts again. */
static void begin_question(warden *w, const inquiry_question *q)
{
    if (w->begun || q->kind != INQUIRY_SHAPE || q->round != 1)
        return;
    w->begun = true;
    w->count = 0;
    w->columns = 0;
    w->constant = 0;
}

static const char *judge_setup(warden *w, const hfsad_spec *spec, const inquiry_question *q, size_t M, bool settled)
{
    begin_question(w, q);
    if (w->count == 0)
        w->restored = settled;
    const size_t at = round_place(w, q->round), from = at ? w->asked[at - 1].step : 0;
    const uint64_t print = print_question(q);
    if (at < w->count && w->asked[at].round == q->round)
        return w->asked[at].print == print ? NULL : again;
    const size_t to = at < w->count ? w->asked[at].step : STEPS - 1;
    size_t s = from;
    while (s <= to && !(steps[s].kind == q->kind && steps[s].implied(spec) && times_of(w, s) < steps[s].times))
        s++;
    if (s > to || w->count == WARDEN_ASKED)
        return not_implied;
    /* Questions come one after the other. A restarted client may first receive an old question that was delayed, then
     * the current one. */
    enum { DELAYED = 64 };
    if (w->count && at == w->count && ((settled && !w->restored) || q->round - w->asked[at - 1].round > DELAYED))
        return "a question of the set-up out of its order";
    if (!has_good_models(spec, q, M))
        return too_large;
    const char *why = judge_columns(w, q);
    if (why)
        return why;
    memmove(w->asked + at + 1, w->asked + at, (w->count - at) * sizeof *w->asked);
    w->asked[at].round = q->round;
    w->asked[at].print = print;
    w->asked[at].step = s;
    w->count++;
    return NULL;
}

/* ---- polish and groups ---- */

/* Whether a question was asked before; false: it is a new one, and is noted. Without vectors it is always new, because
 * its answer depends on the question before it. */
static bool was_asked(warden *w, uint64_t print)
{
    size_t at = 0;
    if (2 * (w->n_prints + 1) > w->prints_room) {
        const size_t room = w->prints_room ? 2 * w->prints_room : 64;
        uint64_t *prints = alloc_zero(room, sizeof *prints);
        for (size_t i = 0; prints && i < w->prints_room; i++) {
            for (at = w->prints[i] % room; w->prints[i] && prints[at]; at = (at + 1) % room)
                ;
            prints[at] = w->prints[i] ? w->prints[i] : prints[at];
        }
        if (!prints)
            return false;
        free(w->prints);
        w->prints = prints;
        w->prints_room = room;
    }
    for (at = print % w->prints_room; w->prints[at] && w->prints[at] != print; at = (at + 1) % w->prints_room)
        ;
    const bool seen = w->prints[at] == print;
    w->prints[at] = print;
    w->n_prints += !seen;
    return seen;
}

/* A question without its number and its attempt: clients are asked again if one of them is lost. */
static bool is_new(warden *w, const inquiry_question *q, size_t head)
{
    enum { NUMBERED = 2 };
    const double kind = q->kind;
    const size_t from = head ? NUMBERED : 0;
    return q->count <= head || !was_asked(w, print_of(print_of(3, &kind, 1), q->values + from, q->count - from));
}

/* Their numbers only grow (inquiry.c), so the last one is all that can come again. */
static const char *judge_late(warden *w, const hfsad_spec *spec, const inquiry_question *q, size_t M, bool settled)
{
    enum { MOST = 1000000 };
    static const char more[] = "more questions than a run has";
    const unsigned most = warden_most(spec, q->kind);
    if (!settled || most == 0)
        return not_implied;
    const uint64_t print = print_question(q);
    if (q->round == w->late_round)
        return print == w->late_print ? NULL : again;
    unsigned *times = &w->times[q->kind - INQUIRY_POLISH];
    if (w->late >= MOST || *times >= most)
        return more;
    if (!has_good_models(spec, q, M))
        return too_large;
    const bool first = is_new(w, q, q->kind < INQUIRY_GROUPS ? POLISH_HEAD : 0);
    *times += first;
    w->late += first; /* kept questions come again whenever a client is lost */
    w->late_round = q->round;
    w->late_print = print;
    return NULL;
}

const char *warden_judge(warden *w, const hfsad_spec *spec, const inquiry_question *q, size_t M, bool settled)
{
    return q->kind >= INQUIRY_POLISH ? judge_late(w, spec, q, M, settled) : judge_setup(w, spec, q, M, settled);
}

void warden_free(warden *w)
{
    if (w)
        free(w->prints);
    free(w);
}
