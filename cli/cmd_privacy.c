/* hfsad privacy: simulates what accuracy a budget allows, before the real training. */
#include "cmd_member.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 16 };

typedef struct {
    const char *path;
    cli_texts sets;
    int64_t trials, threads;
} session;

/* Means over the trials of one number of iterations. */
typedef struct {
    int64_t iterations, rounds;
    double deviation, objective, error; /* error: relative to the truth; NAN: unknown */
} outcome;

static bool is_uninterrupted(void *context, const hfsad_progress *progress)
{
    (void)context, (void)progress;
    return !cli_interrupted();
}

/* The spec of the command line with further settings, "key", "value", …, NULL. */
static int load(const session *s, const char *const *settings, hfsad_spec **spec)
{
    hfsad_error err = {0};
    int status = member_load(spec, s->path, &s->sets, "privacy");
    for (; status == CLI_GO && settings && *settings; settings += 2)
        if (hfsad_spec_set(*spec, settings[0], settings[1], &err))
            status = cli_fail(&err);
    return status;
}

static int train(const session *s, const hfsad_spec *spec, hfsad_result **result)
{
    hfsad_error err = {0};
    hfsad_run *run = NULL;
    hfsad_status status = hfsad_run_create(&run, spec, (unsigned)s->threads, &err);
    if (!status)
        status = hfsad_run_train(run, is_uninterrupted, NULL, result, &err);
    hfsad_run_free(run);
    return cli_interrupted() ? 128 + cli_interrupted() : status ? cli_fail(&err) : CLI_GO;
}

static const char *const without[] = {"privacy.epsilon", "none", "privacy.rho", "none", "privacy.clip", "none",
                                      "privacy.record",  "none", NULL};

/* The objective of the cloud's model of a result, computed from the rows. */
static int judge_result(const hfsad_spec *plain, const hfsad_result *result, double *objective)
{
    hfsad_error err = {0};
    hfsad_run *run = NULL;
    const hfsad_figures *figures = NULL;
    hfsad_status status = hfsad_run_create(&run, plain, 1, &err);
    if (!status)
        status = hfsad_run_warm_start(run, result, &err);
    if (!status)
        status = hfsad_run_measure(run, &figures, &err);
    if (!status)
        *objective = figures->consensus_objective;
    hfsad_run_free(run);
    return status ? cli_fail(&err) : CLI_GO;
}

static double last_of(const hfsad_result *result, const char *column)
{
    const double *numbers = hfsad_result_trace(result, column);
    return numbers ? numbers[hfsad_result_trace_rows(result) - 1] : NAN;
}

/* The number of rounds that the budget was divided over; with absences fewer than all. It follows from a row before the
 * end that has not spent the whole budget. */
static int64_t rounds_of(const hfsad_result *result, int64_t iterations, int64_t edge_rounds)
{
    const double *rho = hfsad_result_trace(result, "rho"), *at = hfsad_result_trace(result, "iteration");
    const size_t rows = hfsad_result_trace_rows(result);
    double rounds = (double)(iterations * edge_rounds);
    for (size_t i = 0; rho && at && i < rows; i++)
        if (rho[i] > 0 && rho[i] < rho[rows - 1])
            rounds = at[i] * (double)edge_rounds * (rho[rows - 1] / rho[i]);
    return llround(rounds);
}

static int try_once(const session *s, const hfsad_spec *plain, int64_t trial, outcome *o, bool first)
{
    hfsad_error err = {0};
    hfsad_spec *spec = NULL;
    hfsad_result *result = NULL;
    int64_t seed = 0, edge_rounds = 0;
    double objective = 0, clip = 0, record = NAN;
    char mode[20] = "";
    int status = load(s, NULL, &spec);
    if (status == CLI_GO && (hfsad_spec_get_whole(spec, "run.seed", &seed, &err) ||
                             hfsad_spec_set_whole(spec, "run.seed", seed + trial, &err) ||
                             hfsad_spec_set_whole(spec, "run.iterations", o->iterations, &err) ||
                             hfsad_spec_get_real(spec, "privacy.clip", &clip, &err) ||
                             hfsad_spec_get_real(spec, "privacy.record", &record, &err) ||
                             hfsad_spec_get(spec, "federation.mode", mode, sizeof mode, NULL, &err)))
        status = cli_fail(&err);
    if (status == CLI_GO)
        status = train(s, spec, &result);
    if (status == CLI_GO)
        status = judge_result(plain, result, &objective);
    if (status == CLI_GO && hfsad_spec_get_whole(hfsad_result_settings(result), "run.edge_rounds", &edge_rounds, &err))
        status = cli_fail(&err);
    if (status == CLI_GO) {
        const double rho = last_of(result, "rho");
        o->rounds = strcmp(mode, "async") == 0 ? o->iterations * edge_rounds /* all rounds count */
                                               : rounds_of(result, o->iterations, edge_rounds);
        o->deviation = isnan(record) ? clip * sqrt(2 * (double)o->rounds / rho) : NAN; /* differs between rounds */
        o->objective += objective / (double)s->trials;
        o->error += last_of(result, "relative_error") / (double)s->trials;
        if (first)
            printf("budget         rho %.4g, epsilon %.4g for each %s\n", rho, last_of(result, "epsilon"),
                   isnan(record) ? "client" : "row");
    }
    hfsad_result_free(result);
    hfsad_spec_free(spec);
    return status;
}

static void print_row(const outcome *o, double least)
{
    char error[24] = "", deviation[24] = "-";
    if (!isnan(o->deviation))
        snprintf(deviation, sizeof deviation, "%.3g", o->deviation);
    if (!isnan(o->error))
        snprintf(error, sizeof error, "  %10.3g", o->error);
    printf("%10lld  %6lld  %9s  %12.6g  %8.3g%%%s\n", (long long)o->iterations, (long long)o->rounds, deviation,
           o->objective, 100 * (o->objective / least - 1), error);
    fflush(stdout);
}

/* 1, 3, 10, 30, … and the spec's number. */
static size_t choose_rows(int64_t most, outcome *rows)
{
    size_t count = 0;
    for (int64_t n = 1; n < most && count < MOST_ROWS - 1; n = count % 2 ? 3 * n : n / 3 * 10)
        rows[count++] = (outcome){.iterations = n};
    rows[count++] = (outcome){.iterations = most};
    return count;
}

static int simulate(const session *s, const hfsad_spec *plain, double least, int64_t most)
{
    outcome rows[MOST_ROWS];
    const size_t count = choose_rows(most, rows);
    size_t best = 0;
    int status = CLI_GO;
    for (size_t i = 0; i < count && status == CLI_GO; i++) {
        for (int64_t t = 0; t < s->trials && status == CLI_GO; t++) {
            status = try_once(s, plain, t, &rows[i], i == 0 && t == 0);
            if (status == CLI_GO && i == 0 && t == 0)
                printf("without noise  objective %.6g\n\niterations  rounds  deviation     objective      above%s\n",
                       least, isnan(rows[0].error) ? "" : "       error");
        }
        if (status == CLI_GO)
            print_row(&rows[i], least);
        best = status == CLI_GO && rows[i].objective < rows[best].objective ? i : best;
    }
    if (status == CLI_GO)
        printf("\nthe budget goes furthest with run.iterations %lld, of those tried\n",
               (long long)rows[best].iterations);
    return status;
}

static int report_privacy(const session *s)
{
    hfsad_error err = {0};
    hfsad_spec *plain = NULL, *spec = NULL;
    hfsad_result *result = NULL;
    int64_t most = 0;
    double least = NAN, clip = NAN;
    int status = load(s, NULL, &spec);
    if (status == CLI_GO && (hfsad_spec_get_real(spec, "privacy.clip", &clip, &err) ||
                             hfsad_spec_get_whole(spec, "run.iterations", &most, &err)))
        status = cli_fail(&err);
    if (status == CLI_GO && isnan(clip))
        status = cli_wrong("privacy", "the spec has no privacy.clip and no budget (privacy.epsilon or privacy.rho)");
    if (status == CLI_GO)
        status = load(s, without, &plain);
    if (status == CLI_GO)
        status = train(s, plain, &result);
    if (status == CLI_GO)
        status = judge_result(plain, result, &least);
    if (status == CLI_GO)
        status = simulate(s, plain, least, most);
    hfsad_result_free(result);
    hfsad_spec_free(plain);
    hfsad_spec_free(spec);
    return status == CLI_GO ? cli_finish_stdout(CLI_DONE) : status;
}

int cmd_privacy(int argc, char **argv)
{
    session s = {.sets = {.room = calloc((size_t)argc + 1, sizeof(char *))}, .trials = 3};
    const cli_option options[] = {
        {"set", CLI_TEXTS, &s.sets, 0, 0, NULL, "KEY=VALUE", "a setting"},
        {"trials", CLI_WHOLE, &s.trials, 1, 1000, NULL, "N",
         "runs of each row, with seeds run.seed, run.seed + 1, ... (3)"},
        {"threads", CLI_WHOLE, &s.threads, 0, 1024, NULL, "N", "threads; 0: one per core (0)"},
    };
    const cli_syntax syntax = {
        .usage = "privacy SPEC.yaml [--set KEY=VALUE]... [--trials N] [--threads N]",
        .about = "Prints what the budget of a spec (privacy.epsilon or privacy.rho) buys: the noise, and the\n"
                 "objective after training with this noise, for several numbers of iterations. It trains on\n"
                 "the rows of the spec with simulated noise, and measures the cloud's model without noise.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1,
        .words = "a spec file",
        .after = "deviation is that of the noise on every number of a client's model in a round, or with\n"
                 "secure aggregation of a cohort's sum of models. above is the objective relative to that\n"
                 "of training without noise. What is printed has no noise: it says something about the\n"
                 "rows, so plan with rows that may be known, such as generated ones.\n\n"
                 "Exit status: 0 done, 1 a run failed, 2 the spec, data or arguments are wrong.",
    };
    int status = CLI_FAILED;
    if (s.sets.room)
        status = cli_parse(&syntax, argc, argv, &s.path);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (status == CLI_GO) {
        cli_catch_interrupts();
        status = report_privacy(&s);
    }
    free(s.sets.room);
    return status;
}
