#include "net/catalogue.h"

#include "math/losses.h"
#include "personal/mixture.h"
#include "plan/refusal.h"
#include "polish/answers.h"
#include "polish/inner.h"

/* ---- the rows ---- */

#define BY_EVERY "every spec"
#define BY_START                                                                                                       \
    "`run.start: spectral` or `robust`; phase retrieval unless `run.start` is given and `run.cycles: false`"
#define BY_INTERCEPT "`features.intercept`"
#define BY_BASELINE "`algorithm: fedavg` or `fedprox`"
#define BY_TUNED "`preset: tuned` and a convex loss, unless the star trains"
#define BY_STAR "`algorithm: star` or `auto`"
#define BY_POLISH "`run.polish`, `algorithm: star` or `auto`"
#define BY_PHASE BY_POLISH ", of phase retrieval"
#define BY_ERRORS "`output.errors`"
#define BY_GROUPS "`personal: groups`"

/* Of the set-up. */
#define SET_UP(kind, text, by, refuse, models, budget)                                                                 \
    {                                                                                                                  \
        kind, text, by, refuse, 0, models, MAXIMA_BUCKETS, budget                                                      \
    }
#define ASKED(name, text, by, refuse, models) SET_UP(SURVEY_##name, text, by, refuse, MODEL_##models, BUDGET_NOT_ASKED)
enum { GROUPS_MOST = 100000 };
#define OF_GROUPS(name, text)                                                                                          \
    {                                                                                                                  \
        INQUIRY_GROUPS + MIXTURE_##name, "groups: " text, BY_GROUPS, "groups", GROUPS_MOST, MODEL_GROUPS,              \
            MAXIMA_BUCKETS, BUDGET_NOT_ASKED                                                                           \
    }

static const catalogue_row rows[] = {
    {INQUIRY_SHAPE, "number of rows", BY_EVERY, "", 0, MODEL_NONE, MAXIMA_FLAGS, BUDGET_MADE_UP},
    ASKED(MOMENTS, "means and deviations of the columns", "`features.standardize`", "standardize", SET_UP),
    ASKED(ENERGY, "sum of squares of the rows", BY_INTERCEPT, "", NONE),
    ASKED(CENTRE, "sum of y", BY_INTERCEPT "; " BY_BASELINE, "", NONE),
    SET_UP(SURVEY_SCALE, "scale of the data: largest slope, sums of squares", BY_EVERY, "", MODEL_NONE, BUDGET_MADE_UP),
    ASKED(OWN, "slope and bend of the own loss", "`loss.kind: own`", "", NONE),
    ASKED(LEVELS, "slopes of the loss at thresholds", BY_TUNED ", with " BY_INTERCEPT, "", SET_UP),
    ASKED(GRADIENT, "gradient at a model", "`lambda: auto` of a prior; " BY_START, "", SET_UP),
    ASKED(MISFIT, "rows with a residual below thresholds", BY_TUNED ", of bounded slope; " BY_BASELINE, "", SET_UP),
    SET_UP(SURVEY_BOUND, "largest slope within the box", BY_EVERY, "", MODEL_NONE, BUDGET_MADE_UP),
    ASKED(COLUMNS, "sums of squares of the columns", BY_START, "robust-start", NONE),
    ASKED(BELOW, "rows with y below thresholds", BY_START "; " BY_BASELINE, "robust-start, step", NONE),
    ASKED(BELOW_ONE, "rows with y/|x|^2 below thresholds", BY_START, "robust-start", NONE),
    ASKED(BELOW_FIT, "rows with y/<x,v>^2 below thresholds", BY_START, "robust-start", SET_UP),
    ASKED(TRUNCATED, "spectral start: product with a vector", BY_START, "robust-start", SET_UP),
    ASKED(ROBUST, "robust start: product with a vector", BY_START, "robust-start", SET_UP),
    ASKED(LOSS, "loss at a model", BY_START, "robust-start", SET_UP),
    ASKED(LEFT, "sum of residuals at the start", BY_INTERCEPT, "", SET_UP),
    ASKED(CURVE, "curvature along a vector", BY_BASELINE, "step", NONE),
    ASKED(CURVE_ALONE, "largest curvature", BY_BASELINE, "step", NONE),
    {INQUIRY_RESULT, "the result of the set-up (no question)", BY_EVERY, "", 0, MODEL_NONE, MAXIMA_APART,
     BUDGET_NOTHING},
    {INQUIRY_END, "the end of the run (no question)", BY_EVERY, "", 0, MODEL_NONE, MAXIMA_APART, BUDGET_NOTHING},
    OF_GROUPS(COLUMNS, "sums of squares of the columns"),
    OF_GROUPS(STATS, "losses, slopes and second derivatives at models"),
    OF_GROUPS(SPREAD, "spread of slopes"),
    OF_GROUPS(CUTS, "place along directions"),
    OF_GROUPS(CROSS, "losses on half of the rows"),
    {INQUIRY_GROUPS + MIXTURE_MEMBERS, "groups: weights of this client",
     BY_GROUPS ", if clients have rows in `model.csv`: not with secure aggregation", "groups", GROUPS_MOST,
     MODEL_GROUPS, MAXIMA_BUCKETS, BUDGET_NOT_ASKED},
    OF_GROUPS(SIZES, "size of each group"),
};

/* Polish and star have at most POLISH_EXCHANGES questions, and as many again if a choice of columns is given up.
 * Questions without vectors count each time that they come, also from a cloud that was restarted. Standard errors have
 * 15, and four times as many may come: another process of the cloud may find a model that differs in its last digits.
 */
static catalogue_row row_of_polish(int kind)
{
    enum { ERRORS_AGAIN = 4, ERRORS_WIDTHS = 13, CHOICE_AGAIN = 2, BARE_AGAIN = 10 };
    const polish_entry *e = &polish_table[kind - INQUIRY_POLISH];
    const bool several = e->stages == (POLISH_OF_STAR | POLISH_OF_PHASE), errors = e->stages & POLISH_OF_ERRORS,
               widths = kind == INQUIRY_POLISH + POLISH_RESIDUALS,
               bare = polish_down((polish_kind)(kind - INQUIRY_POLISH), 1) == 0;
    return (catalogue_row){
        .kind = kind,
        .text = e->text,
        .by = several                        ? BY_STAR "; " BY_PHASE
              : errors                       ? BY_ERRORS
              : e->stages & POLISH_OF_STAR   ? BY_STAR
              : e->stages & POLISH_OF_POLISH ? BY_POLISH
                                             : BY_PHASE,
        .refuse = several                      ? ""
                  : errors                     ? "errors"
                  : e->stages & POLISH_OF_STAR ? "star"
                                               : "polish",
        .most = errors ? (widths ? ERRORS_WIDTHS : 1) * ERRORS_AGAIN
                : bare ? BARE_AGAIN * POLISH_EXCHANGES
                       : CHOICE_AGAIN * POLISH_EXCHANGES,
        .models = e->flags & POLISH_FROM_POINT     ? MODEL_POINT
                  : e->flags & POLISH_FREE || bare ? MODEL_NONE
                                                   : MODEL_ALL,
        .maxima = MAXIMA_APART,
        .budget = BUDGET_NOT_ASKED,
    };
}

bool catalogue_find(int kind, catalogue_row *row)
{
    if (kind >= INQUIRY_POLISH && kind - INQUIRY_POLISH < POLISH_KINDS) {
        *row = row_of_polish(kind);
        return true;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind) {
            *row = rows[i];
            return true;
        }
    return false;
}

/* The weights of a single client are asked for only if the cloud shows models of clients. In a sum over a cohort they
 * would stand alone, because the other members answer 0. */
bool catalogue_implies(const hfsad_spec *spec, int kind)
{
    if (kind >= INQUIRY_GROUPS)
        return refusal_is_implied(spec, REFUSAL_GROUPS) &&
               (kind != INQUIRY_GROUPS + MIXTURE_MEMBERS || spec_shows_clients(spec));
    if (kind < INQUIRY_POLISH || kind - INQUIRY_POLISH >= POLISH_KINDS)
        return false;
    const unsigned stages = polish_table[kind - INQUIRY_POLISH].stages;
    const bool polish = refusal_is_implied(spec, REFUSAL_POLISH),
               phase = loss_kinds[spec->loss.kind]->majorised || spec->n_overrides > 0;
    return (stages & POLISH_OF_POLISH && polish) || (stages & POLISH_OF_PHASE && phase && polish) ||
           (stages & POLISH_OF_STAR && refusal_is_implied(spec, REFUSAL_STAR)) ||
           (stages & POLISH_OF_ERRORS && refusal_is_implied(spec, REFUSAL_ERRORS));
}

const char *catalogue_describe(int kind)
{
    catalogue_row row;
    return catalogue_find(kind, &row) ? row.text : "unknown question";
}
