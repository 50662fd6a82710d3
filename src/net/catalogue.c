#include "net/catalogue.h"

#include "math/losses.h"
#include "personal/mixture.h"
#include "plan/refusal.h"
#include "plan/survey.h"
#include "polish/answers.h"
#include "polish/inner.h"

/* ---- which specs imply a question after the set-up ---- */

static bool implied_by_star(const hfsad_spec *spec)
{
    return refusal_is_implied(spec, REFUSAL_STAR);
}

static bool implied_by_polish(const hfsad_spec *spec)
{
    return refusal_is_implied(spec, REFUSAL_POLISH);
}

static bool implied_by_phase(const hfsad_spec *spec)
{
    return (loss_kinds[spec->loss.kind]->majorised || spec->n_overrides > 0) && implied_by_polish(spec);
}

static bool implied_by_star_or_phase(const hfsad_spec *spec)
{
    return implied_by_star(spec) || implied_by_phase(spec);
}

static bool implied_by_errors(const hfsad_spec *spec)
{
    return refusal_is_implied(spec, REFUSAL_ERRORS);
}

static bool implied_by_groups(const hfsad_spec *spec)
{
    return refusal_is_implied(spec, REFUSAL_GROUPS);
}

/* The weights of a single client are asked for only if the cloud shows models of clients. In a sum over a cohort they
 * would stand alone, because the other members answer 0. */
static bool implied_by_shown_groups(const hfsad_spec *spec)
{
    return implied_by_groups(spec) && spec_shows_clients(spec);
}

/* ---- the rows ---- */

static const catalogue_row rows[INQUIRY_KINDS] = {
#define SURVEY_ROW(name, down, most, up, answer, how, bound, mask, budget, limit, by, words)                           \
    [SURVEY_##name] = {how, bound, mask, budget, limit, by, words},
    SURVEY_QUESTIONS(SURVEY_ROW)
#define SETUP_ROW(name, down, most, up, answer, how, bound, mask, budget, limit, by, words)                            \
    [INQUIRY_##name] = {how, bound, mask, budget, limit, by, words},
        SETUP_QUESTIONS(SETUP_ROW)
#define POLISH_ROW(name, down, most, up, answer, how, bound, mask, budget, limit, by, words)                           \
    [INQUIRY_POLISH + POLISH_##name] = {(how) | ASK_IN_ORDER, bound, mask, budget, limit, by, words},
            POLISH_QUESTIONS(POLISH_ROW)
#define GROUPS_ROW(name, down, most, up, answer, how, bound, mask, budget, limit, by, words)                           \
    [INQUIRY_GROUPS + MIXTURE_##name] = {(how) | ASK_IN_ORDER, bound, mask, budget, limit, by, words},
                GROUPS_QUESTIONS(GROUPS_ROW)};

static const catalogue_row training_rows[] = {
#define TRAINING_ROW(name, down, most, up, answer, how, bound, mask, budget, limit, by, words)                         \
    {how, bound, mask, budget, limit, by, words},
    TRAINING_QUESTIONS(TRAINING_ROW)};

const catalogue_row *catalogue_find(int kind)
{
    return kind >= 0 && kind < INQUIRY_KINDS && rows[kind].text ? &rows[kind] : NULL;
}

const catalogue_row *catalogue_of_phase(uint64_t phase)
{
    const uint64_t i = phase - NODE_PHASE_TRAIN;
    return i < sizeof training_rows / sizeof *training_rows ? &training_rows[i] : NULL;
}

const char *catalogue_describe(int kind)
{
    const catalogue_row *row = catalogue_find(kind);
    return row ? row->text : "unknown question";
}
