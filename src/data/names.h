/* Names: text without a terminating 0, a store of texts, and the hash table that finds them. */
#ifndef HFSAD_DATA_NAMES_H
#define HFSAD_DATA_NAMES_H

#include "hfsad/hfsad.h"

#include <string.h>

/* Text without a terminating 0. */
typedef struct {
    const char *text;
    size_t length;
} slice;

/* Bytes of the UTF-8 character at the start of text; 0 if there is none. */
size_t utf8_length(const char *text, size_t length);

/* Text of a file for a message: at most 40 characters, unprintable ones as \xNN. */
enum { EXCERPT_CHARACTERS = 40, EXCERPT_SIZE = 4 * EXCERPT_CHARACTERS + 4 };
const char *excerpt(char out[EXCERPT_SIZE], slice s);

/* A store of texts, each with a terminating 0, addressed by offset. */
typedef struct {
    char *text;
    size_t size, capacity;
} text_pool;

/* Hash table with open addressing. A slot holds 32 bits of a hash and index + 1, or 0; the caller knows what an index
 * refers to. */
typedef struct {
    uint64_t *slots;
    size_t used;
    unsigned bits; /* there are 1 << bits slots */
} name_table;

hfsad_status texts_add(text_pool *texts, slice s, uint32_t *offset, hfsad_error *err);
hfsad_status names_add(name_table *t, uint32_t hash, uint32_t index, hfsad_error *err);
uint32_t names_hash(uint32_t parent, slice s);

/* Adds s, which contains no 0. */
static inline bool texts_same(const text_pool *texts, uint32_t offset, slice s)
{
    const char *text = texts->text + offset;
    return strncmp(text, s.text, s.length) == 0 && text[s.length] == '\0';
}

/* The slot at which a search begins. */
static inline size_t names_start(const name_table *t, uint32_t hash)
{
    return (size_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - t->bits));
}

#endif
