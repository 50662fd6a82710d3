/* hfsad paper --tune: finds the constants of the sub-gradient method in lab/scenarios.c. */
#include "paper.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>

/* Far from the seeds that reports use. */
static const uint64_t TUNING_SEEDS = 1000000;

/* Ends within this factor of the best count as equal; the faster rule then wins. */
static const double ABOUT = 1.1;

typedef struct {
    double mean, median; /* at the end */
    double height;       /* of the curve: log10 of the mean error, averaged over the iterations */
    size_t lost;
} outcome;

static outcome outcome_of(const paper_result *r, size_t method, double *room)
{
    const checkpoints end = {1, {(uint32_t)(r->points - 1)}};
    const series_summary s = series_summarize(r, method, &end, room);
    outcome o = {s.mean[0], s.median[0], 0, s.lost};
    for (size_t i = 1; i < r->points; i++)
        o.height += log10(spread_of(r->trials, paper_errors(r, method, i), room).mean) / (double)(r->points - 1);
    return o;
}

static const char *const KINDS[STEP_KINDS] = {"geometric", "power", "Polyak", "constant"};

static void print_rule(const step_rule *rule, const outcome *o)
{
    char text[40];
    step_rule_text(rule, text, sizeof text);
    printf("  %-10s %-22s %10.3e %10.3e %8.3f  %zu\n", KINDS[rule->kind], text, o->mean, o->median, o->height, o->lost);
}

/* The fastest rule among those that end about as low as the best of its kind. */
static size_t best_rule(const outcome *outcomes, const paper_method *methods, size_t n, step_kind kind)
{
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (methods[i].rule.kind == kind)
            least = fmin(least, outcomes[i].mean);
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (methods[i].rule.kind == kind && outcomes[i].mean <= ABOUT * least &&
            (best == n || outcomes[i].height < outcomes[best].height))
            best = i;
    return best;
}

static void print_grid(const paper_result *r, const paper_method *methods, double snr_db, double *room)
{
    outcome outcomes[STEP_GRID_MOST];
    printf("snr %+g dB\n  %-10s %-22s %10s %10s %8s  above %g\n", snr_db, "rule", "step", "mean", "median", "height",
           LOST_ABOVE);
    for (size_t i = 0; i < r->methods; i++) {
        outcomes[i] = outcome_of(r, i, room);
        print_rule(&methods[i].rule, &outcomes[i]);
    }
    printf("of each rule, the fastest among those that end within %g of the least mean:\n", ABOUT);
    for (step_kind kind = 0; kind <= STEP_CONSTANT; kind++) {
        const size_t best = best_rule(outcomes, methods, r->methods, kind);
        if (best < r->methods)
            print_rule(&methods[best].rule, &outcomes[best]);
    }
}

int paper_tune(const paper_settings *settings, const double *snrs, size_t n_snrs, bool quiet)
{
    paper_method methods[STEP_GRID_MOST];
    step_rule rules[STEP_GRID_MOST];
    const size_t n = paper_step_grid(rules);
    for (size_t i = 0; i < n; i++)
        methods[i] = (paper_method){.central = true, .rule = rules[i]};
    double *room = calloc(settings->trials, sizeof *room);
    if (!room) {
        fputs("hfsad: not enough memory\n", stderr);
        return CLI_FAILED;
    }
    paper_watch watch = {0};
    hfsad_error err = {0};
    int status = CLI_DONE;
    progress_start(&watch.progress, "trial", 0, n_snrs * settings->trials, quiet);
    const paper_hooks hooks = paper_hooks_of(&watch);
    for (size_t i = 0; i < n_snrs && status == CLI_DONE; i++) {
        paper_settings s = *settings;
        paper_result *r;
        s.data.seed += TUNING_SEEDS;
        s.data.snr_db = snrs[i];
        watch.before = i * s.trials;
        const hfsad_status ran = paper_run(&r, &s, methods, n, &hooks, &err);
        progress_end(&watch.progress);
        if (ran)
            status = cli_fail(&err);
        else if (!r)
            status = paper_interrupted(&watch);
        else
            print_grid(r, methods, snrs[i], room);
        paper_result_free(r);
    }
    free(room);
    return status == CLI_DONE ? cli_finish_stdout(status) : status;
}
