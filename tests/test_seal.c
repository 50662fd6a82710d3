/* Tags: a vector that another program has computed by docs/protocol.md (tests/frames.py), and no altered
 * bit, cut or other topic with the same tag. */
#include "net/message.h"
#include "net/seal.h"
#include "tools.h"

static void make_key(seal_key *key, const char *purpose)
{
    unsigned char secret[32];
    seal_key from;
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (unsigned char)i;
    seal_extract(&from, secret, sizeof secret);
    seal_expand(&from, &(seal_use){.purpose = purpose, .run = "r", .parent = "cloud", .child = "edge1"}, key);
}

static void same_as_another_program(void **state)
{
    static const unsigned char tags[][SEAL_TAG] = {{0xe8, 0x94, 0x0d, 0x57, 0x5c, 0x8e, 0x29, 0xc0},
                                                   {0x1b, 0xea, 0xa3, 0xe6, 0xcd, 0x55, 0xeb, 0x09},
                                                   {0x11, 0x2a, 0x07, 0xe4, 0xe1, 0xcd, 0x07, 0x69}};
    const size_t sizes[] = {780, 513, 512};
    double u[90];
    const message m = {.kind = MESSAGE_UP,
                       .run = 0x0123456789abcdef,
                       .phase = 2,
                       .round = 7,
                       .k = 3,
                       .sigma = 65,
                       .count = 90,
                       .values = u};
    unsigned char frame[800], tag[SEAL_TAG];
    seal_content of = {seal_hasher(), "up", frame, 0};
    seal_key key;
    (void)state;
    assert_non_null(of.hasher);
    for (size_t i = 0; i < 90; i++)
        u[i] = (const double[]){1.5, -2, 3.25}[i % 3];
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &of.size), 0);
    make_key(&key, "up");
    assert_int_equal(of.size, sizes[0]);
    for (size_t i = 0; i < 3; i++) { /* a long frame, the shortest long content and the longest short one */
        of.size = sizes[i];
        assert_true(seal_tag(&key, &of, tag));
        assert_memory_equal(tag, tags[i], sizeof tag);
    }
    EVP_MAC_CTX_free(of.hasher);
}

static void nothing_else_has_it(void **state)
{
    enum { SIZE = 733 };
    unsigned char frame[SIZE], tags[3 * SEAL_TAG] = {0};
    seal_content of = {seal_hasher(), "down", frame, SIZE};
    seal_key key, other;
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        frame[i] = (unsigned char)(i * i >> 3);
    make_key(&key, "down");
    make_key(&other, "up");
    assert_true(seal_tag(&key, &of, tags + SEAL_TAG)); /* between others */
    assert_true(seal_among(&key, &of, tags, 3));
    assert_false(seal_among(&key, &of, tags, 1));
    assert_false(seal_among(&other, &of, tags, 3));
    for (size_t bit = 0; bit < 8 * SIZE; bit++) {
        frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(seal_among(&key, &of, tags, 3));
        frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    while (of.size-- > 0)
        assert_false(seal_among(&key, &of, tags, 3));
    of.size = SIZE;
    of.topic = "down-ack";
    assert_false(seal_among(&key, &of, tags, 3));
    EVP_MAC_CTX_free(of.hasher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_another_program),
                                       cmocka_unit_test(nothing_else_has_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
