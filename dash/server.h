/*
 * The dashboard: pages and a read-only interface over HTTP on the history file, from a process of its own.
 *
 * Only GET and HEAD; loopback unless there are a certificate and a token; connections, their memory and the rows of an
 * answer have limits. A page learns of changes by server-sent events and then requests the new rows.
 */
#ifndef HFSAD_DASH_SERVER_H
#define HFSAD_DASH_SERVER_H

#include "dash/history.h"

typedef struct server server;

typedef struct {
    const char *address; /* host:port or [host]:port; port 0: the system chooses one */
    const char *keys;    /* folder with dash.crt, dash.key and dash.token; NULL: loopback only, no token */
    int socket;          /* a socket that already listens; -1: none */
} server_settings;

/* Opens the port. HFSAD_ERROR_INPUT: invalid address, port in use, or an address beyond this machine without keys. */
hfsad_status server_create(server **s, const server_settings *settings, hfsad_error *err);
/* s may be NULL. */
void server_free(server *s);

int server_socket(const server *s);
enum { SERVER_URL_SIZE = 400 };
void server_url(const server *s, char url[SERVER_URL_SIZE]);

/* Serves the history until `stopped` returns true (NULL: for ever). run: the first page; 0: the list. */
hfsad_status server_run(server *s, const char *history, int64_t run, bool (*stopped)(void), hfsad_error *err);

#endif
