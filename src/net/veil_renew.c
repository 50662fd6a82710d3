/*
 * A cohort without a member that is lost for good. The authority signs that the client has left its cohort of this run;
 * the others take it out of their masks. Two sums over cohorts that differ by one client would give that client away,
 * if they were made at the same point. Therefore nothing is said in the new cohort that could have been said in the
 * old one: an UP only after another step, and no answer to any question, because a question has a point of its own.
 *
 *     proof      time in seconds since 1970, a space, the signature in hexadecimal
 *     signed     "hfsad cohort without 1", a zero, run (8 bytes), path, a zero, time (8 bytes)
 *     file       cohort.gone, a line for each: path of this node, floor, path of the other, proof; empty at first
 */
#define _POSIX_C_SOURCE 200809L
#include "net/veil_parts.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define GONE_NAME "cohort.gone"
enum { SIGNATURE_MOST = 80, LINE_MOST = 1200, GONE_MOST = 1 << 24, SIGNED_MOST = 512 };

/* ---- the proof ---- */

static size_t signed_bytes(uint64_t run, const char *path, uint64_t when, unsigned char to[SIGNED_MOST])
{
    static const char purpose[] = "hfsad cohort without 1";
    const size_t length = strlen(path);
    size_t size = sizeof purpose + 8;
    if (length > SIGNED_MOST - sizeof purpose - 17)
        return 0;
    memcpy(to, purpose, sizeof purpose);
    put64(to + sizeof purpose, run);
    memcpy(to + size, path, length + 1);
    size += length + 1;
    put64(to + size, when);
    return size + 8;
}

hfsad_status veil_prove_gone(const char *ca_key, uint64_t run, const char *path, char proof[VEIL_PROOF],
                             hfsad_error *err)
{
    unsigned char bytes[SIGNED_MOST], signature[SIGNATURE_MOST * 8];
    const uint64_t when = (uint64_t)time(NULL);
    const size_t size = signed_bytes(run, path, when, bytes);
    size_t n_signature = sizeof signature;
    BIO *file = BIO_new_file(ca_key, "r");
    EVP_PKEY *key = file ? PEM_read_bio_PrivateKey(file, NULL, NULL, NULL) : NULL;
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    const bool good = size && key && hash && EVP_DigestSignInit(hash, NULL, EVP_sha256(), NULL, key) == 1 &&
                      EVP_DigestSign(hash, signature, &n_signature, bytes, size) == 1 && n_signature <= SIGNATURE_MOST;
    EVP_MD_CTX_free(hash);
    EVP_PKEY_free(key);
    BIO_free(file);
    ERR_clear_error();
    if (!good)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s cannot sign: give the folder of the authority (hfsad keys init), with its ca.key",
                         ca_key);
    int at = snprintf(proof, VEIL_PROOF, "%llu ", (unsigned long long)when);
    for (size_t i = 0; i < n_signature; i++)
        at += snprintf(proof + at, VEIL_PROOF - (size_t)at, "%02x", signature[i]);
    return HFSAD_OK;
}

static bool read_proof(const char *proof, uint64_t *when, unsigned char signature[SIGNATURE_MOST], size_t *size)
{
    char *end;
    *when = strtoull(proof, &end, 10);
    if (end == proof || *end++ != ' ')
        return false;
    const size_t digits = strspn(end, "0123456789abcdef");
    *size = digits / 2;
    if (end[digits] || digits % 2 || *size > SIGNATURE_MOST)
        return false;
    for (size_t i = 0; i < *size; i++) {
        const char pair[3] = {end[2 * i], end[2 * i + 1], 0};
        signature[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return true;
}

static bool is_proven(const X509 *ca, uint64_t run, const char *path, const char *proof, uint64_t *when)
{
    unsigned char bytes[SIGNED_MOST], signature[SIGNATURE_MOST];
    size_t n_signature;
    if (!read_proof(proof, when, signature, &n_signature))
        return false;
    const size_t size = signed_bytes(run, path, *when, bytes);
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    const bool good = size && ca && hash &&
                      EVP_DigestVerifyInit(hash, NULL, EVP_sha256(), NULL, X509_get0_pubkey(ca)) == 1 &&
                      EVP_DigestVerify(hash, signature, n_signature, bytes, size) == 1;
    EVP_MD_CTX_free(hash);
    ERR_clear_error();
    return good;
}

bool veil_is_proven(const char *ca, uint64_t run, const char *path, const char *proof)
{
    uint64_t when;
    BIO *file = ca ? BIO_new_file(ca, "r") : NULL;
    X509 *certificate = file ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;
    const bool proven = certificate && is_proven(certificate, run, path, proof, &when);
    X509_free(certificate);
    BIO_free(file);
    ERR_clear_error();
    return proven;
}

/* ---- a member ---- */

static size_t find_name(const veil_member *m, const char *path)
{
    size_t j = 0;
    while (j < m->count && strcmp(m->names[j], path) != 0)
        j++;
    return j;
}

/* Another cohort has other masks. They do not depend on the order in which its members learn that others have left. */
static void take_out(veil_member *m, size_t j, uint64_t floor)
{
    m->pairs[j].gone = true;
    m->floor = floor > m->floor ? floor : m->floor;
    m->gone_print = 0;
    for (size_t i = 0; i < m->count; i++) {
        unsigned char before[8 + 300] = {0}, digest[SEAL_DIGEST];
        const size_t length = strnlen(m->names[i], 299);
        if (!m->pairs[i].gone)
            continue;
        put64(before, m->gone_print);
        memcpy(before + 8, m->names[i], length);
        seal_digest(before, 8 + length, digest);
        m->gone_print = get64(digest) | 1;
    }
}

static bool keep(veil_member *m, const char *path, const char *proof, uint64_t floor, char why[VEIL_WHY])
{
    veil *v = m->v;
    hfsad_error err;
    char line[LINE_MOST];
    const int more =
        snprintf(line, sizeof line, "%s\t%llu\t%s\t%s\n", m->names[m->own], (unsigned long long)floor, path, proof);
    const size_t before = v->gone ? strlen(v->gone) : 0, size = before + (size_t)more;
    char *all = (size_t)more < sizeof line ? alloc_raw(size + 1, 1) : NULL;
    if (all) {
        memcpy(all, v->gone ? v->gone : "", before);
        memcpy(all + before, line, (size_t)more + 1);
    }
    if (!all || (v->folder && whole_file_write(v->folder, GONE_NAME, all, size, &err))) {
        snprintf(why, VEIL_WHY, "it cannot be kept: %.200s", all ? err.message : "no memory");
        free(all);
        return false;
    }
    free(v->gone);
    v->gone = all;
    return true;
}

veil_answer veil_renew(veil_member *m, const char *path, const char *proof, uint64_t floor, char why[VEIL_WHY])
{
    const size_t j = find_name(m, path);
    size_t left = 0;
    uint64_t when = 0;
    if (j == m->count)
        return VEIL_ELSEWHERE;
    if (j != m->own && m->pairs[j].gone)
        return VEIL_TAKEN;
    for (size_t i = 0; i < m->count; i++)
        left += !m->pairs[i].gone;
    why[0] = 0;
    if (j == m->own)
        snprintf(why, VEIL_WHY, "it is said to have left itself");
    else if (!m->ready)
        snprintf(why, VEIL_WHY, "it has no list of its cohort yet");
    else if (left <= m->least)
        snprintf(why, VEIL_WHY, "without %.100s its cohort has fewer than %zu members", path, m->least);
    else if (!m->v->ca)
        snprintf(why, VEIL_WHY, "its cohort has no authority that could sign it");
    else if (!is_proven(m->v->ca, m->v->run, path, proof, &when))
        snprintf(why, VEIL_WHY, "the authority has not signed that %.100s has left", path);
    else if (when < m->v->list_since)
        snprintf(why, VEIL_WHY, "it was signed before the list of the cohort was made: for another run");
    if (why[0] || !keep(m, path, proof, floor, why))
        return VEIL_REFUSED;
    take_out(m, j, floor);
    if (veil_open_pairs(m))
        return VEIL_TAKEN;
    snprintf(why, VEIL_WHY, "no memory");
    m->ready = false;
    return VEIL_REFUSED;
}

bool veil_may_say(const veil_member *m, const message *letter)
{
    return !m->gone_print || (letter->kind == MESSAGE_UP && letter->round > m->floor);
}

/* ---- after a restart ---- */

hfsad_status veil_begin_gone(veil *v, hfsad_error *err)
{
    return whole_file_write(v->folder, GONE_NAME, v->gone ? v->gone : "", v->gone ? strlen(v->gone) : 0, err);
}

hfsad_status veil_read_gone(veil *v, hfsad_error *err)
{
    char *path = v->folder ? path_join(v->folder, GONE_NAME) : NULL;
    size_t size;
    if (v->folder && !path)
        return error_memory(err, 0, "a file name");
    const int reason = path ? file_read(path, GONE_MOST, &v->gone, &size) : ENOENT;
    hfsad_status status = HFSAD_OK;
    if (reason && (reason != ENOENT || v->list)) /* without it, masks would be those of the old cohort */
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be read: %s; restore the file", path, strerror(reason));
    free(path);
    return status;
}

/* Lines of this node were verified when they were kept. */
void veil_recall_gone(veil_member *m)
{
    char own[300], other[300];
    unsigned long long floor;
    for (const char *line = m->v->gone; line && *line;) {
        if (sscanf(line, "%299[^\t]\t%llu\t%299[^\t]\t", own, &floor, other) == 3 &&
            strcmp(own, m->names[m->own]) == 0 && find_name(m, other) < m->count)
            take_out(m, find_name(m, other), floor);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
}

void veil_note_list(veil *v)
{
    struct stat about;
    char *path = v->folder ? path_join(v->folder, "cohort.list") : NULL;
    v->list_since = path && stat(path, &about) == 0 ? (uint64_t)about.st_mtime : (uint64_t)time(NULL);
    free(path);
}
