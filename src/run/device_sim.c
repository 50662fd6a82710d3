/* A run whose rounds are a device's: see device.h. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/ranks.h"
#include "core/draw.h"
#include "math/loss_kind.h"
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
    device_figures *figures;
    double *inner_dual, *dual;
    size_t *first;                /* of the rows of its clients */
    size_t leaf_first, leaf_end;  /* the clients that are there */
    device_round round;           /* the last */
    uint32_t k;                   /* of all clients' links, and of all inner nodes' */
    bool changed;                 /* the state here is newer than the device's */
    bool ahead;                   /* the other way round */
    char failure[300];            /* of the device, after which nothing is asked of it; "": none */
};

/* Rules may change with the safeguard's repairs. */
static void find_rules(sim *s, struct sim_device *v)
{
    v->rules[0] = rule_for(sim_leaf_rule(s, &s->p->leaf_classes[0]));
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

void device_play(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (v->changed) {
        v->k = s->k[0];
        find_rules(s, v);
        note(v, v->table->put(v->device, &v->problem, why, sizeof why), why);
        v->changed = false;
    }
    v->k++;
    const hfsad_schedule *inner = s->d->n_inner > 1 ? &v->inner[1].rule.schedule : &v->rules[0].schedule;
    const uint32_t k = s->d->n_inner > 1 ? ++s->inner[1].k : 0;
    v->round = (device_round){clock_of(&v->rules[0].schedule, v->k), clock_of(inner, k ? k : 1), s->want_dual};
    if (!v->failure[0])
        note(v, v->table->round(v->device, &v->round, why, sizeof why), why);
    v->ahead = true;
    for (size_t r = 0; r < s->n_runs; r++) {
        s->runs[r].stepped = s->runs[r].count;
        s->runs[r].first_time = s->first_round ? s->runs[r].count : 0;
        s->runs[r].dual = 0;
    }
    for (size_t i = 1; i < s->d->n_inner; i++) {
        inner_state *state = &s->inner[i];
        const uint32_t before = state->last;
        state->k = k;
        state->stepped =
            draw_takes_part(1, state->key, s->round + 1, s->p->edge_rounds, s->p->at_least_every, &state->last);
        state->first_time = before < s->iteration;
    }
    count_round(s);
    s->round++;
}

static void take_inner_duals(sim *s)
{
    for (size_t i = 1; i < s->d->n_inner; i++)
        s->inner[i].dual = s->device->inner_dual[i];
}

/* The cloud of several ranks steps here, on the messages of all; of one rank there. The safeguard needs the edges' links
 * after every iteration. */
bool device_step_cloud(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v || v->failure[0])
        return false;
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

/* exp and log of these losses' values are libm's. */
static bool measures(const hfsad_loss *loss)
{
    return loss->kind != HFSAD_LOSS_LOGISTIC && loss->kind != HFSAD_LOSS_POISSON;
}

bool device_measure(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v || !v->ahead || v->failure[0] || s->here || !measures(&v->problem.loss))
        return false;
    note(v, v->table->measure(v->device, &v->problem, &v->round, v->figures, why, sizeof why), why);
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
        s->runs[r].dual = v->round.want_dual || s->many.dual ? f->dual : 0;
    }
    return true;
}

void device_collect(sim *s)
{
    struct sim_device *v = s->device;
    char why[300] = "";
    if (!v || !v->ahead || v->failure[0])
        return;
    note(v, v->table->fetch(v->device, &v->problem, true, why, sizeof why), why);
    take_inner_duals(s);
    for (size_t leaf = v->leaf_first; leaf < v->leaf_end; leaf++)
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

static const char *refuse_inner(const sim *s)
{
    const plan *p = s->p;
    bool group = penalty_kind_of(&p->leaf_classes[0].rule.penalty)->group;
    for (size_t i = 1; i < s->d->n_inner; i++)
        group = group || penalty_kind_of(&p->inner[i].rule.penalty)->group;
    if (group)
        return "links group-mcp and group-scad are not supported";
    for (size_t i = 1; i < s->d->n_inner; i++) {
        const hfsad_schedule *a = &p->inner[i].rule.schedule, *b = &p->inner[1].rule.schedule;
        if (a->growth != b->growth || a->turn != b->turn)
            return "all edges must have the same schedule";
    }
    return s->d->inner[0].n_leaves ? "clients directly below the cloud are not supported" : NULL;
}

/* Many rows per client. */
static const char *refuse_rows(const sim *s)
{
    enum { FEATURES_MOST = 512 };
    const leaf_class *class = &s->p->leaf_classes[0];
    if (s->d->rows.start || s->d->rows.pages || s->d->rows.constant != 0 || s->d->classes || s->M > FEATURES_MOST)
        return "rows must be dense and in memory, of at most 512 features, without an intercept";
    if (class->loss.box < INFINITY || rows_anchored(&class->loss) || class->solver.method != ROWS_EXACT)
        return "phase-retrieval, loss.box and solver: linearized are not supported with many rows per client";
    return s->many.squared ? "the squared loss is not supported with many rows per client" : NULL;
}

const char *device_refuses(const sim *s)
{
    if (!s)
        return "algorithm: only hfsad runs there";
    const plan *p = s->p;
    const hfsad_loss *loss = &p->leaf_classes[0].loss;
    const hfsad_link_rule *rule = &p->leaf_classes[0].rule;
    if (p->star)
        return "algorithm: star does not run there; set algorithm: hfsad";
    if (!s->d->rows.first && s->d->lanes != 8)
        return "a client's one row must have at most a few hundred features";
    if (p->n_leaf_classes != 1 || s->absences || p->leaf_classes[0].local_steps != 1)
        return "overrides, run.participation below 1 and run.local_steps above 1 are not supported";
    if (loss->kind == HFSAD_LOSS_OWN)
        return "own losses are not supported";
    if (loss->box < INFINITY && !loss_kind_of(loss)->majorised)
        return "loss.box is supported for phase-retrieval only";
    if (!s->d->rows.first && (penalty_vec_of(&rule->penalty).form > PENALTY_LINEAR || rule->schedule.over != 0))
        return "links of clients with one row must be tv";
    if (p->aggregate)
        return "aggregate: trimmed and median are not supported";
    if (s->said || p->fixed)
        return "federation.wire must be double or delta";
    const char *reason = s->d->rows.first ? refuse_rows(s) : NULL;
    if (!reason && p->cycles)
        return "new cycles are not supported; set run.cycles: false";
    return reason ? reason : refuse_inner(s);
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
    return v->runs && v->inner && v->rules && v->figures && v->inner_dual && v->dual &&
           (v->first || !s->d->rows.first);
}

static bool fill(sim *s, struct sim_device *v)
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
                                      .count = run->count};
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
                                  .rows = rows_for(s, v)};
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
    if (!v || !fill(s, v)) {
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
