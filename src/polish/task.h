/* The polish of a plan: the problem to solve, and the decision whether its solution may replace the models of a run.
 * Every driver that can ask all clients starts here. */
#ifndef HFSAD_POLISH_TASK_H
#define HFSAD_POLISH_TASK_H

#include "plan/method.h"
#include "plan/owners.h"
#include "polish/polish.h"

/* Limit on the coordinates for which a second derivative is sent. It is larger for several classes, which have no star
 * before Newton's method and whose diagonal says little. */
enum { POLISH_DIRECT = 512, POLISH_DIRECT_CLASSES = 1024 };
static inline size_t polish_direct(const dataset *d)
{
    return d->classes ? POLISH_DIRECT_CLASSES : POLISH_DIRECT;
}
/* Limit on the numbers that the clients of a star may keep for a metric that is not diagonal. */
enum { STAR_NUMBERS_MOST = 1 << 27 };

/* Whether a run of this spec ends with the polish: run.polish is true, or it is auto, the problem is of one
 * model and of at most POLISH_DIRECT coordinates, and the preset is not the paper's. A run without iterations shows its
 * start. */
bool polish_is_due(const hfsad_spec *spec, const plan *p, size_t n_inner, size_t M);
/* Whether the metric that a star begins with is that of all columns together, not only its diagonal. */
bool star_is_whole(const plan *p, const dataset *d);
/* The columns of that metric: all ("whole"), chosen ones ("chosen", choice.h), each by itself ("diagonal"). */
const char *star_metric_name(const plan *p, const dataset *d, bool on_path);
/* Only the tree of d is used. The caller frees problem->priors and sets ask and context. false: no memory. */
bool polish_problem_make(polish_problem *problem, const plan *p, const dataset *d);

/* How the polish of a federation ended, the first number of its result; if it failed, the only one. */
enum {
    POLISH_UNFINISHED,
    POLISH_FINISHED,
    POLISH_LOST,      /* a client is lost at the first question, which needs no state, again and again */
    POLISH_NO_MEMORY, /* at the root */
    POLISH_ABSENT,    /* asynchronous: a client does not answer */
    POLISH_ENDLESS,   /* finished, and there is no minimum */
    POLISH_VANISHES,  /* the same, and the loss of every row goes to 0 */
};
/* Whether a prior or a box keeps all columns but intercepts from growing without limit. */
bool polish_holds_columns(const plan *p, const dataset *d);
/* Why there is no polish; NULL: there is one. */
const char *polish_failure(int ended);

/* Whether the links tie all nodes to one model. */
bool polish_ties(const dataset *d, const plan *p, double nu_f);
/* The result so far; links: number of links of the tree. */
void polish_count(hfsad_polish *to, const polish_result *found, uint64_t links);
/* Whether the result may replace the run's models, whose objective is `objective`; otherwise the reason. The caller
 * sets relative_error and seconds. */
void polish_judge(hfsad_polish *to, const polish_result *found, const dataset *d, const plan *p, double nu_f,
                  double objective);

#endif
