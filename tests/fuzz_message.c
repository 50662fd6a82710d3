/*
 * The decoder of messages, on arbitrary bytes, and on the same bytes with a valid mark, version, length and checksum,
 * so that the code after these checks is reached. A message is refused, or its numbers are finite and it encodes to the
 * same bytes; a difference encodes to a frame that decodes to the same numbers.
 */
#include "base/crc32c.h"
#include "net/message.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1024, OVERHEAD = MESSAGE_HEAD_BYTES + MESSAGE_SUM_BYTES };

static message_codec *codec;
static double before[MOST];

static void check(int holds)
{
    if (!holds)
        abort();
}

static void put(unsigned char *to, size_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

/* A difference names its reference; it gets the one that it wants. */
static message_reference reference_for(const unsigned char *bytes, size_t size)
{
    message_head head;
    message_reference reference = {0};
    if (!message_read_head(bytes, size, &head) && head.m.count <= MOST)
        reference = (message_reference){head.reference_round, head.m.count, before};
    return reference;
}

static void try_bytes(const unsigned char *bytes, size_t size)
{
    double values[MOST], again_values[MOST];
    message m, again_m;
    const message_reference reference = reference_for(bytes, size);
    const message_fault fault = message_decode(codec, bytes, size, &reference, values, MOST, &m);
    check(fault < MESSAGE_FAULTS && message_fault_text(fault)[0]);
    if (fault)
        return;
    check(m.kind < MESSAGE_KINDS && isfinite(m.sigma) && m.count <= MOST && m.values == values);
    bool plain = !m.fixed;
    for (size_t i = 0; i < m.count; i++) {
        check(m.fixed || isfinite(values[i]));
        plain = plain && fabs(values[i]) < nextafter(DBL_MAX, 0);
    }
    check(m.plain == plain);
    unsigned char *again = malloc(message_bytes_most(m.count));
    size_t again_size;
    check(again != NULL);
    const wire_encoding encoding = (wire_encoding)bytes[6];
    check(!message_encode(codec, &m, encoding, &reference, again, &again_size));
    if (encoding != WIRE_DELTA)
        check(again_size == size && memcmp(bytes, again, size) == 0);
    check(!message_decode(codec, again, again_size, &reference, again_values, MOST, &again_m));
    check(again_m.count == m.count && memcmp(values, again_values, m.count * sizeof *values) == 0);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!codec) {
        check(!message_codec_create(&codec, MOST, NULL));
        for (size_t i = 0; i < MOST; i++)
            before[i] = sin((double)i) * (i % 7 ? 1 : 1e300);
    }
    try_bytes(data, size);
    if (size < OVERHEAD)
        return 0;
    unsigned char *bytes = malloc(size);
    check(bytes != NULL);
    memcpy(bytes, data, size);
    memcpy(bytes, "hfsd\1", 5);
    put(bytes + 52, size - OVERHEAD);
    if (bytes[6] == WIRE_DELTA && size >= OVERHEAD + 12 && (bytes[48] | bytes[49] << 8) <= MOST)
        put(bytes + MESSAGE_HEAD_BYTES + 8, crc32c(0, before, (size_t)(bytes[48] | bytes[49] << 8) * sizeof *before));
    put(bytes + size - MESSAGE_SUM_BYTES, crc32c(0, bytes, size - MESSAGE_SUM_BYTES));
    try_bytes(bytes, size);
    free(bytes);
    return 0;
}
