/*
 * Tags of frames: a frame is followed by tags of 8 bytes, each a MAC under the key of one direction between a child and
 * its parent. A receiver accepts the frame if one of the tags is its own (docs/protocol.md, section 9). A tag is
 * HMAC-SHA256, cut to 8 bytes: of a short frame and its topic; of a long frame's head, topic, and a Poly1305 hash of
 * the rest. The key of the hash is secret to the pair and the hash is never sent, so the tag is as good as one of the
 * whole frame, at the speed of Poly1305, without a nonce that a crash could repeat.
 */
#ifndef HFSAD_NET_SEAL_H
#define HFSAD_NET_SEAL_H

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    SEAL_TAG = 8,
    SEAL_DIGEST = SHA256_DIGEST_LENGTH,
    SEAL_SHORT = 512, /* a frame of at most this size is not hashed first, ... */
    SEAL_HEAD = 56,   /* ... nor is the head of a longer one, which says which message it is */
    SEAL_HASH = 16,
    SEAL_TAGS_MOST = 1 << 20, /* a parent has one child per tag */
};

/* HMAC after its first block on either side, so that a tag costs few blocks. */
typedef struct {
    SHA256_CTX inner, outer;
    unsigned char
        hash[2 * SEAL_HASH]; /* key of Poly1305; its second half is 0, because HMAC follows. By seal_expand. */
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

/* Where hashes are computed, so that a tag does not allocate; one for each thread. NULL: no memory, or a library
 * without Poly1305. */
EVP_MAC_CTX *seal_hasher(void);

/* What a tag is of: a frame and the last level of its topic. */
typedef struct {
    EVP_MAC_CTX *hasher;
    const char *topic;
    const void *frame;
    size_t size;
} seal_content;
/* false: the library failed, and there is no tag. */
bool seal_tag(const seal_key *key, const seal_content *of, unsigned char tag[SEAL_TAG]);
/* Whether one of `count` tags is right. The time does not depend on their content. */
bool seal_among(const seal_key *key, const seal_content *of, const unsigned char *tags, size_t count);

#endif
