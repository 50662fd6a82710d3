/* Overrides found by a node's name: the same, in the same order, as by trying each of them. */
#include "base/patterns.h"
#include "tools.h"

#include <fnmatch.h>

enum { TEXTS = 60, NAMES = 200, TRIALS = 50, SIZE = 4 };

/* Few letters, so that names and patterns meet often. */
static void draw(rng *r, char text[SIZE], const char *letters)
{
    const size_t length = 1 + below(r, SIZE - 1), n = strlen(letters);
    for (size_t i = 0; i < length; i++)
        text[i] = letters[below(r, n)];
    text[length] = 0;
}

static void as_one_by_one(void **state)
{
    (void)state;
    size_t found[2] = {0}; /* by a name that is plain, and not */
    for (uint64_t seed = 0; seed < TRIALS; seed++) {
        rng r = {rng_key(seed, 1), 0};
        char texts[TEXTS][SIZE], name[SIZE];
        const char *pointers[TEXTS];
        const size_t count = below(&r, TEXTS + 1);
        for (size_t i = 0; i < count; i++) {
            draw(&r, texts[i], i % 3 ? "ab/" : "ab/*?[]");
            pointers[i] = texts[i];
        }
        pattern_list list;
        assert_true(patterns_make(&list, pointers, count));
        for (size_t n = 0; n < NAMES; n++) {
            draw(&r, name, n % 4 ? "ab/" : "ab/[]");
            pattern_walk walk = patterns_find(&list, name);
            for (size_t i = 0; i < count; i++) {
                if (strcmp(texts[i], name) != 0 && fnmatch(texts[i], name, FNM_PATHNAME) != 0)
                    continue;
                const size_t next = patterns_next(&walk);
                if (next != i)
                    fail_msg("seed %llu: '%s' matches %zu, not %zu", (unsigned long long)seed, name, i, next);
                found[strpbrk(texts[i], "*?[") != NULL]++;
            }
            assert_true(patterns_next(&walk) == SIZE_MAX);
        }
        patterns_free(&list);
    }
    assert_true(found[0] > 1000 && found[1] > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_one_by_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
