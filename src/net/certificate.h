/* Certificates and private keys as PEM texts, by OpenSSL. */
#ifndef HFSAD_NET_CERTIFICATE_H
#define HFSAD_NET_CERTIFICATE_H

#include "hfsad/hfsad.h"

#include <stdbool.h>
#include <stddef.h>

/* The signing authority, created or read from files. */
typedef struct certificate_authority certificate_authority;
void certificate_authority_free(certificate_authority *a);
/* From the texts of ca.crt and ca.key, which must belong together; dir is for messages. */
hfsad_status certificate_authority_read(certificate_authority **a, const char *certificate, const char *key,
                                        const char *dir, hfsad_error *err);

/* Two texts, malloc'ed. */
typedef struct {
    char *certificate, *key;
    size_t certificate_length, key_length;
} certificate_pair;
void certificate_pair_free(certificate_pair *p);

/* An authority that signs itself. */
hfsad_status certificate_make_authority(certificate_authority **a, int days, certificate_pair *pair, hfsad_error *err);
/* For a broker that is reached by these names and addresses. clustered: its nodes call each other by it, too. */
hfsad_status certificate_make_broker(const certificate_authority *a, const char *const *hosts, size_t n_hosts,
                                     bool clustered, int days, certificate_pair *pair, hfsad_error *err);
/* For a client of the broker. */
hfsad_status certificate_make_node(const certificate_authority *a, const char *name, int days, certificate_pair *pair,
                                   hfsad_error *err);

/* Whether a text is a certificate that this authority has signed. */
bool certificate_is_of(const certificate_authority *a, const char *text);

/* The signed list of revoked certificates. old: its text so far, NULL: none yet; certificates: the texts of those to
 * add, each signed by this authority; name: of the file of old and of the additions, for messages. *text is malloc'ed.
 */
hfsad_status certificate_make_list(const certificate_authority *a, const char *old, const char *const *certificates,
                                   size_t count, const char *name, char **text, size_t *length, hfsad_error *err);

/* Whether the files are the certificate of the node with this name and its key. A file that cannot be read is not an
 * error here; the transport will report it. */
hfsad_status certificate_check_node(const char *name, const char *certificate, const char *key, hfsad_error *err);

#endif
