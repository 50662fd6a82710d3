/* Differences (`federation.wire: delta`): to the vector before it on the same topic, which the sender has said and the
 * receiver has heard. Neither is kept over a crash: without a common one the receiver takes the message for lost, and
 * the sender repeats it whole. */
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void vector_before_free(vector_before *v)
{
    free(v->values);
    *v = (vector_before){0};
}

static bool keep_vector(vector_before *v, const message *m)
{
    if (!alloc_grow((void **)&v->values, &v->room, m->count, sizeof *v->values))
        return false;
    memcpy(v->values, m->values, m->count * sizeof *v->values);
    v->count = m->count;
    v->phase = m->phase;
    v->round = m->round;
    return true;
}

static message_reference reference_to(const vector_before *v)
{
    return (message_reference){v->round, v->count, v->count ? v->values : NULL};
}

static bool has_difference(const host *h, const message *m)
{
    return h->s.encoding == WIRE_DELTA && (m->kind == MESSAGE_UP || m->kind == MESSAGE_DOWN) && m->count > 0;
}

/* Reserves room for differences of this count of numbers; false: no memory. */
static bool take_codec(host *h, size_t count)
{
    if (count <= h->codec_most)
        return true;
    message_codec_free(h->codec);
    h->codec_most = message_codec_create(&h->codec, count, NULL) ? 0 : count;
    return h->codec_most;
}

message_fault host_encode_difference(host *h, hosted *at, const message *m, size_t *size)
{
    vector_before *before = &at->said[m->kind == MESSAGE_UP ? ABOVE : BELOW];
    if (!has_difference(h, m)) {
        const wire_encoding encoding = h->s.encoding == WIRE_FIXED ? WIRE_DOUBLE : h->s.encoding;
        const message_fault fault = message_encode(NULL, m, encoding, NULL, h->out.bytes, size);
        return fault && h->s.encoding == WIRE_FLOAT /* a number does not fit one */
                   ? message_encode(NULL, m, WIRE_DOUBLE, NULL, h->out.bytes, size)
                   : fault;
    }
    const bool again = before->count && before->phase == m->phase && before->round == m->round;
    const bool whole = again || before->count != m->count || !take_codec(h, m->count);
    const message_reference reference = reference_to(before);
    const message_fault fault = message_encode(whole ? NULL : h->codec, m, whole ? WIRE_DOUBLE : WIRE_DELTA,
                                               whole ? NULL : &reference, h->out.bytes, size);
    if (!fault && !again && !keep_vector(before, m))
        before->count = 0; /* the next one goes whole */
    return fault;
}

message_fault host_decode_difference(host *h, const vector_before *before, bool genuine, const void *bytes, size_t size,
                                     message *m)
{
    const bool has = before && before->count && take_codec(h, before->count);
    const message_reference reference = has ? reference_to(before) : (message_reference){0};
    return (genuine ? message_decode_genuine : message_decode)(has ? h->codec : NULL, bytes, size,
                                                               has ? &reference : NULL, h->values, h->most, m);
}

void host_keep_heard(const host *h, vector_before *before, const message *m)
{
    if (has_difference(h, m) && before && !keep_vector(before, m))
        before->count = 0;
}
