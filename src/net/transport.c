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
