/* Events of a process of a federation: its log, and nodes of other runs. */
#define _POSIX_C_SOURCE 200809L
#include "net/member.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void member_log(const hfsad_member *m, hfsad_log_level level, const char *path, const char *event, const char *text,
                const char *topic)
{
    if (m->s.log)
        m->s.log(m->s.context, &(hfsad_log){level, path, event, text, topic});
}

static hfsad_log_level level_of(host_event_kind kind)
{
    switch (kind) {
    case HOST_STORE_FAILED:
    case HOST_REFUSED:
    case HOST_LIST_REFUSED:
    case HOST_COHORT_REFUSED:
        return HFSAD_LOG_ERROR;
    case HOST_MESSAGE_REFUSED:
    case HOST_STATE_LOST:
    case HOST_CHILD_BEHIND:
    case HOST_CHILD_ABSENT:
    case HOST_CHILD_ASIDE:
    case HOST_DISCONNECTED:
        return HFSAD_LOG_WARNING;
    case HOST_ROW:
    case HOST_RECORD:
        return HFSAD_LOG_DEBUG;
    default:
        return HFSAD_LOG_INFO;
    }
}

/* Refused messages must not fill the disk, and one kind must not hide another: a limited number of lines per minute for
 * each reason. The status counts all of them. */
static bool is_flood(hfsad_member *m, const char *why)
{
    enum { LINES = 10 };
    static const double window = 60;
    const double now = clock_seconds();
    flood *f = &m->floods[rng_stream(why) % FLOODS];
    if (now > f->since + window)
        *f = (flood){.since = now};
    if (++f->lines == LINES + 1)
        member_log(m, HFSAD_LOG_WARNING, "", "further lines of this kind are not logged for a minute", why, "");
    return f->lines > LINES;
}

/* To a parent with another spec. */
static void introduce(hfsad_member *m)
{
    hfsad_error err;
    const message said = federation_introduce(m->f);
    if (said.values)
        (void)host_say(m->h, 0, &said, &err);
    free(said.values);
}

void member_on_event(void *context, const host_event *event)
{
    hfsad_member *m = context;
    hfsad_log_level level = level_of(event->kind);
    if (event->kind == HOST_REFUSED && !m->is_wrong) {
        error_set(&m->wrong, HFSAD_ERROR_INPUT, "%.200s: %.350s", event->node, event->text);
        m->is_wrong = true;
        return;
    }
    if (event->kind == HOST_DISMISSED) { /* one line for all nodes of the process */
        if (!m->is_wrong)
            error_set(&m->wrong, HFSAD_ERROR_INPUT, "%.200s: the cloud has ended the run: %.350s", event->node,
                      event->text);
        m->is_wrong = m->is_dismissed = true;
        return;
    }
    /* many nodes of one process lose the broker together, and most often it is back at once */
    if (event->kind == HOST_DISCONNECTED) {
        level = HFSAD_LOG_DEBUG;
        m->is_up = false;
        m->strangers[0] = m->strangers[1] = 0;
        const bool first = m->down_since == 0;
        if (first)
            m->down_since = clock_seconds();
        if (first || strcmp(event->node, host_path(m->h, 0)) == 0) { /* one may know more after some attempts */
            m->down_told = m->down_told && strcmp(m->down_text, event->text) == 0;
            snprintf(m->down_text, sizeof m->down_text, "%s", event->text);
        }
    }
    if (event->kind == HOST_CONNECTED) {
        level = m->down_told ? HFSAD_LOG_INFO : HFSAD_LOG_DEBUG;
        m->down_told = false;
        m->down_since = 0;
        m->is_up = true;
        if (m->strangers[0] || m->strangers[1])
            introduce(m);
    }
    const bool may_flood =
        event->kind == HOST_MESSAGE_REFUSED || event->kind == HOST_CHILD_ABSENT || event->kind == HOST_CHILD_BACK;
    if (may_flood && is_flood(m, event->text))
        level = HFSAD_LOG_DEBUG;
    member_log(m, level, event->node, host_event_text(event->kind), event->text, event->from);
    if (event->kind == HOST_ROW && m->cloud.driver)
        cloud_take_row(m->cloud.driver, event->figures);
}

void member_on_finish_row(void *context, const node *root, hfsad_figures *row)
{
    hfsad_member *m = context;
    if (m->cloud.driver)
        cloud_finish_row(m->cloud.driver, root, row);
}

/* A message retained from an earlier run arrives once per connection and topic. A live parent sends more, at once when
 * we identify ourselves. A child whose spec differs from that of its parent ends, and the parent logs which child it
 * was. */
enum { REMEMBERED = 1 };
/* A node that receives messages of its parent ignores another process with the parent's name, which will detect that it
 * is the second. */
enum { FAMILIAR_MS = 10000 };

static void meet_parent(hfsad_member *m, const char *path, const char *from, const message *said, const char *why)
{
    unsigned *heard = &m->strangers[said->kind == MESSAGE_DOWN];
    if (why)
        snprintf(m->reason, sizeof m->reason, "%s", why);
    if (!m->is_up) { /* retained messages arrive while we connect, when nothing can be sent yet */
        *heard = 1;
        return;
    }
    if (++*heard <= REMEMBERED) {
        introduce(m);
        return;
    }
    if (m->is_wrong)
        return;
    m->is_wrong = true;
    if (m->reason[0])
        error_set(&m->wrong, HFSAD_ERROR_INPUT,
                  "%.100s: %.100s has another spec or list of nodes; they differ in: %.250s; use the same everywhere",
                  path, from, m->reason);
    else
        error_set(
            &m->wrong, HFSAD_ERROR_INPUT,
            "%.100s: %.100s has another spec or list of nodes; its log lists the differences; use the same everywhere",
            path, from);
}

/* One line for each child and error, however often it reconnects. */
static void meet_child(hfsad_member *m, const char *from, const char *why)
{
    const uint64_t which = rng_stream(from) ^ rng_stream(why);
    if (which != m->last_stranger)
        member_log(m, HFSAD_LOG_WARNING, from, "has another spec or list of nodes; they differ in", why, "");
    m->last_stranger = which;
}

bool member_on_other_run(void *context, const char *path, const char *from, const message *said)
{
    hfsad_member *m = context;
    char why[500];
    const bool explained = federation_explain(m->f, said, why, sizeof why);
    if (said->kind == MESSAGE_ANSWER && explained)
        meet_child(m, from, why);
    if (said->kind != MESSAGE_ASK && said->kind != MESSAGE_DOWN)
        return said->kind == MESSAGE_ANSWER && explained;
    if (host_get_links(m->h, 0).parent_ms < FAMILIAR_MS)
        return false;
    if (strcmp(path, host_path(m->h, 0)) == 0) /* one of a process's nodes speaks for all */
        meet_parent(m, path, from, said, explained ? why : NULL);
    return true;
}
