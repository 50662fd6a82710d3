/* What the parts of `hfsad paper` share. */
#ifndef HFSAD_CLI_PAPER_H
#define HFSAD_CLI_PAPER_H

#include "lab/claims.h"
#include "progress.h"

#include <stdio.h>

enum { SNRS_MOST = 2 };

/* The experiment at one snr. */
typedef struct {
    double snr_db;
    paper_method methods[PAPER_METHODS];
    paper_result *result;
} paper_part;

typedef struct {
    paper_settings settings;
    bool wanted[PAPER_SCENARIOS];
    size_t n_parts;
    paper_part parts[SNRS_MOST]; /* the requested snr, then its opposite */
} paper_book;

/* Claims, figures and what to know about them, as Markdown of at most 100 columns. room: a number per trial. */
void paper_report(FILE *out, const paper_book *book, double *room);

/* Reads --seed of this command and of `generate`, whose seeds are those of the trials. The number is exact, unlike the
 * bounds of a CLI_WHOLE, which are doubles. CLI_GO, or the exit status after a line on stderr. */
int paper_seed(const char *command, const char *text, int64_t most, int64_t *seed);

/* Shows progress and handles Ctrl-C while trials run; context of the hooks. */
typedef struct {
    progress progress;
    size_t before; /* trials of earlier runs */
    size_t done;
} paper_watch;
paper_hooks paper_hooks_of(paper_watch *watch);
/* "interrupted after 7 of 200 trials; nothing was written"; the exit status. */
int paper_interrupted(paper_watch *watch);

/* hfsad paper --tune: every step rule of the grid on separate seeds. Returns the exit status. */
int paper_tune(const paper_settings *settings, const double *snrs, size_t n_snrs, bool quiet);

#endif
