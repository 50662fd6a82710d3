#include "report/warm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/features.h"
#include "model/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    char *name;
    size_t first; /* of its numbers */
} model_row;

/* model.csv in memory. */
typedef struct {
    const char *path;
    size_t M, line;
    bool intercept; /* the last number of a model is one */
    model_row *rows;
    size_t count, capacity;
    double *numbers;
    size_t n_numbers, numbers_capacity;
} model_file;

static hfsad_status refuse(const model_file *m, hfsad_error *err, const char *what)
{
    error_set(err, HFSAD_ERROR_INPUT, "%.300s:%zu: %s", m->path, m->line, what);
    return HFSAD_ERROR_INPUT; /* said here, so that a checker of this file alone knows it is not 0 */
}

/* The name at the start of a line, which may stand in quotes; it is closed in place. Returns what follows its comma,
 * NULL where there is no such thing. */
static char *cut_name(char *line, char **name)
{
    *name = line;
    if (*line != '"') {
        char *comma = strchr(line, ',');
        if (comma)
            *comma = 0;
        return comma ? comma + 1 : NULL;
    }
    char *to = line;
    for (char *from = line + 1; *from; *to++ = *from++) {
        if (*from != '"')
            continue;
        if (from[1] == ',') {
            *to = 0;
            return from + 2;
        }
        if (*++from != '"')
            return NULL;
    }
    return NULL;
}

static hfsad_status read_head(model_file *m, char *line, hfsad_error *err)
{
    char *name, *at = cut_name(line, &name);
    if (!at || strcmp(name, "node") != 0)
        return refuse(m, err, "no model: the first line is not node,w1,w2,...; give an output folder or its model.csv");
    const char *first = at;
    size_t columns = 1;
    for (; *at; at++)
        columns += *at == ',';
    if (columns != m->M)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: a model of %zu features; the data have %zu", m->path, columns,
                         m->M);
    const char *last = strrchr(first, ',');
    if (!strcmp(last ? last + 1 : first, "intercept") == m->intercept)
        return HFSAD_OK;
    return refuse(m, err,
                  m->intercept ? "a model without an intercept; give one with, or set features.intercept to none"
                               : "a model with an intercept; give one without, or set features.intercept");
}

static bool take_row(model_file *m, const char *name)
{
    void *rows = m->rows, *numbers = m->numbers;
    const bool room = alloc_grow(&rows, &m->capacity, m->count + 1, sizeof *m->rows);
    m->rows = rows;
    const bool more = alloc_grow(&numbers, &m->numbers_capacity, m->n_numbers + m->M, sizeof *m->numbers);
    m->numbers = numbers;
    if (!room || !more)
        return false;
    m->rows[m->count] = (model_row){strdup(name), m->n_numbers};
    return m->rows[m->count++].name != NULL;
}

static hfsad_status read_row(model_file *m, char *line, hfsad_error *err)
{
    char *name;
    const char *at = cut_name(line, &name);
    if (!at)
        return refuse(m, err, "the row is cut; expected a node and its model");
    const char *end = at + strlen(at);
    if (!take_row(m, name))
        return error_memory(err, m->M * sizeof(double), "the model");
    for (size_t i = 0; i < m->M; i++) {
        double *v = &m->numbers[m->n_numbers++];
        at = number_parse(at, end, v);
        if (!at || !isfinite(*v) || (i + 1 < m->M ? *at != ',' : *at != 0))
            return refuse(m, err, "the row does not have a finite number for every feature");
        at += i + 1 < m->M;
    }
    return HFSAD_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const model_row *)a)->name, ((const model_row *)b)->name);
}

static hfsad_status read_lines(model_file *m, FILE *f, hfsad_error *err)
{
    char *line = NULL;
    size_t size = 0;
    hfsad_status status = HFSAD_OK;
    for (ssize_t length; !status && (length = getline(&line, &size, f)) > 0;) {
        m->line++;
        if (strlen(line) != (size_t)length)
            status = refuse(m, err, "a byte of 0; is it a model.csv?");
        else if (line[length - 1] != '\n') /* what is left of a number may be a number too */
            status = refuse(m, err, "the file is cut short: its last line has no end; copy it anew");
        line[strcspn(line, "\r\n")] = 0;
        if (!status)
            status = m->line == 1 ? read_head(m, line, err) : read_row(m, line, err);
    }
    free(line);
    if (!status && ferror(f))
        status = error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be read: %s", m->path, strerror(errno));
    if (!status && !m->count)
        status = error_set(err, HFSAD_ERROR_INPUT, "%.300s: no model in it; give an output folder or its model.csv",
                           m->path);
    if (status)
        return status;
    qsort(m->rows, m->count, sizeof *m->rows, by_name);
    for (size_t i = 1; i < m->count; i++)
        if (!strcmp(m->rows[i - 1].name, m->rows[i].name))
            return error_set(err, HFSAD_ERROR_INPUT, "%.300s: two rows for the node '%.200s'", m->path,
                             m->rows[i].name);
    return HFSAD_OK;
}

static hfsad_status read_model(model_file *m, hfsad_error *err)
{
    FILE *f = fopen(m->path, "r");
    if (!f) {
        error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be opened: %s; give an output folder or its model.csv",
                  m->path, strerror(errno));
        return HFSAD_ERROR_INPUT;
    }
    const hfsad_status status = read_lines(m, f, err);
    fclose(f);
    return status;
}

/* The row of a node or its nearest ancestor; name is cut on the way. */
static const model_row *find(const model_file *m, char *name)
{
    for (;;) {
        const model_row wanted = {.name = name}, *row = bsearch(&wanted, m->rows, m->count, sizeof *row, by_name);
        char *slash = strrchr(name, '/');
        if (row || !slash)
            return row;
        *slash = 0;
    }
}

/* w: room for a model. */
static hfsad_status apply(hfsad_run *run, const model_file *m, double *w, hfsad_error *err)
{
    char name[HFSAD_TIERS_MAX * 256] = "cloud";
    const model_row *cloud = find(m, name);
    if (!cloud)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: no row for the cloud; give a whole model.csv", m->path);
    for (size_t i = 0; i < hfsad_run_nodes(run); i++) {
        hfsad_run_node_name(run, i, name, sizeof name);
        const model_row *row = find(m, name);
        model_from_user(run->data, m->numbers + (row ? row : cloud)->first, w);
        sim_set_model(run->sim, i, w);
    }
    return HFSAD_OK;
}

/* model.csv of a folder, or the file itself. NULL: no memory. */
static char *file_of(const char *model)
{
    struct stat info;
    const bool folder = stat(model, &info) == 0 && S_ISDIR(info.st_mode);
    const size_t size = strlen(model) + sizeof "/model.csv";
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s", model, folder ? "/model.csv" : "");
    return path;
}

hfsad_status warm_start(hfsad_run *run, const char *model, hfsad_error *err)
{
    if (!run->engine->links)
        return error_set(err, HFSAD_ERROR_INPUT, "--warm-start: a baseline starts from one vector; give run.start");
    char *path = file_of(model);
    double *w = alloc_zero(hfsad_run_features(run), sizeof *w);
    if (!path || !w) {
        free(path);
        free(w);
        return error_memory(err, strlen(model), "a model");
    }
    model_file m = {.path = path, .M = hfsad_run_features(run), .intercept = run->data->rows.constant != 0};
    hfsad_status status = read_model(&m, err);
    if (!status)
        status = apply(run, &m, w, err);
    free(w);
    for (size_t i = 0; i < m.count; i++)
        free(m.rows[i].name);
    free(m.rows);
    free(m.numbers);
    if (status) {
        free(path);
        return status;
    }
    free(run->start_kind);
    run->start_kind = path;
    return HFSAD_OK;
}
