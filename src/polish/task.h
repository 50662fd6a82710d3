/* The polish of a plan: the problem to solve, and the decision whether its solution may replace the models of a run.
 * Every driver that can ask all clients starts here. */
#ifndef HFSAD_POLISH_TASK_H
#define HFSAD_POLISH_TASK_H

#include "plan/method.h"
#include "plan/owners.h"
#include "polish/polish.h"

/* Coordinates up to which a second derivative is sent; of several classes, which have no star before Newton's method
 * and whose diagonal says little, more are worth it. */
enum { POLISH_DIRECT = 512, POLISH_DIRECT_CLASSES = 1024 };
static inline size_t polish_direct(const dataset *d)
{
    return d->classes ? POLISH_DIRECT_CLASSES : POLISH_DIRECT;
}
/* Numbers that the clients of a star may keep for a metric that is not diagonal. */
enum { STAR_NUMBERS_MOST = 1 << 27 };

/* Whether a run of this spec ends with the polish: run.polish is true, or it is auto, the problem is of one
 * model and of at most POLISH_DIRECT coordinates, and the preset is not the paper's. A run without iterations shows its
 * start. */
bool polish_is_due(const hfsad_spec *spec, const plan *p, size_t n_inner, size_t M);
/* Whether the metric of a star is that of all columns together, not only its diagonal. */
bool star_is_whole(const plan *p, const dataset *d);
/* The columns of that metric: all ("whole"), those chosen ("chosen", choice.h), each by itself ("diagonal"). */
const char *star_metric_name(const plan *p, const dataset *d, bool on_path);
/* Of d only the tree is looked at. problem->priors is to be freed, ask and context are the caller's. false: no memory.
 */
bool polish_problem_make(polish_problem *problem, const plan *p, const dataset *d);

/* How the polish of a federation ended, the first number of its result; if it failed, the only one. */
enum {
    POLISH_UNFINISHED,
    POLISH_FINISHED,
    POLISH_LOST,      /* a client, at the first question, which needs nothing, again and again */
    POLISH_NO_MEMORY, /* at the root */
    POLISH_ABSENT,    /* asynchronous: a client does not answer */
};
/* Why there is none; NULL: there is one. */
const char *polish_failure(int ended);

/* Whether the links tie all nodes to one model. */
bool polish_ties(const dataset *d, const plan *p, double nu_f);
/* What came of it, as far as it has come; links: of the tree. */
void polish_count(hfsad_polish *to, const polish_result *found, uint64_t links);
/* Whether it may take the place of the run's models, whose objective is `objective`; a reason if it may not.
 * relative_error and seconds are the caller's. */
void polish_judge(hfsad_polish *to, const polish_result *found, const dataset *d, const plan *p, double nu_f,
                  double objective);

#endif
