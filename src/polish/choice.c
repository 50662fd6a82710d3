#include "polish/choice.h"

#include "base/alloc.h"
#include "math/penalty_kind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LEAST: number of columns below which a choice saves nothing. FIRST, FEWEST: columns of the first choice. */
enum { LEAST = 64, FIRST = 32, FEWEST = 4 };
/* Relative to the bound of all columns: chosen columns that are solved this well need others. */
static const double settled = 0.3;
/* Relative to l1: a slope that exceeds l1 by this much before the minimum is hardly random. */
static const double steep = 0.02;
/* Relative to l1. */
static const double rounding = 1e-10;

struct choice {
    const polish_problem *whole;
    size_t M, F, k; /* coordinates, features among them, chosen features */
    double l1, ridge;
    double *in;           /* M: 1 for chosen coordinates, including all that are not features; otherwise 0 */
    double *slopes;       /* M: the last slopes of all columns */
    double *point, *move; /* M: of a question */
    double *w;            /* M: of a row of the trace */
    double *answer;       /* M + 1 + POLISH_LEVELS, of POLISH_PROJECT; POLISH_VALUE has less */
    double chosen, bound; /* of the last look; INFINITY: none yet */
    bool seen;            /* the slopes belong to this choice */
    double lower, sigma;
    polish_result now;    /* of this choice */
    polish_result *total; /* of this and all earlier ones */
    polish_result earlier;
    uint64_t rows, last; /* of the trace: before this choice, and of it */
};

/* All features have the same l1, because priors belong to nodes. */
static void take_prior(choice *c)
{
    for (size_t i = 0; i < c->whole->n_priors; i++) {
        const hfsad_penalty *prior = &c->whole->priors[i];
        c->l1 += penalty_is_flat(prior) ? 0 : hfsad_penalty_slope(prior);
        c->ridge += penalty_is_flat(prior) ? 0 : penalty_ridge(prior);
    }
}

bool choice_pays(const polish_problem *p)
{
    choice c = {.whole = p};
    for (size_t i = 0; i < p->n_priors; i++) {
        const hfsad_penalty *prior = &p->priors[i];
        if (!penalty_is_flat(prior) && (penalty_is_concave(prior) || p->M - prior->free != p->boxed))
            return false;
    }
    take_prior(&c);
    return p->may_choose && p->rounds && !p->memory && !p->variance && p->boxed >= LEAST && c.l1 > 0;
}

/* ---- questions ---- */

static bool ask(choice *c, const polish_question *q, polish_result *count)
{
    if (!c->whole->ask(c->whole->context, q, c->answer))
        return false;
    count->exchanges++;
    count->down += polish_down(q->kind, c->M);
    count->up += polish_length(q->kind, c->M);
    return true;
}

/* Copies from chosen coordinates to all, and back. */
static void spread(const choice *c, const double *from, double *to)
{
    for (size_t m = 0; m < c->M; m++)
        to[m] = c->in[m] != 0 ? *from++ : 0;
}

static void gather(const choice *c, const double *from, double *to)
{
    for (size_t m = 0; m < c->M; m++)
        if (c->in[m] != 0)
            *to++ = from[m];
}

static double excess_of(const choice *c, size_t m)
{
    const double h = c->slopes[m];
    return fmax((c->whole->positive ? -h : fabs(h)) - c->l1, 0);
}

/* A coordinate at 0; bound.c has the general case. */
static void charge(const choice *c, size_t m, choice_charge *to)
{
    const double excess = excess_of(c, m), box = c->whole->box;
    if (c->ridge > 0)
        to->base += excess <= c->ridge * box ? excess * excess / (2 * c->ridge) : box * (excess - c->ridge * box / 2);
    else if (isfinite(box))
        to->base += excess * box;
    else
        to->worst = fmax(to->worst, excess / c->l1);
}

bool choice_look(polish_state *s, const double *w, const double *shift, double *gap, choice_charge *beyond)
{
    choice *c = s->p->choice;
    const polish_question q = {shift ? POLISH_REPAIR : POLISH_PROJECT,
                               shift ? s->kappa : 0,
                               s->beta,
                               c->move,
                               c->point,
                               shift ? s->step : 1,
                               0};
    spread(c, w, c->point);
    if (shift)
        spread(c, shift, c->move);
    else
        memset(c->move, 0, c->M * sizeof *c->move);
    if (!ask(c, &q, s->result)) {
        s->gone = true;
        return false;
    }
    memcpy(c->slopes, c->answer, c->M * sizeof *c->slopes);
    *gap = c->answer[c->M];
    gather(c, c->slopes, s->slopes);
    *beyond = (choice_charge){0};
    for (size_t m = 0; m < c->F; m++)
        if (c->in[m] == 0)
            charge(c, m, beyond);
    c->seen = true;
    return true;
}

bool choice_needs_more(polish_state *s, const double *w)
{
    choice *c = s->p->choice;
    double gap;
    choice_charge beyond;
    memset(s->shift, 0, s->M * sizeof *s->shift);
    if (!choice_look(s, w, s->shift, &gap, &beyond))
        return true;
    bool more = false;
    for (size_t m = 0; m < c->F; m++)
        more = more || (c->in[m] == 0 && excess_of(c, m) > steep * c->l1);
    choice_judge(c, more ? 0 : INFINITY, INFINITY);
    return more;
}

void choice_judge(choice *c, double chosen, double whole)
{
    c->chosen = chosen;
    c->bound = whole;
}

bool choice_is_too_small(const choice *c)
{
    return c && c->seen && c->chosen <= settled * c->bound && c->chosen < c->bound;
}

double choice_lower(const choice *c)
{
    return c ? c->lower : -INFINITY;
}

double choice_sigma(const choice *c)
{
    return c ? c->sigma : 0;
}

uint64_t choice_spent(const choice *c)
{
    return c ? c->earlier.exchanges : 0;
}

void choice_keep(choice *c, const polish_state *s, double lower)
{
    if (!c)
        return;
    c->sigma = s->sigma;
    c->lower = fmax(c->lower, lower);
}

/* ---- columns ---- */

typedef struct {
    double excess;
    size_t m;
} candidate;

static int by_excess(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->excess != y->excess)
        return x->excess < y->excess ? 1 : -1;
    return x->m < y->m ? -1 : x->m > y->m;
}

/* Adds the steepest columns beyond their l1, at most as many as there are already; the first choice always adds some.
 * false: no memory, or no such column. */
static bool choose_more(choice *c)
{
    const size_t most = c->k > FIRST ? c->k : FIRST, least = c->k ? 0 : FEWEST;
    candidate *all = alloc_zero(c->F, sizeof *all);
    size_t n = 0;
    for (size_t m = 0; all && m < c->F; m++)
        if (c->in[m] == 0 && (excess_of(c, m) > rounding * c->l1 || c->k == 0))
            all[n++] = (candidate){c->k ? excess_of(c, m) : fabs(c->slopes[m]), m};
    if (n > 0)
        qsort(all, n, sizeof *all, by_excess);
    size_t taken = 0;
    for (; taken < n && taken < most; taken++) {
        if (taken >= least && !(excess_of(c, all[taken].m) > 0))
            break;
        c->in[all[taken].m] = 1;
    }
    c->k += taken;
    free(all);
    return taken > 0;
}

/* The slopes at w of the losses without rounding of kinks: kappa is nearly 0. */
static bool find_slopes(choice *c, const double *w)
{
    const polish_question q = {POLISH_VALUE, 1e-200, 0, w, NULL, 0, 0};
    if (!ask(c, &q, c->total))
        return false;
    memcpy(c->slopes, c->answer, c->M * sizeof *c->slopes);
    for (size_t m = 0; m < c->F; m++) /* the start may have any non-zero coordinates */
        if (w[m] != 0 && c->in[m] == 0) {
            c->in[m] = 1;
            c->k++;
        }
    return true;
}

/* Sends the choice to the clients. false: no answer, or a client has no memory. */
static bool tell(choice *c)
{
    const polish_question q = {POLISH_CHOOSE, 0, 0, c->in, NULL, 0, 0};
    return ask(c, &q, c->total) && c->answer[0] >= (double)c->whole->clients;
}

/* ---- solving ---- */

/* Tells a watching caller how far the search has got. */
static void add_up(choice *c, const polish_result *before)
{
    c->total->exchanges = before->exchanges + c->now.exchanges;
    c->total->down = before->down + c->now.down;
    c->total->up = before->up + c->now.up;
}

static bool pass_question(void *context, const polish_question *q, double *sum)
{
    choice *c = context;
    add_up(c, &c->earlier);
    return c->whole->ask(c->whole->context, q, sum);
}

static void pass_row(void *context, const polish_row *row)
{
    choice *c = context;
    polish_row all = *row;
    spread(c, row->w, c->w);
    c->last = row->number;
    all.number += c->rows;
    all.down += c->earlier.down;
    all.up += c->earlier.up;
    all.w = c->w;
    if (c->whole->row)
        c->whole->row(c->whole->context, &all);
}

/* The problem of the chosen columns; if all are chosen, without a choice. */
static polish_problem part_of(choice *c)
{
    polish_problem p = *c->whole;
    const size_t others = c->M - c->F;
    p.M = c->k + others;
    p.boxed = c->k;
    p.whole_metric = p.M <= p.whole_most && p.M <= p.direct;
    p.choice = c->k < c->F ? c : NULL;
    p.limit = p.limit ? p.limit - c->rows : 0;
    p.ask = pass_question;
    p.row = pass_row;
    p.context = c;
    return p;
}

/* Solves from w. false: no memory. */
static bool solve_part(choice *c, double *w)
{
    const polish_problem p = part_of(c);
    polish_result *total = c->total, first = *total;
    double *v = alloc_zero(p.M, sizeof *v);
    if (!v)
        return false;
    gather(c, w, v);
    c->seen = false;
    c->chosen = c->bound = INFINITY;
    c->last = 0;
    c->earlier = first;
    c->now = (polish_result){0};
    const bool done = polish_solve_columns(&p, v, &c->now);
    spread(c, v, w);
    free(v);
    if (first.stages == 0 || c->now.stages > 0) /* otherwise the questions were no longer answered */
        *total = c->now;
    total->finished = c->now.finished;
    add_up(c, &c->earlier);
    if (first.stages > 0) {
        total->before = first.before;
        total->zero = first.zero;
        total->stages = first.stages + c->now.stages;
    }
    c->rows += c->last;
    c->now = (polish_result){0};
    return done;
}

static bool is_over(const choice *c)
{
    return !c->total->finished || (c->whole->limit && c->rows >= c->whole->limit) ||
           c->total->exchanges >= POLISH_EXCHANGES;
}

/* Solves one choice after the other. false: no memory. */
static bool solve(choice *c, double *w)
{
    if (!find_slopes(c, w)) {
        c->total->finished = false;
        return true;
    }
    bool known = true, last = false; /* the slopes are known; not those of the start */
    for (bool done = false; !done;) {
        const bool more = known && choose_more(c);
        if (!more && known && last) /* no improvement is possible */
            return true;
        if (!known || 2 * c->k > c->F || !tell(c)) {
            for (size_t m = 0; m < c->F; m++)
                c->in[m] = 1;
            c->k = c->F;
            return solve_part(c, w);
        }
        if (!solve_part(c, w))
            return false;
        known = c->seen;
        last = true;
        done = is_over(c) || polish_is_within(c->whole->gap, c->total->bound, c->total->after, c->total->zero);
    }
    return true;
}

static bool take_room(choice *c)
{
    enum { VECTORS = 5 };
    double *room = alloc_zero((VECTORS + 1) * c->M + 1 + POLISH_LEVELS, sizeof *room);
    double **const vectors[VECTORS] = {&c->in, &c->slopes, &c->point, &c->move, &c->w};
    for (size_t i = 0; room && i < VECTORS; i++)
        *vectors[i] = room + i * c->M;
    c->answer = room ? room + VECTORS * c->M : NULL;
    return room;
}

bool choice_solve(const polish_problem *problem, double *w, polish_result *result)
{
    choice c = {.whole = problem, .M = problem->M, .F = problem->boxed, .total = result};
    *result = (polish_result){.bound = NAN, .residual = NAN};
    take_prior(&c);
    if (!take_room(&c))
        return false;
    for (size_t m = c.F; m < c.M; m++)
        c.in[m] = 1;
    const bool done = solve(&c, w);
    free(c.in);
    return done;
}
