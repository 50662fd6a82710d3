#define _GNU_SOURCE /* open_memstream */
#include "data/nodes.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/words.h"
#include "data/builder.h"
#include "data/bytes.h"
#include "data/features.h"
#include "data/parse_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED "a list of nodes: \"features 25\", then a client's path on every line, such as edge1/client7"

/* Prefix of a client that joined during the run. */
#define LATER "later "

size_t nodes_name(const dataset *d, size_t number, char *buffer, size_t size)
{
    if (number >= d->n_inner)
        return dataset_leaf_name(d, number - d->n_inner, buffer, size);
    const int length = snprintf(buffer, size, "%s", d->inner[number].name);
    return length < 0 ? 0 : (size_t)length;
}

#define CATEGORICAL "categorical "
#define LABELS "labels "
#define MEANS "means "

/* Writes what a reader needs for rows to predict and for clients' own files: categories, labels, means. */
static void put_table(FILE *f, const dataset *d)
{
    if (d->categorical)
        fprintf(f, "features " CATEGORICAL "%s\n", d->categorical);
    if (d->labels)
        fprintf(f, "features " LABELS "%s\n", d->labels);
    if (d->means)
        fputs("features means", f);
    for (size_t m = 0; d->means && m < d->n_means; m++)
        fprintf(f, " %.17g%s", d->means[m], m + 1 < d->n_means ? "" : "\n");
}

char *nodes_text(const dataset *d)
{
    char *text = NULL, name[HFSAD_TIERS_MAX * 256];
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f, "features %zu\n", features_count(d));
    const char *feature = d->feature_names;
    for (size_t m = 0; feature && m < features_count(d); m++, feature += strlen(feature) + 1)
        fprintf(f, "feature %s\n", feature);
    put_table(f, d);
    for (size_t i = 1; i < d->n_inner; i++)
        fprintf(f, "%s/\n", d->inner[i].name);
    for (int later = 0; later <= (d->n_later > 0); later++) {
        for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
            dataset_leaf_name(d, leaf, name, sizeof name);
            if (dataset_is_later(d, leaf) == (later > 0))
                fprintf(f, "%s%s\n", later ? LATER : "", name);
        }
    }
    const bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- reading ---- */

typedef struct {
    const char *name; /* name of the text, for messages */
    size_t line;
    dataset_builder *b;
    size_t F, named;
    char *features; /* NULL: no names so far */
    char *categorical, *labels;
    double *means;
    size_t n_means, means_room;
    size_t features_size, features_room;
    bool later; /* the last client joined later */
    hfsad_error *err;
} reader;

static hfsad_status refuse_line(reader *r, const char *why)
{
    return error_set(r->err, HFSAD_ERROR_INPUT, "%.300s:%zu: %s; expected %s", r->name, r->line, why, EXPECTED);
}

static hfsad_status take_text_once(reader *r, slice text, char **to)
{
    if (*to)
        return refuse_line(r, "the same line twice");
    *to = strndup(text.text, text.length);
    return *to ? HFSAD_OK : error_memory(r->err, text.length, "the list of nodes");
}

static hfsad_status take_means(reader *r, slice list)
{
    const char *at = list.text, *end = at + list.length;
    while (at < end) {
        double value;
        if (!alloc_grow((void **)&r->means, &r->means_room, r->n_means + 1, sizeof *r->means))
            return error_memory(r->err, r->n_means * sizeof *r->means, "the means");
        at = number_parse(at, end, &value);
        if (!at || (at < end && *at++ != ' ') || !isfinite(value))
            return refuse_line(r, "a mean is not a number");
        r->means[r->n_means++] = value;
    }
    return HFSAD_OK;
}

static bool skip_word(slice *line, const char *word)
{
    const size_t n = strlen(word);
    if (line->length < n || memcmp(line->text, word, n) != 0)
        return false;
    *line = (slice){line->text + n, line->length - n};
    return true;
}

static hfsad_status take_features(reader *r, slice number)
{
    size_t F = 0;
    if (skip_word(&number, CATEGORICAL))
        return take_text_once(r, number, &r->categorical);
    if (skip_word(&number, LABELS))
        return take_text_once(r, number, &r->labels);
    if (skip_word(&number, MEANS))
        return take_means(r, number);
    for (size_t i = 0; i < number.length; i++) {
        if (number.text[i] < '0' || number.text[i] > '9' || F > UINT32_MAX / 10)
            return refuse_line(r, "features must be a whole number");
        F = 10 * F + (size_t)(number.text[i] - '0');
    }
    if (F == 0 || r->F)
        return refuse_line(r, F ? "features listed twice" : "expected at least one feature");
    r->F = F;
    return HFSAD_OK;
}

static hfsad_status take_name(reader *r, slice name)
{
    if (!alloc_grow((void **)&r->features, &r->features_room, r->features_size + name.length + 1, 1))
        return error_memory(r->err, name.length, "the names of features");
    memcpy(r->features + r->features_size, name.text, name.length);
    r->features[r->features_size + name.length] = 0;
    r->features_size += name.length + 1;
    r->named++;
    return HFSAD_OK;
}

static hfsad_status take_client(reader *r, slice path)
{
    size_t slash = path.length;
    while (slash > 0 && path.text[slash - 1] != '/')
        slash--;
    if (builder_is_full(r->b)) {
        const hfsad_status status = dataset_builder_reserve(r->b, 2 * builder_rows(r->b) + 16, r->err);
        if (status)
            return status;
    }
    builder_next_row(r->b)[0] = 0;
    const builder_entry entry = {
        .path = {path.text, slash ? slash - 1 : 0},
        .client = {path.text + slash, path.length - slash},
        .y = 1, /* a label that every loss accepts */
        .weight = 1,
        .file = r->name,
        .line = r->line,
    };
    const size_t before = builder_clients(r->b);
    const hfsad_status status = builder_commit(r->b, &entry, r->err);
    if (!status && builder_clients(r->b) == before)
        return refuse_line(r, "client listed twice");
    return status;
}

static hfsad_status take_line(reader *r, slice line)
{
    while (line.length && (line.text[line.length - 1] == '\r' || line.text[line.length - 1] == ' '))
        line.length--;
    if (line.length == 0 || line.text[0] == '#')
        return HFSAD_OK;
    if (skip_word(&line, "features "))
        return take_features(r, line);
    if (skip_word(&line, "feature "))
        return take_name(r, line);
    const bool later = skip_word(&line, LATER);
    if (r->later && !later)
        return refuse_line(r, "a client of the start after one that joined later");
    r->later = later;
    if (line.length && line.text[line.length - 1] != '/')
        return take_client(r, line);
    if (later)
        return refuse_line(r, "only a client can join later");
    return builder_add_inner(r->b, (slice){line.text, line.length - 1}, r->name, r->err);
}

static hfsad_status take_text(reader *r, const char *text)
{
    hfsad_status status = HFSAD_OK;
    while (*text && !status) {
        const size_t length = strcspn(text, "\n");
        r->line++;
        status = take_line(r, (slice){text, length});
        text += length + (text[length] == '\n');
    }
    if (status)
        return status;
    if (!r->F)
        return refuse_line(r, "the number of features is missing");
    if (r->named && r->named != r->F)
        return refuse_line(r, "the number of names differs from the number of features");
    return builder_rows(r->b) ? HFSAD_OK : refuse_line(r, "no client; expected at least one");
}

static bool mark_later(dataset *d, const char *text)
{
    bool done = true;
    for (const char *line = text; line && done; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, LATER, strlen(LATER)) != 0)
            continue;
        line += strlen(LATER);
        char path[HFSAD_TIERS_MAX * 256];
        size_t length = strcspn(line, "\n");
        while (length && (line[length - 1] == '\r' || line[length - 1] == ' '))
            length--;
        snprintf(path, sizeof path, "%.*s", (int)length, line);
        const size_t number = nodes_find(d, path);
        done = number == SIZE_MAX || number < d->n_inner || dataset_make_later(d, number - d->n_inner);
    }
    return done;
}

uint64_t nodes_print(const dataset *d)
{
    char *text = nodes_text(d);
    uint64_t sum = 0;
    const char *end = text ? strstr(text, "\n" LATER) : NULL;
    for (const char *c = text; c && *c && c != (end ? end + 1 : NULL); c++)
        sum = words_sum_add(sum, (unsigned char)*c);
    free(text);
    return text ? sum : 0;
}

hfsad_status nodes_parse(dataset **d, const char *text, const char *name, hfsad_error *err)
{
    *d = NULL;
    reader r = {.name = name, .err = err};
    hfsad_status status = dataset_builder_create(&r.b, 1, err);
    if (status)
        return status;
    status = take_text(&r, text);
    if (status)
        dataset_builder_free(r.b);
    else
        status = dataset_builder_finish(r.b, d, err);
    if (status) {
        free(r.features);
        free(r.categorical);
        free(r.labels);
        free(r.means);
        return status;
    }
    (*d)->M = r.F;
    (*d)->feature_names = r.features;
    (*d)->categorical = r.categorical;
    (*d)->labels = r.labels;
    (*d)->means = r.means;
    (*d)->n_means = r.n_means;
    if (mark_later(*d, text))
        return HFSAD_OK;
    dataset_free(*d);
    *d = NULL;
    return error_memory(err, 0, "the list of nodes");
}

hfsad_status nodes_read(dataset **d, const char *path, hfsad_error *err)
{
    file_bytes f;
    *d = NULL;
    hfsad_status status = bytes_open(&f, path, true, EXPECTED, err);
    if (!status) {
        char *text = strndup(f.bytes, f.size);
        status = text ? nodes_parse(d, text, path, err) : error_memory(err, f.size, "the list of nodes");
        free(text);
    }
    bytes_close(&f);
    return status;
}

bool nodes_settle(dataset *d, bool many, double constant, size_t n_rows)
{
    const size_t F = features_count(d);
    d->n_rows = n_rows;
    if (!many && !d->classes)
        return true;
    if (!d->rows.first)
        d->rows.first = alloc_zero(d->n_leaves + 1, sizeof *d->rows.first);
    d->rows.F = F;
    d->rows.constant = constant;
    d->M = features_model(d, constant);
    d->lanes = 1;
    return d->rows.first != NULL;
}

bool nodes_set_columns(dataset *d, const double *columns)
{
    const size_t F = features_count(d);
    if (!d->centre)
        d->centre = alloc_zero(F, sizeof *d->centre);
    if (!d->scale)
        d->scale = alloc_zero(F, sizeof *d->scale);
    if (!d->centre || !d->scale)
        return false;
    memcpy(d->centre, columns, F * sizeof *columns);
    memcpy(d->scale, columns + F, F * sizeof *columns);
    return true;
}

/* ---- names ---- */

/* Whether a level of the path is . or .., which would name another folder. */
static bool has_dots(const char *path)
{
    for (const char *level = path; level; level = strchr(level, '/')) {
        level += *level == '/';
        const size_t length = strcspn(level, "/");
        if (length > 0 && length < 3 && strspn(level, ".") == length)
            return true;
    }
    return false;
}

hfsad_status nodes_check_names(const dataset *d, hfsad_error *err)
{
    char name[HFSAD_TIERS_MAX * 256];
    for (size_t number = 1; number < d->n_inner + d->n_leaves; number++) {
        const size_t length = nodes_name(d, number, name, sizeof name);
        if (strpbrk(name, "+#") || !strncmp(name, "feature ", 8) || !strncmp(name, "features ", 9) ||
            !strncmp(name, LATER, strlen(LATER)) || (length && name[length - 1] == ' ') || has_dots(name))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.300s cannot be a node's name in a federation: it must not contain + or #, end in a "
                             "space, be . or .., or begin with the word feature, features or later; rename it",
                             name);
    }
    return HFSAD_OK;
}

static size_t find_leaf(const dataset *d, const inner_node *parent, const char *name)
{
    for (size_t leaf = parent->first_leaf; leaf < parent->first_leaf + parent->n_leaves; leaf++)
        if (strcmp(d->names + d->leaf_name[leaf], name) == 0)
            return d->n_inner + leaf;
    return SIZE_MAX;
}

size_t nodes_find(const dataset *d, const char *path)
{
    for (size_t i = 0; i < d->n_inner; i++)
        if (strcmp(d->inner[i].name, path) == 0)
            return i;
    const char *slash = strrchr(path, '/');
    if (!slash)
        return find_leaf(d, &d->inner[0], path);
    for (size_t i = 1; i < d->n_inner; i++)
        if (strncmp(d->inner[i].name, path, (size_t)(slash - path)) == 0 && !d->inner[i].name[slash - path])
            return find_leaf(d, &d->inner[i], slash + 1);
    return SIZE_MAX;
}
