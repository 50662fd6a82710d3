/* See format.h. */
#define _DEFAULT_SOURCE /* strcasecmp */
#include "data/format.h"

#include "data/parse_number.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const data_format *const formats[] = {
#define ROW(name) &name##_format,
    FORMAT_LIST(ROW)
#undef ROW
};
enum { FORMATS = sizeof formats / sizeof *formats, ENDS = sizeof formats[0]->ends / sizeof *formats[0]->ends };

const data_format *format_of(const char *name, size_t *stem)
{
    static const char *const packed[] = {".gz", ".zst"};
    const size_t whole = strlen(name);
    size_t length = whole;
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        const size_t end = strlen(packed[i]);
        if (whole > end && strcasecmp(name + whole - end, packed[i]) == 0)
            length = whole - end;
    }
    for (size_t i = 0; i < FORMATS; i++)
        for (size_t e = 0; e < ENDS && formats[i]->ends[e]; e++) {
            const size_t end = strlen(formats[i]->ends[e]);
            *stem = length > end ? length - end : 0;
            if (*stem > 0 && strncasecmp(name + *stem, formats[i]->ends[e], end) == 0)
                return formats[i];
        }
    *stem = whole;
    return NULL;
}

const data_format *format_or_csv(const char *name, size_t *stem)
{
    const data_format *format = format_of(name, stem);
    return format ? format : &csv_format;
}

const data_format *format_settle(const data_format *format, const file_bytes *f)
{
    const char *at = f->bytes, *end = at + f->size;
    double label;
    if (format != &svm_format || !at)
        return format;
    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < end && (strchr(" \t\r\n", *at) || *at == '#')) { /* skips blank lines and comments */
        const char *stop = *at == '#' ? memchr(at, '\n', (size_t)(end - at)) : at + 1;
        at = stop ? stop : end;
    }
    /* A LIBSVM row begins with a number, its label. A table begins with a name, which is not a number and has a letter
     * or a quote. */
    const bool name = at < end && !number_parse(at, end, &label) &&
                      ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '"' || *at == '_');
    const bool infinite = end - at >= 3 && (!strncasecmp(at, "nan", 3) || !strncasecmp(at, "inf", 3));
    return name && !infinite ? &csv_format : format;
}

void format_ends(char *text, size_t size)
{
    size_t n = 0, count = 0, at = 0;
    for (size_t i = 0; i < FORMATS * ENDS; i++)
        count += formats[i / ENDS]->ends[i % ENDS] != NULL;
    for (size_t i = 0; i < FORMATS * ENDS && n < size; i++)
        if (formats[i / ENDS]->ends[i % ENDS]) {
            n += (size_t)snprintf(text + n, size - n, "%s%s",
                                  at == 0           ? ""
                                  : at + 1 == count ? " or "
                                                    : ", ",
                                  formats[i / ENDS]->ends[i % ENDS]);
            at++;
        }
    if (n < size)
        snprintf(text + n, size - n, " (.gz and .zst may follow)");
}
