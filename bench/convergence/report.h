/* What the runs of bench/convergence.c come to: choice of step rules, figures over the trials, lines, tables, targets.
 */
#ifndef BENCH_CONVERGENCE_REPORT_H
#define BENCH_CONVERGENCE_REPORT_H

#include "convergence/trial.h"

enum { HORIZONS = 4, LEVELS = 4, LAST_HORIZON = 300 };

/* What a step rule is chosen for, among those of its start. */
enum {
    ROLE_KIND = 1, /* of its kind the least median at the last horizon */
    ROLE_MEAN = 2, /* the least mean there */
    ROLE_AT = 4,   /* times 2^h: the least median at horizon h */
};

/* Sets the roles of methods, which are those of the campaign, all sub-gradient. */
void roles_choose(const campaign *tuning, method *methods);

/* Lines `name value unit`, a table, and how the targets stand. */
void campaign_report(const campaign *c);

#endif
