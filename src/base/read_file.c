#include "base/read_file.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

char *path_join_parts(const char *const *parts)
{
    size_t size = 1;
    for (size_t i = 0; parts[i]; i++)
        size += strlen(parts[i]) + 1;
    char *path = malloc(size), *at = path;
    if (!path)
        return NULL;
    for (size_t i = 0; parts[i]; i++) {
        const size_t length = strlen(parts[i]);
        if (length > 0 && at > path)
            *at++ = '/';
        memcpy(at, parts[i], length);
        at += length;
    }
    *at = 0;
    return path;
}

/* Returns an errno. */
static int read_all(int file, size_t most, char **text, size_t *size)
{
    enum { BLOCK = 1 << 16 };
    size_t room = 0;
    for (;;) {
        if (!alloc_grow((void **)text, &room, *size + BLOCK, 1))
            return ENOMEM;
        const ssize_t got = read(file, *text + *size, room - *size - 1);
        if (got < 0 && errno != EINTR)
            return errno;
        *size += got > 0 ? (size_t)got : 0;
        if (*size > most)
            return EFBIG;
        if (got == 0) {
            (*text)[*size] = 0;
            return 0;
        }
    }
}

int file_read(const char *path, size_t most, char **text, size_t *size)
{
    *text = NULL;
    *size = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    const int reason = read_all(file, most, text, size);
    close(file);
    if (reason) {
        free(*text);
        *text = NULL;
    }
    return reason;
}

/* Returns an errno. */
static int map_regular(int file, void **bytes, size_t *size)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return errno;
    if (!S_ISREG(info.st_mode))
        return FILE_NOT_REGULAR;
    if (info.st_size <= 0)
        return 0;
    void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapping == MAP_FAILED)
        return errno;
    *bytes = mapping;
    *size = (size_t)info.st_size;
    return 0;
}

int file_map(const char *path, void **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return errno;
    const int reason = map_regular(file, bytes, size);
    close(file);
    return reason;
}

void file_unmap(void *bytes, size_t size)
{
    if (bytes)
        munmap(bytes, size);
}
