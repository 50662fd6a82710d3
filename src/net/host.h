/*
 * A process of a federation: nodes, a store for their states, and the transports to the nodes above and below. In each
 * turn it processes all received messages, lets the nodes step, commits every changed state in one transaction, and
 * then sends. While the store cannot be written, nothing is sent; while there is no broker, the transport waits for it.
 */
#ifndef HFSAD_NET_HOST_H
#define HFSAD_NET_HOST_H

#include "net/credential.h"
#include "net/inquiry.h"
#include "net/node.h"
#include "net/store.h"
#include "net/transport.h"
#include "net/veil.h"

typedef struct host host;

#define HOST_EVENT_LIST(X)                                                                                             \
    X(CONNECTED, "connected")                                                                                          \
    X(DISCONNECTED, "disconnected")                                                                                    \
    X(REFUSED, "refused by the broker")                                                                                \
    X(MESSAGE_REFUSED, "a message was refused")                                                                        \
    X(READY, "set up")                                                                                                 \
    X(ROW, "a row of the trace")                                                                                       \
    X(RECORD, "a step was made")                                                                                       \
    X(ENDED, "the run has ended")                                                                                      \
    X(DISMISSED, "the cloud has ended the run")                                                                        \
    X(STATE_LOST, "waits for its state folder")                                                                        \
    X(CHILD_BEHIND, "a child has not the state that this node has seen")                                               \
    X(CHILD_ABSENT, "goes on without")                                                                                 \
    X(CHILD_ASIDE, "sets aside, for messages beyond the bounds of the mathematics")                                    \
    X(CHILD_BACK, "goes on with")                                                                                      \
    X(KEYS_UNSIGNED, "the keys of its cohort are not signed: no certificate was given")                                \
    X(LIST_REFUSED, "refuses the list of its cohort")                                                                  \
    X(COHORT_REFUSED, "refuses another cohort")                                                                        \
    X(READMITTED, "readmitted: its link starts anew from its parent's model")                                          \
    X(LEFT, "has left the federation, by `hfsad retire`; `hfsad readmit` lets it join again")                          \
    X(STORE_FAILED, "the state cannot be written")                                                                     \
    X(STORE_WORKS, "the state can be written again")

typedef enum {
#define HOST_EVENT_ENUM(name, text) HOST_##name,
    HOST_EVENT_LIST(HOST_EVENT_ENUM)
#undef HOST_EVENT_ENUM
} host_event_kind;

const char *host_event_text(host_event_kind kind);

typedef struct {
    host_event_kind kind;
    const char *node;             /* its path; "" if it concerns the process */
    const char *text;             /* one line, or ""; RECORD: of sim/replay.h, with the path */
    const char *from;             /* MESSAGE_REFUSED: the topic */
    const hfsad_figures *figures; /* ROW; relative_error and seconds are NAN */
} host_event;

typedef struct {
    const char *run; /* name of the run in topics */
    uint64_t run_id;
    store *state;      /* NULL: nothing outlasts the process */
    const void *about; /* stored under STORE_ABOUT; NULL: nothing. It must outlive the host */
    size_t about_size;
    wire_encoding encoding;
    double
        local_seconds;  /* asynchronous: clients step as often as fits into this time; 0 or NAN: as their class says */
    bool fleeting;      /* the broker need not keep messages, but for status and keys */
    uint32_t status_ms; /* how often a node says that it lives; 0: never */
    void *context;
    void (*event)(void *context, const host_event *event); /* called within host_step and host_join; NULL: not called */
    /* Completes a row before it is stored: relative_error and seconds. NULL: not called. */
    void (*finish_row)(void *context, const node *root, hfsad_figures *row);
    /* A neighbour has sent a message of another run; true: do not log its refusal. NULL: not called. */
    bool (*other_run)(void *context, const char *node, const char *from, const message *m);
    /* A parent has asked a client, or sent it a model, for the first time; refused: the reason, or NULL. NULL: not
     * called. */
    void (*audit)(void *context, const char *node, const char *from, const message *m, const char *refused);
    /* Makes a node from the result of the set-up; for host_enter. */
    void *maker;
    hfsad_status (*make)(void *maker, const char *path, const double *result, size_t count, node **n, hfsad_error *err);
    /* The life of a node's link: when the node is made, and when it is readmitted. NULL: not called. */
    /* Whether a path is that of a client of the tree. */
    bool (*knows)(const void *maker, const char *path);
    void (*lived)(void *maker, const char *path, uint64_t life);
    uint64_t process; /* a random number of this process; 0: no check for a second one */
    /* Tags of frames: by a secret that all nodes have, or by the certificate of each node (of its place, or this). */
    const void *secret; /* NULL: none */
    size_t secret_size;
    credential_files files; /* ca NULL: none */
} host_settings;

/* What a STATUS says, after node_status.k: of a living node, and of one that has left in order. A will has no numbers.
 */
enum {
    HOST_STATUS_K,
    HOST_STATUS_REPEATED,
    HOST_STATUS_REFUSED,
    HOST_STATUS_PROCESS = HOST_STATUS_REFUSED + NODE_REFUSALS, /* random number of the process */
    HOST_STATUS_TERM, /* how often the node was started from its state folder, 0: it has no state */
    HOST_STATUS_SAID, /* when, in ms since 1970 */
    HOST_STATUS_SENT, /* bytes of the process so far */
    HOST_STATUS_RECEIVED,
    HOST_STATUS_INSTANCE,  /* number of the state folder, 0: it has none */
    HOST_STATUS_GARBLED,   /* frames refused for their bytes or their sender */
    HOST_STATUS_WAITS,     /* number of children that it waits for, ... */
    HOST_STATUS_WAITS_FOR, /* ... slot of the first, ... */
    HOST_STATUS_WAITS_MS,  /* ... and for how long */
    HOST_STATUS_UPTIME,    /* of the process, in ms, by a clock that is not set */
    HOST_STATUS_MEETS,     /* number of another process that says it is this node, 0: none */
    HOST_STATUS_ITERATION, /* of the last row of the trace, -1: none. From here on the root only */
    HOST_STATUS_OBJECTIVE,
    HOST_STATUS_PRIMAL,
    HOST_STATUS_DUAL,
    HOST_STATUS_NUMBERS
};

/* settings and its texts are copied; state is the caller's. */
hfsad_status host_create(host **h, const host_settings *settings, hfsad_error *err);
/* Frees the nodes too. Free the transports afterwards. */
void host_free(host *h);

/* What a transport must be made with; above: it is the one to the parents. With one broker for both ways either will
 * do. */
transport_handler host_handler(host *h, bool above);
/* Not taken over. Both may be the same. */
void host_connect(host *h, transport *above, transport *below);

typedef struct {
    const char *path;
    const char *const *children;   /* paths in the order of their slots */
    size_t n_children, n_inner;    /* n_inner: the first of them have children themselves */
    const char *certificate, *key; /* its own, or NULL */
    const veil_place *cohort;      /* secure aggregation: its cohort; NULL: it is in none */
    const bool *in_cohort;         /* which children are in one; NULL: none */
    const char *ca;                /* file of the authority's certificate; NULL: none */
    size_t slot;                   /* among its parent's children */
} host_place;

/* Takes ownership of the node, also on failure. If the store has a state for its path, the node continues from it. */
hfsad_status host_join(host *h, node *n, const host_place *place, hfsad_error *err);

/* A node that is yet to be set up: it takes part in the set-up and becomes a node by settings.make; if the store has
 * the set-up's result it does so at once. q and context (freed by free) are taken over, also on failure. most: numbers
 * of a message of the set-up. */
hfsad_status host_enter(host *h, inquiry *q, void *context, size_t most, const host_place *place, hfsad_error *err);

/* Call after all nodes are added: hands them the messages that the store keeps in place of states. The first turn does
 * this by itself; without a transport and turns, the nodes then have their committed states. Nothing is written. */
hfsad_status host_recall(host *h, hfsad_error *err);
/* One turn; waits for messages for at most timeout_ms. Only lack of memory and a transport that has broken down for
 * good are errors. */
hfsad_status host_step(host *h, int64_t timeout_ms, hfsad_error *err);
/* Says something to a node's parent that no node has said, and that is for this moment only. Handlers may, too. */
hfsad_status host_say(host *h, size_t i, const message *m, hfsad_error *err);
/* The root has found a mistake: all nodes below are told why, as long as turns are taken, and nothing else is done any
 * more. Refused if an older process is the root. */
hfsad_status host_dismiss(host *h, const char *why, hfsad_error *err);
/* Whether all below its nodes have heard of that. */
bool host_all_dismissed(const host *h);
/* Lines of the record, each closed by a newline, before there is a node: they are committed. And all lines so far. */
hfsad_status host_put_lines(host *h, const char *lines, hfsad_error *err);
hfsad_status host_get_lines(const host *h, void (*line)(void *context, const char *text), void *context,
                            hfsad_error *err);
/* Says of its nodes what their wills would, and more exactly, and waits until the brokers have it, for so long at most.
 * Not of a node that another process is. After that nothing is left but host_free. */
void host_leave(host *h, uint32_t patience_ms);
/* Whether all its nodes have ended and the last words of each are sent. */
bool host_ended(const host *h);
/* The root's inquiry has the result: its node is made. */
hfsad_status host_set_up(host *h, hfsad_error *err);
size_t host_nodes(const host *h);
inquiry *host_inquiry(const host *h, size_t i);
/* Of its state; NULL: it has none. */
const char *host_folder(const host *h);
bool host_has_state(const host *h);       /* its folder has commits */
node *host_node(const host *h, size_t i); /* NULL: not set up yet */
const char *host_path(const host *h, size_t i);

/* Counters of the process since its start. */
typedef struct {
    transport_counts frames; /* of both ways */
    uint64_t heard;          /* messages of neighbours, except STATUS */
    uint64_t commits, commit_failures;
    double commit_seconds;
} host_counts;
host_counts host_get_counts(const host *h);

/* Relation of a node to the others. */
typedef struct {
    bool connected;              /* to all its brokers */
    uint64_t parent_ms;          /* since the last message of this run from its parent; UINT64_MAX: never */
    size_t children, live;       /* live: said so lately */
    uint64_t garbled, strangers; /* messages refused before the node saw them: bytes, topic or sender */
} host_links;
host_links host_get_links(const host *h, size_t i);

/* Which children a node waits for; ms: how long. */
typedef struct {
    size_t count, first; /* first: its slot */
    uint64_t ms;
} host_waits;
host_waits host_get_waits(const host *h, size_t i);
bool host_waits_for(const host *h, size_t i, size_t slot);
/* "edge1/client2, edge1/client7 and 3 more for 12 s"; "" if it waits for no child. */
void host_describe_waits(const host *h, size_t i, char *text, size_t size);
/* The path of a child; NULL: there is none. */
const char *host_child(const host *h, size_t i, size_t slot);

/* The root: begins the readmission of a node below it, or goes on with one that an earlier life has begun; false: it
 * cannot yet. One that is done; NULL: none. */
bool host_readmit(host *h, const char *path, bool retires);
const run_readmission *host_readmitted(host *h);

/* Of the trace, of this life of the root; NULL: none. */
const hfsad_figures *host_last_row(const host *h);
/* The last row is one that no node has made: that of a script which asks through the host's inquiry. */
void host_show_row(host *h, const hfsad_figures *row);

#endif
