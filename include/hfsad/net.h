/*
 * hfsad/net.h: what libhfsad-net offers to programs beside libhfsad: the processes of a federation, and its keys.
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
    const char *broker;       /* "mosquitto", or "nats" for a cluster with a node at each host; NULL: mosquitto */
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
/* The authority signs that a client of an asynchronous run is lost for good, so that the others of its cohort go on
 * without it: *proof, to be freed by free, is for hfsad_retire. It holds for the run of this spec, and for state
 * folders that exist already. */
HFSAD_API hfsad_status hfsad_keys_cohort(const char *folder, const hfsad_spec *spec, const char *client, char **proof,
                                         hfsad_error *err);
/* The names of a node's certificate and private key, each into a buffer of `size` bytes; false: too long. */
HFSAD_API bool hfsad_keys_files(const char *folder, const char *node, char *certificate, char *key, size_t size);

/* ---- the tree of a federation ---- */

/* The tree of a spec, from federation.nodes or from the data. The spec is checked as every process of its federation
 * checks it. */
typedef struct hfsad_tree hfsad_tree;
HFSAD_API hfsad_status hfsad_tree_create(hfsad_tree **tree, const hfsad_spec *spec, hfsad_error *err);
/* NULL is allowed. */
HFSAD_API void hfsad_tree_free(hfsad_tree *tree);
/* Nodes are numbered and named as by hfsad_run_node_name: the inner nodes first, 0 the cloud. */
HFSAD_API size_t hfsad_tree_nodes(const hfsad_tree *tree);
HFSAD_API size_t hfsad_tree_inner_nodes(const hfsad_tree *tree);
HFSAD_API size_t hfsad_tree_node_name(const hfsad_tree *tree, size_t node, char *buffer, size_t size);
/* How many clients an inner node has, and the number of the first. */
HFSAD_API size_t hfsad_tree_clients(const hfsad_tree *tree, size_t node, size_t *first);
/* The text of the list of nodes, as `hfsad nodes` prints it; the tree's. */
HFSAD_API const char *hfsad_tree_list(const hfsad_tree *tree);
/* Whether a folder with the state folders of all nodes can be this run's: the error says what differs. */
HFSAD_API hfsad_status hfsad_tree_check_state(const hfsad_tree *tree, const char *folder, hfsad_error *err);

/* A process that has ended: its state folder, and its nodes. */
typedef struct {
    const char *folder;
    size_t first, count;
} hfsad_tree_process;
/* Writes state.csv and checkpoint.bin of the run that these processes have trained into the folder with its other
 * files, if the spec asks for them. The cloud is the first process, and every node is in one of them. If the nodes are
 * not all at the cloud's last row, or the data has other nodes than the federation, *whole is false, nothing is written
 * and err->message says why. */
HFSAD_API hfsad_status hfsad_tree_gather(const hfsad_tree *tree, const hfsad_tree_process *processes, size_t count,
                                         const char *out, bool *whole, hfsad_error *err);

/* The folder of a broker for this federation, to be given to the broker's user alone: copies of ca.crt, broker.crt,
 * broker.key and revoked.crl, an access list with the exact topics of every node, and a configuration whose limits
 * follow from the tree. place: the folder on the broker's machine; NULL: as here. */
HFSAD_API hfsad_status hfsad_keys_broker(const char *keys, const hfsad_tree *tree, const char *out, const char *place,
                                         hfsad_error *err);
/* Whether the folder of keys is for a cluster of brokers. */
HFSAD_API bool hfsad_keys_clustered(const char *keys);
/* Of which: "nats" or "rabbitmq"; NULL: none. */
HFSAD_API const char *hfsad_keys_cluster(const char *keys);

/* ---- a process of a federation ---- */

/* The cloud, an edge (any inner node below the cloud), a client or all clients of one inner node. */
typedef struct hfsad_member hfsad_member;
typedef enum { HFSAD_ROLE_CLOUD, HFSAD_ROLE_EDGE, HFSAD_ROLE_CLIENT } hfsad_role;

typedef enum { HFSAD_LOG_ERROR, HFSAD_LOG_WARNING, HFSAD_LOG_INFO, HFSAD_LOG_DEBUG } hfsad_log_level;

/* A line of the log; the library owns it. Texts that do not apply are "". */
typedef struct {
    hfsad_log_level level;
    const char *node; /* path */
    const char *event, *text;
    const char *topic; /* of a message that was refused */
} hfsad_log;

/* The state of a process after a turn; the library owns it. */
typedef struct {
    uint64_t round;               /* of its first node; 0: set-up */
    const hfsad_figures *figures; /* cloud: the last row of the trace; NULL: none, or another role */
} hfsad_turn;

/* The end of the cloud's run; the library owns it. */
typedef struct {
    hfsad_stop stop;
    const char *table; /* figures and verdict, as `hfsad cloud` prints them; "" if there is no row */
    const char *line;  /* of a run that was cancelled or has diverged: what happened; "" otherwise */
} hfsad_member_end;

typedef struct {
    size_t size; /* sizeof(hfsad_member_settings), by the caller; members that do not apply are 0 */
    hfsad_role role;
    const char *name;      /* path of the edge or client */
    const char *all_of;    /* clients: path of an inner node, whose clients all run in this process; name is NULL */
    const char *nodes;     /* text of the list of nodes, as `hfsad nodes` prints it; NULL: that of federation.nodes */
    hfsad_data *data;      /* clients: rows in memory; without paths they belong to `name`, and get its path */
    const char *data_file; /* clients: file with the rows; NULL: data of the spec */
    const char *broker;    /* mqtts://host[:8883], mqtt://host[:1883] or unix:///socket, NULL: mqtt://localhost; the
                              nodes of a clustered broker with commas between them */
    const char *above;     /* broker of the parent, if it differs */
    const char *below;     /* broker of the children, if it differs */
    const char *keys;      /* folder of hfsad_keys_init */
    const char *ca;        /* instead of keys: certificate of the authority, ... */
    const char *certificate, *key; /* ... and of the node */
    bool insecure;                 /* allows mqtt:// to another machine */
    const char *state;             /* folder for the state that survives a crash; made if it is missing */
    bool state_process;            /* survives a crash, not a loss of power: no disk sync, unless with noise or masks */
    bool rows_on_disk;             /* clients: dense rows of files go to a scratch file beside the state */
    const char *out;               /* cloud: output folder */
    const char *record;            /* asynchronous mode: file for the record, written at the end; NULL: none */
    const char *metrics;           /* HOST:PORT for Prometheus; NULL: none */
    int keepalive;                 /* seconds of silence before a connection is probed; 0: 30 */
    double linger;                 /* inner nodes: seconds of silence after the run before the process may end */
    void *context;                 /* of the callbacks, which may be NULL */
    void (*log)(void *context, const hfsad_log *line);
    /* After every turn, at least once a second; false: cancel. */
    bool (*turn)(void *context, const hfsad_turn *turn);
    /* Cloud: the output folder is complete. Other nodes may still ask for the end, so the process lingers. */
    void (*ended)(void *context, const hfsad_member_end *end);
    /* Cloud: a row of the trace with the cloud's model of `width` numbers. A process that continues a run passes the
     * rows of its earlier life first; the model of those is NULL. */
    void (*row)(void *context, const hfsad_figures *row, const double *model, size_t width);
    /* Without certificates: file with a secret of all nodes of this run, 16 to 4096 bytes, of mode 0600. Frames then
     * have tags, as they have with certificates. NULL: none. */
    const char *secret;
    /* Clients: file to which a line is added for every question and its answer; NULL: none. */
    const char *audit;
} hfsad_member_settings;

/* The list of nodes of a spec, as `hfsad nodes` prints it: the number of features and the paths of all clients, from
 * federation.nodes or from the data. *text is to be freed by free. */
HFSAD_API hfsad_status hfsad_nodes_list(const hfsad_spec *spec, char **text, hfsad_error *err);
/* The state folder that the program uses for a node, "folder/edge1+client7", or for all clients of an inner node,
 * "folder/edge1++clients", into a buffer of `size` bytes; false: too long. */
HFSAD_API bool hfsad_state_folder(const char *folder, const char *node, bool clients, char *path, size_t size);

/* What is in a state folder. */
typedef struct {
    size_t size; /* sizeof(hfsad_state_facts), by the caller */
    uint64_t run, commits;
    uint64_t snapshot, log;               /* bytes */
    uint64_t unfinished;                  /* bytes of a write that was never finished, behind the log */
    size_t states, messages, rows, lines; /* messages: in place of states */
} hfsad_state_facts;
/* Whether it is a state folder. */
HFSAD_API bool hfsad_state_exists(const char *folder);
/* Reads and verifies every committed byte; no process may have the folder open, and nothing is written. put, unless
 * NULL, gets the content: one JSON object for every state, message, row of the trace and line of the record. */
HFSAD_API hfsad_status hfsad_state_check(const char *folder, hfsad_state_facts *facts,
                                         void (*put)(void *context, const char *line), void *context, hfsad_error *err);

/* Removes the files of a state folder that no process has open; the folder stays. */
HFSAD_API void hfsad_state_remove(const char *folder);

/* Leaves a request in the state folder of the cloud: it readmits `count` nodes whose state folders are lost. Their
 * links start anew from their parents' models. spec may be NULL: then the cloud checks the names. */
HFSAD_API hfsad_status hfsad_readmit(const hfsad_spec *spec, const char *state, const char *const *nodes, size_t count,
                                     hfsad_error *err);
/* Whether the cloud has not done all of it yet. */
/* The same for clients that leave an asynchronous run: their links count no more. hfsad_readmit lets them join again.
 * With privacy.cohort, the path of a client is followed by a newline and the proof of hfsad_keys_cohort, and no client
 * joins again. */
HFSAD_API hfsad_status hfsad_retire(const hfsad_spec *spec, const char *state, const char *const *nodes, size_t count,
                                    hfsad_error *err);
HFSAD_API bool hfsad_readmit_is_pending(const char *state);
/* Whether the cloud has refused the last request for a node, as its log says; asked once. */
HFSAD_API bool hfsad_readmit_was_refused(const char *state, const char *name);
/* Adds clients to federation.nodes of an asynchronous run that goes on. Processes above them read the list again. */
HFSAD_API hfsad_status hfsad_admit(const hfsad_spec *spec, const char *const *names, size_t count, hfsad_error *err);

/* Checks and opens everything: spec, tree, rows, certificates, state folder. Nothing is sent. The spec and the texts of
 * settings are copied; data must not change until the member is freed. */
HFSAD_API hfsad_status hfsad_member_create(hfsad_member **member, const hfsad_spec *spec,
                                           const hfsad_member_settings *settings, hfsad_error *err);
/* Runs until the run has ended or is cancelled. If the broker or another process is down, it waits. *stop, unless NULL:
 * HFSAD_STOP_INTERRUPTED after a cancel; otherwise the reason that the cloud knows, for other roles
 * HFSAD_STOP_ITERATIONS. A member runs once; a process that starts again with the same state folder continues the run.
 */
HFSAD_API hfsad_status hfsad_member_run(hfsad_member *member, hfsad_stop *stop, hfsad_error *err);
/* Whether hfsad_member_run has returned, with HFSAD_STOP_INTERRUPTED, because federation.nodes has more clients below
 * this node: free the member, and create and run it again. */
HFSAD_API bool hfsad_member_has_grown(const hfsad_member *member);
/* Seconds that a cloud that was cancelled may take to gather the models of all nodes. */
enum { HFSAD_MEMBER_LOOK_SECONDS = 3 };
/* Ends hfsad_member_run within about a second. From any thread, and from a signal handler. */
HFSAD_API void hfsad_member_cancel(hfsad_member *member);
/* NULL is allowed. A state folder without content is removed if the member made it. */
HFSAD_API void hfsad_member_free(hfsad_member *member);

/* ---- an observer: what the nodes of a federation say of themselves ---- */

typedef struct hfsad_observer hfsad_observer;

typedef struct {
    size_t size;                   /* sizeof(hfsad_observer_settings), by the caller */
    const char *const *brokers;    /* each with some of the nodes; an edge may be at two */
    size_t n_brokers;              /* 0: mqtt://localhost */
    const char *nodes;             /* text of the list of nodes; NULL: that of federation.nodes or of the data */
    const char *keys;              /* folder of hfsad_keys_init, with a certificate for "observer" */
    const char *ca;                /* instead of keys: certificate of the authority, ... */
    const char *certificate, *key; /* ... and of the observer */
    bool insecure;                 /* allows mqtt:// to another machine */
} hfsad_observer_settings;

/* live; stale: silent for 15 s; gone: its process has ended; done: its run has ended; unknown: never heard. */
typedef enum {
    HFSAD_SEEN_UNKNOWN,
    HFSAD_SEEN_LIVE,
    HFSAD_SEEN_STALE,
    HFSAD_SEEN_GONE,
    HFSAD_SEEN_DONE,
    HFSAD_SEEN_OTHER_RUN,
} hfsad_seen_state;

typedef struct {
    size_t size;     /* sizeof(hfsad_seen), by the caller */
    char path[1024]; /* cut to size */
    size_t parent;   /* SIZE_MAX for the cloud */
    size_t children; /* 0: a client */
    hfsad_seen_state state;
    const char *phase;                 /* "set-up", "training", "done", "-" */
    bool has_numbers;                  /* the following, up to said_ms: a node that was killed leaves none */
    uint64_t round, refused, repeated; /* refused: without those that were merely old */
    uint64_t sent, received;           /* bytes of its process */
    size_t waits;                      /* number of children that it waits for, ... */
    size_t waits_for;                  /* ... the first of them, as a node, ... */
    uint64_t waits_ms;                 /* ... and for how long */
    uint64_t process;                  /* a random number of its process */
    uint64_t said_ms;                  /* when, since 1970 */
    bool has_figures;                  /* the cloud, after its first row: */
    uint64_t iteration;
    double objective, primal_residual, dual_residual;
} hfsad_seen;

HFSAD_API const char *hfsad_seen_state_name(hfsad_seen_state state);

/* Connects in hfsad_observer_wait. The spec is copied. */
HFSAD_API hfsad_status hfsad_observer_create(hfsad_observer **observer, const hfsad_spec *spec,
                                             const hfsad_observer_settings *settings, hfsad_error *err);
/* Listens for `seconds`, or until every node has been heard if `all` and there is one broker. A broker that does not
 * answer is no error here. HFSAD_ERROR_INPUT: one has refused the observer. */
HFSAD_API hfsad_status hfsad_observer_wait(hfsad_observer *observer, double seconds, bool all, hfsad_error *err);
/* The nodes, numbered as in hfsad_run_node_name: inner nodes by depth, 0 the cloud, then the clients. */
HFSAD_API size_t hfsad_observer_nodes(const hfsad_observer *observer);
HFSAD_API bool hfsad_observer_node(const hfsad_observer *observer, size_t node, hfsad_seen *seen);
/* The node at a place among the children of an inner node. */
HFSAD_API size_t hfsad_observer_child(const hfsad_observer *observer, size_t node, size_t place);
/* How often something was heard; unchanged: no node has said anything since. */
HFSAD_API uint64_t hfsad_observer_heard(const hfsad_observer *observer);
/* NULL: the broker answers; otherwise why it does not. */
HFSAD_API const char *hfsad_observer_broker(const hfsad_observer *observer, size_t broker);
/* NULL is allowed. */
HFSAD_API void hfsad_observer_free(hfsad_observer *observer);

#ifdef __cplusplus
}
#endif

#endif
