/* See intake.h. */
#include "data/intake.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 64 /* rows that are read before the total is estimated */ };

hfsad_status intake_open(intake *in, const table_settings *table)
{
    if (table)
        in->table = *table;
    if (in->table.clients && !(in->deck = alloc_raw(in->table.clients, sizeof *in->deck)))
        return error_memory(in->err, in->table.clients * sizeof *in->deck, "the order of clients");
    return table_begin(&in->memory, &in->table, in->err);
}

hfsad_status intake_scanned(intake *in)
{
    in->scanning = false;
    in->bytes_before = 0;
    in->with_y = in->without_y = 0;
    for (size_t i = 0; i < in->memory.n_categories; i++)
        if (!in->memory.categories[i].given)
            category_sort(&in->memory.categories[i]);
    if (!in->memory.labels.given)
        category_sort(&in->memory.labels);
    return table_check_found(&in->memory, in->err);
}

void intake_restart(intake *in)
{
    dataset_builder_free(in->builder);
    in->builder = NULL;
    table_forget(&in->memory);
    in->again = in->scanning = false;
    in->bytes_before = in->bytes_after = in->dealt = 0;
    in->with_y = in->without_y = 0;
    in->n_names = in->texts.size = 0;
}

hfsad_status intake_label(const intake *in, builder_entry *entry)
{
    if (!in->memory.has_labels)
        return HFSAD_OK;
    const category *k = &in->memory.labels;
    const size_t label = labels_find_number(k, entry->y);
    if (label == SIZE_MAX)
        return error_set(in->err, HFSAD_ERROR_INPUT, "%.*s:%zu: y = %g is not one of the %zu labels (\"%s\", ...)",
                         NAME_SHOWN, entry->file, entry->line, entry->y, k->n_levels, k->texts.text + k->levels[0]);
    entry->y = (double)label;
    return HFSAD_OK;
}

/* Deals the rows in rounds of one row per client, each round in a random order: the numbers of two clients' rows differ
 * by at most 1. */
static uint32_t next_client(intake *in)
{
    const uint32_t clients = in->table.clients;
    const size_t place = in->dealt % clients;
    if (place == 0) {
        rng order = {rng_key(in->table.seed, in->dealt / clients), 0};
        for (size_t i = 0; i < clients; i++)
            in->deck[i] = i;
        rng_shuffle(&order, in->deck, clients);
    }
    in->dealt++;
    return (uint32_t)in->deck[place];
}

hfsad_status intake_deal(intake *in, bool named, builder_entry *entry)
{
    const table_settings *t = &in->table;
    uint64_t edge = 0;
    if (!named && !t->clients) { /* the rows are only predicted */
        entry->client = (slice){"rows", 4};
        return HFSAD_OK;
    }
    if (!named) {
        const uint32_t client = next_client(in);
        edge = (uint64_t)client * t->edges / t->clients;
        const int length = snprintf(in->dealt_client, sizeof in->dealt_client, "client%u", client + 1);
        entry->client = (slice){in->dealt_client, (size_t)length};
    } else if (t->edges) {
        if (entry->path.length > 0)
            return error_set(in->err, HFSAD_ERROR_INPUT,
                             "%.*s: the rows name their edges, but data.split deals the clients over edges; remove "
                             "data.split.edges",
                             NAME_SHOWN, entry->file);
        uint64_t hash = rng_mix(t->seed);
        for (size_t i = 0; i < entry->client.length; i++)
            hash = rng_mix(hash + (unsigned char)entry->client.text[i]);
        edge = hash % t->edges;
    }
    if (t->edges) {
        const int length = snprintf(in->dealt_edge, sizeof in->dealt_edge, "edge%llu", (unsigned long long)edge + 1);
        entry->path = (slice){in->dealt_edge, (size_t)length};
    }
    return HFSAD_OK;
}

static hfsad_status make_builder(intake *in, const char *file, bool sparse, size_t features)
{
    hfsad_status status = texts_add(&in->texts, (slice){file, strlen(file)}, &in->first, in->err);
    if (status)
        return status;
    status =
        sparse ? builder_create_sparse(&in->builder, in->err) : dataset_builder_create(&in->builder, features, in->err);
    if (!status && sparse)
        status = builder_reserve_entries(in->builder, FIRST_ROWS, in->err);
    if (!status && !sparse && in->scratch)
        status = builder_use_pages(in->builder, in->scratch, in->err);
    for (size_t i = 1; i < in->n_folders && !status; i++)
        status =
            builder_add_inner(in->builder, (slice){in->folders[i], strlen(in->folders[i])}, in->folders[i], in->err);
    return status;
}

hfsad_status intake_begin(intake *in, const char *file, bool sparse, size_t features)
{
    hfsad_status status = HFSAD_OK;
    if (!in->builder) {
        status = make_builder(in, file, sparse, features);
    } else {
        const char *first = in->texts.text + in->first;
        const size_t there = builder_features(in->builder);
        if (builder_is_sparse(in->builder) != sparse)
            status = error_set(in->err, HFSAD_ERROR_INPUT,
                               "%.*s: %s rows, but %s rows in %.*s; expected one kind in all files", NAME_SHOWN, file,
                               sparse ? "sparse" : "dense", sparse ? "dense" : "sparse", NAME_SHOWN, first);
        else if (!sparse && features != there)
            status = error_set(in->err, HFSAD_ERROR_INPUT,
                               "%.*s: %zu features, but %zu in %.*s; expected the same number in all files", NAME_SHOWN,
                               file, features, there, NAME_SHOWN, first);
    }
    if (!status && in->client.text)
        status = builder_begin(in->builder, in->path, in->client, file, in->err);
    return status;
}

hfsad_status intake_name(intake *in, const char *file, size_t column, size_t feature, slice name)
{
    hfsad_status status = HFSAD_OK;
    if (feature == 0 && in->n_names == 0)
        status = texts_add(&in->texts, (slice){file, strlen(file)}, &in->first_named, in->err);
    if (status)
        return status;
    if (feature < in->n_names) {
        char here[EXCERPT_SIZE], there[EXCERPT_SIZE];
        const char *known = in->texts.text + in->names[feature];
        if (texts_same(&in->texts, in->names[feature], name))
            return HFSAD_OK;
        return error_set(
            in->err, HFSAD_ERROR_INPUT,
            "%.*s:1: column %zu: feature %zu is \"%s\", but \"%s\" in %.*s; expected the same names in the same order",
            NAME_SHOWN, file, column + 1, feature + 1, excerpt(here, name),
            excerpt(there, (slice){known, strlen(known)}), NAME_SHOWN, in->texts.text + in->first_named);
    }
    const size_t need = in->n_names + 1;
    if (!alloc_grow((void **)&in->names, &in->names_capacity, need, sizeof *in->names))
        return error_memory(in->err, need * sizeof *in->names, "the features' names");
    status = texts_add(&in->texts, name, &in->names[in->n_names], in->err);
    in->n_names += status == HFSAD_OK;
    return status;
}

size_t intake_guess(const intake *in, size_t count, size_t read, size_t left, size_t least)
{
    const size_t ahead = left + in->bytes_after, most = count + ahead / least + 1;
    if (count == 0)
        return most < FIRST_ROWS ? most : FIRST_ROWS;
    const double bytes = (double)(in->bytes_before + read) / (double)count;
    const double guess = ((double)count + (double)ahead / (bytes < 1 ? 1 : bytes)) * 17 / 16 + FIRST_ROWS;
    return guess < (double)most ? (size_t)guess : most;
}

hfsad_status intake_room(intake *in, size_t read, size_t left, size_t least)
{
    const size_t rows = builder_rows(in->builder);
    const hfsad_status status =
        dataset_builder_reserve(in->builder, intake_guess(in, rows, read, left, least), in->err);
    if (!status || rows == 0)
        return status;
    return dataset_builder_reserve(in->builder, rows + rows / 2 + 1, in->err);
}

hfsad_status intake_expect(intake *in, size_t rows, size_t size)
{
    const size_t need = builder_rows(in->builder) + rows;
    if (need <= builder_capacity(in->builder))
        return HFSAD_OK;
    const hfsad_status status = dataset_builder_reserve(in->builder, intake_guess(in, need, size, 0, 1), in->err);
    return status ? dataset_builder_reserve(in->builder, need, in->err) : status;
}

hfsad_status intake_y(intake *in, const char *file, bool found)
{
    ++*(found ? &in->with_y : &in->without_y);
    if (in->with_y == 0 || in->without_y == 0)
        return HFSAD_OK;
    return error_set(in->err, HFSAD_ERROR_INPUT,
                     "%.*s has %s column \"y\", unlike the previous files; expected the same in all files", NAME_SHOWN,
                     file, found ? "a" : "no");
}

static bool is_utf8(const char *text)
{
    size_t length = 1;
    for (size_t left = strlen(text); left && length; text += length, left -= length)
        length = utf8_length(text, left);
    return length > 0;
}

/* If a name is not UTF-8, the names count as unknown, because summary.json could not hold them. */
static hfsad_status keep_names(const intake *in, dataset *d)
{
    size_t size = 0;
    for (size_t i = 0; i < in->n_names; i++) {
        const char *name = in->texts.text + in->names[i];
        if (!is_utf8(name))
            return HFSAD_OK;
        size += strlen(name) + 1;
    }
    if (!size)
        return HFSAD_OK;
    char *to = d->feature_names = alloc_raw(size, 1);
    if (!to)
        return error_memory(in->err, size, "the features' names");
    for (size_t i = 0; i < in->n_names; i++)
        to = stpcpy(to, in->texts.text + in->names[i]) + 1;
    return HFSAD_OK;
}

static hfsad_status keep_labels(const intake *in, dataset *d)
{
    const category *c = &in->memory.labels;
    const char *plain = in->table.labels && !in->memory.has_labels ? in->table.labels : NULL;
    if (!in->memory.has_labels && !plain)
        return HFSAD_OK;
    const size_t size = c->texts.size + c->n_levels + 1;
    char *to = d->labels = plain ? strdup(plain) : alloc_zero(size, 1);
    if (!to)
        return error_memory(in->err, size, "the labels");
    for (size_t l = 0; l < c->n_levels; l++)
        to += sprintf(to, "%s%s", l ? "," : "", c->texts.text + c->levels[l]);
    return HFSAD_OK;
}

/* The categories, which a table of rows to predict must be read with. */
static hfsad_status keep_table(const intake *in, dataset *d)
{
    const table_memory *m = &in->memory;
    if (keep_labels(in, d))
        return HFSAD_ERROR_MEMORY;
    size_t size = 1;
    for (size_t i = 0; i < m->n_categories; i++)
        size += m->categories[i].name.length + m->categories[i].texts.size + 2 + m->categories[i].n_levels;
    if (m->n_categories && !(d->categorical = alloc_raw(size, 1)))
        return error_memory(in->err, size, "the categories");
    char *to = d->categorical;
    for (size_t i = 0; i < m->n_categories; i++) {
        const category *c = &m->categories[i];
        to += sprintf(to, "%s%.*s", i ? "," : "", (int)c->name.length, c->name.text);
        for (size_t l = 0; l < c->n_levels; l++)
            to += sprintf(to, "%c%s", l ? '|' : '=', c->texts.text + c->levels[l]);
    }
    if (in->table.missing != MISSING_MEAN || !m->n_sums)
        return HFSAD_OK;
    d->n_means = m->n_sums;
    d->means = alloc_zero(m->n_sums, sizeof *d->means);
    if (!d->means)
        return error_memory(in->err, m->n_sums * sizeof *d->means, "the means");
    for (size_t i = 0; i < m->n_sums; i++)
        d->means[i] = m->counts[i] ? m->sums[i] / (double)m->counts[i] : 0;
    return HFSAD_OK;
}

hfsad_status intake_finish(intake *in, hfsad_status status, bool as_rows, dataset **d)
{
    *d = NULL;
    if (!status && as_rows)
        dataset_builder_use_rows(in->builder);
    uint32_t *order = NULL;
    if (!status && in->y_optional) {
        order = alloc_raw(builder_rows(in->builder), sizeof *order);
        if (!order)
            status = error_memory(in->err, builder_rows(in->builder) * sizeof *order, "the order of the rows");
        builder_tell_places(in->builder, order);
    }
    if (status)
        dataset_builder_free(in->builder);
    else
        status = dataset_builder_finish(in->builder, d, in->err);
    if (status)
        free(order);
    else
        (*d)->order = order;
    if (!status && in->without_y > 0) {
        free((*d)->rows.y);
        (*d)->rows.y = NULL;
    }
    if (!status && !(status = keep_names(in, *d)))
        status = keep_table(in, *d);
    if (status) {
        dataset_free(*d);
        *d = NULL;
    }
    free(in->texts.text);
    free(in->names);
    free(in->deck);
    table_end(&in->memory);
    return status;
}
