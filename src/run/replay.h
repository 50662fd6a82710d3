/*
 * Repeats an asynchronous federation in the simulator, to the same bits, from the record of its steps.
 *
 * A record has a line for every step of an inner node and of the cloud:
 *
 *     path  step  version  slot:version:k ...
 *
 * The node's steps are counted from 1; version v of a node's model is the one after its step v - 1. The line's version
 * is that of the parent's model which the node's link stepped with (0 for the cloud). Then follow the children heard
 * since the previous step: the slot of the child (inner children first), the version of this node's model that it
 * worked with, and its link's counter afterwards. The last line of a node has `end` in place of the step, and lists the
 * children heard but not used. Lines of different nodes may be mixed in any way.
 *
 * A client that was readmitted has an entry whose counter is a multiple of 2^32, the number of the readmission: its
 * link begins anew with that version, and the counters that follow count from there. A counter whose lowest 32 bits are
 * all 1 is a client that has left, or has not joined yet: its link does not count until it begins anew.
 *
 *     path  row  round  step  slot:k ...
 *
 * is a question for figures other than the first and the last: its number, the number of steps of the node when it
 * forwarded the question, and the counters of its leaves' links when they answered. The nodes of a row need not have
 * answered at the same time.
 *
 * A row has slot:k:version for a leaf, with the version of its last step, which its parent may not have heard of.
 *
 *     path  heard  slot:version:k ...
 *     path  anew  life  steps          path  over  life
 *     path  +slot  line
 *
 * are children heard before a row, without a step; a node that was readmitted after this number of steps, or after the
 * end; and the copy of a line of a child, which is read if the child has lost the line with its state folder.
 *
 * `slot:-` is a child that a row or the end was made without, with all nodes below it. The first row has a line only if
 * there is such a child, or one that was readmitted before.
 *
 *     path  aside  slot:- ...
 *
 * before the end are children that were set aside as liars. And
 *
 *     path  models  slot:- ...
 *
 * are children whose models are missing, though the end has their figures. In the output these, and those that the end
 * was made without, have the model of the node above.
 */
#ifndef HFSAD_RUN_REPLAY_H
#define HFSAD_RUN_REPLAY_H

#include "run/handle.h"

/* The callback for the rows between the first and the last, in their order; it does not set seconds. */
typedef struct {
    void *context;
    void (*row)(void *context, const hfsad_figures *figures);
} replay_rows;

/* Plays all of it on a simulation that has not begun but was measured. path is for messages; *met: the tolerances were
 * met on the way. Refused (HFSAD_ERROR_INPUT): a record that is torn or of another tree; s is then not to be used. */
hfsad_status sim_replay(sim *s, const char *text, size_t size, const char *path, const replay_rows *rows, bool *met,
                        hfsad_error *err);
/* The same from a file, with the first row; refused for baselines. A record of lock step has only the nodes that were
 * readmitted (anew.h): they are noted, *all is false, and the run is still to be trained. */
hfsad_status run_replay(hfsad_run *r, const char *path, const replay_rows *rows, bool *all, bool *met,
                        hfsad_error *err);

/* Notes in the data the clients that were not there at the set-up, by lines `cloud without <path>` of the record, and
 * those that came to the list later, by lines `cloud later <path>`. */
hfsad_status replay_find_absent(dataset *d, const char *path, hfsad_error *err);

#endif
