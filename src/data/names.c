/* See names.h. */
#include "data/names.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>

size_t utf8_length(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    if (length == 0 || at[0] < 0x80)
        return length > 0;
    const size_t bytes = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || bytes > length)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    const bool longer_than_need = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    const bool surrogate = at[0] == 0xed && at[1] >= 0xa0, beyond = at[0] == 0xf4 && at[1] >= 0x90;
    return longer_than_need || surrogate || beyond ? 0 : bytes;
}

/* Bytes of the UTF-8 character at text; 0 if it is not printable. */
static size_t character_length(const char *text, size_t length)
{
    const unsigned char first = (unsigned char)text[0];
    return first < 0x20 || first == 0x7f ? 0 : utf8_length(text, length);
}

const char *excerpt(char out[EXCERPT_SIZE], slice s)
{
    char *to = out;
    size_t i = 0;
    for (size_t shown = 0; i < s.length && shown < EXCERPT_CHARACTERS; shown++) {
        const size_t bytes = character_length(s.text + i, s.length - i);
        if (bytes > 0) {
            memcpy(to, s.text + i, bytes);
            to += bytes;
            i += bytes;
        } else {
            to += snprintf(to, 5, "\\x%02x", (unsigned char)s.text[i]);
            i++;
        }
    }
    memcpy(to, i < s.length ? "..." : "", i < s.length ? 4 : 1);
    return out;
}

hfsad_status texts_add(text_pool *texts, slice s, uint32_t *offset, hfsad_error *err)
{
    if (s.length >= UINT32_MAX - texts->size)
        return error_set(err, HFSAD_ERROR_INPUT, "names of more than 4 GiB in all; use shorter names");
    if (!alloc_grow((void **)&texts->text, &texts->capacity, texts->size + s.length + 1, 1))
        return error_memory(err, texts->size + s.length + 1, "names");
    *offset = (uint32_t)texts->size;
    memcpy(texts->text + texts->size, s.text, s.length);
    texts->text[texts->size + s.length] = '\0';
    texts->size += s.length + 1;
    return HFSAD_OK;
}

uint32_t names_hash(uint32_t parent, slice s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ parent;
    for (size_t i = 0; i < s.length; i++)
        h = (h ^ (unsigned char)s.text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(rng_mix(h) >> 32);
}

static void put_slot(name_table *t, uint64_t slot)
{
    const size_t mask = ((size_t)1 << t->bits) - 1;
    size_t i = names_start(t, (uint32_t)(slot >> 32));
    while (t->slots[i])
        i = (i + 1) & mask;
    t->slots[i] = slot;
}

/* Grows the table so that at most half of the slots are used. */
hfsad_status names_add(name_table *t, uint32_t hash, uint32_t index, hfsad_error *err)
{
    if (!t->slots || (t->used + 1) >> (t->bits - 1)) {
        name_table larger = {.used = t->used, .bits = t->slots ? t->bits + 1 : 6};
        const size_t slots = (size_t)1 << larger.bits;
        larger.slots = alloc_zero(slots, sizeof *larger.slots);
        if (!larger.slots)
            return error_memory(err, slots * sizeof *larger.slots, "the table of names");
        for (size_t i = 0; t->slots && i < (size_t)1 << t->bits; i++)
            if (t->slots[i])
                put_slot(&larger, t->slots[i]);
        free(t->slots);
        *t = larger;
    }
    put_slot(t, (uint64_t)hash << 32 | ((uint64_t)index + 1));
    t->used++;
    return HFSAD_OK;
}
