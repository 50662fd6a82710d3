/* Reads a run of the history for `hfsad compare`. */
#include "compare.h"
#include "runs.h"

#include "base/error.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool compared_run_is_number(const char *word)
{
    return !strcmp(word, "last") || (isdigit((unsigned char)word[0]) && word[strspn(word, "0123456789")] == 0);
}

static hfsad_status take_rows(compared_run *r, sqlite3_stmt *s, size_t room, hfsad_error *err)
{
    for (int i = 0; i < COMPARE_COLUMNS; i++)
        if (!(r->column[i] = calloc(room, sizeof(double))))
            return error_memory(err, room * sizeof(double), "the trace");
    while (r->rows < room && sqlite3_step(s) == SQLITE_ROW) {
        for (int i = 0; i < COMPARE_COLUMNS; i++)
            r->column[i][r->rows] = sqlite3_column_type(s, i) == SQLITE_NULL ? NAN : sqlite3_column_double(s, i);
        r->rows++;
    }
    return HFSAD_OK;
}

/* The columns in the order of compare_names. */
static hfsad_status read_trace(compared_run *r, history *h, int64_t id, hfsad_error *err)
{
    char sql[600] = "SELECT ";
    sqlite3_stmt *s = NULL, *n = NULL;
    for (int i = 0; i < COMPARE_COLUMNS; i++)
        snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%s%s", i ? ", " : "", compare_names[i]);
    snprintf(sql + strlen(sql), sizeof sql - strlen(sql), " FROM trace WHERE run = ? ORDER BY iteration");
    hfsad_status status = HFSAD_OK;
    if (sqlite3_prepare_v2(h->db, sql, -1, &s, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(h->db, "SELECT count(*) FROM trace WHERE run = ?", -1, &n, NULL) != SQLITE_OK)
        status = history_error(h, err);
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_int64(n, 1, id);
    const int64_t rows = !status && sqlite3_step(n) == SQLITE_ROW ? sqlite3_column_int64(n, 0) : 0;
    if (!status && rows == 0)
        status = error_set(err, HFSAD_ERROR_INPUT, "run %lld of the history has no rows; give another", (long long)id);
    if (!status)
        status = take_rows(r, s, (size_t)rows, err);
    sqlite3_finalize(s);
    sqlite3_finalize(n);
    return status;
}

hfsad_status compared_run_recall(compared_run *r, history *h, const char *word, hfsad_error *err)
{
    int64_t id;
    cJSON *run = history_find(h, word, &id, err) ? history_run(h, id, err) : NULL;
    if (!run)
        return err->status;
    const cJSON *summary = cJSON_GetObjectItemCaseSensitive(run, "summary");
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(run, "settings");
    const char *algorithm = runs_text(summary, "algorithm"), *rounds = runs_text(settings, "run.edge_rounds");
    const size_t size = strlen(runs_text(run, "name")) + 32;
    r->name = malloc(size);
    r->folder = strdup(runs_text(run, "out"));
    if (r->name)
        snprintf(r->name, size, "%lld-%s", (long long)id, runs_text(run, "name"));
    snprintf(r->algorithm, sizeof r->algorithm, "%s", *algorithm ? algorithm : "-");
    r->edge_rounds = *rounds ? strtod(rounds, NULL) : NAN;
    cJSON_Delete(run);
    return r->name && r->folder ? read_trace(r, h, id, err) : error_memory(err, size, "a name");
}
