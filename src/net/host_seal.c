/* Tags: every message of a process has a tag for each neighbour that it is for, and a received message counts only with
 * a valid tag (docs/protocol.md, section 9). */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "base/clock.h"
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

static void wipe(void *keys, size_t size)
{
    if (keys)
        explicit_bzero(keys, size);
    free(keys);
}

void host_free_keys(hosted *at)
{
    for (size_t c = 0; at->children && c < at->n_children; c++) {
        wipe(at->children[c].peer, sizeof *at->children[c].peer);
        at->children[c].peer = NULL;
    }
    if (at->keys)
        credential_free(at->keys->c);
    wipe(at->keys, sizeof *at->keys);
    at->keys = NULL;
}

/* All children of a parent have one key of its messages: each could derive those of the others. */
static void derive_secret(const host *h, const node_keys *keys, const char *parent, const char *child, seal_pair *pair)
{
    seal_expand(&keys->secret, &(seal_use){.purpose = "up", .run = h->run, .parent = parent, .child = child},
                &pair->up);
    seal_expand(&keys->secret, &(seal_use){.purpose = "down", .run = h->run, .parent = parent, .child = ""},
                &pair->down);
    pair->known = pair->sure = true;
}

static hfsad_status take_secret(const host *h, const hosted *at, node_keys *keys)
{
    seal_extract(&keys->secret, h->s.secret, h->s.secret_size);
    seal_expand(&keys->secret, &(seal_use){.purpose = "own", .run = h->run, .parent = "", .child = at->path},
                &keys->own);
    seal_expand(&keys->secret, &(seal_use){.purpose = "down", .run = h->run, .parent = at->path, .child = ""},
                &keys->down);
    if (at->parent)
        derive_secret(h, keys, at->parent, at->path, &keys->above.now);
    return HFSAD_OK;
}

hfsad_status host_take_keys(host *h, hosted *at, const host_place *place, hfsad_error *err)
{
    credential_files files = h->s.files;
    files.certificate = place->certificate ? place->certificate : files.certificate;
    files.key = place->key ? place->key : files.key;
    const bool certified = files.ca && files.certificate && files.key;
    if (!certified && !h->s.secret)
        return HFSAD_OK;
    if (!h->hasher && !(h->hasher = seal_hasher()))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "tags need Poly1305, which this OpenSSL does not offer: allow its default provider");
    at->keys = alloc_zero(1, sizeof *at->keys);
    if (!at->keys)
        return error_memory(err, sizeof *at->keys, "the keys of a node");
    if (!certified)
        return take_secret(h, at, at->keys);
    const hfsad_status status = credential_create(&at->keys->c, &files, h->run, at->path, err);
    if (!status)
        at->keys->own = *credential_own(at->keys->c);
    return status;
}

/* NULL: no memory. */
static seal_peer *peer_of(const host *h, hosted *at, child_name *child)
{
    if (!child)
        return &at->keys->above;
    if (child->peer)
        return child->peer;
    child->peer = alloc_zero(1, sizeof *child->peer);
    if (child->peer && !at->keys->c)
        derive_secret(h, at->keys, at->path, child->path, &child->peer->now);
    return child->peer;
}

bool host_all_sure(const hosted *at)
{
    const node_keys *keys = at->keys;
    bool all = !keys->c || !at->parent || (keys->above.now.sure && !keys->above.next.known);
    for (size_t c = 0; keys->c && c < at->n_children && all; c++)
        all = at->children[c].peer && at->children[c].peer->now.sure && !at->children[c].peer->next.known;
    return all;
}

/* ---- sending ---- */

typedef struct {
    unsigned char *to;
    size_t count;
    seal_content of;
} tags;

static void add_tag(tags *t, bool known, const seal_key *key)
{
    if (known && seal_tag(key, &t->of, t->to + SEAL_TAG * t->count))
        t->count++;
}

/* Room for one tag of itself, and two of every neighbour. */
static bool take_tags(host *h, const hosted *at, size_t size)
{
    return alloc_grow((void **)&h->out.bytes, &h->out.room, size + SEAL_TAG * (3 + 2 * at->n_children), 1);
}

hfsad_status host_seal(host *h, const hosted *at, topic_kind topic, size_t *size, hfsad_error *err)
{
    const node_keys *keys = at->keys;
    if (!keys)
        return HFSAD_OK;
    if (!take_tags(h, at, *size))
        return error_memory(err, *size, "a message");
    tags t = {h->out.bytes + *size, 0, {h->hasher, topic_name(topic), h->out.bytes, *size}};
    if (topic == TOPIC_STATUS)
        add_tag(&t, true, &keys->own);
    if (!topic_to_children(topic))
        add_tag(&t, keys->above.now.known, &keys->above.now.up);
    else if (!keys->c)
        add_tag(&t, true, &keys->down);
    else
        for (size_t c = 0; c < at->n_children; c++)
            if (at->children[c].peer)
                add_tag(&t, at->children[c].peer->now.known, &at->children[c].peer->now.down);
    *size = t.count ? *size + SEAL_TAG * t.count : 0; /* no neighbour could know it */
    return HFSAD_OK;
}

/* With tags that prove to a neighbour that this process holds the key now. */
hfsad_status host_send_hello(host *h, hosted *at, hfsad_error *err)
{
    char topic[TOPIC_MAX];
    size_t size;
    const unsigned char *hello = credential_hello(at->keys->c, &size);
    const seal_peer *above = &at->keys->above;
    if (!take_tags(h, at, size))
        return error_memory(err, size, "a message");
    memcpy(h->out.bytes, hello, size);
    tags t = {h->out.bytes + size, 0, {h->hasher, topic_name(TOPIC_HELLO), hello, size}};
    add_tag(&t, above->now.known, &above->now.up);
    add_tag(&t, above->next.known, &above->next.up);
    for (size_t c = 0; c < at->n_children; c++) {
        const seal_peer *peer = at->children[c].peer;
        add_tag(&t, peer && peer->now.known, peer ? &peer->now.down : NULL);
        add_tag(&t, peer && peer->next.known, peer ? &peer->next.down : NULL);
    }
    size += SEAL_TAG * t.count;
    at->keys->hello_due = false;
    at->keys->hello_sent = clock_ms();
    hfsad_status status = HFSAD_OK;
    topic_write(topic, h->run, at->path, TOPIC_HELLO);
    for (int way = 0; way < WAYS && !status; way++)
        if (at->member[way] != SIZE_MAX)
            status = transport_send(h->way[way], at->member[way], topic, h->out.bytes, size, true, err);
    return status;
}

/* ---- receiving ---- */

/* The neighbour has this pair of keys, which is used from now on. The neighbour could not read earlier messages under
 * another pair. */
static void make_sure(hosted *at, seal_peer *peer, seal_pair *pair)
{
    const bool news = !pair->sure;
    if (pair == &peer->next) {
        peer->now = peer->next;
        explicit_bzero(&peer->next, sizeof peer->next);
    }
    peer->now.sure = true;
    if (!news)
        return;
    peer->doubts = 0;
    if (at->n)
        node_repeat(at->n);
    if (at->q)
        inquiry_repeat(at->q);
    at->status_due = 0;
}

static bool is_right(hosted *at, seal_peer *peer, bool down, const seal_content *of, const unsigned char *list,
                     size_t count)
{
    seal_pair *const pairs[] = {&peer->now, &peer->next};
    for (size_t i = 0; i < 2; i++) {
        if (!pairs[i]->known || !seal_among(down ? &pairs[i]->down : &pairs[i]->up, of, list, count))
            continue;
        if (!pairs[i]->sure)
            make_sure(at, peer, pairs[i]);
        return true;
    }
    return false;
}

/* A neighbour may have sent this before it knew this process, or knows another process of this name: it gets the key
 * again. A will was made before there were keys. */
static bool doubt(hosted *at, topic_kind topic, seal_peer *peer, const char **why)
{
    enum { PAUSE_MS = 300 };
    if (at->keys->c && clock_ms() > at->keys->hello_sent + PAUSE_MS)
        at->keys->hello_due = true;
    if (topic == TOPIC_STATUS || !peer || !peer->now.sure || (at->keys->c && peer->doubts++ == 0))
        *why = NULL;
    return false;
}

bool host_unseal(const host *h, hosted *at, topic_kind topic, child_name *child, const void *bytes, size_t *size,
                 const char **why)
{
    const size_t frame = message_frame_size(bytes, *size), count = (*size - frame) / SEAL_TAG;
    const unsigned char *list = (const unsigned char *)bytes + frame;
    *why = "with tags: this process was started without keys or secret";
    if (!frame || (!at->keys && frame == *size))
        return true; /* the decoder reports what is wrong */
    if (!at->keys)
        return false;
    *why = count ? "not genuine: none of its tags is right"
                 : "without a tag: its sender was started without keys or secret";
    if ((*size - frame) % SEAL_TAG || count > SEAL_TAGS_MOST)
        return false;
    *size = frame;
    const bool down = topic_to_children(topic), own = topic == TOPIC_STATUS && !child;
    const seal_content of = {h->hasher, topic_name(topic), bytes, frame};
    if (own)
        return seal_among(&at->keys->own, &of, list, count);
    seal_peer *peer = peer_of(h, at, child);
    if (peer && is_right(at, peer, down, &of, list, count))
        return true;
    return doubt(at, topic, peer, why);
}

static void derive_pair(const host *h, const hosted *at, const child_name *child, const seal_key *shared, seal_pair *p)
{
    unsigned char publics[2 * CREDENTIAL_PUBLIC];
    const unsigned char *own = credential_public(at->keys->c);
    seal_use use = {.purpose = "up",
                    .run = h->run,
                    .parent = child ? at->path : at->parent,
                    .child = child ? child->path : at->path,
                    .publics = publics,
                    .n_publics = sizeof publics};
    memcpy(publics, child ? own : p->public_key, CREDENTIAL_PUBLIC); /* the parent's first */
    memcpy(publics + CREDENTIAL_PUBLIC, child ? p->public_key : own, CREDENTIAL_PUBLIC);
    seal_expand(shared, &use, &p->up);
    use.purpose = "down";
    seal_expand(shared, &use, &p->down);
    p->known = true;
}

const char *host_hear_hello(host *h, hosted *at, child_name *child, const void *bytes, size_t size)
{
    seal_pair pair = {0};
    seal_key shared;
    const char *why = NULL;
    const size_t hello = credential_read(bytes, size, pair.public_key), count = (size - hello) / SEAL_TAG;
    seal_peer *peer = at->keys && at->keys->c ? peer_of(h, at, child) : NULL;
    if (!peer)
        return NULL;
    if (!hello || (size - hello) % SEAL_TAG || count > SEAL_TAGS_MOST)
        return "not a hello";
    const bool is_now = peer->now.known && memcmp(peer->now.public_key, pair.public_key, CREDENTIAL_PUBLIC) == 0,
               is_next = peer->next.known && memcmp(peer->next.public_key, pair.public_key, CREDENTIAL_PUBLIC) == 0;
    if (!is_now && !is_next) {
        if (!credential_meet(at->keys->c, child ? child->path : at->parent, bytes, hello, &shared, &why))
            return why;
        derive_pair(h, at, child, &shared, &pair);
        *(peer->now.sure ? &peer->next : &peer->now) = pair;
        explicit_bzero(&shared, sizeof shared);
        explicit_bzero(&pair, sizeof pair);
        at->keys->hello_due = true;
    }
    const seal_content of = {h->hasher, topic_name(TOPIC_HELLO), bytes, hello};
    (void)is_right(at, peer, !child, &of, (const unsigned char *)bytes + hello, count);
    return NULL;
}
