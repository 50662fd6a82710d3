/* hfsad state: verifies state folders of a federation, and prints what is in them. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include "hfsad/net.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_line(void *context, const char *line)
{
    (void)context;
    puts(line);
}

static int look_at(const char *folder, bool exports)
{
    hfsad_error err;
    hfsad_state_facts f = {.size = sizeof f};
    if (hfsad_state_check(folder, &f, exports ? print_line : NULL, NULL, &err))
        return cli_fail(&err);
    if (!exports)
        printf("%s: sound; run %016" PRIx64 ", %" PRIu64 " commits, snapshot %" PRIu64 " bytes, log %" PRIu64
               " bytes, unfinished write %" PRIu64 " bytes; states %zu, messages %zu, rows %zu, lines %zu\n",
               folder, f.run, f.commits, f.snapshot, f.log, f.unfinished, f.states, f.messages, f.rows, f.lines);
    return CLI_DONE;
}

static int is_inner(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* A folder of one process, or a folder with several of them, as `up` creates it; returns the highest status. */
static int look_at_all(const char *folder, bool exports)
{
    struct dirent **names = NULL;
    int worst = CLI_DONE, found = 0;
    if (hfsad_state_exists(folder))
        return look_at(folder, exports);
    const int count = scandir(folder, &names, is_inner, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%.3900s/%.255s", folder, names[i]->d_name);
        if (hfsad_state_exists(path)) {
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
                 "hfsad state export DIR",
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
