/*
 * What a node accepts from its neighbours before there are keys: lists of cohorts (veil.h) and hellos (credential.h).
 * The first byte says what the rest is: a list or a hello as it is, or changes of a good one, each a place of two bytes
 * and a value. With an authority, a list or a hello that was changed is refused, and the good one is taken.
 */
#define _POSIX_C_SOURCE 200809L
#include "net/certificate.h"
#include "net/credential.h"
#include "net/veil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMBERS = 3, RUN = 5, LIST_OPEN = 0, LIST_SIGNED, HELLO, KINDS };
static const char *const names[MEMBERS] = {"e/a", "e/b", "e/c"};
static char folder[200], files[2 * MEMBERS + 1][300]; /* certificates, keys, the authority's */
static credential *self;
static unsigned char *hello;
static size_t hello_size;

static void check(int holds)
{
    if (!holds)
        abort();
}

static void put_file(const char *path, const char *text, size_t length)
{
    FILE *f = fopen(path, "w");
    check(f && fwrite(text, 1, length, f) == length && fclose(f) == 0);
}

static void remove_files(void)
{
    for (size_t i = 0; i < 2 * MEMBERS + 1; i++)
        (void)unlink(files[i]);
    (void)rmdir(folder);
}

static void make_files(void)
{
    hfsad_error err;
    certificate_authority *a;
    certificate_pair own, pair;
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.100s/hfsad-fuzz-XXXXXX", temporary ? temporary : "/tmp");
    check(mkdtemp(folder) != NULL);
    check(!certificate_make_authority(&a, 10, &own, &err));
    snprintf(files[2 * MEMBERS], sizeof files[0], "%s/ca.crt", folder);
    put_file(files[2 * MEMBERS], own.certificate, own.certificate_length);
    for (size_t i = 0; i < MEMBERS; i++) {
        check(!certificate_make_node(a, names[i], 10, &pair, &err));
        snprintf(files[i], sizeof files[i], "%s/%zu.crt", folder, i);
        snprintf(files[MEMBERS + i], sizeof files[i], "%s/%zu.key", folder, i);
        put_file(files[i], pair.certificate, pair.certificate_length);
        put_file(files[MEMBERS + i], pair.key, pair.key_length);
        certificate_pair_free(&pair);
    }
    certificate_pair_free(&own);
    certificate_authority_free(a);
    atexit(remove_files);
    for (size_t i = 0; i < 2; i++) {
        const credential_files own_files = {files[2 * MEMBERS], NULL, files[i], files[MEMBERS + i]};
        credential *c;
        check(!credential_create(&c, &own_files, "run", names[i], &err));
        if (i == 0) {
            self = c;
            continue;
        }
        const unsigned char *bytes = credential_hello(c, &hello_size);
        hello = malloc(hello_size);
        check(hello != NULL);
        memcpy(hello, bytes, hello_size);
        credential_free(c);
    }
}

/* A cohort, of which member 0 is asked; its list. */
typedef struct {
    veil *v[MEMBERS];
    veil_member *m[MEMBERS];
    unsigned char *list;
    size_t size;
} cohort;

static cohort begin(bool is_signed)
{
    cohort c = {0};
    hfsad_error err;
    const unsigned char *cards[MEMBERS];
    size_t sizes[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++) {
        const veil_place place = {names, MEMBERS, i, 2, files[i], files[MEMBERS + i]};
        check(!veil_create(&c.v[i], NULL, false, is_signed ? files[2 * MEMBERS] : NULL, RUN, &err));
        check(!veil_join(c.v[i], &c.m[i], &place, &err));
        cards[i] = veil_card(c.m[i], &sizes[i]);
    }
    c.list = veil_make_list(cards, sizes, MEMBERS, &c.size);
    check(c.list != NULL);
    return c;
}

static void end(cohort *c)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        veil_leave(c->m[i]);
        veil_free(c->v[i]);
    }
    free(c->list);
}

/* A copy of bytes with the changes; *differs: whether it is another. */
static unsigned char *changed(const unsigned char *bytes, size_t size, const uint8_t *changes, size_t count,
                              bool *differs)
{
    unsigned char *copy = malloc(size);
    check(copy != NULL);
    memcpy(copy, bytes, size);
    for (; count >= 3; changes += 3, count -= 3)
        copy[((size_t)changes[0] << 8 | changes[1]) % size] ^= changes[2];
    *differs = memcmp(copy, bytes, size) != 0;
    return copy;
}

static void try_list(bool is_signed, bool change, const uint8_t *data, size_t size)
{
    char why[VEIL_WHY] = "";
    bool differs = true;
    cohort c = begin(is_signed);
    unsigned char *other = change ? changed(c.list, c.size, data, size, &differs) : NULL;
    const bool taken = veil_take_list(c.m[0], change ? other : data, change ? c.size : size, why);
    check(taken == veil_is_ready(c.m[0]) && (taken || why[0]));
    check(!(is_signed && taken && differs));
    check(differs || taken);
    if (!taken)
        check(veil_take_list(c.m[0], c.list, c.size, why)); /* what was refused has left nothing behind */
    uint64_t words[8] = {0};
    const message m = {.kind = MESSAGE_UP, .run = RUN, .count = 8, .fixed = true};
    veil_mask(c.m[0], &m, words);
    free(other);
    end(&c);
}

static void try_hello(bool change, const uint8_t *data, size_t size)
{
    unsigned char public_key[CREDENTIAL_PUBLIC];
    const char *why = NULL;
    seal_key shared;
    bool differs = true;
    unsigned char *other = change ? changed(hello, hello_size, data, size, &differs) : NULL;
    const unsigned char *bytes = change ? other : data;
    const size_t read = credential_read(bytes, change ? hello_size : size, public_key);
    check(read <= (change ? hello_size : size));
    if (read) {
        const bool met = credential_meet(self, names[1], bytes, read, &shared, &why);
        check(met ? !differs : why != NULL);
    } else {
        check(differs);
    }
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!self)
        make_files();
    if (size == 0)
        return 0;
    const int kind = data[0] % KINDS;
    const bool change = data[0] / KINDS % 2;
    if (kind == HELLO)
        try_hello(change, data + 1, size - 1);
    else
        try_list(kind == LIST_SIGNED, change, data + 1, size - 1);
    return 0;
}
