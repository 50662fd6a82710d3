/* What the benchmarks share: a clock, the end of a program whose library call failed, settings of a spec. */
#ifndef BENCH_TOOLS_H
#define BENCH_TOOLS_H

#include <hfsad/hfsad.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double seconds_on(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double now(void)
{
    return seconds_on(CLOCK_MONOTONIC);
}

static inline _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "benchmark failed: %s%s%s\n", what, *why ? ": " : "", why);
    exit(1);
}

static inline void must(hfsad_status status, const hfsad_error *err)
{
    if (status)
        die(err->message, "");
}

static inline void spec_put(hfsad_spec *spec, const char *key, const char *value)
{
    hfsad_error err;
    must(hfsad_spec_set(spec, key, value, &err), &err);
}

static inline void spec_put_number(hfsad_spec *spec, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    spec_put(spec, key, text);
}

#endif
