#include "out/trace.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/format_number.h"
#include "plan/accountant.h"
#include "plan/noise.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns in order, except relative_error and the tiers, which follow. REAL and WHOLE: their format. */
#define TRACE_COLUMNS(X)                                                                                               \
    X(WHOLE, iteration)                                                                                                \
    X(REAL, objective)                                                                                                 \
    X(REAL, consensus_objective)                                                                                       \
    X(REAL, primal_residual)                                                                                           \
    X(REAL, dual_residual)                                                                                             \
    X(REAL, consensus_gap)                                                                                             \
    X(REAL, smoothing_gap)                                                                                             \
    X(REAL, seconds)                                                                                                   \
    X(WHOLE, bytes_up)                                                                                                 \
    X(WHOLE, bytes_down)

enum {
#define COUNT_COLUMN(type, name) COLUMN_##name,
    TRACE_COLUMNS(COUNT_COLUMN)
#undef COUNT_COLUMN
        N_COLUMNS
};

static void write_head(trace *t)
{
    char *at = t->text;
#define HEAD_COLUMN(type, name) at += sprintf(at, "%s" #name, COLUMN_##name ? "," : "");
    TRACE_COLUMNS(HEAD_COLUMN)
#undef HEAD_COLUMN
    if (t->relative_error)
        at += sprintf(at, ",relative_error");
    for (size_t tier = 1; tier <= t->tiers; tier++)
        at += sprintf(at, ",primal_residual_tier%zu,dual_residual_tier%zu", tier, tier);
    at += sprintf(at, ",gap_bound%s", t->noise.rho > 0 ? ",rho,epsilon" : "");
    *at++ = '\n';
    t->length = (size_t)(at - t->text);
}

hfsad_status trace_create(trace *t, uint64_t rows, size_t tiers, bool relative_error, hfsad_error *err)
{
    assert(tiers <= HFSAD_TIERS_MAX);
    const size_t columns = N_COLUMNS + 4 + 2 * tiers;
    *t = (trace){
        .tiers = tiers, .relative_error = relative_error, .row_size = columns * (NUMBER_LONGEST + 1) + NUMBER_SIZE};
    const size_t head = 16 * NUMBER_SIZE + 4 * columns * NUMBER_SIZE;
    if (__builtin_mul_overflow(rows, t->row_size, &t->capacity) ||
        __builtin_add_overflow(t->capacity, head, &t->capacity))
        t->capacity = SIZE_MAX;
    t->text = alloc_raw(t->capacity, 1); /* memory is used as the text grows: a run pays for its rows only */
    if (!t->text)
        return error_set(
            err, HFSAD_ERROR_MEMORY,
            "not enough memory: %zu bytes for %llu rows of the trace; set run.trace_every to a larger number",
            t->capacity, (unsigned long long)rows);
    write_head(t);
    return HFSAD_OK;
}

void trace_account(trace *t, const noise_budget *noise)
{
    t->noise = *noise;
    write_head(t);
}

void trace_free(trace *t)
{
    free(t->text);
    *t = (trace){0};
}

static char *write_REAL(char *at, double v)
{
    return at + number_write(at, v);
}

static char *write_WHOLE(char *at, uint64_t v)
{
    return at + number_write_whole(at, v);
}

void trace_append(trace *t, const hfsad_figures *figures)
{
    assert(t->length + t->row_size <= t->capacity);
    char *at = t->text + t->length;
#define ROW_COLUMN(type, name)                                                                                         \
    if (COLUMN_##name)                                                                                                 \
        *at++ = ',';                                                                                                   \
    at = write_##type(at, figures->name);
    TRACE_COLUMNS(ROW_COLUMN)
#undef ROW_COLUMN
    if (t->relative_error) {
        *at++ = ',';
        at = write_REAL(at, figures->relative_error);
    }
    for (size_t tier = 0; tier < t->tiers; tier++) {
        *at++ = ',';
        at = write_REAL(at, figures->primal_tier[tier]);
        *at++ = ',';
        at = write_REAL(at, figures->dual_tier[tier]);
    }
    *at++ = ',';
    at = write_REAL(at, figures->gap_bound);
    if (t->noise.rho > 0) {
        const double spent = noise_spent(&t->noise, figures->iteration);
        *at++ = ',';
        at = write_REAL(at, spent);
        *at++ = ',';
        at = write_REAL(at, zcdp_epsilon(spent, t->noise.delta));
    }
    *at++ = '\n';
    t->length = (size_t)(at - t->text);
}
