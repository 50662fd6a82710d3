/* The nodes of a federation, watched in a thread of their own and entered into the history. */
#ifndef HFSAD_CLI_OBSERVE_H
#define HFSAD_CLI_OBSERVE_H

#include "dash/recorder.h"
#include "hfsad/net.h"

typedef struct observation observation;

/* NULL: it cannot be done, and an event of the history says why; the run does not need it. */
observation *observe_begin(recorder *r, const hfsad_spec *spec, const hfsad_observer_settings *settings);
/* Enters the last states and ends the thread. NULL is allowed. */
void observe_end(observation *o);

#endif
