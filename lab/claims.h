/*
 * The paper's claims about its experiment, judged by measured numbers. The verdicts depend on the summaries only.
 */
#ifndef HFSAD_LAB_CLAIMS_H
#define HFSAD_LAB_CLAIMS_H

#include "lab/experiment.h"

/* The iterations in tables: 50, 100, 200 and the last; sixths of the run if it is too short for these. */
enum { CHECKPOINTS_MOST = 4 };
typedef struct {
    size_t count; /* the last one is the end of the run */
    uint32_t at[CHECKPOINTS_MOST];
} checkpoints;
checkpoints checkpoints_of(uint32_t iterations);

/* A trial above this error at the end is lost. */
#define LOST_ABOVE 0.05

typedef struct {
    double mean[CHECKPOINTS_MOST], median[CHECKPOINTS_MOST];
    size_t lost;
} series_summary;

/* room: as many numbers as there are trials. */
series_summary series_summarize(const paper_result *r, size_t method, const checkpoints *c, double *room);

/* 3.7e-2 */
typedef struct {
    char text[16];
} error_text;
error_text error_text_of(double error);

typedef enum { VERDICT_NO, VERDICT_PARTLY, VERDICT_YES } verdict;

typedef struct {
    verdict verdict;
    char cell[32];      /* the verdict with the deciding figure: 24 columns at most */
    char sentence[600]; /* the same in plain words */
} finding;

typedef struct {
    size_t scenario;   /* index into paper_scenarios */
    const char *claim; /* as short as a table needs it */
    const char *test;  /* condition under which it counts as true */
    /* series: the summaries of the scenario, in its order; c->count >= 1 */
    finding (*judge)(const series_summary *series, const checkpoints *c);
} paper_claim;

enum { PAPER_CLAIMS = 4 };
extern const paper_claim paper_claims[PAPER_CLAIMS];

/* Compares the series of the tuned preset, the last of scenario 1, with the sub-gradient rule that ends lowest. This is
 * not a claim of the paper; series: as above. */
finding tuned_judge(const series_summary *series, const checkpoints *c);

/* Means within this factor count as comparable; the paper does not define the word. */
#define COMPARABLE_FACTOR 2.0

#endif
