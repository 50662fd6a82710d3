#include "base/clock.h"

#include <time.h>

static struct timespec read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t;
}

static double seconds_of(struct timespec t)
{
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t ms_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

double clock_seconds(void)
{
    return seconds_of(read_clock(CLOCK_MONOTONIC));
}

uint64_t clock_ms(void)
{
    return ms_of(read_clock(CLOCK_MONOTONIC));
}

double clock_work_seconds(void)
{
    return seconds_of(read_clock(CLOCK_THREAD_CPUTIME_ID));
}

uint64_t clock_wall_ms(void)
{
    return ms_of(read_clock(CLOCK_REALTIME));
}
