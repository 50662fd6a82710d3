/* hfsad paper: the paper's experiment, its tables and its plots. */
#include "paper.h"

#include "base/batch.h"
#include "base/error.h"
#include "base/format_number.h"
#include "cli.h"
#include "lab/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int scenario; /* 0, 1, 2; 3: all */
    int64_t trials, iterations, seed, threads;
    double snr_db;
    int start, device;
    const char *seed_text, *out;
    bool one_snr, no_plot, tune, quiet;
} paper_arguments;

static const char *const SCENARIOS[] = {"1", "2", "3", "all", NULL};
static const char *const DEVICES[] = {"cpu", "cuda", NULL};
static const char *const STARTS[] = {"spectral", "normal", "zero", NULL};

/* All trial seeds, also those of --tune, are accepted by `generate`. */
static const int64_t SEED_MOST = INT64_C(1) << 52;

static const char ABOUT[] = "Repeats the experiment of the paper: robust phase retrieval over 5 edges with 50\n"
                            "clients each and 25 features. Runs HFSAD with the paper's constants, in scenario 1\n"
                            "also with the tuned preset, and the centralized sub-gradient method. The report\n"
                            "compares each claim of the paper with the measurement.";

static const char AFTER[] = "DIR gets scenario-1.csv ... (iteration, series, mean relative error, median,\n"
                            "quartiles), a PNG and an SVG of each, the same for the opposite snr with its name\n"
                            "added, and report.md. All files are written together at the end; Ctrl-C or a full\n"
                            "disk before that leaves DIR unchanged.\n\n"
                            "Exit status: 0 done, 1 the run failed, 2 the arguments are wrong or gnuplot is\n"
                            "missing, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.";

static int parse_arguments(paper_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"scenario", CLI_CHOICE, &a->scenario, 0, 0, SCENARIOS, "WHICH",
         "1: against the sub-gradient method, 2: K_m,\n3: participation; all (the default)"},
        {"trials", CLI_WHOLE, &a->trials, 1, 1e6, NULL, "N", "data sets to average over (100)"},
        {"iterations", CLI_WHOLE, &a->iterations, 1, 1e6, NULL, "N", "global iterations (300)"},
        {"snr-db", CLI_REAL, &a->snr_db, -300, 300, NULL, "DB", "signal-to-noise ratio (20); its opposite is also run"},
        {"one-snr", CLI_FLAG, &a->one_snr, 0, 0, NULL, NULL, "run only the given snr"},
        {"start", CLI_CHOICE, &a->start, 0, 0, STARTS, "KIND",
         "start vector of all methods except tuned, which has its\n"
         "own: spectral (the default), normal or zero"},
        {"seed", CLI_TEXT, &a->seed_text, 0, 0, NULL, "N", "seed of the first trial (1); later trials count up"},
        {"threads", CLI_WHOLE, &a->threads, 0, 1024, NULL, "N",
         "number of threads; 0, the default: one per core.\n"
         "The files do not depend on it"},
        {"device", CLI_CHOICE, &a->device, 0, 0, DEVICES, "NAME",
         "cpu, the default, or cuda: HFSAD's trials on a GPU, many\n"
         "at once, to the same files; docs/scale.md"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "output folder (paper-out)"},
        {"no-plot", CLI_FLAG, &a->no_plot, 0, 0, NULL, NULL, "no plots; gnuplot is then not needed"},
        {"tune", CLI_FLAG, &a->tune, 0, 0, NULL, NULL,
         "instead of the experiment, try every step rule of the\n"
         "sub-gradient method on seeds from --seed + 1,000,000\n"
         "and print the best; writes no files"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress, no tables on the terminal"},
    };
    const cli_syntax syntax = {
        .usage = "paper [--scenario 1|2|3|all] [--trials N] [--snr-db DB] [--out DIR] ...",
        .about = ABOUT,
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .after = AFTER,
    };
    const int status = cli_parse(&syntax, argc, argv, NULL);
    return status == CLI_GO ? paper_seed(argv[0], a->seed_text, SEED_MOST, &a->seed) : status;
}

int paper_seed(const char *command, const char *text, int64_t most, int64_t *seed)
{
    char shown[CLI_SHOWN_SIZE];
    if (cli_read_whole(text, 0, (double)most, seed) && *seed <= most)
        return CLI_GO;
    return cli_wrong(command, "--seed must be a whole number from 0 to %" PRId64 ", not '%s'", most,
                     cli_shown(shown, text));
}

static void show_trials(void *context, size_t trials)
{
    paper_watch *watch = context;
    watch->done = watch->before + trials;
    progress_draw(&watch->progress, watch->done, "");
}

static bool interrupted(void *context)
{
    (void)context;
    return cli_interrupted() != 0;
}

paper_hooks paper_hooks_of(paper_watch *watch)
{
    return (paper_hooks){watch, show_trials, interrupted};
}

int paper_interrupted(paper_watch *watch)
{
    progress_end(&watch->progress);
    fprintf(stderr, "hfsad: interrupted after %zu of %llu trials; nothing was written\n", watch->done,
            (unsigned long long)watch->progress.total);
    return 128 + cli_interrupted();
}

static paper_book make_book(const paper_arguments *a)
{
    paper_book book = {.n_parts = a->one_snr || a->snr_db == 0 ? 1 : 2};
    book.settings = (paper_settings){.data = phase_retrieval_paper(),
                                     .trials = (size_t)a->trials,
                                     .iterations = (uint32_t)a->iterations,
                                     .start = STARTS[a->start],
                                     .threads = (unsigned)a->threads,
                                     .device = a->device ? DEVICES[a->device] : NULL};
    book.settings.data.seed = (uint64_t)a->seed;
    for (int i = 0; i < PAPER_SCENARIOS; i++)
        book.wanted[i] = a->scenario == i || a->scenario == PAPER_SCENARIOS;
    for (size_t i = 0; i < book.n_parts; i++) {
        book.parts[i].snr_db = i ? -a->snr_db : a->snr_db;
        paper_methods(book.parts[i].methods, book.wanted, book.parts[i].snr_db);
    }
    return book;
}

static int run_parts(paper_book *book, bool quiet)
{
    paper_watch watch = {0};
    hfsad_error err = {0};
    progress_start(&watch.progress, "trial", 0, book->n_parts * book->settings.trials, quiet);
    const paper_hooks hooks = paper_hooks_of(&watch);
    for (size_t i = 0; i < book->n_parts; i++) {
        paper_part *part = &book->parts[i];
        paper_settings settings = book->settings;
        settings.data.snr_db = part->snr_db;
        watch.before = i * settings.trials;
        const hfsad_status status = paper_run(&part->result, &settings, part->methods, PAPER_METHODS, &hooks, &err);
        if (status) {
            progress_end(&watch.progress);
            return cli_fail(&err);
        }
        if (!part->result)
            return paper_interrupted(&watch);
    }
    progress_end(&watch.progress);
    return CLI_GO;
}

/* "scenario-1", "scenario-1-snr-minus-20" */
static void base_name(const paper_book *book, size_t part, size_t scenario, char *name, size_t size)
{
    const double snr = book->parts[part].snr_db;
    if (part == 0)
        snprintf(name, size, "scenario-%zu", scenario + 1);
    else
        snprintf(name, size, "scenario-%zu-snr-%s-%g", scenario + 1, snr < 0 ? "minus" : "plus", fabs(snr));
}

/* The spread after every iteration, one array each, in the form of plot and CSV. */
typedef struct {
    double *mean, *median, *lower, *upper, *room;
} curves;

static void curves_fill(curves *c, const paper_result *r, size_t method)
{
    for (size_t i = 0; i < r->points; i++) {
        const spread s = spread_of(r->trials, paper_errors(r, method, i), c->room);
        c->mean[i] = s.mean;
        c->median[i] = s.median;
        c->lower[i] = s.lower;
        c->upper[i] = s.upper;
    }
}

static void put_rows(whole_file *f, const char *series, const curves *c, size_t points)
{
    for (size_t i = 0; i < points; i++) {
        char line[64 + 4 * NUMBER_SIZE];
        const double figures[] = {c->mean[i], c->median[i], c->lower[i], c->upper[i]};
        size_t n = (size_t)snprintf(line, 64, "%zu,%s", i, series);
        for (size_t k = 0; k < 4; k++) {
            line[n++] = ',';
            n += number_write(line + n, figures[k]);
        }
        line[n++] = '\n';
        whole_file_put(f, line, n);
    }
}

typedef struct {
    size_t n_series;
    curves series[PAPER_SERIES_MOST];
    double *block;
} scenario_curves;

static hfsad_status scenario_curves_create(scenario_curves *c, const paper_part *part, const paper_scenario *s,
                                           hfsad_error *err)
{
    const paper_result *r = part->result;
    const size_t count = 4 * r->points * s->n_series + r->trials;
    c->n_series = s->n_series;
    c->block = calloc(count, sizeof(double));
    if (!c->block) {
        error_memory(err, count * sizeof(double), "the curves of a scenario");
        return HFSAD_ERROR_MEMORY;
    }
    double *at = c->block, *room = at + 4 * r->points * s->n_series;
    for (size_t i = 0; i < s->n_series; i++, at += 4 * r->points) {
        c->series[i] = (curves){at, at + r->points, at + 2 * r->points, at + 3 * r->points, room};
        curves_fill(&c->series[i], r, s->series[i].method);
    }
    return HFSAD_OK;
}

static whole_file *add_file(file_batch *files, const char *name, const char *type, hfsad_error *err)
{
    char file[100];
    snprintf(file, sizeof file, "%s.%s", name, type);
    return file_batch_add(files, file, err);
}

static hfsad_status write_csv(file_batch *files, const char *name, const scenario_curves *c, const paper_scenario *s,
                              size_t points, hfsad_error *err)
{
    static const char header[] = "iteration,series,relative_error,median,lower_quartile,upper_quartile\n";
    whole_file *f = add_file(files, name, "csv", err);
    if (!f)
        return err->status;
    whole_file_put(f, header, strlen(header));
    for (size_t i = 0; i < c->n_series; i++)
        put_rows(f, s->series[i].name, &c->series[i], points);
    return whole_file_close(f, err); /* a full disk must show before the plots are drawn */
}

static hfsad_status draw_curves(file_batch *files, const char *name, const scenario_curves *c, const paper_scenario *s,
                                size_t points, hfsad_error *err)
{
    plot_series series[PAPER_SERIES_MOST];
    for (size_t i = 0; i < c->n_series; i++)
        series[i] = (plot_series){s->series[i].label, c->series[i].mean, c->series[i].median, c->series[i].lower,
                                  c->series[i].upper};
    const plot p = {.x_label = "global iteration",
                    .y_label = "relative error (dashed: median)",
                    .points = points,
                    .n_series = c->n_series,
                    .series = series};
    const whole_file *png = add_file(files, name, "png", err);
    const whole_file *svg = png ? add_file(files, name, "svg", err) : NULL;
    return svg ? plot_draw(&p, png, svg, err) : err->status;
}

static hfsad_status write_scenario(const paper_book *book, size_t part, size_t scenario, file_batch *files, bool plots,
                                   hfsad_error *err)
{
    const paper_scenario *s = &paper_scenarios[scenario];
    const size_t points = book->parts[part].result->points;
    scenario_curves c = {0};
    char name[80];
    base_name(book, part, scenario, name, sizeof name);
    hfsad_status status = scenario_curves_create(&c, &book->parts[part], s, err);
    if (!status)
        status = write_csv(files, name, &c, s, points, err);
    if (!status && plots)
        status = draw_curves(files, name, &c, s, points, err);
    free(c.block);
    return status;
}

/* The same text goes to the terminal and to the folder. */
typedef struct {
    char *text;
    size_t size;
} report;

static hfsad_status make_report(report *r, const paper_book *book, hfsad_error *err)
{
    double *room = calloc(book->settings.trials, sizeof *room);
    FILE *memory = room ? open_memstream(&r->text, &r->size) : NULL;
    if (memory)
        paper_report(memory, book, room);
    const bool made = memory && fclose(memory) == 0;
    free(room);
    return made ? HFSAD_OK : error_memory(err, book->settings.trials * sizeof *room, "the report");
}

/* Writes all files under temporary names, the plots last, because they take longest. Ends early if interrupted. */
static hfsad_status write_files(const paper_book *book, const report *r, file_batch *files, bool plots,
                                hfsad_error *err)
{
    whole_file *f = file_batch_add(files, "report.md", err);
    if (!f)
        return err->status;
    whole_file_put(f, r->text, r->size);
    hfsad_status status = whole_file_close(f, err);
    for (size_t part = 0; part < book->n_parts; part++)
        for (size_t i = 0; i < PAPER_SCENARIOS && !status && !cli_interrupted(); i++)
            if (book->wanted[i])
                status = write_scenario(book, part, i, files, plots, err);
    return status;
}

/* Replaces all files or none. */
static int replace_files(const paper_book *book, const report *r, const char *folder, bool plots)
{
    hfsad_error err = {0};
    file_batch files = {0};
    hfsad_status status = file_batch_begin(&files, folder, &err);
    if (!status)
        status = write_files(book, r, &files, plots, &err);
    const int interrupt = cli_interrupted();
    if (!status && !interrupt)
        status = file_batch_commit(&files, &err);
    file_batch_drop(&files);
    if (interrupt) {
        fputs("hfsad: interrupted while the files were written; nothing was changed\n", stderr);
        return 128 + interrupt;
    }
    return status ? cli_fail(&err) : CLI_GO;
}

static void print_files(const paper_book *book, const char *folder, bool plots)
{
    printf("\nwrote %s: report.md", folder);
    for (size_t part = 0; part < book->n_parts; part++)
        for (size_t i = 0; i < PAPER_SCENARIOS; i++) {
            char name[80];
            base_name(book, part, i, name, sizeof name);
            if (book->wanted[i])
                printf(",\n  %s%s", name, plots ? ".csv .png .svg" : ".csv");
        }
    putchar('\n');
}

static int repeat_paper(const paper_arguments *a, paper_book *book)
{
    hfsad_error err = {0};
    report r = {0};
    int status = run_parts(book, a->quiet);
    if (status == CLI_GO && make_report(&r, book, &err))
        status = cli_fail(&err);
    if (status == CLI_GO)
        status = replace_files(book, &r, a->out, !a->no_plot);
    if (status == CLI_GO && !a->quiet) {
        fwrite(r.text, 1, r.size, stdout);
        print_files(book, a->out, !a->no_plot);
    }
    free(r.text);
    return status == CLI_GO ? cli_finish_stdout(CLI_DONE) : status;
}

int cmd_paper(int argc, char **argv)
{
    paper_arguments a = {.scenario = PAPER_SCENARIOS,
                         .trials = 100,
                         .iterations = 300,
                         .seed_text = "1",
                         .snr_db = phase_retrieval_paper().snr_db,
                         .out = "paper-out"};
    hfsad_error err = {0};
    int status = parse_arguments(&a, argc, argv);
    if (status != CLI_GO)
        return status;
    paper_book book = make_book(&a);
    cli_catch_interrupts();
    if (a.tune) {
        const double snrs[] = {a.snr_db, -a.snr_db};
        return paper_tune(&book.settings, snrs, book.n_parts, a.quiet);
    }
    if (folder_check(a.out, &err) || (!a.no_plot && plot_check("give --no-plot", &err)))
        return cli_fail(&err);
    status = repeat_paper(&a, &book);
    for (size_t i = 0; i < book.n_parts; i++)
        paper_result_free(book.parts[i].result);
    return status;
}
