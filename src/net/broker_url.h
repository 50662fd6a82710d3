/* Where a broker is: mqtt://host[:port], mqtts://host[:port], unix:///path/to/socket. */
#ifndef HFSAD_NET_BROKER_URL_H
#define HFSAD_NET_BROKER_URL_H

#include "hfsad/hfsad.h"

#include <stdbool.h>

typedef struct {
    char host[256]; /* a name, an address without brackets, or the path of a socket */
    int port;       /* 0: a socket */
    bool tls;
} broker_url;

/* HFSAD_ERROR_INPUT names the url and what would be right. */
hfsad_status broker_url_read(broker_url *b, const char *url, hfsad_error *err);

#endif
