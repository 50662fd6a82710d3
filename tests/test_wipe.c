/*
 * Memory with keys is wiped. Every page that this process can write is searched, freed blocks, stack and buffers of
 * libraries included, for the bytes of secrets: they are there while they are in use, and nowhere when their owner has
 * been freed. What is looked for is kept inverted, so that the search does not find itself.
 */
#define _POSIX_C_SOURCE 200809L
#include "tools.h"

#include "net/vault.h"
#include "net/veil_parts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY = VEIL_KEY, KEYS_MOST = 64, CHUNK = 1 << 16, RUN = 77, MEMBERS = 4 };
static const char *const names[MEMBERS] = {"e/a", "e/b", "e/c", "e/d"};

/* ---- the search ---- */

static unsigned char inverted[KEYS_MOST][KEY]; /* all bits of a key */
static size_t keys;
static unsigned char chunk[CHUNK + KEY];

static void look_for(const unsigned char *key)
{
    assert_true(keys < KEYS_MOST);
    for (size_t i = 0; i < KEY; i++)
        inverted[keys][i] = (unsigned char)~key[i];
    keys++;
}

static size_t count_in(const unsigned char *bytes, size_t size, bool *seen)
{
    size_t found = 0;
    for (size_t at = 0; at + KEY <= size; at++)
        for (size_t k = 0; k < keys; k++) {
            size_t i = 0;
            while (i < KEY && bytes[at + i] == (unsigned char)~inverted[k][i])
                i++;
            found += i == KEY;
            seen[k] = seen[k] || i == KEY;
        }
    return found;
}

/* How often keys are in memory; *different: how many of them. */
static size_t search(size_t *different)
{
    const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "r");
    bool seen[KEYS_MOST] = {false};
    char line[500], rights[8];
    uintptr_t low, high;
    size_t found = 0;
    assert_true(memory >= 0 && maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &low, &high, rights) != 3 || rights[0] != 'r' ||
            rights[1] != 'w' || high - low > (UINT64_C(1) << 28)) /* the shadow of a sanitizer */
            continue;
        for (uintptr_t at = low; at < high; at += CHUNK) {
            const size_t left = high - at, size = left < sizeof chunk ? left : sizeof chunk;
            const bool own = at < (uintptr_t)(chunk + sizeof chunk) && at + size > (uintptr_t)chunk;
            if (!own && pread(memory, chunk, size, (off_t)at) == (ssize_t)size)
                found += count_in(chunk, size, seen);
        }
    }
    OPENSSL_cleanse(chunk, sizeof chunk);
    fclose(maps);
    close(memory);
    *different = 0;
    for (size_t k = 0; k < keys; k++)
        *different += seen[k];
    return found;
}

static void look_for_file(const char *name)
{
    unsigned char key[KEY];
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && read(file, key, KEY) == KEY);
    close(file);
    look_for(key);
    OPENSSL_cleanse(key, sizeof key);
}

static int enter(void **state)
{
    keys = 0;
    return enter_folder(state) || chdir(folder);
}

static int leave(void **state)
{
    return chdir("/") || leave_folder(state);
}

/* ---- keys of cohorts ---- */

static void mask_something(veil_member *m)
{
    static uint64_t words[4000];
    const message letter = {.kind = MESSAGE_UP, .run = RUN, .phase = 2, .round = 1, .count = 4000, .fixed = true};
    assert_true(veil_mask(m, &letter, words));
}

/* The private key of a node as docs/protocol.md says, and as X25519 uses it. OpenSSL's own export would leave a copy.
 */
static void look_for_private(const veil *v, const char *name)
{
    unsigned char text[100] = "hfsad cohort key 1", key[KEY];
    size_t size = strlen((const char *)text) + 1;
    for (size_t i = 0; i < 8; i++)
        text[size++] = (unsigned char)((uint64_t)RUN >> (8 * i));
    memcpy(text + size, name, strlen(name) + 1);
    size += strlen(name) + 1;
    assert_non_null(HMAC(EVP_sha256(), v->secret, KEY, text, size, key, NULL));
    look_for(key);
    OPENSSL_cleanse(key, sizeof key);
}

/* Two processes with two members each; began: the keys were drawn before. */
static void use_cohort(bool began)
{
    veil *v[2];
    veil_member *m[MEMBERS];
    hfsad_error err;
    const unsigned char *cards[MEMBERS];
    char why[VEIL_WHY];
    size_t sizes[MEMBERS], size, different;
    for (size_t p = 0; p < 2; p++)
        ok(veil_create(&v[p], p ? "two" : "one", began, NULL, RUN, &err), &err);
    for (size_t i = 0; i < MEMBERS; i++) {
        const veil_place place = {names, MEMBERS, i, 3, NULL, NULL};
        ok(veil_join(v[i / 2], &m[i], &place, &err), &err);
        cards[i] = veil_card(m[i], &sizes[i]);
    }
    unsigned char *list = veil_make_list(cards, sizes, MEMBERS, &size);
    for (size_t i = 0; i < MEMBERS; i++) {
        assert_true(veil_take_list(m[i], list, size, why));
        mask_something(m[i]);
        look_for_private(v[i / 2], names[i]);
        for (size_t j = 0; j < MEMBERS; j++)
            if (j != i && m[i]->pairs[j].cipher)
                look_for(m[i]->pairs[j].key);
    }
    free(list);
    look_for_file("one/cohort.key");
    look_for_file("two/cohort.key");
    assert_true(search(&different) >= keys && different == keys);
    for (size_t i = 0; i < MEMBERS; i++)
        veil_leave(m[i]);
    for (size_t p = 0; p < 2; p++)
        veil_free(v[p]);
}

static void test_cohort(void **state)
{
    (void)state;
    size_t different;
    assert_true(mkdir("one", 0700) == 0 && mkdir("two", 0700) == 0);
    for (int time = 0; time < 2; time++) { /* keys are drawn, then read */
        keys = 0;
        use_cohort(time > 0);
        assert_true(keys > 6);
        const size_t found = search(&different);
        if (found)
            fail_msg("%zu copies of %zu keys are left (time %d)", found, different, time);
    }
}

/* ---- keys of noise ---- */

static void test_noise(void **state)
{
    (void)state;
    size_t different;
    assert_true(mkdir("one", 0700) == 0);
    for (int time = 0; time < 2; time++) {
        vault *v;
        word_source words;
        hfsad_error err;
        keys = 0;
        ok(vault_create(&v, "one", time > 0, RUN, &err), &err);
        ok(vault_words(v, "e/a", &words, &err), &err);
        words.begin(words.context, 3);
        for (int i = 0; i < 10000; i++)
            (void)words.next(words.context);
        look_for_file("one/noise.key");
        unsigned char drawn[KEY]; /* what is in the buffer now: the noise itself */
        for (size_t i = 0; i < KEY / 8; i++) {
            const uint64_t word = words.next(words.context);
            memcpy(drawn + 8 * i, &word, sizeof word);
        }
        look_for(drawn);
        OPENSSL_cleanse(drawn, sizeof drawn);
        assert_true(search(&different) >= 2 && different == 2);
        vault_free(v);
        const size_t found = search(&different);
        if (found)
            fail_msg("%zu copies of %zu keys are left (time %d)", found, different, time);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_cohort, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_noise, enter, leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
