/* What the files of a process share. */
#ifndef HFSAD_NET_HOST_PARTS_H
#define HFSAD_NET_HOST_PARTS_H

#include "net/host.h"
#include "net/topic.h"

enum { ABOVE, BELOW, WAYS };
/* So often an older process must say in a connection that it is this node, and has met this process: that one lives. */
enum { HOST_TWINS = 1 };

/* The last vector of a topic, to which the next one may be a difference; count 0: none. */
typedef struct {
    uint64_t phase, round;
    size_t count, room;
    double *values;
} vector_before;

/* The keys of a node and a neighbour. */
typedef struct {
    bool known;
    bool sure; /* the neighbour has shown that it has them */
    unsigned char public_key[CREDENTIAL_PUBLIC];
    seal_key up, down;
} seal_pair;

/* A neighbour that starts again has a new pair. Until it has shown that it has that pair, the old one is used: a broker
 * may repeat an old hello. */
typedef struct {
    seal_pair now, next;
    unsigned doubts; /* frames without a right tag since the last right one */
} seal_peer;

/* How a node seals what it says. */
typedef struct {
    credential *c; /* NULL: by a secret */
    seal_key secret;
    seal_key own, down; /* down: to all children, by a secret */
    seal_peer above;
    bool hello_due;
    uint64_t hello_sent; /* when */
} node_keys;

/* A child's path and its slot, in the order of the paths. */
typedef struct {
    char *path;
    size_t slot;
    bool deserted;        /* no client takes part below it, as it said itself */
    uint64_t lives_until; /* as it said itself; 0: it is gone or was never heard */
    double stateless;     /* process that has said it has no state though training has begun; 0: none */
    bool absent;          /* it was told that the node goes on without it */
    bool dismissed;       /* it has left, and is to be told so */
    bool behind;          /* of this child it was told that it has not the state that it should */
    vector_before heard;  /* of its UPs */
    seal_peer *peer;      /* NULL: not known yet, or frames have no tags */
} child_name;

/* A readmission on its way down (host_admit.c); number 0: none. */
typedef struct {
    uint64_t number;
    char path[INQUIRY_WHY_MOST + 1];
    bool retires;
    channel way;
    bool tell; /* it is done, as follows */
    run_readmission done;
} host_order;

/* A node's work on the cohorts of its children: their cards come up, and the list of all goes down. */
typedef struct {
    channel ask;
    node_patience patience;
    bool *in; /* by slot */
    unsigned char **cards;
    size_t *sizes;
    bool *has_list;
    double *list; /* as it is sent; NULL: cards are missing */
    size_t list_count;
    /* A member that is lost for good: its slot, its path and the proof (veil_renew.c), and which of the others have
     * taken it out */
    size_t lost;
    char lost_text[INQUIRY_WHY_MOST + 1];
    bool *without;
    channel renew;
} cohort_call;

typedef struct {
    cohort_call *call; /* NULL: no child is in a cohort */
    veil_member *veil; /* NULL: it is in no cohort */
    node *n;           /* NULL: not set up yet */
    inquiry *q;        /* NULL: it was made elsewhere */
    void *q_context;
    unsigned twins;      /* how often an older process of this name has said that it lives, in this connection */
    double meets;        /* the number of that process, or of a younger one; 0: none */
    node_keys *keys;     /* NULL: its frames have no tags */
    char *path, *parent; /* parent: NULL for the root */
    child_name *children;
    size_t n_children, n_inner;
    size_t member[WAYS]; /* SIZE_MAX: none */
    bool uncommitted;    /* packed, and not yet in the store */
    bool early;          /* it has taken host.frame in before its own copy came */
    bool unstored;       /* it was made without a state in the store */
    bool unkept;         /* node_follows, and messages alone do not give its state: that must be put */
    bool awake;          /* it has been handed a message in this life, ... */
    uint64_t woke;       /* ... in this round */
    unsigned left_out;   /* how often its parent has spoken of training, in this connection, and it has no node */
    bool has_row, ended, dismissed;
    bool left;                       /* it is no member any more */
    bool dismisses;                  /* a child is to be told that it has left */
    char wish[INQUIRY_WHY_MOST + 1]; /* client for which an order is to be asked for; "": none */
    char *lines;                     /* of the record, with the path, not yet in the store; NULL: none */
    hfsad_figures row;
    uint64_t status_due;
    size_t slot;     /* among its parent's children */
    bool has_orders; /* there was one in this life: otherwise a turn passes over them, which are large */
    host_order orders[NODE_ORDERS];
    channel admit;     /* host_admit.c: of a child */
    size_t admit_next; /* child to be asked next */
    bool tell_admitted;
    uint64_t admit_heard; /* life of the link that its parent has spoken of in this connection */
    bool connected[WAYS];
    uint64_t parent_heard; /* when the parent has last said something of this run; 0: never */
    bool leaves[WAYS];     /* it has said that it is gone, and the broker has not said it back yet */
    uint64_t garbled, strangers;
    vector_before said[WAYS]; /* UPs and DOWNs */
    vector_before heard;      /* DOWNs of its parent */
} hosted;

typedef struct {
    host *h;
    int way;
} sense;

/* Bytes that grow. */
typedef struct {
    unsigned char *bytes;
    size_t size, room;
    bool failed;
} buffer;

struct host {
    host_settings s;
    veil *veil; /* NULL: no node of this process is in a cohort */
    buffer masked;
    uint64_t began; /* on clock_ms */
    char *run;
    transport *way[WAYS];
    sense senses[WAYS];
    hosted *all;
    size_t count, room;
    size_t *whose[WAYS]; /* by number of the member */
    size_t whose_room[WAYS];
    double *values; /* of a message that comes */
    size_t most;
    EVP_MAC_CTX *hasher; /* of tags; NULL: no node has keys */
    buffer out;
    message_codec *codec; /* of differences; NULL: not needed yet */
    size_t codec_most;
    buffer frame;          /* the message that was last news to a client: others will be sent the same */
    uint32_t frame_number; /* in the store */
    uint64_t frame_epoch;  /* of the store; 0: it is not there */
    double replay_seconds; /* that it would take to hand over all messages in the store */
    bool replayed;
    bool store_failed;
    double *result; /* of the set-up; NULL: not known yet */
    size_t n_result;
    bool result_kept;   /* in the store, or to be put there by the next commit */
    hfsad_figures last; /* row of the trace */
    uint64_t heard, commits, commit_failures;
    double commit_seconds;
    bool dismisses, leaving;
    host_order readmitted; /* the last that host_readmitted has returned */
    hfsad_status failed;   /* within a handler, with the reason */
    hfsad_error broken;
};

void host_tell(const host *h, host_event_kind kind, const char *path, const char *text, const char *from,
               const hfsad_figures *figures);
/* Moves messages, takes no turn. */
hfsad_status host_wait(const host *h, int64_t timeout_ms, hfsad_error *err);
/* Within a handler: the next turn fails so. */
void host_break_down(host *h, hfsad_status status, const hfsad_error *err);

/* A child says that it lives, or its will that it is gone (host_watch.c). */
bool host_has_members(const hosted *at);
void host_note_child(host *h, hosted *at, const char *path, const message *m);
/* Tells the node which children live, while it waits for answers. */
void host_watch_children(hosted *at, uint64_t now);
/* Tells which children it goes on without, and which are back. */
void host_tell_absences(const host *h, hosted *at);
/* The node's own status comes back: its own, or a second process's. */
void host_meet_twin(host *h, hosted *at, const message *m);
/* A child has sent a message beyond the bounds; after several the run ends, and the reason names the child. */
void host_meet_liar(host *h, hosted *at, const char *path, size_t slot);
/* The node should say a number that does not fit into fixed point; the run ends, and the reason names the node. */
void host_end_too_large(host *h, hosted *at);
/* Number of an ANSWER of the set-up by which an inner node says why it has ended the run; its parent ends too. */
enum { HOST_COMPLAINT = 0x7fffffff };
void host_hear_complaint(host *h, hosted *at, size_t from, const message *m);
/* A neighbour says something that this node cannot have come to. */
void host_meet_newer(host *h, hosted *at, const char *path, size_t from, const message *m);
/* Its parent trains, and it has no node. */
void host_note_training(const host *h, hosted *at, const message *m);

/* Secure aggregation (host_cohort.c). */
hfsad_status host_cohort_enter(host *h, hosted *at, const host_place *place, hfsad_error *err);
void host_cohort_leave(hosted *at);
/* A message of NODE_PHASE_COHORT. */
void host_cohort_hear(host *h, hosted *at, size_t from, const message *m);
hfsad_status host_cohort_send(host *h, hosted *at, hfsad_error *err);
/* A child is lost for good; text: its path, a newline, the proof. Whether all others of its cohort know. */
bool host_cohort_without(hosted *at, size_t slot, const char *text);
/* The message as it leaves; false: it must not. */
bool host_cohort_mask(host *h, hosted *at, message *m);

/* Readmission (host_admit.c): whether a message is of it; and what becomes of that. */
bool host_is_admission(const message *m);
void host_hear_admission(host *h, hosted *at, size_t from, const message *m);
/* A child that was never a member lives: an order is asked for. */
void host_wish(host *h, hosted *at, const char *path);
/* Admissions that an earlier life has begun. */
void host_admit_resume(hosted *at);
void host_admit_tick(hosted *at, uint64_t now);
void host_admit_repeat(hosted *at);
uint64_t host_admit_due(const hosted *at);
hfsad_status host_admit_send(host *h, hosted *at, hfsad_error *err);

/* The inquiry may have its result: then the node is made. */
void host_take_setup(host *h, hosted *at);

/* Of child_name. */
child_name *host_child_of(const hosted *at, const char *path);
int host_by_path(const void *a, const void *b);
/* Upper limit on the count of numbers of a received message. */
hfsad_status host_take_room(host *h, size_t most, hfsad_error *err);
hfsad_status host_make_node(host *h, hosted *at, hfsad_error *err);

hfsad_status host_restore(host *h, hosted *at, hfsad_error *err);
hfsad_status host_restore_result(host *h, hfsad_error *err);
/* The message that was last news to a client; and a client that has taken it in. */
void host_note_frame(host *h, const void *bytes, size_t size);
void host_keep_message(host *h, hosted *at, const message *m);
/* false: nothing may be sent. */
bool host_commit(host *h);

void vector_before_free(vector_before *v);
/* Encodes an UP or a DOWN into h->out, which has room; as a difference if the spec says so and a reference exists. */
message_fault host_encode_difference(host *h, hosted *at, const message *m, size_t *size);
/* Into h->values. before: of this topic; NULL: it has no differences. */
/* genuine: nothing of the frame was altered, as its tag shows. */
message_fault host_decode_difference(host *h, const vector_before *before, bool genuine, const void *bytes, size_t size,
                                     message *m);
/* After a message that was news. */
void host_keep_heard(const host *h, vector_before *before, const message *m);

/* The node that came last: how it seals (host_seal.c). */
hfsad_status host_take_keys(host *h, hosted *at, const host_place *place, hfsad_error *err);
void host_free_keys(hosted *at);
/* Adds the tags of a frame that is in h->out. */
hfsad_status host_seal(host *h, const hosted *at, topic_kind topic, size_t *size, hfsad_error *err);
/* Whether a payload is a frame of this sender, whose size is then in *size. child: NULL for the parent, and for the
 * node itself. If it is not, *why is the reason, or NULL if that is nothing to speak of. */
bool host_unseal(const host *h, hosted *at, topic_kind topic, child_name *child, const void *bytes, size_t *size,
                 const char **why);
/* A neighbour says which key it has now; the reason if that does not count. */
const char *host_hear_hello(host *h, hosted *at, child_name *child, const void *bytes, size_t size);
hfsad_status host_send_hello(host *h, hosted *at, hfsad_error *err);
/* Whether all its neighbours have shown their keys. */
bool host_all_sure(const hosted *at);

/* Into h->out; 0: it cannot be said. */
size_t host_encode(host *h, hosted *at, const message *m, hfsad_error *err);
message host_status_of(const host *h, const hosted *at, bool lives, double values[HOST_STATUS_NUMBERS]);
hfsad_status host_send(host *h, hosted *at, int way, topic_kind kind, const message *m, hfsad_error *err);
hfsad_status host_send_all(host *h, uint64_t now, hfsad_error *err);

#endif
