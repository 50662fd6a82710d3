/*
 * The paper's experiment: its methods, its three scenarios, many trials in parallel, and the spread of
 * the relative error over the trials.
 *
 * Trial t draws everything from the seed `data.seed + t`, so that it can be repeated alone: `hfsad generate
 * phase-retrieval --seed S` writes the data of the trial with seed S.
 */
#ifndef HFSAD_LAB_EXPERIMENT_H
#define HFSAD_LAB_EXPERIMENT_H

#include "data/generated.h"
#include "run/subgradient.h"

/* A method: HFSAD with the paper's constants or with the tuned preset, or the centralized sub-gradient method with a
 * step rule. */
typedef struct {
    bool skip; /* not run; its errors stay 0 */
    bool central;
    bool tuned;           /* HFSAD: preset tuned with the paper's priors, from that preset's own start */
    uint32_t edge_rounds; /* HFSAD: K_m */
    double participation; /* HFSAD: p_c */
    step_rule rule;       /* central */
} paper_method;

typedef struct {
    phase_retrieval data; /* seed: seed of trial 0 */
    size_t trials;
    uint32_t iterations;
    const char *start;  /* start of all methods except the tuned ones, in the form of start_vector */
    unsigned threads;   /* 0: one per core */
    const char *device; /* "cuda": methods that it supports run there, many trials at once; NULL: processor */
} paper_settings;

/* The relative error of every method, iteration (0 is the start) and trial; values that are not finite are INFINITY. */
typedef struct {
    size_t methods, points, trials; /* points = iterations + 1 */
    double *error;                  /* methods x points x trials */
} paper_result;

/* The trials' errors of one method after one iteration. */
const double *paper_errors(const paper_result *r, size_t method, size_t iteration);

/* done: number of finished trials, called by one thread at a time. stop: several threads may call it at once; true ends
 * the run soon. Both may be NULL. */
typedef struct {
    void *context;
    void (*done)(void *context, size_t trials);
    bool (*stop)(void *context);
} paper_hooks;

/* Runs all methods on all trials. *r is NULL if the run was stopped. The bits do not depend on the number of
 * threads. */
hfsad_status paper_run(paper_result **r, const paper_settings *s, const paper_method *methods, size_t n_methods,
                       const paper_hooks *hooks, hfsad_error *err);
void paper_result_free(paper_result *r);

/* Quartiles by linear interpolation between the order statistics (numpy's and R's default). The mean is summed in the
 * order given; room has n places. */
typedef struct {
    double mean, median, lower, upper;
} spread;
spread spread_of(size_t n, const double *values, double *room);

/* The methods of the three scenarios; a run that two scenarios share is listed once. */
enum { PAPER_METHODS = 12, PAPER_SCENARIOS = 3, PAPER_SERIES_MOST = 6 };

typedef struct {
    const char *name;  /* "hfsad K_m=10" */
    const char *label; /* the same for a plot */
    size_t method;     /* index into paper_methods */
} paper_series;

typedef struct {
    const char *title;
    size_t n_series;
    paper_series series[PAPER_SERIES_MOST];
} paper_scenario;

extern const paper_scenario paper_scenarios[PAPER_SCENARIOS];

/* The methods, with the step rules tuned for this sign of the snr; methods of no wanted scenario are skipped. */
void paper_methods(paper_method methods[PAPER_METHODS], const bool wanted[PAPER_SCENARIOS], double snr_db);

/* The step rules that the tuned ones were chosen from; returns their number. */
enum { STEP_KINDS = STEP_CONSTANT + 1, STEP_GRID_MOST = 200 };
size_t paper_step_grid(step_rule rules[STEP_GRID_MOST]);

/* "0.3 * 0.98^k" */
void step_rule_text(const step_rule *rule, char *text, size_t size);

#endif
