/* Runs of the history as CSV and in MLflow's file layout; see runs.h. */
#define _GNU_SOURCE /* asprintf */
#include "runs.h"

#include "base/error.h"
#include "base/whole_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TRACE_COLUMNS                                                                                                  \
    "iteration, objective, consensus_objective, primal_residual, dual_residual, consensus_gap, smoothing_gap, "        \
    "relative_error, seconds, bytes_up, bytes_down, gap_bound"

const char *runs_text(const cJSON *o, const char *name)
{
    const cJSON *t = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsString(t) ? t->valuestring : "";
}

double runs_number(const cJSON *o, const char *name)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(n) ? n->valuedouble : NAN;
}

void runs_time(double ms, char text[RUNS_TIME_SIZE])
{
    struct tm parts;
    const time_t seconds = isfinite(ms) ? (time_t)(ms / 1000) : 0;
    text[0] = 0;
    if (isfinite(ms) && localtime_r(&seconds, &parts))
        strftime(text, RUNS_TIME_SIZE, "%Y-%m-%d %H:%M:%S", &parts);
}

void runs_tags(const cJSON *run, char *text, size_t size)
{
    const cJSON *one;
    size_t n = 0;
    text[0] = 0;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(run, "tags"))
    {
        if (n < size)
            n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", one->valuestring);
    }
}

/* ---- CSV ---- */

static sqlite3_stmt *trace_query(history *h, int64_t id, hfsad_error *err)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(h->db, "SELECT " TRACE_COLUMNS " FROM trace WHERE run = ? ORDER BY iteration", -1, &s,
                           NULL) != SQLITE_OK) {
        (void)history_error(h, err);
        return NULL;
    }
    sqlite3_bind_int64(s, 1, id);
    return s;
}

static void put_value(FILE *out, sqlite3_stmt *s, int i)
{
    if (sqlite3_column_type(s, i) == SQLITE_NULL)
        fputs("nan", out);
    else
        fprintf(out, "%.17g", sqlite3_column_double(s, i));
}

static void put_rows(FILE *out, sqlite3_stmt *s, const char *before)
{
    while (sqlite3_step(s) == SQLITE_ROW) {
        fputs(before, out);
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            if (i)
                fputc(',', out);
            put_value(out, s, i);
        }
        fputc('\n', out);
    }
    sqlite3_finalize(s);
}

static void put_column_names(FILE *out, const char *before)
{
    fputs(before, out);
    for (const char *at = TRACE_COLUMNS; *at; at++)
        if (*at != ' ')
            fputc(*at, out);
    fputc('\n', out);
}

hfsad_status runs_print_trace(history *h, int64_t id, FILE *out, hfsad_error *err)
{
    sqlite3_stmt *s = trace_query(h, id, err);
    if (!s)
        return err->status;
    put_column_names(out, "");
    put_rows(out, s, "");
    return HFSAD_OK;
}

static void put_run(whole_file *f, const cJSON *run, const char *const *names, size_t count)
{
    char tags[1000];
    runs_tags(run, tags, sizeof tags);
    for (size_t i = 0; i < count; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(run, names[i]);
        if (cJSON_IsNumber(v))
            fprintf(f->stream, "%.17g", v->valuedouble);
        else if (cJSON_IsString(v))
            whole_file_put_field(f, v->valuestring, "");
        fputc(',', f->stream);
    }
    whole_file_put_field(f, tags, "");
    fputc(',', f->stream);
    char *given = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(run, "given"));
    whole_file_put_field(f, given ? given : "", "");
    cJSON_free(given);
    fputc('\n', f->stream);
}

static int64_t id_of(const cJSON *run)
{
    return (int64_t)runs_number(run, "id");
}

hfsad_status runs_export_csv(history *h, const cJSON *runs, const char *folder, hfsad_error *err)
{
    static const char *const names[] = {
        "id",   "kind", "name",  "status", "why",     "started", "ended",     "seconds",   "iteration", "objective",
        "best", "gap",  "bytes", "seed",   "version", "host",    "spec_path", "spec_hash", "data_hash", "out"};
    enum { N = sizeof names / sizeof *names };
    whole_file f;
    const cJSON *run;
    hfsad_status status = whole_file_begin(&f, folder, "runs.csv", err);
    if (status)
        return status;
    for (size_t i = 0; i < N; i++)
        fprintf(f.stream, "%s,", names[i]);
    fputs("tags,settings\n", f.stream);
    cJSON_ArrayForEach(run, runs) put_run(&f, run, names, N);
    status = whole_file_end(&f, err);
    if (!status)
        status = whole_file_begin(&f, folder, "traces.csv", err);
    if (status)
        return status;
    put_column_names(f.stream, "run,");
    cJSON_ArrayForEach(run, runs)
    {
        char before[32];
        snprintf(before, sizeof before, "%lld,", (long long)id_of(run));
        sqlite3_stmt *s = trace_query(h, id_of(run), err);
        if (!s) {
            whole_file_drop(&f);
            return err->status;
        }
        put_rows(f.stream, s, before);
    }
    return whole_file_end(&f, err);
}

/* ---- MLflow ---- */

__attribute__((format(printf, 3, 4))) static bool print_to(char *path, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(path, size, format, list);
    va_end(list);
    return n > 0 && (size_t)n < size;
}

static hfsad_status write_file(const char *folder, const char *name, const char *text, hfsad_error *err)
{
    return whole_file_write(folder, name, text, strlen(text), err);
}

/* A text in YAML: a JSON string is one. */
static void put_yaml(FILE *out, const char *key, const char *text)
{
    cJSON *s = cJSON_CreateString(text);
    char *quoted = cJSON_PrintUnformatted(s);
    fprintf(out, "%s: %s\n", key, quoted ? quoted : "''");
    cJSON_free(quoted);
    cJSON_Delete(s);
}

/* Names of files are letters, digits and -_. */
static void file_name(const char *key, char name[200])
{
    snprintf(name, 200, "%s", key);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
            *c = '_';
}

static int mlflow_status(const char *status)
{
    return !strcmp(status, "running")                                 ? 1
           : !strcmp(status, "done")                                  ? 3
           : !strcmp(status, "failed") || !strcmp(status, "diverged") ? 4
                                                                      : 5;
}

/* A folder as a URI: all but unreserved characters and / are bytes in hexadecimal digits. */
static void put_uri(FILE *out, const char *key, const char *folder, const char *below)
{
    fprintf(out, "%s: \"file://", key);
    for (const unsigned char *c = (const unsigned char *)folder; *c; c++)
        fprintf(out, isalnum(*c) || strchr("-._~/", *c) ? "%c" : "%%%02X", *c);
    fprintf(out, "%s\"\n", below);
}

static hfsad_status write_meta(const cJSON *run, const char *folder, const char *id, hfsad_error *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return error_memory(err, 0, "a file");
    put_uri(out, "artifact_uri", folder, "/artifacts");
    fputs("deleted_time: null\n", out);
    if (isfinite(runs_number(run, "ended")))
        fprintf(out, "end_time: %.0f\n", runs_number(run, "ended"));
    else
        fputs("end_time: null\n", out);
    fprintf(out, "entry_point_name: ''\nexperiment_id: '0'\nlifecycle_stage: active\nrun_id: '%s'\n", id);
    put_yaml(out, "run_name", runs_text(run, "name"));
    fprintf(
        out,
        "run_uuid: '%s'\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: %.0f\nstatus: %d\ntags: []\n",
        id, runs_number(run, "started"), mlflow_status(runs_text(run, "status")));
    put_yaml(out, "user_id", runs_text(run, "host"));
    if (fclose(out) != 0)
        return error_memory(err, 0, "a file");
    const hfsad_status status = whole_file_write(folder, "meta.yaml", text, size, err);
    free(text);
    return status;
}

/* A file a metric: time, value and step on each line. */
static hfsad_status write_metrics(history *h, const cJSON *run, const char *folder, hfsad_error *err)
{
    sqlite3_stmt *s = trace_query(h, id_of(run), err);
    char *texts[16] = {0};
    size_t sizes[16] = {0};
    FILE *files[16] = {0};
    hfsad_status status = s ? HFSAD_OK : err->status;
    const int n = s ? sqlite3_column_count(s) : 0;
    for (int i = 1; i < n && !status; i++)
        if (!(files[i] = open_memstream(&texts[i], &sizes[i])))
            status = error_memory(err, 0, "a file");
    while (!status && sqlite3_step(s) == SQLITE_ROW) {
        const double at = runs_number(run, "started") + 1000 * sqlite3_column_double(s, 8);
        for (int i = 1; i < n; i++)
            if (sqlite3_column_type(s, i) != SQLITE_NULL)
                fprintf(files[i], "%.0f %.17g %lld\n", at, sqlite3_column_double(s, i),
                        (long long)sqlite3_column_int64(s, 0));
    }
    for (int i = 1; i < n; i++) {
        if (files[i] && fclose(files[i]) != 0 && !status)
            status = error_memory(err, 0, "a file");
        if (!status && sizes[i])
            status = whole_file_write(folder, sqlite3_column_name(s, i), texts[i], sizes[i], err);
        free(texts[i]);
    }
    sqlite3_finalize(s);
    return status;
}

static hfsad_status write_params(const cJSON *run, const char *folder, hfsad_error *err)
{
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(run, "settings"), *one;
    hfsad_status status = HFSAD_OK;
    if (!cJSON_IsObject(all))
        all = cJSON_GetObjectItemCaseSensitive(run, "given");
    cJSON_ArrayForEach(one, all)
    {
        char name[200];
        file_name(one->string, name);
        if (!status && cJSON_IsString(one))
            status = write_file(folder, name, one->valuestring, err);
    }
    return status;
}

static hfsad_status write_tags(const cJSON *run, const char *folder, hfsad_error *err)
{
    static const char *const kept[] = {"kind", "status", "spec_hash", "data_hash", "version", "host", "out"};
    const cJSON *one;
    hfsad_status status = write_file(folder, "mlflow.runName", runs_text(run, "name"), err);
    for (size_t i = 0; i < sizeof kept / sizeof *kept && !status; i++)
        status = write_file(folder, kept[i], runs_text(run, kept[i]), err);
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(run, "tags"))
    {
        char name[210] = "tag.";
        file_name(one->valuestring, name + 4);
        if (!status)
            status = write_file(folder, name, "true", err);
    }
    return status;
}

static hfsad_status export_run(history *h, int64_t id, const char *experiment, hfsad_error *err)
{
    char name[40], folder[4200], below[4300];
    static const char *const parts[] = {"metrics", "params", "tags", "artifacts"};
    cJSON *run = history_run(h, id, err);
    hfsad_status status = run ? HFSAD_OK : err->status;
    /* MLflow's names are 32 hexadecimal digits: the same run gets the same again */
    snprintf(name, sizeof name, "%.16s%016llx",
             *runs_text(run, "spec_hash") ? runs_text(run, "spec_hash") : "0000000000000000", (unsigned long long)id);
    if (!status && !print_to(folder, sizeof folder, "%s/%s", experiment, name))
        status = error_set(err, HFSAD_ERROR_INPUT, "the name of the folder is too long");
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++) {
        (void)print_to(below, sizeof below, "%s/%s", folder, parts[i]);
        status = folder_make(below, err);
        if (!status && i == 0)
            status = write_metrics(h, run, below, err);
        if (!status && i == 1)
            status = write_params(run, below, err);
        if (!status && i == 2)
            status = write_tags(run, below, err);
        if (!status && i == 3) {
            char *summary = cJSON_Print(cJSON_GetObjectItemCaseSensitive(run, "summary"));
            status = write_file(below, "spec.yaml", runs_text(run, "spec"), err);
            if (!status && summary)
                status = write_file(below, "summary.json", summary, err);
            cJSON_free(summary);
        }
    }
    if (!status)
        status = write_meta(run, folder, name, err);
    cJSON_Delete(run);
    return status;
}

/* As old as its first run. */
static hfsad_status write_experiment(const cJSON *runs, const char *folder, hfsad_error *err)
{
    char *text = NULL;
    size_t size;
    double first = INFINITY, last = 0;
    const cJSON *run;
    cJSON_ArrayForEach(run, runs)
    {
        first = fmin(first, runs_number(run, "started"));
        last = fmax(last, fmax(runs_number(run, "started"), runs_number(run, "ended")));
    }
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return error_memory(err, 0, "a file");
    put_uri(out, "artifact_location", folder, "");
    fprintf(out,
            "creation_time: %.0f\nexperiment_id: '0'\nlast_update_time: %.0f\nlifecycle_stage: active\n"
            "name: Default\n",
            isfinite(first) ? first : last, last);
    if (fclose(out) != 0)
        return error_memory(err, 0, "a file");
    const hfsad_status status = whole_file_write(folder, "meta.yaml", text, size, err);
    free(text);
    return status;
}

hfsad_status runs_export_mlflow(history *h, const cJSON *runs, const char *folder, hfsad_error *err)
{
    char experiment[4100];
    const cJSON *run;
    hfsad_status status = folder_make(folder, err);
    char *real = status ? NULL : realpath(folder, NULL);
    if (!status && (!real || !print_to(experiment, sizeof experiment, "%s/0", real)))
        status = error_set(err, HFSAD_ERROR_IO, "%.300s: %s", folder, strerror(errno));
    free(real);
    if (!status)
        status = folder_make(experiment, err);
    if (status)
        return status;
    status = write_experiment(runs, experiment, err);
    cJSON_ArrayForEach(run, runs)
    {
        if (!status)
            status = export_run(h, id_of(run), experiment, err);
    }
    return status;
}
