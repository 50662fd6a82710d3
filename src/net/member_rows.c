/* What a process of a federation reads: spec, tree and rows. */
#define _POSIX_C_SOURCE 200809L
#include "net/member.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "data/bytes.h"
#include "data/format.h"
#include "data/memory.h"
#include "data/nodes.h"
#include "plan/labels.h"
#include "plan/read_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tree that was read, if its names can be names of nodes; otherwise it is freed. */
static hfsad_status checked(hfsad_status status, dataset **shape, hfsad_error *err)
{
    if (status || !(status = nodes_check_names(*shape, err)))
        return status;
    dataset_free(*shape);
    *shape = NULL;
    return status;
}

hfsad_status member_shape(dataset **shape, const hfsad_spec *spec, const char *nodes, const char *scratch,
                          hfsad_error *err)
{
    if (nodes)
        return checked(nodes_parse(shape, nodes, "the list of nodes", err), shape, err);
    const bool listed = spec->federation.nodes != NULL;
    char *path = spec_find_file(spec, listed ? spec->federation.nodes : spec->top.data), *text = NULL;
    dataset *d = NULL;
    const table_settings table = table_of_spec(spec);
    hfsad_status status = path ? HFSAD_OK : error_memory(err, 0, "a file name");
    if (!status && listed) {
        status = nodes_read(shape, path, err);
        free(path);
        return checked(status, shape, err);
    }
    if (!status)
        status = dataset_read_client(&d, path, &table, NULL, NULL, scratch, err);
    if (!status)
        status = nodes_check_names(d, err);
    if (!status)
        status = labels_settle(d, spec, err); /* the list tells the labels */
    if (!status && !(text = nodes_text(d)))
        status = error_memory(err, 0, "the list of nodes");
    if (!status)
        status = nodes_parse(shape, text, path, err);
    dataset_free(d);
    free(text);
    free(path);
    return status;
}

hfsad_status hfsad_nodes_list(const hfsad_spec *spec, char **text, hfsad_error *err)
{
    dataset *shape;
    const hfsad_status status = member_shape(&shape, spec, NULL, NULL, err);
    *text = status ? NULL : nodes_text(shape);
    if (status)
        return status;
    dataset_free(shape);
    return *text ? HFSAD_OK : error_memory(err, 0, "the list of nodes");
}

/* Whether the comment at the end of a row of LIBSVM names a node of the federation. */
static bool names_node(const hfsad_member *m, char *row)
{
    char *name = strchr(row, '#');
    if (!name)
        return false;
    name += 1 + strspn(name + 1, " \t");
    for (char *end = name + strlen(name); end > name && strchr(" \t\r\n", end[-1]);)
        *--end = 0;
    return nodes_find(federation_shape(m->f), name) != SIZE_MAX;
}

static bool names_column(char *header, const char *column)
{
    static const char mark[] = "\xef\xbb\xbf", between[] = ",;\"\r\n \t";
    header += strncmp(header, mark, strlen(mark)) ? 0 : strlen(mark);
    for (char *field = strtok(header, between); field; field = strtok(NULL, between))
        if (!strcmp(field, column))
            return true;
    return false;
}

/* A copy of the next line of a text; NULL: there is none. */
static char *next_line(const file_bytes *f, size_t *at)
{
    const char *start = f->bytes + *at, *end = *at < f->size ? memchr(start, '\n', f->size - *at) : NULL;
    const size_t length = end ? (size_t)(end - start) : f->size - *at;
    *at += length + (end != NULL);
    return length || end ? strndup(start, length) : NULL;
}

/* Whether a file is one client's own: an array, a CSV file without a column for clients, a LIBSVM file whose first row
 * names no node. */
static bool is_own_file(const hfsad_member *m, const char *path)
{
    const table_settings table = table_of_spec(m->spec);
    struct stat info;
    file_bytes f;
    size_t at = 0, stem;
    bool stated;
    const data_format *format = format_or_csv(path, &stem);
    if ((stat(path, &info) == 0 && S_ISDIR(info.st_mode)) || (table.clients && !m->s.data_file))
        return false; /* the latter: rows of all, which are dealt */
    if (format->clients == CLIENTS_NONE)
        return true;
    const bool opened = !bytes_open(&f, path, true, "rows", NULL);
    format = opened ? format_settle(format, &f) : format;
    char *line = opened ? next_line(&f, &at) : NULL;
    while (format->clients == CLIENTS_COMMENT && line && strchr("#\r\n", line[strspn(line, " \t")])) { /* no row yet */
        free(line);
        line = next_line(&f, &at);
    }
    const bool own = line && !(format->clients == CLIENTS_COMMENT
                                   ? names_node(m, line)
                                   : names_column(line, columns_name(&table, COLUMN_CLIENT, &stated)));
    free(line);
    bytes_close(&f);
    return own;
}

static hfsad_status read_rows_of(const hfsad_member *m, const char *path, dataset **rows, hfsad_error *err)
{
    char *parent = NULL;
    const char *name = NULL;
    if (m->s.name && is_own_file(m, path)) {
        const char *slash = strrchr(m->s.name, '/');
        name = slash ? slash + 1 : m->s.name;
        parent = strndup(m->s.name, slash ? (size_t)(slash - m->s.name) : 0);
        if (!parent)
            return error_memory(err, 0, "a name");
    }
    table_settings table = table_of_spec(m->spec);
    const dataset *shape = federation_shape(m->f);
    table.categorical = shape->categorical ? shape->categorical : table.categorical;
    table.labels = shape->labels ? shape->labels : table.labels;
    if (shape->means && table.missing == MISSING_MEAN)
        table.means = shape->means;
    const hfsad_status status = dataset_read_client(rows, path, &table, parent, name, m->scratch, err);
    free(parent);
    return status;
}

static char *find_rows(const hfsad_member *m)
{
    return m->s.data_file ? strdup(m->s.data_file) : spec_find_file(m->spec, m->spec->top.data);
}

static hfsad_status read_rows_again(void *context, dataset **rows, hfsad_error *err)
{
    const hfsad_member *m = context;
    char *path = find_rows(m);
    const hfsad_status status = path ? read_rows_of(m, path, rows, err) : error_memory(err, 0, "a file name");
    free(path);
    return status;
}

/* Rows without paths get the client's. */
static hfsad_status take_rows(hfsad_member *m, hfsad_error *err)
{
    dataset *rows = NULL;
    hfsad_data *data = m->s.data;
    int64_t *codes = data->codes || !m->s.name ? NULL : alloc_zero(data->rows, sizeof *codes);
    hfsad_status status = HFSAD_OK;
    if (codes)
        status = hfsad_data_codes(data, codes, &m->s.name, 1, err);
    free(codes);
    if (!status)
        status = data_lay(data, true, true, NULL, &rows, err);
    return status ? status : federation_take_rows(m->f, rows, "data", err);
}

hfsad_status member_read_rows(hfsad_member *m, hfsad_error *err)
{
    dataset *rows = NULL;
    if (m->s.data)
        return take_rows(m, err);
    char *path = find_rows(m);
    if (!path)
        return error_memory(err, 0, "a file name");
    hfsad_status status =
        is_command(path) || access(path, R_OK) == 0
            ? read_rows_of(m, path, &rows, err)
            : error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be read: %s; %s", path, strerror(errno),
                        m->s.data_file ? "name the file with the client's rows"
                                       : "the spec names it as data; name the file with the client's rows");
    if (!status)
        status = federation_take_rows(m->f, rows, path, err);
    federation_set_reader(m->f, read_rows_again, m);
    free(path);
    return status;
}
