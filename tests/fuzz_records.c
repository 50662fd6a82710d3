/* The reader of tables in JSON on any bytes, as a client's own file and as a whole federation: finite rows, or one
 * line. */
#include "data/format.h"

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
    check(d->n_leaves > 0 && d->M > 0 && d->rows.first);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        check(rows.count > 0);
        for (size_t i = 0; i < rows.count; i++)
            check(isfinite(rows.y[i]));
        for (size_t i = 0; i < rows.count * rows.F; i++)
            check(isfinite(rows.x[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int own = 0; own < 2; own++) {
        hfsad_error err = {0};
        dataset *d;
        file_bytes from = {.bytes = size ? (const char *)data : "", .size = size};
        intake in = {.err = &err};
        if (own)
            in.client = (slice){"client", 6};
        const hfsad_status status = intake_finish(&in, records_format.take(&in, &from, "fuzz.json"), true, &d);
        if (status) {
            check(status == HFSAD_ERROR_INPUT && err.status == status && !d);
            check(strncmp(err.message, "fuzz.json:", 10) == 0 && strchr(err.message, '\n') == NULL);
        } else {
            check_rows(d);
        }
        dataset_free(d);
    }
    return 0;
}
