/* The readers of NumPy's arrays and archives on any bytes: a client's rows, or one line. */
#include "data/npy.h"
#include "data/npz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void check_rows(const dataset *d)
{
    check(d->n_leaves == 1 && d->M > 0 && d->n_rows > 0 && d->rows.F == d->M);
    const client_rows rows = dataset_rows(d, 0);
    check(rows.count == d->n_rows && !rows.start);
    for (size_t i = 0; i < rows.count; i++)
        check(isfinite(rows.y[i]) && (!rows.weight || (rows.weight[i] > 0 && isfinite(rows.weight[i]))));
    for (size_t i = 0; i < rows.count * rows.F; i++)
        check(isfinite(rows.x[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hfsad_error err = {0};
    dataset *d;
    file_bytes from = {.bytes = (const char *)data, .size = size};
    intake in = {.path = {"edge", 4}, .client = {"client", 6}, .err = &err};
    const bool archive = size >= 2 && memcmp(data, "PK", 2) == 0;
    hfsad_status status = archive ? npz_take(&in, &from, "fuzz.npy") : npy_take(&in, &from, "fuzz.npy");
    status = intake_finish(&in, status, true, &d);
    if (status) {
        check(status == HFSAD_ERROR_INPUT && err.status == status && !d);
        check(strncmp(err.message, "fuzz.npy: ", 10) == 0 && strchr(err.message, '\n') == NULL);
    } else {
        check_rows(d);
    }
    dataset_free(d);
    return 0;
}
