/* Topics; see topic.h. */
#include "net/topic.h"

#include <stdio.h>
#include <string.h>

#define ROOT "hfsad"
#define CLOUD "cloud"

const char *topic_name(topic_kind topic)
{
#define TOPIC_NAME(name, text, kind) text,
    static const char *const names[] = {TOPIC_LIST(TOPIC_NAME)};
    return topic < TOPICS ? names[topic] : "?";
}

message_kind topic_message_kind(topic_kind topic)
{
#define TOPIC_KIND(name, text, kind) MESSAGE_##kind,
    static const message_kind kinds[] = {TOPIC_LIST(TOPIC_KIND)};
    return topic < TOPICS ? kinds[topic] : MESSAGE_KINDS;
}

bool topic_to_children(topic_kind topic)
{
    return topic <= TOPIC_ANSWER_ACK;
}

topic_kind topic_of(const message *m, bool to_parent)
{
    if (m->kind == MESSAGE_ACK)
        return to_parent ? TOPIC_DOWN_ACK : m->k == 0 ? TOPIC_UP_ACK : TOPIC_ANSWER_ACK;
    for (int i = 0; i < TOPICS; i++)
        if (topic_message_kind((topic_kind)i) == m->kind)
            return (topic_kind)i;
    return TOPICS;
}

/* Bytes of the UTF-8 character at p; 0 if MQTT does not allow it. */
static size_t character_at(const unsigned char *p)
{
    const size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (p[0] < 0x20 || p[0] == 0x7f || p[0] > 0xf4 || (p[0] >= 0x80 && p[0] < 0xc2))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f) ||
        (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xc2 && p[1] < 0xa0))
        return 0; /* longer than need be, beyond the last, a surrogate, a control character */
    return n;
}

static bool text_valid(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        const size_t n = character_at(p);
        if (n == 0 || *p == '+' || *p == '#')
            return false;
        p += n;
    }
    return true;
}

bool topic_run_valid(const char *run)
{
    return *run && strlen(run) < TOPIC_RUN_MAX && !strchr(run, '/') && text_valid(run);
}

bool topic_path_valid(const char *path)
{
    const size_t length = strlen(path), around = sizeof ROOT + TOPIC_RUN_MAX + sizeof "/answer-ack";
    return length > 0 && length + around < TOPIC_MAX && path[0] != '/' && path[length - 1] != '/' &&
           !strstr(path, "//") && text_valid(path);
}

bool topic_write(char topic[TOPIC_MAX], const char *run, const char *path, topic_kind kind)
{
    const char *const levels[] = {ROOT, run, path, topic_name(kind)};
    size_t at = 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const size_t length = strlen(levels[i]);
        if (length >= TOPIC_MAX - at)
            return false;
        memcpy(topic + at, levels[i], length);
        at += length;
        topic[at++] = '/'; /* at most TOPIC_MAX now */
    }
    topic[at - 1] = 0;
    return true;
}

bool topic_read(const char *topic, const char *run, char path[TOPIC_MAX], topic_kind *kind)
{
#define TOPIC_LENGTH(name, text, kind) sizeof text - 1,
    static const unsigned char lengths[] = {TOPIC_LIST(TOPIC_LENGTH)};
    const size_t named = strlen(run), root = sizeof ROOT, length = strlen(topic), before = root + named + 1;
    if (length >= TOPIC_MAX || length <= before || memcmp(topic, ROOT "/", root) != 0 ||
        memcmp(topic + root, run, named) != 0 || topic[before - 1] != '/')
        return false;
    size_t last = length; /* behind the last slash */
    while (topic[last - 1] != '/')
        last--;
    if (last <= before + 1)
        return false;
    const size_t of_path = last - 1 - before, of_name = length - last;
    for (int i = 0; i < TOPICS; i++) {
        if (of_name != lengths[i] || memcmp(topic + last, topic_name((topic_kind)i), of_name) != 0)
            continue;
        memcpy(path, topic + before, of_path);
        path[of_path] = 0;
        *kind = (topic_kind)i;
        return true;
    }
    return false;
}

bool topic_parent(const char *path, char parent[TOPIC_MAX])
{
    const char *last = strrchr(path, '/');
    if (!strcmp(path, CLOUD))
        return false;
    if (!last)
        memcpy(parent, CLOUD, sizeof CLOUD);
    else
        snprintf(parent, TOPIC_MAX, "%.*s", (int)(last - path), path);
    return true;
}

bool topic_matches(const char *filter, const char *topic)
{
    for (;;) {
        if (!strcmp(filter, "#"))
            return true;
        const size_t f = strcspn(filter, "/"), t = strcspn(topic, "/");
        const bool any = f == 1 && *filter == '+';
        if (!any && (f != t || strncmp(filter, topic, f) != 0))
            return false;
        filter += f;
        topic += t;
        if (!*filter || !*topic) /* "a/#" is also for "a" */
            return *filter == *topic || (!*topic && !strcmp(filter, "/#"));
        filter++;
        topic++;
    }
}
