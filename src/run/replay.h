/*
 * An asynchronous federation again, in the simulator and to the same bits, from the record of who took part when.
 *
 * A record has a line for every step of an inner node and of the cloud:
 *
 *     path  step  version  slot:version:k ...
 *
 * The node's steps are counted from 1; version v of a node's model is the one after its step v - 1. The line's version
 * is that of the parent's model which the node's link stepped with (0 for the cloud). Then come the children that have
 * been heard of since the step before: the slot of the child (inner children first), the version of this node's model
 * that it worked with, and its link's counter afterwards. `end` in place of the step stands in the last line of a node,
 * for what it has heard of and not used. Lines of different nodes may be mixed in any way.
 *
 *     path  row  round  step  slot:k ...
 *
 * stands for a question for figures that was neither the first nor the last: its number, how many steps the node had
 * made when it passed it on, and the counters of its leaves' links when they answered. A row's nodes need not have been
 * there at one time.
 */
#ifndef HFSAD_RUN_REPLAY_H
#define HFSAD_RUN_REPLAY_H

#include "run/handle.h"

/* Who is told of the rows between the first and the last, in their order; seconds is left alone. */
typedef struct {
    void *context;
    void (*row)(void *context, const hfsad_figures *figures);
} replay_rows;

/* Plays all of it on a simulation that has not begun but was measured. path is for messages; *met: the tolerances were
 * met on the way. Refused (HFSAD_ERROR_INPUT): a record that is torn or of another tree; s is then not to be used. */
hfsad_status sim_replay(sim *s, const char *text, size_t size, const char *path, const replay_rows *rows, bool *met,
                        hfsad_error *err);
/* The same from a file; refused for baselines. */
hfsad_status run_replay(hfsad_run *r, const char *path, const replay_rows *rows, bool *met, hfsad_error *err);

#endif
