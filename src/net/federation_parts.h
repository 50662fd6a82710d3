/* What the files of a federation share. */
#ifndef HFSAD_NET_FEDERATION_PARTS_H
#define HFSAD_NET_FEDERATION_PARTS_H

#include "net/federation.h"
#include "net/vault.h"
#include "net/warden.h"
#include "run/algorithm.h"

/* What a client keeps from one question of the polish to the next. */
typedef struct polish_memory polish_memory;
/* The numbers of the set-up's result before its start. NU_F: the first step of FedAvg and FedProx, which have no
 * theorem. */
enum { MANY, CONSTANT, ROWS, COLUMNS, OMEGA, BEND, NOISE, LENGTH, NU_F, QUESTIONS, BYTES_UP, BYTES_DOWN, RESULT_HEAD };

struct federation {
    const hfsad_spec *spec;
    dataset *shape, *rows;
    dataset standard; /* the same with the values standardised; NULL for x: not made. x is that of rows, which are
                         then no longer as they came, or its own */
    dataset *raw;     /* original rows if `rows` are standardised, while they are asked for; NULL: not read */
    federation_reader *read; /* NULL: they cannot be read again */
    void *read_context;
    double *standard_by; /* means and deviations */
    size_t *own;         /* by leaf of shape: its leaf in rows, or SIZE_MAX */
    bool is_broken;      /* rows could not be read again, for the reason that follows */
    hfsad_error broken;
    uint64_t run;
    double *prints; /* of the spec's settings, then of the tree */
    size_t n_prints;
    local_survey survey; /* of shape: which loss is whose */
    bool surveys;
    plan *p, *tied;     /* tied: of a consensus start, or NULL */
    baseline_rule rule; /* of FedAvg and FedProx */
    plan trial;         /* of run.tries; its pointers belong to p */
    double *result;     /* in force; NULL: none */
    size_t n_result;
    federation_result outcome;
    tree t;
    host *lines;         /* of the root: where the record goes; NULL: nowhere */
    bool decided;        /* which clients are members */
    uint8_t *absent;     /* by leaf: it is none, because it was not there at the set-up */
    double *absent_list; /* their numbers */
    size_t n_absent;
    vault *vault;           /* of the noise of this process's clients; NULL: there is none */
    word_source *noises;    /* by leaf */
    uint64_t *lives;        /* by leaf: of its link, if it was readmitted */
    polish_memory **polish; /* by leaf; NULL: no leaf has been asked */
};

/* What an inquiry's functions get. */
typedef struct {
    federation *f;
    size_t leaf;
    warden guard;        /* of a client */
    const char *why_not; /* the last question was refused; NULL: it was not */
} seat;

/* Whether the set-up may go without clients; and the client `leaf` is none. */
bool federation_may_leave_out(const federation *f);
void federation_leave_out(federation *f, size_t leaf);

/* Numbers that the root keeps of polish and groups; 0: there is neither. */
size_t federation_end_numbers(const federation *f, const plan *p);
size_t polish_message_most(const federation *f);
bool polish_client_answer(const seat *at, const inquiry_question *question, double *numbers);
void polish_forget(federation *f);

/* Of the groups: the numbers of their result, 0: none are looked for; the most numbers of a message; a client's answer;
 * the whole, from the cloud's model w; why there are none in numbers, or NULL and the result, to be freed in any case.
 */
size_t federation_groups_numbers(const federation *f, const plan *p);
size_t personal_message_most(const federation *f);
bool personal_client_answer(const seat *at, const inquiry_question *question, double *numbers);
hfsad_status federation_groups_from(const federation *f, inquiry *q, const inquiry_turns *turns, uint64_t attempt,
                                    const double *w, double *numbers, hfsad_error *err);

/* The rows of a client of this process, as it trains on them. */
client_rows federation_client_rows(const federation *f, size_t leaf);

#endif
