/* Decimal text to the nearest double, fast and exact, independent of the locale. */
#ifndef HFSAD_DATA_PARSE_NUMBER_H
#define HFSAD_DATA_PARSE_NUMBER_H

/*
 * Reads [+-] digits [. digits] [e [+-] digits] at p, without leading spaces, and never reads at or beyond end. Returns
 * the first byte after the number; NULL if no number begins at p. The value is the nearest double, ties to even. A
 * number that is too large gives an infinity, which the caller must refuse. "nan", "inf" and hexadecimal numbers are
 * not accepted.
 */
const char *number_parse(const char *p, const char *end, double *value);

#endif
