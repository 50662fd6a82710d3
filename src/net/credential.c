/*
 * See credential.h. A hello, all numbers little-endian:
 *
 *      0  mark "hfsh"   4  version   5  zeros (3)   8  X25519 public key (32)
 *     40  length of the certificate (2)   42  length of the signature (2)   44  certificate (DER), then the signature
 *
 * The signature is of "hfsad hello 1", the name of the run, the path, each with a line feed, and the public key.
 */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "net/credential.h"

#include "base/alloc.h"
#include "base/error.h"
#include "net/topic.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VERSION = 1,
    AT_VERSION = 4,
    AT_PUBLIC = 8,
    AT_CERTIFICATE = 40,
    AT_SIGNATURE = 42,
    HEAD = 44,
    SIGNED_MOST = 64 + TOPIC_RUN_MAX + TOPIC_MAX + CREDENTIAL_PUBLIC,
};
static const char mark[4] = {'h', 'f', 's', 'h'};

struct credential {
    X509_STORE *authority;
    EVP_PKEY *key; /* X25519, of this process */
    unsigned char public_key[CREDENTIAL_PUBLIC];
    char run[TOPIC_RUN_MAX];
    unsigned char *hello;
    size_t hello_size;
    seal_key own;
};

static size_t length_at(const unsigned char *at)
{
    return (size_t)at[0] | (size_t)at[1] << 8;
}

static void put_length(unsigned char *at, size_t length)
{
    at[0] = (unsigned char)length;
    at[1] = (unsigned char)(length >> 8);
}

/* Keys of these kinds have their digest built in. */
static const EVP_MD *digest_for(EVP_PKEY *key)
{
    return EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448") ? NULL : EVP_sha256();
}

static size_t signed_text(unsigned char text[SIGNED_MOST], const char *run, const char *path,
                          const unsigned char public_key[CREDENTIAL_PUBLIC])
{
    const size_t words =
        (size_t)snprintf((char *)text, SIGNED_MOST - CREDENTIAL_PUBLIC, "hfsad hello 1\n%.63s\n%.1023s\n", run, path);
    memcpy(text + words, public_key, CREDENTIAL_PUBLIC);
    return words + CREDENTIAL_PUBLIC;
}

/* ---- its own ---- */

static int no_phrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer, (void)size, (void)writing, (void)context;
    return 0;
}

static X509_STORE *read_authority(const credential_files *files)
{
    X509_STORE *all = X509_STORE_new();
    bool good = all && X509_STORE_load_file(all, files->ca);
    if (good && files->revoked && access(files->revoked, R_OK) == 0)
        good = X509_STORE_load_file(all, files->revoked) && X509_STORE_set_flags(all, X509_V_FLAG_CRL_CHECK);
    if (good)
        return all;
    X509_STORE_free(all);
    return NULL;
}

/* Another process of this node has the same key: its tags on a node's messages to itself are valid. */
static bool derive_own(credential *c, EVP_PKEY *key, const char *path)
{
    unsigned char *bytes = NULL;
    seal_key extracted;
    const int size = i2d_PrivateKey(key, &bytes);
    if (size <= 0)
        return false;
    seal_extract(&extracted, bytes, (size_t)size);
    seal_expand(&extracted, &(seal_use){.purpose = "own", .run = c->run, .parent = "", .child = path}, &c->own);
    OPENSSL_clear_free(bytes, (size_t)size);
    explicit_bzero(&extracted, sizeof extracted);
    return true;
}

static bool make_hello(credential *c, X509 *certificate, EVP_PKEY *key, const char *path)
{
    unsigned char text[SIGNED_MOST], *der = NULL;
    const int n_der = i2d_X509(certificate, &der);
    const size_t length = signed_text(text, c->run, path, c->public_key), room = (size_t)EVP_PKEY_get_size(key);
    size_t n_signature = room;
    EVP_MD_CTX *signer = EVP_MD_CTX_new();
    bool good = n_der > 0 && signer && room > 0 && HEAD + (size_t)n_der + room <= CREDENTIAL_HELLO_MOST &&
                (c->hello = alloc_zero(HEAD + (size_t)n_der + room, 1));
    if (good) {
        unsigned char *signature = c->hello + HEAD + n_der;
        memcpy(c->hello, mark, sizeof mark);
        c->hello[AT_VERSION] = VERSION;
        memcpy(c->hello + AT_PUBLIC, c->public_key, CREDENTIAL_PUBLIC);
        memcpy(c->hello + HEAD, der, (size_t)n_der);
        good = EVP_DigestSignInit(signer, NULL, digest_for(key), NULL, key) == 1 &&
               EVP_DigestSign(signer, signature, &n_signature, text, length) == 1;
        put_length(c->hello + AT_CERTIFICATE, (size_t)n_der);
        put_length(c->hello + AT_SIGNATURE, n_signature);
        c->hello_size = HEAD + (size_t)n_der + n_signature;
    }
    EVP_MD_CTX_free(signer);
    OPENSSL_free(der);
    return good;
}

hfsad_status credential_create(credential **out, const credential_files *files, const char *run, const char *path,
                               hfsad_error *err)
{
    credential *c = alloc_zero(1, sizeof *c);
    BIO *public = BIO_new_file(files->certificate, "r"), *private = BIO_new_file(files->key, "r");
    X509 *certificate = public ? PEM_read_bio_X509(public, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = private ? PEM_read_bio_PrivateKey(private, NULL, no_phrase, NULL) : NULL;
    size_t n_public = CREDENTIAL_PUBLIC;
    bool good = c && certificate && key;
    if (good) {
        snprintf(c->run, sizeof c->run, "%.63s", run);
        c->authority = read_authority(files);
        c->key = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
        good = c->authority && c->key && EVP_PKEY_get_raw_public_key(c->key, c->public_key, &n_public) &&
               make_hello(c, certificate, key, path) && derive_own(c, key, path);
    }
    BIO_free(public);
    BIO_free(private);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ERR_clear_error();
    *out = c;
    if (good)
        return HFSAD_OK;
    credential_free(c);
    *out = NULL;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%.100s: no keys for its messages from %.200s, %.200s and %.200s: give the files of `hfsad keys`",
                     path, files->certificate, files->key, files->ca);
}

void credential_free(credential *c)
{
    if (!c)
        return;
    X509_STORE_free(c->authority);
    EVP_PKEY_free(c->key);
    free(c->hello);
    explicit_bzero(c, sizeof *c);
    free(c);
}

const unsigned char *credential_hello(const credential *c, size_t *size)
{
    *size = c->hello_size;
    return c->hello;
}

const seal_key *credential_own(const credential *c)
{
    return &c->own;
}

const unsigned char *credential_public(const credential *c)
{
    return c->public_key;
}

/* ---- a neighbour's ---- */

size_t credential_read(const void *bytes, size_t size, unsigned char public_key[CREDENTIAL_PUBLIC])
{
    const unsigned char *from = bytes;
    if (size < HEAD || memcmp(from, mark, sizeof mark) != 0 || from[AT_VERSION] != VERSION ||
        (from[5] | from[6] | from[7]) != 0)
        return 0;
    const size_t length = HEAD + length_at(from + AT_CERTIFICATE) + length_at(from + AT_SIGNATURE);
    if (length > size || length > CREDENTIAL_HELLO_MOST)
        return 0;
    memcpy(public_key, from + AT_PUBLIC, CREDENTIAL_PUBLIC);
    return length;
}

/* Why a certificate does not count; NULL: it does. */
static const char *fault_of(const credential *c, X509 *certificate, const char *path)
{
    char name[TOPIC_MAX] = "";
    const char *why = "its certificate cannot be checked";
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
    if (check && X509_STORE_CTX_init(check, c->authority, certificate, NULL) &&
        X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_CLIENT)) {
        if (X509_verify_cert(check) != 1)
            why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(check));
        else
            why = length == (int)strlen(path) && strcmp(name, path) == 0 ? NULL : "its certificate is of another node";
    }
    X509_STORE_CTX_free(check);
    return why;
}

static bool is_signed(const credential *c, X509 *certificate, const char *path, const unsigned char *hello)
{
    unsigned char text[SIGNED_MOST];
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    const size_t length = signed_text(text, c->run, path, hello + AT_PUBLIC);
    EVP_MD_CTX *judge = EVP_MD_CTX_new();
    const bool good = key && judge && EVP_DigestVerifyInit(judge, NULL, digest_for(key), NULL, key) == 1 &&
                      EVP_DigestVerify(judge, hello + HEAD + length_at(hello + AT_CERTIFICATE),
                                       length_at(hello + AT_SIGNATURE), text, length) == 1;
    EVP_MD_CTX_free(judge);
    return good;
}

static bool agree(const credential *c, const unsigned char public_key[CREDENTIAL_PUBLIC], seal_key *shared)
{
    unsigned char secret[CREDENTIAL_PUBLIC];
    size_t size = sizeof secret;
    EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public_key, CREDENTIAL_PUBLIC);
    EVP_PKEY_CTX *agreement = EVP_PKEY_CTX_new(c->key, NULL);
    /* OpenSSL refuses a public key of small order: the secret would be zero */
    const bool good = other && agreement && EVP_PKEY_derive_init(agreement) == 1 &&
                      EVP_PKEY_derive_set_peer(agreement, other) == 1 &&
                      EVP_PKEY_derive(agreement, secret, &size) == 1 && size == sizeof secret;
    if (good)
        seal_extract(shared, secret, sizeof secret);
    explicit_bzero(secret, sizeof secret);
    EVP_PKEY_CTX_free(agreement);
    EVP_PKEY_free(other);
    return good;
}

bool credential_meet(const credential *c, const char *path, const void *hello, size_t size, seal_key *shared,
                     const char **why)
{
    const unsigned char *bytes = hello, *der = bytes + HEAD;
    unsigned char public_key[CREDENTIAL_PUBLIC];
    *why = "not a hello";
    if (credential_read(bytes, size, public_key) != size)
        return false;
    const size_t n_der = length_at(bytes + AT_CERTIFICATE);
    X509 *certificate = d2i_X509(NULL, &der, (long)n_der);
    if (!certificate || der != bytes + HEAD + n_der)
        *why = "its certificate cannot be read";
    else
        *why = fault_of(c, certificate, path);
    if (!*why && !is_signed(c, certificate, path, bytes))
        *why = "its signature is wrong";
    if (!*why && !agree(c, public_key, shared))
        *why = "its public key cannot be used";
    X509_free(certificate);
    ERR_clear_error();
    return !*why;
}
