/* What a client was asked and what it answered, one line a question, for the owner of its rows (`hfsad client
 * --audit`). */
#define _POSIX_C_SOURCE 200809L
#include "net/member.h"

#include "base/error.h"
#include "net/catalogue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

hfsad_status member_open_audit(hfsad_member *m, hfsad_error *err)
{
    const char *name = m->s.audit;
    if (!name)
        return HFSAD_OK;
    if (m->s.role != HFSAD_ROLE_CLIENT)
        return error_set(err, HFSAD_ERROR_INPUT, "only clients answer questions about rows: an audit is for clients");
    const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    m->audit = fd < 0 ? NULL : fdopen(fd, "a");
    if (m->audit)
        return HFSAD_OK;
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    return error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be written: %s", name, strerror(reason));
}

/* The question in words; *answer: what an answer to it is made of. */
static void describe(const message *m, const char *from, char *text, size_t size, char *answer, size_t answer_size)
{
    const unsigned long long round = m->round;
    const catalogue_row *row;
    snprintf(answer, answer_size, "answered");
    switch (m->kind == MESSAGE_DOWN ? 0 : m->phase & 255) {
    case 0:
        snprintf(text, size, "round %llu: steps on the model of %s, %zu numbers", round, from, m->count);
        snprintf(answer, answer_size, "answers with its u, %zu numbers, if it takes part", m->count);
        break;
    case NODE_PHASE_SETUP:
        snprintf(text, size, "question %llu.%llu: %s", round >> INQUIRY_ATTEMPT_BIT,
                 round & ((1ULL << INQUIRY_ATTEMPT_BIT) - 1),
                 m->count
                     ? catalogue_describe(m->values[0] >= 0 && m->values[0] < INQUIRY_KINDS ? (int)m->values[0] : -1)
                     : "empty");
        if (m->count > 2)
            snprintf(answer, answer_size, "answered with %.0f numbers", m->values[1] + m->values[2]);
        break;
    default:
        row = catalogue_of_phase(m->phase & 255);
        snprintf(text, size, "round %llu: %s", round, row ? row->text : "unknown question");
    }
}

void member_on_audit(void *context, const char *path, const char *from, const message *said, const char *refused)
{
    const hfsad_member *m = context;
    char when[32] = "", text[400], answer[100];
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    describe(said, from, text, sizeof text, answer, sizeof answer);
    fprintf(m->audit, "%s %s %s %s: %s%s\n", when, path, from, text, refused ? "refused: " : "",
            refused ? refused : answer);
    if (fflush(m->audit) != 0)
        member_log(m, HFSAD_LOG_ERROR, path, "the audit cannot be written", strerror(errno), "");
}
