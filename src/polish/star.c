#include "polish/star.h"

#include "base/alloc.h"
#include "math/dot.h"
#include "polish/lasso.h"
#include "polish/star_client.h"
#include "polish/triangle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OFTEN = 10, HISTORY = 20480, LAST_ROWS = 120 };

/* Newton's method costs about this number of rounds: some 100 exchanges, 25 of them second derivatives; hard: 500, 200
 * of them second derivatives. A message costs as much as sending 1000 numbers, plus its numbers. */
static double newton_price(size_t M, bool hard)
{
    const double m = (double)M;
    return ((hard ? 500 : 100) * (1000 + m) + (hard ? 100 : 12.5) * m * m) / (1000 + 2 * m);
}

/* A bound is asked for if the estimate is at most this times the goal, and again when it has fallen by this factor: the
 * bound repairs the slopes, so it is often smaller than the estimate. */
static const double hopeful = 10, again = 0.3;
/* Relative estimate at which columns that are left out show by their slopes that they matter. */
static const double rough = 2e-2;

typedef struct {
    polish_state *s;
    const star_watch *watch;
    lasso *step;
    bool diagonal;
    bool slow;      /* the whole metric is worth its numbers */
    size_t M, size; /* size: numbers of G */
    double *G, *m, *anchor, *z, *Gz, *before, *box, *best;
    double total; /* sum of c */
    double tiny;  /* share of G's diagonal that is added to it */
    double sigma;
    double least;           /* objective of best */
    double first, last;     /* residual: of the first round since the restart, of the last round */
    uint64_t since, round;  /* rounds since the restart, and in all */
    double certified;       /* estimate at the last attempt to certify */
    double repaired;        /* that part at the last attempt that hoped for repairs of the columns */
    uint64_t denied_at;     /* round of the first bound above what the estimate promised, or of the last before it */
    double lowest[HISTORY]; /* smallest estimate so far, by round */
    double latest[HISTORY]; /* estimate of each round */
    double gaps[HISTORY];   /* smallest row part of it so far */
} star;

static double prior_at(const polish_state *s, const double *w)
{
    double sum = 0;
    for (size_t m = 0; m < s->M; m++)
        sum += s->l1[m] * fabs(w[m]) + s->ridge[m] / 2 * w[m] * w[m];
    return sum;
}

static void times_G(const star *a, const double *v, double *product)
{
    if (a->diagonal)
        for (size_t m = 0; m < a->M; m++)
            product[m] = a->G[m] * v[m];
    else
        triangle_product(a->M, a->G, v, product);
}

static size_t diagonal_of(const star *a, size_t m)
{
    return a->diagonal ? m : m * (m + 1) / 2 + m;
}

/* The weighted median of |y - <x, w>|, to a factor of 4. */
static bool find_spread(star *a, double *spread)
{
    polish_state *s = a->s;
    s->kappa = a->least > 0 ? a->least / a->total : 1;
    if (!polish_ask(s, POLISH_SPREAD, s->w, NULL))
        return false;
    int i = 0;
    while (i < POLISH_LEVELS - 1 && s->answer[i] < a->total / 2)
        i++;
    *spread = ldexp(s->kappa, 2 * i - POLISH_LEVELS);
    return true;
}

/* The factor of the G of the rows, and roots of the columns' variance inflation, G_mm (G^-1)_mm. */
static void find_inflation(star *a)
{
    const double most = 3e7; /* root of the largest inflation that rounding can distinguish from equal columns */
    double *L = a->s->root, *v = a->s->work; /* room for 3 M numbers */
    if (!a->diagonal && !L)
        L = a->s->root = alloc_raw(a->size, sizeof *L);
    if (a->diagonal || !L) /* without memory bounds are less tight */
        return;
    memcpy(L, a->G, a->size * sizeof *L);
    for (size_t m = 0; m < a->M; m++)
        L[diagonal_of(a, m)] /= 1 + a->tiny;
    triangle_factorise(a->M, L);
    for (size_t m = 0; m < a->M; m++) {
        memset(v, 0, a->M * sizeof *v);
        v[m] = 1;
        triangle_forward(a->M, L, v);
        a->s->inflated[m] = fmin(fmax(sqrt(a->G[diagonal_of(a, m)] * dot8(a->M, v, v)), 1), most);
    }
}

/* Asks with G. If only some clients have intercepts (the last coordinates), the other lines of G are the scatter around
 * them, with 4 D on the diagonal (set_own_metric of star_client.c). */
static bool send_metric(star *a)
{
    const size_t first = a->M - a->s->p->owned;
    const polish_kind kind = a->diagonal ? POLISH_METRIC_DIAGONAL : POLISH_METRIC;
    if (a->diagonal || first == a->M)
        return polish_ask(a->s, kind, a->G, NULL);
    double *S = alloc_zero(a->size, sizeof *S);
    if (!S)
        return false;
    memcpy(S, a->G, a->size * sizeof *S);
    for (size_t i = first; i < a->M; i++) {
        const double *line = a->G + i * (i + 1) / 2;
        for (size_t m = 0; m < first && line[i] > 0; m++)
            for (size_t k = 0; k <= m && line[m] != 0; k++)
                S[m * (m + 1) / 2 + k] -= line[m] / line[i] * line[k];
    }
    for (size_t m = 0; m < first; m++) {
        const double g = a->G[diagonal_of(a, m)];
        S[diagonal_of(a, m)] += 4 * (g > 0 ? a->tiny * g : 1);
    }
    const bool done = polish_ask(a->s, kind, S, NULL);
    free(S);
    return done;
}

/* Sets G and the first sigma: that of the last star, if there is one. */
static bool find_metric(star *a)
{
    polish_state *s = a->s;
    const star_memory *memory = s->p->memory;
    if (memory && memory->known) {
        memcpy(a->G, memory->G, a->size * sizeof *a->G);
        a->total = memory->total;
        a->sigma = memory->first;
        return true;
    }
    double spread, n_clients = (double)s->p->clients;
    if (!polish_ask(s, a->diagonal ? POLISH_GRAM_DIAGONAL : POLISH_GRAM, NULL, NULL))
        return false;
    memcpy(a->G, s->answer, a->size * sizeof *a->G);
    a->total = s->answer[a->size];
    if (!(a->total > 0) || !find_spread(a, &spread))
        return false;
    s->kappa = spread;
    s->beta = a->total;
    s->step = a->tiny;
    if (!send_metric(a) || s->answer[0] < n_clients)
        return false;
    a->sigma = s->sigma > 0 ? s->sigma : s->answer[1] / a->total; /* near a perfect fit the spread says nothing */
    for (size_t m = 0; m < a->M; m++) {
        double *g = a->G + diagonal_of(a, m);
        *g += *g > 0 ? a->tiny * *g : 1;
    }
    return a->sigma > 0;
}

/* Continues from the slopes of the last star: m = sum of B_j s_j. */
static bool resume(star *a)
{
    star_memory *memory = a->s->p->memory;
    if (!memory)
        return true;
    if (!memory->known) {
        memcpy(memory->G, a->G, a->size * sizeof *a->G);
        memory->total = a->total;
        memory->first = a->sigma;
        memory->known = true;
    }
    if (memory->sigma > 0)
        a->sigma = memory->sigma;
    double *sum = a->s->answer;
    if (!memory->resume(a->s->p->context, a->z, a->sigma, sum))
        return false;
    for (size_t m = 0; m < a->M; m++)
        a->m[m] -= sum[m] / a->sigma;
    return true;
}

/* Bound on how far F at z is above the minimum, from the clients' slopes, if they are nearly feasible. */
static double estimate(const star *a, const double *h, double gap, double level)
{
    const polish_state *s = a->s;
    double sum = fmax(gap, 0);
    for (size_t m = 0; m < a->M; m++) {
        const double z = a->z[m], ridge = s->ridge[m];
        const double steep = coordinate_is_positive(s, m) ? -h[m] : fabs(h[m]);
        const double excess = fmax(steep - s->l1[m], 0), box = a->box[m];
        sum += h[m] * z + s->l1[m] * fabs(z) + ridge / 2 * z * z;
        if (ridge > 0)
            sum += excess * excess / (2 * ridge);
        else if (isfinite(box))
            sum += excess * box;
        else
            sum += excess * (fabs(z) + 0.1 * level / s->scale[m]);
    }
    return fabs(sum);
}

/* sigma follows the ratio of movements; then the rounds restart from here. */
static void restart(star *a, double moved)
{
    double dz = 0;
    for (size_t m = 0; m < a->M; m++)
        a->before[m] = a->z[m] - a->before[m];
    double *product = a->s->work;
    times_G(a, a->before, product);
    dz = sqrt(fmax(dot8(a->M, a->before, product), 0));
    const double size = sqrt(fmax(dot8(a->M, a->z, a->Gz), 0)), dy = sqrt(fmax(moved, 0)), old = a->sigma;
    if (dz > 1e-14 * size && dy > 0)
        a->sigma = fmin(fmax(pow(old, 0.25) * pow(dy / dz, 0.75), old / 5), 5 * old);
    for (size_t m = 0; m < a->M; m++)
        a->m[m] = a->Gz[m] + old / a->sigma * (a->m[m] - a->Gz[m]);
    memcpy(a->anchor, a->m, a->M * sizeof *a->m);
    a->since = 0;
}

static bool restarts(const star *a, double residual)
{
    const double old = 0.36 * (double)a->round;
    return a->since > 3 && (residual <= 0.2 * a->first || (residual <= 0.6 * a->first && residual > a->last) ||
                            (double)a->since >= fmax(6, old));
}

/* m advances as the clients' s_j do. */
static void follow(star *a, const double *p)
{
    const double t = (double)a->since, old = 1 / (t + 2), new = (t + 1) / (t + 2);
    for (size_t m = 0; m < a->M; m++) {
        const double away = a->Gz[m] - a->m[m] - p[m] / a->sigma;
        a->m[m] = old * a->anchor[m] + new *(a->m[m] + 2 * away);
    }
    a->since++;
}

/* The number of rounds up to the limit of rows; Newton's method, and the star after it, need the last rows. A diagonal
 * star, and a star alone, may use all of them. */
static double rounds_left(const star *a)
{
    const polish_state *s = a->s;
    const double limit = (double)s->p->limit, left = limit - (double)s->rows;
    return s->p->limit && !a->diagonal && !a->watch->alone ? a->watch->per_row * (left - fmin(LAST_ROWS, 0.4 * limit))
                                                           : INFINITY;
}

/* Whether the estimates fall fast enough to continue: the smallest so far or, after a restart has raised them, the
 * latest. */
static bool is_worth(const star *a)
{
    const double goal = 0.5 * a->watch->gap * fabs(a->least), now = a->lowest[a->round];
    if (a->watch->alone || a->round < 2 * OFTEN || a->round % OFTEN || now <= goal)
        return true;
    const uint64_t half = a->round / 2;
    const double rounds = fmin(newton_price(a->M, a->watch->hard), rounds_left(a)), last = a->latest[a->round];
    const double rate = log(a->lowest[half] / now) / (double)(a->round - half);
    const double recent = a->diagonal ? 0 : log(a->latest[a->round - OFTEN] / last) / OFTEN;
    /* The rest of an estimate may be repaired (iterate) when the rows' part is small. */
    const double rows = a->gaps[a->round], falls = log(a->gaps[half] / rows) / (double)(a->round - half);
    return rate * rounds >= log(now / goal) || recent * rounds >= log(last / goal) ||
           (!a->diagonal && rows > goal && falls * rounds >= log(rows / goal));
}

/* Whether a diagonal metric promises no end within the price of the whole one: G goes up once and down once. denied:
 * the estimate has promised it, and a bound has denied it. */
static bool is_slow(const star *a, bool denied)
{
    const polish_state *s = a->s;
    const double goal = 0.5 * a->watch->gap * fabs(a->least), now = a->lowest[a->round], m = (double)a->M;
    if (!a->diagonal || a->watch->stays || a->M > s->p->whole_most || s->p->memory || a->round < 2 * OFTEN ||
        a->round % OFTEN)
        return false;
    const uint64_t half = a->round / 2;
    const double rounds = (2000 + m * m) / (1000 + 2 * m);
    const double rate = log(a->lowest[half] / now) / (double)(a->round - half);
    return now > goal ? rate * rounds < log(now / goal) : denied;
}

/* One exchange. false: end. */
static bool play_round(star *a)
{
    polish_state *s = a->s;
    const size_t positive = s->p->positive ? s->p->boxed : 0;
    const lasso_problem p = {a->M, a->G, a->diagonal, a->m, s->l1, s->ridge, a->box, 1 / a->sigma, positive};
    lasso_solve(a->step, &p, a->z);
    times_G(a, a->z, a->Gz);
    s->kappa = a->sigma;
    s->beta = a->round ? 0.1 * a->last / sqrt((double)s->p->clients) : 0;
    s->step = (double)a->since;
    if (!polish_ask(s, POLISH_ROUND, a->z, NULL))
        return false;
    a->round++;
    const double *h = s->answer, *numbers = h + a->M, objective = numbers[STAR_LOSS] + prior_at(s, a->z);
    const double residual = sqrt(fmax(numbers[STAR_RESIDUAL], 0)), moved = numbers[STAR_MOVED];
    const double guess = estimate(a, h, numbers[STAR_GAP], objective);
    if (objective < a->least) {
        a->least = objective;
        memcpy(a->best, a->z, a->M * sizeof *a->best);
    }
    a->latest[a->round] = guess;
    a->gaps[a->round] = fmin(fmax(numbers[STAR_GAP], 0), a->gaps[a->round - 1]);
    a->lowest[a->round] = fmin(guess, a->lowest[a->round - 1]);
    if (a->since == 0) {
        a->first = residual;
        memcpy(a->before, a->z, a->M * sizeof *a->before);
    }
    follow(a, h);
    const bool begins = restarts(a, residual);
    if (begins)
        restart(a, moved);
    a->last = residual;
    return a->watch->round(a->watch->context, a->best, a->least, residual, sqrt(fmax(moved, 0)));
}

static bool iterate(star *a)
{
    const star_watch *watch = a->watch;
    memcpy(a->z, a->s->w, a->M * sizeof *a->z);
    memcpy(a->best, a->z, a->M * sizeof *a->best);
    times_G(a, a->z, a->m);
    if (!resume(a))
        return false;
    memcpy(a->anchor, a->m, a->M * sizeof *a->m);
    a->lowest[0] = a->gaps[0] = a->certified = a->repaired = INFINITY;
    bool promised = false, looks = watch->look;
    while (a->round + 1 < HISTORY && play_round(a)) {
        const double now = a->lowest[a->round], goal = watch->gap * fabs(a->least);
        if (looks && now <= rough * fabs(a->least)) {
            looks = false;
            if (watch->look(watch->context, a->best))
                return true;
        }
        /* If the estimate promises the goal and the bound denies it, the estimate is wrong: z drifts in directions in
         * which the losses are flat. */
        const bool doubtful = now <= 0.5 * goal && 2 * a->round >= 3 * a->denied_at + 4 * OFTEN;
        /* If many rows are in their kinks, the bound repairs the columns' part of an estimate, but not the rows'
         * part. */
        const double rows = a->gaps[a->round];
        const bool repairable = !a->diagonal && rows <= 0.5 * goal && rows < again * a->repaired;
        if ((now <= hopeful * goal && now <= again * a->certified) || repairable || doubtful) {
            a->certified = fmin(a->certified, now);
            a->repaired = rows;
            if (watch->certify(watch->context, a->best))
                return true;
            if (!promised || doubtful)
                a->denied_at = a->round;
            promised = promised || now <= goal;
        }
        a->slow = is_slow(a, promised);
        if (a->slow || (doubtful && !watch->alone) || !is_worth(a))
            return true;
    }
    /* The limit of rows is reached: asks for a last bound. */
    if (!a->s->gone && !a->s->spent && a->lowest[a->round] < a->certified)
        (void)watch->certify(watch->context, a->best);
    return !a->s->gone;
}

static double *take_room(star *a)
{
    enum { VECTORS = 7 };
    double *room = alloc_zero(a->size + VECTORS * a->M, sizeof *room);
    double **const vectors[VECTORS] = {&a->m, &a->anchor, &a->z, &a->Gz, &a->before, &a->box, &a->best};
    for (size_t i = 0; room && i < VECTORS; i++)
        *vectors[i] = room + a->size + i * a->M;
    a->G = room;
    return room;
}

bool star_solve(polish_state *s, const star_watch *watch, bool *slow)
{
    star *a = alloc_zero(1, sizeof *a);
    double *room = NULL;
    bool done = false;
    if (a) {
        a->s = s;
        a->watch = watch;
        a->M = s->M;
        a->diagonal = !s->whole_metric;
        a->size = star_metric_size(a->M, !a->diagonal);
        a->least = watch->least;
        a->step = lasso_create(a->M, a->diagonal);
        room = take_room(a);
    }
    if (a && a->step && room) {
        for (size_t m = 0; m < a->M; m++) {
            a->box[m] = coordinate_box(s, m);
            a->tiny = fmax(a->tiny, (s->l1[m] > 0 ? 1e-10 : 1e-12) * (double)a->M);
        }
        done = find_metric(a);
        if (done)
            find_inflation(a);
        s->G = a->diagonal ? NULL : a->G;
        done = done && iterate(a);
        s->G = NULL;
        lasso_free(s->nearest);
        s->nearest = NULL;
        s->sigma = a->sigma;
        *slow = a->slow;
        if (s->p->memory)
            s->p->memory->sigma = a->sigma;
    }
    if (a)
        lasso_free(a->step);
    free(room);
    free(a);
    return done;
}
