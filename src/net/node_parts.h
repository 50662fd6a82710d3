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
} channel;

/* What a parent has of a child. */
typedef struct {
    uint32_t last; /* iteration in which it last took part */
    uint64_t need; /* the round whose UP its parent works with */
    uint64_t k;    /* of its last UP */
    bool has;      /* that UP is there; not kept over a crash */
    bool told;     /* it has acknowledged the DOWN of the open round */
    bool answered; /* the question in hand */
    double sigma;
} child_state;

struct node {
    node_setup s;
    uint64_t K;            /* edge_rounds */
    uint64_t end_round;    /* the last */
    uint64_t period, unit; /* rounds per DOWN of the parent, and per own one */
    size_t nodes;          /* of its subtree */
    uint64_t now;
    bool changed;
    channel up, answer, down, ask;
    bool ack_down, ack_up, ack_answer;  /* to be sent; ack_down goes to the parent, the others to the children */
    uint64_t parent_begun, asker_begun; /* the parent's count of beginnings, as its last DOWN and ASK had it */
    uint64_t begun;                     /* own count */
    node_status status;

    double *w, *z, *q;
    uint32_t k, last;
    uint64_t round;              /* done */
    uint64_t down_round;         /* of the newest DOWN taken, 0: none */
    uint64_t up_round;           /* of the UP that z, q and k stand for */
    bool diverged;               /* a number is not finite: UP is sent without numbers */
    double dual;                 /* of the last round */
    uint64_t sent_up, sent_down; /* vectors, as the trace counts them */
    int64_t answered;            /* round of the last measurement answered, -1: none */
    uint64_t answer_phase;
    double *figures; /* tally_numbers: the last answer */
    double *u;       /* M */
    bool finished;

    /* a leaf */
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
    double *models;     /* the subtree's, own first; taken when they are asked for */
    double *slots;      /* n_children: for ACK */

    /* the root */
    stop_state stop;
    hfsad_figures row;
    bool row_ready;
    node_end end;
};

/* channel */
void channel_start(node *n, channel *c); /* a new value, to be sent now */
void channel_stop(channel *c);

/* Whether a node with these draws takes part in a round; keeps *last. */
bool node_draw(const node *n, double participation, uint64_t key, uint32_t *last, uint64_t round);
/* The round after which the next measurement comes. */
uint64_t node_next_measure(const node *n);
bool all_finite(const double *v, size_t count);
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
/* Keeps the tally as the node's answer. */
void node_answer(node *n, const tally *t, uint64_t round);
bool node_refuse(node *n, node_refusal *to, node_refusal why);
/* The parent begins anew, or we do: what it may have forgotten is sent again. */
void node_greet(node *n, uint64_t begun);

hfsad_status leaf_create(node *n, hfsad_error *err);
void leaf_free(node *n);
bool leaf_handle(node *n, const message *m, node_refusal *why);

hfsad_status inner_create(node *n, hfsad_error *err);
void inner_free(node *n);
bool inner_handle(node *n, size_t from, const message *m, node_refusal *why);
/* Goes on as far as it can. */
void inner_advance(node *n);

#endif
