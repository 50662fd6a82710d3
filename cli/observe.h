/* Watches the nodes of a federation in a separate thread and enters them into the history. */
#ifndef HFSAD_CLI_OBSERVE_H
#define HFSAD_CLI_OBSERVE_H

#include "dash/recorder.h"
#include "hfsad/net.h"

typedef struct observation observation;

/* NULL: watching is not possible, and an event of the history states why; the run does not need it. */
observation *observe_begin(recorder *r, const hfsad_spec *spec, const hfsad_observer_settings *settings);
/* Enters the last states and ends the thread. o may be NULL. */
void observe_end(observation *o);

#endif
