/*
 * The losses of the scores have no coordinate in common: a question about all scores is answered for one score after
 * the other, with its part of the vectors. The parts of the answers are then copied to their coordinates, or added up.
 */
#include "polish/score_answers.h"

#include "polish/star_client.h"
#include "polish/task.h"

#include <math.h>

/* Coordinate m of score k is m K + k of all. */
static void take_vector(size_t W, size_t K, size_t k, const double *from, double *to)
{
    for (size_t m = 0; m < W; m++)
        to[m] = from[m * K + k];
}

static void take_triangle(size_t W, size_t K, size_t k, const double *from, double *to)
{
    for (size_t m = 0; m < W; m++) {
        const size_t i = m * K + k;
        for (size_t n = 0; n <= m; n++)
            *to++ = from[i * (i + 1) / 2 + n * K + k];
    }
}

static void put_triangle(size_t W, size_t K, size_t k, const double *from, double *to)
{
    for (size_t m = 0; m < W; m++) {
        const size_t i = m * K + k;
        for (size_t n = 0; n <= m; n++)
            to[i * (i + 1) / 2 + n * K + k] = *from++;
    }
}

/* Numbers of all rows, which count once for all scores. */
static bool counts_once(polish_kind kind, size_t i)
{
    return kind == POLISH_GRAM || kind == POLISH_GRAM_DIAGONAL || kind == POLISH_SPREAD ||
           ((kind == POLISH_METRIC || kind == POLISH_METRIC_DIAGONAL) && i == 1);
}

static void put_answer(polish_kind kind, size_t W, size_t K, size_t k, const double *part, double *answer)
{
    const question_shape s = polish_table[kind].up;
    const bool metric = kind == POLISH_METRIC || kind == POLISH_METRIC_DIAGONAL;
    size_t from = s.vectors * W, to = s.vectors * W * K;
    for (size_t v = 0; v < s.vectors; v++)
        for (size_t m = 0; m < W; m++)
            answer[v * W * K + m * K + k] = part[v * W + m];
    if (s.triangles) {
        put_triangle(W, K, k, part, answer);
        from = W * (W + 1) / 2;
        to = W * K * (W * K + 1) / 2;
    }
    for (size_t i = 0; i < s.numbers; i++)
        if (metric && i == 0) /* memory suffices for all scores, or for none */
            answer[to] = k ? fmin(answer[to], part[from]) : part[from];
        else
            answer[to + i] += counts_once(kind, i) ? part[from + i] / (double)K : part[from + i];
}

/* The question about one score; its vectors go to room. */
static polish_question part_of_question(const polish_question *q, size_t W, size_t K, size_t k, double *room)
{
    polish_question part = *q;
    const size_t points = polish_points(q->kind, W), down = polish_down(q->kind, W) - points;
    part.vector = room;
    part.point = room + down;
    if (q->kind == POLISH_METRIC)
        take_triangle(W, K, k, q->vector, room);
    else if (down)
        take_vector(W, K, k, q->vector, room);
    if (points)
        take_vector(W, K, k, q->point, room + down);
    return part;
}

/* The client as seen by one score; labels: room for a number per row. */
static polish_client part_of_client(const polish_client *o, size_t k, star_client *all, const hfsad_loss *loss,
                                    double *labels)
{
    const size_t count = o->rows.count;
    polish_client one = *o;
    one.scores = NULL;
    one.loss = loss;
    one.M = o->M / o->scores->K;
    one.multiplier = o->multiplier + k * count;
    one.bend = o->bend + k * count;
    one.star = star_client_part(all, k);
    for (size_t r = 0; r < count; r++)
        labels[r] = score_y(o->scores, k, o->rows.y[r]);
    one.rows.y = labels;
    return one;
}

void scores_resume(const polish_client *o, const double *w, double sigma, double *answer)
{
    const size_t K = o->scores->K, W = o->M / K;
    double *labels = star_client_room(*o->star), *from = labels + o->rows.count, *part = from + W;
    for (size_t k = 0; k < K; k++) {
        const hfsad_loss loss = score_loss(o->scores, k);
        const polish_client one = part_of_client(o, k, *o->star, &loss, labels);
        take_vector(W, K, k, w, from);
        star_client_resume(&one, from, sigma, part);
        for (size_t m = 0; m < W; m++)
            answer[m * K + k] = part[m];
    }
}

void scores_answer(const polish_client *o, const polish_question *q, double *answer)
{
    const score_losses *s = o->scores;
    const size_t K = s->K, W = o->M / K, count = o->rows.count;
    const size_t longest = polish_longest(W, o->M <= POLISH_DIRECT_CLASSES ? W : 0);
    const bool fits = polish_length(q->kind, W) <= longest && polish_down(q->kind, W) <= longest;
    star_client *all = fits ? star_client_split(o->star, K, count + 2 * longest) : NULL;
    if (!all) { /* no memory: the solver gives up */
        for (size_t i = 0; i < polish_length(q->kind, o->M); i++)
            answer[i] = NAN;
        return;
    }
    double *labels = star_client_room(all), *question = labels + count, *part = question + longest;
    for (size_t k = 0; k < K; k++) {
        const hfsad_loss loss = score_loss(s, k);
        const polish_client one = part_of_client(o, k, all, &loss, labels);
        const polish_question asked = part_of_question(q, W, K, k, question);
        polish_answer(&one, &asked, part);
        put_answer(q->kind, W, K, k, part, answer);
    }
}
