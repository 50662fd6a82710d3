/* Certificates; see certificate.h. What each may be used for is written into it: a node cannot pose as the broker. */
#include "net/certificate.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIAL_BITS = 127, SAN_SIZE = 8192 };
/* Clocks of small devices go wrong; a certificate holds from an hour ago on. */
static const long before_s = -3600;

struct certificate_authority {
    X509 *certificate;
    EVP_PKEY *key;
};

static hfsad_status failed(hfsad_error *err, const char *what)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    error_set(err, HFSAD_ERROR_IO, "OpenSSL could not %s: %s", what, text ? text : "no reason given");
    ERR_clear_error();
    return HFSAD_ERROR_IO;
}

void certificate_authority_free(certificate_authority *a)
{
    if (!a)
        return;
    X509_free(a->certificate);
    EVP_PKEY_free(a->key);
    free(a);
}

void certificate_pair_free(certificate_pair *p)
{
    if (p->key)
        explicit_bzero(p->key, p->key_length);
    free(p->key);
    free(p->certificate);
    *p = (certificate_pair){0};
}

static bool add_extension(X509 *c, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, c, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    const bool good = e && X509_add_ext(c, e, -1);
    X509_EXTENSION_free(e);
    return good;
}

/* Random, so that no counter has to be stored. */
static bool set_serial(X509 *c)
{
    BIGNUM *n = BN_new();
    const bool good = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
                      BN_to_ASN1_INTEGER(n, X509_get_serialNumber(c));
    BN_free(n);
    return good;
}

static bool set_times(X509 *c, int days)
{
    return X509_gmtime_adj(X509_getm_notBefore(c), before_s) && X509_time_adj_ex(X509_getm_notAfter(c), days, 0, NULL);
}

/* All but the extensions and the signature; issuer NULL: itself. */
static X509 *new_certificate(const char *name, EVP_PKEY *key, X509 *issuer, int days)
{
    X509 *c = X509_new();
    if (!c)
        return NULL;
    X509_NAME *subject = X509_get_subject_name(c);
    const bool good =
        X509_set_version(c, X509_VERSION_3) && set_serial(c) && set_times(c, days) &&
        X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) &&
        X509_set_issuer_name(c, issuer ? X509_get_subject_name(issuer) : subject) && X509_set_pubkey(c, key);
    if (good)
        return c;
    X509_free(c);
    return NULL;
}

static char *text_of(BIO *bio, size_t *length)
{
    const char *bytes;
    const long n = BIO_get_mem_data(bio, &bytes);
    char *text = n > 0 ? malloc((size_t)n) : NULL;
    if (text)
        memcpy(text, bytes, (size_t)n);
    *length = text ? (size_t)n : 0;
    return text;
}

static bool to_texts(X509 *c, EVP_PKEY *key, certificate_pair *pair)
{
    BIO *public = BIO_new(BIO_s_mem()), *private = BIO_new(BIO_s_secmem());
    *pair = (certificate_pair){0};
    if (public && private && PEM_write_bio_X509(public, c) &&
        PEM_write_bio_PKCS8PrivateKey(private, key, NULL, NULL, 0, NULL, NULL)) {
        pair->certificate = text_of(public, &pair->certificate_length);
        pair->key = text_of(private, &pair->key_length);
    }
    BIO_free(public);
    BIO_free(private);
    if (pair->certificate && pair->key)
        return true;
    certificate_pair_free(pair);
    return false;
}

hfsad_status certificate_make_authority(certificate_authority **out, int days, certificate_pair *pair, hfsad_error *err)
{
    certificate_authority *a = calloc(1, sizeof *a);
    *out = a;
    if (!a)
        return error_memory(err, sizeof *a, "an authority");
    a->key = EVP_EC_gen("P-256");
    X509 *c = a->certificate = a->key ? new_certificate("hfsad authority", a->key, NULL, days) : NULL;
    if (c && add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        add_extension(c, c, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        add_extension(c, c, NID_subject_key_identifier, "hash") && X509_sign(c, a->key, EVP_sha256()) &&
        to_texts(c, a->key, pair))
        return HFSAD_OK;
    certificate_authority_free(a);
    *out = NULL;
    return failed(err, "create an authority");
}

static hfsad_status make_signed(const certificate_authority *a, const char *name, const char *purpose,
                                const char *hosts, int days, certificate_pair *pair, hfsad_error *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *c = key ? new_certificate(name, key, a->certificate, days) : NULL;
    const bool good = c && add_extension(c, a->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
                      add_extension(c, a->certificate, NID_key_usage, "critical,digitalSignature") &&
                      add_extension(c, a->certificate, NID_ext_key_usage, purpose) &&
                      add_extension(c, a->certificate, NID_subject_key_identifier, "hash") &&
                      add_extension(c, a->certificate, NID_authority_key_identifier, "keyid:always") &&
                      (!hosts || add_extension(c, a->certificate, NID_subject_alt_name, hosts)) &&
                      X509_sign(c, a->key, EVP_sha256()) && to_texts(c, key, pair);
    X509_free(c);
    EVP_PKEY_free(key);
    return good ? HFSAD_OK : failed(err, "make a certificate");
}

static bool is_address(const char *host)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

hfsad_status certificate_make_broker(const certificate_authority *a, const char *const *hosts, size_t n_hosts,
                                     bool clustered, int days, certificate_pair *pair, hfsad_error *err)
{
    char names[SAN_SIZE] = "DNS:localhost,IP:127.0.0.1,IP:::1";
    for (size_t i = 0; i < n_hosts; i++) {
        const size_t used = strlen(names), length = strlen(hosts[i]);
        /* The text is a list of kind:value; a comma in a name would add an entry. */
        if (length == 0 || length > 253 ||
            strspn(hosts[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:*") != length ||
            (strchr(hosts[i], ':') && !is_address(hosts[i])))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "'%.100s' is not a host name or address; give for example broker.example.org or 10.0.0.1",
                             hosts[i]);
        if (used + length + 6 > sizeof names)
            return error_set(err, HFSAD_ERROR_INPUT, "the names of the broker have more than %d bytes in all",
                             SAN_SIZE);
        snprintf(names + used, sizeof names - used, ",%s:%s", is_address(hosts[i]) ? "IP" : "DNS", hosts[i]);
    }
    return make_signed(a, "hfsad broker", clustered ? "serverAuth,clientAuth" : "serverAuth", names, days, pair, err);
}

hfsad_status certificate_make_node(const certificate_authority *a, const char *name, int days, certificate_pair *pair,
                                   hfsad_error *err)
{
    return make_signed(a, name, "clientAuth", NULL, days, pair, err);
}

hfsad_status certificate_authority_read(certificate_authority **out, const char *certificate, const char *key,
                                        const char *dir, hfsad_error *err)
{
    certificate_authority *a = calloc(1, sizeof *a);
    BIO *public = BIO_new_mem_buf(certificate, -1), *private = BIO_new_mem_buf(key, -1);
    *out = NULL;
    if (a && public && private) {
        a->certificate = PEM_read_bio_X509(public, NULL, NULL, NULL);
        a->key = PEM_read_bio_PrivateKey(private, NULL, NULL, NULL);
    }
    BIO_free(public);
    BIO_free(private);
    if (a && a->certificate && a->key && X509_check_private_key(a->certificate, a->key)) {
        *out = a;
        return HFSAD_OK;
    }
    certificate_authority_free(a);
    ERR_clear_error();
    return error_set(
        err, HFSAD_ERROR_INPUT,
        "%.300s: ca.crt and ca.key are not the certificate and key of an authority; hfsad keys init creates them", dir);
}

/* ---- revocation ---- */

static X509_CRL *read_list(const certificate_authority *a, const char *text)
{
    BIO *bio = BIO_new_mem_buf(text, -1);
    X509_CRL *list = bio ? PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    if (list && X509_CRL_verify(list, a->key) == 1)
        return list;
    X509_CRL_free(list);
    return NULL;
}

static X509_CRL *new_list(const certificate_authority *a)
{
    enum { VERSION_2 = 1 };
    X509_CRL *list = X509_CRL_new();
    if (list && X509_CRL_set_version(list, VERSION_2) &&
        X509_CRL_set_issuer_name(list, X509_get_subject_name(a->certificate)))
        return list;
    X509_CRL_free(list);
    return NULL;
}

static X509 *read_certificate(const char *text)
{
    BIO *bio = BIO_new_mem_buf(text, -1);
    X509 *c = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    return c;
}

bool certificate_is_of(const certificate_authority *a, const char *text)
{
    X509 *c = read_certificate(text);
    const bool good = c && X509_verify(c, a->key) == 1;
    X509_free(c);
    ERR_clear_error();
    return good;
}

/* false: not a certificate of this authority, or no memory. One that is there already is left as it is. */
static bool revoke(const certificate_authority *a, X509_CRL *list, const char *text)
{
    X509 *c = read_certificate(text);
    X509_REVOKED *entry = NULL, *found = NULL;
    ASN1_TIME *now = X509_gmtime_adj(NULL, before_s);
    bool good = c && now && X509_verify(c, a->key) == 1;
    if (good && X509_CRL_get0_by_serial(list, &found, X509_get_serialNumber(c)) == 0) {
        entry = X509_REVOKED_new();
        good = entry && X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(c)) &&
               X509_REVOKED_set_revocationDate(entry, now) && X509_CRL_add0_revoked(list, entry);
        if (!good)
            X509_REVOKED_free(entry);
    }
    ASN1_TIME_free(now);
    X509_free(c);
    return good;
}

/* A broker refuses all nodes if its list has expired, so the list never expires. */
static bool sign_list(const certificate_authority *a, X509_CRL *list, char **text, size_t *length)
{
    enum { DAYS = 36500 };
    ASN1_TIME *from = X509_gmtime_adj(NULL, before_s), *until = X509_time_adj_ex(NULL, DAYS, 0, NULL);
    BIO *bio = BIO_new(BIO_s_mem());
    const bool good = from && until && bio && X509_CRL_set1_lastUpdate(list, from) &&
                      X509_CRL_set1_nextUpdate(list, until) && X509_CRL_sort(list) &&
                      X509_CRL_sign(list, a->key, EVP_sha256()) && PEM_write_bio_X509_CRL(bio, list);
    *text = good ? text_of(bio, length) : NULL;
    ASN1_TIME_free(from);
    ASN1_TIME_free(until);
    BIO_free(bio);
    return *text != NULL;
}

hfsad_status certificate_make_list(const certificate_authority *a, const char *old, const char *const *certificates,
                                   size_t count, const char *name, char **text, size_t *length, hfsad_error *err)
{
    *text = NULL;
    *length = 0;
    X509_CRL *list = old ? read_list(a, old) : new_list(a);
    bool good = list != NULL;
    for (size_t i = 0; good && i < count; i++)
        good = revoke(a, list, certificates[i]);
    if (!good && (old || count)) {
        X509_CRL_free(list);
        ERR_clear_error();
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s was not issued by this authority", name);
    }
    good = good && sign_list(a, list, text, length);
    X509_CRL_free(list);
    return good ? HFSAD_OK : failed(err, "create a list of revoked certificates");
}

/* ---- a node's own ---- */

/* There is no terminal to ask for a pass phrase. */
static int no_phrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer, (void)size, (void)writing, (void)context;
    return -1;
}

hfsad_status certificate_check_node(const char *name, const char *certificate, const char *key, hfsad_error *err)
{
    char common[200] = "";
    BIO *public = BIO_new_file(certificate, "r"), *private = BIO_new_file(key, "r");
    X509 *c = public ? PEM_read_bio_X509(public, NULL, NULL, NULL) : NULL;
    EVP_PKEY *k = private ? PEM_read_bio_PrivateKey(private, NULL, no_phrase, NULL) : NULL;
    hfsad_status status = HFSAD_OK;
    if (c)
        X509_NAME_get_text_by_NID(X509_get_subject_name(c), NID_commonName, common, sizeof common);
    if (c && strcmp(common, name) != 0)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.300s is the certificate of '%.60s', not of '%.60s': give the certificate of that node, "
                           "created by `hfsad keys issue`",
                           certificate, common, name);
    else if (c && k && !X509_check_private_key(c, k))
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.300s is not the key of the certificate %.300s: give a matching pair", key, certificate);
    else if (c && X509_cmp_current_time(X509_get0_notBefore(c)) > 0)
        status = error_set(err, HFSAD_ERROR_IO,
                           "%.300s is not valid yet: the clock of this machine is before the certificate's start; set "
                           "the clock",
                           certificate);
    else if (c && X509_cmp_current_time(X509_get0_notAfter(c)) < 0)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.300s has expired: issue a new certificate, or set the clock "
                           "of this machine",
                           certificate);
    EVP_PKEY_free(k);
    X509_free(c);
    BIO_free(private);
    BIO_free(public);
    ERR_clear_error();
    return status;
}
