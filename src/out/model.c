/* Reads the output folder of a run; see model.h. */
#include "out/model.h"
#include "core/softmax.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/rng.h"
#include "data/builder.h"
#include "data/parse_number.h"
#include "math/loss_kind.h"
#include "out/json.h"
#include "plan/choices.h"
#include "spec/table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPECTED_FOLDER "expected the output folder of hfsad run"
#define EXPECTED_HEADER "node,w1,w2,..."
#define DAMAGED "the file is damaged or was not written by hfsad; run hfsad run again"

enum { PATH_SHOWN = 300 };

static const char *const scale_names[] = {SCALE_NAMES};

/* A file of a folder, mapped. This is safe because a run replaces its files and never shortens one. */
typedef struct {
    char *path;
    void *mapping;     /* NULL: the file is empty */
    const char *bytes; /* the mapped bytes, or "" */
    size_t size;
} mapped_file;

static void unmap(mapped_file *f)
{
    file_unmap(f->mapping, f->size);
    free(f->path);
    *f = (mapped_file){0};
}

static hfsad_status refuse_file(const mapped_file *f, const char *reason, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT, "%.*s cannot be read: %s; " EXPECTED_FOLDER, PATH_SHOWN, f->path, reason);
}

/* name: a file in the folder; NULL if `folder` is the file itself. */
static hfsad_status map_file(mapped_file *f, const char *folder, const char *name, hfsad_error *err)
{
    *f = (mapped_file){.path = path_join(folder, name ? name : ""), .bytes = ""};
    if (!f->path)
        return error_memory(err, strlen(folder), "a file name");
    const int reason = file_map(f->path, &f->mapping, &f->size);
    if (reason)
        return refuse_file(f, reason == FILE_NOT_REGULAR ? "it is not a regular file" : strerror(reason), err);
    if (f->mapping)
        f->bytes = f->mapping;
    return HFSAD_OK;
}

typedef struct {
    const char *path;
    const cJSON *root;
    hfsad_error *err;
} summary;

/* What summary.json states about the shape of model.csv. */
typedef struct {
    double inner, clients, features;
    bool has_clients;
} model_shape;

static hfsad_status refuse_key(const summary *s, const char *key, const char *expected)
{
    return error_set(s->err, HFSAD_ERROR_INPUT, "%.*s: \"%s\" is not %s; " DAMAGED, PATH_SHOWN, s->path, key, expected);
}

static hfsad_status read_count(const summary *s, const char *key, double least, double *value)
{
    const cJSON *item = json_at(s->root, key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least) || item->valuedouble != floor(item->valuedouble))
        return refuse_key(s, key, "a whole number");
    *value = item->valuedouble;
    return HFSAD_OK;
}

/* *index does not change if the item is missing. */
static hfsad_status read_choice(const summary *s, const char *key, const cJSON *item, const char *const *names,
                                size_t count, int *index)
{
    if (!item)
        return HFSAD_OK;
    for (size_t i = 0; i < count && cJSON_IsString(item); i++)
        if (!strcmp(item->valuestring, names[i])) {
            *index = (int)i;
            return HFSAD_OK;
        }
    return refuse_key(s, key, "a name that this version knows");
}

/* The same for a number, with the range of the spec's key. */
static hfsad_status read_parameter(const summary *s, const char *key, const cJSON *item, double *value)
{
    setting_at at;
    char range[SETTING_TEXT_MAX], expected[SETTING_TEXT_MAX + 16];
    if (!item || !settings_find(&spec_schema, key, &at))
        return HFSAD_OK;
    if (!cJSON_IsNumber(item) || isnan(item->valuedouble) ||
        !setting_allows(&at, (setting_value){.real = item->valuedouble})) {
        setting_range_text(at.row, range, sizeof range);
        snprintf(expected, sizeof expected, "a number %s", range);
        return refuse_key(s, key, expected);
    }
    *value = item->valuedouble;
    return HFSAD_OK;
}

static hfsad_status read_loss(const summary *s, const cJSON *object, LOSS_settings *loss)
{
    hfsad_status status =
        read_choice(s, "loss.kind", json_at(object, "kind"), loss_names, HFSAD_LOSS_COUNT, &loss->kind);
    if (!status)
        status = read_choice(s, "loss.scale", json_at(object, "scale"), scale_names,
                             sizeof scale_names / sizeof *scale_names, &loss->scale);
#define READ_PARAMETER(name)                                                                                           \
    if (!status)                                                                                                       \
        status = read_parameter(s, "loss." #name, json_at(object, #name), &loss->name);
    LOSS_PARAMETERS(READ_PARAMETER)
#undef READ_PARAMETER
    loss->levels = NULL; /* model.scores has them */
    const cJSON *classes = json_at(object, "classes");
    const double count = cJSON_IsNumber(classes) ? classes->valuedouble : 0;
    loss->classes = count >= 2 && count <= SOFTMAX_CLASSES ? (int64_t)count : -1;
    if (!status && loss->kind == (int)HFSAD_LOSS_MULTINOMIAL && loss->classes < 0)
        status = refuse_key(s, "loss.classes", "a number from 2 to 256");
    return status;
}

/* Rows with a score per level or per class, as in spec_scores. */
static hfsad_status read_scores(const summary *s, const cJSON *object, model *m)
{
    const cJSON *taus = json_at(object, "levels");
    hfsad_spec as = {.loss = m->loss};
    as.loss.levels = cJSON_IsString(taus) ? taus->valuestring : NULL;
    m->scores = (score_losses){.loss = loss_of(&m->loss, NULL)};
    m->scores.labels = loss_kind_of(&m->scores.loss)->labels;
    m->classes = spec_scores(&as);
    m->scores.K = m->loss.kind == (int)HFSAD_LOSS_MULTINOMIAL ? 0 : m->classes;
    const size_t count = spec_levels(&as, m->scores.levels);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(m->scores.levels[i]))
            return refuse_key(s, "loss.levels", "a list of levels between 0 and 1");
    return HFSAD_OK;
}

static double default_of(const char *key)
{
    setting_at at;
    return settings_find(&spec_schema, key, &at) ? setting_default(&at).real : NAN;
}

bool model_list_patterns(model *m)
{
    const char **texts = alloc_zero(m->n_overrides, sizeof *texts);
    for (size_t i = 0; texts && i < m->n_overrides; i++)
        texts[i] = m->overrides[i].pattern;
    const bool made = texts && patterns_make(&m->patterns, texts, m->n_overrides);
    free(texts);
    return made;
}

static hfsad_status read_overrides(const summary *s, model *m)
{
    const cJSON *list = json_at(s->root, "settings.overrides"), *entry;
    const int count = cJSON_GetArraySize(list);
    if (count == 0)
        return HFSAD_OK;
    m->overrides = alloc_zero((size_t)count, sizeof *m->overrides);
    if (!m->overrides)
        return error_memory(s->err, (size_t)count * sizeof *m->overrides, "overrides");
    cJSON_ArrayForEach(entry, list)
    {
        const cJSON *node = json_at(entry, "node"), *loss = json_at(entry, "loss");
        if (!cJSON_IsString(node))
            return refuse_key(s, "settings.overrides", "a list of overrides");
        if (!loss)
            continue;
        model_override *o = &m->overrides[m->n_overrides++];
#define INHERIT_PARAMETER(name) .name = NAN,
        o->loss = (LOSS_settings){.kind = -1, .scale = -1, LOSS_PARAMETERS(INHERIT_PARAMETER)};
#undef INHERIT_PARAMETER
        o->pattern = strdup(node->valuestring);
        if (!o->pattern)
            return error_memory(s->err, strlen(node->valuestring), "overrides");
        const hfsad_status status = read_loss(s, loss, &o->loss);
        if (status)
            return status;
    }
    return model_list_patterns(m) ? HFSAD_OK : error_memory(s->err, (size_t)count * sizeof(char *), "overrides");
}

static hfsad_status read_group(const summary *s, const cJSON *names, client_groups *g)
{
    const cJSON *name;
    char label[24];
    uint32_t group;
    snprintf(label, sizeof label, "%zu", g->count + 1);
    hfsad_status status = client_groups_label(g, label, &group, s->err);
    cJSON_ArrayForEach(name, names)
    {
        if (!status && !cJSON_IsString(name))
            status = refuse_key(s, "groups", "a list of groups");
        if (!status)
            status = client_groups_add(g, name->valuestring, group, s->err);
    }
    return status;
}

/* The item is missing if no link lets go. The first group is the cloud's; its clients are not listed. */
static hfsad_status read_groups(const summary *s, client_groups *g)
{
    const cJSON *list = json_at(s->root, "groups"), *entry;
    hfsad_status status = HFSAD_OK;
    cJSON_ArrayForEach(entry, list)
    {
        if (!status)
            status = read_group(s, json_at(entry, "names"), g);
    }
    client_groups_sort(g);
    return status;
}

/* A summary has the names if the data had them. */
static hfsad_status read_feature_names(const summary *s, model *m, double features)
{
    static const char key[] = "data.feature_names", expected[] = "a list with the name of every feature";
    const cJSON *list = json_at(s->root, key), *item;
    if (!list)
        return HFSAD_OK;
    size_t size = 0, count = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return refuse_key(s, key, expected);
        size += strlen(item->valuestring) + 1;
        count++;
    }
    if (!cJSON_IsArray(list) || (double)count != features)
        return refuse_key(s, key, expected);
    m->F = count; /* provisional: the header decides */
    char *to = m->feature_names = alloc_raw(size, 1);
    if (!to)
        return error_memory(s->err, size, "the features' names");
    cJSON_ArrayForEach(item, list)
    {
        to = stpcpy(to, item->valuestring) + 1;
    }
    return HFSAD_OK;
}

/* A summary has the scales if the columns were standardised. */
static hfsad_status read_feature_scales(const summary *s, model *m, double features)
{
    static const char key[] = "data.feature_scales", expected[] = "a list with a number for every feature";
    const cJSON *list = json_at(s->root, key), *item;
    size_t count = 0;
    if (!list)
        return HFSAD_OK;
    if (!cJSON_IsArray(list) || (double)cJSON_GetArraySize(list) != features)
        return refuse_key(s, key, expected);
    m->scales = alloc_zero((size_t)features, sizeof *m->scales);
    if (!m->scales)
        return error_memory(s->err, (size_t)features * sizeof *m->scales, "the features' scales");
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || !isfinite(item->valuedouble))
            return refuse_key(s, key, expected);
        m->scales[count++] = item->valuedouble;
    }
    return HFSAD_OK;
}

static hfsad_status read_settings(const summary *s, model *m, model_shape *shape)
{
    const cJSON *loss = json_at(s->root, "settings.loss"), *clients = json_at(s->root, "settings.output.clients");
    hfsad_status status = read_count(s, "data.inner_nodes", 1, &shape->inner);
    if (!status)
        status = read_count(s, "data.clients", 1, &shape->clients);
    if (!status)
        status = read_count(s, "data.features", 1, &shape->features);
    if (!status)
        status = read_feature_names(s, m, shape->features);
    if (!status)
        status = read_feature_scales(s, m, shape->features);
    if (!status)
        status = model_read_columns(m, s->root, s->err);
    if (status)
        return status;
    if (!cJSON_IsBool(clients))
        return refuse_key(s, "settings.output.clients", "true or false");
    shape->has_clients = cJSON_IsTrue(clients);
    /* A summary has only the parameters that some client's loss uses. */
#define USUAL_PARAMETER(name) .name = default_of("loss." #name),
    m->loss = (LOSS_settings){.kind = -1, .scale = SCALE_SUM, LOSS_PARAMETERS(USUAL_PARAMETER)};
#undef USUAL_PARAMETER
    status = read_loss(s, loss, &m->loss);
    if (!status && m->loss.kind < 0)
        status = refuse_key(s, "settings.loss.kind", "there");
    if (!status)
        status = read_scores(s, loss, m);
    if (!status)
        status = read_groups(s, &m->groups);
    return status ? status : read_overrides(s, m);
}

static hfsad_status read_summary(model *m, const char *folder, model_shape *shape, hfsad_error *err)
{
    mapped_file file;
    hfsad_status status = map_file(&file, folder, "summary.json", err);
    cJSON *root = status ? NULL : cJSON_ParseWithLength(file.bytes, file.size);
    if (!status && !cJSON_IsObject(root))
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%.*s is not a complete JSON object; " DAMAGED, PATH_SHOWN, file.path);
    if (!status)
        status = read_settings(&(summary){file.path, root, err}, m, shape);
    cJSON_Delete(root);
    unmap(&file);
    return status;
}

typedef struct {
    const char *path, *at, *end;
    size_t line;
    model *m;
    size_t w_capacity, names_capacity, names_size, name_capacity; /* allocated sizes of the arrays that grow */
    hfsad_error *err;
} reader;

#define LINE_ERROR(r, format, ...)                                                                                     \
    error_set((r)->err, HFSAD_ERROR_INPUT, "%.*s:%zu: " format, PATH_SHOWN, (r)->path, (r)->line, __VA_ARGS__)

/* Returns the line at r->at without its end; r->at moves to the next line. A last line without a line end is an error,
 * because it may have lost digits too. */
static hfsad_status next_line(reader *r, slice *line)
{
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->line++;
    if (!newline)
        return LINE_ERROR(r, "the file is cut short: its last line has no end; %s",
                          "copy the folder again or run hfsad run again");
    *line = (slice){r->at, (size_t)(newline - r->at)};
    if (line->length && newline[-1] == '\r')
        line->length--;
    r->at = newline + 1;
    return HFSAD_OK;
}

/* Cuts the text before the next comma off a line; false if nothing is left. A comma at the end of a line is followed by
 * an empty field. */
static bool next_field(slice *line, slice *field)
{
    if (!line->text)
        return false;
    const char *comma = memchr(line->text, ',', line->length);
    if (!comma) {
        *field = *line;
        *line = (slice){NULL, 0};
        return true;
    }
    *field = (slice){line->text, (size_t)(comma - line->text)};
    *line = (slice){comma + 1, line->length - field->length - 1};
    return true;
}

/* Copies the next name of the header, which may be quoted, to `to` with a terminating 0; `to` moves behind it. */
static bool next_name(slice *line, char **to)
{
    slice field = {"", 0};
    if (!line->text || !line->length || line->text[0] != '"') {
        const bool found = next_field(line, &field);
        memcpy(*to, field.text, field.length);
        *to += field.length;
        *(*to)++ = 0;
        return found;
    }
    const char *at = line->text + 1, *end = line->text + line->length;
    for (; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++) {
        *(*to)++ = *at;
        at += *at == '"';
    }
    *(*to)++ = 0;
    line->length = (size_t)(end - at);
    line->text = at;
    return next_field(line, &field); /* the rest up to the comma: the closing quote */
}

/* Checks the names of the columns, one after the other in `names`: w1, w2, ..., or the names of the features. */
static hfsad_status check_header(const reader *r, const char *names, size_t columns)
{
    model *m = r->m;
    const char *name = names, *known = m->feature_names; /* names in the summary */
    char shown[EXCERPT_SIZE], numbered[32] = "node";
    const size_t named = known ? m->F : 0;
    const bool plain = columns < 2 || !strcmp(names + strlen(names) + 1, "w1");
    m->F = 0;
    for (size_t column = 0; column < columns; column++, name += strlen(name) + 1) {
        if (column > 1 && column + 1 == columns && !strcmp(name, "intercept")) {
            m->intercept = true;
            break;
        }
        if (column > 0)
            snprintf(numbered, sizeof numbered, "w%zu", column);
        const char *expected = column && !plain && column <= named ? known : numbered;
        const bool other = column && !plain && (!known || m->classes) && *name && strcmp(name, "intercept");
        if (!other && strcmp(name, expected))
            return LINE_ERROR(r, "column %zu is called \"%s\" instead of %s; expected the header " EXPECTED_HEADER,
                              column + 1, excerpt(shown, (slice){name, strlen(name)}), expected);
        if (column && column <= named)
            known += strlen(known) + 1;
        m->F = column;
    }
    return m->F ? HFSAD_OK : LINE_ERROR(r, "no models in the header; expected %s", EXPECTED_HEADER);
}

static hfsad_status read_header(reader *r)
{
    slice line = {"", 0};
    hfsad_status status = next_line(r, &line);
    if (status)
        return status;
    char *names = alloc_raw(line.length + 2, 1), *end = names;
    if (!names)
        return error_memory(r->err, line.length, "the features' names");
    size_t columns = 0;
    while (line.text && next_name(&line, &end))
        columns++;
    status = check_header(r, names, columns);
    const char *first = names + strlen(names) + 1;
    if (!status && !r->m->feature_names && strcmp(first, "w1") != 0) { /* a model.csv without its summary */
        memmove(names, first, (size_t)(end - first));
        r->m->feature_names = names;
        return HFSAD_OK;
    }
    free(names);
    return status;
}

static hfsad_status add_name(reader *r, slice name)
{
    model *m = r->m;
    if (m->n_nodes == MODEL_NONE)
        return LINE_ERROR(r, "more than %u nodes", MODEL_NONE);
    if (!alloc_grow((void **)&m->names, &r->names_capacity, r->names_size + name.length + 1, 1) ||
        !alloc_grow((void **)&m->name_at, &r->name_capacity, m->n_nodes + 1, sizeof *m->name_at))
        return error_memory(r->err, r->names_size + name.length, "the names of the nodes");
    m->name_at[m->n_nodes] = r->names_size;
    memcpy(m->names + r->names_size, name.text, name.length);
    m->names[r->names_size + name.length] = 0;
    r->names_size += name.length + 1;
    return HFSAD_OK;
}

static hfsad_status refuse_number(const reader *r, size_t column, slice field)
{
    const size_t F = r->m->F;
    char shown[EXCERPT_SIZE], name[32] = "intercept";
    if (column < F)
        snprintf(name, sizeof name, "w%zu", column + 1);
    return LINE_ERROR(r, "%s is \"%s\"; expected a finite number; the run diverged or the file is damaged", name,
                      excerpt(shown, field));
}

static hfsad_status read_model(reader *r, slice line)
{
    model *m = r->m;
    const size_t width = model_width(m), begin = m->n_nodes * width;
    slice name = {"", 0}, field = name;
    next_field(&line, &name);
    if (name.length >= 2 && name.text[0] == '"' && name.text[name.length - 1] == '"')
        name = (slice){name.text + 1, name.length - 2}; /* spreadsheets quote names; no name contains a quote */
    hfsad_status status = add_name(r, name);
    if (status)
        return status;
    if (!alloc_grow((void **)&m->w, &r->w_capacity, begin + width, sizeof *m->w))
        return error_memory(r->err, (begin + width) * sizeof *m->w, "the models");
    size_t n = 0;
    for (; next_field(&line, &field); n++) {
        const char *end = field.text + field.length;
        double value = 0;
        if (n >= width)
            continue; /* continue, to count the numbers */
        if (number_parse(field.text, end, &value) != end || !isfinite(value))
            return refuse_number(r, n, field);
        m->w[begin + n] = value;
    }
    if (n != width)
        return LINE_ERROR(r, "%zu numbers instead of %zu; " DAMAGED, n, width);
    m->n_nodes++;
    return HFSAD_OK;
}

/* The slot of the name, or a free slot for it. */
static uint32_t *find_slot(const model *m, const char *name)
{
    size_t i = rng_mix(rng_stream(name)) & (m->n_slots - 1);
    while (m->slots[i] != MODEL_NONE && strcmp(model_name(m, m->slots[i]), name) != 0)
        i = (i + 1) & (m->n_slots - 1);
    return &m->slots[i];
}

uint32_t model_find(const model *m, const char *name)
{
    return *find_slot(m, name);
}

hfsad_status model_index(model *m, const char *path, hfsad_error *err)
{
    m->n_slots = 2;
    while (m->n_slots < 2 * m->n_nodes)
        m->n_slots *= 2;
    m->slots = alloc_raw(m->n_slots, sizeof *m->slots);
    if (!m->slots)
        return error_memory(err, m->n_slots * sizeof *m->slots, "the names of the nodes");
    memset(m->slots, 0xff, m->n_slots * sizeof *m->slots);
    for (uint32_t node = 0; node < m->n_nodes; node++) {
        const char *name = model_name(m, node);
        uint32_t *slot = find_slot(m, name);
        if (*slot != MODEL_NONE)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.*s: lines %u and %u both belong to the node \"%.100s\"; " DAMAGED, PATH_SHOWN, path,
                             *slot + 2, node + 2, name);
        *slot = node;
    }
    return HFSAD_OK;
}

/* A file that was cut at the end of a line, or that is left from another run, does not match the summary. */
static hfsad_status check_shape(const reader *r, const model_shape *shape)
{
    model *m = r->m;
    const double nodes = shape->inner + (shape->has_clients ? shape->clients : 0);
    if ((double)m->n_nodes != nodes)
        return error_set(
            r->err, HFSAD_ERROR_INPUT,
            "%.*s has %zu models, but the summary.json beside it states %.0f; the file is cut short or from "
            "another run: run hfsad run again",
            PATH_SHOWN, r->path, m->n_nodes, nodes);
    const bool several = m->classes > 0;
    m->features = (size_t)shape->features;
    const double scores = several ? (double)m->classes : 1;
    /* The summary may count the intercept as a feature. */
    if (scores * shape->features != (double)m->F && scores * shape->features != (double)model_width(m) &&
        !(several && scores * (shape->features + 1) == (double)m->F))
        return error_set(
            r->err, HFSAD_ERROR_INPUT,
            "%.*s has %zu features, but the summary.json beside it states %.0f; the files are from two runs: run "
            "hfsad run again",
            PATH_SHOWN, r->path, m->F, shape->features);
    if (strcmp(model_name(m, 0), "cloud") != 0)
        return error_set(r->err, HFSAD_ERROR_INPUT, "%.*s:2: the first model is \"%.100s\" instead of cloud; " DAMAGED,
                         PATH_SHOWN, r->path, model_name(m, 0));
    m->n_inner = (size_t)shape->inner;
    return HFSAD_OK;
}

/* shape: what the rows must match, or NULL. */
static hfsad_status read_rows(reader *r, const model_shape *shape)
{
    hfsad_status status = read_header(r);
    while (!status && r->at < r->end) {
        slice line = {"", 0};
        status = next_line(r, &line);
        if (!status)
            status = read_model(r, line);
    }
    if (!status && shape)
        status = check_shape(r, shape);
    return status ? status : model_index(r->m, r->path, r->err);
}

static hfsad_status read_table(model *m, const char *folder, const char *name, const model_shape *shape,
                               hfsad_error *err)
{
    mapped_file file;
    hfsad_status status = map_file(&file, folder, name, err);
    if (!status)
        status = read_rows(
            &(reader){.path = file.path, .at = file.bytes, .end = file.bytes + file.size, .m = m, .err = err}, shape);
    unmap(&file);
    return status;
}

static hfsad_status read_folder(model *m, const char *folder, hfsad_error *err)
{
    model_shape shape = {0};
    const hfsad_status status = read_summary(m, folder, &shape, err);
    return status ? status : read_table(m, folder, "model.csv", &shape, err);
}

static hfsad_status read_models(model *m, const char *path, hfsad_error *err)
{
    struct stat info;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    return read_table(m, path, folder ? "model.csv" : NULL, NULL, err);
}

static hfsad_status make(model **made, hfsad_status (*fill)(model *, const char *, hfsad_error *), const char *path,
                         hfsad_error *err)
{
    *made = NULL;
    model *m = alloc_zero(1, sizeof *m);
    if (!m)
        return error_memory(err, sizeof *m, "a model");
    const hfsad_status status = fill(m, path, err);
    if (status)
        model_free(m);
    else
        *made = m;
    return status;
}

hfsad_status model_read(model **made, const char *folder, hfsad_error *err)
{
    return make(made, read_folder, folder, err);
}

hfsad_status model_read_models(model **made, const char *path, hfsad_error *err)
{
    return make(made, read_models, path, err);
}

void model_free(model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_overrides; i++)
        free(m->overrides[i].pattern);
    free(m->overrides);
    patterns_free(&m->patterns);
    client_groups_free(&m->groups);
    free(m->feature_names);
    free(m->scales);
    model_free_columns(m);
    free(m->w);
    free(m->name_at);
    free(m->names);
    free(m->slots);
    free(m);
}

client_law model_law(const model *m, const char *client)
{
    LOSS_settings l = m->loss;
    pattern_walk walk = patterns_find(&m->patterns, client);
    for (size_t i; (i = patterns_next(&walk)) != SIZE_MAX;) {
        const model_override *o = &m->overrides[i];
        l.kind = o->loss.kind >= 0 ? o->loss.kind : l.kind;
        l.scale = o->loss.scale >= 0 ? o->loss.scale : l.scale;
#define LAY_PARAMETER(name) l.name = isnan(o->loss.name) ? l.name : o->loss.name;
        LOSS_PARAMETERS(LAY_PARAMETER)
#undef LAY_PARAMETER
    }
    l.box = INFINITY;
    return (client_law){.loss = loss_of(&l, NULL), .mean = l.scale == SCALE_MEAN};
}
