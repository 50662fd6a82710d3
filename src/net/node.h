/*
 * A node of a federation as a state machine: leaf, inner node or root. It uses no socket, clock, file or thread: its
 * caller passes messages and the time, and it returns the messages to send. The caller (host.h) passes received
 * messages, commits the changed states, and only then sends. After a crash a node therefore still knows everything that
 * it has sent.
 *
 * Synchronous training, in rounds (docs/algorithm.md, "One global iteration"; counted from 1 over the whole run, K =
 * edge_rounds of them in a global iteration). DOWN(g) is the parent's w for round g; UP(g) is the child's message after
 * it. The root sends one message per iteration: DOWN((t-1)K+1), and its children answer UP(tK). Child and parent
 * compute the same draw of participation, so a parent does not wait for an absent child and uses its last u.
 *
 * A measured iteration ends with a question: ASK(tK) contains w_0 and, below an inner node, then that node's w; the
 * ANSWER is a tally (plan/tally.h). No node begins round tK+1 before it has answered and has the parent's DOWN, because
 * the answer may end the run. The last question, in PHASE_FINAL, is answered by MODEL: the node's w and those of all
 * below it, a node before its children, these in slot order; in parts if they are many, the next part when the parent
 * has asked for it by an ACK.
 *
 * If the safeguard (plan/guard.h) is on, inner nodes process every DOWN and send UP in every period, with the strain of
 * the links below after u, and no node goes beyond an iteration before the root has decided. A repair is a question
 * too, in NODE_PHASE_ANEW: all nodes restart at the model in it. Earlier messages then have an old phase.
 *
 * Training may have stages: trainings that find the start of the run (plan.h), then the run itself. A stage is a
 * separate training with its own numbers, from round 1, and always synchronous before the last stage. It produces no
 * rows; its one measurement, at its end, gives the root the start of the next stage, which goes down as a question in
 * NODE_PHASE_STAGE. A node answers when it and all nodes below it have begun the next stage. Messages of the previous
 * stage are then old.
 *
 * Asynchronous training. A node counts its own steps; DOWN(v) is its w after step v - 1. A child takes a turn on its
 * newest DOWN: a client steps, an inner node makes its rounds for one w of its parent. Then it sends UP(v), and waits
 * for the acknowledgement before the next turn, so that its parent knows of every turn. The parent steps when enough
 * children have sent something new, or at its deadline, and uses the last u of the others, which it stores. The record
 * contains the inputs of every step. Figures are asked for at the start, at the end, and in between during training;
 * the record also contains the moment for which each node answered.
 *
 * Failures. Every message may be lost, doubled or delayed, and messages may arrive in any order. A sender retransmits
 * its last value until it is acknowledged: an UP by a later DOWN, a DOWN by the UPs, an ASK by the answers, and the
 * models at the end by an ACK. A node answers whenever it is asked, and does not retransmit answers by itself. A parent
 * does not store its children's messages; k of DOWN counts the starts of the sender, and a child that sees a new count
 * retransmits its last UP, even if it does not take part.
 */
#ifndef HFSAD_NET_NODE_H
#define HFSAD_NET_NODE_H

#include "base/gaussian.h"
#include "base/words.h"
#include "net/channel.h"
#include "net/message.h"
#include "plan/guard.h"
#include "plan/share.h"
#include "plan/tally.h"
#include "run/averaging.h"
#include "run/readmission.h"

typedef struct node node;

/* The field phase of a message: its lowest NODE_PHASE_BITS bits are one of these; the number of repairs so far is above
 * them, and the stage, counted from 0, begins at bit NODE_STAGE_BIT. */
enum {
    NODE_PHASE_SETUP = 1,
    NODE_PHASE_TRAIN = 2,
    NODE_PHASE_FINAL = 3,
    NODE_PHASE_ANEW = 4,
    NODE_PHASE_STAGE = 5,
    NODE_PHASE_LOOK = 6,
    NODE_PHASE_ORDER = 7, /* a node has to be readmitted; host_admit.c handles this phase and the next */
    NODE_PHASE_ADMIT = 8,
    NODE_PHASE_COHORT = 9, /* cards and lists of cohorts (host_cohort.c) */
    NODE_PHASE_BITS = 8,
    NODE_STAGE_BIT = 32,
    NODE_LIFE_BIT = 48 /* in messages to the parent: the incarnation of the link */
};

/* Upper limit on the local steps of a client's round, if they follow the client's speed. */
enum { NODE_STEPS_MOST = 1000 };
/* Upper limit on the count of numbers in a MODEL: one MiB, a size that brokers accept. */
enum { NODE_PART = 1 << 17 };

/* What a parent knows about a child before training. */
typedef struct {
    bool leaf;
    bool out; /* asynchronous: the child was absent during the set-up and has not joined yet */
    double participation;
    uint64_t key;         /* of its participation draws: rng_key(seed, rng_stream(its name)) */
    size_t nodes;         /* size of its subtree, the child included */
    size_t leaves;        /* number of clients in its subtree */
    uint32_t local_steps; /* clients only */
    hfsad_link_rule rule;
} node_child;

/* The step rule of an asynchronous parent. */
typedef struct {
    double quorum;        /* fraction of the children that must have sent a new UP; above 0 */
    uint32_t deadline_ms; /* the node also steps this long after its last step, if one child has sent a new UP */
    bool stale_waits;     /* the node waits for a child that is K_a global iterations behind, ... */
    uint32_t stale_ms;    /* ... but at most this long; used if stale_waits is false */
    uint32_t
        steps_most; /* upper limit on local steps that follow a client's speed; 0: the number of local steps is fixed */
    uint32_t
        answer_ms; /* upper limit on waiting for the answers of children at a row and at the end, unless stale_waits */
} node_pace;

/* Parameters of a node. node_create copies them, except p, average, rows and the two classes: these stay with the
 * caller and must outlive the node. */
typedef struct {
    uint64_t run;
    const plan *p; /* settings of the run as numbers; the classes below need not be part of it */
    size_t M;
    size_t tiers;          /* depth of the whole tree */
    uint32_t depth;        /* 0: the root */
    size_t slot;           /* position among the children of its parent, inner nodes first */
    size_t siblings;       /* number of children of its parent, this node included */
    size_t inner_siblings; /* number of inner nodes among them */
    uint64_t key;
    int intercept;       /* INTERCEPT_xxx of the spec; the intercept is the last coordinate */
    const double *start; /* M */
    node_patience patience;
    bool tame;              /* no schedule of the tree can overflow, so messages of children are checked against bounds
                               (node_bounds.c) */
    bool guarded;           /* the safeguard watches this run: plan_is_guarded, and synchronous training */
    bool keeps;             /* the root keeps its best model: plan_has_guard, and synchronous training */
    bool star;              /* the tree that the safeguard watches has one tier */
    size_t tied;            /* root: plan_tied */
    unsigned exclude_after; /* number of messages beyond the bounds after which the parent excludes a child; 0: 1 */
    bool async;             /* asynchronous training */
    const baseline_rule *average; /* FedAvg or FedProx; NULL: HFSAD */
    node_pace pace;               /* asynchronous training only */

    const leaf_class *leaf;   /* class of a client; NULL: an inner node or the root */
    const double *x;          /* a client with one dense row: x, y and n = |x|^2; NULL: its data is in rows */
    double y, n;              /* of x */
    client_rows rows;         /* if x is NULL */
    bool keeps_w;             /* plan_keeps_w */
    uint64_t noise_key;       /* random stream of its noise, if `noise` has no functions */
    word_source noise;        /* random words of its noise; NULL functions: noise_key gives them */
    size_t number;            /* the node's number, passed to a caller's own loss */
    const inner_class *inner; /* class of an inner node or the root; NULL: a client */
    size_t n_children;
    size_t n_later;             /* number of children, at the end of the list, that were admitted during the run */
    const node_child *children; /* in slot order: inner nodes first, then clients */
    size_t links;               /* root: number of links of the whole tree */
    bool absences;              /* root: a node of the tree may be absent */

    size_t part;   /* upper limit on the count of numbers in a MODEL; 0: NODE_PART, or M if that is larger */
    size_t polish; /* root: count of numbers in the result of the polish, which precedes the question for models; 0: no
                      polish */

    uint64_t stage, stages; /* the current stage and the number of stages; the last stage is the run */
    bool consensus;         /* stage 0 computes a consensus start; the stages between it and the run try other starts */
    const void *maker; /* several stages: make() creates node `number` for another stage, which starts at `start` */
    hfsad_status (*make)(const void *maker, size_t number, uint64_t stage, const double *start, node **n,
                         hfsad_error *err);
} node_setup;

hfsad_status node_create(node **n, const node_setup *setup, hfsad_error *err);
void node_free(node *n);

/* Why a message had no effect. */
#define NODE_REFUSAL_LIST(X)                                                                                           \
    X(RUN, "of another run")                                                                                           \
    X(KIND, "of a kind that does not come from there")                                                                 \
    X(SIZE, "with a wrong number of numbers")                                                                          \
    X(VALUE, "with a number that is not finite or makes no sense")                                                     \
    X(BOUND, "with a number beyond the bounds of the mathematics")                                                     \
    X(FUTURE, "with a counter from the future")                                                                        \
    X(OLD, "old or repeated")

typedef enum {
#define NODE_REFUSAL_ENUM(name, text) NODE_REFUSED_##name,
    NODE_REFUSAL_LIST(NODE_REFUSAL_ENUM)
#undef NODE_REFUSAL_ENUM
        NODE_REFUSALS
} node_refusal;

const char *node_refusal_text(node_refusal refusal);

/* A sender: the parent, or the slot of a child. */
enum { NODE_PARENT = SIZE_MAX };

/* Processes a message, which stays with the caller. Returns true if the message changed the node's state; otherwise
 * *why (may be NULL) is the reason. Old messages are normal: every retransmission produces them. */
bool node_handle(node *n, size_t from, const message *m, node_refusal *why);
/* Secure aggregation: stores the digest of a parent's DOWN or ASK in the message. The digest is the same for all nodes
 * that receive the message. */
void node_digest(const node *n, message *m);
/* Whether the budget of the noise is one for each row. */
bool node_protects_rows(const node *n);
/* Whether a number that the node has to send does not fit into fixed point, or a step was not solved as closely as the
 * noise needs; the node then cannot continue. */
bool node_is_too_large(const node *n);
/* Sets the node's clock: milliseconds of a monotonic clock. Call it before node_handle and at the time node_due
 * returns. */
void node_tick(node *n, uint64_t now_ms);
/* Asynchronous: sets the local steps of a client's following rounds, according to its speed. */
void node_set_local_steps(node *n, uint32_t steps);
/* Time of the next node_tick that the node needs; UINT64_MAX: none until a message arrives. */
uint64_t node_due(const node *n);

/* Call it after a reconnect: the node retransmits all unacknowledged messages at once. */
void node_repeat(node *n);
/* Upper limit on the count of numbers in a message to this node. */
size_t node_message_most(const node *n);

/* A message to send. Call node_next_letter after the state is committed, until it returns false. The numbers belong to
 * the node and are valid until the next call. */
typedef struct {
    bool to_parent; /* false: to all children */
    message m;
} node_letter;
bool node_next_letter(node *n, node_letter *letter);

/* Whether the state has changed since the last node_pack. It must then be committed before anything is sent. */
bool node_changed(const node *n);
void node_pack(node *n, word_writer *w);
/* Whether an earlier state and the accepted messages since then determine the current state. The store may then keep
 * these messages instead of the state and pass them to node_handle again after node_unpack. True for synchronous
 * clients; an asynchronous client also depends on the clock. */
bool node_follows(const node *n);
/* Marks the state as stored without node_pack. */
void node_keep(node *n);
/* Restores a state into a node with the same setup. false: the bytes are not a state of this node; free the node. */
bool node_unpack(node *n, word_reader *r);

/* Root: returns a row of the trace if one is complete; its relative_error and seconds are NAN. Call it before
 * node_pack. */
bool node_take_figures(node *n, hfsad_figures *f);
/* Root: the cloud's model of the last row. */
const double *node_row_w(const node *n);

/* Asynchronous: new lines of the record, each with a newline at its end; NULL: none. The caller frees them and writes
 * the node's path before each (run/replay.h). Call it before node_pack. */
char *node_take_lines(node *n);

/* The state of a node. A client rests until it is finished: it steps while it processes a message. */
#define NODE_STATE_LIST(X)                                                                                             \
    X(RESTS, "between rounds: it waits for its parent, for its turn or for answers")                                   \
    X(TRAINS, "a round is open: it waits for its children's UPs")                                                      \
    X(REPAIRS, "cloud: all nodes have to restart")                                                                     \
    X(STAGE_OVER, "cloud: all nodes have to begin the next stage")                                                     \
    X(ENDED, "cloud: training is over, and the polish is pending")                                                     \
    X(CLOSES, "cloud: it has asked for the models of all nodes")                                                       \
    X(HALTED, "asynchronous, below the cloud: it does not step any more")                                              \
    X(FINISHED, "the cloud has its model")

/* States of a node's current question. */
#define QUESTION_STATE_LIST(X)                                                                                         \
    X(NONE, "no question is open")                                                                                     \
    X(WAITS, "it waits until its round is done")                                                                       \
    X(ASKED, "it was forwarded, and the answers of the children are pending")

typedef enum {
#define NODE_STATE_ENUM(name, text) NODE_##name,
    NODE_STATE_LIST(NODE_STATE_ENUM)
#undef NODE_STATE_ENUM
        NODE_STATES
} node_state;

typedef enum {
#define QUESTION_STATE_ENUM(name, text) QUESTION_##name,
    QUESTION_STATE_LIST(QUESTION_STATE_ENUM)
#undef QUESTION_STATE_ENUM
        QUESTION_STATES
} question_state;

typedef enum { NODE_RUNNING, NODE_DONE, NODE_CONVERGED, NODE_DIVERGED } node_end;
/* Root: the reason for the end. Other nodes: NODE_DONE after the root has received their model. */
node_end node_ended(const node *n);
/* Root: the same reason, known as soon as the last row decides it, before the models have arrived. */
node_end node_decided(const node *n);

/* The node's model for the output. An intercept that is not tied to those of the children is taken from the last
 * measurement. */
void node_model(const node *n, double *w);
/* Root: collects the current models of all nodes without ending the run. Synchronous training then pauses at the next
 * row of the trace. A crash forgets the request. */
void node_look(node *n);
/* Root, after the end or after node_look: the models of all other nodes in the order that the head of this file
 * describes; NULL: they have not arrived. */
const double *node_models_below(const node *n);
/* Whether the node of one of these models was absent. The model is then not valid, and the output contains the model of
 * the node's parent. */
run_absence node_model_absence(const double *w);

typedef struct {
    uint64_t round, k;
    uint64_t refused[NODE_REFUSALS];
    uint64_t repeated; /* number of retransmissions */
} node_status;
node_status node_get_status(const node *n);
/* Whether the node waits for this child: for its UP, or for its answer to the current question. node_waits_since is the
 * time at which the wait began, on the clock of node_tick. */
bool node_waits_for(const node *n, size_t c);
uint64_t node_waits_since(const node *n);
/* The counter k of a child's link in its last UP. */
uint64_t node_child_k(const node *n, size_t c);
/* Asynchronous: whether the node continues without this child because the child did not answer in time. */
bool node_child_is_absent(const node *n, size_t c);
/* Asynchronous: node_asks says whether a question is open. node_child_lives tells the node whether the child's process
 * is up. node_child_trains says whether a round has begun for the child. */
bool node_asks(const node *n);
void node_child_lives(node *n, size_t c, bool lives);
bool node_child_trains(const node *n, size_t c);
/* Whether a child has sent exclude_after messages beyond the bounds. */
bool node_child_lies(const node *n, size_t c);
/* Readmission (node_admit.c). A link has incarnations, which the code calls lives; the number of the readmission is the
 * number of the new life. Parent: begins a new life of a child's link; false: that life has begun already. */
bool node_child_begin(node *n, size_t c, uint64_t life);
/* Asynchronous: a client leaves; the result is that of node_child_begin. */
bool node_child_retire(node *n, size_t c, uint64_t life);
/* Asynchronous, secure aggregation: whether a child may leave its cohort now. node_unit: the cohort of child c is the
 * children *first to *end - 1. */
bool node_child_may_leave(const node *n, size_t c);
void node_unit(const node *n, size_t c, size_t *first, size_t *end);
/* Notes that a child has to leave: its cohort is not called for a while, so that the child may leave. */
void node_child_wish(node *n, size_t c);
/* Marks a child as leaving, together with all members of its cohort that have to leave; the others are told next. */
void node_child_close(node *n, size_t c);
bool node_child_is_closing(const node *n, size_t c);
/* Whether it is a member of its cohort and is not about to leave it. */
bool node_child_stays(const node *n, size_t c);
/* The round of the last UP. */
uint64_t node_said(const node *n);
/* Whether the last figures have arrived: no node trains or joins from then on. */
bool node_is_over(const node *n);
/* Whether a child has left or has not joined yet. */
bool node_child_is_out(const node *n, size_t c);
/* Whether a child has neither left nor been set aside. */
bool node_child_counts(const node *n, size_t c);
/* Whether the child has not answered the current question, and nothing waits for its answer any more. */
bool node_child_is_mute(const node *n, size_t c);
uint64_t node_child_life(const node *n, size_t c);
/* The readmission that began the current life of a child's link; its path is empty. */
run_readmission node_child_readmission(const node *n, size_t c);
/* Whether the child has confirmed the current life of its link; node_child_confirm records the confirmation. */
bool node_child_is_admitted(const node *n, size_t c);
void node_child_confirm(node *n, size_t c, uint64_t life);
/* Contents of the message that readmits a child: NODE_ADMISSION numbers, then a model. */
enum { NODE_ADMISSION = 8 };
/* Upper limit on the count of numbers of a RECORD. */
enum { NODE_RECORD_NUMBERS = 4096 };
size_t node_admission_count(const node *n);
void node_admission(node *n, size_t c, double *numbers);
/* Child: starts a new life of its link from these numbers; further numbers are ignored. parent_begun is the parent's
 * node_begun. false: the numbers are not valid here. */
bool node_admit(node *n, const double *numbers, size_t count, uint64_t parent_begun);
/* The current life of the link to the parent; root: the number of the last readmission. */
uint64_t node_life(const node *n);
bool node_is_async(const node *n);
/* Root: node_order starts the readmission (retires: the retirement) of a node and returns its number; a pending order
 * keeps its number, also over a restart. 0: NODE_ORDERS orders are pending. node_note_readmission completes an order
 * and writes its line of the record (run/anew.h). */
enum { NODE_ORDERS = 16 };
uint64_t node_order(node *n, const char *path, bool retires);
/* The path of pending order i, i < NODE_ORDERS; NULL: none. */
const char *node_pending_order(const node *n, size_t i, bool *retires);
void node_note_readmission(node *n, uint64_t number, const run_readmission *done);

/* Asynchronous: ignores all further messages of the child. Nothing waits for it; its last UP stays in force. */
void node_set_aside(node *n, size_t c);

/* How often the node has been started, restarts from a stored state included. */
uint64_t node_begun(const node *n);
/* Root: the model to polish, M numbers that are valid until node_take_polish; NULL: no polish is pending. */
const double *node_wants_polish(node *n, uint64_t *begun);
/* Passes the result of the polish; missing numbers are taken as 0. */
void node_take_polish(node *n, const double *result, size_t count);
/* The result of the polish, setup.polish numbers; NULL: there was no polish. */
const double *node_get_polish(const node *n);
/* Root: results of the stages before the run. */
const start_search *node_get_search(const node *n);
/* This node's part of a checkpoint at the row of `round`; w: room for M numbers. The vectors belong to the node. false:
 * the node has not answered for that row, has continued since, or is about to restart. */
bool node_get_share(const node *n, uint64_t round, double *w, run_share *share);
/* Root: the round of the last row (-1: none), and the states of safeguard and stop rule. */
int64_t node_last_row(const node *n);
const guard_state *node_guard(const node *n);
/* Root: the best w_0 of all rows, and its objective; NULL: the run does not keep it. */
const double *node_best(const node *n, double *objective);
stop_state node_stop(const node *n);
/* Number of the safeguard's repairs; *last: the iteration of the last one, root only. */
uint64_t node_repairs(const node *n, uint64_t *last);

#endif
