/* See seal.h. The functions of OpenSSL for whole contexts are used, because a tag must not allocate. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "net/seal.h"

#include <string.h>

void seal_key_make(seal_key *key, const void *secret, size_t size)
{
    unsigned char block[SHA256_CBLOCK] = {0}, pad[SHA256_CBLOCK];
    if (size > sizeof block)
        SHA256(secret, size, block);
    else if (size)
        memcpy(block, secret, size);
    for (size_t i = 0; i < sizeof block; i++)
        pad[i] = block[i] ^ 0x36;
    SHA256_Init(&key->inner);
    SHA256_Update(&key->inner, pad, sizeof pad);
    for (size_t i = 0; i < sizeof block; i++)
        pad[i] = block[i] ^ 0x5c;
    SHA256_Init(&key->outer);
    SHA256_Update(&key->outer, pad, sizeof pad);
    explicit_bzero(block, sizeof block);
    explicit_bzero(pad, sizeof pad);
}

void seal_digest(const void *bytes, size_t size, unsigned char digest[SEAL_DIGEST])
{
    SHA256_CTX hash;
    SHA256_Init(&hash);
    SHA256_Update(&hash, bytes, size);
    SHA256_Final(digest, &hash);
}

static void finish(const seal_key *key, SHA256_CTX *inner, unsigned char mac[SEAL_DIGEST])
{
    SHA256_CTX outer = key->outer;
    SHA256_Final(mac, inner);
    SHA256_Update(&outer, mac, SEAL_DIGEST);
    SHA256_Final(mac, &outer);
}

void seal_mac(const seal_key *key, const void *bytes, size_t size, unsigned char mac[SEAL_DIGEST])
{
    SHA256_CTX inner = key->inner;
    SHA256_Update(&inner, bytes, size);
    finish(key, &inner, mac);
}

void seal_extract(seal_key *from, const void *secret, size_t size)
{
    static const char salt[] = "hfsad 1";
    unsigned char mac[SEAL_DIGEST];
    seal_key_make(from, salt, sizeof salt - 1);
    seal_mac(from, secret, size, mac);
    seal_key_make(from, mac, sizeof mac);
    explicit_bzero(mac, sizeof mac);
}

void seal_expand(const seal_key *from, const seal_use *use, seal_key *key)
{
    static const unsigned char first = 1;
    const char *const words[] = {use->purpose, use->run, use->parent, use->child};
    unsigned char mac[SEAL_DIGEST];
    SHA256_CTX inner = from->inner;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) { /* no word has a line feed */
        SHA256_Update(&inner, words[i], strlen(words[i]));
        SHA256_Update(&inner, "\n", 1);
    }
    SHA256_Update(&inner, use->publics, use->n_publics);
    SHA256_Update(&inner, &first, 1);
    finish(from, &inner, mac);
    seal_key_make(key, mac, sizeof mac);
    explicit_bzero(mac, sizeof mac);
    explicit_bzero(&inner, sizeof inner);
}

static void put_content(SHA256_CTX *to, const seal_content *of)
{
    SHA256_Update(to, of->frame, of->size);
    SHA256_Update(to, of->topic, strlen(of->topic));
}

void seal_tag(const seal_key *key, seal_content *of, bool down, unsigned char tag[SEAL_TAG])
{
    unsigned char mac[SEAL_DIGEST];
    SHA256_CTX inner;
    if (down && !of->has_digest) {
        SHA256_Init(&inner);
        put_content(&inner, of);
        SHA256_Final(of->digest, &inner);
        of->has_digest = true;
    }
    inner = key->inner;
    if (down)
        SHA256_Update(&inner, of->digest, SEAL_DIGEST);
    else
        put_content(&inner, of);
    finish(key, &inner, mac);
    memcpy(tag, mac, SEAL_TAG);
}

bool seal_among(const seal_key *key, seal_content *of, bool down, const unsigned char *tags, size_t count)
{
    unsigned char right[SEAL_TAG];
    unsigned found = 0;
    seal_tag(key, of, down, right);
    for (size_t i = 0; i < count; i++) {
        unsigned differs = 0;
        for (size_t b = 0; b < SEAL_TAG; b++)
            differs |= (unsigned)(tags[i * SEAL_TAG + b] ^ right[b]);
        found |= (differs - 1) >> 8 & 1; /* 1 if nothing differs */
    }
    return found;
}
