/* hfsad path: trains the same run for a grid of lambdas, chooses one, and shows the coefficients. */
#include "base/alloc.h"
#include "base/batch.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli.h"
#include "lab/path_picture.h"
#include "lab/plot.h"
#include "progress.h"
#include "record.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAMBDAS_MOST = HFSAD_PATH_LAMBDAS_MOST, LAMBDAS_USUAL = HFSAD_PATH_LAMBDAS };
static const double SHARE_LEAST = 1e-9, SHARE_MOST = 0.999;

typedef struct {
    const char *spec_path, *out, *lambdas, *heldout;
    double ratio;
    int prior, rule; /* rule: -1 if it was not given */
    int64_t threads;
    int64_t folds;
    int folds_of;
    bool force, no_plot, quiet;
    record_options record;
    cli_texts sets;
} path_arguments;

static const char *const PRIORS[] = {"cloud", "edge", NULL};
static const char *const RULES[] = {"heldout", "bic", "aic", "one-se", "cv", NULL};
static const char *const FOLDS_OF[] = {"rows", "clients", NULL};
static const char *const FILES[] = {"path.csv", "path.png", "path.svg"};

/* Everything from set-up to clean-up; all members 0: not made yet. */
typedef struct {
    path_arguments args;
    hfsad_spec *spec;
    hfsad_path *path;
    record record; /* entry in the history */
    double begun;  /* on clock_seconds */
    size_t count;
    double *lambdas; /* of a list */
    char *best;      /* DIR/best */
    int lock;
    progress progress;
} session;

static const char AFTER[] =
    "The lambdas decrease by a constant ratio from the smallest lambda that makes the\n"
    "cloud's model zero; each run starts from the end of the previous one. Held-out loss is\n"
    "the mean over the rows with the cloud's model, and with the client's own intercept if it\n"
    "has one. Let L be the loss of all n rows and d the number of non-zero coefficients. Then\n"
    "bic = D + d log n and aic = D + 2d. D is n log(2L/n) for squared and expectile, 2n\n"
    "log(L/n) for the quantile losses, absolute and phase-retrieval, 2L for the others.\n\n"
    "Convex problems with one model are trained by star, which proves each point: columns\n"
    "converged and gap_bound of path.csv, nan if nothing is known.\n\n"
    "The command writes path.csv (one row per lambda, with the cloud's coefficients), path.png\n"
    "and path.svg to DIR, and the output of the chosen run to DIR/best, as `hfsad run` does.\n"
    "All files are written at the end; Ctrl-C before that leaves DIR unchanged.\n\n"
    "Exit status: 0 done, 1 the run failed, 2 the spec, data or arguments are wrong or\n"
    "gnuplot is missing, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.";

static int parse_arguments(path_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"lambdas", CLI_TEXT, &a->lambdas, 0, 0, NULL, "N|LIST", "number of lambdas (30), or a list: 1,0.5,0.1"},
        {"ratio", CLI_REAL, &a->ratio, 1e-12, 0.999, NULL, "R", "last lambda divided by the first (1e-3)"},
        {"on", CLI_CHOICE, &a->prior, 0, 0, PRIORS, "TIER", "prior to vary: cloud (the default) or edge"},
        {"select", CLI_CHOICE, &a->rule, 0, 0, RULES, "RULE",
         "choose by one-se (the default with --folds), cv, heldout\n(the default with --heldout), bic (the default "
         "without)\n"
         "or aic"},
        {"folds", CLI_WHOLE, &a->folds, 2, 1000, NULL, "K",
         "cross-validation with K folds, drawn with run.seed; one-se\nchooses the largest lambda whose loss is at most "
         "one\n"
         "standard error above the least, cv the least"},
        {"folds-of", CLI_CHOICE, &a->folds_of, 0, 0, FOLDS_OF, "WHAT",
         "folds of every client's rows (the default) or of whole\nclients: how well the model fits new clients"},
        {"heldout", CLI_TEXT, &a->heldout, 0, 0, NULL, "FILE|SHARE",
         "held-out rows: a data file, or a share such as 0.2 of\n"
         "every client's rows, drawn with run.seed"},
        {"set", CLI_TEXTS, &a->sets, 0, 0, NULL, "KEY=VALUE", "override a setting of the spec; may be repeated"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "output folder (path-out)"},
        {"threads", CLI_WHOLE, &a->threads, 0, 1024, NULL, "N",
         "number of threads; 0, the default: one per core.\n"
         "The results do not depend on it"},
        {"force", CLI_FLAG, &a->force, 0, 0, NULL, NULL, "replace results of another spec in DIR"},
        {"no-plot", CLI_FLAG, &a->no_plot, 0, 0, NULL, NULL, "no plot; gnuplot is then not needed"},
        RECORD_OPTIONS(&a->record),
        DASH_OPTIONS(&a->record),
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress, no table"},
    };
    const cli_syntax syntax = {
        .usage = "path SPEC.yaml [--lambdas N|LIST] [--ratio R] [--on cloud|edge]\n"
                 "           [--folds K] [--folds-of rows|clients] [--select RULE] [--heldout FILE|SHARE] [--set "
                 "KEY=VALUE]...\n"
                 "           [--out DIR] [--threads N] [--force] [--no-plot] [--quiet]",
        .about = "Trains the spec for a decreasing sequence of lambdas of a prior and chooses one.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1,
        .words = "a spec file",
        .after = AFTER,
    };
    const int status = cli_parse(&syntax, argc, argv, &a->spec_path);
    if (status != CLI_GO)
        return status;
    double share;
    if (a->heldout && cli_read_real(a->heldout, -INFINITY, INFINITY, &share) &&
        !(share >= SHARE_LEAST && share <= SHARE_MOST) && access(a->heldout, F_OK) != 0)
        return cli_wrong(argv[0], "--heldout must be a file or a share above 0 and below 1, such as 0.2, not '%s'",
                         a->heldout);
    if (a->rule == HFSAD_SELECT_HELDOUT && !a->heldout)
        return cli_wrong(argv[0], "--select heldout needs --heldout FILE or a share such as --heldout 0.2");
    if ((a->rule == HFSAD_SELECT_ONE_SE || a->rule == HFSAD_SELECT_CV) && !a->folds)
        return cli_wrong(argv[0], "--select %s needs --folds, such as --folds 10", RULES[a->rule]);
    if (a->rule < 0 && a->folds)
        a->rule = HFSAD_SELECT_ONE_SE;
    if (a->rule < 0)
        a->rule = a->heldout ? HFSAD_SELECT_HELDOUT : HFSAD_SELECT_BIC;
    return CLI_GO;
}

static int falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Parses "1,0.5,0.1", from large to small; the caller counts commas to allocate room. */
static bool read_list(session *s, char *text)
{
    s->count = 0;
    for (char *next = text; next;) {
        char *comma = strchr(next, ',');
        if (comma)
            *comma++ = 0;
        if (!cli_read_real(next, 1e-90, 1e90, &s->lambdas[s->count++]))
            return false;
        next = comma;
    }
    qsort(s->lambdas, s->count, sizeof *s->lambdas, falling);
    for (size_t i = 1; i < s->count; i++)
        if (s->lambdas[i] == s->lambdas[i - 1])
            return false;
    return true;
}

static bool is_list(const session *s)
{
    return s->args.lambdas && strchr(s->args.lambdas, ',');
}

/* Takes either the list or the number of lambdas. */
static int read_lambdas(session *s, const char *command)
{
    const char *text = s->args.lambdas;
    char shown[CLI_SHOWN_SIZE];
    int64_t count = LAMBDAS_USUAL;
    bool good = true;
    for (const char *p = text; is_list(s) && (p = strchr(p, ',')); p++)
        count = p == strchr(text, ',') ? 2 : count + 1;
    if (text && !is_list(s))
        good = cli_read_whole(text, 2, LAMBDAS_MOST, &count);
    good = good && count <= LAMBDAS_MOST;
    s->count = (size_t)count;
    s->lambdas = good ? alloc_zero(s->count, sizeof *s->lambdas) : NULL;
    if (good && is_list(s)) {
        char *copy = strdup(text);
        good = s->lambdas && copy && read_list(s, copy);
        free(copy);
    }
    if (good)
        return CLI_GO;
    return cli_wrong(command,
                     "--lambdas must be a number from 2 to %d or a comma-separated list of different numbers from "
                     "1e-90 to 1e90, not '%s'",
                     LAMBDAS_MOST, cli_shown(shown, text));
}

static hfsad_status make_path(session *s, hfsad_error *err)
{
    hfsad_path_settings settings = {
        .size = sizeof settings,
        .lambdas = is_list(s) ? s->lambdas : NULL,
        .n_lambdas = s->count,
        .ratio = s->args.ratio,
        .edges = s->args.prior == 1,
        .select = (hfsad_select)s->args.rule,
        .threads = (unsigned)s->args.threads,
        .folds = (size_t)s->args.folds,
        .fold_clients = s->args.folds_of == 1,
        .folder = s->args.out,
        .spec_path = s->args.spec_path,
    };
    if (s->args.heldout && !cli_read_real(s->args.heldout, SHARE_LEAST, SHARE_MOST, &settings.heldout_share))
        settings.heldout_file = s->args.heldout;
    return hfsad_path_create(&s->path, s->spec, NULL, &settings, err);
}

/* Finds every error in the user's input before anything is written. */
static int set_up_path(session *s, const char *command)
{
    hfsad_error err = {0};
    int status = read_lambdas(s, command);
    if (status != CLI_GO)
        return status;
    const size_t size = strlen(s->args.out) + sizeof "/best";
    s->best = malloc(size);
    if (!s->best) {
        fputs("hfsad: not enough memory\n", stderr);
        return CLI_FAILED;
    }
    snprintf(s->best, size, "%s/best", s->args.out);
    if (hfsad_spec_load(&s->spec, s->args.spec_path, &err))
        return cli_fail(&err);
    status = cli_apply_sets(s->spec, &s->args.sets, command);
    if (status != CLI_GO)
        return status;
    if (hfsad_spec_check(s->spec, &err) || folder_check(s->best, &err) ||
        (!s->args.force && run_check_owner(s->best, s->args.spec_path, &err)) ||
        (!s->args.no_plot && plot_check("give --no-plot", &err)) || make_path(s, &err))
        return cli_fail(&err);
    return CLI_GO;
}

static bool proceed(void *context)
{
    (void)context;
    if (cli_interrupted())
        cli_interrupts_heed();
    return cli_interrupted() == 0;
}

static bool draw_point(void *context, size_t done, const hfsad_path_point *point)
{
    session *s = context;
    char detail[100];
    snprintf(detail, sizeof detail, "lambda %.3g  non-zero %zu", point->lambda, point->nonzero);
    progress_draw(&s->progress, done, detail);
    recorder_event(s->record.r, HISTORY_INFO, "", detail);
    /* in the history, a path has a row for each lambda */
    const hfsad_figures row = {.iteration = done,
                               .objective = point->objective,
                               .consensus_objective = point->consensus_objective,
                               .primal_residual = NAN,
                               .dual_residual = NAN,
                               .consensus_gap = NAN,
                               .smoothing_gap = NAN,
                               .relative_error = point->relative_error,
                               .seconds = clock_seconds() - s->begun,
                               .gap_bound = point->gap_bound};
    record_row(&s->record, &row, NULL, 0);
    return true;
}

static hfsad_status solve_path(session *s, hfsad_error *err)
{
    progress_start(&s->progress, "lambda", 0, s->count, s->args.quiet);
    const hfsad_status status = hfsad_path_train(s->path, draw_point, proceed, s, err);
    progress_end(&s->progress);
    return status;
}

static hfsad_status add_plot(const session *s, file_batch *b, hfsad_error *err)
{
    whole_file *png = file_batch_add(b, FILES[1], err), *svg = png ? file_batch_add(b, FILES[2], err) : NULL;
    return svg ? path_picture_draw(s->path, png, svg, err) : err->status;
}

static hfsad_status write_path_files(session *s, hfsad_error *err)
{
    file_batch b = {0};
    hfsad_status status = file_batch_begin(&b, s->args.out, err);
    if (!status)
        status = folder_lock(s->args.out, &s->lock, err);
    whole_file *table = status ? NULL : file_batch_add(&b, FILES[0], err);
    if (!status && !table)
        status = err->status;
    if (table) {
        char *text = hfsad_path_table(s->path);
        whole_file_put(table, text ? text : "", text ? strlen(text) : 0);
        status = !text ? error_memory(err, 0, "path.csv") : s->args.no_plot ? HFSAD_OK : add_plot(s, &b, err);
        free(text);
    }
    if (!status)
        status = hfsad_path_write(s->path, s->best, err);
    if (!status)
        status = file_batch_commit(&b, err);
    file_batch_drop(&b);
    return status;
}

/* The number of proven points, or why none can be proven. */
static void print_verdict(const session *s)
{
    size_t proven = 0, known = 0;
    double worst = 0;
    for (size_t i = 0; i < s->count; i++) {
        hfsad_path_point p = {.size = sizeof p};
        hfsad_path_at(s->path, i, &p);
        proven += p.verdict == HFSAD_VERDICT_CONVERGED;
        known += p.verdict != HFSAD_VERDICT_UNKNOWN;
        worst = fmax(worst, p.gap_bound / p.objective);
    }
    if (!known)
        printf("verdict: %s\n", hfsad_path_verdict(s->path)->text);
    else if (proven == s->count)
        printf("verdict: converged: all %zu points are proven, none is more than %.1e of it above its minimum\n",
               s->count, worst);
    else
        printf("verdict: not converged: %zu of %zu points are proven to %g of their minimum; column gap_bound of "
               "path.csv has "
               "the others\n",
               proven, s->count, HFSAD_VERDICT_GAP);
}

static void print_table(const session *s)
{
    hfsad_path_point p = {.size = sizeof p};
    const size_t chosen = hfsad_path_chosen(s->path);
    hfsad_path_at(s->path, 0, &p);
    const bool truth = !isnan(p.relative_error);
    printf("%-10s %8s  %-10s", "lambda", "non-zero", "consensus");
    if (s->args.heldout)
        printf(" %-10s", "held-out");
    if (s->args.folds)
        printf(" %-10s %-9s", "cv", "error");
    printf(" %-10s %-10s%s\n", "bic", "aic", truth ? " error" : "");
    for (size_t i = 0; i < s->count; i++) {
        hfsad_path_at(s->path, i, &p);
        printf("%-10.4g %8zu  %-10.6g", p.lambda, p.nonzero, p.consensus_objective);
        if (s->args.heldout)
            printf(" %-10.5g", p.heldout);
        if (s->args.folds)
            printf(" %-10.5g %-9.2g", p.cv_loss, p.cv_error);
        printf(" %-10.6g %-10.6g", p.bic, p.aic);
        if (truth)
            printf(" %-7.1e", p.relative_error);
        puts(i == chosen ? " chosen" : "");
    }
    print_verdict(s);
    hfsad_path_at(s->path, chosen, &p);
    printf("chosen by %s: lambda %.8g, written to %s\n", RULES[s->args.rule], p.lambda, s->best);
}

static int train_path(session *s)
{
    hfsad_error err = {0};
    cli_catch_interrupts();
    hfsad_status status = solve_path(s, &err);
    if (!status && !cli_interrupted())
        status = write_path_files(s, &err);
    else if (cli_interrupted()) {
        fprintf(stderr, "hfsad: interrupted; nothing was written to %s\n", s->args.out);
        return 128 + cli_interrupted();
    }
    if (status)
        return cli_fail(&err);
    if (!s->args.quiet)
        print_table(s);
    return cli_finish_stdout(CLI_DONE);
}

static int enter_history(session *s)
{
    const recorder_start start = {.kind = "path", .spec_path = s->args.spec_path, .out = s->best, .spec = s->spec};
    s->begun = clock_seconds();
    return record_begin(&s->record, &s->args.record, &start, s->args.quiet);
}

int cmd_path(int argc, char **argv)
{
    session s = {.args = {.out = "path-out", .ratio = 1e-3, .rule = -1}, .lock = -1};
    s.args.sets.room = calloc((size_t)argc + 1, sizeof(char *));
    if (!s.args.sets.room) {
        fputs("hfsad: not enough memory\n", stderr);
        return CLI_FAILED;
    }
    int status = parse_arguments(&s.args, argc, argv);
    if (status == CLI_GO)
        status = set_up_path(&s, argv[0]);
    if (status == CLI_GO)
        status = enter_history(&s);
    if (status == CLI_GO)
        status = train_path(&s);
    record_end(&s.record, status, false);
    hfsad_path_free(s.path);
    hfsad_spec_free(s.spec);
    folder_unlock(s.lock);
    free(s.lambdas);
    free(s.best);
    free(s.args.sets.room);
    return status;
}
