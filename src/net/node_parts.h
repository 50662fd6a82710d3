/* Internal declarations of the node_*.c files: states, the parts of a node, and the functions they call across files.
 */
#ifndef HFSAD_NET_NODE_PARTS_H
#define HFSAD_NET_NODE_PARTS_H

#include "cell/cell.h"
#include "net/node.h"
#include "plan/cohort.h"
#include "plan/fixed_answer.h"
#include "plan/noise.h"

/* ---- states ---- */

/* All legal state transitions, each with the reason; docs/protocol.md draws them. */
#define NODE_MOVE_LIST(X)                                                                                              \
    X(RESTS, TRAINS, "it opens a round: nothing blocks it")                                                            \
    X(TRAINS, RESTS, "all participating children have sent UP, and it has stepped; or the cloud has ended the stage")  \
    X(TRAINS, REPAIRS, "cloud: the safeguard finds that the run diverges")                                             \
    X(REPAIRS, RESTS, "cloud: all nodes have restarted")                                                               \
    X(RESTS, STAGE_OVER, "cloud: the stage has its figures, or its model is no longer finite")                         \
    X(STAGE_OVER, RESTS, "cloud: all nodes have begun the next stage")                                                 \
    X(RESTS, ENDED, "cloud: the figures of a row end the run")                                                         \
    X(ENDED, CLOSES, "cloud: the polish is done, or there is none")                                                    \
    X(CLOSES, FINISHED, "cloud: it has the models of all nodes")                                                       \
    X(RESTS, HALTED, "asynchronous: it is asked for the last figures or the models")                                   \
    X(TRAINS, HALTED, "asynchronous: the same; the open round is dropped")                                             \
    X(RESTS, FINISHED, "its parent acknowledges that the cloud has the models")                                        \
    X(HALTED, FINISHED, "the same, asynchronous")

#define QUESTION_MOVE_LIST(X)                                                                                          \
    X(NONE, WAITS, "a question has arrived from the parent, for a round that may not be done yet")                     \
    X(NONE, ASKED, "the cloud asks; or a question that is forwarded at once has arrived")                              \
    X(WAITS, ASKED, "its round is done: forwarded to the children; or a question forwarded at once overtakes it")      \
    X(ASKED, NONE, "all children have answered")                                                                       \
    X(ASKED, WAITS, "another question has arrived: the parent was killed while it asked, or a look was given up")      \
    X(ASKED, ASKED, "the same, and the other is forwarded at once")

typedef struct {
    int from, to;
    const char *why;
} state_move;
extern const state_move node_moves[], question_moves[];
extern const size_t n_node_moves, n_question_moves;

/* A kind of question to all nodes during training: one row of the table in node_question.c. */
typedef struct question_row question_row;

/* The current question. After a crash the parent asks it again; only an asynchronous question for figures in the middle
 * of training is stored. */
typedef struct {
    question_state state;
    const question_row *row;
    uint64_t number; /* distinguishes questions of one kind */
    uint64_t round;  /* the round that it refers to */
    channel ask;
    double *w;              /* 2 M: w_0, then this node's w in the forwarded question */
    double *parent;         /* M: the parent's w, received with the question */
    uint64_t digest[4];     /* of the received question */
    tally own;              /* this node's part of the figures, at the moment of forwarding */
    uint64_t asked_version; /* asynchronous: version of this node at that moment */
    double *own_numbers;    /* asynchronous: `own` as numbers, for the store */
} question;

/* The last answers of a node. */
typedef struct {
    const question_row *say; /* question whose answer has to be sent to the parent, once; NULL: none */
    int64_t round;           /* round of the last answered question for figures, -1: none */
    uint64_t k;              /* a client's link counter at that moment */
    double *figures;         /* tally_numbers: the figures of that answer */
    double *words;           /* fixed point: the same figures as they are sent; NULL: no fixed point */
    uint64_t digest[4];      /* of the question */
    uint64_t look;           /* number of the last look, 0: none; not stored */
    uint64_t part;           /* the part of its models that is being sent */
    bool final;              /* the final models were asked for after these figures */
    channel models;          /* retransmits the final models until the cloud has them */
} answer;

/* Lines of the record that the parent of an asynchronous node may not have (node_record.c). */
typedef struct {
    char *text;
    size_t size, room;
    uint64_t base;   /* bytes of this life before `text` */
    uint64_t mark;   /* the last UP follows from the bytes before it */
    uint64_t said;   /* bytes before the next message; not kept, as what follows */
    uint64_t told;   /* bytes before the first that were never said in this connection */
    uint64_t turn;   /* the piece to be said again next */
    bool again;      /* a piece has been said again in this turn */
    double *numbers; /* room for a message */
} record_copy;

/* What a parent has of them. */
typedef struct {
    uint64_t bytes;  /* of whole lines of this life */
    uint64_t steps;  /* lines of steps, in all lives */
    uint64_t before; /* the same when this life began */
    char *tail;      /* of a line that is not whole; not kept, as what follows */
    size_t n_tail, room;
    size_t unpaid; /* bytes since its last UP or answer */
} child_copy;

/* An UP of a member of a cohort that is part of no sum. */
typedef struct {
    uint64_t round, k;
} unit_skip;
enum { UNIT_SKIPS = 8 };

/* What a parent knows about a child during training. */
typedef struct {
    uint32_t last;           /* iteration in which the child last took part */
    uint64_t need;           /* the round whose UP the parent uses */
    uint64_t k;              /* of its last UP */
    uint64_t due_k;          /* synchronous: the k that the UP of round `need` must have */
    unsigned lies;           /* number of messages beyond the bounds; not stored */
    bool has;                /* that UP has arrived; not stored */
    bool told;               /* it has acknowledged the DOWN of the open round */
    bool answered;           /* the child has answered the current question */
    uint64_t parts;          /* number of received parts of its models */
    uint64_t answer_k;       /* asynchronous: the child's link counter when it answered */
    uint64_t answer_version; /* asynchronous: the version that its last step before the answer used */
    bool ack_up;             /* an acknowledgement of its UP is due, ... */
    bool is_behind;          /* ... which says that the child's state is older than messages the parent has seen */
    bool ack_part;           /* a request for the next part of its models is due */
    bool fresh;              /* asynchronous: the child has sent an UP since the parent's last step */
    bool lives;              /* asynchronous: its process has reported lately; not stored */
    bool silent;             /* asynchronous: its process has stopped reporting; if both are false, nothing is known */
    bool missed;             /* asynchronous: the last figures or the models lack this child, and so does the output */
    bool
        absent; /* asynchronous: a wait for it has timed out; nothing waits for it until its next message; not stored */
    uint64_t life;     /* current life of its link: the number of the readmission that began it, 0: none */
    bool admitted;     /* the child has confirmed that life */
    bool out;          /* asynchronous: the child has not joined yet, or has left */
    bool aside;        /* asynchronous: ignored, because of exclude_after messages beyond the bounds */
    uint64_t begun_at; /* the round (asynchronous: the parent's step) after which that life began */
    anew_where where;
    double *begin;  /* M: the model with which that life begins, kept until it is confirmed; NULL: not allocated yet */
    uint64_t turns; /* asynchronous: number of accepted UPs */
    /* asynchronous, secure aggregation (node_unit.c): unit to unit_end - 1 are the children of the cohort; its first
     * member keeps the version of the last call and its w; staged_u waits for the UPs of the other members */
    size_t unit, unit_end;
    uint64_t call;
    double *call_w, *staged_u;
    bool staged;
    double staged_sigma;
    size_t n_skipped; /* UPs that were never used because their cohort stayed incomplete */
    unit_skip skipped[UNIT_SKIPS];
    uint64_t wanted_until; /* the child has to leave: its cohort is not called before this time; not stored */
    bool closing;          /* ignored: the other members are being told to remove its masks */
    bool leaving;          /* out as soon as the other members have made another step */
    double sigma;
    guard_strain strain;      /* inner child: strain of its link and of all links below */
    uint64_t strain_words[2]; /* fixed point: the same as received */
    child_copy copied;        /* asynchronous, inner child: copies of its record */
} child_state;

/* Asynchronous: an UP that has arrived since the parent's last step. */
typedef struct {
    uint32_t slot;
    uint64_t version, k;
} heard;

/* A client: its rows and the vectors of its steps. */
typedef struct {
    uint64_t data_print;
    double *x; /* copy of the row, or NULL */
    double *slope, *anchor, *solver, eta, factor, *centre;
    squared_factor *squared;
    uint32_t local_steps; /* asynchronous */
    struct {              /* plan/noise.h; all NULL: no noise */
        double *before;   /* 2 M */
        int64_t *steps;   /* M */
        seeded_words seeded;
        word_source words;
    } noise;
} leaf_part;

/* An inner node or the root: its children. */
typedef struct {
    double *w_parent;
    uint64_t opened; /* the newest opened round */
    child_state *child;
    double *child_u;       /* n_children rows */
    double *child_figures; /* n_children rows of node_answer_count */
    double *partial, *sum; /* scratch of fold */
    const double **said;   /* scratch of robust_sum; NULL: sums are plain */
    double *sigmas;
    robust_share *shares;
    uint64_t *total; /* fixed point: scratch for a sum */
    double settled;  /* intercept for the output, instead of the one in w */
    bool has_settled;
    double *models;       /* models of the subtree, this node's first; allocated when they are asked for */
    bool has_models;      /* all of them have arrived */
    double *slots;        /* n_children: numbers of an ACK */
    size_t lacks, untold; /* where the searches for children without an UP, and without the DOWN, ended; not stored */
} inner_part;

/* Asynchronous training. */
typedef struct {
    uint64_t version;   /* number of this node's steps */
    uint64_t turn_left; /* remaining rounds of an inner node's turn */
    bool stopping;      /* root: the tolerances are met */
    uint64_t since;     /* time at which the round was opened */
    uint64_t held;      /* version of a DOWN that waits for the next turn, 0: none */
    double *held_w;     /* M */
    heard *heard;       /* UPs since the last step; its limit is the number of steps by which a child was behind */
    size_t n_heard, heard_room;
    double *down;  /* secure aggregation: scratch for a DOWN; NULL: no cohorts */
    channel calls; /* retransmits calls of earlier versions */
    bool steps_on; /* one step without a new UP is allowed, because a cohort waits for another version */
    size_t saying; /* the next call to send, from 1; 0: none */
    char *lines;   /* new lines of the record */
    size_t lines_size, lines_room;
    record_copy copy;
} async_part;

/* A pending order of the root: a readmission or a retirement. */
typedef struct {
    uint64_t number;
    bool retires; /* the node leaves */
    char path[241];
} node_readmission;

/* The root's own state. */
typedef struct {
    guard_state guard;
    stop_state stop;
    hfsad_figures row;
    double *row_w; /* M: the model of that row */
    bool row_ready;
    node_end end;
    double *polish; /* setup.polish numbers, then M numbers: the model to polish; NULL: no polish */
    node_readmission orders[NODE_ORDERS]; /* pending orders; number 0: free */
    bool looks;                           /* a look at all models is requested */
    start_search search;                  /* search.first is NULL if there is one stage */
} root_part;

/* FedAvg and FedProx. */
typedef struct {
    double seen;    /* number of the last model adopted from the parent */
    double since;   /* client steps since the last average or adoption */
    double mass;    /* sum of the clients' masses below this node */
    uint32_t drawn; /* last iteration in which the node was drawn; node.last is the last in which it averaged */
    bool moved;     /* the node has averaged since its parent's last model */
    bool sends;     /* the next DOWN contains a new model */
} average_part;

/* The steps of an algorithm at the nodes of a federation: one row for HFSAD, one for FedAvg and FedProx. */
typedef struct {
    bool links;  /* links have multipliers: bounds of messages, the safeguard and factored squared losses apply */
    bool talks;  /* inner nodes process every DOWN and send UP in every period, whether they take part or not */
    size_t down; /* count of numbers after w in a DOWN */
    /* A client's round, if it takes part; an inner node's round, which draws participation itself; the root's step
     * after a global iteration. */
    void (*leaf_round)(node *n, const double *w_parent, uint64_t round);
    void (*inner_round)(node *n, uint64_t round);
    void (*root_round)(node *n);
    /* Writes the numbers of an UP to n->u and its sigma to *sigma; returns the count of numbers. */
    size_t (*message_up)(node *n, double *sigma);
    /* An inner node has received its parent's w and the number after w. open_round runs before its next DOWN. NULL:
     * nothing to do. */
    void (*take_down)(node *n, const double *w, double sent);
    void (*open_round)(node *n);
    /* This node's part of the figures, without its children's. */
    void (*measure_leaf)(node *n, const double *w0, const double *w_parent, tally *t);
    void (*measure_inner)(node *n, const double *w0, const double *w_parent, tally *t);
    /* An inner node has received the tallies of all its children. */
    void (*take_tally)(node *n, tally *t);
    void (*make_figures)(const node *n, const tally *t, uint64_t iteration, hfsad_figures *f);
    bool (*is_finite)(const hfsad_figures *f);
    /* Stores or restores the algorithm's own state. NULL: it has none. */
    void (*pass)(const word_transfer *t, node *n);
} algorithm_steps;
extern const algorithm_steps ALGORITHM_LINKS, ALGORITHM_AVERAGING;
/* Two of HFSAD's steps: a client's part of the figures, and an inner node's round. */
void links_measure_leaf(node *n, const double *w0, const double *w_parent, tally *t);
void links_inner_round(node *n, uint64_t round);

struct node {
    node_setup s;
    const algorithm_steps *a;
    bool talks;            /* a->talks, or the safeguard is on */
    uint64_t K;            /* edge_rounds */
    uint64_t end_round;    /* the last round */
    uint64_t period, unit; /* number of rounds per DOWN of the parent, and per DOWN of this node */
    size_t nodes;          /* of its subtree */
    uint64_t now;
    bool changed;
    uint64_t begun; /* number of starts in this life, and above NODE_BEGUN_BIT the life */
    node_status status;
    double *shown; /* scratch: the current message with encoded numbers that are not finite */
    size_t shown_room;

    node_state state;
    question question;
    answer answer;

    /* the link to its parent */
    double *w, *z, *q; /* w has M + 1 numbers: the last belongs to a->down */
    uint32_t k, last;
    hfsad_link_rule rule; /* current rule of the link, repairs included */
    uint64_t repairs;     /* number of the safeguard's repairs */
    double dual;          /* dual residual of the last round */
    double reach;         /* inner node: largest |w_m| so far */
    uint64_t life;        /* current life of the link to the parent; root: number of the last readmission */
    double *u;            /* M */
    bool too_large; /* the UP must not be sent: a number does not fit into fixed point, or its noise is too small */
    uint64_t down_digest[4],
        up_digest[4]; /* secure aggregation: digests of the newest accepted DOWN, and of the DOWN that the UP answers */

    /* rounds and their messages */
    uint64_t round;              /* the last completed round */
    uint64_t down_round;         /* round of the newest accepted DOWN, 0: none */
    uint64_t up_round;           /* round of the UP that z, q and k belong to */
    bool took_part;              /* the node has taken part in this period */
    size_t stored_children;      /* number of children in the state that is written or read */
    uint64_t sent_up, sent_down; /* number of vectors sent, as the trace counts them */
    channel up, down;
    bool ack_down;                  /* an acknowledgement to the parent is due */
    bool ack_up, ack_part, ack_end; /* acknowledgements to the children are due; ack_end: the cloud has their models */
    uint64_t parent_begun;          /* number of the parent's starts, from its last DOWN */
    double seen_begun;              /* the same, as the number of an ACK */

    leaf_part leaf;
    inner_part inner;
    average_part average;
    async_part async;
    root_part root;
};

bool move_is_legal(const state_move *moves, size_t count, int from, int to);
/* Changes the state; asserts that the transition is legal. */
void node_move(node *n, node_state to);
void question_move(question *q, question_state to);

/* channels, by the node's clock */
static inline void node_send(node *n, channel *c)
{
    channel_start(c, n->now, &n->s.patience);
}

/* Whether a node with this probability and key takes part in a round; updates *last. */
bool node_draw(const node *n, double participation, uint64_t key, uint32_t *last, uint64_t round);
/* The round after which the next figures are measured. */
uint64_t node_next_measure(const node *n);
static inline bool is_root(const node *n)
{
    return n->s.depth == 0;
}
static inline size_t node_figures_count(const node *n)
{
    return tally_numbers(n->s.tiers);
}
/* Count of numbers in an answer as it is sent up. */
static inline size_t node_answer_count(const node *n)
{
    return n->s.p->fixed ? fixed_tally_numbers(n->s.tiers) * FIXED_WORDS : tally_numbers(n->s.tiers);
}
/* Count of numbers in a question for figures: w_0, then the parent's w unless the parent is the root. */
static inline size_t node_ask_count(const node *n)
{
    return n->s.depth == 1 ? n->s.M : 2 * n->s.M;
}
/* The number of MODEL parts for this number of nodes, and the count of numbers in one part; 0: no such part. */
uint64_t node_parts_of(const node *n, size_t nodes);
size_t node_part_size(const node *n, size_t nodes, uint64_t part);
/* Stores the tally as the node's answer. */
void node_answer(node *n, const tally *t, uint64_t round);
bool node_refuse(node *n, node_refusal *to, node_refusal why);
/* The parent or this node has restarted: everything that the parent may have lost is retransmitted. */
void node_greet(node *n, uint64_t begun);

/* numbers that are not finite (node_numbers.c) */
bool all_finite(const double *v, size_t count);
double number_hide(double v);
/* Encodes numbers that are not finite; true: there was nothing to do, and message_is_plain holds. */
bool numbers_hide(double *v, size_t count);
/* Marks the model of an absent child by its first number; aside: the child was set aside. */
void model_mark_absent(double *w, bool aside);
/* Returns v; or room, with v's numbers that are not finite encoded. *plain: message_is_plain of the result is known. */
double *numbers_to_say(double *room, double *v, size_t count, bool *plain);
/* Decodes the numbers of a received message; false: the message is refused. */
bool numbers_take(node *n, message *m, node_refusal *why);

/* bounds on the numbers of a child (node_bounds.c) */
hfsad_link_rule child_rule(const node *n, size_t c);
/* Call it after w has changed. */
void bounds_reach(node *n);
bool bounds_of_up(node *n, size_t c, const message *m);
bool bounds_of_strain(const node *n, size_t c, double sum, double count);
bool bounds_of_turn(const node *n, size_t c, uint64_t steps);
bool bounds_of_tally(const node *n, size_t c, const double *numbers);
/* Refuses a message beyond the bounds and counts it. */
bool node_refuse_lie(node *n, size_t c, node_refusal *why);

hfsad_status leaf_create(node *n, hfsad_error *err);
void leaf_free(node *n);
bool leaf_handle_down(node *n, const message *m, node_refusal *why);

hfsad_status inner_create(node *n, hfsad_error *err);
void inner_free(node *n);
bool inner_handle(node *n, size_t from, const message *m, node_refusal *why); /* DOWN, UP or ACK */
/* The step of an inner node or the root, from the children's last messages. */
void node_step(node *n);
/* Computes the rule of its link after the repairs so far. */
void node_find_rule(node *n);
/* Restarts the node at w, after a repair of the safeguard or a readmission. inner_begin_anew restarts an inner node
 * after all its children. */
void node_begin_anew(node *n, const double *w, bool repaired);
void inner_begin_anew(node *n);
/* Computes the UP that a child would send now, instead of waiting for it. */
void inner_assume(node *n, size_t c, const hfsad_link_rule *rule, const double *start);
/* The node and the last messages of its children, for the functions of cell.h. */
cell node_cell(node *n);
/* Fixed point (node_fixed.c). fixed_up converts the numbers of an UP to words; false: they do not fit. fixed_shown
 * converts a child's words to doubles, for the bounds. */
bool fixed_up(node *n, message *m);
size_t fixed_cohort(const node *n);
void fixed_assume(node *n, size_t c);
const double *fixed_shown(node *n, const message *m);
/* Converts this node's tally to words, and a child's words to a tally. */
void fixed_say_tally(node *n);
void fixed_show_tally(const node *n, const double *words, double *numbers);

/* The first leaf among the children. */
size_t inner_first_leaf(const node *n);
/* Makes this number of client steps. */
void leaf_step(node *n, const double *w_parent, uint32_t times);

/* stages (node_stages.c) */
static inline bool is_prelude(const node *n)
{
    return n->s.stage + 1 < n->s.stages;
}
hfsad_status stages_create(node *n, hfsad_error *err);
/* Turns the node into that of another stage; false: no memory. */
bool stage_begin(node *n, uint64_t stage, const double *start);
/* Root: ends the stage with these figures; NULL: the model is no longer finite. */
void stage_conclude(node *n, const hfsad_figures *f);

/* questions (node_question.c) */
extern const question_row QUESTION_FIGURES, QUESTION_MODELS, QUESTION_REPAIR, QUESTION_STAGE, QUESTION_LOOK;
/* The row of a phase; NULL: none. */
const question_row *question_of_phase(uint64_t phase);
/* Whether the current question keeps the node from opening a round. */
bool question_holds(const node *n);
/* Processes an ASK of the parent or an answer of a child; number: see question.number. */
bool question_handle(node *n, size_t from, const question_row *row, const message *m, uint64_t number,
                     node_refusal *why);
/* Processes the parent's request for a part of the models. */
bool question_handle_part(node *n, const message *m, uint64_t part, node_refusal *why);
/* Root: asks the question; n->question.w is its content. */
void question_ask(node *n, const question_row *row, uint64_t number, uint64_t round);
/* Advances the current question; false: nothing to do until a message arrives. */
bool question_advance(node *n);
message question_letter(node *n);
message question_answer_letter(node *n, const question_row *row);
/* The request to every child for the next part of its models. */
message question_part_letter(node *n);
message node_letter_of(const node *n, message_kind kind, uint64_t phase, uint64_t round);

/* asynchronous training (node_async.c) */
hfsad_status async_create(node *n, hfsad_error *err);
void async_free(node *n);
/* Fills in the UPs of children that have not sent one yet. */
void async_start(node *n);
enum { NODE_BEGUN_BIT = 32 };

/* Steps beyond those of the run that a node which has begun so often may count. */
uint64_t async_extra(const node *n, uint64_t begun);
bool async_handle_down(node *n, const message *m, node_refusal *why);
bool async_handle_up(node *n, size_t c, const message *m, node_refusal *why);
/* Processes the parent's acknowledgement of the last UP. */
void async_acknowledged(node *n);
/* Whether a question for figures can be answered now. */
bool async_can_answer(const node *n, uint64_t round);
/* Whether a question for figures of this round is plausible now. */
bool async_may_ask(const node *n, uint64_t round);
/* Root: whether figures are due, and the round of that question. */
bool async_measures(const node *n, uint64_t *round);
/* Whether the question is neither the first nor the last: training then continues, and the question is stored. */
bool async_is_between(const node *n, uint64_t round);
/* Writes a line of the record: the moment for which each child answered. */
void async_row(node *n);
bool async_may_open(const node *n);
void async_open(node *n);
bool async_is_ready(const node *n);
/* Whether all children have answered the current question in the life of the link in which it was asked. */
bool async_all_are_first(const node *n);
/* Whether a child is K_a or more global iterations behind. */
bool async_is_stale(const node *n, size_t c);
/* Whether the current question continues without the answer of child c. */
bool async_answers_without(const node *n, size_t c);
void async_step(node *n);
/* Time at which the node can step without a further message, UINT64_MAX: never. */
uint64_t async_due(const node *n);
/* Starts a new life of a child's link at this node's model; false: no memory. */
bool async_begin_child(node *n, size_t c, uint64_t life);
/* Takes the child's link out of the sums; false: no memory. */
bool async_leave_child(node *n, size_t c, uint64_t life);
/* Notes a child's UP for the record; false: no memory. async_lived: the counter k with the life of the link above it,
 * as the record has it. */
bool async_note_heard(node *n, size_t c, uint64_t version, uint64_t k);
uint64_t async_lived(const child_state *child, uint64_t k);
/* Appends text of a line of the record, newline included; async_put_own: text of which the parent needs no copy. */
void async_put(node *n, const char *text);
void async_put_own(node *n, const char *text);
/* Appends the last line of the record: UPs that arrived and were not used. */
void async_end(node *n);
/* Appends a line that names the children without models, if there are any. */
void async_models(node *n);

/* copies of records (node_record.c) */
bool record_is_copied(const node *n);
void record_add(node *n, const char *text);
/* The next UP follows from all lines so far; the parent has it. */
void record_mark(node *n);
void record_acknowledged(node *n);
/* The link begins anew: of this life nothing was said. */
void record_begin_anew(node *n);
/* Bytes of this life. */
uint64_t record_size(const node *n);
/* The next message of lines; the next time all that are not acknowledged are said again. */
bool record_next_letter(node *n, message *m);
void record_repeat(node *n);
void record_connect(node *n); /* connected anew: nothing has been said */
/* Whether the lines that led to an UP of this counter, or this number of bytes, are here. */
bool record_has_steps(const node *n, size_t c, uint64_t k);
bool record_has_bytes(const node *n, size_t c, double bytes);
bool record_take(node *n, size_t c, const message *m, node_refusal *why);
/* An UP or an answer was taken. */
void record_pay(node *n, size_t c);
void record_child_begins(node *n, size_t c);
void record_pass(const word_transfer *t, node *n);
void record_free(node *n);

/* Cohorts of secure aggregation in asynchronous training (node_unit.c). A unit is a cohort, or a child without one: the
 * unit of child c is the children unit_first to unit_end - 1. */
size_t unit_first(const node *n, size_t c);
size_t unit_end(const node *n, size_t c);
/* Whether this node calls cohorts. */
bool unit_calls(const node *n);
bool unit_is_fresh(const node *n, size_t first);
bool unit_is_absent(const node *n, size_t first);
bool unit_has_answered(const node *n, size_t first);
/* Whether a member has left the cohort: the other members then answer no further questions. */
bool unit_is_renewed(const node *n, size_t first);
/* The record's entries for a unit whose message has changed: unit_entries counts them, unit_note writes them. */
size_t unit_entries(const node *n, size_t c);
void unit_note(node *n, size_t first);
/* Writes the entries of unused messages into the last line of the record. */
void unit_note_rest(node *n);
/* Removes a child from its cohort; false: a member that stays has not answered the last call yet. */
bool unit_leave(node *n, size_t c, uint64_t life);
/* Discards the answers of incomplete cohorts. */
void unit_drop_partial(node *n);
hfsad_status unit_create(node *n, hfsad_error *err);
void unit_free(node *n);
/* Calls all idle cohorts for the current version. */
void unit_call(node *n);
/* Retransmits calls of earlier versions: at once if now is true, otherwise after the usual delay. */
void unit_remind(node *n, bool now);
message unit_down(node *n);
bool unit_next_call(node *n, message *m);
/* Whether child c may send an UP of this version. */
bool unit_expects(const node *n, size_t c, uint64_t round);
/* Stores the u of a child; true: the whole unit has sent, and its sum is in force. */
bool unit_take(node *n, size_t c, const message *m);
/* Child: count of numbers in a DOWN; whether it steps only when its parent calls; whether a DOWN is such a call. */
size_t unit_down_count(const node *n);
bool unit_waits_for_call(const node *n);
bool unit_is_called(const node *n, const message *m);
void unit_pass(const word_transfer *t, const node *n, size_t c);

/* Advances the node until it waits for a message or for time. */
void inner_advance(node *n);
/* Root: makes a row of the trace from the tally of the whole tree, and decides whether to continue. */
void root_conclude(node *n, const tally *t);
/* w_0, with the client's own intercept if it has one; in n->u. */
const double *leaf_consensus(node *n, const double *w0, const double *w_parent);
/* Whether the node takes part in no round after its last completed one, up to `round`; then sets *last. */
bool node_sits_out_until(const node *n, uint64_t round, uint32_t *last);
/* Client: marks the rounds up to `round` as completed. */
void leaf_skip_to(node *n, uint64_t round, uint32_t last);

#endif
