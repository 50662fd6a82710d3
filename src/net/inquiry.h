/*
 * The set-up of a node as a state machine: the questions that the root asks of all clients before training
 * (plan/survey.h), their way down the tree and the combination of the answers on the way up. Like a node it uses no
 * socket, clock or file, and its messages are ASK and ANSWER in NODE_PHASE_SETUP, round: the question's number.
 *
 * The root's side is plain code that asks one question after another (federation.h): inquiry_ask waits for the answer,
 * and meanwhile runs the turns of its process.
 *
 * Only the result has to survive a crash: questions depend only on earlier answers, so a restarted root asks the same
 * questions with the same numbers, and a node answers them again. A parent retransmits its question until all children
 * have answered; a child answers whenever it is asked, also during training.
 *
 * After training there may be another series, the polish's (polish/polish.h). Its questions have larger numbers than
 * all others: the number of the attempt is above their lowest INQUIRY_ATTEMPT_BIT bits. Clients keep state between
 * these questions, in memory only: a restarted client reports that it is lost, and the root makes another attempt. The
 * numbers therefore only increase, and an older question is dropped.
 *
 * The last question of the set-up carries the result: the numbers from which every node computes the same plan. A node
 * answers after it and all nodes below it have written the result to disk. The root begins to train when it has that
 * answer.
 */
#ifndef HFSAD_NET_INQUIRY_H
#define HFSAD_NET_INQUIRY_H

#include "net/node.h"

/* Kinds of question beyond survey_kind. */
enum {
    INQUIRY_SHAPE = 100, /* prints of the spec (federation.h) -> most: whether rows are in a table; sum: rows */
    INQUIRY_RESULT,      /* the result -> sum: 1 of every node */
    INQUIRY_END,         /* the root has found a mistake and ends: why, a byte a number -> sum: 1 of every node */
    INQUIRY_POLISH, /* and above: polish_kind; attempt, number, kappa, beta, step, vectors -> most: 1: lost; sums */
    INQUIRY_GROUPS = INQUIRY_POLISH + 32, /* and above: mixture_kind; its numbers -> sums */
    INQUIRY_KINDS = INQUIRY_GROUPS + 16
};
enum { INQUIRY_ATTEMPT_BIT = 24, INQUIRY_POLISH_HEAD = 5 };
/* In place of "lost": a client does not answer, and its parent waits no longer. */
#define INQUIRY_ABSENT 0x1p40

/* A question: in a message its head precedes its numbers. */
typedef struct {
    int kind; /* of survey_kind or above */
    size_t most, sums;
    double constant; /* the column of the intercept, 0: none or not known yet */
    size_t n_columns;
    const double *columns; /* centre and scale by which the rows are standardised; none: they are as they came */
    size_t count;
    const double *values;
    uint64_t round; /* its number; for clients */
    bool decided;   /* it is decided which clients are members; those that are none have the numbers that follow */
    size_t n_absent;
    const double *absent;
} inquiry_question;

enum { INQUIRY_HEAD = 5, INQUIRY_WHY_MOST = 240 /* bytes of the reason */ };

typedef struct inquiry inquiry;

typedef struct {
    uint64_t run;
    size_t n_children;  /* inner ones first, in the order of their slots */
    size_t n_inner;     /* of these, inner nodes */
    size_t first_leaf;  /* number of the first client among all clients */
    size_t n_later;     /* its last children came to the list while the run went on: the set-up goes without them */
    uint32_t answer_ms; /* asynchronous: a polish waits so long for a child, longer for one that lives; 0: for ever */
    uint32_t join_ms;   /* INQUIRY_SHAPE with a sum for every client goes without clients that have not answered then */
    size_t most;        /* numbers of a message, its head included; at least INQUIRY_HEAD + INQUIRY_WHY_MOST */
    node_patience patience;
    void *context;
    /* A leaf: its answer, most + sums numbers, to any question but the result; false: it is no good question. */
    bool (*answer)(void *context, const inquiry_question *question, double *answer);
    /* Why it was none, or NULL; the function may be NULL. */
    const char *(*why)(void *context);
    bool root;
    bool fixed,
        secure; /* answers are in fixed point (plan/fixed_answer.h); and masked, so that one alone means nothing */
} inquiry_setup;

hfsad_status inquiry_create(inquiry **q, const inquiry_setup *setup, hfsad_error *err);
void inquiry_free(inquiry *q);

/* The root asks from code that waits: a turn processes input, commits and sends. A status other than 0 ends the
 * question, and with it the asking code. */
typedef struct {
    void *context;
    hfsad_status (*turn)(void *context, hfsad_error *err);
} inquiry_turns;
/* round: the question's number. totals: most + sums numbers. */
hfsad_status inquiry_ask(inquiry *q, uint64_t round, const inquiry_question *question, const inquiry_turns *turns,
                         double *totals, hfsad_error *err);

/* from: as in node_handle. Returns whether it was news. Errors: no memory, or a result that differs from the stored
 * one. */
bool inquiry_handle(inquiry *q, size_t from, const message *m, node_refusal *why, hfsad_status *failed,
                    hfsad_error *err);
/* Why the last question was not answered, if the client has said so; NULL otherwise. */
const char *inquiry_why(const inquiry *q);
void inquiry_tick(inquiry *q, uint64_t now_ms);
uint64_t inquiry_due(const inquiry *q);
/* As node_repeat. */
void inquiry_repeat(inquiry *q);
/* Whether there is a letter to send. */
bool inquiry_speaks(const inquiry *q);
bool inquiry_next_letter(inquiry *q, node_letter *letter);

/* Whether a child has given an answer that no rows can have. */
bool inquiry_child_lies(const inquiry *q, size_t c);
/* Whether it has an answer that does not fit into fixed point. */
bool inquiry_is_too_large(const inquiry *q);
/* Upper limit on the numbers of an answer in a frame, if an answer has `most` numbers. */
size_t inquiry_words_most(size_t most);
/* Asynchronous: whether a child lives; and is no member, so that questions after training go without it. */
void inquiry_note_child(inquiry *q, size_t c, bool lives, bool out);
/* Whether it waits for this child's answer, and since when, on the clock of inquiry_tick. */
bool inquiry_waits_for(const inquiry *q, size_t c);
uint64_t inquiry_waits_since(const inquiry *q);

/* The result, of an earlier life or at the root: another one is an error from now on. */
hfsad_status inquiry_remember(inquiry *q, const double *result, size_t count, hfsad_error *err);

/* The result, once it is to be taken down. NULL: not yet. */
const double *inquiry_result(const inquiry *q, size_t *count);
/* The root ends, at whatever point it is, and says why until all below have heard it. */
hfsad_status inquiry_dismiss(inquiry *q, const char *why, hfsad_error *err);
/* Why the root has ended; NULL: it has not. It counts from its second hearing in a connection on: that of an earlier
 * run, which the broker may remember, is heard once. */
const char *inquiry_dismissal(const inquiry *q);
/* Whether all below have heard of it. */
bool inquiry_all_dismissed(const inquiry *q);

#endif
