/* Addresses host:port at which a server of this process listens. Messages have the form "<what> cannot be served at
 * '<address>': <reason>". */
#ifndef HFSAD_BASE_ADDRESS_H
#define HFSAD_BASE_ADDRESS_H

#include "hfsad/hfsad.h"

#include <netdb.h>

enum { ADDRESS_HOST_SIZE = 256 };

/* Resolves host:port or [host]:port. The caller frees *found with freeaddrinfo. host: without brackets. example: for
 * the message. */
hfsad_status address_find(const char *what, const char *address, const char *example, char host[ADDRESS_HOST_SIZE],
                          struct addrinfo **found, hfsad_error *err);
/* *fd: a listening socket, non-blocking and closed on exec; -1 on failure. most: limit on waiting connections. */
hfsad_status address_listen(const char *what, const char *address, const struct addrinfo *at, int most, int *fd,
                            hfsad_error *err);
/* The port of a socket; 0: none. */
unsigned address_port(int fd);
/* The message with another reason. */
hfsad_status address_refuse(const char *what, const char *address, const char *why, hfsad_error *err);

#endif
