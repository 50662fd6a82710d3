/* What the files of a node share. */
#ifndef HFSAD_NET_NODE_PARTS_H
#define HFSAD_NET_NODE_PARTS_H

#include "cell/cell.h"
#include "net/node.h"
#include "plan/cohort.h"
#include "plan/fixed_answer.h"
#include "plan/noise.h"

/* ---- states ---- */

/* Every way from one state to another, and why it is legal; docs/protocol.md draws it. */
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

/* What is asked down the tree and answered up it while nodes train: a row of a table (node_question.c). */
typedef struct question_row question_row;

/* The question in hand. Of it only an asynchronous one for figures in the middle of training outlasts a crash; the
 * others are asked again. */
typedef struct {
    question_state state;
    const question_row *row;
    uint64_t number; /* tells it from others of its row */
    uint64_t round;  /* that it is of */
    channel ask;
    double *w;              /* 2 M: w_0, and this node's w if it is forwarded */
    double *parent;         /* M: the parent's w that came with it */
    uint64_t digest[4];     /* of what came */
    tally own;              /* this node's part of the figures, as it was when it passed the question on */
    uint64_t asked_version; /* asynchronous: `own` is of */
    double *own_numbers;    /* asynchronous: tally_numbers: `own`, as it is kept */
} question;

/* What it has answered. */
typedef struct {
    const question_row *say; /* to be said to the parent, once; NULL: nothing */
    int64_t round;           /* of the last measurement answered, -1: none */
    uint64_t k;              /* counter of a leaf's link then */
    double *figures;         /* tally_numbers: that answer */
    double *words;           /* fixed point: the same as it is sent; NULL: as it is */
    uint64_t digest[4];      /* of the question */
    uint64_t look;           /* number of the last look, 0: none; not kept */
    uint64_t part;           /* of its models that is said */
    bool final;              /* the models at the end were asked for after it */
    channel models;          /* these, which are repeated until the cloud has them */
} answer;

/* A turn of a member of a cohort that no sum has. */
typedef struct {
    uint64_t round, k;
} unit_skip;
enum { UNIT_SKIPS = 8 };

/* What a parent has of a child. */
typedef struct {
    uint32_t last;     /* iteration in which it last took part */
    uint64_t need;     /* the round whose UP its parent works with */
    uint64_t k;        /* of its last UP */
    uint64_t due_k;    /* in lock step: k of the UP of `need` */
    unsigned lies;     /* messages beyond the bounds; not kept over a crash */
    bool has;          /* that UP is there; not kept over a crash */
    bool told;         /* it has acknowledged the DOWN of the open round */
    bool answered;     /* the question in hand */
    uint64_t parts;    /* of its models that have come */
    uint64_t answer_k; /* asynchronous: its counter when it answered */
    bool ack_up;       /* to be told that it has come, ... */
    bool is_behind;    /* ... or that its state is older than what its parent has seen */
    bool ack_part;     /* to be told which part is wanted */
    bool fresh;        /* asynchronous: it has sent something since the last step */
    bool lives;        /* asynchronous: its process says so; not kept */
    bool silent;       /* asynchronous: its process does not; neither of the two: that is not known */
    bool missed;       /* asynchronous: the last figures, or the models, went without it; so does the output */
    bool absent;       /* asynchronous: it was waited for in vain, and is not until it speaks again; not kept */
    uint64_t life;     /* of its link: number of the readmission that began it, 0: none */
    bool admitted;     /* it has begun that life, too */
    bool out;          /* asynchronous: it is no member: not yet, or not any more */
    bool aside;        /* asynchronous: it has lied too often, and is not heard any more */
    uint64_t begun_at; /* round, asynchronous: step, after which that life began; and where */
    anew_where where;
    double *begin;  /* M: its model then, until it is admitted; NULL: not needed yet */
    uint64_t turns; /* asynchronous: UPs taken */
    /* asynchronous, in a cohort (node_unit.c): the version that it is called for and its w, of the first member; the
     * message that waits for those of the others */
    size_t unit, unit_end;
    uint64_t call;
    double *call_w, *staged_u;
    bool staged;
    double staged_sigma;
    size_t n_skipped; /* turns that were said in cohorts that were never complete */
    unit_skip skipped[UNIT_SKIPS];
    uint64_t wanted_until; /* it is to leave, so that its cohort is not called before this time; not kept */
    bool closing;          /* the others are told to take it out of their masks: it is not heard any more */
    bool leaving;          /* it is out when the others have made another step */
    double sigma;
    guard_strain strain;      /* of an inner child's link and all below */
    uint64_t strain_words[2]; /* fixed point: the same, as it came */
} child_state;

/* Asynchronous: a child's turn that its parent has heard of and not used yet. */
typedef struct {
    uint32_t slot;
    uint64_t version, k;
} heard;

/* A client: its rows and what its steps need of them. */
typedef struct {
    uint64_t data_print;
    double *x; /* copy of the row, or NULL */
    double *slope, *anchor, *solver, eta, factor, *centre;
    squared_factor *squared;
    uint32_t local_steps; /* asynchronous */
    struct {              /* plan/noise.h; all NULL: there is none */
        double *before;   /* 2 M */
        int64_t *steps;   /* M */
        seeded_words seeded;
        word_source words;
    } noise;
} leaf_part;

/* An inner node or the root: its children. */
typedef struct {
    double *w_parent;
    uint64_t opened; /* the last round that was opened */
    child_state *child;
    double *child_u;       /* n_children rows */
    double *child_figures; /* n_children rows of node_answer_count */
    double *partial, *sum; /* room for fold */
    const double **said;   /* room for robust_sum, if it adds up; otherwise NULL */
    double *sigmas;
    robust_share *shares;
    uint64_t *total; /* fixed point: room for a sum */
    double settled;  /* intercept shown in place of w's */
    bool has_settled;
    double *models;  /* the subtree's, own first; taken when they are asked for */
    bool has_models; /* all of them have come */
    double *slots;   /* n_children: for ACK */
} inner_part;

/* Asynchronous training. */
typedef struct {
    uint64_t version;   /* own steps */
    uint64_t turn_left; /* rounds of an inner node's turn that are still to come */
    bool stopping;      /* root: the tolerances were met */
    uint64_t since;     /* when the round was opened */
    uint64_t held;      /* version of the newest DOWN that waits for its turn, 0: none */
    double *held_w;     /* M */
    heard *heard;       /* since the last step: at most the number of steps that a child was behind */
    size_t n_heard, heard_room;
    double *down;  /* cohorts: room for a DOWN; NULL: there are none */
    channel calls; /* of earlier versions */
    bool steps_on; /* one step without news: a cohort waits for another version */
    size_t saying; /* the next of them to be sent, from 1; 0: none */
    char *lines;   /* of the record */
    size_t lines_size, lines_room;
} async_part;

/* A readmission that the root has ordered. */
typedef struct {
    uint64_t number;
    bool retires; /* it is none: the node leaves */
    char path[241];
} node_readmission;

/* What only the root decides. */
typedef struct {
    guard_state guard;
    stop_state stop;
    hfsad_figures row;
    double *row_w; /* M: its model */
    bool row_ready;
    node_end end;
    double *polish;                       /* setup.polish numbers, then M: where it begins; NULL: none */
    node_readmission orders[NODE_ORDERS]; /* that are not done yet; number 0: none */
    bool looks;                           /* it is to look at all models */
    start_search search;                  /* first: NULL if there is one stage */
} root_part;

/* FedAvg and FedProx. */
typedef struct {
    double seen;    /* number of the parent's last model that was adopted */
    double since;   /* steps that clients made since the last average or adoption */
    double mass;    /* of all clients below */
    uint32_t drawn; /* last iteration in which it was drawn; node.last: in which it has averaged */
    bool moved;     /* averaged since its parent last sent */
    bool sends;     /* the next DOWN has a new model */
} average_part;

/* The steps of an algorithm. */
typedef struct {
    bool talks;  /* inner nodes process every DOWN and send UP in every period, whether they take part or not */
    size_t down; /* numbers of a DOWN beyond w */
    /* A client that takes part in the round, and an inner node in a round in which it may; the root after a global
     * iteration. */
    void (*leaf_round)(node *n, const double *w_parent, uint64_t round);
    void (*inner_round)(node *n, uint64_t round);
    void (*root_round)(node *n);
    /* The numbers of an UP into n->u, and its sigma; returns how many they are. */
    size_t (*message_up)(node *n, double *sigma);
    /* An inner node has the parent's w, and the number beyond it; before its next DOWN. NULL: nothing to do. */
    void (*take_down)(node *n, const double *w, double sent);
    void (*open_round)(node *n);
    /* This node's part of the figures: its own, without its children's. */
    void (*measure_leaf)(node *n, const double *w0, const double *w_parent, tally *t);
    void (*measure_inner)(node *n, const double *w0, const double *w_parent, tally *t);
    /* An inner node has the tally of all below it. */
    void (*take_tally)(node *n, tally *t);
    void (*make_figures)(const node *n, const tally *t, uint64_t iteration, hfsad_figures *f);
    bool (*is_finite)(const hfsad_figures *f);
} algorithm_steps;
extern const algorithm_steps ALGORITHM_LINKS, ALGORITHM_AVERAGING;
/* Of HFSAD: a client's part of the figures, and a round of an inner node. */
void links_measure_leaf(node *n, const double *w0, const double *w_parent, tally *t);
void links_inner_round(node *n, uint64_t round);

struct node {
    node_setup s;
    const algorithm_steps *a;
    bool talks;            /* a->talks, or the safeguard is on */
    uint64_t K;            /* edge_rounds */
    uint64_t end_round;    /* the last */
    uint64_t period, unit; /* rounds per DOWN of the parent, and per own one */
    size_t nodes;          /* of its subtree */
    uint64_t now;
    bool changed;
    uint64_t begun; /* how often it was started */
    node_status status;
    double *shown; /* the current message, if it has numbers that are not finite */
    size_t shown_room;

    node_state state;
    question question;
    answer answer;

    /* the link to its parent */
    double *w, *z, *q; /* w has M + 1 numbers: the last is a->down's */
    uint32_t k, last;
    hfsad_link_rule rule;                  /* as it is now */
    uint64_t repairs;                      /* of the safeguard */
    double dual;                           /* of the last round */
    double reach;                          /* an inner node's largest |w_m| so far */
    uint64_t life;                         /* of the link, as its parent counts; of the root: of the last readmission */
    double *u;                             /* M */
    bool too_large;                        /* a number that it should send does not fit into fixed point */
    uint64_t down_digest[4], up_digest[4]; /* secure: of the newest DOWN taken, and of the one that the UP answers */

    /* rounds, and the messages that carry them */
    uint64_t round;              /* done */
    uint64_t down_round;         /* of the newest DOWN taken, 0: none */
    uint64_t up_round;           /* of the UP that corresponds to z, q and k */
    bool took_part;              /* in this period */
    size_t stored_children;      /* of the state that is written or read */
    uint64_t sent_up, sent_down; /* vectors, as the trace counts them */
    channel up, down;
    bool ack_down;                  /* to be sent to the parent */
    bool ack_up, ack_part, ack_end; /* to be sent to the children; ack_end: the cloud has their models */
    uint64_t parent_begun;          /* the parent's count of beginnings, as its last DOWN had it */
    double seen_begun;              /* for ACK: the same as a number */

    leaf_part leaf;
    inner_part inner;
    average_part average;
    async_part async;
    root_part root;
};

bool move_is_legal(const state_move *moves, size_t count, int from, int to);
/* Assert that it is legal. */
void node_move(node *n, node_state to);
void question_move(question *q, question_state to);

/* channels, by the node's clock */
static inline void node_send(node *n, channel *c)
{
    channel_start(c, n->now, &n->s.patience);
}

/* Whether a node with these draws takes part in a round; keeps *last. */
bool node_draw(const node *n, double participation, uint64_t key, uint32_t *last, uint64_t round);
/* The round after which the next measurement comes. */
uint64_t node_next_measure(const node *n);
static inline bool is_root(const node *n)
{
    return n->s.depth == 0;
}
static inline size_t node_figures_count(const node *n)
{
    return tally_numbers(n->s.tiers);
}
/* The same as they go up. */
static inline size_t node_answer_count(const node *n)
{
    return n->s.p->fixed ? fixed_tally_numbers(n->s.tiers) * FIXED_WORDS : tally_numbers(n->s.tiers);
}
/* Numbers of a question for figures: w_0, and behind it the parent's w where that is another. */
static inline size_t node_ask_count(const node *n)
{
    return n->s.depth == 1 ? n->s.M : 2 * n->s.M;
}
/* The number of parts for the models of this number of nodes, and the numbers in one part; 0: no such part. */
uint64_t node_parts_of(const node *n, size_t nodes);
size_t node_part_size(const node *n, size_t nodes, uint64_t part);
/* Keeps the tally as the node's answer. */
void node_answer(node *n, const tally *t, uint64_t round);
bool node_refuse(node *n, node_refusal *to, node_refusal why);
/* The parent or this node has restarted: everything that the parent may have lost is retransmitted. */
void node_greet(node *n, uint64_t begun);

/* numbers that are not finite (node_numbers.c) */
bool all_finite(const double *v, size_t count);
double number_hide(double v);
void numbers_hide(double *v, size_t count);
/* Of a child that the models go without: its first number says so, and whether the child was set aside. */
void model_mark_absent(double *w, bool aside);
/* v, or in room what can be said of it. */
double *numbers_to_say(double *room, double *v, size_t count);
/* The numbers of a message that has come, as they are where they come from; false: it is refused. */
bool numbers_take(node *n, message *m, node_refusal *why);

/* bounds on what a child can say (node_bounds.c) */
hfsad_link_rule child_rule(const node *n, size_t c);
/* Its w has changed. */
void bounds_reach(node *n);
bool bounds_of_up(node *n, size_t c, const message *m);
bool bounds_of_strain(const node *n, size_t c, double sum, double count);
bool bounds_of_turn(const node *n, size_t c, uint64_t steps);
bool bounds_of_tally(const node *n, size_t c, const double *numbers);
/* Refuses a message beyond them. */
bool node_refuse_lie(node *n, size_t c, node_refusal *why);

hfsad_status leaf_create(node *n, hfsad_error *err);
void leaf_free(node *n);
bool leaf_handle_down(node *n, const message *m, node_refusal *why);

hfsad_status inner_create(node *n, hfsad_error *err);
void inner_free(node *n);
bool inner_handle(node *n, size_t from, const message *m, node_refusal *why); /* DOWN, UP or ACK */
/* An inner node or the root steps on what its children have said. */
void node_step(node *n);
/* The rule of its link after the repairs so far. */
void node_find_rule(node *n);
/* A repair of the safeguard, or a readmission; an inner node after its children. */
void node_begin_anew(node *n, const double *w, bool repaired);
void inner_begin_anew(node *n);
/* A child's message that its parent knows without being told, as it would have come. */
void inner_assume(node *n, size_t c, const hfsad_link_rule *rule, const hfsad_link *link);
/* The node with its children, as they have spoken last. */
cell node_cell(node *n);
/* Fixed point (node_fixed.c): the numbers of an UP as words; false: they do not fit. A child's numbers as doubles, for
 * the bounds. */
bool fixed_up(node *n, message *m);
size_t fixed_cohort(const node *n);
void fixed_assume(node *n, size_t c);
const double *fixed_shown(node *n, const message *m);
/* A tally as it goes up. */
void fixed_say_tally(node *n);
void fixed_show_tally(const node *n, const double *words, double *numbers);

/* The first leaf among the children. */
size_t inner_first_leaf(const node *n);
/* Repeats a client's step this number of times. */
void leaf_step(node *n, const double *w_parent, uint32_t times);

/* stages (node_stages.c) */
static inline bool is_prelude(const node *n)
{
    return n->s.stage + 1 < n->s.stages;
}
hfsad_status stages_create(node *n, hfsad_error *err);
/* The node becomes that of another stage; false: no memory. */
bool stage_begin(node *n, uint64_t stage, const double *start);
/* Root: the stage is over, by these figures; NULL: its numbers are no longer finite. */
void stage_conclude(node *n, const hfsad_figures *f);

/* questions (node_question.c) */
extern const question_row QUESTION_FIGURES, QUESTION_MODELS, QUESTION_REPAIR, QUESTION_STAGE, QUESTION_LOOK;
/* The row of a phase; NULL: none. */
const question_row *question_of_phase(uint64_t phase);
/* Whether no round begins while it is in hand. */
bool question_holds(const node *n);
/* An ASK of the parent, or a child's answer; number: what tells the question from others of its row. */
bool question_handle(node *n, size_t from, const question_row *row, const message *m, uint64_t number,
                     node_refusal *why);
/* The parent says which part of the models it wants. */
bool question_handle_part(node *n, const message *m, uint64_t part, node_refusal *why);
/* Root: asks it now; what goes down is in n->question.w. */
void question_ask(node *n, const question_row *row, uint64_t number, uint64_t round);
/* Goes on with the one in hand; false: it cannot. */
bool question_advance(node *n);
message question_letter(node *n);
message question_answer_letter(node *n, const question_row *row);
/* Which part of its models each child is to say next. */
message question_part_letter(node *n);
message node_letter_of(const node *n, message_kind kind, uint64_t phase, uint64_t round);

/* asynchronous training (node_async.c) */
hfsad_status async_create(node *n, hfsad_error *err);
void async_free(node *n);
/* What a child that was never heard of would have said. */
void async_start(node *n);
bool async_handle_down(node *n, const message *m, node_refusal *why);
bool async_handle_up(node *n, size_t c, const message *m, node_refusal *why);
/* The parent has the last UP. */
void async_acknowledged(node *n);
/* Whether a question for figures can be answered now. */
bool async_can_answer(const node *n, uint64_t round);
/* Whether a question for figures may come now. */
bool async_may_ask(const node *n, uint64_t round);
/* Root: whether figures are due, and the round of that question. */
bool async_measures(const node *n, uint64_t *round);
/* A question that is neither the first nor the last: training continues, and the question survives a crash. */
bool async_is_between(const node *n, uint64_t round);
/* Which node was asked for which moment: a line of the record. */
void async_row(node *n);
bool async_may_open(const node *n);
void async_open(node *n);
bool async_is_ready(const node *n);
/* Whether all children have answered the question in hand, none of them in a later life of its link. */
bool async_all_are_first(const node *n);
/* Whether a child is so far behind that it may be waited for. */
bool async_is_stale(const node *n, size_t c);
/* Whether a question goes on without the answers that have not come. */
bool async_answers_without(const node *n, size_t c);
void async_step(node *n);
/* When it will be ready without a message, UINT64_MAX: never. */
uint64_t async_due(const node *n);
/* A child's link begins anew with this node's model; false: no memory. */
bool async_begin_child(node *n, size_t c, uint64_t life);
/* The child's link counts no more, or not yet; false: no memory. */
bool async_leave_child(node *n, size_t c, uint64_t life);
/* A child's turn, for the record; false: no memory. The counter in it, after the life of the link. */
bool async_note_heard(node *n, size_t c, uint64_t version, uint64_t k);
uint64_t async_lived(const child_state *child, uint64_t k);
/* A line of the record, with its newline. */
void async_put(node *n, const char *text);
/* The last line of the record: what was heard and not used. */
void async_end(node *n);
/* The same for children whose models are missing; none if all are there. */
void async_models(node *n);

/* cohorts in asynchronous training (node_unit.c) */
bool unit_calls(const node *n);
/* The first child of a child's unit, and the one behind its last. */
size_t unit_first(const node *n, size_t c);
size_t unit_end(const node *n, size_t c);
bool unit_is_fresh(const node *n, size_t first);
bool unit_is_absent(const node *n, size_t first);
bool unit_has_answered(const node *n, size_t first);
/* Whether a member has left its cohort: the others answer no questions any more. */
bool unit_is_renewed(const node *n, size_t first);
/* The cohort of child c has another message in force: what is said of it in the record; room for it is there. */
size_t unit_entries(const node *n, size_t c);
void unit_note(node *n, size_t first);
/* Of the last line of the record. */
void unit_note_rest(node *n);
/* A child leaves its cohort; false: a member that stays has not answered the last call yet. */
bool unit_leave(node *n, size_t c, uint64_t life);
/* Answers of cohorts that are incomplete do not count. */
void unit_drop_partial(node *n);
hfsad_status unit_create(node *n, hfsad_error *err);
void unit_free(node *n);
/* Calls all cohorts whose members are idle for the version that is open. */
void unit_call(node *n);
/* Retransmits calls of earlier versions from now on, or after a while. */
void unit_remind(node *n, bool now);
message unit_down(node *n);
bool unit_next_call(node *n, message *m);
/* Whether the UP of a child may be of this version. */
bool unit_expects(const node *n, size_t c, uint64_t round);
/* The u of a child; true: that of its whole unit is in force. */
bool unit_take(node *n, size_t c, const message *m);
/* A child: numbers of a DOWN; whether it steps when called only; and whether it is. */
size_t unit_down_count(const node *n);
bool unit_waits_for_call(const node *n);
bool unit_is_called(const node *n, const message *m);
void unit_pass(const word_transfer *t, const node *n, size_t c);

/* Goes on as far as it can. */
void inner_advance(node *n);
/* Root: the row of the trace is there. */
void root_conclude(node *n, const tally *t);
/* w_0, with the client's own intercept if it has one; in n->u. */
const double *leaf_consensus(node *n, const double *w0, const double *w_parent);
/* Whether it sits out all rounds after the last one done, up to `round`; *last then goes with it. */
bool node_sits_out_until(const node *n, uint64_t round, uint32_t *last);
/* A client takes these rounds as done. */
void leaf_skip_to(node *n, uint64_t round, uint32_t last);

#endif
