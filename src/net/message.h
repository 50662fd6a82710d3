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
    uint64_t k;         /* counter of the link */
    double sigma;       /* weight of the link, sigma(k + 1) */
    size_t count;       /* count of numbers, at most MESSAGE_COUNT_MAX */
    double *values;     /* belong to the sender or the caller; all finite */
    bool fixed;         /* values are 64-bit words in fixed point (base/fixed.h) */
    uint64_t digest[4]; /* digest of the DOWN or ASK that the message answers, for masks (veil.h); not sent */
    bool digested;      /* a received message whose digest is set */
    bool plain;         /* message_is_plain(values) is known to hold, and is not computed again */
} message;

enum {
    MESSAGE_VERSION = 1,
    MESSAGE_HEAD_BYTES = 56,
    MESSAGE_SUM_BYTES = 4,
    MESSAGE_COUNT_MAX = 1 << 24, /* 128 MiB of doubles: half of mosquitto's limit */
};

/* Reasons for which a frame is refused or cannot be encoded. */
#define MESSAGE_FAULT_LIST(X)                                                                                          \
    X(NONE, "good")                                                                                                    \
    X(LENGTH, "of a length that does not match its header")                                                            \
    X(MARK, "not a message of hfsad")                                                                                  \
    X(VERSION, "of another version of the protocol")                                                                   \
    X(SUM, "damaged: the checksum is wrong")                                                                           \
    X(KIND, "of an unknown kind")                                                                                      \
    X(ENCODING, "in an unknown or wrong encoding")                                                                     \
    X(COUNT, "with more numbers than this node accepts")                                                               \
    X(VALUE, "with a number that is not finite")                                                                       \
    X(REFERENCE, "a difference to a value that this node does not have")

typedef enum {
#define MESSAGE_FAULT_ENUM(name, text) MESSAGE_FAULT_##name,
    MESSAGE_FAULT_LIST(MESSAGE_FAULT_ENUM)
#undef MESSAGE_FAULT_ENUM
        MESSAGE_FAULTS
} message_fault;

const char *message_fault_text(message_fault fault);

/* The reference of a difference: the previous value on the same topic, kept by the caller. values NULL: none. */
typedef struct {
    uint64_t round;
    size_t count;
    const double *values;
} message_reference;

/* Buffers for differences of up to `most` numbers; one codec serves all nodes of a thread. */
typedef struct message_codec message_codec;
hfsad_status message_codec_create(message_codec **c, size_t most, hfsad_error *err);
void message_codec_free(message_codec *c);

/* Whether no number is infinite or not a number, nor one of the two largest doubles, which stand for these on the wire
 * (node_numbers.c). */
bool message_is_plain(const double *v, size_t count);

/* Upper limit on the bytes of a frame with this count of numbers, in any encoding. */
size_t message_bytes_most(size_t count);

/*
 * Writes the frame to bytes, which has room for message_bytes_most(m->count); *size is its length. A difference needs c
 * and a reference of the same count, and is sent as doubles otherwise; c and reference may be NULL.
 * Faults: KIND, ENCODING, COUNT, and VALUE, which includes a number too large for FLOAT.
 */
message_fault message_encode(message_codec *c, const message *m, wire_encoding encoding,
                             const message_reference *reference, void *bytes, size_t *size);

/* The length of the frame at the beginning of `bytes`, from its head; 0: no frame. Tags may follow the frame. */
size_t message_frame_size(const void *bytes, size_t size);

/* The head of a frame; m->values is NULL. Everything except the numbers is checked. */
typedef struct {
    message m;
    wire_encoding encoding;
    uint64_t reference_round; /* DELTA: round of the reference; 0 otherwise */
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
/* The same without the checksum, for a frame whose integrity the caller has checked by a tag or a checksum. */
message_fault message_decode_genuine(message_codec *c, const void *bytes, size_t size,
                                     const message_reference *reference, double *values, size_t capacity, message *m);

#endif
