/* What the files of secure aggregation share. */
#ifndef HFSAD_NET_VEIL_PARTS_H
#define HFSAD_NET_VEIL_PARTS_H

#include "net/seal.h"
#include "net/veil.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>

enum { VEIL_CHUNK = 3 * 512, VEIL_HEAD = 12 + 5 * 8 + 32 }; /* a chunk and the words that it masks fit a first cache */

/* What two members share. */
typedef struct {
    unsigned char key[VEIL_KEY];
    bool inside;            /* the other is a node of this process: its key comes from the same secret */
    EVP_CIPHER_CTX *cipher; /* with the key; NULL: no mask is shared */
} veil_pair;

struct veil {
    char *folder;
    uint64_t run;
    unsigned char secret[VEIL_KEY];
    X509_STORE *authority;
    unsigned char *list; /* accepted; NULL: none yet */
    size_t list_size;
    bool *good; /* cards that were verified of the list with this digest */
    unsigned char good_of[VEIL_KEY];
    uint64_t mask[VEIL_CHUNK]; /* of the message in hand; a process has one thread */
};

struct veil_member {
    veil *v;
    char **names;
    size_t count, own;
    EVP_PKEY *key;
    unsigned char public_key[VEIL_KEY];
    unsigned char *card;
    size_t card_size;
    veil_pair *pairs; /* count; its own is not used */
    bool ready;
};

hfsad_status veil_take_authority(veil *v, const char *ca, hfsad_error *err);
/* Keeps the list for good; false: why it cannot. */
bool veil_keep_list(veil *v, const unsigned char *list, size_t size, char why[VEIL_WHY]);

#endif
