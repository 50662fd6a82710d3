#define _POSIX_C_SOURCE 200809L
#include "net/federation_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "data/nodes.h"
#include "net/topic.h"
#include "plan/baseline_step.h"
#include "plan/cohort.h"
#include "plan/labels.h"
#include "plan/method.h"
#include "plan/refusal.h"
#include "spec/pack.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- set-up ---- */

/* What may differ from machine to machine. */
static bool is_private(const char *key)
{
    return !strcmp(key, "data") || !strcmp(key, "truth") || !strcmp(key, "federation.nodes") ||
           (!strncmp(key, "output.", 7) && strcmp(key, "output.clients") != 0);
}

static hfsad_status take_prints(federation *f, hfsad_error *err)
{
    const size_t settings = spec_prints_count();
    f->n_prints = settings + 1;
    f->prints = alloc_zero(f->n_prints, sizeof *f->prints);
    const uint64_t nodes = nodes_print(f->shape);
    if (!nodes || !f->prints)
        return error_memory(err, f->n_prints * sizeof *f->prints, "the prints of the spec");
    spec_prints(f->spec, is_private, f->prints);
    f->prints[settings] = (double)(nodes >> 12);
    f->run = 1;
    for (size_t i = 0; i < f->n_prints; i++)
        f->run = words_sum_add(f->run, (uint64_t)f->prints[i]);
    return HFSAD_OK;
}

static hfsad_status check_spec(const hfsad_spec *spec, hfsad_error *err)
{
    if (!topic_run_valid(spec->federation.name))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "federation.name: \"%.100s\" cannot be the name of a run: it must be one level of a topic, "
                         "without + and #, of at most %d bytes",
                         spec->federation.name, TOPIC_RUN_MAX - 1);
    const char *wrong = algorithm_of(spec)->refuses_federation(spec);
    if (!wrong && spec->federation.mode == MODE_ASYNC &&
        (spec->participation.client < 1 || spec->participation.edge < 1))
        wrong = TREE_ASYNC_DRAWS;
    return wrong ? error_set(err, HFSAD_ERROR_INPUT, "%s", wrong) : refusal_check(spec, err);
}

hfsad_status federation_create(federation **out, const hfsad_spec *spec, dataset *shape, hfsad_error *err)
{
    federation *f = alloc_zero(1, sizeof *f);
    *out = NULL;
    if (!f) {
        dataset_free(shape);
        return error_memory(err, sizeof *f, "a federation");
    }
    f->spec = spec;
    f->shape = shape;
    f->shape->classes = spec_scores(spec);
    f->own = alloc_zero(shape->n_leaves, sizeof *f->own);
    f->lives = alloc_zero(shape->n_leaves, sizeof *f->lives);
    f->absent = alloc_zero(shape->n_leaves, sizeof *f->absent);
    f->absent_list = alloc_zero(shape->n_leaves, sizeof *f->absent_list);
    f->guards = alloc_zero(shape->n_leaves, sizeof *f->guards);
    hfsad_status status = f->own && f->lives && f->absent && f->absent_list && f->guards
                              ? check_spec(spec, err)
                              : error_memory(err, shape->n_leaves, "the clients");
    for (size_t leaf = 0; f->own && leaf < shape->n_leaves; leaf++)
        f->own[leaf] = SIZE_MAX;
    for (size_t leaf = 0; !status && leaf < shape->n_leaves; leaf++)
        f->absent[leaf] = dataset_is_later(shape, leaf);
    if (!status && shape->n_later && (!federation_may_leave_out(f) || spec_is_fixed(spec)))
        status = error_set(
            err, HFSAD_ERROR_INPUT,
            "the list of nodes: clients can come later only if federation.mode is async, with stale "
            "go_on, federation.join_seconds above 0 and sums of doubles, without run.tries and a consensus start");
    if (!status)
        status = take_prints(f, err);
    if (status)
        federation_free(f);
    else
        *out = f;
    return status;
}

static bool is_in_place(const federation *f)
{
    return f->rows && f->standard.rows.x && f->standard.rows.x == f->rows->rows.x;
}

void federation_free(federation *f)
{
    if (!f)
        return;
    if (f->surveys)
        local_survey_free(&f->survey);
    polish_forget(f);
    for (size_t leaf = 0; f->guards && leaf < f->shape->n_leaves; leaf++)
        warden_free(f->guards[leaf]);
    free(f->guards);
    kept_groups_free(&f->groups);
    plan_free(f->p);
    plan_free(f->tied);
    dataset_free(f->shape);
    if (!is_in_place(f))
        columns_free(&f->standard.rows);
    dataset_free(f->raw);
    dataset_free(f->rows);
    free(f->standard_by);
    free(f->own);
    vault_free(f->vault);
    free(f->noises);
    free(f->lives);
    free(f->absent);
    free(f->absent_list);
    free(f->prints);
    free(f->result);
    free(f);
}

/* Questions find the shape with the intercept's column in it. */
static hfsad_status open_survey(federation *f, double constant, hfsad_error *err)
{
    if (f->surveys && f->shape->rows.constant == constant)
        return HFSAD_OK;
    if (f->surveys)
        local_survey_free(&f->survey);
    f->surveys = false;
    if (constant != 0 && !nodes_settle(f->shape, true, constant, f->shape->n_rows))
        return error_memory(err, f->shape->n_leaves, "the clients");
    const hfsad_status status = local_survey_make(&f->survey, f->spec, f->shape, err);
    f->surveys = !status;
    return status;
}

static client_rows rows_of(const federation *f, size_t leaf, const inquiry_question *question)
{
    const dataset *as_they_came = f->raw ? f->raw : f->rows;
    client_rows rows = dataset_rows(question->n_columns ? &f->standard : as_they_came, f->own[leaf]);
    rows.constant = question->constant;
    return rows;
}

/* The last columns of sparse rows may be empty. */
static void widen(const federation *f, dataset *rows)
{
    if (rows->rows.start)
        rows->rows.F = rows->M = features_count(f->shape);
}

static void forget_raw(federation *f)
{
    dataset_free(f->raw);
    f->raw = NULL;
}

static bool are_same(const dataset *a, const dataset *b)
{
    return a->n_leaves == b->n_leaves && a->n_rows == b->n_rows && !a->rows.start == !b->rows.start &&
           features_count(a) == features_count(b) &&
           memcmp(a->rows.first, b->rows.first, (a->n_leaves + 1) * sizeof *a->rows.first) == 0 &&
           labels_same(a->rows.y, b->rows.y, a->n_rows) &&
           (!a->rows.start || memcmp(a->rows.start, b->rows.start, (a->n_rows + 1) * sizeof *a->rows.start) == 0);
}

static hfsad_status take_raw(federation *f, hfsad_error *err)
{
    dataset *d = NULL;
    const hfsad_status status = f->read(f->read_context, &d, err);
    if (status)
        return status;
    widen(f, d);
    if (are_same(d, f->rows)) {
        memcpy(d->rows.y, f->rows->rows.y, d->n_rows * sizeof *d->rows.y);
        f->raw = d;
        return HFSAD_OK;
    }
    dataset_free(d);
    return error_set(err, HFSAD_ERROR_INPUT,
                     "the rows have changed since they were read at the start; restart this process");
}

static hfsad_status read_again(federation *f, hfsad_error *err)
{
    const hfsad_status status = f->raw ? HFSAD_OK : take_raw(f, err);
    if (status && !f->is_broken) {
        f->is_broken = true;
        f->broken = *err;
    }
    return status;
}

static hfsad_status standardise_in_place(federation *f, const double *columns, hfsad_error *err)
{
    const size_t F = features_count(f->shape);
    const hfsad_status status = is_in_place(f) ? read_again(f, err) : HFSAD_OK;
    if (status)
        return status;
    if (f->raw) {
        double *old = f->rows->rows.x;
        f->rows->rows.x = f->raw->rows.x;
        f->raw->rows.x = old;
    }
    forget_raw(f);
    columns_standardise_here(&f->rows->rows, f->rows->n_rows, columns, columns + F);
    memcpy(f->standard_by, columns, 2 * F * sizeof *columns);
    f->standard = *f->rows;
    return HFSAD_OK;
}

/* A root that begins again asks for the rows as they came, so both are kept if they cannot be read again. A question
 * that a broker remembers of an earlier run may have had other columns; with a result there are nodes that read the
 * table. */
static hfsad_status standardise(federation *f, const double *columns, size_t count, hfsad_error *err)
{
    const size_t F = features_count(f->shape), bytes = 2 * F * sizeof *columns;
    row_table made;
    if (count == 0)
        return HFSAD_OK;
    if (count != 2 * F)
        return error_set(err, HFSAD_ERROR_INPUT, "%zu numbers to standardise %zu columns by: another version's", count,
                         F);
    if (f->standard.rows.x && memcmp(f->standard_by, columns, bytes) == 0) {
        forget_raw(f);
        return HFSAD_OK;
    }
    if (f->result)
        return error_set(err, HFSAD_ERROR_INPUT, "columns are standardised in another way than for training");
    if (!f->standard_by && !(f->standard_by = alloc_zero(2 * F, sizeof *columns)))
        return error_memory(err, bytes, "the columns' means");
    if (f->read && !f->rows->rows.pages)
        return standardise_in_place(f, columns, err);
    columns_free(&f->standard.rows);
    const hfsad_status status = columns_standardise(&made, &f->rows->rows, f->rows->n_rows, columns, columns + F, err);
    if (status)
        return status;
    memcpy(f->standard_by, columns, bytes);
    f->standard = *f->rows;
    f->standard.rows = made;
    return HFSAD_OK;
}

/* ---- rows ---- */

static hfsad_status check_labels(federation *f, size_t leaf, const char *name, label_signs *found, hfsad_error *err)
{
    survey_client c;
    const hfsad_status status = survey_client_make(&f->survey, leaf, rows_of(f, leaf, &(inquiry_question){0}), &c, err);
    if (!status)
        labels_settle_leaf(f->rows, f->own[leaf], &c.loss, f->shape->classes, found);
    for (size_t r = 0; !status && r < c.rows.count; r++)
        if (!scores_fit(&c.loss, f->shape->classes, c.rows.y[r]))
            return error_set(err, HFSAD_ERROR_INPUT, "%s: row %zu has y = %g: this loss takes %s", name, r + 1,
                             c.rows.y[r], scores_take(&c.loss, f->shape->classes));
    return status;
}

/* Usually the clients arrive in the order of the list. */
static size_t find_from(const dataset *d, size_t guess, const char *path)
{
    char name[HFSAD_TIERS_MAX * 256];
    if (guess >= d->n_inner && guess < d->n_inner + d->n_leaves) {
        nodes_name(d, guess, name, sizeof name);
        if (strcmp(name, path) == 0)
            return guess;
    }
    return nodes_find(d, path);
}

hfsad_status federation_take_rows(federation *f, dataset *rows, const char *name, hfsad_error *err)
{
    const size_t F = features_count(f->shape);
    char path[HFSAD_TIERS_MAX * 256];
    f->rows = rows;
    if (features_count(rows) != F && !(rows->rows.start && features_count(rows) < F))
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: %zu feature%s; the federation has %zu", name,
                         features_count(rows), features_count(rows) == 1 ? "" : "s", F);
    widen(f, rows);
    hfsad_status status = features_check_names(rows, name, f->shape->feature_names, "the list of nodes", err);
    if (!status)
        status = open_survey(f, 0, err);
    size_t number = f->shape->n_inner - 1;
    label_signs found = {0};
    for (size_t leaf = 0; leaf < rows->n_leaves && !status; leaf++) {
        dataset_leaf_name(rows, leaf, path, sizeof path);
        number = find_from(f->shape, number + 1, path);
        if (number == SIZE_MAX || number < f->shape->n_inner)
            continue;
        f->own[number - f->shape->n_inner] = leaf;
        const client_rows own = dataset_rows(rows, leaf);
        status = refusal_check_rows(f->spec, path, &own, err);
        if (status)
            return status;
        status = check_labels(f, number - f->shape->n_inner, path, &found, err);
    }
    return status ? status : labels_check(&found, err);
}

void federation_set_reader(federation *f, federation_reader *read, void *context)
{
    f->read = read;
    f->read_context = context;
}

const hfsad_error *federation_broken(const federation *f)
{
    return f->is_broken ? &f->broken : NULL;
}

bool federation_has_rows(const federation *f, size_t leaf)
{
    return f->own[leaf] != SIZE_MAX;
}

/* ---- questions ---- */

/* As the simulator would keep them. */
static bool needs_table(const federation *f, const client_rows *rows)
{
    return rows->count > 1 || rows->start || rows->weight || f->spec->features.intercept != INTERCEPT_NONE ||
           plan_standardizes(f->spec) || algorithm_of(f->spec)->as_rows;
}

/* The intercept's column changes the shape, on which nodes rely once there is a result. */
static bool has_good_constant(const federation *f, const inquiry_question *question)
{
    return question->constant == 0 ||
           (f->spec->features.intercept != INTERCEPT_NONE && (!f->result || question->constant == f->outcome.constant));
}

static const char *why_not(void *context)
{
    const seat *at = context;
    return at->why_not;
}

/* Rows of the client; if `sums` has room for all clients, also which client it is. */
static bool answer_shape(const seat *at, const inquiry_question *question, const client_rows *rows, double *numbers)
{
    const federation *f = at->f;
    const size_t all = f->shape->n_leaves - f->shape->n_later;
    if (question->most != 2 || (question->sums != 1 && question->sums != 1 + all))
        return false;
    if (question->sums > 1)
        memset(numbers + 3, 0, all * sizeof *numbers);
    if (question->sums > 1 && !dataset_is_later(f->shape, at->leaf))
        numbers[3 + dataset_number(f->shape, at->leaf)] = 1;
    const bool noise = spec_has_noise(f->spec); /* then the answer is the same for all rows */
    numbers[0] = noise || needs_table(f, rows);
    numbers[1] = !noise && rows->start != NULL;
    numbers[2] = noise ? 1 : (double)rows->count;
    return true;
}

static bool answer(void *context, const inquiry_question *question, double *numbers)
{
    seat *at = context;
    federation *f = at->f;
    hfsad_error err;
    const size_t M = question->kind >= INQUIRY_POLISH   ? f->shape->M
                     : question->kind == SURVEY_MOMENTS ? features_count(f->shape)
                                                        : features_model(f->shape, question->constant);
    warden **guard = &f->guards[at->leaf];
    if (!*guard && !(*guard = alloc_zero(1, sizeof **guard)))
        return false; /* it will be asked again */
    at->why_not = warden_judge(*guard, f->spec, question, M, f->result != NULL);
    if (at->why_not)
        return false;
    if (question->kind >= INQUIRY_GROUPS)
        return personal_client_answer(at, question, numbers);
    if (question->kind >= INQUIRY_POLISH)
        return polish_client_answer(at, question, numbers);
    if (!has_good_constant(f, question) || standardise(f, question->columns, question->n_columns, &err))
        return false;
    if (!question->n_columns && question->kind != INQUIRY_SHAPE && is_in_place(f) && read_again(f, &err))
        return false;
    const client_rows rows = rows_of(f, at->leaf, question);
    if (question->kind == INQUIRY_SHAPE)
        return answer_shape(at, question, &rows, numbers);
    const survey_question q = {(survey_kind)question->kind, question->count, question->values, question->most,
                               question->sums};
    survey_client client;
    if (open_survey(f, question->constant, &err) || !survey_question_fits(&q, M) ||
        survey_client_make(&f->survey, at->leaf, rows, &client, &err))
        return false;
    survey_answer(&client, &q, numbers);
    return true;
}

/* ---- from the result to nodes ---- */

/* What a plan's run begins from, as the spec names it. */
static const char *federation_kind_of(const federation *f, const plan *p)
{
    return run_start_kind(f->spec, p, f->shape->n_inner);
}

static bool federation_is_consensus(const federation *f, const plan *p)
{
    return strcmp(federation_kind_of(f, p), "consensus") == 0;
}

char *federation_start_kind(const federation *f)
{
    return spec_find_start(f->spec, federation_kind_of(f, f->p));
}

/* The plans of the stages before the run. */
static hfsad_status plan_stages(federation *f, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    if (federation_is_consensus(f, f->p))
        status = plan_resolve(&f->tied, f->spec, f->shape, &f->outcome.scales, true, err);
    if (f->tied)
        f->tied->iterations = f->tied->trace_every = START_CONSENSUS_ITERATIONS;
    f->trial = *f->p;
    f->trial.iterations = f->trial.trace_every = START_TRY_ITERATIONS;
    return status;
}

static hfsad_status take_result(federation *f, const double *result, size_t count, hfsad_error *err)
{
    if (f->result)
        return HFSAD_OK;
    const size_t F = features_count(f->shape), columns = count > RESULT_HEAD && result[COLUMNS] > 0 ? 2 * F : 0;
    const bool slope = lambda_is_wanted(f->spec);
    const size_t own =
        count < RESULT_HEAD ? 0 : RESULT_HEAD + columns + features_model(f->shape, result[CONSTANT]) + slope;
    if (own == 0 || count < own || count - own > f->shape->n_leaves)
        return error_set(err, HFSAD_ERROR_INPUT, "the result of the set-up has %zu numbers: another version's", count);
    hfsad_status status = f->rows ? standardise(f, result + RESULT_HEAD, columns, err) : HFSAD_OK;
    if (status)
        return status;
    f->result = alloc_zero(count, sizeof *result);
    if (!f->result || !nodes_settle(f->shape, result[MANY] > 0, result[CONSTANT], (size_t)result[ROWS]))
        return error_memory(err, count * sizeof *result, "the result of the set-up");
    if (columns && !nodes_set_columns(f->shape, result + RESULT_HEAD))
        return error_memory(err, count * sizeof *result, "the columns' means");
    memcpy(f->result, result, count * sizeof *result);
    f->n_result = count;
    for (size_t i = own; i < count; i++)
        if (result[i] >= 0 && result[i] < (double)(f->shape->n_leaves - f->shape->n_later))
            federation_leave_out(f, dataset_leaf(f->shape, (size_t)result[i]));
    f->outcome = (federation_result){
        .scales = {.omega = result[OMEGA],
                   .bend = result[BEND],
                   .noise = result[NOISE],
                   .length = fabs(result[LENGTH]),
                   .slope = slope ? result[own - 1] : 0,
                   .level = signbit(result[LENGTH])}, /* below 0: every y is the same */
        .nu_f = result[NU_F] >= DBL_MAX ? INFINITY : result[NU_F],
        .cost = {(uint64_t)result[QUESTIONS], (uint64_t)result[BYTES_UP], (uint64_t)result[BYTES_DOWN]},
        .many = result[MANY] > 0,
        .constant = result[CONSTANT],
        .n_rows = (size_t)result[ROWS],
        .start = f->result + RESULT_HEAD + columns,
    };
    status = plan_resolve(&f->p, f->spec, f->shape, &f->outcome.scales, false, err);
    if (status || (status = plan_stages(f, err)))
        return status;
    const bool links = algorithm_of(f->spec)->links;
    f->rule = baseline_rule_with(f->spec, f->p, result[NU_F]);
    f->t = (tree){.d = f->shape,
                  .p = f->p,
                  .start = f->outcome.start,
                  .rows = columns && f->rows ? &f->standard : f->rows,
                  .own = f->own,
                  .intercept = f->spec->features.intercept,
                  .run = f->run,
                  .tied = f->tied,
                  .average = links ? NULL : &f->rule,
                  .trial = links && f->spec->run.tries > 1 ? &f->trial : NULL,
                  .tries = (uint64_t)f->spec->run.tries,
                  .out = f->n_absent || f->shape->n_later ? f->absent : NULL,
                  .polish = federation_end_numbers(f, f->p),
                  .noise = f->noises};
    return tree_settings(&f->t, f->spec, err);
}

hfsad_status federation_make(void *context, const char *path, const double *result, size_t count, node **n,
                             hfsad_error *err)
{
    federation *f = context;
    *n = NULL;
    const hfsad_status status = take_result(f, result, count, err);
    if (status)
        return status;
    const size_t number = nodes_find(f->shape, path);
    if (number >= f->shape->n_inner && plan_leaf(f->p, number - f->shape->n_inner)->loss.kind == HFSAD_LOSS_OWN &&
        !f->spec->own.value)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s: loss.kind: own, but its program supplies no loss (hfsad_spec_own_loss)", path);
    return tree_node(n, &f->t, number, err);
}

bool federation_knows(const void *context, const char *path)
{
    const federation *f = context;
    const size_t number = nodes_find(f->shape, path);
    return number != SIZE_MAX && number >= f->shape->n_inner;
}

void federation_note_life(void *context, const char *path, uint64_t life)
{
    federation *f = context;
    const size_t number = nodes_find(f->shape, path);
    if (number != SIZE_MAX && number >= f->shape->n_inner)
        f->lives[number - f->shape->n_inner] = life;
}

static size_t message_most(const federation *f)
{
    const size_t M = features_model(f->shape, 1), survey = 4 * M + SURVEY_THRESHOLDS + RESULT_HEAD + 8;
    const size_t groups_of = algorithm_of(f->spec)->find_rule ? baseline_step_groups(f->shape) : 0,
                 curve = groups_of * (M + 1) + 8, questions = survey > curve ? survey : curve,
                 setup = questions > f->n_prints ? questions : f->n_prints, polish = polish_message_most(f),
                 groups = personal_message_most(f), end = polish > groups ? polish : groups,
                 most = setup > end ? setup : end;
    return INQUIRY_HEAD + (most > INQUIRY_WHY_MOST ? most : INQUIRY_WHY_MOST) +
           (federation_may_leave_out(f) ? 2 * f->shape->n_leaves : 0);
}

/* Numbers of the list of the most children of a node. */
static size_t cards_most(const federation *f)
{
    size_t most = 0;
    for (size_t i = 0; i < f->shape->n_inner && spec_is_secure(f->spec); i++)
        most = tree_children(f->shape, i) > most ? tree_children(f->shape, i) : most;
    return most ? 16 + most * (VEIL_CARD_MOST / 4) : 0;
}

size_t federation_message_most(const federation *f)
{
    const dataset *d = f->shape;
    const size_t M = features_model(d, 1), nodes = d->n_inner + d->n_leaves,
                 models = nodes * M < NODE_PART ? nodes * M
                          : M > NODE_PART       ? M
                                                : NODE_PART;
    const size_t records = f->spec->federation.mode == MODE_ASYNC ? NODE_RECORD_NUMBERS : 0,
                 all[] = {message_most(f), 2 * M + 2, models, 2 * nodes + 1, tally_numbers(d->depth), records};
    size_t most = HOST_STATUS_NUMBERS;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        most = all[i] > most ? all[i] : most;
    if (spec_is_fixed(f->spec) && inquiry_words_most(message_most(f)) > most)
        most = inquiry_words_most(message_most(f));
    return most > cards_most(f) ? most : cards_most(f);
}

hfsad_status federation_inquiry(federation *f, size_t number, inquiry **q, void **context, hfsad_error *err)
{
    const dataset *d = f->shape;
    seat *at = alloc_zero(1, sizeof *at);
    *q = NULL;
    if (!at)
        return error_memory(err, sizeof *at, "a node");
    at->f = f;
    at->leaf = number < d->n_inner ? 0 : number - d->n_inner;
    *context = at;
    const inquiry_setup setup = {
        .run = f->run,
        .n_children = tree_children(d, number),
        .n_inner = number < d->n_inner ? d->inner[number].n_inner : 0,
        .first_leaf = number < d->n_inner ? dataset_number(d, d->inner[number].first_leaf) : 0,
        .n_later = number < d->n_inner ? d->inner[number].n_leaves - dataset_counted(d, number) : 0,
        .answer_ms = number < d->n_inner ? tree_answer_ms(f->spec, d->depth - d->inner[number].depth) : 0,
        .join_ms = federation_may_leave_out(f) ? (uint32_t)(fmin(f->spec->federation.join_seconds, 1e6) * 1000) : 0,
        .most = message_most(f),
        .patience = tree_patience(d),
        .context = at,
        .answer = number < d->n_inner ? NULL : answer,
        .why = why_not,
        .root = number == 0,
        .fixed = spec_is_fixed(f->spec),
        .secure = spec_is_secure(f->spec),
    };
    return inquiry_create(q, &setup, err);
}

static char **child_names(const dataset *d, size_t number, size_t *count)
{
    char name[HFSAD_TIERS_MAX * 256];
    *count = tree_children(d, number);
    char **names = alloc_zero(*count, sizeof *names);
    for (size_t c = 0; names && c < *count; c++) {
        nodes_name(d, tree_child(d, number, c), name, sizeof name);
        if (!(names[c] = strdup(name)))
            *count = c;
    }
    return names;
}

/* ---- secure aggregation ---- */

/* The cohort of a node: its first member and their number; 1: it is in none. */
static size_t cohort_at(const federation *f, size_t number, size_t *first)
{
    const dataset *d = f->shape;
    const plan rule = {.cohort = spec_cohort(f->spec)};
    *first = number;
    if (!spec_is_secure(f->spec) || number == 0)
        return 1;
    const inner_node *parent = &d->inner[tree_parent(d, number)];
    const bool leaf = number >= d->n_inner;
    const size_t base = leaf ? d->n_inner + parent->first_leaf : parent->first_inner,
                 n = leaf ? parent->n_leaves : parent->n_inner;
    size_t size = 1;
    *first = base + cohort_of(&rule, n, number - base);
    while (*first - base + size < n && base + cohort_of(&rule, n, *first - base + size) == *first)
        size++;
    return cohorts_of(&rule, n) == n ? 1 : size;
}

static void free_names(char **names, size_t count)
{
    for (size_t c = 0; names && c < count; c++)
        free(names[c]);
    free(names);
}

/* Paths of the nodes from `first` on; NULL: no memory. */
static char **names_from(const dataset *d, size_t first, size_t count)
{
    char name[HFSAD_TIERS_MAX * 256];
    char **names = alloc_zero(count, sizeof *names);
    for (size_t i = 0; names && i < count; i++) {
        nodes_name(d, first + i, name, sizeof name);
        if (!(names[i] = strdup(name))) {
            free_names(names, count);
            return NULL;
        }
    }
    return names;
}

/* The sum over a cohort that is too small reveals too much. A client refuses to take part in it, whatever its parent
 * asks. */
static hfsad_status check_cohort(const federation *f, size_t number, hfsad_error *err)
{
    const dataset *d = f->shape;
    char path[HFSAD_TIERS_MAX * 256];
    size_t first;
    if (!spec_is_secure(f->spec) || number < d->n_inner || cohort_at(f, number, &first) > 1)
        return HFSAD_OK;
    nodes_name(d, number, path, sizeof path);
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%.200s would be alone: its parent has fewer than %zu clients; lower privacy.cohort or move the "
                     "clients to another node",
                     path, spec_cohort(f->spec));
}

static hfsad_status enter(federation *f, host *h, size_t number, host_place *place, const federation_files *files,
                          hfsad_error *err)
{
    inquiry *q;
    void *context = NULL;
    size_t first, other;
    const size_t members = cohort_at(f, number, &first);
    char **names = members > 1 ? names_from(f->shape, first, members) : NULL;
    bool *in = alloc_zero(place->n_children + 1, sizeof *in), any = false;
    const veil_place cohort = {(const char *const *)names, members,      number - first,
                               spec_cohort(f->spec),       files->signs, files->signs_key};
    hfsad_status status =
        !in || (members > 1 && !names) ? error_memory(err, members, "the names of a cohort") : HFSAD_OK;
    for (size_t c = 0; c < place->n_children && in; c++)
        any = (in[c] = cohort_at(f, tree_child(f->shape, number, c), &other) > 1) || any;
    place->cohort = names ? &cohort : NULL;
    place->in_cohort = any ? in : NULL;
    place->ca = files->signs && files->signs_key ? files->ca : NULL;
    if (!status && !(status = federation_inquiry(f, number, &q, &context, err)))
        status = host_enter(h, q, context, federation_message_most(f), place, err); /* room is never moved */
    else
        free(context);
    free_names(names, members);
    free(in);
    return status;
}

/* Noise from the secret in the state folder. A simulation takes it from the seed, so that it can be repeated. */
static hfsad_status take_noise(federation *f, const host *h, size_t number, const char *path, hfsad_error *err)
{
    const size_t leaves = f->shape->n_leaves;
    hfsad_status status = HFSAD_OK;
    if (!spec_has_noise(f->spec) || f->spec->privacy.noise == NOISE_SEED || number < f->shape->n_inner)
        return HFSAD_OK;
    if (!host_folder(h))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.200s: its noise needs a state folder, so that a round that is repeated has the same noise",
                         path);
    if (!f->vault && (status = vault_create(&f->vault, host_folder(h), host_has_state(h), f->run, err)))
        return status;
    if (!f->noises && !(f->noises = alloc_zero(leaves, sizeof *f->noises)))
        return error_memory(err, leaves * sizeof *f->noises, "the noise of the clients");
    return vault_words(f->vault, path, &f->noises[number - f->shape->n_inner], err);
}

hfsad_status federation_join(federation *f, host *h, size_t number, const federation_files *files, hfsad_error *err)
{
    size_t count;
    char path[HFSAD_TIERS_MAX * 256];
    char **children = child_names(f->shape, number, &count);
    hfsad_status status = check_cohort(f, number, err);
    f->folder = host_folder(h);
    nodes_name(f->shape, number, path, sizeof path);
    if (!status && (!children || count != tree_children(f->shape, number)))
        status = error_memory(err, count, "the names of nodes");
    host_place place = {.path = path,
                        .children = (const char *const *)children,
                        .n_children = count,
                        .n_inner = number < f->shape->n_inner ? f->shape->inner[number].n_inner : 0,
                        .slot = tree_slot(f->shape, number),
                        .certificate = files->certificate,
                        .key = files->key};
    if (!status)
        status = take_noise(f, h, number, path, err);
    if (!status)
        status = enter(f, h, number, &place, files, err);
    free_names(children, count);
    return status;
}

/* ---- what others want to know ---- */

uint64_t federation_run(const federation *f)
{
    return f->run;
}

const dataset *federation_shape(const federation *f)
{
    return f->shape;
}

plan *federation_plan(const federation *f)
{
    return f->p;
}

const baseline_rule *federation_rule(const federation *f)
{
    return &f->rule;
}

bool federation_is_async(const federation *f)
{
    return f->spec->federation.mode == MODE_ASYNC;
}

const federation_result *federation_outcome(const federation *f)
{
    return f->result ? &f->outcome : NULL;
}
