/* Questions to the clients: see survey.h. */
#include "plan/survey.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/softmax.h"
#include "data/features.h"
#include "data/nodes.h"
#include "data/rows.h"
#include "data/shares.h"
#include "plan/baseline_step.h"
#include "plan/fixed_answer.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void answer_scale(const survey_client *c, const survey_question *q, double *answer)
{
    const loss_facts f = loss_measure(&c->rows, c->M, &c->loss, c->mean, 0);
    double deviation = 0, weights = 0;
    for (size_t r = 0; r < c->rows.count; r++) {
        deviation += row_weight(&c->rows, r) * fabs(c->rows.y[r] - q->values[0]);
        weights += row_weight(&c->rows, r);
    }
    const double values[] = {f.pull, f.energy, sqrt(f.noise), f.weight, deviation, weights};
    memcpy(answer, values, sizeof values);
}

static void answer_columns(const survey_client *c, const survey_question *q, double *answer)
{
    (void)q;
    const client_rows *rows = &c->rows;
    for (size_t r = 0; r < rows->count; r++) {
        const double weight = row_weight(rows, r);
        row_add_squares(rows, r, weight, answer);
        answer[c->M] += weight * rows->y[r];
        answer[c->M + 1] += weight * row_norm2(rows, r);
    }
}

/* The number that a question about thresholds compares, and its weight. */
static double compared(const survey_client *c, const survey_question *q, size_t r, double *weight)
{
    const double y = c->rows.y[r];
    *weight = row_weight(&c->rows, r);
    if (q->kind == SURVEY_BELOW)
        return y;
    if (q->kind == SURVEY_BELOW_ONE)
        return y / row_norm2(&c->rows, r);
    const double p = row_dot(&c->rows, r, q->values + SURVEY_THRESHOLDS);
    if (q->kind == SURVEY_MISFIT)
        return fabs(y - (loss_kind_of(&c->loss)->majorised ? p * p : p));
    *weight *= p * p;
    return y / (p * p);
}

static void answer_below(const survey_client *c, const survey_question *q, double *answer)
{
    for (size_t r = 0; r < c->rows.count; r++) {
        double weight;
        const double ratio = compared(c, q, r, &weight);
        if (!isfinite(ratio)) /* a row of zeros says nothing */
            continue;
        answer[0] += weight;
        for (size_t i = 0; i < SURVEY_THRESHOLDS; i++)
            answer[1 + i] += ratio <= q->values[i] ? weight : 0;
    }
}

/* How much a row's direction counts. Robust: rows with a large y lie along the model, those with a small one across it;
 * T = 1 - 1/t weighs both as the best preprocessing of noiseless data does (Luo, Alghamdi, Lu 2019), and no outlier
 * counts for more than 1. */
static double direction_weight(const survey_client *c, const survey_question *q, size_t r)
{
    enum { ACROSS_MOST = 10 };
    const double y = c->rows.y[r], weight = row_weight(&c->rows, r);
    if (q->kind == SURVEY_TRUNCATED)
        return weight * fmax(0, fmin(y, q->values[0]));
    const double n = row_norm2(&c->rows, r), t = y / (n * q->values[0]);
    if (!(n > 0))
        return 0;
    return weight * (t > 0 ? fmax(1 - 1 / t, -ACROSS_MOST) : -ACROSS_MOST) / n;
}

static void answer_direction(const survey_client *c, const survey_question *q, double *answer)
{
    for (size_t r = 0; r < c->rows.count; r++)
        row_add(&c->rows, r, direction_weight(c, q, r) * row_dot(&c->rows, r, q->values + 1), answer);
}

/* Sums of the weights and of y; if a model is given, of y minus its prediction. */
static void answer_sums(const survey_client *c, const survey_question *q, double *answer)
{
    const double *w = q->count ? q->values : NULL;
    for (size_t r = 0; r < c->rows.count; r++) {
        const double weight = row_weight(&c->rows, r);
        answer[0] += weight;
        answer[1] += weight * (c->rows.y[r] - (w ? row_dot(&c->rows, r, w) : 0));
    }
}

static void answer_energy(const survey_client *c, const survey_question *q, double *answer)
{
    (void)q;
    const rows_energy e = rows_measure_energy(&c->rows);
    answer[0] = e.weight;
    answer[1] = e.energy;
}

static void answer_loss(const survey_client *c, const survey_question *q, double *answer)
{
    for (size_t r = 0; r < c->rows.count; r++)
        answer[0] +=
            row_weight(&c->rows, r) * hfsad_loss_value(&c->loss, c->rows.y[r], row_dot(&c->rows, r, q->values));
    if (c->mean)
        answer[0] /= rows_weight(&c->rows);
}

static void answer_levels(const survey_client *c, const survey_question *q, double *answer)
{
    enum { N = SURVEY_THRESHOLDS };
    const double share = c->mean ? 1 / rows_weight(&c->rows) : 1;
    for (size_t r = 0; r < c->rows.count; r++) {
        const double s = q->count > N ? row_dot(&c->rows, r, q->values + N) : 0;
        for (size_t i = 0; i < N; i++)
            answer[i] += share * row_weight(&c->rows, r) * hfsad_loss_slope(&c->loss, c->rows.y[r], s + q->values[i]);
    }
}

/* Of several classes at a model of zeros. */
static void answer_class_gradient(const survey_client *c, double *answer)
{
    double a[SOFTMAX_CLASSES];
    for (size_t r = 0; r < c->rows.count; r++) {
        for (size_t k = 0; k < c->classes; k++) {
            const bool is = c->rows.y[r] == (double)k;
            a[k] = row_weight(&c->rows, r) * (loss_kind_of(&c->loss)->several
                                                  ? 1 / (double)c->classes - is
                                                  : hfsad_loss_slope(&c->loss, is ? 1 : -1, 0));
        }
        softmax_add(&c->rows, r, c->classes, a, answer);
    }
}

static void answer_gradient(const survey_client *c, const survey_question *q, double *answer)
{
    if (c->classes && (loss_kind_of(&c->loss)->labels || loss_kind_of(&c->loss)->several)) {
        answer_class_gradient(c, answer);
        return;
    }
    const double share = c->mean ? 1 / rows_weight(&c->rows) : 1;
    for (size_t r = 0; r < c->rows.count; r++) {
        const double slope = hfsad_loss_slope(&c->loss, c->rows.y[r], row_dot(&c->rows, r, q->values));
        row_add(&c->rows, r, share * row_weight(&c->rows, r) * slope, answer);
    }
}

static void answer_own(const survey_client *c, const survey_question *q, double *answer)
{
    if (!c->own) /* a client with a loss of the library among others */
        return;
    const own_facts f = own_measure(&c->rows, c->M, c->node, c->own, q->values[0], c->scratch);
    answer[0] = f.slope;
    answer[1] = f.bend;
}

/* An intercept is free of the box. */
static void answer_bound(const survey_client *c, const survey_question *q, double *answer)
{
    (void)q;
    answer[0] = loss_measure(&c->rows, c->M, &c->loss, c->mean, c->rows.constant != 0 ? INFINITY : c->loss.box).pull;
}

static void answer_moments(const survey_client *c, const survey_question *q, double *answer)
{
    rows_sum_columns(&c->rows, q->values + 1, q->values[0] != 0, answer);
}

static const struct {
    question_shape down;
    size_t most;
    question_shape up;
    void (*answer)(const survey_client *, const survey_question *, double *); /* the answer is 0 before */
} survey_table[SURVEY_KINDS] = {
#define SURVEY_ROW(name, down, most, up, answer, ...) [SURVEY_##name] = {down, most, up, answer},
    SURVEY_QUESTIONS(SURVEY_ROW)
#undef SURVEY_ROW
};

void survey_answer(const survey_client *c, const survey_question *q, double *answer)
{
    memset(answer, 0, (q->most + q->sums) * sizeof *answer);
    survey_table[q->kind].answer(c, q, answer);
}

hfsad_status survey_half_point(const surveyor *ask, survey_kind kind, double *values, size_t count, double guess,
                               double *at, hfsad_error *err)
{
    enum { ROUNDS = 7, N = SURVEY_THRESHOLDS };
    double totals[N + 1], low = 0, high = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            values[i] = round ? low + (high - low) * (i + 1) / N : ldexp(guess, 2 * (i - N / 2));
        const survey_question q = {kind, count, values, 0, N + 1};
        const hfsad_status status = ask->ask(ask->context, &q, totals, err);
        if (status)
            return status;
        int first = 0; /* threshold with half of the weight below */
        while (first < N - 1 && totals[1 + first] < totals[0] / 2)
            first++;
        low = first ? values[first - 1] : low;
        high = values[first];
    }
    *at = high;
    return HFSAD_OK;
}

void survey_combine(const survey_question *q, double *totals, const double *answer)
{
    for (size_t i = 0; i < q->most; i++)
        totals[i] = fmax(totals[i], answer[i]);
    for (size_t i = q->most; i < q->most + q->sums; i++)
        totals[i] += answer[i];
}

/* With noise nothing is asked of the rows: all clients answer for privacy.rows rows of features and y of size 1. */
static bool assume_rows(local_survey *s)
{
    const size_t F = features_count(s->d);
    if (!s->spec || !spec_has_noise(s->spec))
        return true;
    s->assumed = alloc_zero(2 * F + 4, sizeof *s->assumed);
    for (size_t m = 0; s->assumed && m < F; m++) {
        s->assumed[m] = 1;
        s->assumed[F + m] = m % 2 ? 1 : -1;
    }
    if (!s->assumed)
        return false;
    const double weight = (double)s->spec->privacy.rows / 2,
                 low = loss_kinds[s->spec->loss.kind]->start == LOSS_START_LOG ? 0 : -1;
    const double rest[] = {1, low, weight, weight};
    memcpy(s->assumed + 2 * F, rest, sizeof rest);
    return true;
}

static client_rows assumed_rows(const local_survey *s)
{
    const size_t F = features_count(s->d);
    return (client_rows){
        .count = 2, .F = F, .x = s->assumed, .y = s->assumed + 2 * F, .weight = s->assumed + 2 * F + 2};
}

hfsad_status local_survey_make(local_survey *s, const hfsad_spec *spec, const dataset *d, hfsad_error *err)
{
    *s = (local_survey){.d = d, .spec = spec};
    const size_t groups = baseline_step_groups(d) * (d->M + 1), plain = d->M + SURVEY_THRESHOLDS + 8,
                 answer = spec && algorithm_is_baseline(spec->top.algorithm) && groups > plain ? groups : plain;
    s->room_size = (size_t)(d->depth + 2) * answer + 5 * d->M;
    s->room = alloc_zero(s->room_size, sizeof *s->room);
    enum { MAXIMA = 2 }; /* of a question */
    s->most = 1 + MAXIMA * FIXED_BUCKETS + answer;
    if (d->fixed)
        s->words = alloc_zero((size_t)(d->depth + 2) * s->most * FIXED_WORDS, sizeof *s->words);
    if (!s->room || !assume_rows(s) || (d->fixed && !s->words) || (spec && !choices_make(&s->choices, spec, d))) {
        local_survey_free(s);
        return error_memory(err, s->room_size * sizeof *s->room, "what the presets ask of the data");
    }
    return HFSAD_OK;
}

void local_survey_free(local_survey *s)
{
    free(s->room);
    free(s->words);
    free(s->assumed);
    if (s->spec)
        choices_free(&s->choices);
}

bool survey_question_fits(const survey_question *q, size_t M)
{
    if ((size_t)q->kind >= SURVEY_KINDS)
        return false;
    question_shape down = survey_table[q->kind].down;
    size_t most = survey_table[q->kind].most, sums = question_count(survey_table[q->kind].up, M);
    if (q->kind == SURVEY_CURVE || q->kind == SURVEY_CURVE_ALONE) { /* of every group of nodes */
        const size_t numbers = q->count > down.numbers ? q->count - down.numbers : 0,
                     groups = q->kind == SURVEY_CURVE ? numbers / M : q->most;
        if (numbers < M || q->values[down.numbers - 1] != (double)groups || groups == 0)
            return false;
        down.vectors = q->kind == SURVEY_CURVE ? groups : 1;
        most *= groups;
        sums *= groups;
    }
    if (q->kind == SURVEY_LEVELS && q->count == down.numbers) /* at a model of zeros */
        down.vectors = 0;
    return q->count == question_count(down, M) && q->most == most && q->sums == sums;
}

/* The client as a question finds it. */
static hfsad_status client_of(const local_survey *s, size_t leaf, survey_client *c, hfsad_error *err)
{
    return survey_client_make(s, leaf, dataset_rows_any(s->d, leaf, s->room + s->room_size - 5 * s->d->M), c, err);
}

hfsad_status survey_client_make(const local_survey *s, size_t leaf, client_rows rows, survey_client *c,
                                hfsad_error *err)
{
    *c = (survey_client){.rows = s->assumed ? assumed_rows(s) : rows,
                         .M = s->d->M,
                         .classes = s->d->classes,
                         .node = s->d->n_inner + leaf,
                         .parent = dataset_parent(s->d, leaf),
                         .scratch = s->room + s->room_size - 4 * s->d->M};
    if (!s->spec)
        return HFSAD_OK;
    override_settings special;
    bool any = false;
    char name[NODE_NAME_SIZE];
    hfsad_status status = HFSAD_OK;
    if (s->spec->n_overrides)
        status = leaf_override(&s->choices, leaf, name, sizeof name, &special, &any, err);
    c->loss = loss_of(&s->spec->loss, any ? &special.loss : NULL);
    c->mean = is_mean(s->spec, any ? &special : NULL);
    c->own = s->spec->own.value ? &s->spec->own : NULL;
    return status;
}

/* Adds a child's answer to the totals of a node. */
static hfsad_status add_child(const local_survey *s, const inner_node *node, const survey_question *q, size_t child,
                              double *totals, const double *answer, hfsad_error *err)
{
    const answer_layout l = {MASK_BUCKETS, q->most, q->sums};
    const size_t size = s->most * FIXED_WORDS;
    if (!s->words) {
        survey_combine(q, totals, answer);
        return HFSAD_OK;
    }
    uint64_t *part = s->words + (size_t)(s->d->depth + 1) * size;
    if (!fixed_answer_put(&l, answer, part)) {
        char name[NODE_NAME_SIZE];
        nodes_name(s->d, child, name, sizeof name);
        return error_set(err, HFSAD_ERROR_INPUT, FIXED_TOO_LARGE, name);
    }
    fixed_add(s->words + node->depth * size, part, fixed_answer_numbers(&l));
    return HFSAD_OK;
}

/* Adds the answers of the clients of a node. */
static hfsad_status ask_leaves(const local_survey *s, const inner_node *node, size_t first, size_t end,
                               const survey_question *q, hfsad_error *err)
{
    const size_t size = q->most + q->sums;
    double *totals = s->room + (size_t)node->depth * size, *below = totals + size;
    hfsad_status status = HFSAD_OK;
    for (size_t leaf = first; leaf < end && !status; leaf++) {
        survey_client client;
        if (!dataset_asks(s->d, leaf))
            continue;
        if ((status = client_of(s, leaf, &client, err)))
            continue;
        survey_answer(&client, q, below);
        status = add_child(s, node, q, s->d->n_inner + leaf, totals, below, err);
    }
    return status;
}

/* The totals of inner node i, into the room of its depth; its children's answers pass through the room below. */
static hfsad_status ask_below(const local_survey *s, size_t i, const survey_question *q, hfsad_error *err)
{
    const size_t size = q->most + q->sums;
    const inner_node *node = &s->d->inner[i];
    double *totals = s->room + (size_t)node->depth * size, *below = totals + size;
    const answer_layout l = {MASK_BUCKETS, q->most, q->sums};
    uint64_t *words = s->words ? s->words + node->depth * s->most * FIXED_WORDS : NULL;
    memset(totals, 0, size * sizeof *totals);
    if (words)
        memset(words, 0, fixed_answer_numbers(&l) * FIXED_WORDS * sizeof *words);
    hfsad_status status = HFSAD_OK;
    for (size_t c = node->first_inner; c < node->first_inner + node->n_inner && !status; c++)
        if (!(status = ask_below(s, c, q, err)))
            status = add_child(s, node, q, c, totals, below, err);
    if (!status)
        status = ask_leaves(s, node, node->first_leaf, node->first_leaf + node->n_leaves, q, err);
    if (s->words && !status)
        fixed_answer_get(&l, words, totals);
    return status;
}

/* Consecutive inner nodes, each answered by one thread in its own room. */
typedef struct {
    const local_survey *s;
    const survey_question *q;
    size_t first;
    double *rooms, *answers;
    pthread_mutex_t lock;
    size_t failed; /* the first that failed; SIZE_MAX: none */
    hfsad_status status;
    hfsad_error *err;
} survey_team;

static void ask_member(void *context, size_t item, unsigned thread)
{
    survey_team *t = context;
    const size_t size = t->q->most + t->q->sums, node = t->first + item;
    hfsad_error err;
    local_survey own = *t->s;
    own.room = t->rooms + thread * own.room_size;
    const hfsad_status status = ask_below(&own, node, t->q, &err);
    memcpy(t->answers + item * size, own.room + own.d->inner[node].depth * size, size * sizeof *t->answers);
    if (!status)
        return;
    pthread_mutex_lock(&t->lock);
    if (item < t->failed) {
        t->failed = item;
        t->status = status;
        if (t->err)
            *t->err = err;
    }
    pthread_mutex_unlock(&t->lock);
}

/* The answers of `count` inner nodes, one after the other in memory. Sums in fixed point have one room. */
static hfsad_status ask_team(const local_survey *s, size_t first, size_t count, const survey_question *q,
                             double *answers, hfsad_error *err)
{
    const unsigned threads = s->threads && !s->words ? pool_threads(s->threads) : 1;
    survey_team t = {.s = s, .q = q, .first = first, .answers = answers, .failed = SIZE_MAX, .err = err};
    t.rooms = threads > 1 ? alloc_zero(threads * s->room_size, sizeof *t.rooms) : s->room;
    if (!t.rooms)
        return error_memory(err, threads * s->room_size * sizeof *t.rooms, "what the presets ask of the data");
    pthread_mutex_init(&t.lock, NULL);
    if (threads > 1) {
        pool_run(s->threads, count, ask_member, &t);
        free(t.rooms);
    }
    for (size_t i = 0; threads == 1 && i < count && !t.status; i++)
        ask_member(&t, i, 0);
    pthread_mutex_destroy(&t.lock);
    return t.status;
}

/* The totals of the cloud: some children at a time, whose answers are then added in their order. */
static hfsad_status ask_cloud(const local_survey *s, const survey_question *q, hfsad_error *err)
{
    enum { AT_ONCE = 256 };
    const inner_node *cloud = &s->d->inner[0];
    const size_t size = q->most + q->sums, end = cloud->first_inner + (size_t)cloud->n_inner;
    if (!s->threads || s->words || cloud->n_inner < 2)
        return ask_below(s, 0, q, err);
    double *answers = alloc_raw(AT_ONCE * size, sizeof *answers), *totals = s->room;
    if (!answers)
        return error_memory(err, AT_ONCE * size * sizeof *answers, "what the presets ask of the data");
    hfsad_status status = HFSAD_OK;
    memset(totals, 0, size * sizeof *totals);
    for (size_t first = cloud->first_inner; first < end && !status; first += AT_ONCE) {
        const size_t count = end - first < AT_ONCE ? end - first : AT_ONCE;
        status = ask_team(s, first, count, q, answers, err);
        for (size_t i = 0; i < count && !status; i++)
            survey_combine(q, totals, answers + i * size);
    }
    free(answers);
    return status ? status : ask_leaves(s, cloud, cloud->first_leaf, cloud->first_leaf + cloud->n_leaves, q, err);
}

/* Of the cloud, if several ranks hold a part of the rows each (data/part.h). */
typedef struct {
    const local_survey *s;
    const survey_question *q;
    double *answers; /* of this rank's inner children, made before its turn comes */
    hfsad_status status;
    hfsad_error *err;
} ranks_survey;

static void add_own(void *context, bool inner, const share_children *own)
{
    ranks_survey *r = context;
    const inner_node *cloud = &r->s->d->inner[0];
    const size_t size = r->q->most + r->q->sums;
    for (size_t i = own->inner; inner && i < own->inner_end; i++)
        survey_combine(r->q, r->s->room, r->answers + (i - own->inner) * size);
    if (!inner && !r->status)
        r->status =
            ask_leaves(r->s, cloud, cloud->first_leaf + own->slot, cloud->first_leaf + own->slot_end, r->q, r->err);
}

static hfsad_status ask_ranks(const local_survey *s, const survey_question *q, hfsad_error *err)
{
    const size_t size = q->most + q->sums;
    const share_children own = share_of_rank(s->d, ranks()->rank);
    ranks_survey r = {s, q, alloc_zero((own.inner_end - own.inner) * size + 1, sizeof(double)), HFSAD_OK, err};
    if (!r.answers)
        ranks()->end(ranks()->context, 1);
    r.status = ask_team(s, s->d->inner[0].first_inner + own.inner, own.inner_end - own.inner, q, r.answers, err);
    memset(s->room, 0, size * sizeof *s->room);
    share_add(s->d, s->room, size * sizeof *s->room, &r, add_own);
    free(r.answers);
    return ranks_agree(r.status, err);
}

static hfsad_status local_ask(void *context, const survey_question *q, double *totals, hfsad_error *err)
{
    local_survey *s = context;
    const hfsad_status status = s->d->held ? ask_ranks(s, q, err) : ask_cloud(s, q, err);
    const uint64_t links = dataset_links(s->d);
    s->cost.questions++;
    s->cost.bytes_down += links * q->count * sizeof *totals;
    s->cost.bytes_up += links * (q->most + q->sums) * sizeof *totals;
    if (!status)
        memcpy(totals, s->room, (q->most + q->sums) * sizeof *totals);
    return status;
}

surveyor local_surveyor(local_survey *s)
{
    return (surveyor){s, local_ask};
}
