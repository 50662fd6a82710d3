/* The list of statuses, error messages, and the distance between names that finds the nearest known name. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *hfsad_version(void)
{
#define TEXT_OF(x) #x
#define VERSION_TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
    return VERSION_TEXT(HFSAD_VERSION_MAJOR, HFSAD_VERSION_MINOR, HFSAD_VERSION_PATCH);
}

const char *hfsad_status_name(hfsad_status status)
{
    switch (status) {
#define STATUS_NAME(name, text)                                                                                        \
    case HFSAD_##name:                                                                                                 \
        return #name;
        HFSAD_STATUS_LIST(STATUS_NAME)
    }
    return "?";
}

const char *hfsad_status_text(hfsad_status status)
{
    switch (status) {
#define STATUS_TEXT(name, text)                                                                                        \
    case HFSAD_##name:                                                                                                 \
        return text;
        HFSAD_STATUS_LIST(STATUS_TEXT)
    }
    return "?";
}

hfsad_status error_set(hfsad_error *err, hfsad_status status, const char *format, ...)
{
    if (!err)
        return status;
    err->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    for (char *p = err->message; *p; p++) /* a name from a file may contain line breaks; the message is one line */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return status;
}

hfsad_status error_memory(hfsad_error *err, size_t bytes, const char *what)
{
    return error_set(err, HFSAD_ERROR_MEMORY, "not enough memory: %zu bytes for %s", bytes, what);
}

size_t name_distance(const char *a, const char *b)
{
    enum { MOST = 63 };
    size_t row[MOST + 1];
    const size_t na = strnlen(a, MOST), nb = strnlen(b, MOST);
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t change = diagonal + (a[i - 1] != b[j - 1]);
            const size_t shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            diagonal = row[j];
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[nb];
}
