/* A node that was readmitted to a federation: when, for the trace, the summary and a replay. */
#ifndef HFSAD_RUN_READMISSION_H
#define HFSAD_RUN_READMISSION_H

#include <stdint.h>

/* When its link restarted, relative to a round in lock step. */
typedef enum {
    ANEW_BEFORE,    /* after the round, before its row of the trace */
    ANEW_AFTER,     /* after the row */
    ANEW_EARLY,     /* in a stage before the run */
    ANEW_ELSEWHERE, /* asynchronous, at the place in its parent's record; or after the end, without effect */
    ANEW_RETIRED    /* likewise, but not a readmission: the node has left */
} anew_where;

/* A node that the end of an asynchronous run went without. */
typedef enum { ABSENCE_NONE, ABSENCE_SILENT, ABSENCE_ASIDE } run_absence;

typedef struct {
    uint64_t iteration; /* the first whose row finds it so */
    uint64_t round;
    anew_where where;
    char *path;
} run_readmission;

#endif
