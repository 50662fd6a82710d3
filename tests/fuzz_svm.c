/* The reader of LIBSVM text on any bytes, as a client's own file and as a whole federation: sparse rows, or one line.
 */
#include "data/svm.h"

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
    check(d->n_leaves > 0 && d->M > 0 && d->rows.start && d->rows.start[0] == 0);
    size_t count = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        char name[64];
        check(dataset_leaf_name(d, leaf, name, sizeof name) > 0 && rows.count > 0);
        for (size_t i = 0; i < rows.count; i++) {
            check(isfinite(rows.y[i]) && rows.start[i] <= rows.start[i + 1]);
            for (size_t k = rows.start[i]; k < rows.start[i + 1]; k++)
                check(isfinite(rows.x[k]) && rows.x[k] != 0 && rows.column[k] < d->M &&
                      (k == rows.start[i] || rows.column[k] > rows.column[k - 1]));
        }
        count += rows.count;
    }
    check(count == d->n_rows);
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
        const hfsad_status status = intake_finish(&in, svm_take(&in, &from, "fuzz.svm"), false, &d);
        if (status) {
            check(status == HFSAD_ERROR_INPUT && err.status == status && !d);
            check(strncmp(err.message, "fuzz.svm:", 9) == 0 && strchr(err.message, '\n') == NULL);
        } else {
            check_rows(d);
        }
        dataset_free(d);
    }
    return 0;
}
