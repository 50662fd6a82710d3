/*
 * Frames; see message.h. Offsets in bytes, all little-endian:
 *
 *      0  mark "hfsd"   4  version   5  kind   6  encoding   7  zero
 *      8  run          16  phase    24  round 32  k         40  sigma   48  count (4)   52  length of the payload (4)
 *     56  payload, then the CRC-32C of everything before it (4)
 *
 * A difference has for payload the reference's round (8), the CRC-32C of its numbers (4) and one zstd frame. That holds
 * per number the difference of the two as places in the order of all doubles, zigzag, first the lowest bytes of all
 * numbers, then their next ones: of numbers that moved little the high bytes are zeros, side by side.
 */
#include "net/message.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/crc32c.h"
#include "base/error.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    AT_VERSION = 4,
    AT_KIND = 5,
    AT_ENCODING = 6,
    AT_ZERO = 7,
    AT_RUN = 8,
    AT_PHASE = 16,
    AT_ROUND = 24,
    AT_K = 32,
    AT_SIGMA = 40,
    AT_COUNT = 48,
    AT_LENGTH = 52,
    REFERENCE_BYTES = 12,
    /* The differences of slowly moving vectors are noise below and zeros above: more effort gains nothing. */
    ZSTD_LEVEL = 1,
};
static const char mark[4] = {'h', 'f', 's', 'd'};

struct message_codec {
    size_t most;
    unsigned char *planes, *packed; /* 8 bytes per number each */
    ZSTD_CCtx *pack;
    ZSTD_DCtx *unpack;
};

const char *message_fault_text(message_fault fault)
{
#define FAULT_TEXT(name, text) text,
    static const char *const texts[] = {MESSAGE_FAULT_LIST(FAULT_TEXT)};
    return fault < MESSAGE_FAULTS ? texts[fault] : "?";
}

hfsad_status message_codec_create(message_codec **out, size_t most, hfsad_error *err)
{
    message_codec *c = calloc(1, sizeof *c);
    *out = c;
    if (c) {
        c->most = most < MESSAGE_COUNT_MAX ? most : MESSAGE_COUNT_MAX;
        c->planes = alloc_raw(c->most, sizeof(double));
        c->packed = alloc_raw(c->most, sizeof(double));
        c->pack = ZSTD_createCCtx();
        c->unpack = ZSTD_createDCtx();
    }
    if (c && c->planes && c->packed && c->pack && c->unpack)
        return HFSAD_OK;
    message_codec_free(c);
    *out = NULL;
    return error_memory(err, 2 * most * sizeof(double), "the differences of messages");
}

void message_codec_free(message_codec *c)
{
    if (!c)
        return;
    ZSTD_freeCCtx(c->pack);
    ZSTD_freeDCtx(c->unpack);
    free(c->planes);
    free(c->packed);
    free(c);
}

size_t message_bytes_most(size_t count)
{
    return MESSAGE_HEAD_BYTES + count * sizeof(double) + MESSAGE_SUM_BYTES;
}

/* ---- little-endian numbers ---- */

/* Without a branch, so that it is vector code: the sum has the highest bit if the number without its sign is too large.
 */
bool message_is_plain(const double *v, size_t count)
{
    const uint64_t sign = UINT64_C(1) << 63, least = (UINT64_C(0x7ff) << 52) - 2;
    uint64_t over = 0;
    for (size_t i = 0; i < count; i++)
        over |= (bits_of(v[i]) & ~sign) + (sign - least);
    return !(over & sign);
}

static bool all_finite(const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

/* Nearly all vectors are plain, and then one pass suffices. */
static bool may_travel(const double *v, size_t count, bool *plain)
{
    *plain = message_is_plain(v, count);
    return *plain || all_finite(v, count);
}

static void put_doubles(unsigned char *to, const double *v, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (count)
        memcpy(to, v, count * sizeof *v);
#else
    for (size_t i = 0; i < count; i++)
        put64(to + 8 * i, bits_of(v[i]));
#endif
}

static void get_doubles(double *v, const unsigned char *from, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (count)
        memcpy(v, from, count * sizeof *v);
#else
    for (size_t i = 0; i < count; i++)
        v[i] = double_of(get64(from + 8 * i));
#endif
}

static bool put_floats(unsigned char *to, const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float f = (float)v[i];
        if (!isfinite(f))
            return false;
        put32(to + 4 * i, bits_of_float(f));
    }
    return true;
}

static void get_floats(double *v, const unsigned char *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        v[i] = (double)float_of(get32(from + 4 * i));
}

/* ---- differences ---- */

/* A double's place in the order of all doubles, -0 before 0; its own inverse apart from the direction. */
static uint64_t order_of(uint64_t bits)
{
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static uint64_t bits_at(uint64_t place)
{
    return place >> 63 ? place & ~(UINT64_C(1) << 63) : ~place;
}

static uint32_t sum_of(const double *v, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return crc32c(0, v, count * sizeof *v);
#else
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char bytes[8];
        put64(bytes, bits_of(v[i]));
        sum = crc32c(sum, bytes, sizeof bytes);
    }
    return sum;
#endif
}

/* Length of the payload; 0 if it would not be shorter than the numbers themselves. */
static size_t put_difference(message_codec *c, unsigned char *to, const double *v, const message_reference *reference)
{
    const size_t count = reference->count, room = count * sizeof(double) - 1;
    if (room <= REFERENCE_BYTES)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t step = order_of(bits_of(v[i])) - order_of(bits_of(reference->values[i]));
        const uint64_t folded = step << 1 ^ (step >> 63 ? ~UINT64_C(0) : 0);
        for (size_t b = 0; b < sizeof folded; b++)
            c->planes[b * count + i] = (unsigned char)(folded >> (8 * b));
    }
    const size_t packed =
        ZSTD_compressCCtx(c->pack, c->packed, room - REFERENCE_BYTES, c->planes, count * sizeof(double), ZSTD_LEVEL);
    if (ZSTD_isError(packed))
        return 0; /* it does not fit, for which there are doubles */
    put64(to, reference->round);
    put32(to + 8, sum_of(reference->values, count));
    memcpy(to + REFERENCE_BYTES, c->packed, packed);
    return REFERENCE_BYTES + packed;
}

static bool get_difference(message_codec *c, double *v, const unsigned char *from, size_t length,
                           const message_reference *reference)
{
    const size_t count = reference->count, bytes = count * sizeof(double);
    from += REFERENCE_BYTES;
    length -= REFERENCE_BYTES;
    /* One frame and nothing else, not even what zstd would skip. */
    if (ZSTD_getFrameContentSize(from, length) != bytes || ZSTD_findFrameCompressedSize(from, length) != length ||
        ZSTD_decompressDCtx(c->unpack, c->planes, bytes, from, length) != bytes)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t folded = 0;
        for (size_t b = 0; b < sizeof folded; b++)
            folded |= (uint64_t)c->planes[b * count + i] << (8 * b);
        const uint64_t step = folded >> 1 ^ (folded & 1 ? ~UINT64_C(0) : 0);
        v[i] = double_of(bits_at(order_of(bits_of(reference->values[i])) + step));
    }
    return true;
}

/* ---- frames ---- */

static void put_message_head(unsigned char *to, const message *m, wire_encoding encoding, size_t length)
{
    memcpy(to, mark, sizeof mark);
    to[AT_VERSION] = MESSAGE_VERSION;
    to[AT_KIND] = (unsigned char)m->kind;
    to[AT_ENCODING] = (unsigned char)encoding;
    to[AT_ZERO] = 0;
    put64(to + AT_RUN, m->run);
    put64(to + AT_PHASE, m->phase);
    put64(to + AT_ROUND, m->round);
    put64(to + AT_K, m->k);
    put64(to + AT_SIGMA, bits_of(m->sigma));
    put32(to + AT_COUNT, (uint32_t)m->count);
    put32(to + AT_LENGTH, (uint32_t)length);
}

/* Sums go up. */
static bool may_be_fixed(message_kind kind)
{
    return kind == MESSAGE_UP || kind == MESSAGE_ANSWER;
}

message_fault message_encode(message_codec *c, const message *m, wire_encoding encoding,
                             const message_reference *reference, void *bytes, size_t *size)
{
    unsigned char *to = bytes, *payload = to + MESSAGE_HEAD_BYTES;
    size_t length = 0;
    if (m->kind >= MESSAGE_KINDS)
        return MESSAGE_FAULT_KIND;
    if (encoding >= WIRE_ENCODINGS)
        return MESSAGE_FAULT_ENCODING;
    if (m->count > MESSAGE_COUNT_MAX)
        return MESSAGE_FAULT_COUNT;
    bool plain = m->plain;
    assert(!plain || m->fixed || message_is_plain(m->values, m->count));
    if (!isfinite(m->sigma) || (!m->fixed && !plain && !may_travel(m->values, m->count, &plain)))
        return MESSAGE_FAULT_VALUE;
    if ((encoding == WIRE_FIXED) != m->fixed || (m->fixed && !may_be_fixed(m->kind)))
        return MESSAGE_FAULT_ENCODING;
    if (encoding == WIRE_DELTA) {
        const bool can =
            c && m->count > 0 && m->count <= c->most && reference && reference->values && reference->count == m->count;
        length = can ? put_difference(c, payload, m->values, reference) : 0;
        if (!length)
            encoding = WIRE_DOUBLE;
    }
    if (encoding == WIRE_FLOAT) {
        length = m->count * sizeof(float);
        if (!put_floats(payload, m->values, m->count))
            return MESSAGE_FAULT_VALUE;
    } else if (encoding == WIRE_DOUBLE || encoding == WIRE_FIXED) {
        length = m->count * sizeof(double);
        put_doubles(payload, m->values, m->count);
    }
    put_message_head(to, m, encoding, length);
    const size_t before = MESSAGE_HEAD_BYTES + length;
    put32(to + before, crc32c(0, to, before));
    *size = before + MESSAGE_SUM_BYTES;
    return MESSAGE_FAULT_NONE;
}

static bool length_fits(wire_encoding encoding, size_t count, size_t length)
{
    if (encoding == WIRE_DELTA)
        return length > REFERENCE_BYTES && length < count * sizeof(double);
    return length == count * (encoding == WIRE_FLOAT ? sizeof(float) : sizeof(double));
}

size_t message_frame_size(const void *bytes, size_t size)
{
    const size_t around = MESSAGE_HEAD_BYTES + MESSAGE_SUM_BYTES;
    if (size < around || memcmp(bytes, mark, sizeof mark) != 0)
        return 0;
    const size_t length = get32((const unsigned char *)bytes + AT_LENGTH);
    return length <= size - around ? length + around : 0;
}

/* genuine: authenticated, so the checksum adds nothing. */
static message_fault read_head(const void *bytes, size_t size, bool genuine, message_head *head)
{
    const unsigned char *from = bytes;
    if (size < MESSAGE_HEAD_BYTES + MESSAGE_SUM_BYTES)
        return MESSAGE_FAULT_LENGTH;
    if (memcmp(from, mark, sizeof mark) != 0)
        return MESSAGE_FAULT_MARK;
    if (from[AT_VERSION] != MESSAGE_VERSION)
        return MESSAGE_FAULT_VERSION;
    const size_t length = get32(from + AT_LENGTH), count = get32(from + AT_COUNT);
    if (size - MESSAGE_HEAD_BYTES - MESSAGE_SUM_BYTES != length)
        return MESSAGE_FAULT_LENGTH;
    if (!genuine && get32(from + size - MESSAGE_SUM_BYTES) != crc32c(0, from, size - MESSAGE_SUM_BYTES))
        return MESSAGE_FAULT_SUM;
    if (from[AT_KIND] >= MESSAGE_KINDS)
        return MESSAGE_FAULT_KIND;
    if (from[AT_ENCODING] >= WIRE_ENCODINGS || from[AT_ZERO] != 0 ||
        (from[AT_ENCODING] == WIRE_FIXED && !may_be_fixed((message_kind)from[AT_KIND])))
        return MESSAGE_FAULT_ENCODING;
    if (count > MESSAGE_COUNT_MAX)
        return MESSAGE_FAULT_COUNT;
    *head = (message_head){.encoding = (wire_encoding)from[AT_ENCODING]};
    if (!length_fits(head->encoding, count, length))
        return MESSAGE_FAULT_LENGTH;
    head->m = (message){.kind = (message_kind)from[AT_KIND],
                        .run = get64(from + AT_RUN),
                        .phase = get64(from + AT_PHASE),
                        .round = get64(from + AT_ROUND),
                        .k = get64(from + AT_K),
                        .sigma = double_of(get64(from + AT_SIGMA)),
                        .count = count,
                        .fixed = head->encoding == WIRE_FIXED};
    if (!isfinite(head->m.sigma))
        return MESSAGE_FAULT_VALUE;
    if (head->encoding == WIRE_DELTA) {
        head->reference_round = get64(from + MESSAGE_HEAD_BYTES);
        head->reference_sum = get32(from + MESSAGE_HEAD_BYTES + 8);
    }
    return MESSAGE_FAULT_NONE;
}

message_fault message_read_head(const void *bytes, size_t size, message_head *head)
{
    return read_head(bytes, size, false, head);
}

static bool is_reference(const message_head *head, const message_reference *reference)
{
    return reference && reference->values && reference->count == head->m.count &&
           reference->round == head->reference_round &&
           sum_of(reference->values, reference->count) == head->reference_sum;
}

static message_fault decode(message_codec *c, const void *bytes, size_t size, bool genuine,
                            const message_reference *reference, double *values, size_t capacity, message *m)
{
    message_head head;
    const unsigned char *payload = (const unsigned char *)bytes + MESSAGE_HEAD_BYTES;
    const message_fault fault = read_head(bytes, size, genuine, &head);
    if (fault)
        return fault;
    const size_t count = head.m.count;
    if (count > capacity)
        return MESSAGE_FAULT_COUNT;
    if (head.encoding == WIRE_DOUBLE || head.encoding == WIRE_FIXED) {
        get_doubles(values, payload, count);
    } else if (head.encoding == WIRE_FLOAT) {
        get_floats(values, payload, count);
    } else {
        if (!is_reference(&head, reference))
            return MESSAGE_FAULT_REFERENCE;
        if (!c || count > c->most)
            return MESSAGE_FAULT_COUNT;
        if (!get_difference(c, values, payload, size - MESSAGE_HEAD_BYTES - MESSAGE_SUM_BYTES, reference))
            return MESSAGE_FAULT_ENCODING;
    }
    bool plain = false;
    if (!head.m.fixed && !may_travel(values, count, &plain))
        return MESSAGE_FAULT_VALUE;
    *m = head.m;
    m->plain = plain;
    m->values = values;
    return MESSAGE_FAULT_NONE;
}

message_fault message_decode(message_codec *c, const void *bytes, size_t size, const message_reference *reference,
                             double *values, size_t capacity, message *m)
{
    return decode(c, bytes, size, false, reference, values, capacity, m);
}

message_fault message_decode_genuine(message_codec *c, const void *bytes, size_t size,
                                     const message_reference *reference, double *values, size_t capacity, message *m)
{
    return decode(c, bytes, size, true, reference, values, capacity, m);
}
