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
#include "plan/questions.h"

/* Kinds of question, the first number of a message: a survey_kind, or
 *
 *     SHAPE   fingerprints of the spec (federation.h) -> most: whether rows are in a table; sum: rows
 *
 *     RESULT  the result -> sum: 1 of every node
 *
 *     END     the root ends because of an error: the reason, one byte per number -> sum: 1 of every node
 *
 *     POLISH  and above: polish_kind; attempt, number, kappa, beta, step, vectors -> most: 1: lost; sums
 *
 *     GROUPS  and above: mixture_kind; its numbers -> sums
 */
enum {
    INQUIRY_BEFORE_SHAPE = 99,
#define INQUIRY_ENUM(name, ...) INQUIRY_##name,
    SETUP_QUESTIONS(INQUIRY_ENUM)
#undef INQUIRY_ENUM
        INQUIRY_POLISH,
    INQUIRY_GROUPS = INQUIRY_POLISH + 32,
    INQUIRY_KINDS = INQUIRY_GROUPS + 16
};
enum { INQUIRY_ATTEMPT_BIT = 24 };
/* Replaces "lost" in an answer: a client has not answered, and its parent has stopped waiting. */
#define INQUIRY_ABSENT 0x1p40

/* A question: in a message its head precedes its numbers. */
typedef struct {
    int kind; /* a survey_kind, or one of the kinds above */
    size_t most, sums;
    double constant; /* value of the intercept's column, 0: no intercept, or not known yet */
    size_t n_columns;
    const double *columns; /* centre and scale of the standardisation; n_columns 0: original rows */
    size_t count;
    const double *values;
    uint64_t round; /* number of the question; for clients */
    bool decided;   /* the set-up has decided which clients take part; `absent` lists the others */
    size_t n_absent;
    const double *absent;
} inquiry_question;

enum { INQUIRY_HEAD = 5, INQUIRY_WHY_MOST = 240 /* upper limit on the bytes of a reason */ };

typedef struct inquiry inquiry;

typedef struct {
    uint64_t run;
    size_t n_children; /* in slot order, inner nodes first */
    size_t n_inner;    /* number of inner nodes among them */
    size_t first_leaf; /* number of its first client, counted over all clients */
    size_t
        n_later; /* number of children, at the end of the list, admitted during the run: the set-up does not ask them */
    uint32_t
        answer_ms; /* asynchronous: time for which a polish waits for a child, longer if the child is up; 0: no limit */
    uint32_t join_ms; /* time after which INQUIRY_SHAPE continues without clients that have not answered */
    size_t most;      /* upper limit on the count of numbers in a message, head included; at least INQUIRY_HEAD +
                         INQUIRY_WHY_MOST */
    node_patience patience;
    void *context;
    /* Client: computes the answer, most + sums numbers, to any question except the result; false: the question is
     * refused. */
    bool (*answer)(void *context, const inquiry_question *question, double *answer);
    /* The reason for a refusal, or NULL; the function may be NULL. */
    const char *(*why)(void *context);
    bool root;
    bool fixed, secure; /* fixed: answers are in fixed point (plan/fixed_answer.h); secure: they are masked, and one
                           alone is random */
} inquiry_setup;

hfsad_status inquiry_create(inquiry **q, const inquiry_setup *setup, hfsad_error *err);
void inquiry_free(inquiry *q);

/* The root's code waits for the answer of a question and meanwhile takes turns: a turn processes input, commits and
 * sends. A status other than 0 ends the question and is returned to the code that asked. */
typedef struct {
    void *context;
    hfsad_status (*turn)(void *context, hfsad_error *err);
} inquiry_turns;
/* Root: asks a question and waits for its answer. round: number of the question. totals: most + sums numbers. */
hfsad_status inquiry_ask(inquiry *q, uint64_t round, const inquiry_question *question, const inquiry_turns *turns,
                         double *totals, hfsad_error *err);

/* from: as in node_handle. Returns whether it was news. Errors: no memory, or a result that differs from the stored
 * one. */
bool inquiry_handle(inquiry *q, size_t from, const message *m, node_refusal *why, hfsad_status *failed,
                    hfsad_error *err);
/* The reason for which a client has refused the last question; NULL: none was given. */
const char *inquiry_why(const inquiry *q);
void inquiry_tick(inquiry *q, uint64_t now_ms);
uint64_t inquiry_due(const inquiry *q);
/* As node_repeat. */
void inquiry_repeat(inquiry *q);
/* Whether inquiry_next_letter has a message to send. */
bool inquiry_speaks(const inquiry *q);
bool inquiry_next_letter(inquiry *q, node_letter *letter);

/* Whether a child has given an answer that no rows can produce. */
bool inquiry_child_lies(const inquiry *q, size_t c);
/* Whether an answer of this node does not fit into fixed point. */
bool inquiry_is_too_large(const inquiry *q);
/* Upper limit on the count of numbers in the frame of an answer with `most` numbers. */
size_t inquiry_words_most(size_t most);
/* Asynchronous: tells whether a child is up, and whether it has left; questions after training skip children that have
 * left. */
void inquiry_note_child(inquiry *q, size_t c, bool lives, bool out);
/* Whether the node waits for this child's answer, and the time at which the wait began, on the clock of inquiry_tick.
 */
bool inquiry_waits_for(const inquiry *q, size_t c);
uint64_t inquiry_waits_since(const inquiry *q);

/* Sets the result, at the root or after a restart. From then on a different result is an error. */
hfsad_status inquiry_remember(inquiry *q, const double *result, size_t count, hfsad_error *err);

/* The result, as soon as it has to be written to disk; NULL: not yet. */
const double *inquiry_result(const inquiry *q, size_t *count);
/* Root: ends the run and retransmits the reason until all nodes have acknowledged it. */
hfsad_status inquiry_dismiss(inquiry *q, const char *why, hfsad_error *err);
/* The reason for which the root has ended the run; NULL: it has not. The reason must arrive twice in a connection,
 * because a broker may repeat, once, the retained message of an earlier run. */
const char *inquiry_dismissal(const inquiry *q);
/* Whether all nodes below have acknowledged the reason. */
bool inquiry_all_dismissed(const inquiry *q);

#endif
