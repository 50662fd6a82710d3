#include "progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double quiet_seconds = 1, redraw_seconds = 0.1, longest_interval = 10, rate_seconds = 5;

static bool draws_on_terminal(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

const char *progress_log_start(void)
{
    return draws_on_terminal() ? "\r\033[K" : "";
}

void progress_start(progress *p, const char *unit, uint64_t done, uint64_t total, bool quiet)
{
    const double now = clock_seconds();
    *p = (progress){
        .quiet = quiet,
        .terminal = draws_on_terminal(),
        .unit = unit,
        .total = total,
        .started = now,
        .next = now + quiet_seconds,
        .interval = quiet_seconds,
        .mark = {{now, done}, {now, done}},
    };
}

bool progress_due(const progress *p)
{
    return !p->quiet && clock_seconds() >= p->next;
}

/* "0.4 s", "35 s", "4:05", "3:04:05". */
static void time_text(char *text, size_t size, double seconds)
{
    if (!(seconds < 1e9)) {
        snprintf(text, size, "long");
    } else if (seconds < 60) {
        snprintf(text, size, seconds < 1 ? "%.1f s" : "%.0f s", seconds);
    } else {
        const long s = (long)(seconds + 0.5);
        if (s < 3600)
            snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
        else
            snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    }
}

static int terminal_width(void)
{
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        return window.ws_col;
    return 80;
}

/* One line, with a bar if share is not below 0. It ends before the last column, because some terminals would wrap. If
 * the line is too long, the bar is shortened first, then the details at the end are cut. */
static void draw_line(const char *head, const char *tail, double share)
{
    char line[400], bar[40];
    const int width = terminal_width() - 1;
    int room = width - (int)strlen(head) - (int)strlen(tail) - 5;
    room = room < 30 ? room : 30;
    bar[0] = 0;
    if (room >= 5 && share >= 0) {
        const int full = (int)(share * room);
        memset(bar, ' ', sizeof bar);
        bar[1] = '[';
        memset(bar + 2, '=', (size_t)full);
        bar[2 + room] = ']';
        bar[3 + room] = 0;
    }
    snprintf(line, sizeof line, "%s%s  %s", head, bar, tail);
    fprintf(stderr, "\r%.*s\033[K", width, line);
    fflush(stderr);
}

static void line_text(const progress *p, uint64_t done, double rate, const char *detail, char head[100], char tail[200])
{
    char left[40];
    const double share = p->total ? (double)done / (double)p->total : 1;
    if (!p->total) {
        snprintf(head, 100, "%s %" PRIu64, p->unit, done);
        snprintf(tail, 200, rate < 100 ? "%.3g/s  %s" : "%.0f/s  %s", rate, detail);
        return;
    }
    time_text(left, sizeof left, rate > 0 ? (double)(p->total - done) / rate : INFINITY);
    snprintf(head, 100, "%s %" PRIu64 "/%" PRIu64 " %3.0f%%", p->unit, done, p->total, floor(100 * share));
    snprintf(tail, 200, rate < 100 ? "%.3g/s  %s left  %s" : "%.0f/s  %s left  %s", rate, left, detail);
}

void progress_draw(progress *p, uint64_t done, const char *detail)
{
    if (!progress_due(p))
        return;
    const double now = clock_seconds(), elapsed = now - p->mark[0].at;
    const double rate = elapsed > 0 ? (double)(done - p->mark[0].done) / elapsed : 0;
    if (now - p->mark[1].at >= rate_seconds) {
        p->mark[0] = p->mark[1];
        p->mark[1].at = now;
        p->mark[1].done = done;
    }
    char head[100], tail[200];
    line_text(p, done, rate, detail, head, tail);
    if (p->terminal) {
        draw_line(head, tail, p->total ? (double)done / (double)p->total : -1);
        p->drawn = true;
        p->next = now + redraw_seconds;
        return;
    }
    fprintf(stderr, "%s  %s\n", head, tail);
    p->next = now + p->interval;
    p->interval = 2 * p->interval < longest_interval ? 2 * p->interval : longest_interval;
}

void progress_end(progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->drawn = false;
    p->quiet = true;
}
