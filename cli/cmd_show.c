/* hfsad show: prints everything that the history has about a run. */
#include "record.h"
#include "runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *word, *history;
    bool json, trace, spec;
} show_arguments;

static int parse_arguments(show_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"history", CLI_TEXT, &a->history, 0, 0, NULL, "FILE", "history of runs"},
        {"json", CLI_FLAG, &a->json, 0, 0, NULL, NULL, "everything as JSON"},
        {"trace", CLI_FLAG, &a->trace, 0, 0, NULL, NULL, "the trace as CSV"},
        {"spec", CLI_FLAG, &a->spec, 0, 0, NULL, NULL, "the spec as it was"},
    };
    const cli_syntax syntax = {
        .usage = "show ID [--json] [--trace] [--spec] [--history FILE]",
        .about = "Prints what the history knows of a run: status, figures, verdict, changed settings, folder,\n"
                 "hashes and the last lines of its log. ID is a number of `hfsad runs`, or `last`.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1,
        .words = "a run",
    };
    return cli_parse(&syntax, argc, argv, &a->word);
}

static void put_line(const char *label, const char *text)
{
    if (*text)
        printf("%-12s  %s\n", label, text);
}

static void put_number(const char *label, double v)
{
    if (isfinite(v))
        printf("%-12s  %.10g\n", label, v);
}

static void print_settings(const cJSON *run)
{
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(run, "given"), *one;
    const char *label = "settings";
    cJSON_ArrayForEach(one, given)
    {
        if (cJSON_IsString(one))
            printf("%-12s  %s: %s\n", label, one->string, one->valuestring);
        label = "";
    }
}

static void print_log(history *h, int64_t id)
{
    hfsad_error err;
    const cJSON *one;
    char time[RUNS_TIME_SIZE];
    const char *label = "log";
    cJSON *log = history_events(h, id, 0, 20, &err);
    cJSON_ArrayForEach(one, log)
    {
        const char *node = runs_text(one, "node");
        runs_time(runs_number(one, "at"), time);
        printf("%-12s  %s  %s%s%s\n", label, time, node, *node ? ": " : "", runs_text(one, "text"));
        label = "";
    }
    cJSON_Delete(log);
}

static void print_run(history *h, const cJSON *run, int64_t id)
{
    char started[RUNS_TIME_SIZE], ended[RUNS_TIME_SIZE], tags[300];
    const cJSON *summary = cJSON_GetObjectItemCaseSensitive(run, "summary");
    runs_time(runs_number(run, "started"), started);
    runs_time(runs_number(run, "ended"), ended);
    runs_tags(run, tags, sizeof tags);
    printf("%-12s  %lld, %s (%s)\n", "run", (long long)id, runs_text(run, "name"), runs_text(run, "kind"));
    put_line("tags", tags);
    printf("%-12s  %s%s%s\n", "status", runs_text(run, "status"), *runs_text(run, "why") ? ": " : "",
           runs_text(run, "why"));
    put_line("verdict", runs_text(summary, "verdict"));
    put_line("started", started);
    put_line("ended", ended);
    put_number("seconds", runs_number(run, "seconds"));
    if (isfinite(runs_number(run, "iteration")))
        printf("%-12s  %.0f of %.0f, %.0f rows\n", "iteration", runs_number(run, "iteration"),
               runs_number(run, "iterations"), runs_number(run, "rows"));
    put_number("objective", runs_number(run, "objective"));
    put_number("best", runs_number(run, "best"));
    put_number("gap bound", runs_number(run, "gap"));
    put_number("bytes", runs_number(run, "bytes"));
    printf("%-12s  %s%s\n", "folder", runs_text(run, "out"),
           cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(run, "out_exists")) ? "" : " (no longer there)");
    put_line("spec", runs_text(run, "spec_path"));
    put_line("spec hash", runs_text(run, "spec_hash"));
    put_line("data hash", runs_text(run, "data_hash"));
    printf("%-12s  hfsad %s on %s\n", "made by", runs_text(run, "version"), runs_text(run, "host"));
    print_settings(run);
    print_log(h, id);
}

static int show(history *h, const show_arguments *a)
{
    hfsad_error err = {0};
    int64_t id;
    if (!history_find(h, a->word, &id, &err))
        return cli_fail(&err);
    if (a->trace)
        return runs_print_trace(h, id, stdout, &err) ? cli_fail(&err) : cli_finish_stdout(CLI_DONE);
    cJSON *run = history_run(h, id, &err);
    if (!run)
        return cli_fail(&err);
    if (a->json) {
        char *text = cJSON_Print(run);
        puts(text ? text : "");
        cJSON_free(text);
    } else if (a->spec) {
        fputs(runs_text(run, "spec"), stdout);
    } else {
        print_run(h, run, id);
    }
    cJSON_Delete(run);
    return cli_finish_stdout(CLI_DONE);
}

int cmd_show(int argc, char **argv)
{
    show_arguments a = {0};
    history *h;
    int status = parse_arguments(&a, argc, argv);
    if (status == CLI_GO)
        status = record_open(&h, a.history, HISTORY_READ);
    if (status != CLI_GO)
        return status;
    status = show(h, &a);
    history_close(h);
    return status;
}
