/* hfsad state: verifies state folders of a federation, and prints what is in them. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include "net/store.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_file(const char *folder, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%.3900s/%.255s", folder, name);
    return access(path, F_OK) == 0;
}

static bool is_state(const char *folder)
{
    return has_file(folder, "state") || has_file(folder, "mark") || has_file(folder, "state.db");
}

/* ---- check ---- */

static int check(const char *folder, store *s)
{
    hfsad_error err;
    store_facts f;
    if (store_check(s, &f, &err))
        return cli_fail(&err);
    printf("%s: sound; run %016" PRIx64 ", %" PRIu64 " commits, snapshot %" PRIu64 " bytes, log %" PRIu64
           " bytes, unfinished write %" PRIu64 " bytes; states %zu, messages %zu, rows %zu, lines %zu\n",
           folder, f.run, f.commits, f.snapshot, f.log, f.unfinished, f.states, f.heard, f.rows, f.lines);
    return CLI_DONE;
}

/* ---- export ---- */

typedef struct {
    store *s;
    hfsad_error err;
    hfsad_status status;
} exporting;

/* The line of an object, which is freed. */
static void print_line(cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);
    if (text)
        puts(text);
    free(text);
    cJSON_Delete(object);
}

static void add_bytes(cJSON *object, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    char *hex = malloc(2 * size + 1);
    if (!hex)
        return;
    for (size_t i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", b[i]);
    hex[2 * size] = 0;
    cJSON_AddNumberToObject(object, "bytes", (double)size);
    cJSON_AddStringToObject(object, "hex", hex);
    free(hex);
}

static void print_state(void *context, const char *path)
{
    exporting *e = context;
    void *bytes;
    size_t size;
    if (e->status || (e->status = store_get_state(e->s, path, &bytes, &size, &e->err)))
        return;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "state", path);
    add_bytes(object, bytes, size);
    print_line(object);
    free(bytes);
}

static hfsad_status print_message(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                                  hfsad_error *err)
{
    (void)context;
    (void)err;
    cJSON *object = cJSON_CreateObject(), *heard = cJSON_AddArrayToObject(object, "heard_by");
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(heard, cJSON_CreateString(names[i]));
    add_bytes(object, frame, size);
    print_line(object);
    return HFSAD_OK;
}

static void print_row(void *context, const hfsad_figures *f)
{
    (void)context;
    const struct {
        const char *name;
        double value;
    } fields[] = {
        {"row", (double)f->iteration},
        {"objective", f->objective},
        {"consensus_objective", f->consensus_objective},
        {"primal_residual", f->primal_residual},
        {"dual_residual", f->dual_residual},
        {"consensus_gap", f->consensus_gap},
        {"smoothing_gap", f->smoothing_gap},
        {"relative_error", f->relative_error},
        {"seconds", f->seconds},
        {"bytes_up", (double)f->bytes_up},
        {"bytes_down", (double)f->bytes_down},
    };
    cJSON *object = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char text[40] = "null"; /* not a number */
        if (isfinite(fields[i].value))
            snprintf(text, sizeof text, "%.17g", fields[i].value);
        cJSON_AddRawToObject(object, fields[i].name, text);
    }
    print_line(object);
}

static void print_record(void *context, const char *text)
{
    (void)context;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "line", text);
    print_line(object);
}

static int export(const char *folder, store *s)
{
    exporting e = {.s = s};
    store_facts f;
    char run[20];
    e.status = store_check(s, &f, &e.err);
    if (e.status)
        return cli_fail(&e.err);
    snprintf(run, sizeof run, "%016" PRIx64, f.run);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "folder", folder);
    cJSON_AddStringToObject(object, "run", run);
    cJSON_AddNumberToObject(object, "commits", (double)f.commits);
    print_line(object);
    store_get_names(s, print_state, &e);
    if (!e.status)
        e.status = store_get_heard(s, print_message, NULL, &e.err);
    if (!e.status)
        e.status = store_get_rows(s, print_row, NULL, &e.err);
    if (!e.status)
        e.status = store_get_record(s, print_record, NULL, &e.err);
    return e.status ? cli_fail(&e.err) : CLI_DONE;
}

/* ---- the command ---- */

static int look_at(const char *folder, bool exports)
{
    hfsad_error err;
    store *s;
    if (store_open_as(&s, folder, NULL, &err))
        return cli_fail(&err);
    const int status = exports ? export(folder, s) : check(folder, s);
    store_close(s);
    return status;
}

static int is_inner(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* A folder of one process, or one with those of several, as `up` makes it; the highest status of all. */
static int look_at_all(const char *folder, bool exports)
{
    struct dirent **names = NULL;
    int worst = CLI_DONE, found = 0;
    if (is_state(folder))
        return look_at(folder, exports);
    const int count = scandir(folder, &names, is_inner, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%.3900s/%.255s", folder, names[i]->d_name);
        if (is_state(path)) {
            const int status = look_at(path, exports);
            worst = status > worst ? status : worst;
            found++;
        }
        free(names[i]);
    }
    free(names);
    return found ? worst : cli_wrong("state", "%.300s is not a state folder and contains none", folder);
}

int cmd_state(int argc, char **argv)
{
    const char *words[2];
    const cli_syntax syntax = {
        .usage = "state check DIR\n"
                 "state export DIR",
        .about =
            "Verifies every committed byte of a state folder of a federation, or of every state folder within DIR,\n"
            "as `hfsad up --keep-state` leaves it. No process may have the folder open. `export` also prints the\n"
            "content: one JSON object per line for every state, message, row of the trace and line of the record.\n"
            "Nothing is written. Exit status 2: a folder is damaged, incomplete or in use; a line names the file\n"
            "and the place.",
        .least_words = 2,
        .most_words = 2,
        .words = "check or export, and a folder",
    };
    const int status = cli_parse(&syntax, argc, argv, words);
    if (status != CLI_GO)
        return status;
    const bool exports = strcmp(words[0], "export") == 0;
    if (!exports && strcmp(words[0], "check") != 0)
        return cli_wrong("state", "'%.60s' is neither check nor export", words[0]);
    return cli_finish_stdout(look_at_all(words[1], exports));
}
