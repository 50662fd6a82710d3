/* Addresses of brokers; see broker_url.h. */
#include "net/broker_url.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hfsad_status refuse_url(hfsad_error *err, const char *url, const char *why)
{
    return error_set(err, HFSAD_ERROR_INPUT,
                     "broker '%.200s': %s; give mqtt://host:port, mqtts://host:port or unix:///path", url, why);
}

static const char *after(const char *text, const char *head)
{
    const size_t n = strlen(head);
    return strncmp(text, head, n) == 0 ? text + n : NULL;
}

static bool read_port(const char *text, int *port)
{
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits])
        return false;
    *port = atoi(text);
    return *port > 0 && *port < 65536;
}

hfsad_status broker_url_read(broker_url *b, const char *url, hfsad_error *err)
{
    const char *plain = after(url, "mqtt://"), *secure = after(url, "mqtts://"), *path = after(url, "unix://");
    const char *host = plain ? plain : secure;
    *b = (broker_url){.tls = secure != NULL, .port = secure ? 8883 : 1883};
    if (path) {
        b->port = 0;
        if (*path != '/' || strlen(path) > 107)
            return refuse_url(err, url, "the path of a socket begins with / and has at most 107 bytes");
        snprintf(b->host, sizeof b->host, "%s", path);
        return HFSAD_OK;
    }
    if (!host)
        return refuse_url(err, url, "it is not the address of a broker");
    const bool bracket = *host == '[';
    host += bracket;
    const size_t length = strcspn(host, bracket ? "]" : ":/");
    const char *end = host + length + (bracket && host[length] == ']');
    if (length == 0 || length >= sizeof b->host || (bracket && host[length] != ']'))
        return refuse_url(err, url, "it has no host");
    snprintf(b->host, sizeof b->host, "%.*s", (int)length, host);
    if (*end == ':') {
        char digits[8];
        snprintf(digits, sizeof digits, "%s", end + 1);
        char *slash = strchr(digits, '/');
        if (slash && !slash[1])
            *slash = 0;
        if (!read_port(digits, &b->port))
            return refuse_url(err, url, "a port is a number from 1 to 65535");
    } else if (*end && strcmp(end, "/") != 0) {
        return refuse_url(err, url, "nothing may follow host and port");
    }
    return HFSAD_OK;
}

/* A path may have commas: a socket is alone. */
hfsad_status broker_urls_read(broker_urls *b, const char *text, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    b->count = 0;
    for (const char *from = text; from && !status;) {
        char url[300];
        const char *end = after(text, "unix://") ? NULL : strchr(from, ',');
        const size_t length = end ? (size_t)(end - from) : strlen(from);
        if (b->count == BROKER_NODES_MAX)
            return refuse_url(err, text, "more addresses than a cluster may have here");
        if (length >= sizeof url)
            return refuse_url(err, text, "an address is too long");
        snprintf(url, sizeof url, "%.*s", (int)length, from);
        broker_url *at = &b->list[b->count++];
        status = broker_url_read(at, url, err);
        if (!status && (at->tls != b->list[0].tls || !at->port != !b->list[0].port))
            return refuse_url(err, text, "all addresses of a cluster have the same scheme");
        from = end ? end + 1 : NULL;
    }
    b->tls = b->list[0].tls;
    return status;
}
