/*
 * Numbers and texts as a sequence of 64-bit little-endian words: the format of a checkpoint. The checksum takes every
 * word through a bijection, so that a change within one word, such as a flipped bit, is always detected.
 */
#ifndef HFSAD_BASE_WORDS_H
#define HFSAD_BASE_WORDS_H

#include "base/bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORD_BYTES = 8 };

typedef struct {
    void (*put)(void *to, const void *bytes, size_t count); /* NULL: the words are only counted */
    void *to;
    uint64_t count, sum;
    bool unsummed; /* no checksum, because computing it takes longer than writing the words */
    /* Memory for the first `room` words, in place of put; words behind them are only counted. A writer to memory has no
     * checksum. NULL: put takes the words. */
    unsigned char *memory;
    size_t room;
} word_writer;

void words_put_elsewhere(word_writer *w, uint64_t word);
static inline void words_put(word_writer *w, uint64_t word)
{
    if (w->count < w->room)
        put64(w->memory + w->count++ * WORD_BYTES, word);
    else
        words_put_elsewhere(w, word);
}
void words_put_real(word_writer *w, double v);
void words_put_reals(word_writer *w, const double *v, size_t count);
/* The length in bytes, then the bytes, padded with zeros to a whole word. NULL is written as the length UINT64_MAX. */
void words_put_text(word_writer *w, const char *text, size_t length);

/* Reads the words of a writer. Reading beyond the end gives 0 and sets `bad`, which stays set. */
typedef struct {
    const unsigned char *at;
    size_t left; /* number of words */
    bool bad;
} word_reader;

uint64_t words_get(word_reader *r);
double words_get_real(word_reader *r);
void words_get_reals(word_reader *r, double *v, size_t count);
/* The bytes, without a terminating 0; NULL if the writer was given NULL, or too few bytes are left. */
const char *words_get_text(word_reader *r, size_t *length);

/* One list of fields serves both directions: from a state to words, or from words to a state. */
typedef struct {
    word_writer *out; /* NULL: the direction is reading */
    word_reader *in;
} word_transfer;

static inline void words_pass(const word_transfer *t, uint64_t *v)
{
    if (t->out)
        words_put(t->out, *v);
    else
        *v = words_get(t->in);
}
void words_pass_32(const word_transfer *t, uint32_t *v);
void words_pass_flag(const word_transfer *t, bool *v);
/* text may be NULL. */
void words_pass_reals(const word_transfer *t, double *v, size_t count);

/* The checksum that a writer of these words computes. */
uint64_t words_sum(const unsigned char *bytes, size_t count);
/* Extends a checksum by one word. */
uint64_t words_sum_add(uint64_t sum, uint64_t word);

#endif
