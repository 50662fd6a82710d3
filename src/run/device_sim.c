/* A run whose rounds are a device's: see device.h. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/ranks.h"
#include "core/draw.h"
#include "data/generated.h"
#include "math/loss_kind.h"
#include "plan/client_terms.h"
#include "run/device_parts.h"
#include "run/handle.h"
#include "run/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_device {
    const device_table *table;
    void *device;
    device_problem problem;
    device_run *runs;
    device_node *inner;
    device_rule *rules;
    device_class *classes; /* of clients that differ; NULL: none do */
    double *roots;
    device_clock *clocks; /* of inner nodes that differ or sit out; NULL: none do */
    unsigned char *steps;
    uint64_t heard;
    device_figures *figures;
    double *inner_dual, *dual;
    size_t *first;               /* of the rows of its clients */
    size_t leaf_first, leaf_end; /* the clients that are there */
    device_round round;          /* the last */
    uint32_t k;                  /* of all clients' links, and of all inner nodes' */
    bool changed;                /* the state here is newer than the device's */
    bool ahead;                  /* the other way round */
    char failure[300];           /* of the device, after which nothing is asked of it; "": none */
};

/* Rules may change with the safeguard's repairs. */
static void find_rules(sim *s, struct sim_device *v)
{
    v->rules[0] = rule_for(sim_leaf_rule(s, &s->p->leaf_classes[0]));
    for (size_t c = 0; v->classes && c < s->p->n_leaf_classes; c++)
        v->classes[c].rule = rule_for(sim_leaf_rule(s, &s->p->leaf_classes[c]));
    for (size_t i = 0; i < s->d->n_inner; i++) {
        const hfsad_link_rule rule = sim_inner_rule(s, i);
        v->inner[i].rule = rule_for(&rule);
    }
}

/* The first failure counts. The state is lost then: the next measurement ends the run, and its checkpoint is the last
 * before. */
static void note(struct sim_device *v, bool done, const char *why)
{
    if (!done && !v->failure[0])
        snprintf(v->failure, sizeof v->failure, "%s; the last checkpoint is as it was; resume the run from it", why);
}

const char *sim_failure(const sim *s)
{
    return s && s->device && s->device->failure[0] ? s->device->failure : NULL;
}

/* Which inner nodes take part, and their clocks. */
static void draw_inner(sim *s, struct sim_device *v)
{
    for (size_t i = 1; i < s->d->n_inner; i++) {
        inner_state *state = &s->inner[i];
        const uint32_t before = state->last;
        state->stepped = draw_takes_part(s->p->inner[i].participation, state->key, s->round + 1, s->p->edge_rounds,
                                         s->p->at_least_every, &state->last);
        state->first_time = state->stepped && before < s->iteration;
        state->k += state->stepped;
        if (v->clocks) {
            v->clocks[i] = clock_of(&v->inner[i].rule.schedule, state->k);
            v->steps[i] = state->stepped;
        }
    }
}

/* What has changed here, to the device. */
static void tell_device(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v->changed || v->failure[0])
        return;
    v->k = s->k[v->leaf_first];
    find_rules(s, v);
    v->problem.start = s->leaf_start;
    note(v, v->table->put(v->device, &v->problem, why, sizeof why), why);
    v->round = (device_round){.leaf = clock_of(&v->rules[0].schedule, v->k)};
    v->changed = false;
}

void device_play(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    tell_device(s);
    v->k++;
    const device_members *m = &v->problem.members;
    if (m->n_classes && (s->round + 1) * m->most_steps + 2 > m->n_roots)
        note(v, false, "the device was told of fewer rounds (run.iterations)");
    draw_inner(s, v);
    const hfsad_schedule *inner = s->d->n_inner > 1 ? &v->inner[1].rule.schedule : &v->rules[0].schedule;
    const uint32_t k = s->d->n_inner > 1 ? s->inner[1].k : 1;
    v->round = (device_round){.leaf = clock_of(&v->rules[0].schedule, v->k),
                              .inner = clock_of(inner, k),
                              .want_dual = s->want_dual,
                              .number = s->round + 1,
                              .clocks = v->clocks,
                              .steps = v->steps};
    if (!v->failure[0])
        note(v, v->table->round(v->device, &v->round, why, sizeof why), why);
    v->ahead = true;
    for (size_t r = 0; r < s->n_runs; r++) {
        s->runs[r].stepped = v->classes ? 0 : s->runs[r].count; /* the device counts members */
        s->runs[r].first_time = s->first_round ? s->runs[r].stepped : 0;
        s->runs[r].dual = 0;
    }
    count_round(s);
    s->round++;
}

/* What members have sent in this iteration. */
static void count_members(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    uint64_t count = v->heard;
    if (!v->classes || v->failure[0])
        return;
    note(v, v->table->heard(v->device, &count, why, sizeof why), why);
    s->round_up += s->M * sizeof(double) * (count - v->heard);
    v->heard = count;
}

static void take_inner_duals(sim *s)
{
    for (size_t i = 1; i < s->d->n_inner; i++)
        s->inner[i].dual = s->device->inner_dual[i];
}

/* The cloud of several ranks steps here, on the messages of all; of one rank there. The safeguard needs the edges'
 * links after every iteration. */
bool device_step_cloud(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v || v->failure[0])
        return false;
    count_members(s);
    const bool there = !s->unit_u, guarded = s->guard.calm && plan_is_guarded(s->p, s->d->n_inner);
    if (there)
        note(v, v->table->step_roots(v->device, &v->round, s->inner_w, why, sizeof why), why);
    if (!v->failure[0] && (!there || guarded)) {
        note(v, v->table->fetch(v->device, &v->problem, false, why, sizeof why), why);
        take_inner_duals(s);
    }
    return there;
}

void device_tell_cloud(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (v && !v->failure[0])
        note(v, v->table->put_cloud(v->device, s->inner_w, why, sizeof why), why);
}

bool device_measure(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v || v->failure[0] || s->here)
        return false;
    tell_device(s);
    note(v, v->table->measure(v->device, &v->problem, &v->round, v->figures, why, sizeof why), why);
    if (v->ahead) /* otherwise they are those of the last round here */
        take_inner_duals(s);
    for (size_t r = 0; r < s->n_runs; r++) {
        const device_figures *f = &v->figures[r];
        s->run_sums[r] = (link_sums){.loss = f->loss,
                                     .consensus_loss = f->consensus_loss,
                                     .penalty = f->penalty,
                                     .smoothing = f->smoothing,
                                     .primal = f->primal,
                                     .gap = f->gap,
                                     .size_w = f->size_w,
                                     .size_zq = f->size_zq,
                                     .size_multiplier = f->size_multiplier};
        if (v->ahead)
            s->runs[r].dual = v->round.want_dual || s->many.dual ? f->dual : 0;
    }
    return true;
}

void device_collect_inner(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v || !v->ahead || v->failure[0])
        return;
    note(v, v->table->fetch(v->device, &v->problem, false, why, sizeof why), why);
    take_inner_duals(s);
}

void device_collect(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v || !v->ahead)
        sim_settle_leaves(s);
    if (!v || !v->ahead || v->failure[0])
        return;
    note(v, v->table->fetch(v->device, &v->problem, true, why, sizeof why), why);
    free(s->leaf_start);
    s->leaf_start = NULL;
    take_inner_duals(s);
    for (size_t leaf = v->leaf_first; leaf < v->leaf_end && !v->classes; leaf++)
        s->k[leaf] = v->k;
    for (size_t leaf = v->leaf_first; s->many.dual && leaf < v->leaf_end; leaf++)
        s->many.dual[leaf] = v->dual[leaf - v->leaf_first];
    for (size_t r = 0; r < s->n_runs && (v->round.want_dual || s->many.dual); r++) {
        const double *dual = v->dual + v->runs[r].leaf;
        s->runs[r].dual = 0;
        for (size_t i = 0; i < v->runs[r].count; i++)
            s->runs[r].dual += dual[i];
    }
    v->ahead = false;
}

/* The caller is about to write, or has written, the state here. */
void device_changed(sim *s)
{
    if (!s->device)
        return;
    device_collect(s);
    s->device->changed = true;
}

static void free_arrays(struct sim_device *v)
{
    free(v->runs);
    free(v->inner);
    free(v->rules);
    free(v->classes);
    free(v->roots);
    free(v->clocks);
    free(v->steps);
    free(v->figures);
    free(v->inner_dual);
    free(v->dual);
    free(v->first);
}

void device_close(sim *s)
{
    struct sim_device *v = s->device;
    if (!v)
        return;
    v->table->close(v->device);
    free_arrays(v);
    free(v);
    s->device = NULL;
}

/* ---- what a device can do ---- */

static bool is_group(const hfsad_link_rule *rule)
{
    return penalty_kind_of(&rule->penalty)->group;
}

static const char *refuse_links(const sim *s)
{
    const plan *p = s->p;
    bool group = false;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        group = group || is_group(&p->leaf_classes[c].rule);
    for (size_t i = 1; i < s->d->n_inner; i++)
        group = group || is_group(&p->inner[i].rule);
    if (group)
        return "links group-mcp and group-scad are not supported";
    return s->unit_u && s->d->inner[0].n_leaves
               ? "several ranks with clients directly below the cloud are not supported"
               : NULL;
}

/* Many rows per client. */
static const char *refuse_rows(const sim *s, const leaf_class *class)
{
    enum { FEATURES_MOST = 512 };
    if (s->d->rows.start || s->d->rows.pages || s->d->rows.constant != 0 || s->d->classes || s->M > FEATURES_MOST)
        return "rows must be dense and in memory, of at most 512 features, without an intercept";
    if (class->loss.box < INFINITY || rows_anchored(&class->loss) || class->solver.method != ROWS_EXACT)
        return "phase-retrieval, loss.box and solver: linearized are not supported with many rows per client";
    return s->many.squared ? "the squared loss is not supported with many rows per client" : NULL;
}

static const char *refuse_class(const sim *s, const leaf_class *class)
{
    if (class->loss.kind == HFSAD_LOSS_OWN)
        return "own losses are not supported";
    return s->d->rows.first ? refuse_rows(s, class) : NULL;
}

enum { ROOTS_MOST = 10000000 };

static double most_steps(const plan *p)
{
    uint32_t most = 1;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        most = p->leaf_classes[c].local_steps > most ? p->leaf_classes[c].local_steps : most;
    return most;
}

bool device_has_members(const sim *s)
{
    const leaf_class *class = &s->p->leaf_classes[0];
    const bool bent = penalty_vec_of(&class->rule.penalty).form > PENALTY_LINEAR || class->rule.schedule.over != 0;
    const bool boxed = class->loss.box < INFINITY && !loss_kind_of(&class->loss)->majorised;
    return s->p->split > 0 || s->p->n_leaf_classes > 1 || s->last || class->local_steps > 1 ||
           (!s->d->rows.first && (bent || boxed));
}

const char *device_refuses(const sim *s)
{
    if (!s)
        return "algorithm: only hfsad runs there";
    const plan *p = s->p;
    if (p->star)
        return "algorithm: star does not run there; set algorithm: hfsad";
    if (!s->d->rows.first && s->d->lanes != 8)
        return "a client's one row must have at most a few hundred features";
    if (p->aggregate)
        return "aggregate: trimmed and median are not supported";
    if (s->said || p->fixed)
        return "federation.wire must be double or delta";
    const char *reason = NULL;
    for (size_t c = 0; c < p->n_leaf_classes && !reason; c++)
        reason = refuse_class(s, &p->leaf_classes[c]);
    if (!reason && p->cycles)
        return "new cycles are not supported; set run.cycles: false";
    if (!reason && device_has_members(s) && (double)p->iterations * p->edge_rounds * most_steps(p) > ROOTS_MOST)
        return "overrides, participation below 1 and the like are supported for at most 10^7 steps of a client";
    return reason ? reason : refuse_links(s);
}

/* The rows of the clients that are there; they begin at row `from` of the data. */
static device_rows rows_for(sim *s, const struct sim_device *v)
{
    const row_table *rows = &s->d->rows;
    if (!rows->first)
        return (device_rows){0};
    const rows_solver *solver = &s->p->leaf_classes[0].solver;
    const size_t from = rows->first[v->leaf_first];
    return (device_rows){.n_rows = rows->first[v->leaf_end] - from,
                         .first = v->first,
                         .x = rows->x + from * s->M,
                         .y = rows->y + from,
                         .weight = rows->weight ? rows->weight + from : NULL,
                         .factor = s->many.factor + v->leaf_first,
                         .slope = s->many.slope + from,
                         .tolerance = solver->tolerance,
                         .sweeps = solver->sweeps,
                         .lanes = tree_lanes(s->M),
                         .visits = &s->spaces[0].visits};
}

/* Rows that were not needed on the host so far are drawn by the device alone. */
static device_draw draw_for(const sim *s, const struct sim_device *v)
{
    device_draw draw = {.first = v->leaf_first, .edges = s->d->n_inner - 1};
    if (s->d->generated && !generated_is_drawn(s->d->generated))
        draw.law = generated_features(s->d->generated, &draw.keep, &draw.clients);
    return draw;
}

/* The place of a run's first number. */
static size_t run_place(const sim *s, const run_of_leaves *run)
{
    return s->d->inner[run->parent].base + (size_t)run->first_slot * s->M;
}

/* Of several ranks, each has on its device what lies between the first and the last of its own clients. Returns the
 * place of the first number; *count: of numbers. */
static size_t find_share(const sim *s, struct sim_device *v, size_t *count)
{
    size_t from = SIZE_MAX, to = 0;
    v->leaf_first = SIZE_MAX;
    v->leaf_end = 0;
    for (const run_of_leaves *run = s->runs; run < s->runs + s->n_runs; run++) {
        const size_t leaf = run_first_leaf(s, run), at = run_place(s, run), end = at + run->count * s->M;
        if (!run->mine)
            continue;
        from = at < from ? at : from;
        to = end > to ? end : to;
        v->leaf_first = leaf < v->leaf_first ? leaf : v->leaf_first;
        v->leaf_end = leaf + run->count > v->leaf_end ? leaf + run->count : v->leaf_end;
    }
    if (from == SIZE_MAX)
        from = v->leaf_first = 0;
    *count = s->unit_u ? to - from : s->d->leaf_doubles;
    return s->unit_u ? from : 0;
}

/* Of this process on its machine. */
static uint32_t local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; ranks()->count > 1 && i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return (uint32_t)strtoul(getenv(names[i]), NULL, 10);
    return ranks()->rank;
}

static bool take_arrays(const sim *s, struct sim_device *v)
{
    const size_t leaves = v->leaf_end - v->leaf_first;
    v->runs = alloc_zero(s->n_runs, sizeof *v->runs);
    v->inner = alloc_zero(s->d->n_inner, sizeof *v->inner);
    v->rules = alloc_zero(1, sizeof *v->rules);
    v->figures = alloc_zero(s->n_runs, sizeof *v->figures);
    v->inner_dual = alloc_zero(s->d->n_inner, sizeof *v->inner_dual);
    v->dual = alloc_zero(leaves + 1, sizeof *v->dual);
    v->first = s->d->rows.first ? alloc_zero(leaves + 1, sizeof *v->first) : NULL;
    for (size_t i = 0; v->first && i <= leaves; i++)
        v->first[i] = s->d->rows.first[v->leaf_first + i] - s->d->rows.first[v->leaf_first];
    return v->runs && v->inner && v->rules && v->figures && v->inner_dual && v->dual && (v->first || !s->d->rows.first);
}

/* The pace of a class: the first with the same r(k). */
static uint32_t pace_of(const plan *p, size_t class)
{
    const hfsad_schedule *own = &p->leaf_classes[class].rule.schedule;
    for (size_t c = 0; c < class; c++)
        if (same_pace(&p->leaf_classes[c].rule.schedule, own))
            return (uint32_t)c;
    return (uint32_t) class;
}

static bool fill_members(sim *s, struct sim_device *v)
{
    const plan *p = s->p;
    const uint32_t steps = (uint32_t)most_steps(p);
    const size_t n = p->n_leaf_classes, rounds = (size_t)p->iterations * p->edge_rounds * steps + 3;
    if (!device_has_members(s))
        return true;
    v->classes = alloc_zero(n, sizeof *v->classes);
    v->roots = alloc_zero(n * rounds, sizeof *v->roots);
    if (!v->classes || !v->roots)
        return false;
    for (size_t c = 0; c < n; c++) {
        const leaf_class *class = &p->leaf_classes[c];
        v->classes[c] = (device_class){.loss = class->loss,
                                       .participation = class->participation,
                                       .tolerance = class->solver.tolerance,
                                       .sweeps = class->solver.sweeps,
                                       .local_steps = class->local_steps,
                                       .pace = pace_of(p, c)};
        for (size_t k = 0; k < rounds && v->classes[c].pace == c; k++)
            v->roots[c * rounds + k] = hfsad_schedule_root(&class->rule.schedule, k);
    }
    v->problem.members = (device_members){.n_classes = n,
                                          .classes = v->classes,
                                          .class_of = p->leaf_class_of ? p->leaf_class_of + v->leaf_first : NULL,
                                          .most_steps = steps,
                                          .k = s->k + v->leaf_first,
                                          .last = s->last ? s->last + v->leaf_first : NULL,
                                          .key = s->key ? s->key + v->leaf_first : NULL,
                                          .edge_rounds = p->edge_rounds,
                                          .at_least_every = (uint32_t)p->at_least_every,
                                          .n_paces = n,
                                          .n_roots = rounds,
                                          .roots = v->roots};
    return true;
}

/* One clock is enough for inner nodes of one pace that take part in every round. */
static bool take_clocks(const sim *s, struct sim_device *v)
{
    bool same = !plan_inner_sit_out(s->p, s->d->n_inner);
    for (size_t i = 2; i < s->d->n_inner; i++)
        same = same && same_pace(&s->p->inner[i].rule.schedule, &s->p->inner[1].rule.schedule);
    if (same)
        return true;
    v->clocks = alloc_zero(s->d->n_inner, sizeof *v->clocks);
    v->steps = alloc_zero(s->d->n_inner, 1);
    return v->clocks && v->steps;
}

static int precision_of(double split)
{
    int kind = PRECISION_BFLOAT16;
    while (precision_split((precision_kind)kind) != split)
        kind--;
    return kind;
}

static bool fill_device(sim *s, struct sim_device *v)
{
    const dataset *d = s->d;
    size_t numbers;
    const size_t from = find_share(s, v, &numbers);
    if (!take_arrays(s, v))
        return false;
    for (size_t r = 0; r < s->n_runs; r++) {
        const run_of_leaves *run = &s->runs[r];
        v->runs[r].parent = run->parent;
        if (run->mine)
            v->runs[r] = (device_run){.at = run_place(s, run) - from,
                                      .parent = run->parent,
                                      .leaf = (uint32_t)(run_first_leaf(s, run) - v->leaf_first),
                                      .count = run->count,
                                      .below_inner = run->parent != 0};
    }
    for (size_t i = 0; i < d->n_inner; i++)
        v->inner[i] = (device_node){.parent = d->inner[i].parent,
                                    .first_inner = d->inner[i].first_inner,
                                    .n_inner = d->inner[i].n_inner,
                                    .mine = s->inner[i].mine,
                                    .first_run = s->inner[i].first_run,
                                    .n_runs = s->inner[i].n_runs,
                                    .prior = penalty_for(&s->p->inner[i].prior)};
    v->problem = (device_problem){.M = s->M,
                                  .n_leaves = v->leaf_end - v->leaf_first,
                                  .leaf_doubles = numbers,
                                  .n_runs = s->n_runs,
                                  .n_inner = d->n_inner,
                                  .n_roots = 1,
                                  .n_rules = 1,
                                  .depth = d->depth,
                                  .rank = local_rank(),
                                  .level = s->level,
                                  .loss = s->p->leaf_classes[0].loss,
                                  .precision = precision_of(s->p->split),
                                  .split = s->p->split,
                                  .rules = v->rules,
                                  .x = d->x ? d->x + from : NULL,
                                  .y = d->y ? d->y + v->leaf_first : NULL,
                                  .n = d->n ? d->n + v->leaf_first : NULL,
                                  .runs = v->runs,
                                  .inner = v->inner,
                                  .z = s->z + from,
                                  .q = s->q + from,
                                  .w = s->w ? s->w + from : NULL,
                                  .inner_w = s->inner_w,
                                  .inner_z = s->inner_z,
                                  .inner_q = s->inner_q,
                                  .inner_dual = v->inner_dual,
                                  .dual = v->dual,
                                  .rows = rows_for(s, v),
                                  .draw = draw_for(s, v)};
    if (!fill_members(s, v) || !take_clocks(s, v))
        return false;
    find_rules(s, v);
    return true;
}

hfsad_status run_use_device(hfsad_run *run, const char *name, hfsad_error *err)
{
    return sim_use_device(run->sim, name, err);
}

hfsad_status sim_use_device(sim *s, const char *name, hfsad_error *err)
{
    char why[300];
    const char *reason = device_refuses(s);
    if (reason)
        return error_set(err, HFSAD_ERROR_INPUT, "device %s: %s", name, reason);
    const device_table *table = device_table_of(name, why, sizeof why);
    if (!table)
        return error_set(err, HFSAD_ERROR_INPUT, "device %s: %s", name, why);
    struct sim_device *v = alloc_zero(1, sizeof *v);
    if (!v || !fill_device(s, v)) {
        if (v)
            free_arrays(v);
        free(v);
        return error_memory(err, s->d->n_leaves * sizeof(double), "the device");
    }
    v->table = table;
    if (!table->open(&v->device, &v->problem, why, sizeof why)) {
        s->device = v;
        device_close(s);
        return error_set(err, HFSAD_ERROR_INPUT, "device %s: %s", name, why);
    }
    v->changed = true;
    s->device = v;
    return HFSAD_OK;
}
