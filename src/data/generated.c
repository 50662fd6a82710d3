/* See generated.h. */
#include "data/generated.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "data/builder_parts.h"
#include "math/dot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct generated {
    bool paper;
    phase_retrieval phase;
    population_law law;
    size_t rows;
    population *people;
    double *truth, scale;
    feature_law features;
    double *keep; /* M for every edge; NULL: not paper */
    size_t edges, clients, M;
    bool drawn;
};

/* ---- rows into a data set ---- */

hfsad_status row_collector_begin(row_collector *c, size_t features, hfsad_error *err)
{
    *c = (row_collector){.err = err};
    return dataset_builder_create(&c->builder, features, err);
}

bool row_collect(void *context, const generated_row *row)
{
    row_collector *c = context;
    c->status = dataset_builder_add(c->builder, row->edge, row->client, row->y, row->x, NULL, 0, c->err);
    return c->status == HFSAD_OK;
}

hfsad_status row_collector_end(row_collector *c, hfsad_status status, dataset **d)
{
    if (!status)
        status = c->status;
    if (!status)
        return dataset_builder_finish(c->builder, d, c->err);
    dataset_builder_free(c->builder);
    return status;
}

hfsad_status phase_retrieval_generate(const phase_retrieval *g, dataset **d, double *truth, hfsad_error *err)
{
    double scale;
    row_collector c;
    hfsad_status status = phase_retrieval_prepare(g, truth, &scale, err);
    if (!status)
        status = row_collector_begin(&c, g->features, err);
    if (status)
        return status;
    return row_collector_end(&c, phase_retrieval_rows(g, truth, scale, row_collect, &c, err), d);
}

hfsad_status population_dataset(const population *p, population_part part, size_t rows, dataset **d, hfsad_error *err)
{
    row_collector c;
    const hfsad_status status = row_collector_begin(&c, population_features(p), err);
    if (status)
        return status;
    return row_collector_end(&c, population_rows(p, part, rows, row_collect, &c, err), d);
}

/* ---- the words ---- */

/* Options as `hfsad generate` has them, with _ for -; NAN: not given. */
typedef struct {
    double edges, clients, features, rows, seed, snr_db, keep_x, keep_w, nonzero, rho, shift, intercepts, noise,
        noise_scale, df, outliers, outlier_factor, tau, heteroscedastic;
} words;

typedef enum { FOR_ALL, FOR_PAPER, FOR_QUANTILE } option_use;

typedef struct {
    const char *name;
    size_t at; /* in words */
    double low, high;
    bool whole, open; /* open: without its ends */
    option_use use;
} option;

#define AT(member) offsetof(words, member)
static const option OPTIONS[] = {
    {"edges", AT(edges), 1, 1e9, true, false, FOR_ALL},
    {"clients", AT(clients), 1, 1e9, true, false, FOR_ALL},
    {"features", AT(features), 1, 1e9, true, false, FOR_ALL},
    {"rows", AT(rows), 1, 1e9, true, false, FOR_ALL},
    {"seed", AT(seed), 0, 9007199254740992.0, true, false, FOR_ALL},
    {"snr_db", AT(snr_db), -1000, 1000, false, false, FOR_PAPER},
    {"keep_x", AT(keep_x), 1e-9, 1, false, false, FOR_PAPER},
    {"keep_w", AT(keep_w), 1e-9, 1, false, false, FOR_PAPER},
    {"nonzero", AT(nonzero), 1, 1e9, true, false, FOR_QUANTILE},
    {"rho", AT(rho), -1, 1, false, true, FOR_QUANTILE},
    {"shift", AT(shift), 0, 1e9, false, false, FOR_QUANTILE},
    {"intercepts", AT(intercepts), 0, 1e9, false, false, FOR_QUANTILE},
    {"noise_scale", AT(noise_scale), 0, 1e9, false, false, FOR_QUANTILE},
    {"df", AT(df), 0.5, 1000, false, false, FOR_QUANTILE},
    {"outliers", AT(outliers), 0, 1, false, false, FOR_QUANTILE},
    {"outlier_factor", AT(outlier_factor), 1, 1e9, false, false, FOR_QUANTILE},
    {"tau", AT(tau), 0, 1, false, true, FOR_QUANTILE},
};
#undef AT
enum { N_OPTIONS = sizeof OPTIONS / sizeof *OPTIONS, WORD_SIZE = 64 };

/* The next word, cut; false: there is none. */
static bool next_word(const char **text, char word[WORD_SIZE])
{
    *text += strspn(*text, " \t\n");
    const size_t length = strcspn(*text, " \t\n");
    snprintf(word, WORD_SIZE, "%.*s", (int)(length < WORD_SIZE ? length : WORD_SIZE - 1), *text);
    *text += length;
    return length > 0;
}

static hfsad_status read_noise(words *w, const char *value, hfsad_error *err)
{
    static const char *const names[] = {NOISE_NAMES};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(value, names[i])) {
            w->noise = (double)i;
            return HFSAD_OK;
        }
    return error_set(err, HFSAD_ERROR_INPUT,
                     "data: generate: noise=%s; expected gaussian, student, mixture, laplace or logistic", value);
}

static hfsad_status read_option(words *w, bool paper, const char *name, const char *value, hfsad_error *err)
{
    if (!strcmp(name, "noise") && !paper)
        return read_noise(w, value, err);
    if (!strcmp(name, "heteroscedastic") && !paper && (!strcmp(value, "true") || !strcmp(value, "false"))) {
        w->heteroscedastic = !strcmp(value, "true");
        return HFSAD_OK;
    }
    for (const option *o = OPTIONS; o < OPTIONS + N_OPTIONS; o++) {
        char *end;
        const double number = strtod(value, &end);
        if (strcmp(o->name, name) != 0 || (o->use != FOR_ALL && (o->use == FOR_PAPER) != paper))
            continue;
        if (*end || end == value || !(number >= o->low && number <= o->high) || (o->whole && number != floor(number)) ||
            (o->open && (number <= o->low || number >= o->high)))
            return error_set(err, HFSAD_ERROR_INPUT, "data: generate: %s=%s; expected a %snumber from %g to %g", name,
                             value, o->whole ? "whole " : "", o->low, o->high);
        double earlier;
        memcpy(&earlier, (char *)w + o->at, sizeof earlier);
        if (!isnan(earlier))
            return error_set(err, HFSAD_ERROR_INPUT, "data: generate: %s is given twice", name);
        memcpy((char *)w + o->at, &number, sizeof number);
        return HFSAD_OK;
    }
    return error_set(
        err, HFSAD_ERROR_INPUT,
        "data: generate %s: %s=%s is not known here; write the files by `hfsad generate` and name data.csv",
        paper ? "phase-retrieval" : "quantile", name, value);
}

static double given(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

static void settle(generated *g, const words *w)
{
    const phase_retrieval usual = phase_retrieval_paper();
    g->edges = (size_t)given(w->edges, (double)usual.edges);
    g->clients = (size_t)given(w->clients, (double)usual.clients);
    g->M = (size_t)given(w->features, (double)usual.features);
    g->rows = (size_t)given(w->rows, g->paper ? 1 : 100);
    const uint64_t seed = (uint64_t)given(w->seed, 1);
    g->phase = (phase_retrieval){.edges = g->edges,
                                 .clients = g->clients,
                                 .features = g->M,
                                 .snr_db = given(w->snr_db, usual.snr_db),
                                 .keep_x = given(w->keep_x, usual.keep_x),
                                 .keep_w = given(w->keep_w, usual.keep_w),
                                 .seed = seed,
                                 .rows = g->rows};
    g->law = (population_law){
        .edges = g->edges,
        .clients = g->clients,
        .features = g->M,
        .nonzero = (size_t)given(w->nonzero, g->M < 4 ? (double)g->M : 4),
        .rho = given(w->rho, 0.5),
        .shift = given(w->shift, 0),
        .intercepts = given(w->intercepts, 0),
        .task = TASK_REGRESSION,
        .noise = {(noise_kind)given(w->noise, NOISE_STUDENT), given(w->noise_scale, 1), given(w->df, 2),
                  given(w->outliers, 0.1), given(w->outlier_factor, 10)},
        .tau = given(w->tau, 0.5),
        .heteroscedastic = w->heteroscedastic == 1,
        .groups = 1,
        .seed = seed,
    };
    g->features = (feature_law){.seed = seed,
                                .stream = rng_stream(g->paper ? "phase-retrieval/client" : "population/client"),
                                .rho = g->law.rho,
                                .shift = g->law.shift};
}

static hfsad_status read_words(generated *g, const char *text, hfsad_error *err)
{
    char word[WORD_SIZE];
    words w;
    for (size_t i = 0; i < sizeof w / sizeof(double); i++)
        ((double *)&w)[i] = NAN;
    (void)next_word(&text, word);
    const bool kind = next_word(&text, word);
    g->paper = kind && !strcmp(word, "phase-retrieval");
    if (!kind || (!g->paper && strcmp(word, "quantile") != 0))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "data: generate %s; expected generate phase-retrieval or generate quantile, and options",
                         kind ? word : "");
    while (next_word(&text, word)) {
        char *value = strchr(word, '=');
        if (strlen(word) == WORD_SIZE - 1)
            return error_set(err, HFSAD_ERROR_INPUT, "data: generate: \"%s...\" is too long", word);
        if (!value || value == word || !value[1])
            return error_set(err, HFSAD_ERROR_INPUT, "data: generate: \"%s\"; expected NAME=VALUE", word);
        *value++ = 0;
        const hfsad_status status = read_option(&w, g->paper, word, value, err);
        if (status)
            return status;
    }
    settle(g, &w);
    if (!g->paper && g->law.nonzero > g->M)
        return error_set(err, HFSAD_ERROR_INPUT, "data: generate: nonzero=%zu is more than features=%zu",
                         g->law.nonzero, g->M);
    if ((double)g->edges * (double)g->clients * (double)g->rows >= NO_NODE)
        return error_set(err, HFSAD_ERROR_INPUT, "data: generate: more than %u rows", NO_NODE - 1);
    return HFSAD_OK;
}

/* ---- what the rows are drawn from ---- */

static hfsad_status draw_keep(generated *g, hfsad_error *err)
{
    g->keep = alloc_zero(g->edges * g->M, sizeof *g->keep);
    size_t *index = alloc_raw(g->M, sizeof *index);
    if (!g->keep || !index) {
        free(index);
        return error_memory(err, g->edges * g->M * sizeof *g->keep, "the features of every edge");
    }
    for (size_t l = 0; l < g->edges; l++)
        phase_retrieval_support(&g->phase, l + 1, index, g->keep + l * g->M);
    free(index);
    return HFSAD_OK;
}

static hfsad_status open_generated(generated **out, const char *text, hfsad_error *err)
{
    generated *g = *out = alloc_zero(1, sizeof *g);
    if (!g)
        return error_memory(err, sizeof *g, "the generator");
    hfsad_status status = read_words(g, text, err);
    if (!status && !(g->truth = alloc_zero(g->M, sizeof *g->truth)))
        status = error_memory(err, g->M * sizeof *g->truth, "the true model");
    if (!status && g->paper)
        status = phase_retrieval_truth(&g->phase, g->truth, err);
    else if (!status && !(status = population_create(&g->people, &g->law, err)))
        memcpy(g->truth, population_truth(g->people, 0), g->M * sizeof *g->truth);
    if (status) {
        generated_free(g);
        *out = NULL;
    }
    return status;
}

void generated_free(generated *g)
{
    if (!g)
        return;
    population_free(g->people);
    free(g->truth);
    free(g->keep);
    free(g);
}

const feature_law *generated_features(const generated *g, const double **keep, size_t *clients)
{
    *keep = g->keep;
    *clients = g->clients;
    return &g->features;
}

bool generated_is_drawn(const generated *g)
{
    return g->drawn;
}

static void draw_leaf(const generated *g, size_t leaf, double *x, size_t stride)
{
    draw_client(&g->features, leaf + 1, g->keep ? g->keep + leaf / g->clients * g->M : NULL, g->M, x, stride);
}

void generated_row_of(const generated *g, size_t leaf, double *x)
{
    draw_leaf(g, leaf, x, 1);
}

hfsad_status generated_truth(const char *text, double *truth, size_t count, hfsad_error *err)
{
    generated *g;
    hfsad_status status = open_generated(&g, text, err);
    if (status)
        return status;
    if (g->M != count)
        status =
            error_set(err, HFSAD_ERROR_INPUT, "truth: generate has features=%zu, but the data has %zu", g->M, count);
    else
        memcpy(truth, g->truth, count * sizeof *truth);
    generated_free(g);
    return status;
}

/* ---- one row per client: a tree whose x is drawn later ---- */

typedef struct {
    const generated *g;
    dataset *d;
    double *x; /* NULL: y and n only */
} drawing;

/* One after the other, the clients of an edge. Without memory for a row the place itself is used. */
static void draw_edge(void *context, size_t edge, unsigned thread)
{
    (void)thread;
    const drawing *k = context;
    const generated *g = k->g;
    const inner_node *node = &k->d->inner[1 + edge];
    for (uint32_t slot = 0; slot < node->n_leaves; slot++) {
        const leaf_place place = dataset_place(k->d, node, slot);
        draw_leaf(g, node->first_leaf + slot, k->x + place.first, place.stride);
    }
}

/* <x,w>, or y, and |x|^2. */
static void observe_edge(void *context, size_t edge, unsigned thread)
{
    (void)thread;
    const drawing *k = context;
    const generated *g = k->g;
    const size_t first = edge * g->clients;
    double *row = k->x + thread * g->M;
    for (size_t leaf = first; leaf < first + g->clients; leaf++) {
        if (g->paper) {
            draw_leaf(g, leaf, row, 1);
            k->d->y[leaf] = dot8(g->M, row, g->truth);
        } else {
            population_fill(g->people, leaf, ROWS_TRAIN, 0, 1, row, &k->d->y[leaf]);
        }
        k->d->n[leaf] = dot8(g->M, row, row);
    }
}

static void add_noise(void *context, size_t edge, unsigned thread)
{
    (void)thread;
    const drawing *k = context;
    for (size_t leaf = edge * k->g->clients; leaf < (edge + 1) * k->g->clients; leaf++)
        k->d->y[leaf] = phase_retrieval_observe(&k->g->phase, leaf + 1, k->d->y[leaf], k->g->scale);
}

static hfsad_status observe(generated *g, dataset *d, hfsad_error *err)
{
    pool *threads;
    hfsad_status status = pool_create(&threads, 0, err);
    if (status)
        return status;
    drawing k = {g, d, alloc_raw(pool_threads(threads) * g->M, sizeof *k.x)};
    if (k.x) {
        pool_run(threads, g->edges, observe_edge, &k);
        double sum = 0;
        for (size_t leaf = 0; leaf < d->n_leaves && g->paper; leaf++)
            sum += d->y[leaf] * d->y[leaf];
        g->scale = noise_scale(d->n_leaves, sum, g->phase.snr_db);
        if (g->paper)
            pool_run(threads, g->edges, add_noise, &k);
    } else {
        status = error_memory(err, pool_threads(threads) * g->M * sizeof *k.x, "one row of the data");
    }
    free(k.x);
    pool_free(threads);
    return status;
}

void generated_draw(generated *g, const dataset *d)
{
    pool *threads = NULL;
    hfsad_error err;
    drawing k = {g, (dataset *)(uintptr_t)d, d->x};
    if (!g || g->drawn)
        return;
    if (pool_create(&threads, 0, &err) == HFSAD_OK)
        pool_run(threads, g->edges, draw_edge, &k);
    else
        for (size_t l = 0; l < g->edges; l++)
            draw_edge(&k, l, 0);
    pool_free(threads);
    g->drawn = true;
}

/* As a builder lays it out: the cloud, its edges, their clients in blocks. */
static void lay_edges(const generated *g, dataset *d)
{
    size_t end = 0;
    d->inner[0] = (inner_node){.parent = NO_NODE, .first_inner = 1, .n_inner = (uint32_t)g->edges};
    for (size_t l = 0; l < g->edges; l++) {
        const size_t base = (end + ALIGN - 1) / ALIGN * ALIGN;
        d->inner[1 + l] = (inner_node){.depth = 1,
                                       .first_inner = (uint32_t)d->n_inner,
                                       .first_leaf = (uint32_t)(l * g->clients),
                                       .n_leaves = (uint32_t)g->clients,
                                       .base = base};
        end = base + g->clients * g->M;
    }
    d->depth = 2;
    d->leaf_doubles = (end + ALIGN - 1) / ALIGN * ALIGN;
}

/* client1, client2, …: each name is the one before, counted up, because sprintf takes seconds for 10^7 clients. */
static void name_clients(dataset *d)
{
    enum { LONGEST = 32, WORD = sizeof "client" - 1 };
    char name[LONGEST] = "client0";
    size_t length = WORD + 1, at = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        size_t i = length;
        while (--i >= WORD && name[i] == '9')
            name[i] = '0';
        if (i >= WORD)
            name[i]++;
        else { /* 99 to 100 */
            name[WORD] = '1';
            name[length++] = '0';
        }
        d->leaf_name[leaf] = (uint32_t)at;
        memcpy(d->names + at, name, length);
        d->names[at + length] = 0;
        at += length + 1;
    }
}

static hfsad_status name_nodes(const generated *g, dataset *d, hfsad_error *err)
{
    enum { LONGEST = 24 };
    char *to = alloc_raw(sizeof "cloud" + g->edges * LONGEST, 1);
    if (!to)
        return error_memory(err, g->edges * LONGEST, "names of inner nodes");
    for (size_t i = 0; i < d->n_inner; i++) {
        d->inner[i].name = to;
        to += (i ? sprintf(to, "edge%zu", i) : sprintf(to, "cloud")) + 1;
    }
    size_t size = 0, unit = 10, digits = 1;
    for (size_t leaf = 1; leaf <= d->n_leaves; leaf++) {
        if (leaf == unit) {
            unit *= 10;
            digits++;
        }
        size += strlen("client") + digits + 1;
    }
    d->names = size < UINT32_MAX ? alloc_raw(size + LONGEST, 1) : NULL;
    d->leaf_name = alloc_raw(d->n_leaves, sizeof *d->leaf_name);
    if (!d->names || !d->leaf_name)
        return error_memory(err, size, "names of clients");
    name_clients(d);
    return HFSAD_OK;
}

/* The names x1, x2, … of data.csv. */
static hfsad_status name_features(dataset *d, size_t M, hfsad_error *err)
{
    enum { LONGEST = 24 };
    char *to = d->feature_names = alloc_raw(M * LONGEST, 1);
    if (!to)
        return error_memory(err, M * LONGEST, "the features' names");
    for (size_t m = 1; m <= M; m++)
        to += sprintf(to, "x%zu", m) + 1;
    return HFSAD_OK;
}

static hfsad_status make_tree(generated *g, dataset **out, hfsad_error *err)
{
    dataset *d = *out = alloc_zero(1, sizeof *d);
    if (!d)
        return error_memory(err, sizeof *d, "the tree");
    d->generated = g;
    d->M = g->M;
    d->n_inner = 1 + g->edges;
    d->n_leaves = d->n_rows = g->edges * g->clients;
    d->lanes = tree_lanes(g->M);
    d->inner = alloc_zero(d->n_inner, sizeof *d->inner);
    d->y = alloc_raw(d->n_leaves, sizeof *d->y);
    d->n = alloc_raw(d->n_leaves, sizeof *d->n);
    if (!d->inner || !d->y || !d->n)
        return error_memory(err, d->n_inner * sizeof *d->inner + d->n_leaves * 16, "the tree");
    lay_edges(g, d);
    d->x = alloc_zero(d->leaf_doubles, sizeof *d->x); /* a place: memory is taken when it is written */
    if (!d->x)
        return error_memory(err, d->leaf_doubles * sizeof *d->x, "the rows");
    hfsad_status status = g->paper ? draw_keep(g, err) : HFSAD_OK;
    if (!status)
        status = name_nodes(g, d, err);
    return status ? status : observe(g, d, err);
}

static hfsad_status make_rows(generated *g, bool as_rows, dataset **d, hfsad_error *err)
{
    row_collector c;
    hfsad_status status = row_collector_begin(&c, g->M, err);
    if (status)
        return status;
    if (as_rows)
        dataset_builder_use_rows(c.builder);
    if (g->people)
        status = population_rows(g->people, ROWS_TRAIN, g->rows, row_collect, &c, err);
    else if (!(status = phase_retrieval_prepare(&g->phase, g->truth, &g->scale, err)))
        status = phase_retrieval_rows(&g->phase, g->truth, g->scale, row_collect, &c, err);
    return row_collector_end(&c, status, d);
}

static bool has_columns(const table_settings *t)
{
    return t && (t->y || t->client || t->edge || t->weight || t->features || t->categorical || t->labels || t->edges ||
                 t->clients || t->by);
}

hfsad_status generated_read(dataset **d, const char *text, const table_settings *table, bool as_rows, hfsad_error *err)
{
    generated *g;
    *d = NULL;
    hfsad_status status = open_generated(&g, text, err);
    if (status)
        return status;
    if (has_columns(table))
        status = error_set(err, HFSAD_ERROR_INPUT, "data: generate has no columns to choose; remove columns and split");
    else if (as_rows || g->rows > 1)
        status = make_rows(g, as_rows, d, err);
    else
        status = make_tree(g, d, err);
    if (!*d || !(*d)->generated)
        generated_free(g);
    if (!status)
        status = name_features(*d, (*d)->rows.first ? (*d)->rows.F : (*d)->M, err);
    if (status) {
        dataset_free(*d);
        *d = NULL;
    }
    return status;
}
