/* See memory.h. Functions that set arrays check their shapes; data_lay checks every number. */
#include "data/memory.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS_MOST = 0xfffffffe };

hfsad_status hfsad_data_create(hfsad_data **out, size_t rows, size_t features, hfsad_keep keep, hfsad_error *err)
{
    *out = NULL;
    if (rows == 0 || features == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%zu rows of %zu features; expected at least one of each", rows,
                         features);
    size_t doubles;
    if (rows > ROWS_MOST || features > ROWS_MOST || __builtin_mul_overflow(rows, features, &doubles) ||
        doubles > SIZE_MAX / 64)
        return error_set(err, HFSAD_ERROR_INPUT, "%zu rows of %zu features are too many", rows, features);
    if (keep != HFSAD_COPY && keep != HFSAD_BORROW)
        return error_set(err, HFSAD_ERROR_INPUT, "keep = %d; expected HFSAD_COPY or HFSAD_BORROW", (int)keep);
    hfsad_data *d = alloc_zero(1, sizeof *d);
    if (!d)
        return error_memory(err, sizeof *d, "data");
    atomic_init(&d->references, 1);
    d->rows = rows;
    d->features = features;
    d->keep = keep;
    *out = d;
    return HFSAD_OK;
}

static void drop_x(hfsad_data *d)
{
    free(d->dense_copy);
    free(d->value_copy);
    free(d->start_copy);
    free(d->column_copy);
    d->dense_copy = d->value_copy = NULL;
    d->start_copy = d->column_copy = NULL;
    d->dense = (lent_rows){0};
    d->value = NULL;
}

static void drop_paths(hfsad_data *d)
{
    free(d->codes);
    free(d->names.text);
    free(d->name_at);
    d->codes = d->name_at = NULL;
    d->names = (text_pool){0};
    d->n_names = 0;
}

void hfsad_data_free(hfsad_data *d)
{
    if (!d || atomic_fetch_sub(&d->references, 1) > 1)
        return;
    drop_x(d);
    drop_paths(d);
    free(d->y.copy);
    free(d->weight.copy);
    free(d->feature_names);
    free(d->truth);
    free(d);
}

/* Checks before anything changes. */
static hfsad_status check_open(const hfsad_data *d, const void *given, const char *what, hfsad_error *err)
{
    if (!given)
        return error_set(err, HFSAD_ERROR_INPUT, "%s: NULL; expected an array", what);
    if (atomic_load(&d->references) > 1)
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the data is in use by a run; free the run first", what);
    return HFSAD_OK;
}

hfsad_status hfsad_data_dense(hfsad_data *d, const double *x, ptrdiff_t row_stride, ptrdiff_t column_stride,
                              hfsad_error *err)
{
    const hfsad_status status = check_open(d, x, "x", err);
    if (status)
        return status;
    double *copy = NULL;
    if (d->keep == HFSAD_COPY) {
        copy = alloc_raw(d->rows * d->features, sizeof *copy);
        if (!copy)
            return error_memory(err, d->rows * d->features * sizeof *copy, "a copy of x");
        for (size_t r = 0; r < d->rows; r++)
            for (size_t m = 0; m < d->features; m++)
                copy[r * d->features + m] = x[(ptrdiff_t)r * row_stride + (ptrdiff_t)m * column_stride];
    }
    drop_x(d);
    d->dense_copy = copy;
    d->dense = copy ? (lent_rows){copy, (ptrdiff_t)d->features, 1} : (lent_rows){x, row_stride, column_stride};
    return HFSAD_OK;
}

static int64_t index_at(const void *array, bool wide, size_t i)
{
    return wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

static hfsad_status check_starts(const hfsad_data *d, const void *start, bool wide, hfsad_error *err)
{
    int64_t last = index_at(start, wide, 0);
    if (last != 0)
        return error_set(err, HFSAD_ERROR_INPUT, "start[0] is %lld; expected 0", (long long)last);
    for (size_t r = 1; r <= d->rows; r++) {
        const int64_t next = index_at(start, wide, r);
        if (next < last || (uint64_t)(next - last) > d->features)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "row %zu: start goes from %lld to %lld; expected a row of 0 to %zu numbers", r,
                             (long long)last, (long long)next, d->features);
        last = next;
    }
    return HFSAD_OK;
}

static void *copy_of(const void *bytes, size_t count, size_t size)
{
    void *copy = alloc_raw(count ? count : 1, size);
    if (copy && count)
        memcpy(copy, bytes, count * size);
    return copy;
}

static hfsad_status set_sparse(hfsad_data *d, const void *start, const void *column, const double *value, bool wide,
                               hfsad_error *err)
{
    hfsad_status status = check_open(d, start && column && value ? start : NULL, "x", err);
    if (status || (status = check_starts(d, start, wide, err)))
        return status;
    const size_t numbers = (size_t)index_at(start, wide, d->rows), size = wide ? sizeof(int64_t) : sizeof(int32_t);
    void *starts = NULL, *columns = NULL;
    double *values = NULL;
    if (d->keep == HFSAD_COPY) {
        starts = copy_of(start, d->rows + 1, size);
        columns = copy_of(column, numbers, size);
        values = copy_of(value, numbers, sizeof *values);
        if (!starts || !columns || !values) {
            free(starts);
            free(columns);
            free(values);
            return error_memory(err, numbers * (size + sizeof *values), "a copy of x");
        }
    }
    drop_x(d);
    d->wide = wide;
    d->start_copy = starts;
    d->column_copy = columns;
    d->value_copy = values;
    d->start = starts ? starts : start;
    d->column = columns ? columns : column;
    d->value = values ? values : value;
    return HFSAD_OK;
}

hfsad_status hfsad_data_csr(hfsad_data *d, const int32_t *start, const int32_t *column, const double *value,
                            hfsad_error *err)
{
    return set_sparse(d, start, column, value, false, err);
}

hfsad_status hfsad_data_csr64(hfsad_data *d, const int64_t *start, const int64_t *column, const double *value,
                              hfsad_error *err)
{
    return set_sparse(d, start, column, value, true, err);
}

static hfsad_status set_column(hfsad_data *d, number_column *c, const double *v, ptrdiff_t stride, const char *what,
                               hfsad_error *err)
{
    const hfsad_status status = check_open(d, v, what, err);
    if (status)
        return status;
    number_column made = {v, stride, NULL};
    if (d->keep == HFSAD_COPY) {
        made.copy = alloc_raw(d->rows, sizeof *made.copy);
        if (!made.copy)
            return error_memory(err, d->rows * sizeof *made.copy, what);
        for (size_t r = 0; r < d->rows; r++)
            made.copy[r] = v[(ptrdiff_t)r * stride];
        made.at = made.copy;
        made.stride = 1;
    }
    free(c->copy);
    *c = made;
    return HFSAD_OK;
}

hfsad_status hfsad_data_y(hfsad_data *d, const double *y, ptrdiff_t stride, hfsad_error *err)
{
    return set_column(d, &d->y, y, stride, "y", err);
}

hfsad_status hfsad_data_weights(hfsad_data *d, const double *weight, ptrdiff_t stride, hfsad_error *err)
{
    return set_column(d, &d->weight, weight, stride, "weights", err);
}

/* ---- paths ---- */

static hfsad_status add_name(hfsad_data *d, size_t *capacity, const char *path, hfsad_error *err)
{
    void *grown = d->name_at;
    if (!alloc_grow(&grown, capacity, d->n_names + 1, sizeof *d->name_at))
        return error_memory(err, d->n_names * sizeof *d->name_at, "the paths");
    d->name_at = grown;
    return texts_add(&d->names, (slice){path, strlen(path)}, &d->name_at[d->n_names++], err);
}

/* The number of the path among the names; a new path is added. */
static hfsad_status find_code(hfsad_data *d, name_table *t, size_t *capacity, const char *path, uint32_t *code,
                              hfsad_error *err)
{
    const slice s = {path, strlen(path)};
    const uint32_t hash = names_hash(0, s);
    const size_t mask = t->slots ? ((size_t)1 << t->bits) - 1 : 0;
    for (size_t i = t->slots ? names_start(t, hash) : 0; t->slots && t->slots[i]; i = (i + 1) & mask) {
        *code = (uint32_t)t->slots[i] - 1;
        if (t->slots[i] >> 32 == hash && texts_same(&d->names, d->name_at[*code], s))
            return HFSAD_OK;
    }
    *code = (uint32_t)d->n_names;
    const hfsad_status status = add_name(d, capacity, path, err);
    return status ? status : names_add(t, hash, *code, err);
}

static hfsad_status begin_paths(hfsad_data *d, const void *given, hfsad_error *err)
{
    const hfsad_status status = check_open(d, given, "paths", err);
    if (status)
        return status;
    drop_paths(d);
    d->codes = alloc_raw(d->rows, sizeof *d->codes);
    return d->codes ? HFSAD_OK : error_memory(err, d->rows * sizeof *d->codes, "the paths");
}

hfsad_status hfsad_data_paths(hfsad_data *d, const char *const *paths, hfsad_error *err)
{
    hfsad_status status = begin_paths(d, paths, err);
    if (status)
        return status;
    name_table table = {0};
    size_t capacity = 0;
    for (size_t r = 0; r < d->rows && !status; r++) {
        const bool same = r > 0 && paths[r] && paths[r] == paths[r - 1]; /* often: rows of one client */
        if (!paths[r])
            status = error_set(err, HFSAD_ERROR_INPUT, "row %zu: the path is NULL", r + 1);
        else if (same)
            d->codes[r] = d->codes[r - 1];
        else
            status = find_code(d, &table, &capacity, paths[r], &d->codes[r], err);
    }
    free(table.slots);
    if (status)
        drop_paths(d);
    return status;
}

hfsad_status hfsad_data_codes(hfsad_data *d, const int64_t *codes, const char *const *paths, size_t n_paths,
                              hfsad_error *err)
{
    hfsad_status status = begin_paths(d, codes && paths ? codes : NULL, err);
    if (status)
        return status;
    size_t capacity = 0;
    for (size_t i = 0; i < n_paths && !status; i++)
        status =
            paths[i] ? add_name(d, &capacity, paths[i], err) : error_set(err, HFSAD_ERROR_INPUT, "path %zu is NULL", i);
    for (size_t r = 0; r < d->rows && !status; r++) {
        if (codes[r] < 0 || (uint64_t)codes[r] >= n_paths)
            status = error_set(err, HFSAD_ERROR_INPUT, "row %zu: the code %lld is out of range; expected 0 to %zu",
                               r + 1, (long long)codes[r], n_paths - 1);
        else
            d->codes[r] = (uint32_t)codes[r];
    }
    if (status)
        drop_paths(d);
    return status;
}

/* ---- the rest ---- */

static bool is_text(const char *text)
{
    for (size_t i = 0, bytes, length = strlen(text); i < length; i += bytes)
        if ((unsigned char)text[i] < 0x20 || !(bytes = utf8_length(text + i, length - i)))
            return false;
    return *text != 0;
}

hfsad_status hfsad_data_feature_names(hfsad_data *d, const char *const *names, hfsad_error *err)
{
    const hfsad_status status = check_open(d, names, "feature names", err);
    if (status)
        return status;
    size_t size = 0;
    for (size_t m = 0; m < d->features; m++) {
        if (!names[m] || !is_text(names[m]))
            return error_set(err, HFSAD_ERROR_INPUT, "the name of feature %zu is %s; expected UTF-8 text", m + 1,
                             !names[m]   ? "NULL"
                             : *names[m] ? "not printable"
                                         : "empty");
        size += strlen(names[m]) + 1;
    }
    char *made = alloc_raw(size, 1), *to = made;
    if (!made)
        return error_memory(err, size, "the features' names");
    for (size_t m = 0; m < d->features; m++) {
        const size_t length = strlen(names[m]) + 1;
        memcpy(to, names[m], length);
        to += length;
    }
    free(d->feature_names);
    d->feature_names = made;
    return HFSAD_OK;
}

hfsad_status hfsad_data_truth(hfsad_data *d, const double *truth, hfsad_error *err)
{
    const hfsad_status status = check_open(d, truth, "truth", err);
    if (status)
        return status;
    double size = 0;
    for (size_t m = 0; m < d->features; m++)
        size += truth[m] * truth[m];
    if (!(size > 0 && isfinite(size)))
        return error_set(err, HFSAD_ERROR_INPUT, "truth is %s, so no relative error exists; leave it out",
                         size == 0 ? "all zero" : "not finite or too large");
    double *made = copy_of(truth, d->features, sizeof *made);
    if (!made)
        return error_memory(err, d->features * sizeof *made, "the truth");
    free(d->truth);
    d->truth = made;
    return HFSAD_OK;
}

/* ---- laying out ---- */

static hfsad_status check_whole(const hfsad_data *d, bool needs_y, hfsad_error *err)
{
    const char *lacks = !d->dense.x && !d->value ? "x: hfsad_data_dense or hfsad_data_csr"
                        : !d->codes              ? "paths: hfsad_data_paths or hfsad_data_codes"
                        : needs_y && !d->y.at    ? "y: hfsad_data_y"
                                                 : NULL;
    return lacks ? error_set(err, HFSAD_ERROR_INPUT, "the data has no %s", lacks) : HFSAD_OK;
}

static hfsad_status push_row(const hfsad_data *d, dataset_builder *b, size_t row, hfsad_error *err)
{
    const size_t end = (size_t)index_at(d->start, d->wide, row + 1);
    int64_t last = -1;
    for (size_t i = (size_t)index_at(d->start, d->wide, row); i < end; i++) {
        const int64_t column = index_at(d->column, d->wide, i);
        if (column <= last || (uint64_t)column >= d->features)
            return error_set(err, HFSAD_ERROR_INPUT, "row %zu: column %lld %s; expected rising columns from 0 to %zu",
                             row + 1, (long long)column, column <= last ? "does not rise" : "is out of range",
                             d->features - 1);
        last = column;
        builder_push(b, (uint32_t)column, d->value[i]); /* room for all entries was reserved */
    }
    return HFSAD_OK;
}

/* client: for every name, its client; NO_NODE while it has no row. */
static hfsad_status commit_row(const hfsad_data *d, dataset_builder *b, size_t row, uint32_t *client, hfsad_error *err)
{
    const uint32_t code = d->codes[row];
    const char *path = d->names.text + d->name_at[code], *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const builder_entry entry = {
        .path = {path, slash ? (size_t)(slash - path) : 0},
        .client = {name, strlen(name)},
        .y = d->y.at ? d->y.at[(ptrdiff_t)row * d->y.stride] : 0,
        .weight = d->weight.at ? d->weight.at[(ptrdiff_t)row * d->weight.stride] : 1,
        .line = row + 1,
        .array = true,
        .begun = client[code] != NO_NODE,
    };
    if (entry.begun)
        builder_choose(b, client[code]);
    const hfsad_status status = builder_commit(b, &entry, err);
    client[code] = builder_client(b);
    return status;
}

static hfsad_status add_rows(const hfsad_data *d, dataset_builder *b, hfsad_error *err)
{
    uint32_t *client = alloc_raw(d->n_names, sizeof *client);
    if (!client)
        return error_memory(err, d->n_names * sizeof *client, "the clients");
    memset(client, 0xff, d->n_names * sizeof *client);
    hfsad_status status = HFSAD_OK;
    for (size_t row = 0; row < d->rows && !status; row++) {
        if (d->value)
            status = push_row(d, b, row, err);
        if (!status)
            status = commit_row(d, b, row, client, err);
    }
    free(client);
    return status;
}

static hfsad_status make_builder(const hfsad_data *d, dataset_builder **b, hfsad_error *err)
{
    if (!d->value) {
        const hfsad_status status = dataset_builder_create(b, d->features, err);
        return status ? status : builder_lend(*b, &d->dense, d->rows, err);
    }
    hfsad_status status = builder_create_sparse(b, err);
    if (!status)
        status = dataset_builder_reserve(*b, d->rows, err);
    if (!status)
        status = builder_reserve_entries(*b, (size_t)index_at(d->start, d->wide, d->rows) + 1, err);
    if (!status)
        builder_widen(*b, d->features);
    return status;
}

/* Copies what the rows do not contain. */
static hfsad_status dress(hfsad_data *data, dataset *d, hfsad_error *err)
{
    if (d->rows.lent) {
        atomic_fetch_add(&data->references, 1);
        d->lender = data;
    }
    if (!data->y.at) {
        free(d->rows.y);
        d->rows.y = NULL;
    }
    if (!data->feature_names)
        return HFSAD_OK;
    size_t size = 0;
    for (size_t m = 0; m < data->features; m++)
        size += strlen(data->feature_names + size) + 1;
    d->feature_names = copy_of(data->feature_names, size, 1);
    return d->feature_names ? HFSAD_OK : error_memory(err, size, "the features' names");
}

hfsad_status data_lay(hfsad_data *data, bool as_rows, bool needs_y, uint32_t *places, dataset **d, hfsad_error *err)
{
    dataset_builder *b = NULL;
    *d = NULL;
    hfsad_status status = check_whole(data, needs_y, err);
    if (!status && !(status = make_builder(data, &b, err))) {
        builder_tell_places(b, places);
        if (as_rows)
            dataset_builder_use_rows(b);
        status = add_rows(data, b, err);
    }
    if (status) {
        dataset_builder_free(b);
        return status;
    }
    if ((status = dataset_builder_finish(b, d, err)) || (status = dress(data, *d, err))) {
        dataset_free(*d);
        *d = NULL;
    }
    return status;
}
