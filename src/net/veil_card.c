/*
 * Cards and lists of a cohort; see veil.h. Lengths are little-endian:
 *
 *     card    length of the path (2), path, public key (32), length (2) and DER of the certificate, length (2) and
 * signature list    "hfsc", number of cards (4), cards
 */
#define _POSIX_C_SOURCE 200809L
#include "net/veil_parts.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *path;
    size_t n_path, n_certificate, n_signature;
    const unsigned char *public_key, *certificate, *signature;
} card;

static const char mark[4] = {'h', 'f', 's', 'c'};
enum { LIST_HEAD = 8, TEXT_MOST = 2048 };

/* ---- signed text, and input of the keys ---- */

typedef struct {
    unsigned char bytes[TEXT_MOST];
    size_t size;
} text;

static void add_bytes(text *t, const void *bytes, size_t size)
{
    if (size <= sizeof t->bytes - t->size) {
        memcpy(t->bytes + t->size, bytes, size);
        t->size += size;
    }
}

static text text_of(const char *purpose, uint64_t run)
{
    unsigned char number[8];
    text t = {.size = 0};
    put64(number, run);
    add_bytes(&t, purpose, strlen(purpose) + 1);
    add_bytes(&t, number, sizeof number);
    return t;
}

static text signed_text(const veil *v, const card *c)
{
    text t = text_of("hfsad cohort card 1", v->run);
    add_bytes(&t, c->path, c->n_path);
    add_bytes(&t, "", 1);
    add_bytes(&t, c->public_key, VEIL_KEY);
    return t;
}

/* ---- reading ---- */

static size_t get16(const unsigned char *at)
{
    return (size_t)at[0] | (size_t)at[1] << 8;
}

static bool read_part(const unsigned char **at, size_t *left, const unsigned char **part, size_t *size)
{
    if (*left < 2 || get16(*at) > *left - 2)
        return false;
    *size = get16(*at);
    *part = *at + 2;
    *at += 2 + *size;
    *left -= 2 + *size;
    return true;
}

static bool read_card(const unsigned char **at, size_t *left, card *c)
{
    const unsigned char *path;
    if (!read_part(at, left, &path, &c->n_path) || *left < VEIL_KEY)
        return false;
    c->path = (const char *)path;
    c->public_key = *at;
    *at += VEIL_KEY;
    *left -= VEIL_KEY;
    return read_part(at, left, &c->certificate, &c->n_certificate) &&
           read_part(at, left, &c->signature, &c->n_signature);
}

static X509 *certificate_of(const card *c)
{
    const unsigned char *der = c->certificate;
    return c->n_certificate ? d2i_X509(NULL, &der, (long)c->n_certificate) : NULL;
}

static bool is_named(X509 *certificate, const card *c)
{
    char name[300];
    const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
    return length >= 0 && (size_t)length == c->n_path && memcmp(name, c->path, c->n_path) == 0;
}

/* Whether the authority vouches for the owner of the path, and its owner for the key. */
static bool is_genuine(const veil *v, const card *c)
{
    const text t = signed_text(v, c);
    X509 *certificate = certificate_of(c);
    X509_STORE_CTX *chain = X509_STORE_CTX_new();
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    const bool good = certificate && chain && hash && is_named(certificate, c) &&
                      X509_STORE_CTX_init(chain, v->authority, certificate, NULL) == 1 &&
                      X509_verify_cert(chain) == 1 &&
                      EVP_DigestVerifyInit(hash, NULL, EVP_sha256(), NULL, X509_get0_pubkey(certificate)) == 1 &&
                      EVP_DigestVerify(hash, c->signature, c->n_signature, t.bytes, t.size) == 1;
    EVP_MD_CTX_free(hash);
    X509_STORE_CTX_free(chain);
    X509_free(certificate);
    ERR_clear_error();
    return good;
}

/* ---- a list ---- */

unsigned char *veil_make_list(const unsigned char *const *cards, const size_t *sizes, size_t count, size_t *size)
{
    *size = LIST_HEAD;
    for (size_t i = 0; i < count; i++)
        *size += sizes[i];
    unsigned char *list = alloc_raw(*size, 1), *at = list + LIST_HEAD;
    if (!list)
        return NULL;
    memcpy(list, mark, sizeof mark);
    put32(list + sizeof mark, (uint32_t)count);
    for (size_t i = 0; i < count; at += sizes[i++])
        memcpy(at, cards[i], sizes[i]);
    return list;
}

static bool refuse_card(char why[VEIL_WHY], const char *what, const char *path)
{
    snprintf(why, VEIL_WHY, "%s%.150s", what, path);
    return false;
}

/* Finds the cards of the cohort's members, each once; index: of each in the list. */
static bool find_cards(const veil_member *m, const unsigned char *list, size_t size, card *found, size_t *index,
                       char why[VEIL_WHY])
{
    const unsigned char *at = list + LIST_HEAD;
    if (size < LIST_HEAD || memcmp(list, mark, sizeof mark) != 0)
        return refuse_card(why, "it is not a list of a cohort", "");
    size_t left = size - LIST_HEAD;
    const size_t count = get32(list + sizeof mark);
    for (size_t i = 0; i < count; i++) {
        card c;
        if (!read_card(&at, &left, &c))
            return refuse_card(why, "it is cut off", "");
        for (size_t n = 0; n < m->count; n++) {
            if (strlen(m->names[n]) != c.n_path || memcmp(m->names[n], c.path, c.n_path) != 0)
                continue;
            if (found[n].path)
                return refuse_card(why, "listed twice: ", m->names[n]);
            found[n] = c;
            index[n] = i;
        }
    }
    if (left)
        return refuse_card(why, "it is longer than it says", "");
    for (size_t n = 0; n < m->count; n++)
        if (!found[n].path)
            return refuse_card(why, "it lacks a member of the cohort: ", m->names[n]);
    return true;
}

/* Nodes of one process are in the same list: a card is verified once. */
static void remember_list(veil *v, const unsigned char *list, size_t size)
{
    unsigned char digest[VEIL_KEY];
    unsigned made;
    const bool hashed = EVP_Digest(list, size, digest, &made, EVP_sha256(), NULL) == 1;
    if (v->good && hashed && memcmp(digest, v->good_of, sizeof digest) == 0)
        return;
    free(v->good);
    v->good = hashed ? alloc_zero(get32(list + sizeof mark), sizeof *v->good) : NULL;
    memcpy(v->good_of, digest, sizeof digest);
}

static bool check_cards(const veil_member *m, const card *found, const size_t *index, bool known, char why[VEIL_WHY])
{
    const veil *v = m->v;
    if (memcmp(found[m->own].public_key, m->public_key, VEIL_KEY) != 0)
        return refuse_card(why, "it has another key of this node: ", m->names[m->own]);
    for (size_t a = 0; a < m->count; a++)
        for (size_t b = 0; b < a; b++)
            if (memcmp(found[a].public_key, found[b].public_key, VEIL_KEY) == 0)
                return refuse_card(why, "two members have the same key: ", m->names[a]);
    if (!v->authority || known)
        return true;
    for (size_t n = 0; n < m->count; n++) {
        if (v->good && v->good[index[n]])
            continue;
        if (!is_genuine(v, &found[n]))
            return refuse_card(why, "the authority does not vouch for the key of ", m->names[n]);
        if (v->good)
            v->good[index[n]] = true;
    }
    return true;
}

/* The key of a node of this process. */
static EVP_PKEY *key_of(const veil *v, const char *name, unsigned char public_key[VEIL_KEY])
{
    unsigned char secret[VEIL_KEY];
    size_t size = VEIL_KEY;
    unsigned made;
    text t = text_of("hfsad cohort key 1", v->run);
    add_bytes(&t, name, strlen(name) + 1);
    const bool good = HMAC(EVP_sha256(), v->secret, VEIL_KEY, t.bytes, t.size, secret, &made) != NULL;
    EVP_PKEY *key = good ? EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, VEIL_KEY) : NULL;
    OPENSSL_cleanse(secret, sizeof secret);
    if (key && EVP_PKEY_get_raw_public_key(key, public_key, &size) == 1)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

/* Whether the other has a key that only this process can have made. */
static bool is_inside(const veil_member *m, const card *other, size_t j)
{
    unsigned char own[VEIL_KEY];
    EVP_PKEY *key = key_of(m->v, m->names[j], own);
    const bool same = key && memcmp(own, other->public_key, VEIL_KEY) == 0;
    EVP_PKEY_free(key);
    return same;
}

/* The key of a pair, from X25519 and everything that it depends on. */
static bool make_pair(veil_member *m, const card *found, size_t j)
{
    const size_t low = j < m->own ? j : m->own, high = j < m->own ? m->own : j;
    unsigned char shared[VEIL_KEY];
    size_t size = sizeof shared;
    unsigned made;
    EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, found[j].public_key, VEIL_KEY);
    EVP_PKEY_CTX *derive = EVP_PKEY_CTX_new(m->key, NULL);
    text t = text_of("hfsad cohort pair 2", m->v->run);
    add_bytes(&t, m->names[low], strlen(m->names[low]) + 1);
    add_bytes(&t, m->names[high], strlen(m->names[high]) + 1);
    add_bytes(&t, found[low].public_key, VEIL_KEY);
    add_bytes(&t, found[high].public_key, VEIL_KEY);
    /* OpenSSL refuses a shared secret of zeros, which keys of small order give */
    const bool good = other && derive && EVP_PKEY_derive_init(derive) == 1 &&
                      EVP_PKEY_derive_set_peer(derive, other) == 1 && EVP_PKEY_derive(derive, shared, &size) == 1 &&
                      HMAC(EVP_sha256(), shared, (int)size, t.bytes, t.size, m->pairs[j].key, &made);
    OPENSSL_cleanse(shared, sizeof shared);
    EVP_PKEY_CTX_free(derive);
    EVP_PKEY_free(other);
    ERR_clear_error();
    return good;
}

static void close_pairs(veil_member *m)
{
    for (size_t j = 0; j < m->count; j++) { /* OpenSSL wipes the keys */
        EVP_CIPHER_CTX_free(m->pairs[j].cipher);
        m->pairs[j].cipher = NULL;
    }
}

/*
 * With which members it shares masks: with all of other processes. Members of one process have no secrets from each
 * other, so a chain of them is enough: of any part of the cohort, a mask between two neighbours of the chain, or with
 * another process, does not cancel.
 */
bool veil_open_pairs(veil_member *m)
{
    bool good = true;
    size_t below = m->count, above = m->count;
    for (size_t j = 0; j < m->count; j++) {
        if (!m->pairs[j].inside || m->pairs[j].gone)
            continue;
        if (j < m->own)
            below = j;
        else if (above == m->count)
            above = j;
    }
    close_pairs(m);
    for (size_t j = 0; j < m->count && good; j++) {
        veil_pair *p = &m->pairs[j];
        if (j == m->own || p->gone || (p->inside && j != below && j != above))
            continue;
        p->cipher = EVP_CIPHER_CTX_new();
        good = p->cipher && EVP_EncryptInit_ex(p->cipher, EVP_aes_256_ecb(), NULL, p->key, NULL) == 1 &&
               EVP_CIPHER_CTX_set_padding(p->cipher, 0) == 1;
    }
    return good;
}

/* known: it was verified when it was kept. */
static bool use_list(veil_member *m, const unsigned char *list, size_t size, bool known, char why[VEIL_WHY])
{
    card *found = alloc_zero(m->count, sizeof *found);
    size_t *index = alloc_zero(m->count, sizeof *index);
    bool good = found && index;
    if (!good)
        (void)refuse_card(why, "no memory", "");
    good = good && find_cards(m, list, size, found, index, why);
    if (good)
        remember_list(m->v, list, size);
    good = good && check_cards(m, found, index, known, why);
    for (size_t j = 0; j < m->count && good; j++) {
        m->pairs[j].inside = j != m->own && is_inside(m, &found[j], j);
        if (j != m->own && !make_pair(m, found, j))
            good = refuse_card(why, "not a usable key: ", m->names[j]);
    }
    if (good && !veil_open_pairs(m))
        good = refuse_card(why, "no memory", "");
    free(found);
    free(index);
    return good;
}

bool veil_take_list(veil_member *m, const unsigned char *list, size_t size, char why[VEIL_WHY])
{
    const veil *v = m->v;
    if (v->list && (size != v->list_size || memcmp(list, v->list, size) != 0))
        return refuse_card(why, "it differs from the list that this node has accepted before", "");
    if (m->ready)
        return true;
    if (!use_list(m, list, size, false, why))
        return false;
    m->ready = veil_keep_list(m->v, list, size, why);
    return m->ready;
}

/* ---- a node ---- */

hfsad_status veil_take_authority(veil *v, const char *ca, hfsad_error *err)
{
    v->authority = X509_STORE_new();
    BIO *file = BIO_new_file(ca, "r");
    v->ca = file ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;
    BIO_free(file);
    const bool good = v->authority && v->ca && X509_STORE_load_file(v->authority, ca) == 1;
    ERR_clear_error();
    return good ? HFSAD_OK
                : error_set(err, HFSAD_ERROR_INPUT,
                            "%.300s is not the certificate of an authority; give that of `hfsad "
                            "keys`",
                            ca);
}

static void put_part(unsigned char **at, const void *bytes, size_t size)
{
    (*at)[0] = (unsigned char)size;
    (*at)[1] = (unsigned char)(size >> 8);
    memcpy(*at + 2, bytes, size);
    *at += 2 + size;
}

static int no_phrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer, (void)size, (void)writing, (void)context;
    return -1;
}

/* The certificate as DER, and the signature over the card. */
static bool sign(const veil_member *m, const veil_place *place, const card *c, unsigned char **der, int *n_der,
                 unsigned char *signature, size_t *n_signature)
{
    const text t = signed_text(m->v, c);
    BIO *public = BIO_new_file(place->certificate, "r"), *private = BIO_new_file(place->key, "r");
    X509 *certificate = public ? PEM_read_bio_X509(public, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = private ? PEM_read_bio_PrivateKey(private, NULL, no_phrase, NULL) : NULL;
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    const bool good = certificate && key && hash && (*n_der = i2d_X509(certificate, der)) > 0 &&
                      EVP_DigestSignInit(hash, NULL, EVP_sha256(), NULL, key) == 1 &&
                      EVP_DigestSign(hash, signature, n_signature, t.bytes, t.size) == 1;
    EVP_MD_CTX_free(hash);
    EVP_PKEY_free(key);
    X509_free(certificate);
    BIO_free(private);
    BIO_free(public);
    ERR_clear_error();
    return good;
}

static hfsad_status make_card(veil_member *m, const veil_place *place, hfsad_error *err)
{
    const card c = {.path = m->names[m->own], .n_path = strlen(m->names[m->own]), .public_key = m->public_key};
    unsigned char signature[1024], *der = NULL;
    size_t n_signature = sizeof signature;
    int n_der = 0;
    if (m->v->authority && !sign(m, place, &c, &der, &n_der, signature, &n_signature))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.200s: its certificate's key cannot sign the key for its cohort; check the files of "
                         "certificate and key",
                         c.path);
    if (!m->v->authority)
        n_signature = 0;
    m->card_size = 6 + c.n_path + VEIL_KEY + (size_t)n_der + n_signature;
    m->card = m->card_size <= VEIL_CARD_MOST ? alloc_raw(m->card_size, 1) : NULL;
    if (m->card) {
        unsigned char *at = m->card;
        put_part(&at, c.path, c.n_path);
        memcpy(at, m->public_key, VEIL_KEY);
        at += VEIL_KEY;
        put_part(&at, der ? der : m->public_key, (size_t)n_der);
        put_part(&at, signature, n_signature);
    }
    OPENSSL_free(der);
    return m->card ? HFSAD_OK : error_set(err, HFSAD_ERROR_INPUT, "%.200s: its certificate is too large", c.path);
}

hfsad_status veil_join(veil *v, veil_member **out, const veil_place *place, hfsad_error *err)
{
    char why[VEIL_WHY];
    veil_member *m = alloc_zero(1, sizeof *m);
    *out = NULL;
    if (m) {
        m->v = v;
        m->own = place->own;
        m->least = place->least;
        m->names = alloc_zero(place->count, sizeof *m->names);
        m->pairs = alloc_zero(place->count, sizeof *m->pairs);
        for (; m->names && m->count < place->count; m->count++)
            if (!(m->names[m->count] = strdup(place->names[m->count])))
                break;
    }
    if (m && m->count == place->count)
        m->key = key_of(v, m->names[m->own], m->public_key);
    hfsad_status status =
        !m || !m->key || !m->pairs ? error_memory(err, sizeof *m, "the keys of a cohort") : make_card(m, place, err);
    if (!status)
        veil_recall_gone(m);
    if (!status && v->list)
        m->ready = use_list(m, v->list, v->list_size, true, why);
    if (!status && v->list && !m->ready)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.200s: the list of its cohort in the state folder cannot be used: %.200s; use a new state "
                           "folder for all nodes",
                           m->names[m->own], why);
    if (status)
        veil_leave(m);
    else
        *out = m;
    return status;
}

void veil_leave(veil_member *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->names && i < m->count; i++)
        free(m->names[i]);
    if (m->pairs) {
        close_pairs(m);
        OPENSSL_cleanse(m->pairs, m->count * sizeof *m->pairs);
    }
    EVP_PKEY_free(m->key);
    free(m->names);
    free(m->pairs);
    free(m->card);
    free(m);
}

const unsigned char *veil_card(const veil_member *m, size_t *size)
{
    *size = m->card_size;
    return m->card;
}
