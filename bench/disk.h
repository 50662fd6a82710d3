/* A file that takes a write and its sync again and again, in room that was written before: what a disk can do. */
#ifndef BENCH_DISK_H
#define BENCH_DISK_H

#include "tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { DISK_SECTOR = 512, DISK_ROOM = 1 << 20 };

typedef struct {
    int fd;
    bool direct; /* one call past the page cache; else a write and a sync */
    unsigned char *bytes;
    size_t size, at, room;
} disk;

/* In the working folder, without a name. size 0: there is nothing to sync. */
static inline void disk_open(disk *d, size_t size)
{
    char name[] = "pingpong-XXXXXX";
    *d = (disk){.size = (size + DISK_SECTOR - 1) / DISK_SECTOR * DISK_SECTOR};
    if (!size)
        return;
    d->room = DISK_ROOM > d->size ? DISK_ROOM / d->size * d->size : d->size;
    void *zeros;
    const int fd = mkstemp(name), direct = open(name, O_WRONLY | O_DIRECT | O_DSYNC);
    if (fd < 0 || unlink(name) || posix_memalign(&zeros, DISK_SECTOR, d->room))
        die("a file to sync", strerror(errno));
    memset(zeros, 0, d->room);
    if (pwrite(fd, zeros, d->room, 0) != (ssize_t)d->room || fsync(fd))
        die("a file to sync", strerror(errno));
    d->bytes = zeros;
    memset(zeros, 1, d->size);
    d->direct = direct >= 0 && pwrite(direct, zeros, d->size, 0) == (ssize_t)d->size;
    d->fd = d->direct ? direct : fd;
}

static inline void disk_sync(disk *d)
{
    if (!d->size)
        return;
    if (pwrite(d->fd, d->bytes, d->size, (off_t)d->at) != (ssize_t)d->size || (!d->direct && fdatasync(d->fd)))
        die("sync", strerror(errno));
    d->at = d->at + d->size == d->room ? 0 : d->at + d->size;
}

#endif
