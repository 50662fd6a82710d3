/* The state of a run as words, and fingerprints of its inputs: the simulator's part of a checkpoint. */
#ifndef HFSAD_RUN_SAVE_H
#define HFSAD_RUN_SAVE_H

#include "base/words.h"
#include "plan/guard.h"
#include "plan/share.h"
#include "plan/tally.h"
#include "run/handle.h"

/* Everything that the following iterations and the next measurement depend on besides data and plan. */
void sim_pack(word_writer *w, sim *s);
/* false: no state of a tree and a plan of this shape; s is then as it was. */
bool sim_unpack(sim *s, word_reader *r);
/* Back to iteration 0 with all links, their counters k included, and the solvers' numbers as they are. */
void sim_rewind(sim *s);
/* Resets the time from which the tolerances of the stop rule are met, because they have changed. */
void sim_forget_tolerances(sim *s);

/* The same state from nodes that were trained elsewhere, in a sim that has not iterated: the shares of all nodes,
 * those of a node's children in the order of their numbers; and, once the root's is there, what only the root knows. */
typedef struct {
    uint64_t iteration, bytes_up, bytes_down;
    stop_state stop;
    const guard_state *guard; /* calm NULL: nothing was watched */
} sim_ledger;
void sim_put_share(sim *s, size_t node, const run_share *share);
void sim_put_ledger(sim *s, const sim_ledger *ledger);
/* After iterations that nothing watched, the safeguard begins at the model that they have led to. */
void sim_rest_guard(sim *s);

/* The iteration of the state, and whether its last measurement can be repeated completely, including the dual residual.
 */
uint64_t sim_iteration(const sim *s);
bool sim_dual_known(const sim *s);

/* Puts the fingerprints of data and truth into r. */
void run_take_prints(hfsad_run *r);

#endif
