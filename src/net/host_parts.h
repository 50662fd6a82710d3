/* Internal declarations of the host_*.c files. */
#ifndef HFSAD_NET_HOST_PARTS_H
#define HFSAD_NET_HOST_PARTS_H

#include "net/host.h"
#include "net/topic.h"

enum { ABOVE, BELOW, WAYS };
/* Number of STATUS messages in a connection after which an older process with the same node counts as alive. */
enum { HOST_TWINS = 1 };

/* The last vector of a topic, the reference of the next frame if that is a difference; count 0: none. */
typedef struct {
    uint64_t phase, round;
    size_t count, room;
    double *values;
} vector_before;

/* The keys of a node and a neighbour. */
typedef struct {
    bool known;
    bool sure; /* the neighbour has proven that it has them */
    unsigned char public_key[CREDENTIAL_PUBLIC];
    seal_key up, down;
} seal_pair;

/* A restarted neighbour has a new pair. The old pair stays in use until the neighbour has proven that it has the new
 * one, because a broker may repeat an old hello. */
typedef struct {
    seal_pair now, next;
    unsigned doubts; /* number of frames with a wrong tag since the last right one */
} seal_peer;

/* Keys for the tags of a node's frames. */
typedef struct {
    credential *c; /* certificate; NULL: shared secret */
    seal_key secret;
    seal_key own, down; /* down: with a shared secret, the key for frames to all children */
    seal_peer above;
    bool hello_due;
    uint64_t hello_sent; /* time of the last hello */
} node_keys;

/* A child as the host knows it; the array is sorted by path. */
typedef struct {
    char *path;
    size_t slot;
    size_t next;   /* in the array, the child of the next slot: UPs of a round often arrive in the order of the slots */
    bool deserted; /* the child has reported that no client below it takes part */
    uint64_t lives_until; /* end of the time for which its last STATUS holds; 0: gone, or never heard */
    double stateless;     /* process that has reported a missing state after training began; 0: none */
    bool absent;          /* CHILD_ABSENT has been reported */
    bool dismissed;       /* the child has left, and a message that tells it is due */
    bool behind;          /* CHILD_BEHIND has been reported */
    vector_before heard;  /* its last UP */
    seal_peer *peer;      /* NULL: no keys yet, or frames have no tags */
} child_name;

/* An order on its way down the tree (host_admit.c); number 0: none. */
typedef struct {
    uint64_t number;
    char path[INQUIRY_WHY_MOST + 1];
    bool retires;
    channel way;
    bool tell; /* its completion has to be reported */
    run_readmission done;
} host_order;

/* Cohorts among a node's children: the node collects the members' cards and sends the list of all cards down. */
typedef struct {
    channel ask;
    node_patience patience;
    bool *in; /* by slot */
    unsigned char **cards;
    size_t *sizes;
    bool *has_list;
    double *list; /* the list as sent; NULL: cards are missing */
    size_t list_count;
    /* A member that has left for good: its slot, its path with the proof (veil_renew.c), and which other members have
     * removed it */
    size_t lost;
    char lost_text[INQUIRY_WHY_MOST + 1];
    bool *without;
    channel renew;
} cohort_call;

typedef struct {
    cohort_call *call; /* NULL: no cohort among the children */
    veil_member *veil; /* NULL: the node is in no cohort */
    node *n;           /* NULL: not set up yet */
    inquiry *q;        /* NULL: the node was added by host_join */
    void *q_context;
    unsigned twins;      /* number of STATUS messages from an older process with this node, in this connection */
    double meets;        /* random number of another process with this node; 0: none */
    node_keys *keys;     /* NULL: frames have no tags */
    char *path, *parent; /* parent: NULL for the root */
    child_name *children;
    size_t n_children, n_inner;
    size_t next_child;   /* in the array: the one expected to speak next */
    size_t member[WAYS]; /* SIZE_MAX: none */
    bool uncommitted;    /* packed but not in the store yet */
    bool early;          /* the node has processed host.frame before its own copy arrived */
    bool unstored;       /* created without a state in the store */
    bool unkept;         /* node_follows, but stored messages do not determine its state: the state must be stored */
    bool awake;          /* the node has processed a message since the start, ... */
    uint64_t woke;       /* ... in this round */
    unsigned
        left_out; /* number of training messages from the parent, in this connection, before the set-up is complete */
    bool has_row, ended, dismissed;
    bool left;                       /* the node has left the run */
    bool dismisses;                  /* a child has to be told that it has left */
    char wish[INQUIRY_WHY_MOST + 1]; /* client whose admission has to be requested from the root; "": none */
    char *lines;                     /* lines of the record, path included, not in the store yet; NULL: none */
    hfsad_figures row;
    uint64_t status_due;
    size_t slot;        /* among its parent's children */
    host_order *orders; /* NODE_ORDERS of them; NULL: none since the start */
    channel admit;      /* retransmits the admission of a child (host_admit.c) */
    size_t admit_next;  /* slot of the next child to admit */
    bool tell_admitted;
    uint64_t admit_heard; /* life of the link that the parent has named in this connection */
    bool connected[WAYS];
    uint64_t parent_heard; /* time of the parent's last message of this run; 0: never */
    bool leaves[WAYS];     /* the last STATUS is sent, and the broker has not returned it yet */
    uint64_t garbled, strangers;
    vector_before said[WAYS]; /* last UP and last DOWN */
    vector_before heard;      /* last DOWN of the parent */
} hosted;

typedef struct {
    host *h;
    int way;
} sense;

/* A growing array of bytes. */
typedef struct {
    unsigned char *bytes;
    size_t size, room;
    bool failed;
} buffer;

struct host {
    host_settings s;
    veil *veil; /* NULL: no node of the process is in a cohort */
    buffer masked;
    uint64_t began; /* on clock_ms */
    char *run;
    transport *way[WAYS];
    sense senses[WAYS];
    hosted *all;
    size_t count, room;
    size_t *whose[WAYS]; /* by number of the member */
    size_t whose_room[WAYS];
    double *values; /* numbers of the received message */
    size_t most;
    EVP_MAC_CTX *hasher; /* of tags; NULL: no node has keys */
    buffer out;
    message_codec *codec; /* for frames that are differences; NULL: not needed yet */
    size_t codec_most;
    buffer frame;          /* the last message that a client accepted; other clients will receive the same */
    uint32_t frame_number; /* in the store */
    uint64_t frame_epoch;  /* epoch of the store; 0: the frame is not stored */
    double replay_seconds; /* estimated time to replay all messages in the store */
    bool replayed;
    bool store_failed;
    double *result; /* result of the set-up; NULL: not known yet */
    size_t n_result;
    bool result_kept;   /* in the store, or part of the next commit */
    hfsad_figures last; /* row of the trace */
    uint64_t heard, commits, commit_failures;
    double commit_seconds;
    bool dismisses, leaving;
    host_order readmitted; /* the last that host_readmitted has returned */
    hfsad_status failed;   /* an error inside a handler; the next turn returns it */
    hfsad_error broken;
};

void host_tell(const host *h, host_event_kind kind, const char *path, const char *text, const char *from,
               const hfsad_figures *figures);
/* Sends and receives without a turn. */
hfsad_status host_wait(const host *h, int64_t timeout_ms, hfsad_error *err);
/* Called inside a handler: the next turn fails with this error. */
void host_break_down(host *h, hfsad_status status, const hfsad_error *err);

/* Processes a child's STATUS or will (host_watch.c). */
bool host_has_members(const hosted *at);
void host_note_child(host *h, hosted *at, const char *path, const message *m);
/* Tells the node which children are up while it waits for answers. */
void host_watch_children(hosted *at, uint64_t now);
/* Reports children that became absent or came back. */
void host_tell_absences(const host *h, hosted *at);
/* Processes a STATUS on the node's own topic: this process's own, or that of a second process. */
void host_meet_twin(host *h, hosted *at, const message *m);
/* A child has sent a message beyond the bounds. After exclude_after of them the run ends with an error that names the
 * child; in asynchronous training the child is set aside. */
void host_meet_liar(host *h, hosted *at, const char *path, size_t slot);
/* A number to send does not fit into fixed point: ends the run with an error that names the node. */
void host_end_too_large(host *h, hosted *at);
/* Round of the ANSWER in which an inner node reports why it has ended the run; its parent ends too. */
enum { HOST_COMPLAINT = 0x7fffffff };
void host_hear_complaint(host *h, hosted *at, size_t from, const message *m);
/* A neighbour's message shows that this node's state is older than messages it has sent. */
void host_meet_newer(host *h, hosted *at, const char *path, size_t from, const message *m);
/* The parent trains while this node is not set up. */
void host_note_training(const host *h, hosted *at, const message *m);

/* Secure aggregation (host_cohort.c). */
hfsad_status host_cohort_enter(host *h, hosted *at, const host_place *place, hfsad_error *err);
void host_cohort_leave(hosted *at);
/* Processes a message of NODE_PHASE_COHORT. */
void host_cohort_hear(host *h, hosted *at, size_t from, const message *m);
hfsad_status host_cohort_send(host *h, hosted *at, hfsad_error *err);
/* Removes a member that has left for good; text: its path, a newline, the proof. Returns whether all other members of
 * its cohort have confirmed. */
bool host_cohort_without(hosted *at, size_t slot, const char *text);
/* Masks the message; false: it must not be sent. */
bool host_cohort_mask(host *h, hosted *at, message *m);

/* Readmission (host_admit.c): whether a message belongs to it, and its processing. */
bool host_is_admission(const message *m);
void host_hear_admission(host *h, hosted *at, size_t from, const message *m);
/* A child that has not joined yet is up: requests its admission. */
void host_wish(host *h, hosted *at, const char *path);
/* Continues admissions from before a restart. */
void host_admit_resume(hosted *at);
void host_admit_tick(hosted *at, uint64_t now);
void host_admit_repeat(hosted *at);
uint64_t host_admit_due(const hosted *at);
hfsad_status host_admit_send(host *h, hosted *at, hfsad_error *err);
/* Whether there is something to tick or to send. Inline, because every turn of a process asks each node, nearly always
 * for nothing. */
static inline bool host_admits(const hosted *at)
{
    return at->orders || at->wish[0] || at->dismisses || at->tell_admitted || at->admit.live || at->admit.send ||
           at->admit.open;
}

/* Creates the node if the inquiry has its result. */
void host_take_setup(host *h, hosted *at);

/* Look-up in the array of children. */
child_name *host_child_of(hosted *at, const char *path);
int host_by_path(const void *a, const void *b);
/* Makes room for received messages of up to `most` numbers. */
hfsad_status host_take_room(host *h, size_t most, hfsad_error *err);
hfsad_status host_make_node(host *h, hosted *at, hfsad_error *err);

hfsad_status host_restore(host *h, hosted *at, hfsad_error *err);
hfsad_status host_restore_result(host *h, hfsad_error *err);
/* Notes the last message that a client accepted; host_keep_message notes each client that has processed it. */
void host_note_frame(host *h, const void *bytes, size_t size);
void host_keep_message(host *h, hosted *at, const message *m);
/* false: nothing may be sent. */
bool host_commit(host *h);

void vector_before_free(vector_before *v);
/* Encodes an UP or a DOWN into h->out, which has room; as a difference if the spec says so and a reference exists. */
message_fault host_encode_difference(host *h, hosted *at, const message *m, size_t *size);
/* Decodes a frame into h->values. before: last vector of this topic; NULL: the topic has no differences. genuine: the
 * frame has a right tag. */
message_fault host_decode_difference(host *h, const vector_before *before, bool genuine, const void *bytes, size_t size,
                                     message *m);
/* Call it after an accepted message. */
void host_keep_heard(const host *h, vector_before *before, const message *m);

/* Prepares the keys of the node that was added last (host_seal.c). */
hfsad_status host_take_keys(host *h, hosted *at, const host_place *place, hfsad_error *err);
void host_free_keys(hosted *at);
/* Appends the tags to the frame in h->out. */
hfsad_status host_seal(host *h, const hosted *at, topic_kind topic, size_t *size, hfsad_error *err);
/* Whether a payload is a frame of this sender; *size is then the size of the frame. child: NULL for the parent and for
 * the node itself. Otherwise *why is the reason, or NULL if the reason need not be logged. */
bool host_unseal(const host *h, hosted *at, topic_kind topic, child_name *child, const void *bytes, size_t *size,
                 const char **why);
/* Processes a hello, in which a neighbour announces its key; returns the reason if the hello is refused. */
const char *host_hear_hello(host *h, hosted *at, child_name *child, const void *bytes, size_t size);
hfsad_status host_send_hello(host *h, hosted *at, hfsad_error *err);
/* Whether all its neighbours have proven their keys. */
bool host_all_sure(const hosted *at);

/* Encodes a message into h->out; 0: not possible. */
size_t host_encode(host *h, hosted *at, const message *m, hfsad_error *err);
message host_status_of(const host *h, const hosted *at, bool lives, double values[HOST_STATUS_NUMBERS]);
hfsad_status host_send(host *h, hosted *at, int way, topic_kind kind, const message *m, hfsad_error *err);
hfsad_status host_send_all(host *h, uint64_t now, hfsad_error *err);

#endif
