#include "polish/answers.h"

#include "core/kernels.h"
#include "math/losses.h"
#include "polish/chosen.h"
#include "polish/score_answers.h"
#include "polish/softmax_answers.h"
#include "polish/squares.h"
#include "polish/star_client.h"

#include <string.h>

const double polish_steps[POLISH_STEPS] = {4,   2,    1.4, 1,    0.75, 0.55, 0.4,  0.3,
                                           0.2, 0.14, 0.1, 0.07, 0.04, 0.02, 1e-2, 1e-3};

static bool is_smooth(const hfsad_loss *loss)
{
    return loss_kind_of(loss)->bend;
}

/* What a row adds to an answer. Derivatives are in s = <x, w>. */
typedef struct {
    double envelope, slope, bend;
    double loss, model, gap, multiplier;
    bool active;
} row_part;

static row_part smooth_part(const hfsad_loss *loss, double c, double y, double s)
{
    const double value = c * hfsad_loss_value(loss, y, s);
    return (row_part){
        value, c * hfsad_loss_slope(loss, y, s), c * loss_kind_of(loss)->bend(loss, y, s), value, value, 0, 0, false};
}

double polish_cut(const hfsad_loss *loss, double c, double y, double a)
{
    double low, high;
    loss_kind_of(loss)->slopes(loss, y, &low, &high);
    return fmax(c * low, fmin(c * high, a));
}

double polish_gap(const hfsad_loss *loss, double c, double y, double s, double a)
{
    return c * fmax(loss_kind_of(loss)->gap(loss, y, s, a / c), 0); /* below 0 only by the rounding of a / c */
}

/* Distance of a slope from the nearer of the two slopes that the loss has beside its kink, relative to half of their
 * difference; 0 to 1. */
static double in_kink(const hfsad_loss *loss, double y, double slope)
{
    double low, high;
    loss_kind_of(loss)->slopes(loss, y, &low, &high);
    return slope > low && slope < high ? 2 * fmin(slope - low, high - slope) / (high - low) : 0;
}

/* s0: the envelope's minimiser without the loss. */
static row_part kinked_part(const hfsad_loss *loss, double c, double y, double s, double a, double kappa, bool eased)
{
    const double s0 = s + a * kappa / c, slope = loss_row_slope(loss, y, s0, kappa, s), next = c * slope;
    const double there = hfsad_loss_value(loss, y, s0 - kappa * slope), here = hfsad_loss_value(loss, y, s);
    const double inside = in_kink(loss, y, slope);
    row_part p = {.slope = next, .multiplier = next, .loss = c * here, .model = c * here, .active = inside > 0};
    p.envelope = c * there + (next - a) * (next + a) * kappa / (2 * c);
    p.gap = c * (here - there) - next * (s - (s0 - kappa * slope));
    p.bend = p.active ? (eased ? inside : 1) * c / kappa : 0;
    return p;
}

static const hfsad_loss absolute = {.kind = HFSAD_LOSS_ABSOLUTE, .box = INFINITY};

static row_part phase_part(double c, double y, double s, double a, double t, const polish_question *q)
{
    const double factor = 2 * t, away = s - t, bend = 2 * q->beta * c;
    row_part p = kinked_part(&absolute, c, y + t * t, factor * s, a, q->kappa, false);
    p.envelope += bend / 2 * away * away;
    p.model += bend / 2 * away * away;
    p.slope = factor * p.slope + bend * away;
    p.bend = factor * factor * p.bend; /* without that of the parabola: POLISH_SQUARES */
    p.loss = c * fabs(y - s * s);
    return p;
}

static row_part part_at(const polish_client *o, const polish_question *q, size_t r, double c, double s)
{
    const double y = o->rows.y[r];
    if (loss_kind_of(o->loss)->majorised)
        return phase_part(c, y, s, o->multiplier[r], o->anchor[r], q);
    if (is_smooth(o->loss))
        return smooth_part(o->loss, c, y, s);
    return kinked_part(o->loss, c, y, s, o->multiplier[r], q->kappa, q->beta == POLISH_EASED);
}

static double slope_at(const polish_client *o, const polish_question *q, size_t r, double c, double s)
{
    const double y = o->rows.y[r], a = o->multiplier[r];
    if (loss_kind_of(o->loss)->majorised)
        return phase_part(c, y, s, a, o->anchor[r], q).slope;
    if (is_smooth(o->loss))
        return c * hfsad_loss_slope(o->loss, y, s);
    return c * loss_row_slope(o->loss, y, s + a * q->kappa / c, q->kappa, s);
}

static row_part part_of(const polish_client *o, const polish_question *q, size_t r, double c)
{
    return part_at(o, q, r, c, row_dot(&o->rows, r, q->vector));
}

static double weight_of(const polish_client *o, size_t r)
{
    return o->factor * row_weight(&o->rows, r);
}

static void answer_value(const polish_client *o, const polish_question *q, double *answer)
{
    double *numbers = answer + o->M;
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r);
        o->bend[r] = 0;
        if (!(c > 0))
            continue;
        const row_part p = part_of(o, q, r, c);
        o->bend[r] = p.bend;
        row_add(&o->rows, r, p.slope, answer);
        numbers[POLISH_ENVELOPE] += p.envelope;
        numbers[POLISH_LOSS] += p.loss;
        numbers[POLISH_MODEL] += p.model;
        numbers[POLISH_GAP] += p.gap;
        numbers[POLISH_ACTIVE] += p.active;
    }
}

static void answer_line(const polish_client *o, const polish_question *q, double *answer)
{
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r);
        if (!(c > 0))
            continue;
        const double s = row_dot(&o->rows, r, q->point), along = row_dot(&o->rows, r, q->vector);
        const double first = slope_at(o, q, r, c, s + polish_steps[0] * along);
        const double last = slope_at(o, q, r, c, s + polish_steps[POLISH_STEPS - 1] * along);
        answer[0] += along * first;
        for (size_t i = 1; i < POLISH_STEPS - 1; i++) /* slopes rise: between two that are the same they are */
            answer[i] += along * (first == last ? first : slope_at(o, q, r, c, s + polish_steps[i] * along));
        answer[POLISH_STEPS - 1] += along * last;
    }
}

static void answer_commit(const polish_client *o, const polish_question *q, double *answer)
{
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r);
        if (!(c > 0) || is_smooth(o->loss))
            continue;
        const double next = part_of(o, q, r, c).multiplier;
        *answer += fabs(next - o->multiplier[r]);
        o->multiplier[r] = next;
    }
}

/* The row's slope moved by u, and by how much its tangent there is below the model at s: the kink's multiplier within
 * its bounds, and the tangent of the parabola at s + <x,u>. */
static double repair_phase(double c, double y, double s, double a, double t, double along, const polish_question *q,
                           double *slope)
{
    const double factor = 2 * t, bend = 2 * q->beta * c, left = factor * s - (y + t * t);
    const row_part kink = kinked_part(&absolute, c, y + t * t, factor * s, a, q->kappa, false);
    const double next = fmax(-c, fmin(c, kink.slope + kink.bend * factor * along));
    *slope = factor * next + bend * (s - t + along);
    return c * fabs(left) - next * left + bend / 2 * along * along;
}

static void answer_repair(const polish_client *o, const polish_question *q, double *answer)
{
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r);
        if (!(c > 0))
            continue;
        const double y = o->rows.y[r], s = row_dot(&o->rows, r, q->point), along = row_dot(&o->rows, r, q->vector);
        double a;
        if (loss_kind_of(o->loss)->majorised) {
            answer[o->M] += repair_phase(c, y, s, o->multiplier[r], o->anchor[r], along, q, &a);
        } else {
            const row_part p = part_at(o, q, r, c, s);
            const double wanted = p.slope + (p.bend > 0 ? p.bend * along : 0);
            a = polish_cut(o->loss, c, y, wanted);
            if (q->beta == POLISH_EASED) /* a clipped row does not follow the next repair */
                o->bend[r] = a == wanted ? p.bend : 0;
            answer[o->M] += polish_gap(o->loss, c, y, s, a);
        }
        row_add(&o->rows, r, a, answer);
    }
}

double polish_excess(int i)
{
    return ldexp(i % 2 ? 0.70710678118654752 : 1, -(i / 2));
}

static void answer_project(const polish_client *o, const polish_question *q, double *answer)
{
    double *beyond = answer + o->M + 1;
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r);
        if (!(c > 0))
            continue;
        const double y = o->rows.y[r], s = row_dot(&o->rows, r, q->point);
        const double from = q->kappa > 0 ? slope_at(o, q, r, c, s) : o->bend[r];
        const double wanted = q->step * (from + c * row_dot(&o->rows, r, q->vector));
        const double a = o->bend[r] = polish_cut(o->loss, c, y, wanted);
        const double excess = a == wanted ? 0 : a != 0 ? wanted / a - 1 : INFINITY;
        for (int i = POLISH_LEVELS - 1; i >= 0 && excess > polish_excess(i); i--)
            beyond[i]++;
        answer[o->M] += polish_gap(o->loss, c, y, s, a);
        row_add(&o->rows, r, a, answer);
    }
}

static void answer_anchor(const polish_client *o, const polish_question *q, double *answer)
{
    for (size_t r = 0; r < o->rows.count; r++) {
        const double s = row_dot(&o->rows, r, q->vector);
        if (loss_kind_of(o->loss)->majorised)
            o->anchor[r] = s;
        *answer += weight_of(o, r) * hfsad_loss_value(o->loss, o->rows.y[r], s);
    }
}

static void add_sizes(const client_rows *rows, size_t r, double a, double *sum)
{
    const size_t from = row_from(rows, r);
    const size_t end = rows->start ? rows->start[r + 1] : from + rows->F;
    for (size_t at = from; at < end; at++)
        sum[rows->start ? rows->column[at] : at - from] += a * fabs(rows->x[at]);
    if (rows->constant != 0)
        sum[rows_level(rows)] += a * fabs(rows->constant);
}

static void answer_scales(const polish_client *o, const polish_question *q, double *answer)
{
    (void)q;
    const hfsad_loss *loss = o->loss;
    double *slopes = answer + POLISH_SLOPES * o->M, *counts = answer + POLISH_VECTORS * o->M;
    const bool smooth = is_smooth(loss), phase = loss_kind_of(loss)->majorised;
    double *squares = answer + (smooth ? POLISH_BENDS : POLISH_KINKS) * o->M;
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r), b = phase ? 2 * fabs(o->anchor[r]) : 1;
        const double steepest = b * loss_kind_of(loss)->polish_slope(loss, o->rows.y[r]);
        const double square = c * (b * b * loss_kind_of(loss)->polish_bend(loss, o->rows.y[r]));
        add_sizes(&o->rows, r, c * steepest, slopes);
        row_add_squares(&o->rows, r, square, squares);
        counts[POLISH_WEIGHT] += smooth ? 0 : c;
        counts[POLISH_KINKED] += !smooth && c > 0;
    }
}

/* With phase retrieval's parabola, which is the same for all rows. */
static double whole_bend(const polish_client *o, const polish_question *q, size_t r)
{
    return o->bend[r] + (loss_kind_of(o->loss)->majorised ? 2 * q->beta * weight_of(o, r) : 0);
}

static void answer_diagonal(const polish_client *o, const polish_question *q, double *answer)
{
    for (size_t r = 0; r < o->rows.count; r++)
        if (whole_bend(o, q, r) > 0)
            row_add_squares(&o->rows, r, whole_bend(o, q, r), answer);
}

static void answer_product(const polish_client *o, const polish_question *q, double *answer)
{
    for (size_t r = 0; r < o->rows.count; r++)
        if (whole_bend(o, q, r) > 0)
            row_add(&o->rows, r, whole_bend(o, q, r) * row_dot(&o->rows, r, q->vector), answer);
}

/* The columns of a row increase, so an entry's partners before it form its line of the triangle. */
void polish_add_square(const client_rows *rows, size_t r, double bend, double *triangle)
{
    const size_t from = row_from(rows, r);
    const size_t count = rows->start ? rows->start[r + 1] - from : rows->F;
    const uint32_t *column = rows->start ? rows->column + from : NULL;
    const double *x = rows->x + from;
    for (size_t i = 0; i < count + (rows->constant != 0); i++) {
        const size_t m = i == count ? rows_level(rows) : column ? column[i] : i, pairs = i < count ? i + 1 : count;
        const double factor = bend * (i == count ? rows->constant : x[i]);
        double *line = triangle + m * (m + 1) / 2;
        if (column)
            for (size_t k = 0; k < pairs; k++)
                line[column[k]] += factor * x[k];
        else
            for (size_t k = 0; k < pairs; k++)
                line[k] += factor * x[k];
        if (i == count)
            line[m] += factor * rows->constant;
    }
}

static void answer_spread(const polish_client *o, const polish_question *q, double *answer)
{
    double limit[POLISH_LEVELS];
    for (int i = 0; i < POLISH_LEVELS; i++)
        limit[i] = ldexp(q->kappa, 2 * i - POLISH_LEVELS);
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r), away = fabs(o->rows.y[r] - row_dot(&o->rows, r, q->vector));
        for (int i = POLISH_LEVELS - 1; i >= 0 && away <= limit[i]; i--)
            answer[i] += c;
    }
}

/* <x, w> of a row and each of the lanes. */
static void lane_dots(const client_rows *rows, size_t r, size_t M, const double *points, double *s)
{
    if (rows->start || rows->constant != 0) {
        for (size_t l = 0; l < POLISH_LANES; l++)
            s[l] = row_dot(rows, r, points + l * M);
        return;
    }
    for (size_t l = 0; l < POLISH_LANES; l += 4)
        kernels()->dot4(rows->F, rows->x + row_from(rows, r), points + l * M, M, s + l);
}

static void answer_search(const polish_client *o, const polish_question *q, double *answer)
{
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r), y = o->rows.y[r];
        double s[POLISH_LANES];
        lane_dots(&o->rows, r, o->M, q->vector, s);
        for (size_t l = 0; l < POLISH_LANES; l++) {
            double *sum = answer + l * (o->M + 1);
            row_add(&o->rows, r, c * hfsad_loss_slope(o->loss, y, s[l]), sum);
            sum[o->M] += c * hfsad_loss_value(o->loss, y, s[l]);
        }
    }
}

/* beta 1: only the multipliers. */
static void answer_forget(const polish_client *o, const polish_question *q, double *answer)
{
    (void)answer;
    memset(o->multiplier, 0, o->rows.count * sizeof *o->multiplier);
    if (q->beta == 1)
        return;
    star_client_free(*o->star);
    *o->star = NULL;
}

/* The answer to POLISH_METRIC reports a lack of memory. */
static void answer_gram(const polish_client *o, const polish_question *q, double *answer)
{
    (void)star_client_gram(o, q->kind == POLISH_GRAM_DIAGONAL, answer);
}

static void answer_choose(const polish_client *o, const polish_question *q, double *answer)
{
    chosen_make(o, q->vector, answer);
}

/* ---- the table ---- */

const polish_entry polish_table[POLISH_KINDS] = {
#define POLISH_ROW(name, down, most, up, answer, how, bound, ...) [POLISH_##name] = {down, up, answer, how, bound},
    POLISH_QUESTIONS(POLISH_ROW)
#undef POLISH_ROW
};

size_t polish_points(polish_kind kind, size_t M)
{
    return polish_table[kind].bound == BOUND_POINT ? M : 0;
}

/* Which questions a question may come right after; 0: after all but those of standard errors, which are the last. */
static unsigned after(polish_kind kind)
{
#define IS(name) (1u << POLISH_##name)
    const unsigned bends = IS(DIAGONAL) | IS(HESSIAN) | IS(PRODUCT), metrics = IS(METRIC) | IS(METRIC_DIAGONAL),
                   certificate = IS(VALUE) | IS(REPAIR) | IS(PROJECT) | bends;
    switch (kind) {
    case POLISH_LINE: /* first a direction, or a full step that was too long */
        return IS(VALUE) | bends;
    case POLISH_DIAGONAL: /* of the last look, for a step or to repair the slopes */
    case POLISH_SQUARES:
        return IS(VALUE) | IS(REPAIR);
    case POLISH_HESSIAN:
        return IS(VALUE) | IS(REPAIR) | IS(SQUARES);
    case POLISH_PRODUCT:
        return IS(DIAGONAL) | IS(PRODUCT);
    case POLISH_COMMIT: /* Newton's method ends with a look or without a step */
        return IS(VALUE) | IS(LINE) | bends;
    case POLISH_REPAIR:
        return certificate | IS(ROUND);
    case POLISH_PROJECT:
        return certificate;
    case POLISH_SPREAD:
        return IS(GRAM) | IS(GRAM_DIAGONAL);
    case POLISH_METRIC:
    case POLISH_METRIC_DIAGONAL:
        return IS(SPREAD);
    case POLISH_ROUND: /* SCALES, FORGET: a path keeps its metric */
        return metrics | IS(ROUND) | certificate | IS(SCALES) | IS(FORGET);
    case POLISH_SEARCH:
        return IS(SCALES) | IS(SEARCH);
    case POLISH_MEAT:
        return IS(BREAD);
    default:
        return 0;
    }
#undef IS
}

bool polish_may_follow(polish_kind kind, int before)
{
    const unsigned allowed = after(kind);
    if (before < 0)
        return kind == POLISH_ANCHOR || kind == POLISH_VALUE;
    if (polish_table[before].how & ASK_ERRORS)
        return polish_table[kind].how & ASK_ERRORS && (allowed ? allowed >> before & 1 : before == POLISH_RESIDUALS);
    return allowed ? allowed >> before & 1 : true;
}

size_t polish_down(polish_kind kind, size_t M)
{
    return question_count(polish_table[kind].down, M);
}

size_t polish_length(polish_kind kind, size_t M)
{
    return question_count(polish_table[kind].up, M);
}

size_t polish_longest(size_t M, size_t direct)
{
    size_t longest = 0;
    for (polish_kind kind = 0; kind < POLISH_KINDS; kind++) {
        const polish_entry *row = &polish_table[kind];
        const bool large = row->up.triangles || row->down.triangles || row->how & ASK_SMALL;
        const bool metric = kind == POLISH_GRAM || kind == POLISH_METRIC;
        const size_t most = metric && direct < STAR_WHOLE ? STAR_WHOLE : direct, columns = large && M > most ? most : M;
        const size_t up = polish_length(kind, columns), down = polish_down(kind, columns);
        longest = up > longest ? up : longest;
        longest = down > longest ? down : longest;
    }
    return longest;
}

void polish_answer(const polish_client *all, const polish_question *q, double *answer)
{
    const polish_client one = q->chosen ? chosen_client(all) : *all, *o = &one;
    memset(answer, 0, polish_length(q->kind, o->M) * sizeof *answer);
    if (loss_kind_of(o->loss)->several)
        softmax_answer(o, q, answer);
    else if (o->scores)
        scores_answer(o, q, answer);
    else
        polish_table[q->kind].answer(o, q, answer);
}

bool polish_answer_added(const polish_client *o, const polish_question *q, double *sum)
{
    const polish_entry *row = &polish_table[q->kind];
    if (!(row->how & ASK_TERMS) || o->rows.count != 1 || q->chosen || o->scores || loss_kind_of(o->loss)->several)
        return false;
    row->answer(o, q, sum);
    return true;
}
