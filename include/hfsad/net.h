/*
 * hfsad/net.h: what libhfsad-net offers to programs beside libhfsad. So far: the keys of a federation.
 *
 * The rules of hfsad.h on errors, growing structs and threads hold here, too. The library has a copy of libhfsad's code
 * of its own and hides it: a program may link one of the two, or both.
 */
#ifndef HFSAD_NET_H
#define HFSAD_NET_H

#include "hfsad/hfsad.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys: an authority, the broker's certificate, one certificate per node ---- */

typedef struct {
    size_t size;              /* sizeof(hfsad_keys), by the caller */
    const char *folder;       /* made if it is missing; its private keys are the owner's alone */
    const char *const *hosts; /* names and addresses at which nodes reach the broker */
    size_t n_hosts;           /* 0: the broker listens on loopback only */
    int port;                 /* of the broker; 0: 8883 */
    int days;                 /* validity of the authority and of the broker's certificate; 0: 3650 */
    bool force;               /* existing files are replaced; every node then needs a new certificate */
} hfsad_keys;

/* Writes ca.crt, ca.key, broker.crt, broker.key, mosquitto.conf, acl and revoked.crl. */
HFSAD_API hfsad_status hfsad_keys_init(const hfsad_keys *keys, hfsad_error *err);
/* Certificates for `count` nodes ("edge1/client7", "observer") and their lines in the access list: all of them or none.
 * days = 0: 365. force: a certificate that is replaced is revoked. *changed, unless NULL: a running broker must read
 * its files again. */
HFSAD_API hfsad_status hfsad_keys_issue(const char *folder, const char *const *nodes, size_t count, int days,
                                        bool force, bool *changed, hfsad_error *err);
/* Revokes the certificates of `count` nodes and removes their files: all of them or none. A running broker must read
 * its files again. */
HFSAD_API hfsad_status hfsad_keys_revoke(const char *folder, const char *const *nodes, size_t count, hfsad_error *err);
/* The names of a node's certificate and private key, each into a buffer of `size` bytes; false: too long. */
HFSAD_API bool hfsad_keys_files(const char *folder, const char *node, char *certificate, char *key, size_t size);

#ifdef __cplusplus
}
#endif

#endif
