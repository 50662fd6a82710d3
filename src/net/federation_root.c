/*
 * The root's side of a federation: plain code that asks all clients one question after another, and makes the
 * set-up's result from the answers. A root that is begun again finds in its store how far it had come: the result, or
 * the node with its state. The run itself is run_train's (cloud_engine.h).
 */
#include "net/federation_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "data/nodes.h"
#include "plan/method.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

static bool lets_go(const LINK_settings *link)
{
    return link->penalty >= (int)HFSAD_PENALTY_MCP; /* and scad, and those of norms */
}

/* Stages before the run are in lock step, with all clients. */
bool federation_may_leave_out(const federation *f)
{
    const hfsad_spec *s = f->spec;
    bool concave = lets_go(&s->link_client) || lets_go(&s->link_edge);
    for (size_t i = 0; i < s->n_overrides; i++)
        concave = concave || lets_go(&s->overrides[i].link);
    return s->federation.mode == MODE_ASYNC && !spec_is_fixed(s) && s->federation.stale != STALE_WAIT &&
           s->federation.join_seconds > 0 && s->run.tries <= 1 && !concave &&
           !(s->run.start && strcmp(s->run.start, "consensus") == 0);
}

void federation_leave_out(federation *f, size_t leaf)
{
    if (f->absent[leaf])
        return;
    f->absent[leaf] = 1;
    f->absent_list[f->n_absent++] = (double)dataset_number(f->shape, leaf);
}

/* ---- questions ---- */

typedef struct {
    federation *f;
    inquiry *q;
    const inquiry_turns *turns;
    uint64_t number; /* of the last question */
    size_t links;    /* of the tree */
    survey_cost cost;
    double constant;
    size_t n_columns;
    double *columns; /* room for 2 F */
} asker;

/* What `hfsad run` would not have to ask is not counted. */
static void count_cost(asker *a, const survey_question *q)
{
    if (q->kind == SURVEY_ENERGY || q->kind == SURVEY_MOMENTS)
        return;
    a->cost.questions++;
    a->cost.bytes_down += a->links * q->count * sizeof(double);
    a->cost.bytes_up += a->links * (q->most + q->sums) * sizeof(double);
}

/* With the members, once they are decided. */
static hfsad_status ask_members(asker *a, inquiry_question question, double *totals, hfsad_error *err)
{
    question.decided = a->f->decided;
    question.n_absent = a->f->n_absent;
    question.absent = a->f->absent_list;
    return inquiry_ask(a->q, ++a->number, &question, a->turns, totals, err);
}

static hfsad_status ask_survey(void *context, const survey_question *q, double *totals, hfsad_error *err)
{
    asker *a = context;
    const inquiry_question question = {.kind = (int)q->kind,
                                       .most = q->most,
                                       .sums = q->sums,
                                       .constant = a->constant,
                                       .n_columns = a->n_columns,
                                       .columns = a->columns,
                                       .count = q->count,
                                       .values = q->values};
    count_cost(a, q);
    return ask_members(a, question, totals, err);
}

/* What the columns are standardised by is asked for before anything else is. */
typedef struct {
    asker *a;
    size_t F;
    double *values; /* room for 1 + F */
} moments;

static hfsad_status ask_moments(void *context, const double *centre, bool squares, double *sums, hfsad_error *err)
{
    const moments *m = context;
    m->values[0] = squares;
    memcpy(m->values + 1, centre, m->F * sizeof *centre);
    const survey_question q = {SURVEY_MOMENTS, 1 + m->F, m->values, 0, 1 + 2 * m->F};
    return ask_survey(m->a, &q, sums, err);
}

static hfsad_status ask_columns(federation *f, asker *a, bool sparse, hfsad_error *err)
{
    const size_t F = features_count(f->shape);
    double *room = alloc_zero(2 + 3 * F, sizeof *room);
    if (!room)
        return error_memory(err, F * sizeof *room, "the columns' means");
    moments m = {a, F, room};
    const columns_search search = {F,  sparse,     f->spec->features.intercept != INTERCEPT_NONE, "the clients' data",
                                   &m, ask_moments};
    hfsad_status status = columns_find(&search, a->columns, a->columns + F, room + 1 + F, err);
    free(room);
    if (!status && !nodes_set_columns(f->shape, a->columns))
        status = error_memory(err, F * sizeof *room, "the columns' means");
    if (!status)
        a->n_columns = 2 * F;
    return status;
}

/* Clients that have not answered are not members. The decision is committed before the other clients are asked
 * anything, so that a restarted root asks the same questions. */
static hfsad_status decide_members(asker *a, const double *there, hfsad_error *err)
{
    federation *f = a->f;
    char name[HFSAD_TIERS_MAX * 256], *text = NULL;
    size_t size = 0, room = 0;
    hfsad_status status = HFSAD_OK;
    for (size_t leaf = 0; leaf <= f->shape->n_leaves && !f->decided && !status; leaf++) {
        const bool last = leaf == f->shape->n_leaves;
        if (!last && (dataset_is_later(f->shape, leaf) || there[dataset_number(f->shape, leaf)] > 0))
            continue;
        if (!last)
            nodes_name(f->shape, f->shape->n_inner + leaf, name, sizeof name);
        if (!alloc_grow((void **)&text, &room, size + sizeof name + 40, 1)) {
            status = error_memory(err, room, "the names of clients");
            continue;
        }
        size += (size_t)(last ? sprintf(text + size, "cloud begins %zu\n", f->shape->n_leaves - f->n_absent)
                              : sprintf(text + size, "cloud without %s\n", name));
        if (!last)
            federation_leave_out(f, leaf);
    }
    if (!status && text && f->lines)
        status = host_put_lines(f->lines, text, err);
    free(text);
    f->decided = !status;
    return status;
}

/* Into totals: 3 numbers. */
static hfsad_status ask_clients(federation *f, asker *a, double *totals, hfsad_error *err)
{
    const size_t each = federation_may_leave_out(f) ? f->shape->n_leaves - f->shape->n_later : 0;
    const inquiry_question shape = {
        .kind = INQUIRY_SHAPE, .most = 2, .sums = 1 + each, .count = f->n_prints, .values = f->prints};
    double *numbers = alloc_zero(3 + each, sizeof *numbers);
    if (!numbers)
        return error_memory(err, each * sizeof *numbers, "the clients");
    hfsad_status status = ask_members(a, shape, numbers, err);
    if (!status && each)
        status = decide_members(a, numbers + 3, err);
    memcpy(totals, numbers, 3 * sizeof *totals);
    free(numbers);
    return status;
}

static hfsad_status ask_shape(federation *f, asker *a, double *head, hfsad_error *err)
{
    double totals[3];
    const bool intercept = f->spec->features.intercept != INTERCEPT_NONE, standard = plan_standardizes(f->spec);
    hfsad_status status = ask_clients(f, a, totals, err);
    if (status)
        return status;
    if (!(totals[2] >= 1 && totals[2] <= 0x1p53))
        return error_set(err, HFSAD_ERROR_INPUT, "the clients report %g rows in total", totals[2]);
    head[MANY] = totals[0];
    head[ROWS] = totals[2];
    if (standard && (status = ask_columns(f, a, totals[1] > 0, err)))
        return status;
    rows_energy all = {0};
    if (intercept && !standard) {
        const survey_question energy = {SURVEY_ENERGY, 0, NULL, 0, 2};
        if ((status = ask_survey(a, &energy, totals, err)))
            return status;
        all = (rows_energy){totals[0], totals[1]};
    }
    head[COLUMNS] = (double)a->n_columns;
    if (intercept)
        a->constant = head[CONSTANT] = intercept_column(all, features_count(f->shape), standard);
    return HFSAD_OK;
}

/* ---- from answers to the result ---- */

static double at_most(double v)
{
    return v > DBL_MAX ? DBL_MAX : v;
}

/* start: its place in the result; scales.slope follows it. */
static hfsad_status ask_plan(federation *f, asker *a, double *head, double *start, hfsad_error *err)
{
    const surveyor all = {a, ask_survey};
    run_beginning b;
    const hfsad_status status = run_begin(&b, f->spec, f->shape, &all, start, err);
    plan_free(b.plan);
    free(b.start_kind);
    if (status)
        return status;
    const double found[] = {b.scales.omega,
                            b.scales.bend,
                            b.scales.noise,
                            b.scales.level ? -b.scales.length : b.scales.length,
                            b.rule.step.size > 0 ? b.rule.step.size : at_most(b.nu_f),
                            (double)a->cost.questions,
                            (double)a->cost.bytes_up,
                            (double)a->cost.bytes_down};
    memcpy(head + OMEGA, found, sizeof found);
    start[f->shape->M] = b.scales.slope;
    return HFSAD_OK;
}

/* All nodes take the result down before the root does. */
static hfsad_status announce(asker *a, const double *result, size_t count, hfsad_error *err)
{
    double told;
    const inquiry_question last = {.kind = INQUIRY_RESULT, .sums = 1, .count = count, .values = result};
    const hfsad_status status = ask_members(a, last, &told, err);
    return status ? status : inquiry_remember(a->q, result, count, err);
}

hfsad_status federation_set_up(federation *f, inquiry *q, const inquiry_turns *turns, hfsad_error *err)
{
    const size_t F = features_count(f->shape);
    double *numbers =
        alloc_zero(RESULT_HEAD + 2 * F + features_model(f->shape, 1) + 1 + f->shape->n_leaves, sizeof *numbers);
    if (!numbers)
        return error_memory(err, 3 * F * sizeof *numbers, "the result of the set-up");
    asker a = {.f = f, .q = q, .turns = turns, .links = dataset_links(f->shape), .columns = numbers + RESULT_HEAD};
    hfsad_status status = ask_shape(f, &a, numbers, err);
    if (!status && !nodes_settle(f->shape, numbers[MANY] > 0, a.constant, (size_t)numbers[ROWS]))
        status = error_memory(err, f->shape->n_leaves, "the clients");
    if (!status)
        status = ask_plan(f, &a, numbers, numbers + RESULT_HEAD + a.n_columns, err);
    const size_t count = RESULT_HEAD + a.n_columns + f->shape->M + lambda_is_wanted(f->spec);
    if (!status)
        memcpy(numbers + count, f->absent_list, f->n_absent * sizeof *numbers);
    if (!status)
        status = announce(&a, numbers, count + f->n_absent, err);
    free(numbers);
    return status;
}

/* ---- before the run ---- */

/* What an earlier life has decided. */
static void take_line(void *context, const char *line)
{
    static const char without[] = "cloud without ";
    federation *f = context;
    f->decided = f->decided || strncmp(line, "cloud begins ", 13) == 0;
    if (strncmp(line, without, sizeof without - 1) != 0)
        return;
    const size_t number = nodes_find(f->shape, line + sizeof without - 1);
    if (number != SIZE_MAX && number >= f->shape->n_inner)
        federation_leave_out(f, number - f->shape->n_inner);
}

/* Clients that joined the list later, as far as the record already has them. */
typedef struct {
    const federation *f;
    uint8_t *noted; /* by leaf */
} latecomers;

static void take_later(void *context, const char *line)
{
    static const char later[] = "cloud later ";
    const latecomers *l = context;
    if (strncmp(line, later, sizeof later - 1) != 0)
        return;
    const size_t number = nodes_find(l->f->shape, line + sizeof later - 1);
    if (number != SIZE_MAX && number >= l->f->shape->n_inner)
        l->noted[number - l->f->shape->n_inner] = 1;
}

static hfsad_status note_later(const federation *f, host *h, hfsad_error *err)
{
    char name[HFSAD_TIERS_MAX * 256], line[sizeof name + 20];
    const latecomers l = {f, alloc_zero(f->shape->n_leaves, 1)};
    if (!f->shape->n_later || !l.noted) {
        free(l.noted);
        return f->shape->n_later ? error_memory(err, f->shape->n_leaves, "the clients") : HFSAD_OK;
    }
    hfsad_status status = host_get_lines(h, take_later, (void *)&l, err);
    for (size_t leaf = 0; leaf < f->shape->n_leaves && !status; leaf++) {
        if (!dataset_is_later(f->shape, leaf) || l.noted[leaf])
            continue;
        nodes_name(f->shape, f->shape->n_inner + leaf, name, sizeof name);
        snprintf(line, sizeof line, "cloud later %s\n", name);
        status = host_put_lines(h, line, err);
    }
    free(l.noted);
    return status;
}

hfsad_status federation_play(federation *f, host *h, const inquiry_turns *turns, hfsad_error *err)
{
    const hfsad_status noted = note_later(f, h, err);
    if (noted || host_node(h, 0))
        return noted;
    hfsad_status status = federation_may_leave_out(f) ? host_get_lines(h, take_line, f, err) : HFSAD_OK;
    f->lines = h;
    if (!status)
        status = federation_set_up(f, host_inquiry(h, 0), turns, err);
    f->lines = NULL;
    return status ? status : host_set_up(h, err);
}
