/* Checks which questions a client answers. Its spec determines which questions the set-up, the polish and the groups
 * have, in which order and how often; every other question is refused, and so is a second question with the number of
 * one that was answered. The memory is that of the process: a client that is started again begins with an empty one.
 */
#ifndef HFSAD_NET_WARDEN_H
#define HFSAD_NET_WARDEN_H

#include "net/inquiry.h"
#include "spec/settings.h"

enum { WARDEN_ASKED = 1024, WARDEN_PRINTS = 1 << 15 /* 512 KiB at most */ };
#define WARDEN_TOO_LARGE "a model with numbers beyond privacy.largest"

typedef struct {
    struct {
        uint64_t round, print;
        size_t step;
    } asked[WARDEN_ASKED]; /* of the set-up, by their rounds */
    size_t count;
    bool restored; /* the result was there before the first question: a cloud that lost its state asks again */
    bool begun;    /* the first question has come in this life */
    uint64_t late_round, late_print;                /* the last question of polish or groups, ... */
    uint64_t late;                                  /* ... and how many there have been */
    unsigned times[INQUIRY_KINDS - INQUIRY_POLISH]; /* different ones of each kind */
    uint64_t *prints;                               /* of these, a table with gaps */
    size_t n_prints, prints_room;
    bool ordered;             /* it knows all questions since the set-up, and answers only those that follow */
    int last_new, last_asked; /* kinds of the last question that had not come before, and of the last one; 0: none */
    bool keyed;
    unsigned char key[32]; /* of the prints */
    double constant;
    uint64_t columns; /* print of what standardises the columns; 0: not known */
} warden;

/* NULL: the question may be answered; otherwise the reason why not, a text that lasts. settled: the client has the
 * set-up's result; M: numbers of a model, the intercept's included if the question has one. */
const char *warden_judge(warden *w, const hfsad_spec *spec, const inquiry_question *question, size_t M, bool settled);

/* How many different questions of this kind a client of this spec answers at most; 0: none. */
unsigned warden_most(const hfsad_spec *spec, int kind);
/* w: from alloc_zero, or NULL. */
void warden_free(warden *w);

#endif
