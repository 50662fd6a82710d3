/* Numbers as text with 17 significant digits: what %.17g prints, which every reader turns back into the same bits. */
#ifndef HFSAD_BASE_FORMAT_NUMBER_H
#define HFSAD_BASE_FORMAT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum {
    NUMBER_LONGEST = 24, /* -1.7976931348623157e+308 */
    NUMBER_SIZE = 32,    /* room that number_write may write over */
};

/* Writes v at out without a terminating 0; returns the length. Writes "inf", "-inf" and "nan" if v is not finite. */
size_t number_write(char *out, double v);
size_t number_write_whole(char *out, uint64_t v);

#endif
