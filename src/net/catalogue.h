/*
 * What a client allows: one row for each kind of question, from the table of questions (plan/questions.h). A kind
 * without a row is answered by no client.
 */
#ifndef HFSAD_NET_CATALOGUE_H
#define HFSAD_NET_CATALOGUE_H

#include "net/inquiry.h"
#include "spec/settings.h"

typedef struct {
    unsigned how; /* ASK_... */
    int bound;    /* BOUND_..., or from which number of the question on */
    question_mask mask;
    question_budget budget;
    unsigned most;      /* different questions, for each score; 0: of the set-up, see warden.c: steps */
    const char *by;     /* the specs that imply it, in words */
    const char *refuse; /* word of privacy.refuse; "": none */
    bool (*implied)(const hfsad_spec *spec); /* NULL: of the set-up */
    const char *text;                        /* in the audit */
} catalogue_row;

/* The row of a kind; NULL: there is no such question. */
const catalogue_row *catalogue_find(int kind);
/* The row of a question while nodes train; NULL: there is none. */
const catalogue_row *catalogue_of_phase(uint64_t phase);
/* The words of the audit. */
const char *catalogue_describe(int kind);

#endif
