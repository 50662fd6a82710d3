/*
 * How many iterations, rounds, bytes and seconds each method needs: HFSAD with `preset: paper` and `preset: tuned`, the
 * centralized sub-gradient method with every step rule of the paper's grid, and hierarchical FedAvg.
 *
 *     convergence [--quick] [--only TEXT] [--trials N] [--tuning N] [--seed S] [--whole-grid] [--threads N]
 *                 [--tuned-only] [--set KEY=VALUE]
 *
 * --only: the problems whose label contains the text. Of each the sub-gradient method's rules are chosen on the seeds
 * 40001, …; everything is reported on S, S + 1, … (20001). --whole-grid: all rules are run in the report too, so that
 * ours is held against the best of them at each horizon with hindsight. --quick: tiny problems, to see that it runs.
 * --tuned-only: of all methods `preset: tuned` alone, in minutes. --set: a setting of the tuned preset's runs, or
 * several as a mapping, to see what it changes.
 *
 * Prints `name value unit` per line, then a table, problem by problem. The seconds depend on the machine; nothing else
 * does, nor on the number of threads.
 */
#include "convergence/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bool quick, whole_grid, tuned_only;
    const char *only, *set;
    size_t trials, tuning;
    uint64_t seed;
    unsigned threads;
} options;

enum { TUNING_SEED = 40001, HFSAD_METHODS = 12, METHODS_MOST = HFSAD_METHODS + STARTS_MOST * STEP_GRID_MOST };

/* HFSAD with p_c = 0.3 and one round is watched for 1/p_c times as long as with p_c = 1. */
static size_t federated_methods(method *m, bool quantile, const options *o)
{
    size_t n = 0;
    for (method_kind kind = o->tuned_only ? BY_TUNED : BY_PAPER; kind <= (o->tuned_only ? BY_TUNED : BY_FEDAVG); kind++)
        for (int rounds = 1; rounds <= 10; rounds += 9)
            for (int part = 0; part < 2; part++) {
                const bool tuned = kind == BY_TUNED;
                const uint32_t usual = tuned && (rounds == 1 || quantile) ? 400 : LAST_HORIZON;
                m[n++] = (method){.kind = kind,
                                  .edge_rounds = (uint32_t)rounds,
                                  .participation = part ? 0.3 : 1,
                                  .set = tuned ? o->set : NULL,
                                  .iterations = tuned && part && rounds == 1 ? 1400 : usual};
            }
    return n;
}

static size_t central_methods(method *m, const problem *p)
{
    step_rule rules[STEP_GRID_MOST];
    const char *names[STARTS_MOST];
    const size_t n = paper_step_grid(rules), starts = problem_starts(p, names);
    for (size_t s = 0; s < starts; s++)
        for (size_t i = 0; i < n; i++)
            m[s * n + i] = (method){.kind = BY_SUBGRADIENT,
                                    .iterations = LAST_HORIZON,
                                    .edge_rounds = 1,
                                    .participation = 1,
                                    .start = s,
                                    .rule = rules[i]};
    return starts * n;
}

static void measure(const problem *p, const options *o)
{
    method *central = bench_take(METHODS_MOST, sizeof *central), *all = bench_take(METHODS_MOST, sizeof *all);
    campaign c;
    const size_t n_central = o->tuned_only ? 0 : central_methods(central, p);
    if (n_central > 0) {
        campaign_run(&c, p, TUNING_SEED, o->tuning, central, n_central, o->threads);
        roles_choose(&c, central);
        campaign_free(&c);
    }
    size_t n = federated_methods(all, p->quantile, o);
    for (size_t i = 0; i < n_central; i++)
        if (o->whole_grid || central[i].roles)
            all[n++] = central[i];
    campaign_run(&c, p, o->seed, o->trials, all, n, o->threads);
    campaign_report(&c);
    campaign_free(&c);
    free(central);
    free(all);
}

static void problem_name(problem *p)
{
    if (p->quantile)
        snprintf(p->label, sizeof p->label, "quantile_%zux%zux%zu", p->edges, p->clients, p->features);
    else
        snprintf(p->label, sizeof p->label, "phase_%+gdB_%zux%zux%zu", p->snr_db, p->edges, p->clients, p->features);
}

static void consider(problem p, const options *o)
{
    problem_name(&p);
    if (!o->only || strstr(p.label, o->only))
        measure(&p, o);
}

static void measure_all(const options *o)
{
    static const size_t shapes[][3] = {{5, 50, 25}, {2, 100, 25}, {50, 20, 50}, {20, 50, 100}}, features[] = {25, 200};
    static const double snr[] = {20, 0, -20};
    enum { ROWS = 10 };
    if (o->quick) {
        consider((problem){.edges = 3, .clients = 20, .features = 5, .snr_db = 20}, o);
        consider((problem){.quantile = true, .edges = 2, .clients = 4, .features = 5, .rows = ROWS}, o);
        return;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t s = 0; s < sizeof snr / sizeof *snr; s++)
            consider(
                (problem){.edges = shapes[i][0], .clients = shapes[i][1], .features = shapes[i][2], .snr_db = snr[s]},
                o);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        consider((problem){.quantile = true, .edges = 5, .clients = 50, .features = features[i], .rows = ROWS}, o);
}

static unsigned long long number(const char *name, const char *text)
{
    char *end;
    const unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (text && *text >= '0' && *text <= '9' && !*end && value > 0 && value <= 1000000000)
        return value;
    fprintf(stderr, "convergence: %s needs a number from 1 to 1000000000\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    options o = {.trials = 100, .tuning = 25, .seed = 20001};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(name, "--quick")) {
            o.quick = true;
            o.trials = o.tuning = 3;
            continue;
        }
        if (!strcmp(name, "--whole-grid")) {
            o.whole_grid = true;
            continue;
        }
        if (!strcmp(name, "--tuned-only")) {
            o.tuned_only = true;
            continue;
        }
        if (!strcmp(name, "--only") && value)
            o.only = value;
        else if (!strcmp(name, "--set") && value && strchr(value, '='))
            o.set = value;
        else if (!strcmp(name, "--trials"))
            o.trials = number(name, value);
        else if (!strcmp(name, "--tuning"))
            o.tuning = number(name, value);
        else if (!strcmp(name, "--seed"))
            o.seed = number(name, value);
        else if (!strcmp(name, "--threads"))
            o.threads = (unsigned)number(name, value);
        else {
            fprintf(stderr, "usage: convergence [--quick] [--only TEXT] [--trials N] [--tuning N] [--seed S] "
                            "[--whole-grid] [--threads N] [--tuned-only] [--set KEY=VALUE]\n");
            return 2;
        }
        i++;
    }
    measure_all(&o);
    return 0;
}
