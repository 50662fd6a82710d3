/* Rows as a folder tree; see generate.h. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "base/error.h"
#include "base/read_file.h"
#include "generate.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hfsad_status failed(const char *path, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_IO, "%.300s could not be written: %s", path, strerror(errno));
}

hfsad_status row_tree_begin(row_tree *t, const char *out, const char *name, hfsad_error *err)
{
    const size_t size = strlen(out) + strlen(name) + 32;
    *t = (row_tree){.temporary = malloc(size), .path = path_join(out, name)};
    if (!t->temporary || !t->path)
        return error_memory(err, size, "a file name");
    snprintf(t->temporary, size, "%s/.%s.%ld", out, name, (long)getpid());
    return folder_make(t->temporary, err);
}

/* Closes the open file and renames it; does nothing if none is open. */
static hfsad_status end_file(row_tree *t, hfsad_error *err)
{
    if (!t->file.stream)
        return HFSAD_OK;
    const hfsad_status status = whole_file_close(&t->file, err);
    return status ? status : whole_file_replace(&t->file, err);
}

whole_file *row_tree_file(row_tree *t, const generated_row *row, bool *fresh, hfsad_error *err)
{
    *fresh = strcmp(t->edge, row->edge) != 0 || strcmp(t->client, row->client) != 0;
    if (!*fresh)
        return &t->file;
    if (end_file(t, err))
        return NULL;
    snprintf(t->edge, sizeof t->edge, "%s", row->edge);
    snprintf(t->client, sizeof t->client, "%s", row->client);
    char name[sizeof t->client + 4], *folder = path_join(t->temporary, t->edge);
    if (!folder) {
        error_memory(err, sizeof t->edge, "a file name");
        return NULL;
    }
    snprintf(name, sizeof name, "%s.csv", t->client);
    hfsad_status status = folder_make(folder, err);
    if (!status)
        status = whole_file_begin(&t->file, folder, name, err);
    free(folder);
    return status ? NULL : &t->file;
}

hfsad_status row_tree_place(row_tree *t, hfsad_error *err)
{
    const hfsad_status status = end_file(t, err);
    if (status)
        return status;
    if (rename(t->temporary, t->path) != 0)
        return failed(t->path, err);
    t->placed = true;
    return HFSAD_OK;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

void row_tree_end(row_tree *t, bool keep)
{
    enum { OPEN_MOST = 16 };
    const char *path = t->placed ? t->path : t->temporary;
    whole_file_drop(&t->file);
    if (path && !keep)
        nftw(path, remove_one, OPEN_MOST, FTW_DEPTH | FTW_PHYS);
    free(t->temporary);
    free(t->path);
    *t = (row_tree){0};
}
