/*
 * A line that says how far a long command is. On a terminal it is redrawn in place and erased at the end; otherwise
 * a plain line now and then. Nothing in the first second, so that short runs stay quiet.
 */
#ifndef HFSAD_CLI_PROGRESS_H
#define HFSAD_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool quiet, terminal, drawn;
    const char *unit; /* "iteration", "trial": singular */
    uint64_t total;
    double started, next; /* seconds of a steady clock */
    double interval;      /* between plain lines */
    /* The rate is that of the last seconds: from the first of two marks, which follow each other by some seconds. */
    struct {
        double at;
        uint64_t done;
    } mark[2];
} progress;

/* done: the number already done. total = 0: unknown. unit must outlive p. */
void progress_start(progress *p, const char *unit, uint64_t done, uint64_t total, bool quiet);
/* Whether the next progress_draw would show something; cheap enough for every iteration. */
bool progress_due(const progress *p);
/* detail: further figures, "" for none. Does nothing if it is not due. */
void progress_draw(progress *p, uint64_t done, const char *detail);
/* How a line of a log on stderr begins: with what erases a line of progress, which any process of this terminal may
 * have drawn; "" if stderr is no terminal. */
const char *progress_log_start(void);
/* Erases the line on a terminal. Safe to call more than once. */
void progress_end(progress *p);

#endif
