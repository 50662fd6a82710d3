/* hfsad runs: lists the history, and changes its entries. */
#include "record.h"
#include "runs.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/whole_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char **words;
    const char *history, *sort, *out;
    const char *status, *kind, *tag, *text;
    int64_t limit;
    int format;
    bool json, rising, yes;
} runs_arguments;

static const char *const formats[] = {"csv", "mlflow", NULL};

static int parse_arguments(runs_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"history", CLI_TEXT, &a->history, 0, 0, NULL, "FILE",
         "history of runs; by default HFSAD_HISTORY or\n~/.local/share/hfsad/runs.db"},
        {"status", CLI_TEXT, &a->status, 0, 0, NULL, "STATUS",
         "only these: running, done, failed, diverged, interrupted,\nkilled, silent"},
        {"kind", CLI_TEXT, &a->kind, 0, 0, NULL, "KIND", "only these: run, up, cloud, path, compare"},
        {"tag", CLI_TEXT, &a->tag, 0, 0, NULL, "TAG", "only runs with this tag"},
        {"match", CLI_TEXT, &a->text, 0, 0, NULL, "TEXT", "only runs with TEXT in name, spec, folder or a tag"},
        {"sort", CLI_TEXT, &a->sort, 0, 0, NULL, "COLUMN",
         "started (the default), name, status, iteration, objective,\nbest, seconds; the largest first"},
        {"rising", CLI_FLAG, &a->rising, 0, 0, NULL, NULL, "the smallest first"},
        {"limit", CLI_WHOLE, &a->limit, 1, 1e9, NULL, "N", "at most this number of runs (50)"},
        {"json", CLI_FLAG, &a->json, 0, 0, NULL, NULL, "the list as JSON"},
        {"format", CLI_CHOICE, &a->format, 0, 0, formats, "csv|mlflow",
         "of an export: tables (the default), or MLflow's file layout,\nfor mlflow ui --backend-store-uri DIR"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "folder of an export (runs-out)"},
    };
    const cli_syntax syntax = {
        .usage = "runs [--status STATUS] [--tag TAG] [--match TEXT] [--sort COLUMN] ...\n"
                 "hfsad runs name ID NAME\n"
                 "hfsad runs tag|untag ID TAG...\n"
                 "hfsad runs delete ID...\n"
                 "hfsad runs export [ID...] [--format csv|mlflow] [--out DIR]",
        .about = "Lists the runs that `run`, `up`, `cloud`, `path` and `compare` have recorded, the newest first.\n"
                 "ID is a number of the list, or `last`. Deleting an entry leaves its output folder as it is.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .most_words = (size_t)argc,
        .words = "a run",
    };
    const int status = cli_parse(&syntax, argc, argv, a->words);
    if (status == CLI_GO && a->sort && !history_sort_known(a->sort))
        return cli_wrong(argv[0], "--sort: unknown column; known: started, name, status, iteration, objective, best, "
                                  "seconds");
    return status;
}

/* ---- the list ---- */

static void print_age(double ms)
{
    const double s = ((double)clock_wall_ms() - ms) / 1000;
    if (s < 120)
        printf("%6.0f s", s);
    else if (s < 7200)
        printf("%4.0f min", s / 60);
    else if (s < 172800)
        printf("%6.0f h", s / 3600);
    else
        printf("%6.0f d", s / 86400);
}

static void print_cell(const char *format, double v)
{
    char text[40] = "-";
    if (isfinite(v))
        snprintf(text, sizeof text, format, v);
    printf("  %12s", text);
}

static void print_list(const cJSON *runs)
{
    const cJSON *run;
    printf("%5s  %-7s  %-20s  %-11s  %8s  %9s  %12s  %12s  %12s  %s\n", "id", "kind", "name", "status", "started",
           "iteration", "objective", "best", "seconds", "tags");
    cJSON_ArrayForEach(run, runs)
    {
        char tags[200];
        runs_tags(run, tags, sizeof tags);
        printf("%5.0f  %-7s  %-20.20s  %-11s  ", runs_number(run, "id"), runs_text(run, "kind"), runs_text(run, "name"),
               runs_text(run, "status"));
        print_age(runs_number(run, "started"));
        printf("  %9.0f", isfinite(runs_number(run, "iteration")) ? runs_number(run, "iteration") : 0);
        print_cell("%.7g", runs_number(run, "objective"));
        print_cell("%.7g", runs_number(run, "best"));
        print_cell("%.4g", runs_number(run, "seconds"));
        printf("  %s\n", tags);
    }
}

static int list_runs(history *h, const runs_arguments *a)
{
    hfsad_error err = {0};
    const history_filter f = {a->status, a->kind, a->tag, a->text, a->sort, a->rising, a->limit, 0};
    cJSON *runs = history_runs(h, &f, &err);
    if (!runs)
        return cli_fail(&err);
    if (a->json) {
        char *text = cJSON_Print(runs);
        puts(text ? text : "");
        cJSON_free(text);
    } else if (cJSON_GetArraySize(runs)) {
        print_list(runs);
    } else {
        puts("no such run");
    }
    cJSON_Delete(runs);
    return cli_finish_stdout(CLI_DONE);
}

/* ---- changes ---- */

/* Looks up all IDs before anything changes. */
static int delete_runs(history *h, const char **words)
{
    hfsad_error err = {0};
    int64_t id;
    for (const char **w = words; *w; w++)
        if (!history_find(h, *w, &id, &err))
            return cli_fail(&err);
    for (const char **w = words; *w; w++)
        if (history_find(h, *w, &id, &err) && history_delete(h, id, &err))
            return cli_fail(&err);
    return CLI_DONE;
}

static int tag_run(history *h, const char **words, bool add)
{
    hfsad_error err = {0};
    int64_t id;
    if (!history_find(h, words[0], &id, &err))
        return cli_fail(&err);
    for (const char **w = words + 1; *w; w++)
        if (history_tag(h, id, *w, add, &err))
            return cli_fail(&err);
    return CLI_DONE;
}

static int name_run(history *h, const char **words)
{
    hfsad_error err = {0};
    int64_t id;
    return !history_find(h, words[0], &id, &err) || history_rename(h, id, words[1], &err) ? cli_fail(&err) : CLI_DONE;
}

/* The named runs, or those of the filter. */
static cJSON *chosen_runs(history *h, const runs_arguments *a, hfsad_error *err)
{
    const history_filter f = {a->status, a->kind, a->tag, a->text, a->sort, a->rising, INT32_MAX, 0};
    if (!a->words[1])
        return history_runs(h, &f, err);
    cJSON *runs = cJSON_CreateArray();
    for (const char **w = a->words + 1; *w; w++) {
        int64_t id;
        cJSON *run = history_find(h, *w, &id, err) ? history_run(h, id, err) : NULL;
        if (!run) {
            cJSON_Delete(runs);
            return NULL;
        }
        cJSON_AddItemToArray(runs, run);
    }
    return runs;
}

static int export_runs(history *h, const runs_arguments *a)
{
    hfsad_error err = {0};
    cJSON *runs = chosen_runs(h, a, &err);
    if (!runs)
        return cli_fail(&err);
    hfsad_status status = folder_make(a->out, &err);
    if (!status)
        status = a->format ? runs_export_mlflow(h, runs, a->out, &err) : runs_export_csv(h, runs, a->out, &err);
    if (!status)
        printf("%d runs written to %s%s\n", cJSON_GetArraySize(runs), a->out,
               a->format ? "" : ": runs.csv, traces.csv");
    cJSON_Delete(runs);
    return status ? cli_fail(&err) : cli_finish_stdout(CLI_DONE);
}

/* ---- the command ---- */

static size_t count_words(const char **words)
{
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

static int manage_runs(const runs_arguments *a, const char *command)
{
    static const char *const verbs[] = {"name", "tag", "untag", "delete", "export", NULL};
    static const size_t least[] = {2, 2, 2, 1, 0};
    enum { NAME, TAG, UNTAG, DELETE, EXPORT, LIST };
    const size_t n = count_words(a->words);
    int verb = n ? 0 : LIST;
    while (n && verbs[verb] && strcmp(a->words[0], verbs[verb]) != 0)
        verb++;
    if (n && !verbs[verb])
        return cli_wrong(command, "unknown word '%.60s'; known: name, tag, untag, delete, export", a->words[0]);
    if (verb < LIST && (n - 1 < least[verb] || (verb == NAME && n != 3)))
        return cli_wrong(command, "%s needs %s", verbs[verb],
                         verb == NAME     ? "a run and a name"
                         : verb == DELETE ? "a run"
                                          : "a run and a tag");
    history *h;
    int status = record_open(&h, a->history, verb < EXPORT ? HISTORY_WRITE : HISTORY_READ);
    if (status != CLI_GO)
        return status;
    status = verb == LIST     ? list_runs(h, a)
             : verb == EXPORT ? export_runs(h, a)
             : verb == DELETE ? delete_runs(h, a->words + 1)
             : verb == NAME   ? name_run(h, a->words + 1)
                              : tag_run(h, a->words + 1, verb == TAG);
    history_close(h);
    return status;
}

int cmd_runs(int argc, char **argv)
{
    runs_arguments a = {.words = calloc((size_t)argc + 1, sizeof(char *)), .limit = 50, .out = "runs-out"};
    if (!a.words) {
        fputs("hfsad: not enough memory\n", stderr);
        return CLI_FAILED;
    }
    int status = parse_arguments(&a, argc, argv);
    if (status == CLI_GO)
        status = manage_runs(&a, argv[0]);
    free(a.words);
    return status;
}
