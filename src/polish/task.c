#include "polish/task.h"

#include "base/alloc.h"
#include "data/features.h"
#include "polish/choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether some client's loss is phase retrieval's. */
static bool is_anchored(const plan *p)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (loss_kind_of(&p->leaf_classes[c].loss)->majorised)
            return true;
    return false;
}

/* Whether some row's loss may stay bounded as its s grows or falls without limit. */
static bool is_one_sided(const plan *p)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const loss_kind *kind = loss_kind_of(&p->leaf_classes[c].loss);
        if (kind->labels || kind->endless)
            return true;
    }
    return false;
}

/* Whether a minimum may not exist, and Newton's method can tell. */
static bool may_be_endless(const plan *p)
{
    bool any = false;
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const loss_kind *kind = loss_kind_of(&p->leaf_classes[c].loss);
        if (!kind->bend)
            return false;
        any = any || kind->endless;
    }
    return any;
}

bool polish_is_due(const hfsad_spec *spec, const plan *p, size_t n_inner, size_t M)
{
    if (p->star)
        return p->limit > 0;
    if (plan_has_noise(p))
        return false;
    if (spec->run.polish >= 0 || p->aggregate) /* the sums are over all clients, liars included */
        return spec->run.polish == 1 && !p->aggregate;
    return !algorithm_is_baseline(spec->top.algorithm) && spec->top.preset != PRESET_PAPER &&
           spec->run.iterations > 0 && M + p->owners <= POLISH_DIRECT && !plan_why_apart(p, n_inner);
}

/* The smallest box of all clients, because they share one model. */
static double box_of(const plan *p)
{
    double box = INFINITY;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        box = fmin(box, p->leaf_classes[c].loss.box);
    return box;
}

/* Level of a quantile; 0: no client's loss has a kink. */
static double level_of(const plan *p)
{
    double level = 0;
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const loss_kind *kind = loss_kind_of(&p->leaf_classes[c].loss);
        if (!kind->bend)
            level = kind->levels ? p->leaf_classes[c].loss.tau : 0.5;
    }
    return level;
}

/* Beyond POLISH_DIRECT half as many numbers, because a diagonal metric is not hopeless there, and only slower. */
static size_t whole_most(const dataset *d)
{
    size_t most = STAR_WHOLE;
    while (most > 0 &&
           d->n_rows * most + d->n_leaves * most * most / (most > POLISH_DIRECT ? 1 : 2) > STAR_NUMBERS_MOST)
        most--;
    return most;
}

bool star_is_whole(const plan *p, const dataset *d)
{
    const size_t M = owners_coordinates(p, d);
    return M <= POLISH_DIRECT && M <= whole_most(d);
}

const char *star_metric_name(const plan *p, const dataset *d, bool on_path)
{
    polish_problem problem;
    const bool chooses = polish_problem_make(&problem, p, d) && !on_path && !p->errors && choice_pays(&problem);
    free((hfsad_penalty *)problem.priors);
    return chooses ? "chosen" : star_is_whole(p, d) ? "whole" : "diagonal";
}

bool polish_problem_make(polish_problem *problem, const plan *p, const dataset *d)
{
    hfsad_penalty *priors = alloc_zero(d->n_inner, sizeof *priors);
    *problem = (polish_problem){
        .M = owners_coordinates(p, d),
        .owned = p->owners ? owners_coordinates(p, d) - features_weights(d) : 0,
        .boxed = features_weights(d),
        .box = box_of(p),
        .positive = p->positive,
        .n_priors = d->n_inner,
        .priors = priors,
        .direct = polish_direct(d),
        .clients = d->n_leaves,
        .star = p->star,
        .rounds = p->star && (!d->classes || p->scores.K),
        .gap = p->gap,
        .seed = p->seed,
        .length = p->length,
        .level = level_of(p),
        .limit = p->limit,
        .whole_metric = star_is_whole(p, d),
        .whole_most = whole_most(d),
        .may_choose = p->star && !d->classes && d->n_rows * d->M <= STAR_NUMBERS_MOST,
        .anchored = is_anchored(p),
        .one_sided = is_one_sided(p),
        .endless = may_be_endless(p),
    };
    for (size_t i = 0; priors && i < d->n_inner; i++)
        priors[i] = p->inner[i].prior;
    for (size_t i = 0; priors && i < d->n_inner && p->owners; i++)
        priors[i].free = (uint32_t)problem->owned;
    return priors != NULL;
}

static bool has_priors(const plan *p, const dataset *d)
{
    bool any = false;
    for (size_t i = 0; i < d->n_inner; i++)
        any = any || (p->inner[i].prior.weight > 0 && !penalty_is_flat(&p->inner[i].prior));
    return any;
}

bool polish_holds_columns(const plan *p, const dataset *d)
{
    return has_priors(p, d) || isfinite(box_of(p));
}

static const char separable[] =
    "a plane separates the classes: the loss goes to 0 as the model grows and has no minimum";
static const char one_class[] =
    "all rows are of one class: the loss goes to 0 as the intercept grows and has no minimum";
static const char parted[] =
    "the intercepts of clients or edges alone separate the classes: the loss goes to 0 as they "
    "grow and has no minimum";
static const char one_class_somewhere[] =
    "all rows of a client or edge with an intercept of its own are of one class: their loss goes to 0 as it grows and "
    "there is no minimum";
static const char weakly_separable[] =
    "a plane separates some rows of the classes and no row is on its wrong side: their loss goes to 0 as the model "
    "grows and there is no minimum";
static const char no_rows[] = "a class has no rows: its intercept falls without limit and there is no minimum";
static const char no_counts[] = "all counts are 0: the loss goes to 0 as the model grows and has no minimum";
static const char few_counts[] =
    "the loss of some counts of 0 goes to 0 as the model grows, and no other count resists: there is no minimum";
static const char no_counts_somewhere[] =
    "all counts of a client or edge with an intercept of its own are 0: their loss goes to 0 as it falls and there is "
    "no minimum";

/* Why there is no minimum; NULL: there is one. Beyond the coordinates of which second derivatives travel, only a loss
 * that ends near 0 shows it. */
static const char *why_endless(const plan *p, const dataset *d, const polish_result *found)
{
    bool labels = true, any = false;
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const loss_kind *kind = loss_kind_of(&p->leaf_classes[c].loss);
        any = any || kind->endless;
        labels = labels && (kind->labels || kind->several);
    }
    const bool held = polish_holds_columns(p, d);
    const bool guessed = owners_coordinates(p, d) > polish_direct(d) && any && !held &&
                         found->after <= 1e-4 * found->zero && found->bound >= 0.9 * found->after;
    if (!found->endless && !guessed)
        return NULL;
    const bool vanishes = found->vanishes || guessed;
    if (p->level && (!labels || p->owners || features_weights(d) < d->M))
        return labels ? one_class : no_counts;
    if (held && d->classes)
        return no_rows;
    if (p->owners && held)
        return !labels ? no_counts_somewhere : vanishes ? parted : one_class_somewhere;
    return !labels ? few_counts : vanishes ? separable : weakly_separable;
}

void polish_count(hfsad_polish *to, const polish_result *found, uint64_t links)
{
    to->exchanges = found->exchanges;
    to->bytes_down = links * found->down * sizeof(double);
    to->bytes_up = links * found->up * sizeof(double);
    to->objective_before = found->before;
    to->objective_after = found->after;
    to->objective_zero = found->zero;
}

/* With these weights Theorem 1 ties all nodes. A lower objective of models that differ then comes from links that have
 * not converged or, for phase retrieval, whose bound is the paper's number, from the fit of an outlier. */
bool polish_ties(const dataset *d, const plan *p, double nu_f)
{
    theorem_report t;
    theorem_check(&t, d, p, nu_f);
    const double most = 1 - 1e-12;
    return t.links_are_tv && t.client_weight >= most * t.client_weight_needed &&
           (d->n_inner == 1 || t.edge_weight >= most * t.edge_weight_needed);
}

void polish_judge(hfsad_polish *to, const polish_result *found, const dataset *d, const plan *p, double nu_f,
                  double objective)
{
    const char *endless = found->finished ? why_endless(p, d, found) : NULL;
    to->unbounded = endless != NULL;
    if (p->star) { /* its point is the run's model, however far it is from the minimum */
        to->accepted = isfinite(found->after);
        snprintf(to->reason, sizeof to->reason, "%s", endless ? endless : found->finished ? "" : "interrupted");
    } else if (!found->finished)
        snprintf(to->reason, sizeof to->reason, "interrupted");
    else if (!isfinite(found->after) || found->after > found->before)
        snprintf(to->reason, sizeof to->reason, "no better model was found");
    else if (to->unbounded && found->after <= 1e-4 * found->zero) /* otherwise its loss is that of the infimum */
        snprintf(to->reason, sizeof to->reason, "%s", endless);
    else if (!polish_ties(d, p, nu_f) && found->after > objective + 1e-9 * fabs(objective))
        snprintf(
            to->reason, sizeof to->reason,
            "link: the run's own models, which differ, have the lower objective %.9g; larger weights would tie them",
            objective);
    else {
        to->accepted = true;
        snprintf(to->reason, sizeof to->reason, "%s", endless ? endless : "");
    }
    to->gap = to->accepted ? found->bound : NAN;
    to->residual = found->residual;
}

const char *polish_failure(int ended)
{
    return ended == POLISH_LOST        ? "a client fails each time it is asked"
           : ended == POLISH_NO_MEMORY ? "the cloud does not have enough memory"
           : ended == POLISH_ABSENT    ? "a client is absent"
                                       : NULL;
}
