/*
 * How two nodes with certificates come to a common key. A node draws a new X25519 key whenever its process starts, and
 * signs it with the key of its certificate: its hello. From the hello of a neighbour follows the key that the two
 * share. Nothing is stored, so a kill at any moment costs one more exchange of hellos.
 */
#ifndef HFSAD_NET_CREDENTIAL_H
#define HFSAD_NET_CREDENTIAL_H

#include "hfsad/hfsad.h"
#include "net/seal.h"

#include <stdint.h>

enum { CREDENTIAL_PUBLIC = 32, CREDENTIAL_HELLO_MOST = 1 << 15 };

typedef struct credential credential;

typedef struct {
    const char *ca;      /* file of the authority's certificate */
    const char *revoked; /* its list of revoked certificates; NULL, or no such file: none is known */
    const char *certificate, *key;
} credential_files;

/* path: of the node, and the common name of its certificate; run: the name of the run. */
hfsad_status credential_create(credential **c, const credential_files *files, const char *run, const char *path,
                               hfsad_error *err);
void credential_free(credential *c);

/* Its hello; lasts as long as c does. */
const unsigned char *credential_hello(const credential *c, size_t *size);
/* The key of everything that every process of this node can make, and no other node. */
const seal_key *credential_own(const credential *c);

/* The size of the hello at the beginning of bytes, and its public key; 0: no hello. Nothing is verified. */
size_t credential_read(const void *bytes, size_t size, unsigned char public_key[CREDENTIAL_PUBLIC]);
/* Whether the hello is one of the node with this path, by a certificate of the authority that is valid now; the key
 * that both share is in *shared. why: the reason if it is not, a text that lasts. */
bool credential_meet(const credential *c, const char *path, const void *hello, size_t size, seal_key *shared,
                     const char **why);
/* The public key of this process. */
const unsigned char *credential_public(const credential *c);

#endif
