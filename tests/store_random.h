/* A store that is filled at random, and a hash of its contents. For one source file per program. */
#ifndef HFSAD_TESTS_STORE_RANDOM_H
#define HFSAD_TESTS_STORE_RANDOM_H

#include "tools.h"

#include "net/store.h"

enum { RUN = 7, RANDOM_NODES = 5 };

static const char *const random_names[RANDOM_NODES] = {"a", "edge1", "edge1/b", "c", "a longer name"};

/* Bytes of every kind: few, many, zeros, and zeros with one bit, which are like sectors that were never written. */
TOOL size_t random_bytes(rng *r, unsigned char bytes[4000])
{
    const size_t size = below(r, 3) ? below(r, 100) : below(r, 4000), kind = below(r, 4);
    memset(bytes, 0, size);
    for (size_t i = 0; i < size && kind > 1; i++)
        bytes[i] = (unsigned char)below(r, 256);
    if (size && kind == 1)
        bytes[below(r, size)] = (unsigned char)(1 << below(r, 8));
    return size;
}

TOOL void random_put(store *s, rng *r)
{
    static unsigned char bytes[4000];
    hfsad_error err;
    uint32_t frame;
    const size_t size = random_bytes(r, bytes);
    const hfsad_figures row = {.iteration = below(r, 30), .objective = (double)below(r, 1000)};
    switch (below(r, 4)) {
    case 0:
        ok(store_put_state(s, random_names[below(r, RANDOM_NODES)], bytes, size, &err), &err);
        return;
    case 1:
        store_put_row(s, &row);
        return;
    case 2:
        store_put_line(s, below(r, 2) ? "edge1 step 7" : "");
        return;
    default:
        store_put_frame(s, bytes, size, &frame);
        for (size_t n = 0; n < RANDOM_NODES; n++)
            if (below(r, 2))
                ok(store_put_heard(s, random_names[n], frame, &err), &err);
    }
}

/* Some puts and their commit, whole if that is due, and sometimes if it is not. */
TOOL void random_commit(store *s, rng *r)
{
    hfsad_error err;
    unsigned char bytes[4000];
    for (size_t n = 1 + below(r, 3); n > 0; n--)
        random_put(s, r);
    if (store_is_full(s) || below(r, 15) == 0) {
        ok(store_begin_whole(s, &err), &err);
        for (size_t n = 0; n < RANDOM_NODES; n++) {
            const size_t size = random_bytes(r, bytes);
            ok(store_put_state(s, random_names[n], bytes, size, &err), &err);
        }
    }
    ok(store_commit(s, &err), &err);
}

TOOL uint64_t hash(uint64_t h, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    h = rng_mix(h + size + 1);
    for (size_t i = 0; i < size; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return rng_mix(h);
}

TOOL void hash_row(void *context, const hfsad_figures *f)
{
    *(uint64_t *)context = hash(*(uint64_t *)context, f, sizeof *f);
}

TOOL void hash_line(void *context, const char *text)
{
    *(uint64_t *)context = hash(*(uint64_t *)context, text, strlen(text));
}

TOOL hfsad_status hash_heard(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                             hfsad_error *err)
{
    (void)err;
    for (size_t i = 0; i < count; i++) {
        hash_line(context, names[i]);
        *(uint64_t *)context = hash(*(uint64_t *)context, frame, size);
    }
    return HFSAD_OK;
}

/* All that the store gives back; 0: it refuses. */
TOOL uint64_t content_of(store *s)
{
    hfsad_error err;
    uint64_t h = 1;
    hfsad_status status = HFSAD_OK;
    for (size_t n = 0; n < RANDOM_NODES && !status; n++) {
        void *bytes;
        size_t size;
        status = store_get_state(s, random_names[n], &bytes, &size, &err);
        h = hash(h + n, bytes, bytes ? size : 0) + (bytes != NULL);
        free(bytes);
    }
    if (!status)
        status = store_get_heard(s, hash_heard, &h, &err);
    if (!status)
        status = store_get_rows(s, hash_row, &h, &err);
    if (!status)
        status = store_get_record(s, hash_line, &h, &err);
    return status ? 0 : h | 1;
}

#endif
