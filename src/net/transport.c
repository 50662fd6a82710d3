/* The front of all transports; see transport.h. */
#include "net/transport.h"

void transport_free(transport *t)
{
    if (t)
        t->ops->free(t);
}

hfsad_status transport_join(transport *t, const transport_member *member, size_t *number, hfsad_error *err)
{
    return t->ops->join(t, member, number, err);
}

void transport_leave(transport *t, size_t member, bool with_will)
{
    t->ops->leave(t, member, with_will);
}

hfsad_status transport_send(transport *t, size_t member, const char *topic, const void *bytes, size_t size, bool retain,
                            hfsad_error *err)
{
    return t->ops->send(t, member, topic, bytes, size, retain, err);
}

hfsad_status transport_wait(transport *t, int64_t timeout_ms, hfsad_error *err)
{
    return t->ops->wait(t, timeout_ms, err);
}

static size_t sockets_of(transport *t, struct pollfd *to, size_t room)
{
    return t->ops->sockets ? t->ops->sockets(t, to, room) : 0;
}

hfsad_status transport_wait_both(transport *a, transport *b, int64_t timeout_ms, hfsad_error *err)
{
    enum { ROOM = 16, SLICE_MS = 5, NAP_MS = 100 }; /* keepalives and new connections have their own times */
    struct pollfd fds[2 * ROOM];
    const size_t of_a = sockets_of(a, fds, ROOM), of_b = of_a ? sockets_of(b, fds + of_a, ROOM) : 0;
    const int most = of_b ? NAP_MS : SLICE_MS;
    poll(fds, of_b ? of_a + of_b : 0, timeout_ms < 0 || timeout_ms > most ? most : (int)timeout_ms);
    const hfsad_status status = transport_wait(a, 0, err);
    return status ? status : transport_wait(b, 0, err);
}
