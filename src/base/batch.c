/* Files replaced together; see batch.h. */
#include "base/batch.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

hfsad_status file_batch_begin(file_batch *b, const char *folder, hfsad_error *err)
{
    *b = (file_batch){.folder = strdup(*folder ? folder : ".")};
    if (!b->folder)
        return error_memory(err, strlen(folder), "a file name");
    const hfsad_status status = folder_make_new(b->folder, &b->made, err);
    if (status) {
        free(b->folder);
        *b = (file_batch){0};
    }
    return status;
}

whole_file *file_batch_add(file_batch *b, const char *name, hfsad_error *err)
{
    assert(b->count < BATCH_MOST);
    folder_sweep(b->folder, &name, 1);
    if (whole_file_begin(&b->files[b->count], b->folder, name, err))
        return NULL;
    return &b->files[b->count++];
}

hfsad_status file_batch_commit(file_batch *b, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < b->count && !status; i++)
        if (b->files[i].stream)
            status = whole_file_close(&b->files[i], err);
    for (size_t i = 0; i < b->count && !status; i++)
        status = whole_file_replace(&b->files[i], err);
    if (!status)
        status = folder_sync(b->folder, err);
    if (status)
        return status;
    free(b->folder);
    *b = (file_batch){0};
    return HFSAD_OK;
}

void file_batch_drop(file_batch *b)
{
    if (!b->folder)
        return;
    for (size_t i = 0; i < b->count; i++)
        whole_file_drop(&b->files[i]);
    folder_unmake(b->folder, b->made);
    free(b->folder);
    *b = (file_batch){0};
}
