/*
 * clock_jump.so: LD_PRELOAD of it shifts the wall clock of a process by the seconds in the file $HFSAD_CLOCK (8 bytes),
 * which may change at any time. The monotonic clock is untouched, as if the time of day were set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *shift_file;
static int (*real_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("HFSAD_CLOCK");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof *shift_file, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    shift_file = map != MAP_FAILED ? map : NULL;
    if (fd >= 0)
        close(fd);
    *(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!real_clock)
        *(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
    const int status = real_clock(clock, t);
    if (status == 0 && shift_file && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += *shift_file;
    return status;
}

time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
