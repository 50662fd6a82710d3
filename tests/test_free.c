/*
 * Coordinates without a penalty (an intercept): the steps with penalty.free = 1 are the steps on the other coordinates
 * beside one that nothing ties or shrinks. And the step of a client with many rows is that of one observation where it
 * has one row.
 */
#include "defined_losses.h"

#include "core/kernels.h"

enum { M_MOST = 30 };

/* A link somewhere in its life, and what its steps take. */
typedef struct {
    hfsad_link_rule rule;
    hfsad_penalty prior;
    uint32_t k;
    size_t M;
    double z[M_MOST], q[M_MOST], child[M_MOST], parent[M_MOST], root[M_MOST], sum_u[M_MOST], sum_sigma;
} situation;

/* What comes out. */
typedef struct {
    double z[M_MOST], q[M_MOST], u[M_MOST], w[M_MOST], w_root[M_MOST];
    double dual, sigma, prior;
    link_sums sums;
} outcome;

static hfsad_penalty random_penalty(rng *r)
{
    return (hfsad_penalty){(hfsad_penalty_kind)below(r, HFSAD_PENALTY_COUNT),
                           uniform(r, 0.1, 5),
                           uniform(r, 0.1, 2),
                           uniform(r, 2.1, 5),
                           0,
                           0.4};
}

static situation random_situation(rng *r)
{
    situation s = {
        .rule = {random_penalty(r), {.c = log_uniform(r, 0.1, 10), .alpha = log_uniform(r, 0.05, 5)}},
        .prior = random_penalty(r),
        .k = (uint32_t)(1 + below(r, 50)),
        .M = 2 + below(r, M_MOST - 1),
        .sum_sigma = uniform(r, 0.5, 20),
    };
    double *const vectors[] = {s.z, s.q, s.child, s.parent, s.root, s.sum_u};
    for (size_t i = 0; i < 6; i++)
        for (size_t m = 0; m < s.M; m++)
            vectors[i][m] = rng_next_normal(r);
    return s;
}

static outcome play(const situation *s, size_t M)
{
    outcome o = {0};
    memcpy(o.z, s->z, M * sizeof *o.z);
    memcpy(o.q, s->q, M * sizeof *o.q);
    hfsad_link link = {o.z, o.q, s->k};
    const kernel_table *t = kernels();
    t->inner_update(&s->prior, &s->rule, &link, M, s->sum_u, s->sum_sigma, o.w);
    t->inner_update(&s->prior, NULL, NULL, M, s->sum_u, s->sum_sigma, o.w_root);
    t->link_measure(&s->rule, &link, M, s->child, s->parent, s->root, &o.sums);
    o.dual = t->link_step(&s->rule, &link, M, s->child, s->parent);
    o.sigma = t->link_message(&s->rule, &link, M, o.u);
    o.prior = t->prior_value(&s->prior, M, s->child);
    return o;
}

static void near(uint64_t seed, const char *what, double have, double want)
{
    if (!(fabs(have - want) <= 1e-12 * (1 + fabs(want))))
        fail_msg("seed %llu: %s is %.17g, expected %.17g", (unsigned long long)seed, what, have, want);
}

static bool is_group(const hfsad_penalty *p)
{
    return p->kind == HFSAD_PENALTY_GROUP_MCP || p->kind == HFSAD_PENALTY_GROUP_SCAD;
}

/* The gradient of the link's penalty at q - z, coordinate m; of a group it is that of the norm, in the direction of q -
 * z. */
static double pull_at(const situation *s, size_t m, double mu)
{
    const hfsad_penalty *p = &s->rule.penalty;
    const double d = s->q[m] - s->z[m];
    if (!is_group(p))
        return hfsad_penalty_gradient(p, d, mu);
    double square = 0;
    for (size_t i = 0; i < s->M - p->free; i++)
        square += (s->q[i] - s->z[i]) * (s->q[i] - s->z[i]);
    return d / sqrt(square) * hfsad_penalty_gradient(p, sqrt(square), mu);
}

/* The last coordinate by the equations of docs/algorithm.md, tied or not, with a prior or without. */
static void check_last(uint64_t seed, const situation *s, const outcome *o)
{
    const size_t m = s->M - 1;
    const hfsad_schedule *times = &s->rule.schedule;
    const double sigma = times->c * sqrt(s->k), root = 1 / s->sum_sigma, scale = 1 / (sigma + s->sum_sigma);
    const double mu = s->k > 1 ? times->alpha / sqrt(s->k - 1.0) : INFINITY;
    const double pull = s->rule.penalty.free ? 0 : pull_at(s, m, mu);
    const double at = scale * (s->sum_u[m] + sigma * s->z[m] + pull), at_root = root * s->sum_u[m];
    near(seed, "an edge's w", o->w[m], s->prior.free ? at : hfsad_penalty_prox(&s->prior, at, scale, 0));
    near(seed, "the cloud's w", o->w_root[m],
         s->prior.free ? at_root : hfsad_penalty_prox(&s->prior, at_root, root, 0));
    if (!s->rule.penalty.free)
        return;
    near(seed, "z", o->z[m], s->child[m]);
    near(seed, "q", o->q[m], s->child[m]);
    near(seed, "u", o->u[m], times->c * sqrt(s->k + 1.0) * s->child[m]);
}

static void same(uint64_t seed, const char *what, const void *a, const void *b, size_t size)
{
    if (memcmp(a, b, size))
        fail_msg("seed %llu: %s differs", (unsigned long long)seed, what);
}

static void free_coordinates(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        rng r = {rng_key(seed, rng_stream("free")), 0};
        situation s = random_situation(&r);
        const size_t rest = s.M - 1, bytes = rest * sizeof(double);
        const outcome tied = play(&s, rest);
        s.rule.penalty.free = below(&r, 2);
        s.prior.free = below(&r, 2);
        const outcome o = play(&s, s.M);
        check_last(seed, &s, &o);
        same(seed, "the cloud's w", o.w_root, tied.w_root, bytes);
        same(seed, "sigma", &o.sigma, &tied.sigma, sizeof o.sigma);
        if (s.prior.free)
            same(seed, "the prior's value", &o.prior, &tied.prior, sizeof o.prior);
        if (is_group(&s.rule.penalty) && !s.rule.penalty.free)
            continue; /* the last coordinate is part of the norm */
        same(seed, "w", o.w, tied.w, bytes);
        same(seed, "z", o.z, tied.z, bytes);
        same(seed, "q", o.q, tied.q, bytes);
        same(seed, "u", o.u, tied.u, bytes);
        if (s.rule.penalty.free) {
            same(seed, "the measurement", &o.sums, &tied.sums, sizeof o.sums);
            same(seed, "the dual residual", &o.dual, &tied.dual, sizeof o.dual);
        }
    }
}

static void every_instruction_set(void **state)
{
    (void)state;
    static const char *const names[] = {"avx2", "avx512"};
    for (uint64_t seed = 0; seed < 500; seed++) {
        rng r = {rng_key(seed, rng_stream("free bits")), 0};
        situation s = random_situation(&r);
        s.rule.penalty.free = below(&r, 2);
        s.prior.free = below(&r, 2);
        assert_true(kernels_choose("plain"));
        const outcome plain = play(&s, s.M);
        for (size_t k = 0; k < 2; k++)
            if (kernels_choose(names[k])) {
                const outcome fast = play(&s, s.M);
                same(seed, names[k], &fast, &plain, sizeof fast);
            }
        kernels_choose(NULL);
    }
}

/* One dense row of weight w, the last column the intercept's where there is one. */
typedef struct {
    situation s;
    hfsad_loss loss;
    bool intercept;
    double x[M_MOST], y, n, weight, constant;
} one_row;

static one_row random_row(rng *r)
{
    one_row o = {.s = random_situation(r), .intercept = below(r, 2), .weight = uniform(r, 0.5, 2)};
    const bool own = o.intercept && below(r, 2);
    o.loss = (hfsad_loss){kind_at(below(r, LOSSES)), 0.3, 1, !o.intercept && below(r, 2) ? 0.5 : INFINITY, 0.3};
    o.s.rule.penalty.free = own;
    o.constant = o.intercept ? uniform(r, 0.5, 2) : 0;
    o.y = has_labels(o.loss.kind) ? -1 : o.loss.kind == HFSAD_LOSS_POISSON ? 2 : uniform(r, -1, 3);
    for (size_t m = 0; m < o.s.M; m++) {
        o.x[m] = o.intercept && m == o.s.M - 1 ? o.constant : rng_next_normal(r);
        o.n += o.x[m] * o.x[m];
    }
    return o;
}

/* w by the prox of one observation at z - Lambda/sigma. */
static void by_observation(const one_row *o, double *w)
{
    const situation *s = &o->s;
    const double sigma = s->rule.schedule.c * sqrt(s->k);
    const double mu = s->k > 1 ? s->rule.schedule.alpha / sqrt(s->k - 1.0) : INFINITY;
    double v[M_MOST], scratch[5 * M_MOST];
    for (size_t m = 0; m < s->M; m++) {
        const bool tied = m < s->M - s->rule.penalty.free;
        v[m] = s->z[m] + (tied ? pull_at(s, m, mu) / sigma : 0);
    }
    hfsad_loss_prox(&o->loss, s->M, o->x, o->y, o->n, v, sigma / o->weight, w, scratch);
}

/* The same by the step of many rows; z and q are left after the link step. Returns the dual residual's square. */
static double by_rows(const one_row *o, double *z, double *q, double *w)
{
    const rows_solver solver = {ROWS_EXACT, 1e-12, 1000};
    const size_t M = o->s.M;
    double scratch[8 * M_MOST + 1], centre[M_MOST], slope = 0, anchor = 0;
    uint32_t k = o->s.k - 1;
    memcpy(z, o->s.z, M * sizeof *z);
    memcpy(q, o->s.q, M * sizeof *q);
    const rows_leaf leaf = {
        .problem =
            {
                .loss = &o->loss,
                .solver = &solver,
                .rows = {.count = 1,
                         .F = M - o->intercept,
                         .x = o->x,
                         .y = &o->y,
                         .weight = &o->weight,
                         .constant = o->constant},
                .M = M,
                .factor = 1,
                .slope = &slope,
                .anchor = rows_anchored(&o->loss) ? &anchor : NULL,
                .scratch = scratch,
            },
        .rule = &o->s.rule,
        .z = z,
        .q = q,
        .w = w,
        .k = &k,
        .w_parent = o->s.parent,
        .centre = centre,
    };
    const double dual = kernels()->rows_step(&leaf);
    assert_int_equal(k, o->s.k);
    return dual;
}

/* On a link that has a past. */
static void one_row_is_one_observation(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        rng r = {rng_key(seed, rng_stream("one row")), 0};
        one_row o = random_row(&r);
        double w[M_MOST], want[M_MOST], z[M_MOST], q[M_MOST];
        by_observation(&o, want);
        const double dual = by_rows(&o, z, q, w);
        hfsad_link link = {o.s.z, o.s.q, o.s.k};
        near(seed, "the dual residual", dual, kernels()->link_step(&o.s.rule, &link, o.s.M, w, o.s.parent));
        for (size_t m = 0; m < o.s.M; m++) {
            if (!(fabs(w[m] - want[m]) <= 1e-9 * (1 + fabs(want[m]))))
                fail_msg("seed %llu: w[%zu] = %.17g, by the prox of one observation %.17g", (unsigned long long)seed, m,
                         w[m], want[m]);
            near(seed, "z", z[m], o.s.z[m]);
            near(seed, "q", q[m], o.s.q[m]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_coordinates),
        cmocka_unit_test(every_instruction_set),
        cmocka_unit_test(one_row_is_one_observation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
