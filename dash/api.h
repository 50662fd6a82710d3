/* The JSON answers to requests of the pages. */
#ifndef HFSAD_DASH_API_H
#define HFSAD_DASH_API_H

#include "dash/history.h"

/* The value of an argument of the address; NULL: not given. */
typedef const char *(*api_argument)(void *request, const char *name);

/* path: "/runs", "/run/12", "/trace/12"...; run: the run that the dashboard was started for; 0: none. *status: HTTP
 * status. Never NULL: an error is an object with `error`. */
cJSON *api_answer(history *h, const char *path, api_argument argument, void *request, int64_t run, unsigned *status);

#endif
