/*
 * Messages between a node and its parent, and their bytes (docs/protocol.md has the table). A frame is a head of 56
 * bytes, the numbers, and a CRC-32C of these; anything else is refused with the reason.
 *
 * Every message is a last value: only the newest message of its (phase, round) counts.
 */
#ifndef HFSAD_NET_MESSAGE_H
#define HFSAD_NET_MESSAGE_H

#include "base/wire.h"
#include "hfsad/hfsad.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of message and their names in logs. */
#define MESSAGE_KIND_LIST(X)                                                                                           \
    X(DOWN, "down")                                                                                                    \
    X(UP, "up")                                                                                                        \
    X(ACK, "ack")                                                                                                      \
    X(STATUS, "status")                                                                                                \
    X(ASK, "ask")                                                                                                      \
    X(ANSWER, "answer")                                                                                                \
    X(MODEL, "model")                                                                                                  \
    X(RECORD, "record")

typedef enum {
#define MESSAGE_KIND_ENUM(name, text) MESSAGE_##name,
    MESSAGE_KIND_LIST(MESSAGE_KIND_ENUM)
#undef MESSAGE_KIND_ENUM
        MESSAGE_KINDS
} message_kind;

typedef struct {
    message_kind kind;
    uint64_t run;   /* the federation: a hash of its spec and its nodes */
    uint64_t phase; /* set-up question, training, measurement, end */
    uint64_t round;
    uint64_t k;         /* the link's counter */
    double sigma;       /* the link's weight, sigma(k + 1) */
    size_t count;       /* of numbers, at most MESSAGE_COUNT_MAX */
    double *values;     /* the sender's or the caller's memory; all finite */
    bool fixed;         /* values are words of 64 bits in fixed point (base/fixed.h), whatever they are as doubles */
    uint64_t digest[4]; /* of the DOWN or ASK that it answers, for its masks (veil.h); not sent */
    bool digested;      /* it has come, and digest is its own */
} message;

enum {
    MESSAGE_VERSION = 1,
    MESSAGE_HEAD_BYTES = 56,
    MESSAGE_SUM_BYTES = 4,
    MESSAGE_COUNT_MAX = 1 << 24, /* 128 MiB of doubles: half of what mosquitto takes */
};

/* Why a frame is refused, or cannot be made. */
#define MESSAGE_FAULT_LIST(X)                                                                                          \
    X(NONE, "good")                                                                                                    \
    X(LENGTH, "cut, or longer than it says")                                                                           \
    X(MARK, "not a message of hfsad")                                                                                  \
    X(VERSION, "of another version of the protocol")                                                                   \
    X(SUM, "damaged: the checksum is wrong")                                                                           \
    X(KIND, "of an unknown kind")                                                                                      \
    X(ENCODING, "in an unknown or wrong encoding")                                                                     \
    X(COUNT, "with more numbers than are taken here")                                                                  \
    X(VALUE, "with a number that is not finite")                                                                       \
    X(REFERENCE, "a difference to a value that is not here")

typedef enum {
#define MESSAGE_FAULT_ENUM(name, text) MESSAGE_FAULT_##name,
    MESSAGE_FAULT_LIST(MESSAGE_FAULT_ENUM)
#undef MESSAGE_FAULT_ENUM
        MESSAGE_FAULTS
} message_fault;

const char *message_fault_text(message_fault fault);

/* The value that a difference is taken to: the one before it on the same topic. The
 * caller keeps it. values NULL: none. */
typedef struct {
    uint64_t round;
    size_t count;
    const double *values;
} message_reference;

/* Room for differences of up to `most` numbers; one serves any number of nodes of one thread. */
typedef struct message_codec message_codec;
hfsad_status message_codec_create(message_codec **c, size_t most, hfsad_error *err);
void message_codec_free(message_codec *c);

/* Upper limit on the bytes of a frame with this count of numbers, in any encoding. */
size_t message_bytes_most(size_t count);

/*
 * Writes the frame to bytes, which has room for message_bytes_most(m->count); *size is its length. A difference needs c
 * and a reference of the same count, and is sent as doubles otherwise; c and reference may be NULL.
 * Faults: KIND, ENCODING, COUNT, and VALUE, which includes a number too large for FLOAT.
 */
message_fault message_encode(message_codec *c, const message *m, wire_encoding encoding,
                             const message_reference *reference, void *bytes, size_t *size);

/* The bytes of the frame that `bytes` begin with, by its head; 0: none does. Tags may follow it. */
size_t message_frame_size(const void *bytes, size_t size);

/* What a frame says of itself, its numbers left alone: m->values is NULL. Everything but these has been checked. */
typedef struct {
    message m;
    wire_encoding encoding;
    uint64_t reference_round; /* DELTA: whose value is needed; 0 otherwise */
    uint32_t reference_sum;
} message_head;
message_fault message_read_head(const void *bytes, size_t size, message_head *head);

/*
 * The whole message, its numbers in values, which has room for `capacity`. reference is used for DELTA only and may be
 * NULL. If it is NULL or differs from that of the sender, the fault is REFERENCE. On a fault *m and values are
 * undefined. A decoded message (DOUBLE, FLOAT) encoded again has the same bytes.
 */
message_fault message_decode(message_codec *c, const void *bytes, size_t size, const message_reference *reference,
                             double *values, size_t capacity, message *m);
/* The same, the checksum left alone: a tag or a checksum of the caller's has shown that nothing was altered. */
message_fault message_decode_genuine(message_codec *c, const void *bytes, size_t size,
                                     const message_reference *reference, double *values, size_t capacity, message *m);

#endif
