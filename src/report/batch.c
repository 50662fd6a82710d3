/* Files replaced together; see batch.h. */
#include "report/batch.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The length of the longest part of path, cut before a slash or at its end, that exists. */
static size_t existing_part(char *path)
{
    struct stat info;
    for (size_t i = strlen(path); i > 0; i--) {
        const char kept = path[i];
        if (kept && kept != '/')
            continue;
        path[i] = 0;
        const bool there = stat(path, &info) == 0;
        path[i] = kept;
        if (there)
            return i;
    }
    return 0;
}

hfsad_status file_batch_begin(file_batch *b, const char *folder, hfsad_error *err)
{
    *b = (file_batch){.folder = strdup(*folder ? folder : ".")};
    if (!b->folder)
        return error_memory(err, strlen(folder), "a file name");
    b->there = existing_part(b->folder);
    const hfsad_status status = folder_make(b->folder, err);
    if (status) {
        free(b->folder);
        *b = (file_batch){0};
    }
    return status;
}

whole_file *file_batch_add(file_batch *b, const char *name, hfsad_error *err)
{
    assert(b->count < BATCH_MOST);
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
    /* rmdir takes only empty folders: what others put there meanwhile stays. */
    for (size_t i = strlen(b->folder); i > b->there; i--)
        if (!b->folder[i] || b->folder[i] == '/') {
            b->folder[i] = 0;
            rmdir(b->folder);
        }
    free(b->folder);
    *b = (file_batch){0};
}
