/* Internal declarations of the federation*.c files. */
#ifndef HFSAD_NET_FEDERATION_PARTS_H
#define HFSAD_NET_FEDERATION_PARTS_H

#include "net/federation.h"
#include "net/kept_groups.h"
#include "net/vault.h"
#include "net/warden.h"
#include "run/algorithm.h"

/* A client's state between the questions of the polish. */
typedef struct polish_memory polish_memory;
/* Numbers of the result of the set-up that precede the start. NU_F: for FedAvg and FedProx, to which the theorem does
 * not apply, the first step size. */
enum { MANY, CONSTANT, ROWS, COLUMNS, OMEGA, BEND, NOISE, LENGTH, NU_F, QUESTIONS, BYTES_UP, BYTES_DOWN, RESULT_HEAD };

struct federation {
    const hfsad_spec *spec;
    dataset *shape, *rows;
    dataset standard; /* `rows` with standardised values; x NULL: not made. x is a copy, or shared with `rows`, whose
                         values are then standardised too */
    dataset *raw;     /* the original rows, reread while they are needed; NULL: not read */
    federation_reader *read; /* NULL: the rows cannot be reread */
    void *read_context;
    double *standard_by; /* means and deviations */
    size_t *own;         /* by leaf of shape: its leaf in rows, or SIZE_MAX */
    bool is_broken;      /* rereading the rows failed; `broken` is the error */
    hfsad_error broken;
    uint64_t run;
    double *prints; /* fingerprints of the spec's settings, then of the tree */
    size_t n_prints;
    local_survey survey; /* the loss of each client */
    bool surveys;
    plan *p, *tied;     /* tied: plan of a consensus start, or NULL */
    baseline_rule rule; /* FedAvg and FedProx only */
    plan trial;         /* plan of run.tries; its pointers belong to p */
    double *result;     /* result of the set-up; NULL: none */
    size_t n_result;
    federation_result outcome;
    tree t;
    host *lines;         /* root: the host that stores the record; NULL: no record */
    bool decided;        /* the set-up has decided which clients take part */
    uint8_t *absent;     /* by leaf: the client was absent during the set-up */
    double *absent_list; /* leaves that are absent */
    size_t n_absent;
    vault *vault;           /* keys of the noise of this process's clients; NULL: no noise */
    word_source *noises;    /* by leaf */
    uint64_t *lives;        /* by leaf: life of its link */
    polish_memory **polish; /* by leaf; NULL: no question so far */
    warden **guards;        /* by leaf; NULL: no question so far */
    kept_groups groups;
    const char *folder; /* of the process's state; NULL: none */
};

/* Context of an inquiry's functions. */
typedef struct {
    federation *f;
    size_t leaf;
    const char *why_not; /* reason for which the last question was refused; NULL: it was not */
} seat;

/* Whether the set-up may continue without some clients. federation_leave_out leaves out client `leaf`. */
bool federation_may_leave_out(const federation *f);
void federation_leave_out(federation *f, size_t leaf);

/* Count of numbers that the root stores for polish and groups; 0: neither is part of the run. */
size_t federation_end_numbers(const federation *f, const plan *p);
size_t polish_message_most(const federation *f);
bool polish_client_answer(const seat *at, const inquiry_question *question, double *numbers);
void polish_forget(federation *f);

/* Groups: count of numbers in their result, 0: no groups; upper limit on the count of numbers in a message; a client's
 * answer; the search, which starts from the cloud's model w. */
size_t federation_groups_numbers(const federation *f, const plan *p);
size_t personal_message_most(const federation *f);
bool personal_client_answer(seat *at, const inquiry_question *question, double *numbers);
hfsad_status federation_groups_from(const federation *f, inquiry *q, const inquiry_turns *turns, uint64_t attempt,
                                    const double *w, double *numbers, hfsad_error *err);

/* The rows of a client of this process, standardised if the spec says so. */
client_rows federation_client_rows(const federation *f, size_t leaf);

#endif
