/*
 * Processes that train one run together, such as those of mpirun. All of them make the same calls in the same order; a
 * call returns on every rank when all have made it. One process alone is a group of one.
 *
 * Calls come from one thread. A rank that cannot go on ends its process, and the group with it.
 */
#ifndef HFSAD_BASE_RANKS_H
#define HFSAD_BASE_RANKS_H

#include "hfsad/hfsad.h"

#include <stdbool.h>
#include <stddef.h>

enum { RANKS_MOST = 4096 };

typedef struct {
    unsigned rank, count; /* count: at most RANKS_MOST */
    void *context;
    /* all: the bytes of rank 0, then of rank 1, and so on, sizes[r] of rank r; own: this rank's. */
    void (*gather)(void *context, const void *own, const size_t *sizes, void *all);
    /* The bytes of rank `from` to all. */
    void (*share)(void *context, unsigned from, void *bytes, size_t size);
    /* To every rank r out[r] bytes, one rank's after the other in own; from it in[r] bytes, likewise in all. All in all
     * less than 2 GiB in each direction. */
    void (*deliver)(void *context, const void *own, const size_t *out, void *all, const size_t *in);
    /* The bytes of rank `from` to rank 0; the others keep what they have. */
    void (*bring)(void *context, unsigned from, void *bytes, size_t size);
    /* Leaves with an exit status. With 0 it waits for all; otherwise, whether all ranks left within some seconds. Their
     * statuses, count of them, then. */
    bool (*leave)(void *context, int status, int *statuses);
    /* Ends all processes. */
    void (*end)(void *context, int status);
} rank_group;

/* What a module for MPI exports under RANKS_OPEN: fills the group; false: why, in one line. */
typedef bool ranks_opener(rank_group *group, char *why, size_t size);
#define RANKS_OPEN "hfsad_ranks_open"

/* If mpirun or srun started this process with others: loads the module that is beside the program, or in the folder of
 * libraries that belongs to it, and joins. false: why not, in one line. */
bool ranks_launch(char *why, size_t size);

/* The group of this process. */
const rank_group *ranks(void);
/* group must outlive the process's work; before the first call of ranks. */
void ranks_join(const rank_group *group);

/* Whether any rank says so. */
bool ranks_any(bool here);
/* Whether all ranks have the same bytes. */
bool ranks_same(const void *bytes, size_t size);
/* The status of the lowest rank that has failed, and its message, for all of them. */
hfsad_status ranks_agree(hfsad_status status, hfsad_error *err);

#endif
