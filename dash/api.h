/* What pages ask for, as JSON. */
#ifndef HFSAD_DASH_API_H
#define HFSAD_DASH_API_H

#include "dash/history.h"

/* An argument of the address; NULL: not given. */
typedef const char *(*api_argument)(void *request, const char *name);

/* path: "/runs", "/run/12", "/trace/12"...; run: the one that the dashboard was started for; 0: none. *status: of
 * HTTP. Never NULL: an error is an object with `error`. */
cJSON *api_answer(history *h, const char *path, api_argument argument, void *request, int64_t run, unsigned *status);

#endif
