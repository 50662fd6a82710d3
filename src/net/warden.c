#include "net/warden.h"

#include "base/alloc.h"
#include "net/catalogue.h"
#include "net/seal.h"
#include "personal/mixture.h"
#include "plan/refusal.h"
#include "plan/scales.h"
#include "plan/survey.h"
#include "polish/answers.h"

#include <math.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
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

/* A print is 64 bits of SHA-256 under a key that only this process knows: a parent cannot look for two questions with
 * the same print, to ask one under the number of the other or uncounted. */
static uint64_t print_of(const warden *w, const double head[4], const inquiry_question *q, size_t from)
{
    struct {
        unsigned char key[SEAL_DIGEST];
        double head[4];
        uint64_t columns, count;
        unsigned char parts[2][SEAL_DIGEST];
    } all = {.columns = q->n_columns, .count = q->count - from};
    unsigned char digest[SEAL_DIGEST];
    memcpy(all.key, w->key, sizeof all.key);
    memcpy(all.head, head, sizeof all.head);
    seal_digest(q->columns, q->n_columns * sizeof *q->columns, all.parts[0]);
    seal_digest(q->values + from, (q->count - from) * sizeof *q->values, all.parts[1]);
    seal_digest(&all, sizeof all, digest);
    uint64_t print;
    memcpy(&print, digest, sizeof print);
    return print | 1;
}

static uint64_t print_question(const warden *w, const inquiry_question *q)
{
    const double head[4] = {q->kind, (double)q->most, (double)q->sums, q->constant};
    return print_of(w, head, q, 0);
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
    const inquiry_question of = {.n_columns = q->n_columns, .columns = q->columns};
    const double head[4] = {0};
    const uint64_t columns = q->n_columns ? print_of(w, head, &of, 0) : 0;
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
    w->begun = w->ordered = true;
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
    const uint64_t print = print_question(w, q);
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

static size_t print_place(const uint64_t *prints, size_t room, uint64_t print)
{
    size_t at = print % room;
    while (prints[at] && prints[at] != print)
        at = (at + 1) % room;
    return at;
}

/* A table of WARDEN_PRINTS questions that is full begins anew: a question that comes again then counts once more.
 * false: no memory; questions then count whenever they come. */
static bool has_room(warden *w)
{
    if (w->n_prints == WARDEN_PRINTS) {
        memset(w->prints, 0, w->prints_room * sizeof *w->prints);
        w->n_prints = 0;
        w->ordered = false; /* what was asked before is not known any more */
    }
    if (2 * (w->n_prints + 1) <= w->prints_room)
        return true;
    const size_t room = w->prints_room ? 2 * w->prints_room : 64;
    uint64_t *prints = alloc_zero(room, sizeof *prints);
    for (size_t i = 0; prints && i < w->prints_room; i++)
        if (w->prints[i])
            prints[print_place(prints, room, w->prints[i])] = w->prints[i];
    if (!prints)
        return false;
    free(w->prints);
    w->prints = prints;
    w->prints_room = room;
    return true;
}

static bool was_asked(const warden *w, uint64_t print)
{
    return w->prints_room && w->prints[print_place(w->prints, w->prints_room, print)];
}

static void note(warden *w, uint64_t print)
{
    if (!has_room(w)) {
        w->ordered = false; /* it could not tell a question that comes again from a new one */
        return;
    }
    uint64_t *at = &w->prints[print_place(w->prints, w->prints_room, print)];
    w->n_prints += *at == 0;
    *at = print;
}

/* A question without its number and its attempt: clients are asked again if one of them is lost. */
static uint64_t print_late(const warden *w, const inquiry_question *q)
{
    enum { NUMBERED = 2 };
    const double kind[4] = {q->kind};
    return print_of(w, kind, q, q->kind < INQUIRY_GROUPS && q->count >= NUMBERED ? NUMBERED : 0);
}

static bool is_bare(const inquiry_question *q)
{
    return q->kind < INQUIRY_GROUPS && q->count <= POLISH_HEAD;
}

static bool is_kept(const inquiry_question *q)
{
    return q->kind < INQUIRY_GROUPS && polish_table[q->kind - INQUIRY_POLISH].how & ASK_KEPT;
}

static bool follows_kind(const inquiry_question *q, int before)
{
    enum { FIRST = INQUIRY_GROUPS + MIXTURE_COLUMNS, LAST = INQUIRY_GROUPS + MIXTURE_MEMBERS };
    if (q->kind >= INQUIRY_GROUPS)
        return q->kind == FIRST || (before >= INQUIRY_GROUPS && (before < LAST || q->kind >= LAST));
    return before < INQUIRY_GROUPS &&
           polish_may_follow((polish_kind)(q->kind - INQUIRY_POLISH), before ? before - INQUIRY_POLISH : -1);
}

/*
 * Whether a question comes in its order: right after one that it may follow (polish_may_follow). If a client is lost,
 * the cloud asks again what clients keep, and then the question that it waited for: the last new one, or one that
 * follows it. A cloud that is started again begins with the first question. A client that was started after the set-up
 * does not know what was asked before.
 */
static bool is_in_order(const warden *w, const inquiry_question *q, bool seen)
{
    const bool first = q->kind < INQUIRY_GROUPS && q->count > 1 && q->values[1] == 1;
    return !w->ordered || (seen && (!is_bare(q) || is_kept(q))) || q->kind == w->last_new ||
           follows_kind(q, w->last_new) || follows_kind(q, w->last_asked) || (first && follows_kind(q, 0));
}

/* Their numbers only grow (inquiry.c), so the last one is all that can come again. */
static const char *judge_late(warden *w, const hfsad_spec *spec, const inquiry_question *q, size_t M, bool settled)
{
    enum { MOST = 1000000 };
    static const char more[] = "more questions than a run has";
    const unsigned most = warden_most(spec, q->kind);
    if (!settled || most == 0)
        return not_implied;
    const uint64_t print = print_question(w, q);
    if (q->round == w->late_round)
        return print == w->late_print ? NULL : again;
    unsigned *times = &w->times[q->kind - INQUIRY_POLISH];
    if (w->late >= MOST || *times >= most)
        return more;
    if (!has_good_models(spec, q, M))
        return too_large;
    /* Without vectors a question is new whenever it comes, because its answer depends on the question before it. */
    const uint64_t unnumbered = print_late(w, q);
    const bool seen = was_asked(w, unnumbered), first = !seen || is_bare(q);
    if (!is_in_order(w, q, seen))
        return "a question of star, polish or groups out of its order";
    note(w, unnumbered);
    *times += first;
    w->late += first; /* kept questions come again whenever a client is lost */
    if (!seen || (is_bare(q) && !is_kept(q)))
        w->last_new = q->kind;
    w->last_asked = q->kind;
    w->late_round = q->round;
    w->late_print = print;
    return NULL;
}

const char *warden_judge(warden *w, const hfsad_spec *spec, const inquiry_question *q, size_t M, bool settled)
{
    if (!w->keyed && RAND_bytes(w->key, sizeof w->key) != 1)
        return "no random numbers for the prints of questions";
    w->keyed = true;
    return q->kind >= INQUIRY_POLISH ? judge_late(w, spec, q, M, settled) : judge_setup(w, spec, q, M, settled);
}

void warden_free(warden *w)
{
    if (w) {
        OPENSSL_cleanse(w->key, sizeof w->key);
        free(w->prints);
    }
    free(w);
}
