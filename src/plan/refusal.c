#include "plan/refusal.h"

#include "base/error.h"
#include "math/losses.h"
#include "plan/method.h"
#include "plan/noise.h"

#include <math.h>
#include <string.h>

static const char *const words[] = {
#define WORD(name, word, text) word,
    REFUSAL_LIST(WORD)
#undef WORD
};

static bool is_spectral(const char *start)
{
    return !strcmp(start, "spectral") || !strcmp(start, "robust");
}

/* As start_plain asks, and a consensus start, which begins with the default. */
static bool asks_start(const hfsad_spec *spec)
{
    const bool phase = loss_kinds[spec->loss.kind]->majorised;
    const char *start = spec->run.start ? spec->run.start : "";
    const bool better = phase && !algorithm_is_baseline(spec->top.algorithm) && spec->top.preset == PRESET_TUNED &&
                        spec->run.cycles != 0;
    return is_spectral(start) || better || (phase && (!*start || !strcmp(start, "consensus")));
}

bool refusal_is_implied(const hfsad_spec *spec, refusal_kind kind)
{
    const int algorithm = spec->top.algorithm;
    const bool noise = spec_has_noise(spec); /* only the rounds of HFSAD have it */
    switch (kind) {
    case REFUSAL_STANDARDIZE:
        return plan_standardizes(spec);
    case REFUSAL_ROBUST_START:
        return asks_start(spec) && !noise;
    case REFUSAL_STEP:
        return algorithm_is_baseline(algorithm);
    case REFUSAL_STAR:
        return !noise && algorithm_may_be_star(algorithm);
    case REFUSAL_POLISH:
        return !algorithm_is_baseline(algorithm) && !noise &&
               (spec->run.polish != 0 || algorithm_may_be_star(algorithm));
    case REFUSAL_ERRORS:
        return spec->output.errors == 1;
    case REFUSAL_GROUPS:
        return spec->top.personal == PERSONAL_GROUPS;
    default:
        return false;
    }
}

static const char *const remedies[] = {
    [REFUSAL_STANDARDIZE] = "set features.standardize: false",
    [REFUSAL_ROBUST_START] = "set run.start: zero or normal, and run.cycles: false",
    [REFUSAL_STEP] = "set algorithm: hfsad",
    [REFUSAL_STAR] = "set algorithm: hfsad",
    [REFUSAL_POLISH] = "set algorithm: hfsad and run.polish: false",
    [REFUSAL_ERRORS] = "set output.errors: false",
    [REFUSAL_GROUPS] = "set personal: none",
};

hfsad_status refusal_check(const hfsad_spec *spec, hfsad_error *err)
{
    const char *at = spec->privacy.refuse ? spec->privacy.refuse : "";
    const hfsad_status status = noise_check_spec(spec, err);
    if (status)
        return status;
    while (*at) {
        const size_t length = strcspn(at, ", ");
        size_t kind = 0;
        while (kind < REFUSALS && (strlen(words[kind]) != length || strncmp(words[kind], at, length) != 0))
            kind++;
        if (length && kind == REFUSALS)
            return error_set(
                err, HFSAD_ERROR_INPUT,
                "privacy.refuse: unknown questions '%.*s'; known are standardize, robust-start, step, star, "
                "polish, errors, groups",
                (int)(length < 60 ? length : 60), at);
        if (length && refusal_is_implied(spec, (refusal_kind)kind))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "privacy.refuse: clients do not answer '%s', and this spec asks these questions: %s",
                             words[kind], remedies[kind]);
        at += length + (at[length] != 0);
    }
    return HFSAD_OK;
}

/* A row that is too long would move the solution by more than its noise covers. */
static hfsad_status check_lengths(double most, const char *path, const client_rows *rows, hfsad_error *err)
{
    if (rows->weight)
        return error_set(err, HFSAD_ERROR_INPUT, "%.200s: privacy.record: rows with weights are not supported", path);
    for (size_t r = 0; r < rows->count; r++)
        if (!(sqrt(row_norm2(rows, r)) <= most))
            return error_set(
                err, HFSAD_ERROR_INPUT,
                "%.200s: its row %zu is longer than privacy.record, %g: shorten it, leave it out, or scale "
                "the columns with public numbers",
                path, r + 1, most);
    return HFSAD_OK;
}

hfsad_status refusal_check_rows(const hfsad_spec *spec, const char *path, const client_rows *rows, hfsad_error *err)
{
    if (rows->count < (size_t)spec->privacy.least_rows)
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "%.200s has %zu row%s, fewer than privacy.least_rows, %lld: leave this client out, or lower the "
            "setting",
            path, rows->count, rows->count == 1 ? "" : "s", (long long)spec->privacy.least_rows);
    return isnan(spec->privacy.record) ? HFSAD_OK : check_lengths(spec->privacy.record, path, rows, err);
}
