/* Decimal text to the nearest double, fast and exact, whatever the locale. */
#ifndef HFSAD_DATA_PARSE_NUMBER_H
#define HFSAD_DATA_PARSE_NUMBER_H

/*
 * Reads [+-] digits [. digits] [e [+-] digits] at p, without leading spaces, and never looks at or beyond end.
 * Returns the first byte after the number, NULL if none begins. The value is the nearest double, ties to even;
 * too large a number gives an infinity, which the caller refuses. No "nan", no "inf", no hexadecimal.
 */
const char *number_parse(const char *p, const char *end, double *value);

#endif
