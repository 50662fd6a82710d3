/* Figures over the trials; see report.h. */
#include "convergence/report.h"
#include "lab/claims.h"
#include "tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t HORIZON[HORIZONS] = {50, 100, 200, LAST_HORIZON};
static const double LEVEL[LEVELS] = {1e-2, 1e-3, 1e-4, 1e-5};
static const char *const LEVEL_NAME[LEVELS] = {"1e-2", "1e-3", "1e-4", "1e-5"};
static const double WILD = 10; /* so many times as far off at the end as at the start, or as the model 0: diverged */

/* Over the trials whose truth can be found, but for mean_all. An arrival at a level is the first one; its median
 * is INFINITY where half of the trials do not arrive. Bytes and seconds are spread evenly over a run's iterations. */
typedef struct {
    double median[HORIZONS], mean[HORIZONS], mean_all, end_median;
    double iterations[LEVELS], bytes[LEVELS], seconds[LEVELS];
    size_t reached[LEVELS], lost, diverged, repairs;
} figures;

static double value_after(const campaign *c, size_t which, size_t trial, uint32_t iterations)
{
    const uint32_t most = c->method[which].iterations;
    return campaign_outcome(c, which, trial)->value[iterations < most ? iterations : most];
}

static spread values_after(const campaign *c, size_t which, uint32_t iterations, bool unseen_too, double *room)
{
    size_t n = 0;
    for (size_t t = 0; t < c->trials; t++)
        if (unseen_too || !c->unseen[t])
            room[n++] = value_after(c, which, t, iterations);
    return n ? spread_of(n, room, room + c->trials) : (spread){NAN, NAN, NAN, NAN};
}

static double first_arrival(const campaign *c, size_t which, size_t trial, double level)
{
    for (uint32_t i = 0; i <= c->method[which].iterations; i++)
        if (campaign_outcome(c, which, trial)->value[i] <= level)
            return i;
    return INFINITY;
}

static void find_arrivals(const campaign *c, size_t which, size_t l, figures *f, double *room)
{
    double *bytes = room + c->trials, *seconds = bytes + c->trials, *spare = seconds + c->trials;
    size_t n = 0;
    for (size_t t = 0; t < c->trials; t++) {
        if (c->unseen[t])
            continue;
        const outcome *o = campaign_outcome(c, which, t);
        const double at = first_arrival(c, which, t, LEVEL[l]);
        room[n] = at;
        bytes[n] = o->setup_bytes + o->bytes * at / c->method[which].iterations;
        seconds[n++] = o->setup_seconds + o->seconds * at / c->method[which].iterations;
        f->reached[l] += at < INFINITY;
    }
    f->iterations[l] = n ? spread_of(n, room, spare).median : NAN;
    f->bytes[l] = n ? spread_of(n, bytes, spare).median : NAN;
    f->seconds[l] = n ? spread_of(n, seconds, spare).median : NAN;
}

static figures figures_find(const campaign *c, size_t which)
{
    figures f = {0};
    const uint32_t end = c->method[which].iterations;
    double *room = bench_take(5 * c->trials, sizeof *room);
    for (size_t h = 0; h < HORIZONS; h++) {
        const spread s = values_after(c, which, HORIZON[h], false, room);
        f.median[h] = s.median;
        f.mean[h] = s.mean;
    }
    f.mean_all = values_after(c, which, LAST_HORIZON, true, room).mean;
    f.end_median = values_after(c, which, end, false, room).median;
    for (size_t l = 0; l < LEVELS; l++)
        find_arrivals(c, which, l, &f, room);
    for (size_t t = 0; t < c->trials; t++) {
        f.lost += !c->unseen[t] && value_after(c, which, t, LAST_HORIZON) > LOST_ABOVE;
        f.diverged += value_after(c, which, t, end) > WILD * fmax(1, value_after(c, which, t, 0));
        f.repairs += campaign_outcome(c, which, t)->repairs;
    }
    free(room);
    return f;
}

static figures *all_figures(const campaign *c)
{
    figures *f = bench_take(c->methods, sizeof *f);
    for (size_t i = 0; i < c->methods; i++)
        f[i] = figures_find(c, i);
    return f;
}

/* The least of a figure (a field of `figures`, by its offset) among the sub-gradient runs of a start and of a kind;
 * SIZE_MAX: any. The mean breaks ties. */
static size_t least(const campaign *c, const figures *f, size_t offset, size_t start, size_t kind)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < c->methods; i++) {
        const method *m = &c->method[i];
        if (m->kind != BY_SUBGRADIENT || (start != SIZE_MAX && m->start != start) ||
            (kind != SIZE_MAX && m->rule.kind != (step_kind)kind))
            continue;
        if (best == SIZE_MAX) {
            best = i;
            continue;
        }
        const double a = *(const double *)((const char *)&f[i] + offset);
        const double b = *(const double *)((const char *)&f[best] + offset);
        if (a < b || (a == b && f[i].mean[HORIZONS - 1] < f[best].mean[HORIZONS - 1]))
            best = i;
    }
    return best;
}

static size_t median_at(size_t horizon)
{
    return offsetof(figures, median) + horizon * sizeof(double);
}

static size_t mean_at(size_t horizon)
{
    return offsetof(figures, mean) + horizon * sizeof(double);
}

void roles_choose(const campaign *tuning, method *methods)
{
    const char *names[STARTS_MOST];
    const size_t starts = problem_starts(tuning->problem, names);
    figures *f = all_figures(tuning);
    for (size_t s = 0; s < starts; s++) {
        for (size_t kind = 0; kind < STEP_KINDS; kind++)
            methods[least(tuning, f, median_at(HORIZONS - 1), s, kind)].roles |= ROLE_KIND;
        for (size_t h = 0; h < HORIZONS; h++)
            methods[least(tuning, f, median_at(h), s, SIZE_MAX)].roles |= (unsigned)ROLE_AT << h;
        methods[least(tuning, f, mean_at(HORIZONS - 1), s, SIZE_MAX)].roles |= ROLE_MEAN;
    }
    free(f);
}

/* ---- lines and tables ---- */

static void method_name(const campaign *c, size_t i, char *text, size_t size)
{
    static const char *const kinds[] = {"paper", "tuned", "fedavg"};
    const method *m = &c->method[i];
    const char *starts[STARTS_MOST];
    char rule[64];
    if (m->kind != BY_SUBGRADIENT) {
        snprintf(text, size, "%s_km%u_pc%g", kinds[m->kind], m->edge_rounds, m->participation);
        return;
    }
    problem_starts(c->problem, starts);
    step_rule_text(&m->rule, rule, sizeof rule);
    size_t n = 0;
    for (const char *from = rule; *from; from++)
        if (*from != ' ' && *from != '|') /* for who reads by words, and for tables */
            rule[n++] = *from;
    rule[n] = 0;
    snprintf(text, size, "subgradient_%s_%s", starts[m->start], rule);
}

static void say(const campaign *c, const char *name, const char *what, const char *of, double value, const char *unit)
{
    char full[200];
    snprintf(full, sizeof full, "%s.%s.%s%s", c->problem->label, name, what, of);
    printf("%-78s %12.5g  %s\n", full, value, unit);
}

static void print_lines(const campaign *c, size_t i, const figures *f)
{
    const char *unit = c->problem->quantile ? "objective above the optimum, over it" : "relative error";
    char name[80], of[16];
    method_name(c, i, name, sizeof name);
    for (size_t h = 0; h < HORIZONS; h++) {
        snprintf(of, sizeof of, "%u", HORIZON[h]);
        say(c, name, "median_", of, f->median[h], unit);
        say(c, name, "mean_", of, f->mean[h], unit);
    }
    say(c, name, "median_end", "", f->end_median, unit);
    if (!c->problem->quantile) {
        say(c, name, "mean_all_300", "", f->mean_all, "relative error, unseen trials too");
        say(c, name, "lost", "", (double)f->lost, "trials above 0.05 after 300 iterations, unseen ones aside");
    }
    say(c, name, "diverged", "", (double)f->diverged, "trials");
    if (c->method[i].kind != BY_SUBGRADIENT)
        say(c, name, "repairs", "", (double)f->repairs, "of the safeguard, all trials");
    say(c, name, "start_bytes", "", campaign_outcome(c, i, 0)->setup_bytes, "before the first iteration, first trial");
    for (size_t l = 0; l < LEVELS; l++) {
        say(c, name, "reached_", LEVEL_NAME[l], (double)f->reached[l], "trials");
        if (!isfinite(f->iterations[l]))
            continue;
        say(c, name, "iterations_", LEVEL_NAME[l], f->iterations[l], "median of the trials' first arrivals");
        say(c, name, "rounds_", LEVEL_NAME[l], f->iterations[l] * c->method[i].edge_rounds, "client-edge rounds");
        say(c, name, "bytes_", LEVEL_NAME[l], f->bytes[l], "bytes, start included");
        say(c, name, "seconds_", LEVEL_NAME[l], f->seconds[l], "seconds of one core, start included");
    }
}

/* A number of a table's cell, or a dash for what was not reached. */
static void cell(const char *format, double value)
{
    if (isfinite(value))
        printf(format, value);
    else
        printf(" - |");
}

static void print_row(const campaign *c, size_t i, const figures *f)
{
    char name[80];
    method_name(c, i, name, sizeof name);
    printf("| `%s`%s |", name, c->method[i].roles & (ROLE_AT << (HORIZONS - 1)) ? " (best)" : "");
    for (size_t h = 0; h < HORIZONS; h++)
        cell(" %.1e |", f->median[h]);
    cell(" %.1e |", f->mean[HORIZONS - 1]);
    if (!c->problem->quantile)
        printf(" %zu |", f->lost);
    for (size_t l = 0; l < LEVELS; l++)
        cell(" %.0f |", f->iterations[l]);
    const size_t l = 2;
    cell(" %.0f |", f->iterations[l] * c->method[i].edge_rounds);
    cell(" %.2f |", f->bytes[l] / 1e6);
    cell(" %.2g |\n", f->seconds[l]);
    if (!isfinite(f->seconds[l]))
        printf("\n");
}

static void print_table(const campaign *c, const figures *f)
{
    const char *loss = c->problem->quantile ? "" : " lost |";
    printf("\n### %s\n\n", c->problem->label);
    printf("| | median after 50 | 100 | 200 | 300 | mean after 300 |%s iterations to 1e-2 | 1e-3 | 1e-4 | 1e-5 | "
           "rounds to "
           "1e-4 | MB to 1e-4 | s to 1e-4 |\n|---|---|---|---|---|---|%s---|---|---|---|---|---|---|\n",
           loss, *loss ? "---|" : "");
    for (size_t i = 0; i < c->methods; i++)
        if (c->method[i].kind != BY_SUBGRADIENT || (c->method[i].roles & (ROLE_KIND | ROLE_AT << (HORIZONS - 1))))
            print_row(c, i, &f[i]);
    printf("\n");
}

/* ---- targets ---- */

static size_t hfsad_method(const campaign *c, uint32_t edge_rounds, double participation)
{
    for (size_t i = 0; i < c->methods; i++)
        if (c->method[i].kind == BY_TUNED && c->method[i].edge_rounds == edge_rounds &&
            c->method[i].participation == participation)
            return i;
    die("the tuned preset was not run", "");
}

/* Against the run of a start that tuning found the best, and against whichever sub-gradient run is the best at each
 * horizon here. */
static void compare_central(const campaign *c, const figures *f, uint32_t edge_rounds)
{
    const size_t ours = hfsad_method(c, edge_rounds, 1);
    const char *starts[STARTS_MOST];
    const size_t n = problem_starts(c->problem, starts);
    char name[80], of[16];
    for (size_t i = 0; i < c->methods; i++) {
        if (c->method[i].kind != BY_SUBGRADIENT || !(c->method[i].roles & (ROLE_AT << (HORIZONS - 1))))
            continue;
        snprintf(name, sizeof name, "target_km%u_%s", edge_rounds, starts[n > 1 ? c->method[i].start : 0]);
        for (size_t h = 0; h < HORIZONS; h++) {
            snprintf(of, sizeof of, "%u", HORIZON[h]);
            say(c, name, "median_ratio_", of, f[ours].median[h] / f[i].median[h],
                "ours over the best run of this start");
        }
        if (!c->problem->quantile)
            say(c, name, "lost_more", "", (double)f[ours].lost - (double)f[i].lost, "trials");
    }
    snprintf(name, sizeof name, "target_km%u_envelope", edge_rounds);
    for (size_t h = 0; h < HORIZONS; h++) {
        const size_t best = least(c, f, median_at(h), SIZE_MAX, SIZE_MAX);
        snprintf(of, sizeof of, "%u", HORIZON[h]);
        say(c, name, "median_ratio_", of, f[ours].median[h] / f[best].median[h], "ours over the least at this horizon");
    }
    const size_t mean = least(c, f, mean_at(HORIZONS - 1), SIZE_MAX, SIZE_MAX);
    const size_t all = least(c, f, offsetof(figures, mean_all), SIZE_MAX, SIZE_MAX);
    say(c, name, "mean_ratio_300", "", f[ours].mean[HORIZONS - 1] / f[mean].mean[HORIZONS - 1], "ours over the least");
    say(c, name, "mean_all_ratio_300", "", f[ours].mean_all / f[all].mean_all, "the same, unseen trials too");
}

/* When the median over the trials is first at the level. */
static double median_arrival(const campaign *c, size_t which, double level)
{
    double *room = bench_take(2 * c->trials, sizeof *room), at = INFINITY;
    for (uint32_t i = 0; i <= c->method[which].iterations && !isfinite(at); i++)
        if (values_after(c, which, i, false, room).median <= level)
            at = i;
    free(room);
    return at;
}

/* Left out where one of the two did not get there. */
static void say_ratio(const campaign *c, const char *of, double few, double all)
{
    if (few < INFINITY && all < INFINITY && all > 0)
        say(c, "target_pc0.3", "iterations_ratio_", of, few / all, "p_c = 0.3 over p_c = 1 (aim: at most 4.17)");
}

/* p_c = 0.3 beside 1, one round per iteration: the aim is 1/p_c times as many iterations, give or take a quarter. */
static void compare_participation(const campaign *c, const figures *f)
{
    const size_t few = hfsad_method(c, 1, 0.3), all = hfsad_method(c, 1, 1);
    const double level = 1.2 * f[all].end_median;
    const double near_few = median_arrival(c, few, level), near_all = median_arrival(c, all, level);
    for (size_t l = 0; l < LEVELS; l++)
        say_ratio(c, LEVEL_NAME[l], f[few].iterations[l], f[all].iterations[l]);
    say(c, "target_pc0.3", "iterations_near_pc1", "", near_all, "to 1.2 times its median at the end");
    say(c, "target_pc0.3", "iterations_near_pc0.3", "", near_few, "to the same");
    say_ratio(c, "near", near_few, near_all);
    say(c, "target_pc0.3", "end_ratio", "", f[few].end_median / f[all].end_median, "medians at the end");
}

void campaign_report(const campaign *c)
{
    figures *f = all_figures(c);
    size_t unseen = 0, diverged = 0, repairs = 0;
    double gap = 0;
    for (size_t t = 0; t < c->trials; t++) {
        unseen += c->unseen[t];
        gap = fmax(gap, c->gap[t]);
    }
    say(c, "trials", "count", "", (double)c->trials, "in the report");
    if (c->problem->quantile)
        say(c, "optimum", "gap", "", gap, "at most: how far the optimum may be below what was taken for it");
    else
        say(c, "trials", "unseen", "", (double)unseen, "have a coordinate of the truth that is in no row");
    for (size_t i = 0; i < c->methods; i++) {
        if (c->method[i].kind == BY_TUNED) {
            diverged += f[i].diverged;
            repairs += f[i].repairs;
        }
        if (c->method[i].kind != BY_SUBGRADIENT || c->method[i].roles)
            print_lines(c, i, &f[i]);
    }
    if (least(c, f, 0, SIZE_MAX, SIZE_MAX) != SIZE_MAX) {
        compare_central(c, f, 10);
        compare_central(c, f, 1);
    }
    compare_participation(c, f);
    say(c, "target_tuned", "diverged", "", (double)diverged, "runs of the tuned preset");
    say(c, "target_tuned", "repairs", "", (double)repairs, "of the safeguard in them");
    print_table(c, f);
    fflush(stdout);
    free(f);
}
