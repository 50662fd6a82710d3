/* Secure aggregation: masks cancel, and a client refuses invalid lists. */
#define _POSIX_C_SOURCE 200809L
#include "tools.h"

#include "base/fixed.h"
#include "net/certificate.h"
#include "net/store.h"
#include "net/veil.h"

#include <sys/stat.h>
#include <unistd.h>

enum { MEMBERS = 5, RUN = 77 };
static const char *const names[MEMBERS] = {"e/a", "e/b", "e/c", "e/d", "e/f"};

static int enter(void **state)
{
    return enter_folder(state) || chdir(folder);
}

static int leave(void **state)
{
    return chdir("/") || leave_folder(state);
}

static void put_file(const char *name, const char *text, size_t length)
{
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fwrite(text, 1, length, f) == length);
    fclose(f);
}

/* An authority, NAME.crt and NAME.pem, and the files of node i: NAME-i.crt and .key. */
static void make_authority(const char *authority)
{
    hfsad_error err;
    certificate_authority *a;
    certificate_pair own, pair;
    char name[100];
    ok(certificate_make_authority(&a, 10, &own, &err), &err);
    snprintf(name, sizeof name, "%s.crt", authority);
    put_file(name, own.certificate, own.certificate_length);
    snprintf(name, sizeof name, "%s.pem", authority);
    put_file(name, own.key, own.key_length);
    for (size_t i = 0; i < MEMBERS; i++) {
        ok(certificate_make_node(a, names[i], 10, &pair, &err), &err);
        snprintf(name, sizeof name, "%s-%zu.crt", authority, i);
        put_file(name, pair.certificate, pair.certificate_length);
        snprintf(name, sizeof name, "%s-%zu.key", authority, i);
        put_file(name, pair.key, pair.key_length);
        certificate_pair_free(&pair);
    }
    certificate_pair_free(&own);
    certificate_authority_free(a);
}

typedef struct {
    veil *v[MEMBERS];
    veil_member *m[MEMBERS];
} cohort;

/* states: prefix of the state folders, NULL: none; authority NULL: cards are not signed. */
static void begin_member(cohort *c, size_t i, const char *states, const char *authority)
{
    char state[100], ca[100], certificate[100], key[100];
    hfsad_error err;
    snprintf(state, sizeof state, "%s%zu", states ? states : "", i);
    if (states)
        (void)mkdir(state, 0700);
    snprintf(ca, sizeof ca, "%s.crt", authority ? authority : "");
    snprintf(certificate, sizeof certificate, "%s-%zu.crt", authority ? authority : "", i);
    snprintf(key, sizeof key, "%s-%zu.key", authority ? authority : "", i);
    const veil_place place = {names, MEMBERS, i, 3, certificate, key};
    ok(veil_create(&c->v[i], states ? state : NULL, false, authority ? ca : NULL, RUN, &err), &err);
    ok(veil_join(c->v[i], &c->m[i], &place, &err), &err);
}

static cohort begin(const char *states, const char *authority)
{
    cohort c;
    for (size_t i = 0; i < MEMBERS; i++)
        begin_member(&c, i, states, authority);
    return c;
}

static void end_member(cohort *c, size_t i)
{
    veil_leave(c->m[i]);
    veil_free(c->v[i]);
}

static void end(cohort *c)
{
    for (size_t i = 0; i < MEMBERS; i++)
        end_member(c, i);
}

/* The list of the members before `last`. */
static unsigned char *list_of(const cohort *c, size_t last, size_t *size)
{
    const unsigned char *cards[MEMBERS];
    size_t sizes[MEMBERS];
    for (size_t i = 0; i < last; i++)
        cards[i] = veil_card(c->m[i], &sizes[i]);
    unsigned char *list = veil_make_list(cards, sizes, last, size);
    assert_non_null(list);
    return list;
}

static void introduce(cohort *c)
{
    char why[VEIL_WHY];
    size_t size;
    unsigned char *list = list_of(c, MEMBERS, &size);
    for (size_t i = 0; i < MEMBERS; i++) {
        if (!veil_take_list(c->m[i], list, size, why))
            fail_msg("%s", why);
        assert_true(veil_is_ready(c->m[i]));
    }
    free(list);
}

enum { NUMBERS = 3001, WORDS = NUMBERS * FIXED_WORDS };
static uint64_t words[MEMBERS][WORDS], sum[WORDS], plain[WORDS];

static message letter(message_kind kind, uint64_t round, uint64_t digest)
{
    return (message){.kind = kind,
                     .run = RUN,
                     .phase = 2,
                     .round = round,
                     .count = kind == MESSAGE_UP ? NUMBERS : WORDS,
                     .fixed = true,
                     .digest = {digest}};
}

static void add_up(message_kind kind, uint64_t *to, const uint64_t *part)
{
    if (kind == MESSAGE_ANSWER)
        fixed_add(to, part, NUMBERS);
    else
        for (size_t i = 0; i < NUMBERS; i++)
            to[i] += part[i];
}

/* other: whose question differs; MEMBERS: all were asked the same. */
static bool cancels(cohort *c, message_kind kind, uint64_t round, size_t other)
{
    rng r = {rng_key(round, rng_stream("veil")), 0};
    memset(sum, 0, sizeof sum);
    memset(plain, 0, sizeof plain);
    const size_t count = letter(kind, round, 0).count;
    for (size_t i = 0; i < MEMBERS; i++) {
        const message m = letter(kind, round, i == other ? 6 : 5);
        for (size_t w = 0; w < count; w++)
            words[i][w] = rng_next_below(&r, UINT64_MAX);
        add_up(kind, plain, words[i]);
        veil_mask(c->m[i], &m, words[i]);
        add_up(kind, sum, words[i]);
    }
    return memcmp(sum, plain, sizeof sum) == 0;
}

static void test_masks(void **state)
{
    (void)state;
    cohort c = begin(NULL, NULL);
    introduce(&c);
    for (uint64_t round = 1; round < 6; round++) {
        assert_true(cancels(&c, MESSAGE_UP, round, MEMBERS));
        assert_true(cancels(&c, MESSAGE_ANSWER, round, MEMBERS));
        assert_false(
            cancels(&c, MESSAGE_UP, round, round % MEMBERS)); /* a parent that asks one of them something else */
    }
    /* another round, phase, question or count: another mask, of which no word is the same */
    static uint64_t a[WORDS], b[WORDS];
    const message one = letter(MESSAGE_UP, 1, 5);
    message others[] = {one, one, one, one};
    others[0].round = 2;
    others[1].phase = 0x102;
    others[2].digest[3] = 1;
    others[3].count--;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        veil_mask(c.m[0], &one, a);
        veil_mask(c.m[0], &others[k], b);
        for (size_t w = 0; w < NUMBERS - 1; w++)
            assert_true(a[w] != b[w] && a[w] != 0);
    }
    end(&c);
}

/* Nodes of one process share a chain of masks: the whole cohort adds up, and no part of it does. */
static void test_processes(void **state)
{
    (void)state;
    static const size_t process[MEMBERS] = {0, 1, 0, 0, 1};
    cohort c;
    hfsad_error err;
    for (size_t i = 0; i < MEMBERS; i++) {
        const veil_place place = {names, MEMBERS, i, 3, NULL, NULL};
        c.v[i] = NULL;
        if (i < 2)
            ok(veil_create(&c.v[i], NULL, false, NULL, RUN, &err), &err);
        ok(veil_join(c.v[process[i]], &c.m[i], &place, &err), &err);
    }
    introduce(&c);
    assert_true(cancels(&c, MESSAGE_UP, 1, MEMBERS));
    assert_true(cancels(&c, MESSAGE_ANSWER, 1, MEMBERS));
    const message m = letter(MESSAGE_UP, 1, 5);
    memset(words, 0, sizeof words);
    for (size_t i = 0; i < MEMBERS; i++)
        veil_mask(c.m[i], &m, words[i]);
    for (size_t part = 1; part + 1 < 1 << MEMBERS; part++) {
        size_t same = 0;
        for (size_t w = 0; w < NUMBERS; w++) {
            uint64_t all = 0;
            for (size_t i = 0; i < MEMBERS; i++)
                all += part >> i & 1 ? words[i][w] : 0;
            same += all == 0;
        }
        assert_int_equal(same, 0);
    }
    for (size_t i = 0; i < MEMBERS; i++)
        veil_leave(c.m[i]);
    veil_free(c.v[0]);
    veil_free(c.v[1]);
}

/* After a crash: the same key, the same list, the same masks. Another folder: another key, which the others refuse. */
static void test_restart(void **state)
{
    (void)state;
    static uint64_t before[WORDS], after[WORDS];
    char why[VEIL_WHY];
    struct stat about;
    size_t size, again;
    make_authority("ca");
    cohort c = begin("state", "ca");
    unsigned char *list = list_of(&c, MEMBERS, &size);
    introduce(&c);
    const message m = letter(MESSAGE_UP, 3, 5);
    veil_mask(c.m[2], &m, before);
    end_member(&c, 2);
    assert_int_equal(stat("state2/cohort.key", &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    begin_member(&c, 2, "state", "ca");
    assert_true(veil_is_ready(c.m[2]));
    veil_mask(c.m[2], &m, after);
    assert_memory_equal(before, after, sizeof before);
    end_member(&c, 2);
    hfsad_error err;
    veil *lost;
    assert_int_equal(rename("state2/cohort.key", "key"), 0);
    assert_int_equal(veil_create(&lost, "state2", false, "ca.crt", RUN, &err), HFSAD_ERROR_INPUT); /* a list is there */
    assert_non_null(strstr(err.message, "state2/cohort.key is missing"));
    assert_int_equal(rename("state2/cohort.list", "list"), 0);
    assert_int_equal(veil_create(&lost, "state2", true, "ca.crt", RUN, &err), HFSAD_ERROR_INPUT); /* states are there */
    begin_member(&c, 2, "elsewhere", "ca");
    assert_false(veil_is_ready(c.m[2]));
    assert_false(veil_take_list(c.m[2], list, size, why));
    assert_non_null(strstr(why, "another key of this node"));
    unsigned char *other = list_of(&c, MEMBERS, &again); /* with the new key, signed */
    assert_false(veil_take_list(c.m[0], other, again, why));
    assert_non_null(strstr(why, "differs from the list"));
    free(other);
    free(list);
    end(&c);
}

static bool refuses(cohort *c, const unsigned char *list, size_t size, const char *reason)
{
    char why[VEIL_WHY] = "";
    const bool refused = !veil_take_list(c->m[0], list, size, why) && !veil_is_ready(c->m[0]);
    if (refused && reason && !strstr(why, reason))
        fail_msg("'%s' instead of '%s'", why, reason);
    return refused;
}

/* A parent that leaves a member out, has one twice, puts in its own keys, or damages the list. */
static void test_lists(void **state)
{
    (void)state;
    size_t size, less, n;
    make_authority("ca");
    make_authority("rogue");
    cohort c = begin("honest", "ca"), forged = begin("forged", "rogue"), open = begin("open", NULL);
    unsigned char *list = list_of(&c, MEMBERS, &size), *few = list_of(&c, MEMBERS - 1, &less);
    assert_true(refuses(&c, few, less, "lacks a member of the cohort: e/f"));
    free(few);
    const unsigned char *cards[MEMBERS + 1];
    size_t sizes[MEMBERS + 1];
    for (size_t i = 0; i < MEMBERS; i++)
        cards[i] = veil_card(c.m[i], &sizes[i]);
    cards[MEMBERS] = veil_card(c.m[1], &sizes[MEMBERS]);
    unsigned char *bad = veil_make_list(cards, sizes, MEMBERS + 1, &n);
    assert_true(refuses(&c, bad, n, "listed twice: e/b"));
    free(bad);
    const cohort *const false_friends[] = {&forged, &open}; /* of another authority, of none */
    for (size_t k = 0; k < 2; k++) {
        cards[1] = veil_card(false_friends[k]->m[1], &sizes[1]);
        bad = veil_make_list(cards, sizes, MEMBERS, &n);
        assert_true(refuses(&c, bad, n, "does not vouch for the key of e/b"));
        free(bad);
    }
    unsigned char *turned = malloc(size);
    assert_non_null(turned);
    for (size_t at = 0; at < size; at += 5) { /* a bit of it, and a shorter one */
        memcpy(turned, list, size);
        turned[at] ^= (unsigned char)(1 << at % 8);
        if (!refuses(&c, turned, size, NULL))
            fail_msg("bit %zu of byte %zu", at % 8, at);
        assert_true(refuses(&c, list, at, NULL));
    }
    free(turned);
    assert_false(refuses(&c, list, size, NULL));
    free(list);
    end(&open);
    end(&forged);
    end(&c);
}

static bool renews(cohort *c, size_t i, const char *path, const char *proof, veil_answer wanted, const char *reason)
{
    char why[VEIL_WHY] = "";
    const veil_answer answer = veil_renew(c->m[i], path, proof, 7, why);
    if (answer == wanted && (!reason || strstr(why, reason)))
        return true;
    print_error("%d: '%s' instead of '%s'\n", (int)answer, why, reason ? reason : "");
    return false;
}

/* The rest of the cohort without member 2; all: not without member 3. */
static void cancel_without(cohort *c, message m, bool all)
{
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < MEMBERS; i++) {
        memset(words[i], 0, sizeof words[i]);
        if (i == 2 || (!all && i == 3))
            continue;
        veil_mask(c->m[i], &m, words[i]);
        add_up(MESSAGE_UP, sum, words[i]);
    }
    size_t zeros = 0;
    for (size_t w = 0; w < NUMBERS; w++)
        zeros += sum[w] == 0;
    assert_int_equal(zeros, all ? NUMBERS : 0);
}

/* A member is lost for good: the authority signs it, and nothing is said twice. */
static void test_renew(void **state)
{
    (void)state;
    char proof[VEIL_PROOF], other_run[VEIL_PROOF], rogue[VEIL_PROOF], later[VEIL_PROOF], changed[VEIL_PROOF];
    hfsad_error err;
    make_authority("rogue");
    make_authority("ca");
    cohort c = begin("state", "ca");
    ok(veil_prove_gone("ca.pem", RUN, names[2], proof, &err), &err);
    assert_true(renews(&c, 0, names[2], proof, VEIL_REFUSED, "no list"));
    introduce(&c); /* what is signed before the list is of another run */
    ok(veil_prove_gone("ca.pem", RUN, names[2], proof, &err), &err);
    ok(veil_prove_gone("ca.pem", RUN + 1, names[2], other_run, &err), &err);
    ok(veil_prove_gone("ca.pem", RUN, names[3], later, &err), &err);
    ok(veil_prove_gone("rogue.pem", RUN, names[2], rogue, &err), &err);
    snprintf(changed, sizeof changed, "%s", proof);
    changed[strlen(changed) - 1] ^= 1;
    assert_true(renews(&c, 0, names[2], other_run, VEIL_REFUSED, "has not signed"));
    assert_true(renews(&c, 0, names[2], rogue, VEIL_REFUSED, "has not signed"));
    assert_true(renews(&c, 0, names[2], changed, VEIL_REFUSED, "has not signed"));
    assert_true(renews(&c, 0, names[3], proof, VEIL_REFUSED, "has not signed"));
    assert_true(renews(&c, 0, names[2], "1 00", VEIL_REFUSED, "has not signed"));
    assert_true(renews(&c, 2, names[2], proof, VEIL_REFUSED, "left itself"));
    assert_true(renews(&c, 0, "e/x", proof, VEIL_ELSEWHERE, NULL));
    message m = letter(MESSAGE_UP, 7, 5);
    assert_true(veil_may_say(c.m[0], &m));
    for (size_t i = 0; i < MEMBERS; i++)
        if (i != 2)
            assert_true(renews(&c, i, names[2], proof, VEIL_TAKEN, NULL));
    assert_true(renews(&c, 0, names[2], proof, VEIL_TAKEN, NULL)); /* the parent has not heard it */
    assert_false(veil_may_say(c.m[0], &m));                        /* the round that was said with the other */
    end_member(&c, 4);
    begin_member(&c, 4, "state", "ca");
    assert_false(veil_may_say(c.m[4], &m));
    veil *lost;
    assert_int_equal(rename("state4/cohort.gone", "gone"), 0);
    assert_int_equal(veil_create(&lost, "state4", true, "ca.crt", RUN, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "cohort.gone"));
    assert_int_equal(rename("gone", "state4/cohort.gone"), 0);
    m.round = 8;
    assert_true(veil_may_say(c.m[4], &m));
    const message answer = letter(MESSAGE_ANSWER, 8, 5);
    assert_false(veil_may_say(c.m[4], &answer));
    cancel_without(&c, m, true);
    cancel_without(&c, m, false);
    assert_true(renews(&c, 0, names[3], later, VEIL_TAKEN, NULL)); /* three are left: the least */
    ok(veil_prove_gone("ca.pem", RUN, names[4], later, &err), &err);
    assert_true(renews(&c, 0, names[4], later, VEIL_REFUSED, "fewer than 3"));
    end(&c);
    store_remove("state4"); /* what is left would be taken for the next run's */
    assert_int_not_equal(access("state4/cohort.gone", F_OK), 0);
}

/* Two members are lost, and the others hear of them in different orders. */
static void test_two_lost(void **state)
{
    (void)state;
    char proofs[2][VEIL_PROOF];
    hfsad_error err;
    make_authority("ca");
    cohort c = begin("two", "ca");
    introduce(&c);
    for (size_t k = 0; k < 2; k++)
        ok(veil_prove_gone("ca.pem", RUN, names[2 + k], proofs[k], &err), &err);
    for (size_t i = 0; i < MEMBERS; i++)
        for (size_t k = 0; k < 2 && i != 2 && i != 3; k++)
            assert_true(renews(&c, i, names[2 + (k ^ (i & 1))], proofs[k ^ (i & 1)], VEIL_TAKEN, NULL));
    const message m = letter(MESSAGE_UP, 8, 5);
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < MEMBERS; i++) {
        memset(words[i], 0, sizeof words[i]);
        if (i != 2 && i != 3)
            veil_mask(c.m[i], &m, words[i]);
        add_up(MESSAGE_UP, sum, words[i]);
    }
    for (size_t w = 0; w < NUMBERS; w++)
        assert_true(sum[w] == 0);
    end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks),
                                       cmocka_unit_test(test_processes),
                                       cmocka_unit_test_setup_teardown(test_restart, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_lists, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_renew, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_two_lost, enter, leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
