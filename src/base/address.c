/* See address.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "base/address.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_SIZE = 8 };

hfsad_status address_refuse(const char *what, const char *address, const char *why, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be served at '%.200s': %s", what, address, why);
}

/* Splits at the last colon: the text before it without brackets, and the text after it. */
static bool split(const char *address, char host[ADDRESS_HOST_SIZE], char port[PORT_SIZE])
{
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;
    if (length >= 2 && address[0] == '[' && colon[-1] == ']') {
        address++;
        length -= 2;
    } else if (memchr(address, ':', length)) {
        return false;
    }
    if (length == 0 || length >= ADDRESS_HOST_SIZE || strlen(colon + 1) > 5 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    memcpy(host, address, length);
    host[length] = 0;
    strcpy(port, colon + 1);
    return *port && strtol(port, NULL, 10) <= 65535;
}

hfsad_status address_find(const char *what, const char *address, const char *example, char host[ADDRESS_HOST_SIZE],
                          struct addrinfo **found, hfsad_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[PORT_SIZE];
    if (!split(address, host, port))
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be served at '%.200s': give host:port, such as %s", what,
                         address, example);
    const int code = getaddrinfo(host, port, &hints, found);
    return code ? address_refuse(what, address, gai_strerror(code), err) : HFSAD_OK;
}

hfsad_status address_listen(const char *what, const char *address, const struct addrinfo *at, int most, int *fd,
                            hfsad_error *err)
{
    const int on = 1;
    *fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0) {
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(*fd, at->ai_addr, at->ai_addrlen) == 0 && listen(*fd, most) == 0)
            return HFSAD_OK;
    }
    const int why = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return address_refuse(what, address, why == EADDRINUSE ? "the port is in use; give another" : strerror(why), err);
}

unsigned address_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    char port[PORT_SIZE];
    getsockname(fd, (struct sockaddr *)&at, &size);
    if (getnameinfo((struct sockaddr *)&at, size, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0)
        return 0;
    return (unsigned)strtoul(port, NULL, 10);
}
