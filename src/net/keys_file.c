/* Files of keys; see keys_file.h. */
#include "net/keys_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MOST = 64 << 20 };

static hfsad_status failed(hfsad_error *err, const char *name)
{
    return error_set(err, HFSAD_ERROR_IO, "%.300s could not be written: %s", name, strerror(errno));
}

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

static bool write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t n = write(fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return fsync(fd) == 0;
}

/* Written under a temporary name first, so that no reader sees half a file; link does not replace an existing file. */
static bool write_one(const key_file *file)
{
    char *temporary = malloc(strlen(file->name) + 2);
    if (!temporary) {
        errno = ENOMEM;
        return false;
    }
    snprintf(temporary, strlen(file->name) + 2, "%s~", file->name);
    unlink(temporary);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file->secret ? 0600 : 0644);
    bool good = fd >= 0 && write_all(fd, file->text, file->length);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good) {
        good = file->replace ? rename(temporary, file->name) == 0 : link(temporary, file->name) == 0;
        reason = errno;
    }
    unlink(temporary);
    free(temporary);
    errno = reason;
    return good;
}

hfsad_status key_files_check(const key_files *f, hfsad_error *err)
{
    for (size_t i = 0; i < f->count; i++)
        if (!f->files[i].replace && access(f->files[i].name, F_OK) == 0)
            return error_set(err, HFSAD_ERROR_INPUT, "%.300s already exists; --force replaces it", f->files[i].name);
    return HFSAD_OK;
}

hfsad_status key_files_write(const key_files *f, hfsad_error *err)
{
    for (size_t i = 0; i < f->count; i++) {
        if (write_one(&f->files[i]))
            continue;
        const hfsad_status status = failed(err, f->files[i].name);
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
