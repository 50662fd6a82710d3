/* Clients with many rows; see generator_population.h. */
#include "made/generator_population.h"

#include "base/alloc.h"
#include "base/error.h"
#include "made/draws.h"
#include "math/dot.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct population {
    population_law law;
    double offset;        /* what the noise is shifted by */
    double *truth;        /* groups * M */
    unsigned char *group; /* of every client */
};

/* The stream of "population/<what><number><part>". */
static uint64_t key_of(const population_law *law, const char *what, size_t number, const char *part)
{
    char name[80];
    snprintf(name, sizeof name, "population/%s%zu%s", what, number, part);
    return rng_key(law->seed, rng_stream(name));
}

static rng draws_of(const population_law *law, const char *what, size_t number, const char *part)
{
    return (rng){.key = key_of(law, what, number, part), .counter = 0};
}

/* ---- the models ---- */

typedef struct {
    size_t *index;
    double *keep;
} room;

static double random_sign(rng *r)
{
    return rng_next_uniform(r) < 0.5 ? -1 : 1;
}

/* Bounded away from 0, so that the support can be found in every data set. */
static void draw_majority(const population_law *law, room *s, double *w)
{
    rng r = draws_of(law, "group", 1, "/values");
    support_draw(draws_of(law, "group", 1, "/support"), law->nonzero, law->features, s->index, s->keep);
    for (size_t m = 0; m < law->features; m++) {
        const double value = random_sign(&r) * (0.5 + rng_next_uniform(&r));
        w[m] = s->keep[m] != 0 ? value : 0;
    }
}

static void draw_other(const population_law *law, size_t group, size_t attempt, room *s, const double *majority,
                       double *w)
{
    char part[40];
    snprintf(part, sizeof part, "/values%zu", attempt);
    rng r = draws_of(law, "group", group + 1, part);
    snprintf(part, sizeof part, "/support%zu", attempt);
    support_draw(draws_of(law, "group", group + 1, part), law->nonzero, law->features, s->index, s->keep);
    for (size_t m = 0; m < law->features; m++) {
        const double step = law->distance * random_sign(&r);
        w[m] = majority[m] + (s->keep[m] != 0 ? step : 0);
    }
}

static bool is_new(const population *p, size_t group)
{
    const size_t M = p->law.features;
    for (size_t g = 0; g < group; g++)
        if (memcmp(p->truth + g * M, p->truth + group * M, M * sizeof(double)) == 0)
            return false;
    return true;
}

static hfsad_status draw_models(population *p, room *s, hfsad_error *err)
{
    enum { ATTEMPTS_MOST = 200 };
    const population_law *law = &p->law;
    draw_majority(law, s, p->truth);
    for (size_t g = 1; g < law->groups; g++) {
        size_t attempt = 0;
        do
            draw_other(law, g, attempt, s, p->truth, p->truth + g * law->features);
        while (!is_new(p, g) && ++attempt < ATTEMPTS_MOST);
        if (attempt == ATTEMPTS_MOST)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%zu groups cannot all have different models at distance %g in %zu of %zu features; use "
                             "fewer groups or more features",
                             law->groups, law->distance, law->nonzero, law->features);
    }
    return HFSAD_OK;
}

/* ---- which client follows which law ---- */

static size_t share_of(double share, size_t n)
{
    return (size_t)floor(share * (double)n + 0.5);
}

size_t population_minority(const population_law *law)
{
    if (law->groups < 2)
        return 0;
    return share_of(law->minority, law->minority_by == MINORITY_BY_EDGE ? law->edges : law->edges * law->clients);
}

/* The groups of the minority take turns. */
static unsigned char other_group(const population_law *law, size_t *turn)
{
    return (unsigned char)(1 + (*turn)++ % (law->groups - 1));
}

/* For every l, the first l edges have their rounded share of the clients: the minority is spread evenly. */
static void choose_clients(population *p, size_t *index)
{
    const population_law *law = &p->law;
    size_t before = 0, turn = 0;
    for (size_t l = 0; l < law->edges; l++) {
        const size_t until = share_of(law->minority, (l + 1) * law->clients);
        rng r = draws_of(law, "edge", l + 1, "/minority");
        for (size_t j = 0; j < law->clients; j++)
            index[j] = j;
        rng_shuffle(&r, index, law->clients);
        for (size_t i = 0; i < until - before; i++)
            p->group[l * law->clients + index[i]] = other_group(law, &turn);
        before = until;
    }
}

static void choose_edges(population *p, size_t *index)
{
    const population_law *law = &p->law;
    const size_t chosen = population_minority(law);
    rng r = draws_of(law, "cloud", 0, "/minority");
    for (size_t l = 0; l < law->edges; l++)
        index[l] = l;
    rng_shuffle(&r, index, law->edges);
    size_t turn = 0;
    for (size_t i = 0; i < chosen; i++)
        memset(p->group + index[i] * law->clients, other_group(law, &turn), law->clients);
}

static hfsad_status set_up_population(population *p, hfsad_error *err)
{
    const population_law *law = &p->law;
    const bool by_edge = law->minority_by == MINORITY_BY_EDGE;
    const size_t M = law->features, others = by_edge ? law->edges : law->clients;
    room s = {alloc_raw(M > others ? M : others, sizeof(size_t)), alloc_raw(M, sizeof(double))};
    p->truth = alloc_zero(law->groups * M, sizeof *p->truth);
    p->group = alloc_zero(law->edges * law->clients, sizeof *p->group);
    hfsad_status status;
    if (s.index && s.keep && p->truth && p->group) {
        status = draw_models(p, &s, err);
        if (law->groups > 1)
            (by_edge ? choose_edges : choose_clients)(p, s.index);
    } else {
        status = error_memory(err, (law->groups + 2) * M * sizeof(double) + law->edges * law->clients, "the models");
    }
    free(s.index);
    free(s.keep);
    return status;
}

hfsad_status population_create(population **p, const population_law *law, hfsad_error *err)
{
    assert(law->edges && law->clients && law->features && law->nonzero && law->nonzero <= law->features);
    assert(law->groups && law->groups <= GROUPS_MOST && population_minority(law) + 1 >= law->groups);
    *p = alloc_zero(1, sizeof **p);
    if (!*p)
        return error_memory(err, sizeof **p, "the generator");
    (*p)->law = *law;
    (*p)->offset = law->task == TASK_REGRESSION ? noise_quantile(&law->noise, law->tau) : 0;
    const hfsad_status status = set_up_population(*p, err);
    if (status) {
        population_free(*p);
        *p = NULL;
    }
    return status;
}

void population_free(population *p)
{
    if (!p)
        return;
    free(p->truth);
    free(p->group);
    free(p);
}

size_t population_features(const population *p)
{
    return p->law.features;
}

const double *population_truth(const population *p, size_t group)
{
    assert(group < p->law.groups);
    return p->truth + group * p->law.features;
}

size_t population_group(const population *p, size_t client)
{
    assert(client < p->law.edges * p->law.clients);
    return p->group[client];
}

size_t population_edge(const population *p, size_t client)
{
    return client / p->law.clients;
}

double population_intercept(const population *p, size_t edge)
{
    rng r = draws_of(&p->law, "edge", edge + 1, "/intercept");
    return p->law.intercepts > 0 ? p->law.intercepts * rng_next_normal(&r) : 0;
}

/* ---- rows ---- */

/* What the rows of a client are drawn from. */
typedef struct {
    const double *w;
    double intercept;
    uint64_t features, noise, centre; /* keys */
} client_source;

static client_source source_of(const population *p, size_t client, population_part part)
{
    static const char *const features[] = {"/features", "/test/features"}, *const noise[] = {"/noise", "/test/noise"};
    return (client_source){
        .w = population_truth(p, population_group(p, client)),
        .intercept = population_intercept(p, population_edge(p, client)),
        .features = key_of(&p->law, "client", client + 1, features[part]),
        .noise = key_of(&p->law, "client", client + 1, noise[part]),
        .centre = key_of(&p->law, "client", client + 1, "/centre"),
    };
}

static void draw_features(const population_law *law, const client_source *s, size_t row, double *x)
{
    draw_correlated(s->features, row, s->centre, law->features, law->rho, law->shift, x, 1);
}

/* The Poisson quantile of this mean at the level of a normal number; from 500 on, the normal approximation is used. */
static double count_at(double mean, double normal)
{
    static const double near_normal = 500;
    if (!(mean < near_normal))
        return fmax(0, floor(mean + sqrt(mean) * normal + 0.5));
    const double at = 0.5 * erfc(-normal / sqrt(2));
    double share = exp(-mean), sum = share, count = 0;
    while (sum < at && count < 4 * near_normal) {
        count++;
        share *= mean / count;
        sum += share;
    }
    return count;
}

/* Fills x and returns y. */
static double draw_row(const population *p, const client_source *s, size_t row, double *x)
{
    const population_law *law = &p->law;
    draw_features(law, s, row, x);
    const double spread = law->heteroscedastic ? (1 + fabs(x[0])) / 2 : 1;
    const double noise = noise_sample(&law->noise, s->noise, row) - p->offset;
    for (size_t m = 0; m < law->features && law->task == TASK_COUNTS; m++)
        x[m] /= 4;
    if (law->task == TASK_COUNTS)
        return count_at(exp(dot8(law->features, x, s->w) + s->intercept), noise);
    const double observed = dot8(law->features, x, s->w) + s->intercept + spread * noise;
    if (law->task == TASK_CLASSIFICATION)
        return observed > 0 ? 1 : -1;
    return observed;
}

void population_fill(const population *p, size_t client, population_part part, size_t first, size_t count, double *x,
                     double *y)
{
    const client_source s = source_of(p, client, part);
    for (size_t i = 0; i < count; i++)
        y[i] = draw_row(p, &s, first + i, x + i * p->law.features);
}

hfsad_status population_rows(const population *p, population_part part, size_t rows, row_use use, void *context,
                             hfsad_error *err)
{
    const population_law *law = &p->law;
    double *x = alloc_raw(law->features, sizeof *x);
    if (!x)
        return error_memory(err, law->features * sizeof *x, "one row of the data");
    bool more = true;
    for (size_t client = 0; client < law->edges * law->clients && more; client++) {
        const client_source s = source_of(p, client, part);
        char edge[32], name[32];
        snprintf(edge, sizeof edge, "edge%zu", population_edge(p, client) + 1);
        snprintf(name, sizeof name, "client%zu", client + 1);
        generated_row row = {edge, name, 0, x};
        for (size_t i = 0; i < rows && more; i++) {
            row.y = draw_row(p, &s, i, x);
            more = use(context, &row);
        }
    }
    free(x);
    return HFSAD_OK;
}
