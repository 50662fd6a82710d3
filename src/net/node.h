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

/* message.phase; above its lowest NODE_PHASE_BITS bits is the number of repairs so far, and from bit NODE_STAGE_BIT the
 * stage, from 0 */
enum {
    NODE_PHASE_SETUP = 1,
    NODE_PHASE_TRAIN = 2,
    NODE_PHASE_FINAL = 3,
    NODE_PHASE_ANEW = 4,
    NODE_PHASE_STAGE = 5,
    NODE_PHASE_LOOK = 6,
    NODE_PHASE_ORDER = 7, /* a node is to be readmitted; these two are the host's (host_admit.c) */
    NODE_PHASE_ADMIT = 8,
    NODE_PHASE_COHORT = 9, /* cards and lists of cohorts (host_cohort.c) */
    NODE_PHASE_BITS = 8,
    NODE_STAGE_BIT = 32,
    NODE_LIFE_BIT = 48 /* to the parent: the life of the link */
};

/* Local steps of a client's round, if they follow its speed. */
enum { NODE_STEPS_MOST = 1000 };
/* Numbers of a MODEL: a MiB, which brokers take. */
enum { NODE_PART = 1 << 17 };

/* A child as its parent knows it. */
typedef struct {
    bool leaf;
    bool out; /* asynchronous: it was not there at the set-up, and has not joined yet */
    double participation;
    uint64_t key;         /* of its draws: rng_key(seed, rng_stream(its name)) */
    size_t nodes;         /* of its subtree, itself included */
    size_t leaves;        /* of these, clients */
    uint32_t local_steps; /* of a leaf */
    hfsad_link_rule rule;
} node_child;

/* The step rule of an asynchronous parent. */
typedef struct {
    double quorum;        /* part of its children that must have something new, above 0 */
    uint32_t deadline_ms; /* or this long after its last step, if one child has */
    bool stale_waits;     /* a child that is K_a global iterations behind is waited for, ... */
    uint32_t stale_ms;    /* ... or for this long only */
    uint32_t steps_most;  /* local steps of a client's round follow its speed, up to this many; 0: they are fixed */
    uint32_t answer_ms;   /* rows and the end wait this long for the answers of children, unless stale_waits */
} node_pace;

/* What a node is made of. Everything is copied but p, average, rows and the classes, which must outlive it. */
typedef struct {
    uint64_t run;
    const plan *p; /* the numbers of the run; classes are not looked up in it */
    size_t M;
    size_t tiers;          /* of the whole tree */
    uint32_t depth;        /* 0: the root */
    size_t slot;           /* among its parent's children, inner ones first */
    size_t siblings;       /* children of its parent, itself included */
    size_t inner_siblings; /* of these, inner nodes */
    uint64_t key;
    int intercept;       /* INTERCEPT_xxx of the spec; it is the last coordinate */
    const double *start; /* M */
    node_patience patience;
    bool tame;              /* no schedule of the tree comes near an overflow: children have bounds (node_bounds.c) */
    bool guarded;           /* the safeguard is on: plan_is_guarded, and synchronous */
    bool keeps;             /* plan_has_guard, and synchronous */
    bool star;              /* and what it watches is a star */
    size_t tied;            /* plan_tied; root only */
    unsigned exclude_after; /* messages beyond the bounds after which a child is named; 0: 1 */
    bool async;             /* asynchronous training */
    const baseline_rule *average; /* FedAvg or FedProx; NULL: HFSAD */
    node_pace pace;               /* of that */

    const leaf_class *leaf;   /* NULL: an inner node or the root */
    const double *x;          /* one dense row, with y and n = |x|^2; NULL: rows */
    double y, n;              /* of that row */
    client_rows rows;         /* if x is NULL */
    bool keeps_w;             /* plan_keeps_w */
    uint64_t noise_key;       /* of its noise, if that is by the seed */
    word_source noise;        /* of its noise; NULL functions: by the seed */
    size_t number;            /* of the node, for a program's own loss */
    const inner_class *inner; /* NULL: a leaf */
    size_t n_children;
    size_t n_later;             /* its last children came to the list while the run went on */
    const node_child *children; /* inner ones first, then the leaves, each in the order of their slots */
    size_t links;               /* of the whole tree; root only */
    bool absences;              /* a node of the tree may be absent; root only */

    size_t part;   /* numbers of a MODEL at most; 0: NODE_PART, or M */
    size_t polish; /* numbers of a polish's result, which the root waits for before it asks for the models; 0: none */

    uint64_t stage, stages; /* the stage of this setup, and the number of stages; the last is the run */
    bool consensus;         /* the first of several is a consensus start's, the others but the last are tries */
    const void *maker;      /* with several stages: the node `number` of another stage, beginning at start */
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

/* Takes a message in. m and its numbers are the caller's. Returns whether it was news; if not, *why (may be
 * NULL) says why. Old ones are no fault: they come whenever a message is repeated. */
bool node_handle(node *n, size_t from, const message *m, node_refusal *why);
/* Secure: the digest of a DOWN or ASK of the parent, in the message; several nodes may be handed it. */
void node_digest(const node *n, message *m);
/* Whether it should send a number that does not fit into fixed point, so that it cannot go on. */
bool node_is_too_large(const node *n);
/* The time, in milliseconds from anywhere, never less than before. Call it before node_handle and when node_due says.
 */
void node_tick(node *n, uint64_t now_ms);
/* Asynchronous: the steps of a client per round from now on, by its own speed. */
void node_set_local_steps(node *n, uint32_t steps);
/* When the next tick is wanted; UINT64_MAX: not before a message comes. */
uint64_t node_due(const node *n);

/* The connection was lost and is back: what waits for an acknowledgement is sent again at once. */
void node_repeat(node *n);
/* The most numbers that a message to this node may have. */
size_t node_message_most(const node *n);

/* What is to be sent, one after another, once the state is committed; false: nothing more. The numbers are the node's
 * and last until it is called again. */
typedef struct {
    bool to_parent; /* otherwise to all children */
    message m;
} node_letter;
bool node_next_letter(node *n, node_letter *letter);

/* Whether the state has changed since it was last packed. It must then be committed before anything is sent. */
bool node_changed(const node *n);
void node_pack(node *n, word_writer *w);
/* Whether its state follows from an earlier one and the later messages that were news. These may then be stored in
 * place of it, and passed again after node_unpack. True for synchronous clients; an asynchronous client depends on the
 * clock. */
bool node_follows(const node *n);
/* The state is kept by other means than node_pack. */
void node_keep(node *n);
/* Into a node made from the same setup. false: not such a state; the node must then be freed. */
bool node_unpack(node *n, word_reader *r);

/* A row of the trace that is ready: root only, relative_error and seconds are NAN. Take it before the state is packed.
 */
bool node_take_figures(node *n, hfsad_figures *f);
/* The cloud's model that the last row is of. */
const double *node_row_w(const node *n);

/* Asynchronous: lines of the record that are ready, each closed by a newline, or NULL; free it. Without the node's
 * path, which goes before each (sim/replay.h). Take them before the state is packed. */
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

/* Of the question that a node has in hand. */
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
/* Root: why it ended. Others: NODE_DONE once the root has their model. */
node_end node_ended(const node *n);
/* Root: the same as soon as its last row decides it, before it has the models. */
node_end node_decided(const node *n);

/* w as the run has it; intercepts of nodes that are not tied to their children's are those of the last measurement. */
void node_model(const node *n, double *w);
/* Root: asks for all current models without ending; in synchronous mode at the next row of the trace, where it then
 * stays. Lost in a crash. */
void node_look(node *n);
/* Root, once it has ended or looked: the models of all nodes below it, in the order that the head of this file says;
 * NULL if they never came. */
const double *node_models_below(const node *n);
/* Of one of these: whether the node was absent. Its numbers are then none; the output has the model of the node above.
 */
run_absence node_model_absence(const double *w);

typedef struct {
    uint64_t round, k;
    uint64_t refused[NODE_REFUSALS];
    uint64_t repeated; /* letters sent more than once */
} node_status;
node_status node_get_status(const node *n);
/* Whether it waits for this child, for its UP or for its answer to the question in hand; and since when, on the clock
 * of node_tick. */
bool node_waits_for(const node *n, size_t c);
uint64_t node_waits_since(const node *n);
/* Of a child: the counter of its link in its last UP, and whether a round has begun for it. */
uint64_t node_child_k(const node *n, size_t c);
/* Asynchronous: whether it goes on without this child, which was waited for in vain. */
bool node_child_is_absent(const node *n, size_t c);
/* Asynchronous: whether a question is open; and whether a child's process has spoken lately. */
bool node_asks(const node *n);
void node_child_lives(node *n, size_t c, bool lives);
bool node_child_trains(const node *n, size_t c);
/* Whether a child has sent so many messages beyond the bounds that its parent cannot go on with it. */
bool node_child_lies(const node *n, size_t c);
/* Readmission (node_admit.c). Parent: the link of a child begins anew, with the number of the readmission as its life;
 * false: it has begun already. */
bool node_child_begin(node *n, size_t c, uint64_t life);
/* Asynchronous, of a client: it leaves; likewise. Whether it is no member: it has left, or has not joined yet. */
bool node_child_retire(node *n, size_t c, uint64_t life);
/* Asynchronous, of a member of a cohort: whether it may leave now; the first child of the cohort and the one behind its
 * last. */
bool node_child_may_leave(const node *n, size_t c);
void node_unit(const node *n, size_t c, size_t *first, size_t *end);
/* It is to leave: its cohort is not called for a while, so that a moment comes at which it may. */
void node_child_wish(node *n, size_t c);
/* The others are about to hear that it leaves, with all members of its cohort that are to leave. */
void node_child_close(node *n, size_t c);
bool node_child_is_closing(const node *n, size_t c);
/* Whether it is a member of its cohort and is not about to leave it. */
bool node_child_stays(const node *n, size_t c);
/* The round of the last UP. */
uint64_t node_said(const node *n);
/* Whether the last figures are there, so that no node trains or joins any more. */
bool node_is_over(const node *n);
bool node_child_is_out(const node *n, size_t c);
bool node_child_counts(const node *n, size_t c); /* it has not left and is not set aside */
uint64_t node_child_life(const node *n, size_t c);
/* When that was; without a path. */
run_readmission node_child_readmission(const node *n, size_t c);
/* Whether the child has begun it, too; and that it has. */
bool node_child_is_admitted(const node *n, size_t c);
void node_child_confirm(node *n, size_t c, uint64_t life);
/* What the child must know: NODE_ADMISSION numbers and a model. */
enum { NODE_ADMISSION = 7 };
size_t node_admission_count(const node *n);
void node_admission(node *n, size_t c, double *numbers);
/* The child begins its life with that; more numbers may follow. parent_begun: of node_begun. false: it cannot. */
bool node_admit(node *n, const double *numbers, size_t count, uint64_t parent_begun);
/* The life of its link; of the root: the number of the last readmission. */
uint64_t node_life(const node *n);
bool node_is_async(const node *n);
/* The root: the number of the readmission of a node below it, which begins, or has begun, also before a restart; 0:
 * there are too many. It is done, which is a line of the record (run/anew.h). */
enum { NODE_ORDERS = 16 };
uint64_t node_order(node *n, const char *path, bool retires);
/* The path of one of NODE_ORDERS that has begun; NULL: none. */
const char *node_pending_order(const node *n, size_t i, bool *retires);
void node_note_readmission(node *n, uint64_t number, const run_readmission *done);

/* Asynchronous: the child is not heard any more, and nothing waits for it; its last message stays. */
void node_set_aside(node *n, size_t c);

/* How often it was started. */
uint64_t node_begun(const node *n);
/* Root: where it waits for the polish of the model w, M numbers that stay until node_take_polish; NULL: it does not. */
const double *node_wants_polish(node *n, uint64_t *begun);
/* Numbers that are missing are 0. */
void node_take_polish(node *n, const double *result, size_t count);
/* setup.polish numbers; NULL: there was none. */
const double *node_get_polish(const node *n);
/* Root: what the stages before the run have come to so far. */
const start_search *node_get_search(const node *n);
/* The state of training here, at the row of `round`; w: room for M numbers. The vectors belong to the node. false: it
 * has not answered for that row, has continued since, or is about to restart. */
bool node_get_share(const node *n, uint64_t round, double *w, run_share *share);
/* The root's: the round of its last row (-1: none), what its safeguard and its stop rule know. */
int64_t node_last_row(const node *n);
const guard_state *node_guard(const node *n);
/* The best w_0 of all rows and its objective; NULL: none is kept. */
const double *node_best(const node *n, double *objective);
stop_state node_stop(const node *n);
/* The safeguard's repairs so far; *last: the iteration of the last, known to the root. */
uint64_t node_repairs(const node *n, uint64_t *last);

#endif
