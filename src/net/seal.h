/*
 * Tags of frames: a frame is followed by tags of 8 bytes, each a MAC under the key of one direction between a child and
 * its parent. A receiver accepts the frame if one of the tags is its own (docs/protocol.md, section 9). A tag is
 * HMAC-SHA256, cut to 8 bytes: of the frame and its topic if it goes up, of their SHA-256 if it goes down, so that a
 * parent with many children reads its frame once.
 */
#ifndef HFSAD_NET_SEAL_H
#define HFSAD_NET_SEAL_H

#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    SEAL_TAG = 8,
    SEAL_DIGEST = SHA256_DIGEST_LENGTH,
    SEAL_TAGS_MOST = 1 << 20, /* a parent has one child per tag */
};

/* HMAC after its first block on either side, so that a tag costs two blocks. */
typedef struct {
    SHA256_CTX inner, outer;
} seal_key;

void seal_key_make(seal_key *key, const void *secret, size_t size);
/* SHA-256 of `size` bytes. */
void seal_digest(const void *bytes, size_t size, unsigned char digest[SEAL_DIGEST]);
/* HMAC-SHA256 of `size` bytes. */
void seal_mac(const seal_key *key, const void *bytes, size_t size, unsigned char mac[SEAL_DIGEST]);

/* HKDF (RFC 5869) with SHA-256: the extracted key, then a key of its own for each purpose. */
void seal_extract(seal_key *from, const void *secret, size_t size);
/* purpose: "up" or "down" of a parent and a child, or "own" of one node (the other path is ""). publics: the public
 * keys of both if there are such. */
typedef struct {
    const char *purpose, *run, *parent, *child;
    const unsigned char *publics;
    size_t n_publics;
} seal_use;
void seal_expand(const seal_key *from, const seal_use *use, seal_key *key);

/* What a tag is of: a frame and the last level of its topic. */
typedef struct {
    const char *topic;
    const void *frame;
    size_t size;
    bool has_digest;
    unsigned char digest[SEAL_DIGEST];
} seal_content;
void seal_tag(const seal_key *key, seal_content *of, bool down, unsigned char tag[SEAL_TAG]);
/* Whether one of `count` tags is right. The time does not depend on their content. */
bool seal_among(const seal_key *key, seal_content *of, bool down, const unsigned char *tags, size_t count);

#endif
