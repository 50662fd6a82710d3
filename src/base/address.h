/* host:port at which a server of this process listens. Messages: "<what> cannot be served at '<address>': <reason>". */
#ifndef HFSAD_BASE_ADDRESS_H
#define HFSAD_BASE_ADDRESS_H

#include "hfsad/hfsad.h"

#include <netdb.h>

enum { ADDRESS_HOST_SIZE = 256 };

/* Resolves host:port or [host]:port; *found is for freeaddrinfo. host: without brackets. example: of the message. */
hfsad_status address_find(const char *what, const char *address, const char *example, char host[ADDRESS_HOST_SIZE],
                          struct addrinfo **found, hfsad_error *err);
/* *fd: a socket that listens there, closed on exec, without blocking; -1 on failure. most: connections that wait. */
hfsad_status address_listen(const char *what, const char *address, const struct addrinfo *at, int most, int *fd,
                            hfsad_error *err);
/* The port of a socket; 0: it has none. */
unsigned address_port(int fd);
/* The message with another reason. */
hfsad_status address_refuse(const char *what, const char *address, const char *why, hfsad_error *err);

#endif
