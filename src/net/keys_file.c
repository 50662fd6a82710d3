/* Files of keys; see keys_file.h. */
#include "net/keys_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MOST = 64 << 20 };

hfsad_status key_files_add(key_files *f, const char *dir, const char *name, char *text, size_t length, bool secret,
                           bool replace, hfsad_error *err)
{
    void *grown = f->files;
    const bool room = text && alloc_grow(&grown, &f->capacity, f->count + 1, sizeof *f->files);
    f->files = grown;
    char *path = room ? path_join(dir, name) : NULL;
    if (!path) {
        free(text);
        return error_memory(err, length, name);
    }
    f->files[f->count++] = (key_file){path, text, length, secret, replace};
    return HFSAD_OK;
}

void key_files_free(key_files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        explicit_bzero(f->files[i].text, f->files[i].length);
        free(f->files[i].text);
        free(f->files[i].name);
    }
    free(f->files);
    *f = (key_files){0};
}

static hfsad_status write_one(const key_file *file, hfsad_error *err)
{
    whole_file f;
    hfsad_status status = whole_file_open(&f, file->name, file->secret ? 0600 : 0644, err);
    if (status)
        return status;
    whole_file_put(&f, file->text, file->length);
    status = whole_file_close(&f, err);
    if (status)
        return status;
    return file->replace ? whole_file_replace(&f, err) : whole_file_place(&f, err);
}

hfsad_status key_files_check(const key_files *f, hfsad_error *err)
{
    for (size_t i = 0; i < f->count; i++)
        if (!f->files[i].replace && access(f->files[i].name, F_OK) == 0)
            return error_set(err, HFSAD_ERROR_INPUT, "%.300s already exists and is not to be replaced",
                             f->files[i].name);
    return HFSAD_OK;
}

hfsad_status key_files_write(const key_files *f, hfsad_error *err)
{
    for (size_t i = 0; i < f->count; i++) {
        const hfsad_status status = write_one(&f->files[i], err);
        if (!status)
            continue;
        while (i-- > 0)
            if (!f->files[i].replace)
                unlink(f->files[i].name);
        return status;
    }
    return HFSAD_OK;
}

hfsad_status key_folder_make(const char *dir, const char *name, hfsad_error *err)
{
    char *path = path_join(dir, *name ? name : "."); /* each part before a slash is a folder */
    hfsad_status status = path ? HFSAD_OK : error_memory(err, strlen(dir), "a file name");
    for (char *at = path ? path + 1 : NULL; !status && at && *at; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            status =
                error_set(err, HFSAD_ERROR_INPUT, "the folder %.300s cannot be created: %s", path, strerror(errno));
        *at = '/';
    }
    free(path);
    return status;
}

char *key_file_read(const char *dir, const char *name, hfsad_error *err)
{
    char *path = path_join(dir, name), *text = NULL;
    size_t size;
    const int reason = path ? file_read(path, TEXT_MOST, &text, &size) : ENOMEM;
    if (reason)
        error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be read: %s; hfsad keys init creates it", path ? path : name,
                  strerror(reason));
    free(path);
    return text;
}
