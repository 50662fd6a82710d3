#include "net/kept_groups.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, HEAD = 2 * WORD, SUM = 4 };

void kept_groups_free(kept_groups *k)
{
    free(k->numbers);
    *k = (kept_groups){0};
}

/* false: no memory. */
static bool take(kept_groups *k, const double *numbers, size_t count)
{
    double *copy = alloc_zero(count, sizeof *copy);
    if (!copy)
        return false;
    memcpy(copy, numbers, count * sizeof *copy);
    kept_groups_free(k);
    *k = (kept_groups){count, copy};
    return true;
}

hfsad_status kept_groups_put(kept_groups *k, const char *folder, uint64_t run, const double *numbers, size_t count,
                             hfsad_error *err)
{
    if (k->count == count && memcmp(k->numbers, numbers, count * sizeof *numbers) == 0)
        return HFSAD_OK;
    const size_t size = HEAD + count * WORD;
    unsigned char *bytes = alloc_raw(size + SUM, 1);
    if (!bytes)
        return error_memory(err, size, "the groups");
    put64(bytes, run);
    put64(bytes + WORD, count);
    for (size_t i = 0; i < count; i++)
        put64(bytes + HEAD + i * WORD, bits_of(numbers[i]));
    put32(bytes + size, crc32c(0, bytes, size));
    hfsad_status status = folder ? whole_file_write(folder, KEPT_GROUPS_NAME, bytes, size + SUM, err) : HFSAD_OK;
    free(bytes);
    if (!status && !take(k, numbers, count))
        status = error_memory(err, size, "the groups");
    return status;
}

static void decode(const unsigned char *bytes, double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = double_of(get64(bytes + HEAD + i * WORD));
}

hfsad_status kept_groups_get(kept_groups *k, const char *folder, uint64_t run, size_t most, hfsad_error *err)
{
    char *path = folder && !k->count ? path_join(folder, KEPT_GROUPS_NAME) : NULL, *text = NULL;
    size_t size = 0;
    if (!folder || k->count)
        return HFSAD_OK;
    if (!path)
        return error_memory(err, 0, "a file name");
    hfsad_status status = HFSAD_OK;
    const int reason = file_read(path, HEAD + most * WORD + SUM, &text, &size);
    unsigned char *bytes = (unsigned char *)text;
    const size_t count = size > HEAD + SUM ? (size - HEAD - SUM) / WORD : 0;
    if (reason != ENOENT && (reason || !count || get64(bytes + WORD) != count || size != HEAD + count * WORD + SUM ||
                             get32(bytes + size - SUM) != crc32c(0, bytes, size - SUM))) {
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.300s cannot be read: it has the models of the groups; restore the file, or start a new "
                           "run with new state folders for all nodes",
                           path);
    } else if (!reason && get64(bytes) == run) {
        k->numbers = alloc_zero(count, sizeof *k->numbers);
        k->count = k->numbers ? count : 0;
        decode(bytes, k->numbers, k->count);
        if (!k->count)
            status = error_memory(err, size, "the groups");
    }
    free(text);
    free(path);
    return status;
}
