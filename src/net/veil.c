/* Masks, and the secret and the list in the state folder; see veil.h. The cards are veil_card.c's. */
#define _POSIX_C_SOURCE 200809L
#include "net/veil_parts.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/fixed.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "net/node.h"
#include "net/secret_file.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_NAME "cohort.key"
#define LIST_NAME "cohort.list"
enum { LIST_MOST = 1 << 28, VEIL_BLOCK = 16 };

void veil_digest(const double *values, size_t count, uint64_t digest[4])
{
    seal_digest(values, count * sizeof *values, (unsigned char *)digest);
}

/* ---- the process ---- */

static hfsad_status take_list(veil *v, hfsad_error *err)
{
    char *path = v->folder ? path_join(v->folder, LIST_NAME) : NULL, *text = NULL;
    if (v->folder && !path)
        return error_memory(err, 0, "a file name");
    const int reason = path ? file_read(path, LIST_MOST, &text, &v->list_size) : ENOENT;
    hfsad_status status = HFSAD_OK;
    if (!reason) {
        v->list = (unsigned char *)text;
        veil_note_list(v);
    } else if (reason != ENOENT) /* without it any list would be accepted */
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be read: %s; restore the file", path, strerror(reason));
    free(path);
    return status;
}

hfsad_status veil_create(veil **out, const char *folder, bool begun, const char *ca, uint64_t run, hfsad_error *err)
{
    veil *v = alloc_zero(1, sizeof *v);
    *out = NULL;
    if (!v)
        return error_memory(err, sizeof *v, "the keys of a cohort");
    v->run = run;
    v->folder = folder ? strdup(folder) : NULL;
    hfsad_status status = folder && !v->folder ? error_memory(err, 0, "a file name") : HFSAD_OK;
    if (!status && ca)
        status = veil_take_authority(v, ca, err);
    if (!status)
        status = take_list(v, err);
    if (!status)
        status = veil_read_gone(v, err);
    if (!status) /* with another key, another message would be sent under the number of an earlier one */
        status = secret_take(v->folder, SECRET_NAME, begun || v->list, v->secret, err);
    if (status)
        veil_free(v);
    else
        *out = v;
    return status;
}

void veil_free(veil *v)
{
    if (!v)
        return;
    X509_STORE_free(v->authority);
    X509_free(v->ca);
    free(v->gone);
    OPENSSL_cleanse(v->secret, sizeof v->secret);
    OPENSSL_cleanse(v->mask, sizeof v->mask);
    free(v->folder);
    free(v->list);
    free(v->good);
    free(v);
}

bool veil_signs(const veil *v)
{
    return v->authority != NULL;
}

bool veil_keep_list(veil *v, const unsigned char *list, size_t size, char why[VEIL_WHY])
{
    hfsad_error err;
    if (v->list)
        return true;
    unsigned char *copy = alloc_raw(size, 1);
    if (!copy ||
        (v->folder && (veil_begin_gone(v, &err) || whole_file_write(v->folder, LIST_NAME, list, size, &err)))) {
        snprintf(why, VEIL_WHY, "the list cannot be kept: %.200s", copy ? err.message : "no memory");
        free(copy);
        return false;
    }
    memcpy(copy, list, size);
    v->list = copy;
    v->list_size = size;
    veil_note_list(v);
    return true;
}

/* ---- masks ---- */

static void put_head(unsigned char head[VEIL_HEAD], const veil_member *of, const message *m)
{
    const uint64_t phase = m->phase & ((UINT64_C(1) << NODE_LIFE_BIT) - 1); /* the life of a link is its own */
    const uint64_t numbers[] = {of->v->run, phase, m->round, m->kind, m->count, of->gone_print};
    memcpy(head, "hfsad mask 2", 12);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put64(head + 12 + 8 * i, numbers[i]);
    memcpy(head + 12 + sizeof numbers, m->digest, sizeof m->digest);
}

static uint64_t le64(uint64_t word)
{
    return get64((const unsigned char *)&word);
}

/* The words of a chunk, added or subtracted; width: words of a number. */
static void apply(uint64_t *words, uint64_t *mask, size_t count, size_t width, bool below)
{
    for (size_t i = 0; i < count; i++)
        mask[i] = le64(mask[i]);
    if (width == 1) {
        for (size_t i = 0; i < count; i++)
            words[i] = below ? words[i] - mask[i] : words[i] + mask[i];
        return;
    }
    if (below)
        fixed_negate(mask, count / FIXED_WORDS);
    fixed_add(words, mask, count / FIXED_WORDS);
}

static bool encrypt(const veil_pair *p, uint64_t *blocks, size_t count)
{
    int made;
    unsigned char *bytes = (unsigned char *)blocks;
    return EVP_EncryptUpdate(p->cipher, bytes, &made, bytes, (int)(count * VEIL_BLOCK)) == 1;
}

/*
 * The first counter of a message: AES of one half of the head's digest plus AES of the other, which differ in a bit, so
 * that only the pair knows which counters a message has, and no parent can look for questions whose counters meet.
 */
static bool first_counter(const veil_pair *p, const unsigned char digest[SEAL_DIGEST], uint64_t counter[2])
{
    uint64_t halves[4];
    memcpy(halves, digest, sizeof halves);
    halves[0] &= ~le64(1);
    halves[2] |= le64(1);
    const bool good = encrypt(p, halves, 2);
    counter[0] = le64(halves[0] ^ halves[2]);
    counter[1] = halves[1] ^ halves[3];
    OPENSSL_cleanse(halves, sizeof halves);
    return good;
}

/* The next words of the stream, whole blocks. */
static bool draw_mask(const veil_pair *p, uint64_t counter[2], uint64_t *mask, size_t blocks)
{
    for (size_t i = 0; i < blocks; i++) {
        mask[2 * i] = le64(counter[0] + i);
        mask[2 * i + 1] = counter[1];
    }
    counter[0] += blocks;
    return encrypt(p, mask, blocks);
}

bool veil_mask(veil_member *m, const message *letter, uint64_t *words)
{
    const size_t width = letter->kind == MESSAGE_ANSWER ? FIXED_WORDS : 1;
    unsigned char head[VEIL_HEAD], digest[SEAL_DIGEST];
    uint64_t counter[2] = {0}, *mask = m->v->mask;
    bool good = true;
    put_head(head, m, letter);
    seal_digest(head, sizeof head, digest);
    for (size_t j = 0; j < m->count && good; j++) {
        const veil_pair *p = &m->pairs[j];
        if (!p->cipher)
            continue;
        good = first_counter(p, digest, counter);
        for (size_t done = 0; done < letter->count && good; done += VEIL_CHUNK) {
            const size_t left = letter->count - done, count = left < VEIL_CHUNK ? left : VEIL_CHUNK;
            good = draw_mask(p, counter, mask, (count + 1) / 2);
            apply(words + done, mask, count, width, j < m->own);
        }
    }
    OPENSSL_cleanse(counter, sizeof counter);
    OPENSSL_cleanse(mask, (letter->count < VEIL_CHUNK ? letter->count + 1 : VEIL_CHUNK) * sizeof *mask);
    return good;
}

bool veil_is_ready(const veil_member *m)
{
    return m->ready;
}
