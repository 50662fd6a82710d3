#include "net/warden.h"

#include "base/bits.h"
#include "math/losses.h"
#include "personal/mixture.h"
#include "plan/refusal.h"
#include "plan/scales.h"
#include "polish/answers.h"

#include <math.h>
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

/* The set-up in the order of federation_root.c: how often a question may come at most, and at which number of it a
 * model or a direction begins. */
typedef struct {
    int kind;
    unsigned times;
    bool (*implied)(const hfsad_spec *spec);
    size_t vector; /* SIZE_MAX: none */
} step;

enum { HALF_POINT = 7, LANCZOS = 100, POWER = 12 };

static const step steps[] = {
    {INQUIRY_SHAPE, 1, always, SIZE_MAX},
    {SURVEY_MOMENTS, 3, standardizes, 1},
    {SURVEY_ENERGY, 1, has_intercept, SIZE_MAX},
    {SURVEY_CENTRE, 1, has_intercept, SIZE_MAX},
    {SURVEY_SCALE, 1, always, SIZE_MAX},
    {SURVEY_OWN, 1, has_own_loss, SIZE_MAX},
    {SURVEY_LEVELS, 8, lambda_is_wanted, SIZE_MAX},
    {SURVEY_GRADIENT, 1, lambda_is_wanted, 0},
    {SURVEY_LEVELS, 8, settles_intercept, SIZE_MAX},
    {SURVEY_MISFIT, 2, spread_is_settled, SURVEY_THRESHOLDS},
    {SURVEY_BOUND, 1, always, SIZE_MAX},
    {SURVEY_COLUMNS, 1, asks_start, SIZE_MAX},
    {SURVEY_BELOW, HALF_POINT, asks_start, SIZE_MAX},
    {SURVEY_BELOW_ONE, HALF_POINT, asks_start, SIZE_MAX},
    {SURVEY_TRUNCATED, LANCZOS, asks_start, 1},
    {SURVEY_ROBUST, LANCZOS, asks_start, 1},
    {SURVEY_BELOW_FIT, HALF_POINT, asks_start, SURVEY_THRESHOLDS},
    {SURVEY_COLUMNS, 1, asks_start, SIZE_MAX}, /* the robust start beside another one */
    {SURVEY_BELOW_ONE, HALF_POINT, asks_start, SIZE_MAX},
    {SURVEY_ROBUST, LANCZOS, asks_start, 1},
    {SURVEY_BELOW_FIT, HALF_POINT, asks_start, SURVEY_THRESHOLDS},
    {SURVEY_LOSS, 1, asks_start, 0},
    {SURVEY_GRADIENT, START_STEPS, asks_start, 0}, /* where the given start leads */
    {SURVEY_LOSS, 2, asks_start, 0},
    {SURVEY_GRADIENT, START_STEPS, asks_start, 0}, /* and the robust one */
    {SURVEY_LOSS, 1, asks_start, 0},
    {SURVEY_CENTRE, 1, has_intercept, SIZE_MAX},
    {SURVEY_LEVELS, 8, settles_intercept, SURVEY_THRESHOLDS},
    {SURVEY_LEFT, 1, has_intercept, 0},
    {SURVEY_MISFIT, HALF_POINT, asks_step, SURVEY_THRESHOLDS},
    {SURVEY_BELOW, HALF_POINT, asks_step, SIZE_MAX},
    {SURVEY_CENTRE, 1, asks_step, SIZE_MAX},
    {SURVEY_CURVE_ALONE, 1, asks_step, SIZE_MAX},
    {SURVEY_CURVE, POWER, asks_step, SIZE_MAX},
};
enum { STEPS = sizeof steps / sizeof *steps };

/* Whether a question of the polish belongs to the algorithm of the spec. */
static bool polish_is_implied(const hfsad_spec *spec, int kind)
{
    const bool star = refusal_is_implied(spec, REFUSAL_STAR), phase = loss_kinds[spec->loss.kind]->majorised;
    switch (kind) {
    case POLISH_ANCHOR:
    case POLISH_SEARCH:
        return (phase || spec->n_overrides > 0) && refusal_is_implied(spec, REFUSAL_POLISH);
    case POLISH_GRAM:
    case POLISH_GRAM_DIAGONAL:
    case POLISH_METRIC:
    case POLISH_METRIC_DIAGONAL:
    case POLISH_ROUND:
    case POLISH_SPREAD:
    case POLISH_CHOOSE:
        return star;
    case POLISH_FORGET:
        return star || ((phase || spec->n_overrides > 0) && refusal_is_implied(spec, REFUSAL_POLISH));
    case POLISH_RESIDUALS:
    case POLISH_BREAD:
    case POLISH_MEAT:
        return refusal_is_implied(spec, REFUSAL_ERRORS);
    default:
        return kind < POLISH_KINDS && refusal_is_implied(spec, REFUSAL_POLISH);
    }
}

const char *warden_describe(int kind)
{
    static const char *const survey[] = {
        [SURVEY_CENTRE] = "sum of y",
        [SURVEY_SCALE] = "scale of the data: largest slope, sums of squares",
        [SURVEY_OWN] = "slope and bend of the own loss",
        [SURVEY_BOUND] = "largest slope within the box",
        [SURVEY_COLUMNS] = "sums of squares of the columns",
        [SURVEY_BELOW] = "rows with y below thresholds",
        [SURVEY_BELOW_ONE] = "rows with y/|x|^2 below thresholds",
        [SURVEY_BELOW_FIT] = "rows with y/<x,v>^2 below thresholds",
        [SURVEY_TRUNCATED] = "spectral start: product with a vector",
        [SURVEY_ROBUST] = "robust start: product with a vector",
        [SURVEY_LEFT] = "sum of residuals at the start",
        [SURVEY_ENERGY] = "sum of squares of the rows",
        [SURVEY_MOMENTS] = "means and deviations of the columns",
        [SURVEY_MISFIT] = "rows with a residual below thresholds",
        [SURVEY_CURVE] = "curvature along a vector",
        [SURVEY_CURVE_ALONE] = "largest curvature",
        [SURVEY_LOSS] = "loss at a model",
        [SURVEY_LEVELS] = "slopes of the loss at thresholds",
        [SURVEY_GRADIENT] = "gradient at a model",
    };
    static const char *const polish[] = {
        [POLISH_ANCHOR] = "polish: loss at a model",
        [POLISH_SCALES] = "polish: bounds of slopes, sums of squares of the columns",
        [POLISH_VALUE] = "polish: loss and slope at a model",
        [POLISH_LINE] = "polish: slopes along a line",
        [POLISH_DIAGONAL] = "polish: diagonal of the second derivative",
        [POLISH_HESSIAN] = "polish: second derivative",
        [POLISH_PRODUCT] = "polish: second derivative times a vector",
        [POLISH_COMMIT] = "polish: moves the multipliers of the rows to a model",
        [POLISH_REPAIR] = "polish: slopes for a bound of the gap",
        [POLISH_GRAM] = "star: products of the columns",
        [POLISH_GRAM_DIAGONAL] = "star: sums of squares of the columns",
        [POLISH_SPREAD] = "star: rows with a residual below thresholds",
        [POLISH_METRIC] = "star: metric",
        [POLISH_METRIC_DIAGONAL] = "star: metric",
        [POLISH_ROUND] = "star: a step on a model of the cloud",
        [POLISH_FORGET] = "star, polish: forgets its steps",
        [POLISH_RESIDUALS] = "errors: rows with a residual below thresholds",
        [POLISH_BREAD] = "errors: second derivative",
        [POLISH_MEAT] = "errors: squares of the slopes",
        [POLISH_SEARCH] = "polish: loss and slope at several models",
        [POLISH_CHOOSE] = "star: columns of later questions",
    };
    static const char *const groups[] = {
        [MIXTURE_COLUMNS] = "groups: sums of squares of the columns",
        [MIXTURE_STATS] = "groups: losses, slopes and second derivatives at models",
        [MIXTURE_SPREAD] = "groups: spread of slopes",
        [MIXTURE_CUTS] = "groups: place along directions",
        [MIXTURE_CROSS] = "groups: losses on half of the rows",
        [MIXTURE_MEMBERS] = "groups: weights of this client",
    };
    const char *text = NULL;
    if (kind >= 0 && kind < (int)(sizeof survey / sizeof *survey))
        text = survey[kind];
    else if (kind == INQUIRY_SHAPE)
        text = "number of rows";
    else if (kind == INQUIRY_RESULT)
        text = "the result of the set-up (no question)";
    else if (kind == INQUIRY_END)
        text = "the end of the run (no question)";
    else if (kind >= INQUIRY_POLISH && kind - INQUIRY_POLISH < (int)(sizeof polish / sizeof *polish))
        text = polish[kind - INQUIRY_POLISH];
    else if (kind >= INQUIRY_GROUPS && kind - INQUIRY_GROUPS < (int)(sizeof groups / sizeof *groups))
        text = groups[kind - INQUIRY_GROUPS];
    return text ? text : "unknown question";
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

/* ---- the set-up ---- */

static const char not_implied[] = "a question that this spec does not have";
static const char again[] = "another question with the number of one that was answered";
static const char too_large[] = "a model with numbers beyond privacy.largest";

/* Index of the first question asked with this round or a later one. */
static size_t place_of(const warden *w, uint64_t round)
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
static void begin(warden *w, const inquiry_question *q)
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
    begin(w, q);
    if (w->count == 0)
        w->restored = settled;
    const size_t at = place_of(w, q->round), from = at ? w->asked[at - 1].step : 0;
    const uint64_t print = print_question(q);
    if (at < w->count && w->asked[at].round == q->round)
        return w->asked[at].print == print ? NULL : again;
    const size_t to = at < w->count ? w->asked[at].step : STEPS - 1;
    size_t s = from;
    while (s <= to && !(steps[s].kind == q->kind && steps[s].implied(spec) && times_of(w, s) < steps[s].times))
        s++;
    if (s > to || w->count == WARDEN_ASKED)
        return not_implied;
    /* Questions come one after the other. A client that is started again may hear an old one first, which was delayed
     * on its way, and then the one in hand. */
    enum { DELAYED = 64 };
    if (w->count && at == w->count && ((settled && !w->restored) || q->round - w->asked[at - 1].round > DELAYED))
        return "a question of the set-up out of its order";
    const size_t v = steps[s].vector;
    if (v < q->count && !is_within(spec, q->values + v, q->count - v < M ? q->count - v : M))
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

/* Whether its numbers are a model: a matrix, and the directions of LINE, PRODUCT and REPAIR, may be of any size. */
static bool polish_has_model(int kind)
{
    return kind != POLISH_METRIC && kind != POLISH_METRIC_DIAGONAL && kind != POLISH_LINE && kind != POLISH_PRODUCT &&
           kind != POLISH_REPAIR && kind != POLISH_CHOOSE;
}

/* Their numbers only grow (inquiry.c), so the last one is all that can come again. */
static const char *judge_late(warden *w, const hfsad_spec *spec, const inquiry_question *q, bool settled)
{
    enum { MOST = 1000000 };
    const bool groups = q->kind >= INQUIRY_GROUPS;
    const int kind = q->kind - INQUIRY_POLISH;
    const bool free = !groups && !polish_has_model(kind);
    const size_t head = groups ? 0 : INQUIRY_POLISH_HEAD;
    if (!settled || !(groups ? refusal_is_implied(spec, REFUSAL_GROUPS) : polish_is_implied(spec, kind)))
        return not_implied;
    const uint64_t print = print_question(q);
    if (q->round == w->late_round)
        return print == w->late_print ? NULL : again;
    if (++w->late > MOST)
        return "more questions than a run has";
    if (!free && q->count > head && !is_within(spec, q->values + head, q->count - head))
        return too_large;
    w->late_round = q->round;
    w->late_print = print;
    return NULL;
}

const char *warden_judge(warden *w, const hfsad_spec *spec, const inquiry_question *q, size_t M, bool settled)
{
    return q->kind >= INQUIRY_POLISH ? judge_late(w, spec, q, settled) : judge_setup(w, spec, q, M, settled);
}
