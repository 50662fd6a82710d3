/*
 * The ranks of base/ranks.h by MPI: a separate module, so that the program does not depend on MPI. The program loads it
 * if mpirun or srun started the program (src/base/launch.c).
 */
#define _POSIX_C_SOURCE 200809L
#include "base/ranks.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PIECE = 1 << 30, LEAVE_SECONDS = 5 };

typedef struct {
    MPI_Comm leaving; /* separate from the communicator of the work: a rank may leave while others wait for it there */
    int *sizes, *places, *in_sizes, *in_places;
} mpi_group;

static mpi_group mine;

static void must(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "hfsad: MPI: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void share(void *context, unsigned from, void *bytes, size_t size)
{
    (void)context;
    for (char *at = bytes; size > 0;) {
        const size_t piece = size < PIECE ? size : PIECE;
        must(MPI_Bcast(at, (int)piece, MPI_BYTE, (int)from, MPI_COMM_WORLD) == MPI_SUCCESS, "a broadcast failed");
        at += piece;
        size -= piece;
    }
}

static void gather(void *context, const void *own, const size_t *sizes, void *all)
{
    const rank_group *group = context;
    size_t at = 0;
    for (unsigned r = 0; r < group->count; at += sizes[r++]) {
        mine.sizes[r] = (int)sizes[r];
        mine.places[r] = (int)at;
    }
    must(at <= INT32_MAX, "an exchange of more than 2 GiB");
    must(MPI_Allgatherv(own, mine.sizes[group->rank], MPI_BYTE, all, mine.sizes, mine.places, MPI_BYTE,
                        MPI_COMM_WORLD) == MPI_SUCCESS,
         "an exchange failed");
}

static void deliver(void *context, const void *own, const size_t *out, void *all, const size_t *in)
{
    const rank_group *group = context;
    size_t sent = 0, heard = 0;
    for (unsigned r = 0; r < group->count; r++) {
        mine.sizes[r] = (int)out[r];
        mine.places[r] = (int)sent;
        mine.in_sizes[r] = (int)in[r];
        mine.in_places[r] = (int)heard;
        sent += out[r];
        heard += in[r];
    }
    must(sent <= INT32_MAX && heard <= INT32_MAX, "an exchange of more than 2 GiB");
    must(MPI_Alltoallv(own, mine.sizes, mine.places, MPI_BYTE, all, mine.in_sizes, mine.in_places, MPI_BYTE,
                       MPI_COMM_WORLD) == MPI_SUCCESS,
         "an exchange failed");
}

static void bring(void *context, unsigned from, void *bytes, size_t size)
{
    const rank_group *group = context;
    if (from == 0 || (group->rank != 0 && group->rank != from))
        return;
    for (char *at = bytes; size > 0;) {
        const size_t piece = size < PIECE ? size : PIECE;
        must((group->rank == from ? MPI_Send(at, (int)piece, MPI_BYTE, 0, 0, MPI_COMM_WORLD)
                                  : MPI_Recv(at, (int)piece, MPI_BYTE, (int)from, 0, MPI_COMM_WORLD,
                                             MPI_STATUS_IGNORE)) == MPI_SUCCESS,
             "a message failed");
        at += piece;
        size -= piece;
    }
}

static bool leave(void *context, int status, int *statuses)
{
    (void)context;
    MPI_Request request;
    int done = 0;
    must(MPI_Iallgather(&status, 1, MPI_INT, statuses, 1, MPI_INT, mine.leaving, &request) == MPI_SUCCESS,
         "an exchange failed");
    const struct timespec nap = {0, 1000000};
    /* a finished rank waits for the rank that writes the files, however long that takes */
    for (int i = 0; !done && (status == 0 || i < LEAVE_SECONDS * 1000); i += status != 0) {
        must(MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS, "an exchange failed");
        if (!done)
            nanosleep(&nap, NULL);
    }
    if (done)
        MPI_Finalize();
    return done;
}

static void end(void *context, int status)
{
    (void)context;
    MPI_Abort(MPI_COMM_WORLD, status);
    abort();
}

__attribute__((visibility("default"))) bool hfsad_ranks_open(rank_group *group, char *why, size_t size);

bool hfsad_ranks_open(rank_group *group, char *why, size_t size)
{
    int rank, count;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &count) != MPI_SUCCESS ||
        MPI_Comm_dup(MPI_COMM_WORLD, &mine.leaving) != MPI_SUCCESS) {
        snprintf(why, size, "MPI could not be started");
        return false;
    }
    if (count > RANKS_MOST) {
        snprintf(why, size, "%d ranks are too many; at most %d work together", count, RANKS_MOST);
        return false;
    }
    mine.sizes = calloc(4 * (size_t)count, sizeof *mine.sizes);
    mine.places = mine.sizes + count;
    mine.in_sizes = mine.places + count;
    mine.in_places = mine.in_sizes + count;
    *group = (rank_group){(unsigned)rank, (unsigned)count, group, gather, share, deliver, bring, leave, end};
    if (!mine.sizes)
        snprintf(why, size, "not enough memory");
    return mine.sizes != NULL;
}
