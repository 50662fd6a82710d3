/* The reader of CSV data, as a whole federation and as a client's own file, and the reader of numbers, on arbitrary
 * bytes: a consistent data set, or one line. */
#include "data/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void check_refusal(hfsad_status status, const hfsad_error *err)
{
    check(status == HFSAD_ERROR_INPUT && err->status == status);
    check(strncmp(err->message, "fuzz.csv:", 9) == 0 && strchr(err->message, '\n') == NULL);
}

static void check_blocks(const dataset *d)
{
    double *row = malloc(d->M * sizeof *row);
    check(row != NULL && d->n_rows == d->n_leaves);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        check(isfinite(d->y[leaf]) && isfinite(d->n[leaf]));
        dataset_gather(d, d->x, leaf, row);
        for (size_t m = 0; m < d->M; m++)
            check(isfinite(row[m]));
    }
    free(row);
}

static void check_table(const dataset *d)
{
    check(!d->x && !d->y && !d->n && d->lanes == 1 && d->rows.F == d->M);
    size_t count = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        check(rows.count > 0);
        count += rows.count;
        for (size_t i = 0; i < rows.count; i++)
            check(isfinite(rows.y[i]) && (!rows.weight || (rows.weight[i] > 0 && isfinite(rows.weight[i]))));
        for (size_t i = 0; i < rows.count * rows.F; i++)
            check(isfinite(rows.x[i]));
    }
    check(count == d->n_rows);
}

static void check_dataset(const dataset *d)
{
    check(d->M > 0 && d->n_leaves > 0 && d->n_inner > 0 && d->depth > 0 && d->depth <= HFSAD_TIERS_MAX);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        char name[64];
        check(dataset_leaf_name(d, leaf, name, sizeof name) > 0);
    }
    if (d->rows.first)
        check_table(d);
    else
        check_blocks(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hfsad_error err;
    dataset *d;
    const char *bytes = (const char *)data;
    for (int as_rows = 0; as_rows < 2; as_rows++) {
        const hfsad_status status = csv_parse(bytes, size, "fuzz.csv", NULL, as_rows, &d, &err);
        if (status)
            check_refusal(status, &err);
        else
            check_dataset(d);
        dataset_free(d);
    }
    static const table_settings tables[] = {
        {.categorical = "x1", .missing = MISSING_MEAN},
        {.clients = 3, .edges = 2, .features = "x*, w?"},
        {.y = "x1", .client = "y", .edge = "x2", .weight = "edge", .categorical = "x=a|b, client"},
        {.by = "x1", .edges = 2, .missing = MISSING_MEAN},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const hfsad_status status = csv_parse(bytes, size, "fuzz.csv", &tables[i], true, &d, &err);
        if (status)
            check_refusal(status, &err);
        else
            check_dataset(d);
        dataset_free(d);
    }
    file_bytes from = {.bytes = size ? bytes : "", .size = size};
    intake in = {.path = {"edge", 4}, .client = {"client", 6}, .err = &err};
    hfsad_status status = intake_finish(&in, csv_take(&in, &from, "fuzz.csv"), false, &d);
    if (status)
        check_refusal(status, &err);
    else
        check_dataset(d);
    dataset_free(d);
    double values[3];
    status = vector_parse(values, 3, bytes, size, "fuzz.csv", "truth", &err);
    if (status)
        check_refusal(status, &err);
    else
        check(isfinite(values[0]) && isfinite(values[1]) && isfinite(values[2]));
    return 0;
}
