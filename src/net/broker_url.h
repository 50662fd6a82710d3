/* Where a broker is: mqtt://host[:port], mqtts://host[:port], unix:///path/to/socket; the nodes of a clustered one with
 * commas between them. */
#ifndef HFSAD_NET_BROKER_URL_H
#define HFSAD_NET_BROKER_URL_H

#include "hfsad/hfsad.h"

#include <stdbool.h>
#include <stddef.h>

enum { BROKER_NODES_MAX = 32 };

typedef struct {
    char host[256]; /* a name, an address without brackets, or the path of a socket */
    int port;       /* 0: a socket */
    bool tls;
} broker_url;

/* HFSAD_ERROR_INPUT names the url and what would be right. */
hfsad_status broker_url_read(broker_url *b, const char *url, hfsad_error *err);

/* A clustered broker. All addresses have the same scheme. */
typedef struct {
    broker_url list[BROKER_NODES_MAX];
    size_t count; /* at least 1 */
    bool tls;
} broker_urls;

hfsad_status broker_urls_read(broker_urls *b, const char *text, hfsad_error *err);

#endif
