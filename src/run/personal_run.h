/* The groups of a run (personal/grow.h), found after its training. */
#ifndef HFSAD_RUN_PERSONAL_RUN_H
#define HFSAD_RUN_PERSONAL_RUN_H

#include "run/handle.h"

/* proceed: false gives up. The result is in run->personal; for lack of a reason a failure leaves none. */
hfsad_status run_find_groups(hfsad_run *run, bool (*proceed)(void *context), void *context, hfsad_error *err);
/* The group of a leaf: the group of its largest weight. 0 if there is one group, or the weights are unknown. */
uint32_t run_group_of(const hfsad_run *run, size_t leaf);
/* Whether there is one group and the cloud's model, which has no minimum, depends on when the run has stopped: the
 * clients then have the group's, which a ridge holds. */
bool run_is_held(const hfsad_run *run);

#endif
