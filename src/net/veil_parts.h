/* What the files of secure aggregation share. */
#ifndef HFSAD_NET_VEIL_PARTS_H
#define HFSAD_NET_VEIL_PARTS_H

#include "net/seal.h"
#include "net/veil.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>

enum { VEIL_CHUNK = 3 * 512, VEIL_HEAD = 12 + 6 * 8 + 32 }; /* a chunk and the words that it masks fit a first cache */

/* What two members share. */
typedef struct {
    unsigned char key[VEIL_KEY];
    bool inside;            /* the other is a node of this process: its key comes from the same secret */
    bool gone;              /* it has left the cohort (veil_renew.c) */
    EVP_CIPHER_CTX *cipher; /* with the key; NULL: no mask is shared */
} veil_pair;

struct veil {
    char *folder;
    uint64_t run;
    unsigned char secret[VEIL_KEY];
    X509_STORE *authority;
    X509 *ca;            /* its certificate */
    uint64_t list_since; /* when the list was kept, in seconds since 1970 */
    char *gone;          /* lines of members that have left; NULL: none */
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
    size_t least;        /* members of a cohort */
    uint64_t gone_print; /* of those that have left; 0: none */
    uint64_t floor;      /* UPs up to this round were said in the cohort with them */
};

hfsad_status veil_take_authority(veil *v, const char *ca, hfsad_error *err);
/* Members with which it shares masks; false: no memory. */
bool veil_open_pairs(veil_member *m);
/* The file of members that have left, before the list: a folder with a list has both. */
hfsad_status veil_begin_gone(veil *v, hfsad_error *err);
/* Members that have left before a restart. */
hfsad_status veil_read_gone(veil *v, hfsad_error *err);
void veil_recall_gone(veil_member *m);
/* The list is in the state folder. */
void veil_note_list(veil *v);
/* Keeps the list for good; false: why it cannot. */
bool veil_keep_list(veil *v, const unsigned char *list, size_t size, char why[VEIL_WHY]);

#endif
