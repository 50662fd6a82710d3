/*
 * Metrics of a process of a federation for Prometheus: its counters as text (version 0.0.4 of the format), over HTTP.
 *
 * The server has its own thread; the counters belong to the loop of the process. A request waits until the loop has
 * written a text for it, so that no counter needs a lock and texts are written only on request.
 */
#ifndef HFSAD_NET_METRICS_H
#define HFSAD_NET_METRICS_H

#include "net/host.h"

#include <stdio.h>

typedef struct metrics metrics;

/* address: host:port or [host]:port; with port 0 the system chooses one. HFSAD_ERROR_INPUT: not an address, or it
 * cannot be had. */
hfsad_status metrics_create(metrics **m, const char *address, hfsad_error *err);
/* NULL is allowed. */
void metrics_free(metrics *m);
unsigned metrics_port(const metrics *m);

/* Call it in every turn: on a request it writes the text by metrics_write and hands it over. NULL is allowed. */
void metrics_turn(metrics *m, const host *h);

/* The text. */
void metrics_write(FILE *f, const host *h);

#endif
