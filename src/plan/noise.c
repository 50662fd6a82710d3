#include "plan/noise.h"

#include "base/error.h"
#include "base/rng.h"
#include "core/draw.h"
#include "math/loss_kind.h"
#include "plan/accountant.h"
#include "plan/cohort.h"

#include <math.h>
#include <string.h>

/* ---- the lattice ---- */

/* Steps so fine that the variance has 38 to 40 binary digits, but not finer than least. */
noise_lattice noise_lattice_of(double rho, double radius, double least)
{
    noise_lattice l = {.step = fmax(least, ldexp(1, ilogb(radius) - 40))};
    for (;; l.step *= 2) {
        const double most = floor(radius / l.step), variance = ceil(2 * most * most / rho * (1 + 0x1p-40)) + 1;
        if (variance > (double)GAUSSIAN_VARIANCE_MOST)
            continue;
        l.most = (int64_t)most;
        l.variance = (uint64_t)variance;
        return l;
    }
}

/* The exact length, in whole numbers. */
static bool is_within(const int64_t *v, size_t M, int64_t most)
{
    unsigned __int128 sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += (unsigned __int128)((__int128)v[m] * v[m]);
    return sum <= (unsigned __int128)((__int128)most * most);
}

void noise_clip(const noise_lattice *l, size_t M, const double *centre, const double *v, int64_t *out)
{
    double size = 0;
    for (size_t m = 0; m < M; m++)
        size += (v[m] - centre[m]) / l->step * ((v[m] - centre[m]) / l->step);
    size = sqrt(size);
    memset(out, 0, M * sizeof *out);
    if (!isfinite(size))
        return;
    /* rounded towards 0, which makes no vector longer; the loop is for the rounding of the norm */
    for (double factor = size > (double)l->most ? (double)l->most / size : 1;; factor *= 1 - 0x1p-30) {
        for (size_t m = 0; m < M; m++)
            out[m] = (int64_t)((v[m] - centre[m]) / l->step * factor);
        if (is_within(out, M, l->most))
            return;
    }
}

/* How far the solution of a client's step may be missed, as a part of what a row can move it by. */
#define ROW_SLACK 0x1p-6

/* Two solutions with one row replaced are at most this far apart (docs/privacy.md). */
static double apart(const noise_budget *b, double sigma)
{
    return 2 * b->row * (1 + ROW_SLACK) / sigma;
}

noise_lattice noise_lattice_at(const noise_budget *b, double sigma, size_t M)
{
    noise_lattice l = noise_lattice_of(b->round_rho, b->clip, 0);
    if (!(b->row > 0))
        return l;
    /* sqrt(M): rounding to whole steps; the last two: the loop of noise_clip, and this sum itself */
    const double steps = (apart(b, sigma) / l.step + sqrt((double)M) + 0x1p-28 * (double)l.most) * (1 + 0x1p-40);
    if (steps < 2 * (double)l.most)
        l.variance = (uint64_t)ceil(steps * steps / (2 * b->round_rho) * (1 + 0x1p-40)) + 1;
    return l;
}

double noise_pull(const noise_budget *b)
{
    return b->row * ROW_SLACK;
}

/* ---- the budget ---- */

noise_budget noise_budget_of(const hfsad_spec *spec)
{
    noise_budget b = {0};
    if (!spec_has_noise(spec))
        return b;
    const double most = fmax(1, (double)spec->run.iterations * (double)spec_edge_rounds(spec));
    b.delta = spec->privacy.delta;
    b.rho = isnan(spec->privacy.rho) ? zcdp_rho(spec->privacy.epsilon, b.delta) : spec->privacy.rho;
    b.rounds = (uint64_t)most;
    b.round_rho = b.rho / most;
    b.clip = spec->privacy.clip;
    b.each = (uint64_t)spec_edge_rounds(spec);
    b.ahead = spec->federation.mode == MODE_ASYNC; /* clients may have stepped on the model that is open */
    return b;
}

/* Draws are public functions of the seed, so that the rounds of every client are known in advance. */
void noise_count_rounds(plan *p, const dataset *d)
{
    static const double worth = 1e8; /* draws; with more, every client counts as if it took part in all rounds */
    const uint64_t all = p->iterations * p->edge_rounds;
    uint64_t most = 0;
    char name[NODE_NAME_SIZE];
    if (!plan_has_noise(p) || p->async || (double)all * (double)d->n_leaves > worth)
        return; /* asynchronously, a client steps at most once on each model of its parent */
    for (size_t leaf = 0; leaf < d->n_leaves && most < all; leaf++) {
        const inner_node *node = &d->inner[dataset_parent(d, leaf)];
        const size_t first = node->first_leaf + cohort_of(p, node->n_leaves, leaf - node->first_leaf);
        uint64_t rounds = 0;
        uint32_t last = 0;
        if (first != leaf) /* it takes part when the first of its cohort does */
            continue;
        dataset_leaf_name(d, leaf, name, sizeof name);
        const uint64_t key = rng_key(p->seed, rng_stream(name));
        for (uint64_t r = 1; r <= all; r++)
            rounds +=
                draw_takes_part(plan_leaf(p, leaf)->participation, key, r, p->edge_rounds, p->at_least_every, &last);
        most = rounds > most ? rounds : most;
    }
    p->noise.rounds = most ? most : 1;
    p->noise.round_rho = p->noise.rho / (double)p->noise.rounds;
}

/* Losses of bounded slope, whose step is solved exactly, and for which the objective of a step is strongly convex. */
hfsad_status noise_take_rows(plan *p, const hfsad_spec *spec, hfsad_error *err)
{
    noise_budget *b = &p->noise;
    const double length = spec->privacy.record;
    if (!plan_has_noise(p) || isnan(length))
        return HFSAD_OK;
    b->sigma = INFINITY;
    for (size_t i = 0; i < p->n_leaf_classes; i++) {
        const leaf_class *c = &p->leaf_classes[i];
        const loss_kind *kind = loss_kind_of(&c->loss);
        double low = -INFINITY, high = INFINITY, steepest = 0;
        for (int y = -1; y <= 1 && kind->slopes; y += 2) {
            kind->slopes(&c->loss, y, &low, &high);
            steepest = fmax(steepest, fmax(-low, high));
        }
        if (!kind->slopes || !isfinite(steepest) || c->solver.method != ROWS_EXACT || c->loss.box < INFINITY)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "privacy.record: the loss of a client must have a bounded slope (absolute, quantile, "
                             "smoothed-quantile, huber, hinge, logistic), loss.solver exact and no loss.box");
        b->row = fmax(b->row, steepest * length);
        b->sigma = fmin(b->sigma, hfsad_schedule_sigma(&c->rule.schedule, 1));
    }
    return HFSAD_OK;
}

double noise_deviation(const noise_budget *b)
{
    const double most = 2 * b->clip;
    return (b->row > 0 ? fmin(most, apart(b, b->sigma)) : most) / sqrt(2 * b->round_rho);
}

double noise_size(const noise_budget *b)
{
    return b->rho > 0 ? b->clip + noise_deviation(b) : 0;
}

/* Steps so far above the rounding of u, which is below 2^62 units of UP, that a rounded u says which step it is. */
static noise_lattice lattice_of_words(const plan *p, double sigma)
{
    return noise_lattice_of(p->noise.round_rho, sigma * p->noise.clip, 0x1p14 / plan_up_factor(p, sigma));
}

hfsad_status noise_check_budget(const plan *p, hfsad_error *err)
{
    enum { LEAST = 64, LEAST_SHARE = 1 << 10 };
    const noise_budget *b = &p->noise;
    if (!(b->rho > 0))
        return HFSAD_OK;
    const noise_lattice l = p->secure ? lattice_of_words(p, 1) : noise_lattice_of(b->round_rho, b->clip, 0);
    if (l.most < LEAST)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "privacy: rho = %g over %llu rounds leaves nothing but noise; lower run.iterations or "
                         "run.edge_rounds, or raise the budget",
                         b->rho, (unsigned long long)b->rounds);
    if (p->secure && l.variance / (2 * p->cohort) < LEAST_SHARE)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "privacy: the numbers of messages are too coarse for shares of the noise; raise "
                         "federation.fraction or privacy.clip");
    return HFSAD_OK;
}

double noise_spent(const noise_budget *b, uint64_t iterations)
{
    const uint64_t rounds = (iterations + (b->ahead && iterations)) * b->each; /* at most */
    return rounds < b->rounds ? b->rho * ((double)rounds / (double)b->rounds) : b->rho;
}

static const char *excluded(const hfsad_spec *s)
{
    const char *start = s->run.start ? s->run.start : "";
    bool steps = s->run.local_steps > 1;
    bool concave = s->link_client.penalty > (int)HFSAD_PENALTY_L1 || s->link_edge.penalty > (int)HFSAD_PENALTY_L1;
    for (size_t i = 0; i < s->n_overrides; i++) {
        steps = steps || s->overrides[i].local_steps > 1;
        concave = concave || s->overrides[i].link.penalty > (int)HFSAD_PENALTY_L1;
    }
    return s->top.algorithm != ALGORITHM_AUTO && s->top.algorithm != ALGORITHM_HFSAD
               ? "algorithm: only hfsad adds noise; set algorithm: hfsad"
           : s->run.polish == 1               ? "run.polish: its questions have no noise; leave it out"
           : s->output.errors == 1            ? "output.errors: these questions have no noise; leave it out"
           : s->top.personal != PERSONAL_NONE ? "personal: groups are found without noise; set personal: none"
           : s->features.standardize == 1     ? "features.standardize: means and deviations have no noise; scale the "
                                                "columns by public numbers"
           : s->features.intercept != INTERCEPT_NONE
               ? "features.intercept: the sizes of the columns have no noise; add "
                 "a column of ones to the data"
           : s->loss.kind == (int)HFSAD_LOSS_OWN || s->loss.kind == (int)HFSAD_LOSS_MULTINOMIAL
               ? "loss.kind: own and multinomial are not supported"
           : !*start && loss_kinds[s->loss.kind]->majorised ? "run.start: that of phase retrieval is computed from the "
                                                              "rows without noise; use zero, normal or a file"
           : !strcmp(start, "spectral") || !strcmp(start, "robust") || !strcmp(start, "consensus")
               ? "run.start: this start is computed from the rows without noise; use zero, normal or a file"
           : concave          ? "link: mcp and scad need a start from the rows; use tv"
           : s->run.tries > 1 ? "run.tries: starts are compared by figures without noise; set 1"
           : s->stop.absolute > 0 || s->stop.relative > 0
               ? "run.stop: residuals are not computed from the rows; leave absolute and relative out"
           : steps                           ? "run.local_steps: steps between two messages have no noise; set 1"
           : s->federation.local_seconds > 0 ? "federation.local_seconds: the budget is divided over a known number of "
                                               "steps; leave it out"
                                             : NULL;
}

/* Far beyond any use; outside of them steps and variances underflow, and a rho of 0 would be no noise at all. */
#define CLIP_LEAST 1e-100
#define CLIP_MOST 1e100
#define RHO_LEAST 1e-40

/* A prior whose lambda would be found from the rows. */
static bool is_open(const PRIOR_settings *prior)
{
    return prior->penalty > (int)HFSAD_PENALTY_NONE && isnan(prior->lambda);
}

hfsad_status noise_check_spec(const hfsad_spec *s, hfsad_error *err)
{
    const PRIVACY_settings *p = &s->privacy;
    const char *why = NULL;
    bool open = is_open(&s->prior_edge) || is_open(&s->prior_cloud);
    for (size_t i = 0; i < s->n_overrides; i++)
        open = open || (is_open(&s->overrides[i].prior) && isnan(s->prior_edge.lambda));
    if (!spec_has_noise(s)) {
        if (!isnan(p->clip) || !isnan(p->record))
            why = isnan(p->clip) ? "privacy.record needs privacy.epsilon or privacy.rho, the budget"
                                 : "privacy.clip needs privacy.epsilon or privacy.rho, the budget";
        return why ? error_set(err, HFSAD_ERROR_INPUT, "%s", why) : HFSAD_OK;
    }
    if (!isnan(p->epsilon) && !isnan(p->rho))
        why = "both epsilon and rho are given; give one of them";
    else if (isnan(p->clip))
        why = "clip is missing: the largest distance of a client's model from its parent's, in the units of the model";
    else if (!(p->clip >= CLIP_LEAST && p->clip <= CLIP_MOST))
        why = "clip is not between 1e-100 and 1e+100; scale the columns";
    else if (!(noise_budget_of(s).round_rho >= RHO_LEAST))
        why = "the budget of a round is below 1e-40; raise epsilon, delta or rho, or lower run.iterations";
    else if (!isnan(p->record) && spec_is_secure(s))
        why = "privacy.record: with secure aggregation a client's state has no noise, so that a row acts on all later "
              "rounds; use aggregation plain";
    else if (open && s->top.preset == PRESET_TUNED)
        why = "prior: lambda is found from the rows without noise; give lambda";
    else
        why = excluded(s);
    return why ? error_set(err, HFSAD_ERROR_INPUT, "privacy with noise: %s", why) : HFSAD_OK;
}

uint64_t noise_key(uint64_t seed, const char *client)
{
    return rng_key(rng_key(seed, rng_stream("noise")), rng_stream(client));
}

/* ---- what a client says ---- */

void noise_model(const noise_budget *b, const word_source *words, uint64_t k, double sigma, size_t M,
                 const double *w_parent, double *w, int64_t *steps)
{
    const noise_lattice l = noise_lattice_at(b, sigma, M);
    const gaussian law = gaussian_of(l.variance);
    noise_clip(&l, M, w_parent, w, steps);
    words->begin(words->context, k);
    for (size_t m = 0; m < M; m++)
        w[m] = w_parent[m] + l.step * (double)(steps[m] + gaussian_draw(&law, words));
}

bool noise_clip_link(const plan *p, const hfsad_link_rule *rule, hfsad_link *link, size_t M, const double *w_parent,
                     double *u, double *centre, int64_t *steps)
{
    const double sigma = hfsad_link_message(rule, link, M, u);
    const noise_lattice l = lattice_of_words(p, sigma);
    for (size_t m = 0; m < M; m++)
        centre[m] = l.step * nearbyint(sigma * w_parent[m] / l.step);
    noise_clip(&l, M, centre, u, steps);
    for (size_t m = 0; m < M; m++) { /* Gamma stays, u becomes centre + steps */
        const double by = (centre[m] + l.step * (double)steps[m] - u[m]) / sigma;
        link->z[m] += by;
        link->q[m] += by;
    }
    (void)hfsad_link_message(rule, link, M, u);
    bool holds = true;
    for (size_t m = 0; m < M; m++)
        holds = holds && nearbyint(u[m] / l.step) == nearbyint(centre[m] / l.step) + (double)steps[m];
    return holds;
}

void noise_words(const plan *p, const word_source *words, uint64_t k, size_t members, double sigma, size_t M,
                 int64_t *u)
{
    const noise_lattice l = lattice_of_words(p, sigma);
    const int64_t unit = (int64_t)(l.step * plan_up_factor(p, sigma));
    const uint64_t sharers = p->async && p->cohort ? p->cohort : members; /* that are left if members leave */
    const gaussian law = gaussian_of((l.variance + sharers - 1) / sharers);
    words->begin(words->context, k);
    for (size_t m = 0; m < M; m++) {
        const int64_t steps = (u[m] + (u[m] < 0 ? -unit : unit) / 2) / unit;
        u[m] = unit * (steps + gaussian_draw(&law, words));
    }
}
