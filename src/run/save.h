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
/* false: not a state of a tree and a plan of this shape; s is then unchanged. */
bool sim_unpack(sim *s, word_reader *r);
/* Sets the iteration to 0 and keeps all links, their counters k and the solvers' numbers. */
void sim_rewind(sim *s);
/* Resets the stop rule after its tolerances have changed. */
void sim_forget_tolerances(sim *s);

/* The same state from the nodes of a federation, into a sim without iterations: first the shares of all nodes, with the
 * children of a node in the order of their numbers; then, after the root's share, the root's own state. */
typedef struct {
    uint64_t iteration, bytes_up, bytes_down;
    stop_state stop;
    const guard_state *guard; /* calm NULL: the safeguard was off */
} sim_ledger;
void sim_put_share(sim *s, size_t node, const run_share *share);
void sim_put_ledger(sim *s, const sim_ledger *ledger);
/* After iterations without the safeguard: starts the safeguard at the current model. */
void sim_rest_guard(sim *s);

/* The iteration of the state, and whether its last measurement can be repeated completely, including the dual residual.
 */
uint64_t sim_iteration(const sim *s);
bool sim_dual_known(const sim *s);

/* Stores the fingerprints of data and truth in r. */
void run_take_prints(hfsad_run *r);

#endif
