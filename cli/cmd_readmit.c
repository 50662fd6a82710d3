/* hfsad readmit: the operator replaces nodes whose state folders are lost. hfsad retire: clients leave. hfsad admit:
 * clients are added to the list. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_member.h"

#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    cli_texts sets;
    const char *state;
    double wait;
    const char **words;
    size_t n_words;
    bool retires;
    const char *cohort; /* file of `hfsad keys cohort` */
} session;

static bool is_spec(const char *word)
{
    const char *end = strrchr(word, '.');
    return end && (!strcmp(end, ".yaml") || !strcmp(end, ".yml"));
}

static int wait_for_cloud(const session *s, const char *state)
{
    const struct timespec pause = {0, 50000000};
    for (double waited = 0; hfsad_readmit_is_pending(state); waited += 0.05) {
        if (waited >= s->wait) {
            fprintf(stderr,
                    "hfsad: %s: the cloud has not done it yet; it will, as soon as it runs and reaches the parent\n",
                    state);
            return CLI_AGAIN;
        }
        nanosleep(&pause, NULL);
    }
    return CLI_DONE;
}

/* The node, a newline and the proof from its line in the file; NULL: no such line. */
static char *with_proof(const char *file, const char *node)
{
    char *line = NULL, *found = NULL;
    size_t size = 0;
    FILE *f = fopen(file, "r");
    while (f && !found && getline(&line, &size, f) > 0) {
        const size_t length = strlen(node);
        line[strcspn(line, "\r\n")] = 0;
        if (strncmp(line, node, length) != 0 || line[length] != '\t')
            continue;
        line[length] = '\n';
        found = strdup(line);
    }
    free(line);
    if (f)
        fclose(f);
    return found;
}

static int readmit(const session *s, hfsad_spec *spec, const char *state, const char **nodes, size_t count)
{
    hfsad_error err = {0};
    int made = CLI_GO;
    char **proven = calloc(count + 1, sizeof *proven);
    for (size_t i = 0; i < count && made == CLI_GO && s->cohort && proven; i++)
        if (!(proven[i] = with_proof(s->cohort, nodes[i])))
            made = cli_wrong("retire", "--cohort: %s cannot be read or has no line for %s; hfsad keys cohort prints it",
                             s->cohort, nodes[i]);
    const char *const *list = s->cohort ? (const char *const *)proven : nodes;
    if (made == CLI_GO && (!proven || (s->retires ? hfsad_retire : hfsad_readmit)(spec, state, list, count, &err)))
        made = cli_fail(&err);
    for (size_t i = 0; proven && i < count; i++)
        free(proven[i]);
    free(proven);
    if (made != CLI_GO)
        return made;
    const int status = wait_for_cloud(s, state);
    bool refused = false;
    for (size_t i = 0; i < count && status == CLI_DONE; i++) {
        const bool refuses = hfsad_readmit_was_refused(state, nodes[i]);
        refused = refused || refuses;
        if (refuses)
            fprintf(stderr, "hfsad: %s: the cloud has refused it; check the node, the spec and the proof\n", nodes[i]);
        else
            printf(s->retires ? "%s: it has left, and its process ends\n"
                              : "%s: its link starts anew; start its process with an empty state folder\n",
                   nodes[i]);
    }
    return status == CLI_DONE ? cli_finish_stdout(refused ? CLI_FAILED : CLI_DONE) : status;
}

static int change_nodes(const session *s)
{
    const char *command = s->retires ? "retire" : "readmit";
    const bool named = is_spec(s->words[0]);
    hfsad_spec *spec = NULL;
    char state[4096] = "";
    int status = named ? member_load(&spec, s->words[0], &s->sets, command) : CLI_GO;
    if (status == CLI_GO && (s->n_words == (size_t)named || (!named && !s->state)))
        status = cli_wrong(command, named ? "name the nodes" : "name the spec, or the cloud's state folder (--state)");
    char *states = status == CLI_GO && named ? run_folder(s->words[0], "state") : NULL;
    if (status == CLI_GO && !s->state && !(states && hfsad_state_folder(states, "cloud", false, state, sizeof state))) {
        fputs("hfsad: not enough memory\n", stderr);
        status = CLI_FAILED;
    }
    if (status == CLI_GO)
        status = readmit(s, spec, s->state ? s->state : state, s->words + named, s->n_words - named);
    free(states);
    hfsad_spec_free(spec);
    return status;
}

static int parse_arguments(int argc, char **argv, bool retires)
{
    session s = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)),
                 .words = calloc((size_t)argc + 1, sizeof(char *)),
                 .wait = 30,
                 .retires = retires};
    const cli_option options[] = {
        {"state", CLI_TEXT, &s.state, 0, 0, NULL, "DIR", "state folder of the cloud (spec-state/cloud)"},
        {"wait", CLI_REAL, &s.wait, 0, 1e6, NULL, "SECONDS", "how long to wait for the cloud (30)"},
        {"cohort", CLI_TEXT, &s.cohort, 0, 0, NULL, "FILE",
         "retire: what `hfsad keys cohort` has printed, if there are cohorts"},
        {"set", CLI_TEXTS, &s.sets, 0, 0, NULL, "KEY=VALUE", "a setting"},
    };
    const cli_syntax syntax = {
        .usage = retires
                     ? "retire SPEC.yaml CLIENT... [--state DIR] [--wait SECONDS] [--cohort FILE]\nhfsad retire "
                       "CLIENT... --state DIR"
                     : "readmit SPEC.yaml NODE... [--state DIR] [--wait SECONDS]\nhfsad readmit NODE... --state DIR",
        .about =
            retires
                ? "Lets clients leave a running asynchronous federation. Run it on the machine of the cloud, as the\n"
                  "user of the cloud. Their links leave all sums, and their processes end. `hfsad readmit` lets them\n"
                  "join again with a new link. The summary names them; `hfsad run --replay` repeats the run."
                : "Replaces nodes whose state folders are lost, while the run continues. Run it on the machine of the\n"
                  "cloud, as the user of the cloud. The link of a node restarts from its parent's model, and so\n"
                  "do the links below it. Trace and summary name the node; `hfsad run --replay` repeats the run.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = (size_t)argc,
        .words = "a spec file, followed by paths of nodes such as edge1/client7,",
        .after = "Exit status: 0 done, 1 the cloud has refused a node, 2 the arguments are wrong, 75 the cloud has not "
                 "done it yet.",
    };
    int status = CLI_FAILED;
    if (s.sets.room && s.words)
        status = cli_parse(&syntax, argc, argv, s.words);
    else
        fputs("hfsad: not enough memory\n", stderr);
    while (status == CLI_GO && s.words[s.n_words])
        s.n_words++;
    if (status == CLI_GO)
        status = change_nodes(&s);
    free(s.sets.room);
    free(s.words);
    return status;
}

/* ---- admit ---- */

static int admit(const char **words, size_t count, const cli_texts *sets)
{
    hfsad_error err = {0};
    hfsad_spec *spec = NULL;
    int status = member_load(&spec, words[0], sets, "admit");
    if (status == CLI_GO && count < 2)
        status = cli_wrong("admit", "name the clients");
    if (status == CLI_GO)
        status = hfsad_admit(spec, words + 1, count - 1, &err) ? cli_fail(&err) : CLI_DONE;
    for (size_t i = 1; i < count && status == CLI_DONE; i++)
        printf("%s: in the list; it joins when its process speaks\n", words[i]);
    hfsad_spec_free(spec);
    return status == CLI_DONE ? cli_finish_stdout(CLI_DONE) : status;
}

int cmd_admit(int argc, char **argv)
{
    cli_texts sets = {.room = calloc((size_t)argc + 1, sizeof(char *))};
    const char **words = calloc((size_t)argc + 1, sizeof(char *));
    const cli_option options[] = {{"set", CLI_TEXTS, &sets, 0, 0, NULL, "KEY=VALUE", "a setting"}};
    const cli_syntax syntax = {
        .usage = "admit SPEC.yaml CLIENT...",
        .about = "Adds clients to federation.nodes, the list of nodes, while an asynchronous run continues. Processes\n"
                 "above them notice the longer list and use it: run the command on the machine of the cloud,\n"
                 "and copy the list to the machines of the edges above the client and of the client itself.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = (size_t)argc,
        .words = "a spec file, followed by paths of new clients such as edge1/client99,",
        .after =
            "Exit status: 0 done, 1 the list could not be written, 2 the spec, the list or the arguments are wrong.\n"
            "If the status is not 0, the list is unchanged.",
    };
    int status = sets.room && words ? cli_parse(&syntax, argc, argv, words) : CLI_FAILED;
    size_t count = 0;
    while (status == CLI_GO && words[count])
        count++;
    if (status == CLI_GO)
        status = admit(words, count, &sets);
    free(sets.room);
    free(words);
    return status;
}

int cmd_readmit(int argc, char **argv)
{
    return parse_arguments(argc, argv, false);
}

int cmd_retire(int argc, char **argv)
{
    return parse_arguments(argc, argv, true);
}
