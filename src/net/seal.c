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
    static const char salt[] = "hfsad 2";
    unsigned char mac[SEAL_DIGEST];
    seal_key_make(from, salt, sizeof salt - 1);
    seal_mac(from, secret, size, mac);
    seal_key_make(from, mac, sizeof mac);
    explicit_bzero(mac, sizeof mac);
}

void seal_expand(const seal_key *from, const seal_use *use, seal_key *key)
{
    static const unsigned char first = 1;
    static const char poly1305[] = "poly1305";
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
    seal_mac(key, poly1305, sizeof poly1305 - 1, mac); /* shorter than all that a tag is of */
    memset(key->hash, 0, sizeof key->hash);
    memcpy(key->hash, mac, SEAL_HASH);
    explicit_bzero(mac, sizeof mac);
    explicit_bzero(&inner, sizeof inner);
}

EVP_MAC_CTX *seal_hasher(void)
{
    EVP_MAC *poly1305 = EVP_MAC_fetch(NULL, "POLY1305", NULL);
    EVP_MAC_CTX *hasher = poly1305 ? EVP_MAC_CTX_new(poly1305) : NULL;
    EVP_MAC_free(poly1305); /* the context has a reference */
    return hasher;
}

/* The hash of all but the head, and a 1, which no topic ends with. */
static bool hash_rest(const seal_key *key, const seal_content *of, unsigned char hash[SEAL_HASH + 1])
{
    size_t size;
    hash[SEAL_HASH] = 1;
    return EVP_MAC_init(of->hasher, key->hash, sizeof key->hash, NULL) &&
           EVP_MAC_update(of->hasher, (const unsigned char *)of->frame + SEAL_HEAD, of->size - SEAL_HEAD) &&
           EVP_MAC_final(of->hasher, hash, &size, SEAL_HASH);
}

bool seal_tag(const seal_key *key, const seal_content *of, unsigned char tag[SEAL_TAG])
{
    const bool is_long = of->size > SEAL_SHORT;
    unsigned char mac[SEAL_DIGEST], hash[SEAL_HASH + 1];
    if (is_long && !hash_rest(key, of, hash))
        return false;
    SHA256_CTX inner = key->inner;
    SHA256_Update(&inner, of->frame, is_long ? SEAL_HEAD : of->size);
    SHA256_Update(&inner, of->topic, strlen(of->topic));
    if (is_long)
        SHA256_Update(&inner, hash, sizeof hash);
    finish(key, &inner, mac);
    memcpy(tag, mac, SEAL_TAG);
    explicit_bzero(hash, sizeof hash);
    return true;
}

bool seal_among(const seal_key *key, const seal_content *of, const unsigned char *tags, size_t count)
{
    unsigned char right[SEAL_TAG];
    unsigned found = 0;
    if (!seal_tag(key, of, right))
        return false;
    for (size_t i = 0; i < count; i++) {
        unsigned differs = 0;
        for (size_t b = 0; b < SEAL_TAG; b++)
            differs |= (unsigned)(tags[i * SEAL_TAG + b] ^ right[b]);
        found |= (differs - 1) >> 8 & 1; /* 1 if nothing differs */
    }
    return found;
}
