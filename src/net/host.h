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
    X(CHILD_BEHIND, "a child does not have the state that this node has seen")                                         \
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
    const char *node;             /* path of the node; "" if the event concerns the whole process */
    const char *text;             /* one line, or ""; RECORD: a line of run/replay.h, path included */
    const char *from;             /* MESSAGE_REFUSED: the topic */
    const hfsad_figures *figures; /* ROW; relative_error and seconds are NAN */
} host_event;

typedef struct {
    const char *run; /* name of the run in topics */
    uint64_t run_id;
    store *state;      /* NULL: no state survives the process */
    const void *about; /* description of the run, stored under STORE_ABOUT; NULL: none. It must outlive the host */
    size_t about_size;
    wire_encoding encoding;
    double local_seconds; /* asynchronous: a client makes as many local steps as fit into this time; 0 or NAN: a fixed
                             number */
    bool fleeting;        /* the broker need not retain messages, except status and keys */
    uint32_t status_ms;   /* interval of a node's STATUS messages; 0: none */
    void *context;
    void (*event)(void *context, const host_event *event); /* called within host_step and host_join; may be NULL */
    /* Fills in relative_error and seconds of a row before the row is stored. May be NULL. */
    void (*finish_row)(void *context, const node *root, hfsad_figures *row);
    /* A neighbour has sent a message of another run; true: do not log the refusal. May be NULL. */
    bool (*other_run)(void *context, const char *node, const char *from, const message *m);
    /* A client has received a new question or a new model; refused: the reason, or NULL. May be NULL. */
    void (*audit)(void *context, const char *node, const char *from, const message *m, const char *refused);
    /* Creates a node from the result of the set-up; needed for host_enter. */
    void *maker;
    hfsad_status (*make)(void *maker, const char *path, const double *result, size_t count, node **n, hfsad_error *err);
    /* Whether the tree has a client with this path. */
    bool (*knows)(const void *maker, const char *path);
    /* Tells the current life of a node's link: when the node is created, and when it is readmitted. May be NULL. */
    void (*lived)(void *maker, const char *path, uint64_t life);
    uint64_t process; /* random number of this process; 0: a second process with the same node is not detected */
    /* Frames have tags made with a shared secret, or with each node's certificate (in its host_place, or here). */
    const void *secret; /* NULL: none */
    size_t secret_size;
    credential_files files; /* ca NULL: none */
} host_settings;

/* The numbers of a STATUS message, sent by a live node and by one that leaves in order. A will has no numbers. */
enum {
    HOST_STATUS_K,
    HOST_STATUS_REPEATED,
    HOST_STATUS_REFUSED,
    HOST_STATUS_PROCESS = HOST_STATUS_REFUSED + NODE_REFUSALS, /* random number of the process */
    HOST_STATUS_TERM,                                          /* number of starts from its state folder, 0: no state */
    HOST_STATUS_SAID,                                          /* time of sending, in ms since 1970 */
    HOST_STATUS_SENT,                                          /* bytes that the process has sent so far */
    HOST_STATUS_RECEIVED,
    HOST_STATUS_INSTANCE,  /* number of the state folder, 0: none */
    HOST_STATUS_GARBLED,   /* number of frames refused because of their bytes or their sender */
    HOST_STATUS_WAITS,     /* number of children that the node waits for, ... */
    HOST_STATUS_WAITS_FOR, /* ... slot of the first, ... */
    HOST_STATUS_WAITS_MS,  /* ... and for how long */
    HOST_STATUS_UPTIME,    /* uptime of the process in ms, by a monotonic clock */
    HOST_STATUS_MEETS,     /* random number of another process that claims to be this node, 0: none */
    HOST_STATUS_ITERATION, /* iteration of the last row of the trace, -1: none; this and the following: root only */
    HOST_STATUS_OBJECTIVE,
    HOST_STATUS_PRIMAL,
    HOST_STATUS_DUAL,
    HOST_STATUS_NUMBERS
};

/* Copies settings and its texts; settings.state stays with the caller. */
hfsad_status host_create(host **h, const host_settings *settings, hfsad_error *err);
/* Frees the host and its nodes. Free the transports afterwards. */
void host_free(host *h);

/* The handler with which a transport has to be created; above: the transport to the parents. With one broker for both
 * directions either handler will do. */
transport_handler host_handler(host *h, bool above);
/* The transports stay with the caller. Both may be the same. */
void host_connect(host *h, transport *above, transport *below);

typedef struct {
    const char *path;
    const char *const *children;   /* paths in the order of their slots */
    size_t n_children, n_inner;    /* the first n_inner of them are inner nodes */
    const char *certificate, *key; /* of this node, or NULL */
    const veil_place *cohort;      /* secure aggregation: its cohort; NULL: none */
    const bool *in_cohort;         /* which children are in a cohort; NULL: none */
    const char *ca;                /* file of the authority's certificate; NULL: none */
    size_t slot;                   /* among its parent's children */
} host_place;

/* Adds a node and takes ownership of it, also on failure. If the store has a state for its path, the node continues
 * from that state. */
hfsad_status host_join(host *h, node *n, const host_place *place, hfsad_error *err);

/* Adds a node that takes part in the set-up first; settings.make then creates it, at once if the store has the result
 * of the set-up. Takes ownership of q and context (freed by free), also on failure. most: upper limit on the count of
 * numbers in a message of the set-up. */
hfsad_status host_enter(host *h, inquiry *q, void *context, size_t most, const host_place *place, hfsad_error *err);

/* Call it after all nodes are added: passes them the messages that the store keeps instead of states, so that all nodes
 * have their committed states. Nothing is written. The first host_step does the same by itself. */
hfsad_status host_recall(host *h, hfsad_error *err);
/* One turn: waits at most timeout_ms for messages. Only lack of memory and a permanent failure of the transport are
 * errors. */
hfsad_status host_step(host *h, int64_t timeout_ms, hfsad_error *err);
/* Sends a message to a node's parent on behalf of the host, once. Handlers may call it. */
hfsad_status host_say(host *h, size_t i, const message *m, hfsad_error *err);
/* Ends the run because of an error: from now on turns only tell all nodes the reason. An error if an older process is
 * the root. */
hfsad_status host_dismiss(host *h, const char *why, hfsad_error *err);
/* Whether all nodes below have acknowledged that reason. */
bool host_all_dismissed(const host *h);
/* Commits lines of the record, each with a newline at its end, before a node exists. host_get_lines: all lines so far.
 */
hfsad_status host_put_lines(host *h, const char *lines, hfsad_error *err);
hfsad_status host_get_lines(const host *h, void (*line)(void *context, const char *text), void *context,
                            hfsad_error *err);
/* Publishes a last STATUS for each node, which replaces its will, and waits at most patience_ms until the brokers have
 * it. Leaves out nodes that another process has taken over. Call only host_free afterwards. */
void host_leave(host *h, uint32_t patience_ms);
/* Whether all its nodes have ended and have sent their last messages. */
bool host_ended(const host *h);
/* Whether all its nodes are connected to their brokers. */
bool host_is_connected(const host *h);
/* Creates the root's node after its inquiry has the result of the set-up. */
hfsad_status host_set_up(host *h, hfsad_error *err);
size_t host_nodes(const host *h);
inquiry *host_inquiry(const host *h, size_t i);
/* The state folder; NULL: none. */
const char *host_folder(const host *h);
bool host_has_state(const host *h);       /* the state folder has commits */
node *host_node(const host *h, size_t i); /* NULL: not set up yet */
const char *host_path(const host *h, size_t i);

/* Counters of the process since its start. */
typedef struct {
    transport_counts frames; /* in both directions */
    uint64_t heard;          /* number of messages from neighbours, without STATUS */
    uint64_t commits, commit_failures;
    double commit_seconds;
} host_counts;
host_counts host_get_counts(const host *h);

/* Connection of a node to its neighbours. */
typedef struct {
    bool connected;              /* to all its brokers */
    uint64_t parent_ms;          /* since the last message of this run from its parent; UINT64_MAX: never */
    size_t children, live;       /* live: number of children with a recent STATUS */
    uint64_t garbled, strangers; /* messages that the host refused because of their bytes, topic or sender */
} host_links;
host_links host_get_links(const host *h, size_t i);

/* The children that a node waits for, and how long it has waited. */
typedef struct {
    size_t count, first; /* first: slot of the first one */
    uint64_t ms;
} host_waits;
host_waits host_get_waits(const host *h, size_t i);
bool host_waits_for(const host *h, size_t i, size_t slot);
/* "edge1/client2, edge1/client7 and 3 more for 12 s"; "" if it waits for no child. */
void host_describe_waits(const host *h, size_t i, char *text, size_t size);
/* The path of a child; NULL: no such slot. */
const char *host_child(const host *h, size_t i, size_t slot);

/* Root: orders the readmission (retires: the retirement) of a node, or continues an order from before a restart; false:
 * not possible yet. host_readmitted: a completed order; NULL: none. */
bool host_readmit(host *h, const char *path, bool retires);
const run_readmission *host_readmitted(host *h);

/* The last row of the trace since the root's start; NULL: none. */
const hfsad_figures *host_last_row(const host *h);
/* Sets the last row for status messages, if the row was not made by a node but by a driver that asks through the
 * inquiry. */
void host_show_row(host *h, const hfsad_figures *row);

#endif
