#include "base/words.h"

#include "base/bits.h"
#include "base/rng.h"

#include <string.h>

uint64_t words_sum_add(uint64_t sum, uint64_t word)
{
    return rng_mix((sum ^ word) + UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t words_sum(const unsigned char *bytes, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = words_sum_add(sum, get64(bytes + i * WORD_BYTES));
    return sum;
}

void words_put_elsewhere(word_writer *w, uint64_t word)
{
    unsigned char bytes[WORD_BYTES];
    w->count++;
    if (!w->put)
        return;
    if (!w->unsummed)
        w->sum = words_sum_add(w->sum, word);
    put64(bytes, word);
    w->put(w->to, bytes, sizeof bytes);
}

void words_put_real(word_writer *w, double v)
{
    words_put(w, bits_of(v));
}

void words_put_reals(word_writer *w, const double *v, size_t count)
{
    const uint64_t before = w->count;
    w->count += count;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (count > 0 && w->count <= w->room)
        memcpy(w->memory + before * WORD_BYTES, v, count * WORD_BYTES);
#else
    for (size_t i = 0; i < count && w->count <= w->room; i++)
        put64(w->memory + (before + i) * WORD_BYTES, bits_of(v[i]));
#endif
    for (size_t i = 0; w->put && !w->unsummed && i < count; i++)
        w->sum = words_sum_add(w->sum, bits_of(v[i]));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (w->put && count > 0)
        w->put(w->to, v, count * WORD_BYTES);
#else
    for (size_t i = 0; w->put && i < count; i++) {
        unsigned char bytes[WORD_BYTES];
        put64(bytes, bits_of(v[i]));
        w->put(w->to, bytes, sizeof bytes);
    }
#endif
}

void words_put_text(word_writer *w, const char *text, size_t length)
{
    words_put(w, text ? length : UINT64_MAX);
    for (size_t first = 0; text && first < length; first += WORD_BYTES) {
        unsigned char bytes[WORD_BYTES] = {0};
        memcpy(bytes, text + first, length - first < WORD_BYTES ? length - first : WORD_BYTES);
        words_put(w, get64(bytes));
    }
}

uint64_t words_get(word_reader *r)
{
    if (!r->left) {
        r->bad = true;
        return 0;
    }
    const uint64_t word = get64(r->at);
    r->at += WORD_BYTES;
    r->left--;
    return word;
}

double words_get_real(word_reader *r)
{
    return double_of(words_get(r));
}

void words_get_reals(word_reader *r, double *v, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (count > 0 && count <= r->left) {
        memcpy(v, r->at, count * WORD_BYTES);
        r->at += count * WORD_BYTES;
        r->left -= count;
        return;
    }
#endif
    for (size_t i = 0; i < count; i++)
        v[i] = words_get_real(r);
}

/* A reader for the next `count` words. */
static word_reader words_part(word_reader *r, size_t count)
{
    if (count > r->left) {
        r->bad = true;
        return (word_reader){r->at, 0, true};
    }
    const word_reader part = {r->at, count, false};
    r->at += count * WORD_BYTES;
    r->left -= count;
    return part;
}

const char *words_get_text(word_reader *r, size_t *length)
{
    const uint64_t bytes = words_get(r);
    *length = 0;
    if (bytes == UINT64_MAX || r->bad)
        return NULL;
    const uint64_t words = bytes / WORD_BYTES + (bytes % WORD_BYTES > 0);
    if (words > r->left) {
        r->bad = true;
        return NULL;
    }
    const word_reader part = words_part(r, (size_t)words);
    *length = (size_t)bytes;
    return (const char *)part.at;
}

void words_pass_32(const word_transfer *t, uint32_t *v)
{
    uint64_t wide = *v;
    words_pass(t, &wide);
    *v = (uint32_t)wide;
}

void words_pass_flag(const word_transfer *t, bool *v)
{
    uint64_t wide = *v;
    words_pass(t, &wide);
    *v = wide != 0;
}

void words_pass_reals(const word_transfer *t, double *v, size_t count)
{
    if (v && t->out)
        words_put_reals(t->out, v, count);
    else if (v)
        words_get_reals(t->in, v, count);
}
