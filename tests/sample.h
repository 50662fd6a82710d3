/* Rows in arrays for tests of the public interface: a linear model with noise, clients below edges. */
#ifndef HFSAD_TESTS_SAMPLE_H
#define HFSAD_TESTS_SAMPLE_H

#include "tools.h"

enum { SAMPLE_CLIENTS = 9, SAMPLE_EACH = 12, SAMPLE_ROWS = SAMPLE_CLIENTS * SAMPLE_EACH, SAMPLE_F = 4 };

typedef struct {
    double x[SAMPLE_ROWS][SAMPLE_F], y[SAMPLE_ROWS];
    int64_t code[SAMPLE_ROWS];
    char paths[SAMPLE_CLIENTS][16];
    const char *path[SAMPLE_CLIENTS];
} sample;

/* odd: the last clients follow another law. labels: y is -1 or 1. */
TOOL void sample_draw(sample *s, uint64_t seed, bool odd, bool labels)
{
    rng r = {rng_key(seed, rng_stream("sample")), 0};
    for (size_t c = 0; c < SAMPLE_CLIENTS; c++) {
        snprintf(s->paths[c], sizeof s->paths[c], "e%zu/c%zu", c % 3, c);
        s->path[c] = s->paths[c];
    }
    for (size_t i = 0; i < SAMPLE_ROWS; i++) {
        const size_t c = (i * 5) % SAMPLE_CLIENTS; /* clients come mixed */
        s->code[i] = (int64_t)c;
        double y = 0.1 * rng_next_normal(&r);
        for (size_t m = 0; m < SAMPLE_F; m++) {
            s->x[i][m] = rng_next_normal(&r);
            y += (odd && c >= SAMPLE_CLIENTS - 2 ? -3.0 : 1.0 + (double)m) * s->x[i][m];
        }
        s->y[i] = labels ? (y > 0 ? 1 : -1) : y;
    }
}

TOOL hfsad_data *sample_data(const sample *s, hfsad_keep keep)
{
    hfsad_error err;
    hfsad_data *d;
    ok(hfsad_data_create(&d, SAMPLE_ROWS, SAMPLE_F, keep, &err), &err);
    ok(hfsad_data_dense(d, s->x[0], SAMPLE_F, 1, &err), &err);
    ok(hfsad_data_y(d, s->y, 1, &err), &err);
    ok(hfsad_data_codes(d, s->code, s->path, SAMPLE_CLIENTS, &err), &err);
    return d;
}

TOOL hfsad_spec *spec_from(const char *text)
{
    hfsad_error err;
    hfsad_spec *spec;
    ok(hfsad_spec_parse(&spec, text, strlen(text), &err), &err);
    return spec;
}

TOOL hfsad_run *run_from(const char *text, hfsad_data *d, unsigned threads)
{
    hfsad_error err;
    hfsad_run *run;
    hfsad_spec *spec = spec_from(text);
    ok(hfsad_run_create_on(&run, spec, d, threads, &err), &err);
    hfsad_spec_free(spec);
    return run;
}

/* An error message that a caller in any language can use. */
TOOL void says(hfsad_status status, const hfsad_error *err, const char *text)
{
    assert_int_equal(status, HFSAD_ERROR_INPUT);
    if (!strstr(err->message, text) || strchr(err->message, '\n') || strstr(err->message, "--"))
        fail_msg("'%s' instead of '%s'", err->message, text);
}

#endif
