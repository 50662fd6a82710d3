/*
 * Frames: encoded numbers decode to the same bits, a frame encoded again has the same bytes, and everything else is
 * refused: another length, a flipped bit, a number that is not finite. A second decoder here reads the layout byte by
 * byte.
 */
#include "base/crc32c.h"
#include "net/message.h"
#include "net/topic.h"
#include "tools.h"

enum { TRIALS = 300, MOST = 70, BIG = 3000 };

static const wire_encoding encodings[] = {WIRE_DOUBLE, WIRE_FLOAT, WIRE_DELTA};

/* Bit by bit, as the polynomial is defined. */
static uint32_t slow_crc(const unsigned char *bytes, size_t count)
{
    uint32_t sum = 0xffffffff;
    for (size_t i = 0; i < count; i++)
        for (int bit = 0; bit < 8; bit++) {
            const uint32_t low = (sum ^ (uint32_t)(bytes[i] >> bit)) & 1;
            sum = sum >> 1 ^ (low ? 0x82f63b78 : 0);
        }
    return ~sum;
}

static void seal(unsigned char *frame, size_t size)
{
    const uint32_t sum = slow_crc(frame, size - 4);
    for (int i = 0; i < 4; i++)
        frame[size - 4 + (size_t)i] = (unsigned char)(sum >> (8 * i));
}

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | at[bytes];
    return v;
}

/* Of every size, signs and zeros among them; floats where they must be. */
static double draw_value(rng *r, bool single)
{
    static const double edges[] = {0, -0.0, 1, -1, 0x1p-149, 0x1p-1074, 0x1p127, 0x1.fffffffffffffp1023};
    double v = rng_next_normal(r) * (below(r, 3) ? 1 : log_uniform(r, 1e-30, 1e30));
    if (!below(r, 8))
        v = edges[below(r, single ? 5 : 8)];
    return single ? (double)(float)v : v;
}

typedef struct {
    message m;
    message_reference reference;
    double values[MOST], before[MOST];
} sample;

static void draw(rng *r, sample *s, bool single)
{
    s->m = (message){.kind = (message_kind)below(r, MESSAGE_KINDS),
                     .run = rng_next_below(r, UINT64_MAX),
                     .phase = rng_next_below(r, 5),
                     .round = rng_next_below(r, UINT64_MAX),
                     .k = rng_next_below(r, 1000),
                     .sigma = draw_value(r, false),
                     .count = below(r, MOST + 1),
                     .values = s->values};
    s->reference = (message_reference){.round = rng_next_below(r, 100), .count = s->m.count, .values = s->before};
    const bool near = below(r, 2);
    for (size_t i = 0; i < s->m.count; i++) {
        s->values[i] = draw_value(r, single);
        s->before[i] = near ? s->values[i] * (1 + 1e-12 * rng_next_normal(r)) : draw_value(r, false);
        if (!isfinite(s->before[i]))
            s->before[i] = 0;
    }
}

static bool same_bits(const double *a, const double *b, size_t count)
{
    return !count || memcmp(a, b, count * sizeof *a) == 0;
}

static message_codec *codec(size_t most)
{
    hfsad_error err;
    message_codec *c;
    ok(message_codec_create(&c, most, &err), &err);
    return c;
}

static void crc_is_the_standard(void **state)
{
    (void)state;
    unsigned char bytes[100];
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c_plain(0, "123456789", 9), 0xe3069283);
    for (uint64_t seed = 0; seed < TRIALS; seed++) {
        rng r = {rng_key(seed, 3), 0};
        const size_t n = below(&r, sizeof bytes + 1), cut = below(&r, n + 1);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)below(&r, 256);
        const uint32_t wanted = slow_crc(bytes, n), got = crc32c(crc32c(0, bytes, cut), bytes + cut, n - cut);
        const uint32_t plain = crc32c_plain(crc32c_plain(0, bytes, cut), bytes + cut, n - cut);
        if (got != wanted || plain != wanted)
            fail_msg("seed %llu: %08x and %08x, not %08x", (unsigned long long)seed, got, plain, wanted);
    }
}

static void round_trips(void **state)
{
    message_codec *c = codec(MOST);
    size_t deltas = 0;
    (void)state;
    for (uint64_t seed = 0; seed < TRIALS; seed++) {
        rng r = {rng_key(seed, 1), 0};
        for (size_t e = 0; e < 3; e++) {
            sample s;
            unsigned char frame[MESSAGE_HEAD_BYTES + 8 * MOST + 4], again[sizeof frame];
            double values[MOST];
            size_t size, size_again;
            message m;
            draw(&r, &s, encodings[e] == WIRE_FLOAT);
            assert_int_equal(message_encode(c, &s.m, encodings[e], &s.reference, frame, &size), 0);
            assert_true(size <= message_bytes_most(s.m.count));
            const message_fault fault = message_decode(c, frame, size, &s.reference, values, s.m.count, &m);
            const bool same = !fault && m.kind == s.m.kind && m.run == s.m.run && m.phase == s.m.phase &&
                              m.round == s.m.round && m.k == s.m.k && same_bits(&m.sigma, &s.m.sigma, 1) &&
                              m.count == s.m.count && m.values == values && same_bits(values, s.values, m.count);
            if (!same)
                fail_msg("seed %llu, encoding %zu: %s", (unsigned long long)seed, e, message_fault_text(fault));
            assert_int_equal(message_encode(c, &m, encodings[e], &s.reference, again, &size_again), 0);
            if (size_again != size || memcmp(frame, again, size) != 0)
                fail_msg("seed %llu, encoding %zu: encoded again it differs", (unsigned long long)seed, e);
            deltas += frame[6] == WIRE_DELTA;
        }
    }
    assert_true(deltas > TRIALS / 4); /* the others were shorter as they are */
    message_codec_free(c);
}

/* The two largest doubles stand for what is not finite. A receiver finds out itself whether there are any: what the
 * sender knew is not in the frame. */
static void plain_is_never_believed(void **state)
{
    (void)state;
    const double largest = nextafter(INFINITY, 0), second = nextafter(largest, 0), third = nextafter(second, 0);
    const double edges[] = {third, second, largest, INFINITY, NAN};
    for (uint64_t seed = 0; seed < TRIALS; seed++) {
        rng r = {rng_key(seed, 7), 0};
        sample s;
        unsigned char frame[MESSAGE_HEAD_BYTES + 8 * MOST + 4];
        double values[MOST];
        size_t size;
        message m = {.plain = true};
        draw(&r, &s, false);
        if (s.m.count && below(&r, 3))
            s.values[below(&r, s.m.count)] = copysign(edges[below(&r, 5)], below(&r, 2) ? 1 : -1);
        bool plain = true, finite = true;
        for (size_t i = 0; i < s.m.count; i++) {
            plain = plain && fabs(s.values[i]) < second;
            finite = finite && isfinite(s.values[i]);
        }
        assert_true(message_is_plain(s.values, s.m.count) == plain);
        s.m.plain = plain;
        assert_int_equal(message_encode(NULL, &s.m, WIRE_DOUBLE, NULL, frame, &size), finite ? 0 : MESSAGE_FAULT_VALUE);
        if (!finite)
            continue;
        assert_int_equal(message_decode(NULL, frame, size, NULL, values, MOST, &m), 0);
        assert_true(m.plain == plain);
        if (!s.m.count)
            continue;
        /* the same frame with another number, behind the sender's back */
        const double lie = copysign(edges[1 + below(&r, 2)], below(&r, 2) ? 1 : -1);
        memcpy(frame + MESSAGE_HEAD_BYTES + 8 * below(&r, s.m.count), &lie, sizeof lie);
        seal(frame, size);
        assert_int_equal(message_decode(NULL, frame, size, NULL, values, MOST, &m), 0);
        assert_false(m.plain);
    }
}

/* The frame that docs/protocol.md prints, and the same as floats. */
static void layout(void **state)
{
    static const char frame[] = "hfsd\1\1\0\0\xef\xcd\xab\x89\x67\x45\x23\x01\2\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"
                                "\3\0\0\0\0\0\0\0\0\0\0\0\0\x40\x50\x40\2\0\0\0\x10\0\0\0"
                                "\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\0\xc0\x3d\x78\x58\xb2";
    double values[] = {1.5, -2};
    const message m = {MESSAGE_UP, 0x0123456789abcdef, 2, 7, 3, 65, 2, values, false, {0}, false, false};
    unsigned char got[76];
    size_t size;
    (void)state;
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, got, &size), 0);
    assert_int_equal(size, sizeof frame - 1);
    assert_memory_equal(got, frame, size);
    assert_int_equal(message_encode(NULL, &m, WIRE_FLOAT, NULL, got, &size), 0);
    assert_true(size == 56 + 8 + 4 && got[6] == 1 && number(got + 52, 4) == 8);
    assert_true(number(got + 56, 4) == 0x3fc00000 && number(got + 60, 4) == 0xc0000000);
    assert_true(number(got + 64, 4) == slow_crc(got, 64));
}

/* Everything that can be cut, added or flipped, in a frame of each encoding. */
static void damaged_frames_are_refused(void **state)
{
    message_codec *c = codec(MOST);
    (void)state;
    for (size_t e = 0; e < 3; e++) {
        rng r = {rng_key(e, 2), 0};
        sample s;
        unsigned char frame[MESSAGE_HEAD_BYTES + 8 * MOST + 4 + 9];
        double values[MOST];
        size_t size;
        message m;
        do { /* a difference only where that is shorter */
            draw(&r, &s, true);
            assert_int_equal(message_encode(c, &s.m, encodings[e], &s.reference, frame, &size), 0);
        } while (s.m.count < 30 || frame[6] != encodings[e]);
        for (size_t cut = 0; cut < size; cut++) {
            unsigned char *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees the byte behind */
            memcpy(exact, frame, cut);
            if (!message_decode(c, exact, cut, &s.reference, values, MOST, &m))
                fail_msg("encoding %zu: %zu of %zu bytes are taken", e, cut, size);
            free(exact);
        }
        for (size_t more = 1; more < 9; more++)
            assert_int_not_equal(message_decode(c, frame, size + more, &s.reference, values, MOST, &m), 0);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (!message_decode(c, frame, size, &s.reference, values, MOST, &m))
                fail_msg("encoding %zu: bit %zu may be flipped", e, bit);
            frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        assert_int_equal(message_decode(c, frame, size, &s.reference, values, MOST, &m), 0);
    }
    message_codec_free(c);
}

/* Words in fixed point may be anything; only what goes up has them. */
static void words_travel_as_they_are(void **state)
{
    uint64_t words[] = {UINT64_MAX, UINT64_C(0x7ff0000000000001), 5}, got[3];
    message m = {MESSAGE_UP, 1, 2, 3, 4, 5, 3, (double *)(void *)words, true, {0}, false, false}, out;
    unsigned char frame[84];
    size_t size;
    (void)state;
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_ENCODING);
    assert_int_equal(message_encode(NULL, &m, WIRE_FIXED, NULL, frame, &size), 0);
    assert_int_equal(message_decode(NULL, frame, size, NULL, (double *)(void *)got, 3, &out), 0);
    assert_true(out.fixed && memcmp(words, got, sizeof words) == 0);
    frame[5] = MESSAGE_DOWN;
    seal(frame, size);
    assert_int_equal(message_decode(NULL, frame, size, NULL, (double *)(void *)got, 3, &out), MESSAGE_FAULT_ENCODING);
    m.kind = MESSAGE_STATUS;
    assert_int_equal(message_encode(NULL, &m, WIRE_FIXED, NULL, frame, &size), MESSAGE_FAULT_ENCODING);
}

typedef struct {
    const char *what;
    size_t at;
    unsigned char byte;
    message_fault fault;
} lie;

/* A sender that means ill makes the checksum fit. */
static void well_formed_lies_are_refused(void **state)
{
    static const lie lies[] = {
        {"mark", 0, 'H', MESSAGE_FAULT_MARK},
        {"version", 4, 2, MESSAGE_FAULT_VERSION},
        {"kind", 5, 8, MESSAGE_FAULT_KIND},
        {"encoding", 6, 4, MESSAGE_FAULT_ENCODING},
        {"zero", 7, 1, MESSAGE_FAULT_ENCODING},
        {"sigma", 47, 0x7f, MESSAGE_FAULT_VALUE},
        {"count", 48, 3, MESSAGE_FAULT_LENGTH},
        {"huge count", 51, 0xff, MESSAGE_FAULT_COUNT},
        {"length", 52, 17, MESSAGE_FAULT_LENGTH},
        {"a value", 63, 0x7f, MESSAGE_FAULT_VALUE},
        {"another value", 71, 0xff, MESSAGE_FAULT_VALUE},
    };
    double values[] = {0x1.fp1023, -0x1.fp1023}, got[2]; /* one bit more and they are no numbers */
    const message m = {MESSAGE_UP, 1, 2, 3, 4, 0x1.fp1023, 2, values, false, {0}, false, false};
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        unsigned char frame[76];
        size_t size;
        message out;
        assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), 0);
        frame[lies[i].at] = lies[i].byte;
        if (lies[i].fault == MESSAGE_FAULT_VALUE)
            frame[lies[i].at - 1] = 0xff;
        seal(frame, size);
        const message_fault fault = message_decode(NULL, frame, size, NULL, got, 2, &out);
        if (fault != lies[i].fault)
            fail_msg("%s: %s instead of %s", lies[i].what, message_fault_text(fault),
                     message_fault_text(lies[i].fault));
    }
}

static void what_cannot_be_sent(void **state)
{
    double values[] = {1, NAN};
    message m = {MESSAGE_UP, 1, 2, 3, 4, 5, 2, values, false, {0}, false, false};
    unsigned char frame[76];
    size_t size;
    (void)state;
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_VALUE);
    values[1] = 1e39;
    assert_int_equal(message_encode(NULL, &m, WIRE_FLOAT, NULL, frame, &size), MESSAGE_FAULT_VALUE);
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), 0);
    message out;
    assert_int_equal(message_decode(NULL, frame, size, NULL, values, 1, &out), MESSAGE_FAULT_COUNT);
    m.sigma = -INFINITY;
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_VALUE);
    m.sigma = 1;
    m.count = (size_t)MESSAGE_COUNT_MAX + 1;
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_COUNT);
    m.count = 2;
    m.kind = MESSAGE_KINDS;
    assert_int_equal(message_encode(NULL, &m, WIRE_DOUBLE, NULL, frame, &size), MESSAGE_FAULT_KIND);
}

/* A difference needs the very value that it was taken to, and is short where numbers moved little. */
static void differences(void **state)
{
    message_codec *c = codec(BIG), *small = codec(BIG - 1);
    rng r = {rng_key(1, 4), 0};
    double *before = alloc_raw(BIG, sizeof *before), *values = alloc_raw(BIG, sizeof *values);
    double *got = alloc_raw(BIG, sizeof *got);
    unsigned char *frame = alloc_raw(message_bytes_most(BIG), 1);
    size_t size;
    (void)state;
    for (size_t i = 0; i < BIG; i++) {
        before[i] = rng_next_normal(&r);
        values[i] = before[i] + 1e-9 * rng_next_normal(&r);
    }
    message m = {MESSAGE_DOWN, 1, 2, 12, 4, 5, BIG, values, false, {0}, false, false}, out;
    message_reference reference = {11, BIG, before}, other = reference;
    message_head head;
    assert_int_equal(message_encode(c, &m, WIRE_DELTA, &reference, frame, &size), 0);
    assert_true(frame[6] == WIRE_DELTA && size < 8 * BIG * 2 / 3);
    assert_int_equal(message_read_head(frame, size, &head), 0);
    assert_true(head.encoding == WIRE_DELTA && head.reference_round == 11 && head.m.count == BIG);
    assert_int_equal(message_decode(c, frame, size, &reference, got, BIG, &out), 0);
    assert_true(same_bits(got, values, BIG));
    assert_int_equal(message_decode(c, frame, size, NULL, got, BIG, &out), MESSAGE_FAULT_REFERENCE);
    other.round = 12;
    assert_int_equal(message_decode(c, frame, size, &other, got, BIG, &out), MESSAGE_FAULT_REFERENCE);
    other = (message_reference){11, BIG - 1, before};
    assert_int_equal(message_decode(c, frame, size, &other, got, BIG, &out), MESSAGE_FAULT_REFERENCE);
    before[7] = -before[7];
    assert_int_equal(message_decode(c, frame, size, &reference, got, BIG, &out), MESSAGE_FAULT_REFERENCE);
    before[7] = -before[7];
    assert_int_equal(message_decode(small, frame, size, &reference, got, BIG, &out), MESSAGE_FAULT_COUNT);
    /* without a reference it is sent as it is */
    assert_int_equal(message_encode(c, &m, WIRE_DELTA, NULL, frame, &size), 0);
    assert_true(frame[6] == WIRE_DOUBLE && size == message_bytes_most(BIG));
    free(before);
    free(values);
    free(got);
    free(frame);
    message_codec_free(c);
    message_codec_free(small);
}

static void topics(void **state)
{
    char topic[TOPIC_MAX], path[TOPIC_MAX], parent[TOPIC_MAX];
    topic_kind kind;
    (void)state;
    assert_true(topic_write(topic, "r", "edge1/client7", TOPIC_ANSWER));
    assert_string_equal(topic, "hfsad/r/edge1/client7/answer");
    assert_true(topic_read(topic, "r", path, &kind) && kind == TOPIC_ANSWER);
    assert_string_equal(path, "edge1/client7");
    assert_false(topic_read(topic, "q", path, &kind) || topic_read("hfsad/r/up", "r", path, &kind));
    assert_false(topic_read("hfsad/r/edge1/sideways", "r", path, &kind) || topic_read("hfsad/r", "r", path, &kind));
    static const char *const none[] = {"",
                                       "hfsad",
                                       "hfsad/r/",
                                       "hfsad/r//up",
                                       "hfsad/r//",
                                       "hfsad/re/up",
                                       "hfsad/r/e/",
                                       "hfsad/r/e/u",
                                       "hfsad/r/e/upp",
                                       "hfsad/r/e/UP",
                                       "hfsad//e/up",
                                       "Hfsad/r/e/up",
                                       "/hfsad/r/e/up",
                                       "hfsad/r/up/",
                                       "hfsad/q/e/up"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (topic_read(none[i], "r", path, &kind))
            fail_msg("%s was read as %s", none[i], path);
    for (int i = 0; i < TOPICS; i++) { /* every message finds the topic of its kind, in both directions */
        const message ack = {.kind = topic_message_kind((topic_kind)i), .k = i == TOPIC_ANSWER_ACK};
        assert_int_equal(topic_of(&ack, !topic_to_children((topic_kind)i)), i);
        assert_true(topic_write(topic, "r", "e", (topic_kind)i) && topic_read(topic, "r", path, &kind));
        assert_int_equal(kind, i);
    }
    assert_true(topic_parent("a/b/c", parent) && !strcmp(parent, "a/b") && topic_parent("a", parent));
    assert_string_equal(parent, "cloud");
    assert_false(topic_parent("cloud", parent));
    static const char *const good[] = {"a", "a/b c", "Z\xc3\xbcrich/7", "\xf0\x9f\x8c\xb2"};
    static const char *const bad[] = {"",     "/a",   "a/",       "a//b",         "a/+",          "#",       "a\nb",
                                      "\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xe0\x80\x80", "\xc2\x80"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(topic_path_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(topic_path_valid(bad[i]));
    assert_true(topic_run_valid("run 1") && !topic_run_valid("a/b") && !topic_run_valid(""));
    assert_true(topic_matches("a/+/c", "a/b/c") && topic_matches("a/#", "a/b/c") && topic_matches("a/#", "a"));
    assert_true(topic_matches("#", "a/b") && topic_matches("a/+", "a/"));
    assert_false(topic_matches("a/+", "a") || topic_matches("a/+", "a/b/c") || topic_matches("a/b", "a/bc"));
    assert_false(topic_matches("a/b/c", "a/b") || topic_matches("a/b", "a/b/c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_is_the_standard),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(plain_is_never_believed),
        cmocka_unit_test(layout),
        cmocka_unit_test(damaged_frames_are_refused),
        cmocka_unit_test(words_travel_as_they_are),
        cmocka_unit_test(well_formed_lies_are_refused),
        cmocka_unit_test(what_cannot_be_sent),
        cmocka_unit_test(differences),
        cmocka_unit_test(topics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
