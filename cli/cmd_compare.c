/* hfsad compare: several runs, one table and one plot. */
#include "base/read_file.h"
#include "compare.h"

#include "base/error.h"
#include "lab/plot.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    const char **words;
    const char *out, *algorithms, *accuracies;
    int metric, against;
    int64_t threads;
    bool force, plot, quiet;
    cli_texts sets;
    record_options record;
} compare_arguments;

/* A run to train, or an existing run. */
typedef struct {
    const char *spec_path; /* NULL: the word was a folder, or a run of the history */
    bool recalled;         /* a run of the history that was read */
    char set[40];          /* "algorithm=fedavg"; empty: as in the spec */
} compare_task;

typedef struct {
    compare_arguments args;
    comparison c;
    compare_task *tasks; /* one per run of c */
    size_t room;         /* of tasks and of c.runs */
    bool diverged;       /* a run diverged */
} compare_session;

static const char *const AGAINST[] = {"iterations", "rounds", "bytes", "seconds", NULL};

static const char ABOUT[] = "Runs every SPEC and compares the traces. A SPEC may also be the output folder of a\n"
                            "finished run, or the number of a run of the history (`hfsad runs`), which are only\n"
                            "read. Objectives are comparable only if data, loss and\n"
                            "priors are the same.";

static const char AFTER[] = "Each run has an output folder in DIR, named after the spec and the algorithm. DIR also\n"
                            "gets compare.csv (one row per run and row of its trace), compare.md (the printed table)\n"
                            "and, with --plot, compare.png and compare.svg. In the plot each point is the mean of\n"
                            "the value and its neighbours (1:2:1, of the logarithms), and an objective is shown as\n"
                            "its relative distance to the best objective found.\n\n"
                            "Exit status: 0 done, 1 a run failed or diverged, 2 a spec, data or arguments are\n"
                            "wrong or gnuplot is missing (then nothing was run), 129, 130, 143 interrupted.";

static int parse_arguments(compare_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"algorithms", CLI_TEXT, &a->algorithms, 0, 0, NULL, "LIST",
         "run every spec with each of these: hfsad,fedavg,fedprox;\n"
         "by default the algorithm of the spec"},
        {"set", CLI_TEXTS, &a->sets, 0, 0, NULL, "KEY=VALUE", "override a setting of every spec; may be repeated"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "output folder (compare-out)"},
        {"force", CLI_FLAG, &a->force, 0, 0, NULL, NULL, "replace results of other specs in DIR"},
        {"plot", CLI_FLAG, &a->plot, 0, 0, NULL, NULL, "draw the curves with gnuplot, as PNG and SVG"},
        {"metric", CLI_CHOICE, &a->metric, 0, 0, compare_names + COMPARE_consensus_objective, "COLUMN",
         "column of the trace to compare: consensus_objective\n"
         "(the default), relative_error, objective,\n"
         "consensus_gap, primal_residual, ..."},
        {"against", CLI_CHOICE, &a->against, 0, 0, AGAINST, "WHAT",
         "horizontal axis of the plot: iterations (the default),\n"
         "rounds, bytes or seconds"},
        {"accuracies", CLI_TEXT, &a->accuracies, 0, 0, NULL, "LIST", "accuracies in the table (1e-1,1e-2,1e-3,1e-4)"},
        {"threads", CLI_WHOLE, &a->threads, 0, 1024, NULL, "N", "number of threads; 0, the default: one per core"},
        RECORD_OPTIONS(&a->record),
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress, no table"},
    };
    const cli_syntax syntax = {
        .usage = "compare SPEC... [--algorithms LIST] [--set KEY=VALUE]... [--out DIR]\n"
                 "[--force] [--plot] [--metric COLUMN] [--against WHAT] ...",
        .about = ABOUT,
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = (size_t)argc,
        .words = "a spec file or the folder of a run",
        .after = AFTER,
    };
    return cli_parse(&syntax, argc, argv, a->words);
}

/* The next part of a list "a,b,c" at *at, which advances; false after the last. part: as much as fits. */
static bool next_part(const char **at, char *part, size_t size)
{
    if (!*at)
        return false;
    const size_t length = strcspn(*at, ",");
    snprintf(part, size, "%.*s", (int)(length < size ? length : size), *at);
    *at = (*at)[length] ? *at + length + 1 : NULL;
    return true;
}

static int read_accuracies(compare_session *s, const char *command)
{
    char part[CLI_SHOWN_SIZE];
    for (const char *at = s->args.accuracies; next_part(&at, part, sizeof part);) {
        double value;
        if (s->c.n_accuracies == ACCURACIES_MOST)
            return cli_wrong(command, "--accuracies: at most %d numbers", ACCURACIES_MOST);
        if (!cli_read_real(part, 0, INFINITY, &value))
            return cli_wrong(command, "--accuracies: '%s' is not a number of at least 0, such as 1e-3", part);
        s->c.accuracies[s->c.n_accuracies++] = value;
    }
    return CLI_GO;
}

static int no_memory(void)
{
    fputs("hfsad: not enough memory\n", stderr);
    return CLI_FAILED;
}

static bool name_taken(const compare_session *s, const char *name)
{
    for (size_t i = 0; i < s->c.n_runs; i++)
        if (s->c.runs[i].name && !strcmp(s->c.runs[i].name, name))
            return true;
    return false;
}

/* Adds a run and takes ownership of its name, which gets a number if another run has it. */
static int add_run(compare_session *s, compare_task task, char *name, const char *folder)
{
    const size_t size = (name ? strlen(name) : 0) + 16;
    char *own = malloc(size);
    if (own && name)
        snprintf(own, size, "%s", name);
    for (unsigned i = 2; own && name && name_taken(s, own); i++)
        snprintf(own, size, "%s-%u", name, i);
    char *path = folder ? strdup(folder) : path_join(s->args.out, own ? own : "");
    const bool made = own && name && path;
    free(name);
    if (!made) {
        free(own);
        free(path);
        return no_memory();
    }
    s->tasks[s->c.n_runs] = task;
    s->c.runs[s->c.n_runs++] = (compared_run){.name = own, .folder = path};
    return CLI_GO;
}

/* "some/dir/" gives "dir". NULL: no memory. */
static char *folder_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t first = end;
    while (first > 0 && path[first - 1] != '/')
        first--;
    return strndup(path + first, end - first);
}

/* The settings of a run: those of the command line, then its algorithm. room: memory of the texts, freed by the
 * caller. */
static run_arguments arguments_of(const compare_session *s, size_t i, const char **room)
{
    run_arguments a = {.force = s->args.force,
                       .spec_path = s->tasks[i].spec_path,
                       .out = s->c.runs[i].folder,
                       .threads = s->args.threads,
                       .quiet = s->args.quiet,
                       .no_table = true,
                       .record = s->args.record,
                       .kind = "compare",
                       .sets = {s->args.sets.count, room}};
    if (a.sets.count)
        memcpy(room, s->args.sets.room, a.sets.count * sizeof *room);
    if (s->tasks[i].set[0])
        room[a.sets.count++] = s->tasks[i].set;
    return a;
}

static int add_spec(compare_session *s, const char *path, const char *command)
{
    if (!s->args.algorithms) {
        const run_arguments a = {.spec_path = path, .sets = s->args.sets};
        char algorithm[CLI_SHOWN_SIZE];
        const int status = run_algorithm(&a, command, algorithm, sizeof algorithm);
        if (status != CLI_GO)
            return status;
        return add_run(s, (compare_task){.spec_path = path}, run_folder(path, algorithm), NULL);
    }
    char part[CLI_SHOWN_SIZE];
    for (const char *at = s->args.algorithms; next_part(&at, part, sizeof part);) {
        compare_task task = {.spec_path = path};
        snprintf(task.set, sizeof task.set, "algorithm=%.20s", part);
        const int status = add_run(s, task, run_folder(path, part), NULL);
        if (status != CLI_GO)
            return status;
    }
    return CLI_GO;
}

static int add_recalled(compare_session *s, const char *word)
{
    hfsad_error err = {0};
    history *h;
    const int status = record_open(&h, s->args.record.history, HISTORY_READ);
    if (status != CLI_GO)
        return status;
    s->tasks[s->c.n_runs] = (compare_task){.recalled = true};
    const hfsad_status read = compared_run_recall(&s->c.runs[s->c.n_runs++], h, word, &err);
    history_close(h);
    return read ? cli_fail(&err) : CLI_GO;
}

/* The words of the setting `algorithm`. */
static const char *const *algorithms(void)
{
    static hfsad_setting at = {.size = sizeof at};
    size_t i = 0;
    while (hfsad_settings_at(i, &at) && strcmp(at.key, "algorithm") != 0)
        i++;
    return at.choices;
}

static int check_algorithms(const char *list, const char *command)
{
    char part[CLI_SHOWN_SIZE];
    const char *const *words = algorithms();
    for (const char *at = list; next_part(&at, part, sizeof part);) {
        bool known = false;
        for (size_t i = 0; words[i]; i++)
            known = known || !strcmp(part, words[i]);
        const char *nearest = known ? NULL : cli_nearest(part, words);
        if (!known && nearest)
            return cli_wrong(command, "--algorithms: unknown algorithm '%s'; did you mean %s?", part, nearest);
        if (!known)
            return cli_wrong(command, "--algorithms: unknown algorithm '%s'; known: hfsad, fedavg, fedprox", part);
    }
    return CLI_GO;
}

/* Fills the list of runs from the words. */
static int list_runs(compare_session *s, const char *command)
{
    int status = check_algorithms(s->args.algorithms, command);
    for (size_t i = 0; s->args.words[i] && status == CLI_GO; i++) {
        const char *word = s->args.words[i];
        struct stat info;
        if (stat(word, &info) != 0 && compared_run_is_number(word))
            status = add_recalled(s, word);
        else if (stat(word, &info) == 0 && S_ISDIR(info.st_mode))
            status = add_run(s, (compare_task){0}, folder_name(word), word);
        else
            status = add_spec(s, word, command);
    }
    if (status == CLI_GO && s->args.plot && s->c.n_runs > PLOT_SERIES_MOST)
        return cli_wrong(command, "%zu runs, but a plot can show at most %d; omit --plot or some runs", s->c.n_runs,
                         PLOT_SERIES_MOST);
    return status;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A given folder does not change. */
static hfsad_status check_folders(const compare_session *s, hfsad_error *err)
{
    for (size_t i = 0; i < s->c.n_runs; i++)
        for (size_t k = 0; k < s->c.n_runs; k++)
            if (s->tasks[i].spec_path && !s->tasks[k].spec_path && same_file(s->c.runs[i].folder, s->c.runs[k].folder))
                return error_set(err, HFSAD_ERROR_INPUT, "%s is an input, and %s would write to it; give another --out",
                                 s->c.runs[k].folder, s->tasks[i].spec_path);
    return HFSAD_OK;
}

/* Checks everything before the first run. */
static int check_all(compare_session *s, const char **room, const char *command)
{
    hfsad_error err = {0};
    if (folder_check(s->args.out, &err) || check_folders(s, &err) || (s->args.plot && plot_check("omit --plot", &err)))
        return cli_fail(&err);
    for (size_t i = 0; i < s->c.n_runs; i++) {
        const run_arguments a = arguments_of(s, i, room);
        const int status = a.spec_path ? run_check(&a, command) : CLI_GO;
        if (status != CLI_GO)
            return status;
        if (!a.spec_path && !s->tasks[i].recalled && compared_run_read(&s->c.runs[i], &err))
            return cli_fail(&err);
    }
    return CLI_GO;
}

static int run_all(compare_session *s, const char **room, const char *command)
{
    hfsad_error err = {0};
    for (size_t i = 0; i < s->c.n_runs; i++) {
        const run_arguments a = arguments_of(s, i, room);
        bool diverged = false;
        if (!a.spec_path)
            continue;
        if (!s->args.quiet)
            fprintf(stderr, "%s (%zu of %zu)\n", s->c.runs[i].name, i + 1, s->c.n_runs);
        const int status = run_spec(&a, command, &diverged);
        s->diverged = s->diverged || diverged;
        if (status != CLI_DONE && !diverged)
            return status;
        if (compared_run_read(&s->c.runs[i], &err))
            return cli_fail(&err);
    }
    return CLI_GO;
}

static int write_all(const compare_session *s)
{
    hfsad_error err = {0};
    file_batch files = {0};
    hfsad_status status = file_batch_begin(&files, s->args.out, &err);
    if (!status)
        status = comparison_write(&s->c, &files, s->args.plot, &err);
    const int interrupt = cli_interrupted();
    if (!status && !interrupt)
        status = file_batch_commit(&files, &err);
    file_batch_drop(&files);
    if (interrupt) {
        fputs("hfsad: interrupted; the runs are saved, but compare.csv was not written\n", stderr);
        return 128 + interrupt;
    }
    return status ? cli_fail(&err) : CLI_GO;
}

static int compare_specs(compare_session *s, const char **room, const char *command)
{
    int status = check_all(s, room, command);
    if (status == CLI_GO)
        status = run_all(s, room, command);
    if (status == CLI_GO)
        status = write_all(s);
    if (status != CLI_GO)
        return status;
    if (!s->args.quiet) {
        comparison_print(stdout, &s->c);
        printf("\nwritten to %s: compare.csv, compare.md%s\n", s->args.out,
               s->args.plot ? ", compare.png, compare.svg" : "");
    }
    return cli_finish_stdout(s->diverged ? CLI_FAILED : CLI_DONE);
}

/* Combines every word (at least one) with every algorithm of the list. */
static size_t most_runs(const compare_arguments *a)
{
    size_t words = 1, algorithms = 1;
    while (a->words[words])
        words++;
    for (const char *p = a->algorithms; p && *p; p++)
        algorithms += *p == ',';
    return words * algorithms;
}

static int compare(compare_session *s, int argc, char **argv)
{
    int status = parse_arguments(&s->args, argc, argv);
    if (status != CLI_GO)
        return status;
    s->c.metric = (compare_column)(COMPARE_consensus_objective + s->args.metric);
    s->c.against = (compare_against)s->args.against;
    s->room = most_runs(&s->args);
    s->tasks = calloc(s->room, sizeof *s->tasks);
    s->c.runs = calloc(s->room, sizeof *s->c.runs);
    const char **room = calloc((size_t)argc + 1, sizeof *room);
    if (!s->tasks || !s->c.runs || !room)
        status = no_memory();
    if (status == CLI_GO)
        status = read_accuracies(s, argv[0]);
    if (status == CLI_GO)
        status = list_runs(s, argv[0]);
    if (status == CLI_GO)
        status = compare_specs(s, room, argv[0]);
    free(room);
    return status;
}

int cmd_compare(int argc, char **argv)
{
    compare_session s = {.args = {.out = "compare-out", .accuracies = "1e-1,1e-2,1e-3,1e-4"}};
    s.args.words = calloc((size_t)argc + 1, sizeof *s.args.words);
    s.args.sets.room = calloc((size_t)argc + 1, sizeof *s.args.sets.room);
    const int status = s.args.words && s.args.sets.room ? compare(&s, argc, argv) : no_memory();
    for (size_t i = 0; i < s.c.n_runs; i++)
        compared_run_free(&s.c.runs[i]);
    free(s.c.runs);
    free(s.tasks);
    free(s.args.words);
    free(s.args.sets.room);
    return status;
}
