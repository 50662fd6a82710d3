/* What the files of a federation share. */
#ifndef HFSAD_NET_FEDERATION_PARTS_H
#define HFSAD_NET_FEDERATION_PARTS_H

#include "net/federation.h"

/* What a client keeps from one question of the polish to the next. */
typedef struct polish_memory polish_memory;
/* The cloud's side of the polish. */
typedef struct polish_solver polish_solver;

struct federation {
    const hfsad_spec *spec;
    dataset *shape, *rows;
    dataset standard; /* the same with the values standardised; NULL for x: not made. x is that of rows, which are
                         then no longer as they came, or its own */
    dataset *raw;     /* rows as they came where `rows` are not, while they are asked for; NULL: not read */
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
    plan *p, *tied; /* tied: of a consensus start, or NULL */
    plan trial;     /* of run.tries; what it points to is p's */
    double *result; /* in force; NULL: none */
    size_t n_result;
    federation_result outcome;
    tree t;
    polish_memory **polish; /* by leaf; NULL: nobody has been asked */
    polish_solver *solver;  /* NULL: it has not begun */
};

/* What an inquiry's functions get. */
typedef struct {
    federation *f;
    size_t leaf;
} seat;

/* Of the polish: whether there is one, the most numbers of a message, a client's answer, and what the root makes of
 * them. */
bool federation_polishes(const federation *f, const plan *p);
size_t polish_message_most(const federation *f);
bool polish_client_answer(const seat *at, const inquiry_question *question, double *numbers);
hfsad_status polish_resolve(void *context, inquiry_pass *pass, const double *w, double **result, size_t *count,
                            hfsad_error *err);
void polish_forget(federation *f);

#endif
