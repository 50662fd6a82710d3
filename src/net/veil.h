/*
 * Secure aggregation. The members of a cohort (plan/cohort.h) share a key two by two, and each adds to the words of
 * its message, for every other member, a mask that the other subtracts. A message alone is uniformly random; the sum
 * over the cohort is that of the words.
 *
 *     secret of a process       32 random bytes, in its state folder; a new folder has a new one
 *     key of a node             X25519, from that secret and its path
 *     card                      path, public key, certificate, signature by the certificate's key
 *     list                      the cards of all members of the cohorts below a node, passed down by it
 *     key of a pair             from the shared secret of X25519, both paths and both public keys
 *     mask                      AES-256 in counter mode, by a key from the pair's and from the message: run, phase
 * (stage, repairs), round, kind, count, and the digest of what it answers
 *
 * A mask is therefore a function of the keys and of the question. A node that was killed repeats its messages to the
 * bit, and answers to different questions have independent masks, which only cancel if all members were asked the same.
 */
#ifndef HFSAD_NET_VEIL_H
#define HFSAD_NET_VEIL_H

#include "hfsad/hfsad.h"
#include "net/message.h"

enum { VEIL_KEY = 32, VEIL_CARD_MOST = 4096, VEIL_WHY = 300, VEIL_PROOF = 200 };

/* SHA-256 of the numbers of a message. */
void veil_digest(const double *values, size_t count, uint64_t digest[4]);

/* The secure aggregation of a process. */
typedef struct veil veil;
/* folder: state folder, for the secret and the list, NULL: nothing is stored; begun: the folder has states, so the
 * secret must exist; ca: file of the authority's certificate, NULL: cards are not signed. */
hfsad_status veil_create(veil **v, const char *folder, bool begun, const char *ca, uint64_t run, hfsad_error *err);
void veil_free(veil *v);
bool veil_signs(const veil *v);

/* A node of the process. */
typedef struct veil_member veil_member;
typedef struct {
    const char *const *names;      /* paths of the cohort, in slot order */
    size_t count, own;             /* own: index of this node among them */
    size_t least;                  /* members of a cohort */
    const char *certificate, *key; /* files; NULL if there is no authority */
} veil_place;
hfsad_status veil_join(veil *v, veil_member **m, const veil_place *place, hfsad_error *err);
void veil_leave(veil_member *m);
const unsigned char *veil_card(const veil_member *m, size_t *size);
/* Checks and accepts the parent's list: every member of the cohort must be listed once, with a card signed by the
 * authority, and the list must equal the one that this process has accepted before. false: *why is the reason. */
bool veil_take_list(veil_member *m, const unsigned char *list, size_t size, char why[VEIL_WHY]);
/* Whether the node has a list; without one it must not send masked messages. */
bool veil_is_ready(const veil_member *m);
/* A member is lost for good, and the authority has signed it (veil_renew.c). floor: the round of this node's last UP.
 * VEIL_ELSEWHERE: it is a member of another cohort. */
typedef enum { VEIL_TAKEN, VEIL_REFUSED, VEIL_ELSEWHERE } veil_answer;
veil_answer veil_renew(veil_member *m, const char *path, const char *proof, uint64_t floor, char why[VEIL_WHY]);
/* Signs, as the authority, that a member is lost. ca_key: file of the authority's private key. */
hfsad_status veil_prove_gone(const char *ca_key, uint64_t run, const char *path, char proof[VEIL_PROOF],
                             hfsad_error *err);
/* Verifies that signature, with the file of the authority's certificate. */
bool veil_is_proven(const char *ca, uint64_t run, const char *path, const char *proof);
/* Whether a message in fixed point may be sent: in a new cohort only messages that could not be sent in the old one. */
bool veil_may_say(const veil_member *m, const message *letter);
/* Adds the masks to the words of a message that is in fixed point; false: OpenSSL has failed, and the words must not be
 * sent. */
bool veil_mask(veil_member *m, const message *letter, uint64_t *words);

/* Parent: makes the list of these cards; the caller frees it; NULL: no memory. */
unsigned char *veil_make_list(const unsigned char *const *cards, const size_t *sizes, size_t count, size_t *size);

#endif
