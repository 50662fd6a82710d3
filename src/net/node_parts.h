/* What the files of a node share. */
#ifndef HFSAD_NET_NODE_PARTS_H
#define HFSAD_NET_NODE_PARTS_H

#include "net/node.h"

/* A last value on its way: repeated until nobody waits for it. */
typedef struct {
    bool live, send;
    bool again; /* it has been sent before */
    uint64_t due;
    uint32_t wait;
    bool open, repeated; /* of the value in hand: nothing was learned from it yet; it was repeated by the clock */
    uint64_t since;      /* it was first sent */
    uint32_t patience;   /* with the next, in ms; 0: the least */
} channel;

/* What a parent has of a child. */
typedef struct {
    uint32_t last;           /* iteration in which it last took part */
    uint64_t need;           /* the round whose UP its parent works with */
    uint64_t k;              /* of its last UP */
    bool has;                /* that UP is there; not kept over a crash */
    bool told;               /* it has acknowledged the DOWN of the open round */
    bool answered;           /* the question in hand */
    uint64_t answer_k;       /* asynchronous: its counter when it did */
    uint64_t parts;          /* of its models that have come */
    bool ack_up, ack_answer; /* to be told that it has come */
    bool ack_part;           /* to be told which part is wanted */
    uint64_t look_parts;     /* the same two, of a look */
    bool ack_look;
    bool fresh; /* asynchronous: it has said something since the last step */
    double sigma;
    guard_strain strain; /* of an inner child's link and all below */
} child_state;

/* Asynchronous: a child's turn that its parent has heard of and not used yet. */
typedef struct {
    uint32_t slot;
    uint64_t version, k;
} heard;

struct node {
    node_setup s;
    uint64_t K;            /* edge_rounds */
    uint64_t end_round;    /* the last */
    uint64_t period, unit; /* rounds per DOWN of the parent, and per own one */
    size_t nodes;          /* of its subtree */
    uint64_t now;
    bool changed;
    channel up, answer, down, ask;
    bool ack_part;                      /* to be sent to the children */
    bool ack_down, ack_up, ack_answer;  /* to be sent; ack_down goes to the parent, the others to the children */
    uint64_t parent_begun, asker_begun; /* the parent's count of beginnings, as its last DOWN and ASK had it */
    double seen_begun;                  /* for ACK: parent_begun as a number */
    uint64_t begun;                     /* own count */
    node_status status;
    double *shown; /* the message in hand, where it has numbers that are not finite */
    size_t shown_room;

    double *w, *z, *q;
    uint32_t k, last;
    uint64_t round;              /* done */
    uint64_t down_round;         /* of the newest DOWN taken, 0: none */
    uint64_t up_round;           /* of the UP that z, q and k stand for */
    uint64_t repairs;            /* of the safeguard */
    hfsad_link_rule rule;        /* of its link, as it is now */
    bool say_anew;               /* to be answered: it has begun anew */
    bool say_stage;              /* likewise: it has begun the stage */
    bool diverged;               /* root: w is not finite */
    double dual;                 /* of the last round */
    uint64_t sent_up, sent_down; /* vectors, as the trace counts them */
    int64_t answered;            /* round of the last measurement answered, -1: none */
    uint64_t answered_k;         /* counter of a leaf's link then */
    uint64_t answer_phase;
    uint64_t part;        /* of its models that is said */
    double *figures;      /* tally_numbers: the last answer */
    uint32_t local_steps; /* of a client, asynchronous */
    double *u;            /* M */
    bool finished;

    /* a leaf */
    uint64_t data_print;
    double *x; /* copy of the row, or NULL */
    double *slope, *anchor, *solver, eta, factor, *centre;
    squared_factor *squared;

    /* an inner node or the root */
    double *w_parent;
    child_state *child;
    double *child_u;       /* n_children rows */
    double *child_figures; /* n_children rows of tally_numbers */
    double *partial, *sum; /* room for fold */
    bool open;             /* round + unit is under way */
    bool took_part;        /* in this period */
    double settled;        /* intercept shown in place of w's */
    bool has_settled;
    bool pending; /* a question has come and waits for its round, or has been passed on */
    bool asking;  /* passed on */
    uint64_t ask_phase, ask_round;
    double *ask_w;      /* 2 M: w_0, and this node's w where it is passed on */
    double *ask_parent; /* M: the parent's w that came with it */
    tally own;          /* this node's part of the figures, as it was when it passed the question on */
    double *models;     /* the subtree's, own first; taken when they are asked for */
    double *slots;      /* n_children: for ACK */

    /* asynchronous */
    uint64_t version;       /* own steps */
    uint64_t turn_left;     /* rounds of an inner node's turn that are still to come */
    bool halted;            /* the last figures have been asked for: nothing moves any more */
    bool stopping;          /* root: the tolerances were met */
    uint64_t asked_version; /* `own` is of */
    double *own_numbers;    /* tally_numbers: `own`, as it is kept */
    uint64_t since;         /* when the round was opened */
    uint64_t held;          /* version of the newest DOWN that waits for its turn, 0: none */
    double *held_w;         /* M */
    heard *heard;           /* since the last step: of a child at most as many as it was behind */
    size_t n_heard, heard_room;
    char *lines;
    size_t lines_size, lines_room;

    /* a look (node_look.c); none of it is kept */
    bool pausing;        /* root: it is to look */
    uint64_t look;       /* number of the question in hand, 0: none */
    bool looked;         /* its answer is there */
    bool say_look;       /* to the parent */
    bool ack_look;       /* to the children */
    uint64_t look_part;  /* that is said */
    double *look_models; /* the subtree's, own first; taken when they are asked for */
    channel look_ask;

    /* the root */
    guard_state guard;
    bool anew; /* a repair is to be made */
    stop_state stop;
    hfsad_figures row;
    double *row_w; /* M: its model */
    bool row_ready;
    node_end end;
    double *polish; /* setup.polish numbers, then M: where it begins; NULL: none */
    bool polished;  /* it has come */

    /* the root, of stages before the run */
    bool stage_over; /* the next is to begin */
    double *first;   /* M: the first of the starts that are tried; NULL: there is one stage */
    double least;    /* objective of the one kept */
    node_prelude prelude;
};

/* channel */
void channel_start(node *n, channel *c); /* a new value, to be sent now */
void channel_stop(channel *c);

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
/* Numbers of a question for figures: w_0, and behind it the parent's w where that is another. */
static inline size_t node_ask_count(const node *n)
{
    return n->s.depth == 1 ? n->s.M : 2 * n->s.M;
}
/* The parts in which so many nodes' models go up, and the numbers of one of them; 0: there is none. */
uint64_t node_parts_of(const node *n, size_t nodes);
size_t node_part_size(const node *n, size_t nodes, uint64_t part);
/* Keeps the tally as the node's answer. */
void node_answer(node *n, const tally *t, uint64_t round);
bool node_refuse(node *n, node_refusal *to, node_refusal why);
/* The parent begins anew, or we do: what it may have forgotten is sent again. */
void node_greet(node *n, uint64_t begun);

/* numbers that are not finite (node_numbers.c) */
bool all_finite(const double *v, size_t count);
double number_hide(double v);
void numbers_hide(double *v, size_t count);
/* v, or in room what can be said of it. */
double *numbers_to_say(double *room, double *v, size_t count);
/* The numbers of a message that has come, as they are where they come from; false: it is refused. */
bool numbers_take(node *n, message *m, node_refusal *why);

hfsad_status leaf_create(node *n, hfsad_error *err);
void leaf_free(node *n);
void leaf_begin_anew(node *n);
bool leaf_handle(node *n, const message *m, node_refusal *why);

hfsad_status inner_create(node *n, hfsad_error *err);
void inner_free(node *n);
bool inner_handle(node *n, size_t from, const message *m, node_refusal *why);
/* A question is passed on, and the answers are put together. */
void inner_ask(node *n, uint64_t phase, uint64_t round);
double inner_sum(node *n);
/* The rule of its link after the repairs so far. */
void node_find_rule(node *n);
/* All of the safeguard's repair that a node has to do; for an inner one after its children. */
void node_begin_anew(node *n, const double *w);
void inner_begin_anew(node *n);
/* A child's message that its parent knows without being told, as it would have come. */
void inner_assume(node *n, size_t c, const hfsad_link_rule *rule, const hfsad_link *link);
guard_strain inner_strain(const node *n);
/* Tells all children that their last answer has come. */
void inner_ack_all(node *n);
/* A client's step, so many times. */
void leaf_step(node *n, const double *w_parent, uint32_t times);

/* stages (node_stages.c) */
static inline bool is_prelude(const node *n)
{
    return n->s.stage + 1 < n->s.stages;
}
hfsad_status stages_create(node *n, hfsad_error *err);
/* The node becomes that of another stage; false: no memory. */
bool stage_begin(node *n, uint64_t stage, const double *start);
bool stage_handle(node *n, size_t from, const message *m, uint64_t stage, node_refusal *why);
/* Root: the stage is over, by these figures; NULL: its numbers are no longer finite. */
void stage_conclude(node *n, const hfsad_figures *f);
/* Root: where the next stage begins. */
void stage_next_start(const node *n, double *w);

/* a look (node_look.c) */
void look_free(node *n);
/* Root: begins where it can; whether it holds the next round back. */
void look_advance(node *n);
bool look_holds(const node *n);
bool look_handle(node *n, size_t from, const message *m, node_refusal *why);
message look_model_letter(node *n);
message look_ask_letter(const node *n);
message look_ack_letter(node *n);
/* Where a child's numbers begin among the models of the subtree. */
size_t node_models_before(const node *n, size_t c);

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
/* A question that is neither the first nor the last: training goes on, and it outlasts a crash. */
bool async_is_between(const node *n, uint64_t round);
/* What was asked of whom: a line of the record. */
void async_row(node *n);
bool async_may_open(const node *n);
void async_open(node *n);
bool async_is_ready(const node *n);
void async_step(node *n);
/* When it will be ready without a message, UINT64_MAX: never. */
uint64_t async_due(const node *n);
/* The last line of the record: what was heard and not used. */
void async_end(node *n);

/* Goes on as far as it can. */
void inner_advance(node *n);

#endif
