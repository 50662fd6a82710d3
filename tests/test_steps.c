/*
 * The two-vector form against the textbook's five: every link keeps z, q, Lambda, Gamma and the child's w, messages are
 * q and Gamma, and the equations stand as in the paper, with its slips repaired (docs/algorithm.md). Trees of depth 1,
 * 2, 3, uneven, with every penalty.
 */
#include "defined_losses.h"

enum { M_MOST = 37 };

typedef struct {
    double w[M_MOST], z[M_MOST], q[M_MOST], lambda[M_MOST], gamma[M_MOST];
    uint64_t k;
} five;

typedef struct {
    const dataset *d;
    const plan *p;
    five *inner, *leaf;
} textbook;

static double root_of(const hfsad_schedule *s, uint64_t k)
{
    const double turn = s->growth > 0 && (double)k > s->turn ? s->turn : (double)k;
    return sqrt(turn) * (s->growth > 0 ? pow(s->growth, (double)k - turn) : 1);
}

static double sigma_of(const hfsad_link_rule *rule, uint64_t k)
{
    return rule->schedule.c * root_of(&rule->schedule, k);
}

static void textbook_link(const textbook *t, five *l, const hfsad_link_rule *rule, const double *w_parent)
{
    const double sigma = sigma_of(rule, l->k), mu = rule->schedule.alpha / root_of(&rule->schedule, l->k);
    const bool group = penalty_kind_of(&rule->penalty)->group;
    double norm = 0;
    for (size_t m = 0; m < t->d->M && group; m++) {
        const double relaxed = l->w[m] + rule->schedule.over * (l->w[m] - l->z[m]);
        norm = hypot(norm, w_parent[m] + l->gamma[m] / sigma - relaxed - l->lambda[m] / sigma);
    }
    const double shrink = norm > 0 ? hfsad_penalty_prox(&rule->penalty, norm, 2 / sigma, mu) / norm : 0;
    for (size_t m = 0; m < t->d->M; m++) {
        const double relaxed = l->w[m] + rule->schedule.over * (l->w[m] - l->z[m]);
        const double a = relaxed + l->lambda[m] / sigma, b = w_parent[m] + l->gamma[m] / sigma;
        const double e = group ? shrink * (b - a) : hfsad_penalty_prox(&rule->penalty, b - a, 2 / sigma, mu);
        l->z[m] = (a + b - e) / 2;
        l->q[m] = (a + b + e) / 2;
        l->lambda[m] = sigma * (a - l->z[m]);
        l->gamma[m] = sigma * (b - l->q[m]);
    }
}

static const leaf_class *class_of(const plan *p, size_t leaf)
{
    return &p->leaf_classes[p->leaf_class_of ? p->leaf_class_of[leaf] : 0];
}

static void textbook_leaf(textbook *t, size_t leaf, size_t parent)
{
    five *l = &t->leaf[leaf];
    const leaf_class *c = class_of(t->p, leaf);
    double x[M_MOST], v[M_MOST], scratch[8 * M_MOST];
    dataset_gather(t->d, t->d->x, leaf, x);
    for (uint32_t step = 0; step < c->local_steps; step++) {
        const double sigma = sigma_of(&c->rule, ++l->k);
        for (size_t m = 0; m < t->d->M; m++)
            v[m] = l->z[m] - l->lambda[m] / sigma;
        hfsad_loss_prox(&c->loss, t->d->M, x, t->d->y[leaf], t->d->n[leaf], v, sigma, l->w, scratch);
        textbook_link(t, l, &c->rule, t->inner[parent].w);
    }
}

/* Sum over the children of sigma(k+1) q - Gamma and of sigma(k+1). */
static double textbook_children(const textbook *t, size_t i, double *sum)
{
    const inner_node *node = &t->d->inner[i];
    double total = 0;
    memset(sum, 0, t->d->M * sizeof *sum);
    for (size_t c = 0; c < (size_t)node->n_inner + node->n_leaves; c++) {
        const bool inner = c < node->n_inner;
        const size_t index = inner ? node->first_inner + c : node->first_leaf + (c - node->n_inner);
        const five *l = inner ? &t->inner[index] : &t->leaf[index];
        const double sigma = sigma_of(inner ? &t->p->inner[index].rule : &class_of(t->p, index)->rule, l->k + 1);
        for (size_t m = 0; m < t->d->M; m++)
            sum[m] += sigma * l->q[m] - l->gamma[m];
        total += sigma;
    }
    return total;
}

static void textbook_inner(textbook *t, size_t i)
{
    five *l = &t->inner[i];
    const inner_class *c = &t->p->inner[i];
    double sum[M_MOST];
    const double below_sigma = textbook_children(t, i, sum);
    const double sigma = i ? sigma_of(&c->rule, ++l->k) : 0, scale = 1 / (sigma + below_sigma);
    for (size_t m = 0; m < t->d->M; m++) {
        const double own = i ? sigma * l->z[m] - l->lambda[m] : 0;
        l->w[m] = hfsad_penalty_prox(&c->prior, scale * (own + sum[m]), scale, 0);
    }
    if (i)
        textbook_link(t, l, &c->rule, t->inner[t->d->inner[i].parent].w);
}

static void textbook_iterate(textbook *t)
{
    const dataset *d = t->d;
    for (uint32_t round = 0; round < t->p->edge_rounds; round++) {
        for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
            textbook_leaf(t, leaf, dataset_parent(d, leaf));
        for (size_t i = d->n_inner; i-- > 1;)
            textbook_inner(t, i);
    }
    textbook_inner(t, 0);
}

static void start_at(five *l, size_t n, const double *start, size_t M)
{
    for (size_t i = 0; i < n; i++) {
        memset(&l[i], 0, sizeof l[i]);
        memcpy(l[i].w, start, M * sizeof *start);
        memcpy(l[i].z, start, M * sizeof *start);
        memcpy(l[i].q, start, M * sizeof *start);
    }
}

/* Non-convex links amplify a rounding from step to step. */
static double tolerance = 1e-9;

static void close_enough(const char *what, size_t node, const double *have, const double *want, size_t M, uint64_t seed)
{
    for (size_t m = 0; m < M; m++)
        if (!(fabs(have[m] - want[m]) <= tolerance * (1 + fabs(want[m]))))
            fail_msg("seed %llu: %s %zu, coordinate %zu: %.17g, textbook %.17g", (unsigned long long)seed, what, node,
                     m, have[m], want[m]);
}

static void compare(const textbook *t, const sim *s, uint64_t seed)
{
    double w[M_MOST], z[M_MOST], q[M_MOST];
    const size_t M = t->d->M;
    for (size_t i = 0; i < t->d->n_inner; i++)
        close_enough("inner w", i, sim_inner_model(s, i), t->inner[i].w, M, seed);
    for (size_t leaf = 0; leaf < t->d->n_leaves; leaf++) {
        sim_leaf_model(s, leaf, w);
        const link_counters k = sim_leaf_link(s, leaf, z, q);
        assert_int_equal(k.k, t->leaf[leaf].k);
        close_enough("leaf w", leaf, w, t->leaf[leaf].w, M, seed);
        close_enough("leaf z", leaf, z, t->leaf[leaf].z, M, seed);
        close_enough("leaf q", leaf, q, t->leaf[leaf].q, M, seed);
        for (size_t m = 0; m < M; m++) /* Gamma = -Lambda */
            assert_true(fabs(t->leaf[leaf].gamma[m] + t->leaf[leaf].lambda[m]) <
                        1e-8 * (1 + fabs(t->leaf[leaf].gamma[m])));
    }
}

static void run_both(const dataset *d, const plan *p, rng *r, uint64_t seed)
{
    hfsad_error err;
    double start[M_MOST];
    for (size_t m = 0; m < d->M; m++)
        start[m] = 0.5 * rng_next_normal(r);
    textbook t = {d, p, alloc_zero(d->n_inner, sizeof(five)), alloc_zero(d->n_leaves, sizeof(five))};
    start_at(t.inner, d->n_inner, start, d->M);
    start_at(t.leaf, d->n_leaves, start, d->M);
    pool *threads;
    sim *s;
    ok(pool_create(&threads, 1, &err), &err);
    ok(sim_create(&s, d, p, start, NULL, threads, &err), &err);
    for (int i = 0; i < 25; i++) {
        sim_iterate(s);
        textbook_iterate(&t);
        compare(&t, s, seed);
    }
    sim_free(s);
    pool_free(threads);
    free(t.inner);
    free(t.leaf);
}

/* The paper's schedule, a geometric one, or the paper's up to a turn; over-relaxed in half of the cases. */
static hfsad_schedule random_schedule(rng *r, double c, double alpha)
{
    hfsad_schedule s = {.c = c, .alpha = alpha, .turn = 1 + (double)below(r, 2) * 6};
    s.growth = below(r, 3) ? uniform(r, 1.001, 1.05) : 0;
    s.over = below(r, 2) ? uniform(r, 0, 0.8) : 0;
    return s;
}

/* Draws in statements of their own: in an argument list their order would be the compiler's. With a concave link
 * mu <= gamma lambda from the first step: above that the prox at 0 is one of two minimisers of equal depth, and which
 * one is a matter of rounding. */
static leaf_class random_leaf_class(rng *r, size_t kind, size_t link)
{
    leaf_class c = {.participation = 1};
    c.loss = (hfsad_loss){(hfsad_loss_kind)kind, 0.3, 1, INFINITY, 0.3};
    if (below(r, 2))
        c.loss.box = 1.5;
    c.rule.penalty = (hfsad_penalty){(hfsad_penalty_kind)link, uniform(r, 1, 5), 1, 3, 0, 0};
    c.rule.penalty.lambda = uniform(r, 0.5, 1.5);
    const double sigma = uniform(r, 2, 8);
    c.rule.schedule = random_schedule(r, sigma, link == HFSAD_PENALTY_L1 ? 4 : 1);
    c.local_steps = 1 + (uint32_t)below(r, 2);
    return c;
}

static inner_class random_inner_class(rng *r, size_t link)
{
    inner_class c = {.participation = 1};
    c.prior = (hfsad_penalty){(hfsad_penalty_kind)below(r, HFSAD_PENALTY_GROUP_MCP), 1, 0.1, 2.4, 0, 0.5};
    c.prior.weight = uniform(r, 0.1, 2);
    c.rule.penalty = (hfsad_penalty){(hfsad_penalty_kind)link, uniform(r, 5, 20), 1, 3, 0, 0};
    const double sigma = uniform(r, 5, 20);
    c.rule.schedule = random_schedule(r, sigma, link == HFSAD_PENALTY_L1 ? 20 : 2);
    return c;
}

static const struct {
    size_t edges;
    const char *paths[6];
    size_t clients[6];
} trees[] = {
    {1, {""}, {11}},
    {3, {"a", "b", "c"}, {9, 1, 17}},
    {6, {"r1/a", "r1/b", "r2/c", "r2/d", "r2", ""}, {3, 8, 1, 20, 2, 5}},
};

/* Every tree, loss and penalty; overrides that mix classes within an edge too. */
static void same_iterates(void **state)
{
    (void)state;
    static const hfsad_penalty_kind links[] = {HFSAD_PENALTY_L1, HFSAD_PENALTY_MCP, HFSAD_PENALTY_SCAD,
                                               HFSAD_PENALTY_GROUP_MCP, HFSAD_PENALTY_GROUP_SCAD};
    for (uint64_t seed = 0; seed < 3 * LOSSES * 5; seed++) {
        rng r = {rng_key(seed, rng_stream("steps")), 0};
        const size_t tree = seed % 3, kind = kind_at(seed / 3), link = links[seed / (3 * LOSSES)];
        const bool labels = has_labels((hfsad_loss_kind)kind);
        dataset *d = random_dataset(&r, trees[tree].edges, trees[tree].paths, trees[tree].clients,
                                    1 + below(&r, M_MOST), labels);
        plan *p = simple_plan(d, random_leaf_class(&r, kind, link), random_inner_class(&r, link),
                              1 + (uint32_t)below(&r, 3), true);
        if (seed % 2) {
            p->n_leaf_classes = 2;
            free(p->leaf_classes);
            p->leaf_classes = alloc_zero(2, sizeof *p->leaf_classes);
            p->leaf_classes[0] = random_leaf_class(&r, kind, link);
            p->leaf_classes[1] = random_leaf_class(&r, labels ? HFSAD_LOSS_LOGISTIC : HFSAD_LOSS_HUBER, 1);
            p->leaf_class_of = alloc_zero(d->n_leaves, sizeof *p->leaf_class_of);
            for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
                p->leaf_class_of[leaf] = (uint16_t)below(&r, 2);
        }
        tolerance = link == HFSAD_PENALTY_L1 ? 1e-10 : 1e-8;
        run_both(d, p, &r, seed);
        plan_free(p);
        dataset_free(d);
    }
}

/* The message is sigma(k+1) q - Gamma with Gamma from the textbook. */
static void message_is_the_textbooks(void **state)
{
    (void)state;
    const hfsad_link_rule rule = {{HFSAD_PENALTY_L1, 3, 1, 0, 0, 0}, {.c = 2, .alpha = 1.5}};
    double z[3] = {0.2, 0.2, 0.2}, q[3] = {0.2, 0.2, 0.2}, child[3] = {1, -0.5, 0.21}, parent[3] = {-1, 0.4, 0.2}, u[3];
    hfsad_link link = {z, q, 1};
    hfsad_link_step(&rule, &link, 3, child, parent);
    assert_true(fabs(hfsad_link_message(&rule, &link, 3, u) - 2 * sqrt(2)) < 1e-15);
    for (size_t m = 0; m < 3; m++) {
        const double gamma = 2 * (parent[m] - q[m]); /* Gamma was 0, sigma(1) = 2 */
        assert_true(fabs(u[m] - (2 * sqrt(2) * q[m] - gamma)) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_iterates),
        cmocka_unit_test(message_is_the_textbooks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
