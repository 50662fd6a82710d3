/* NumPy arrays: the header, the numbers after it, and files of rows in this format. */
#ifndef HFSAD_DATA_NPY_H
#define HFSAD_DATA_NPY_H

#include "data/intake.h"

#define EXPECTED_NPY "a NumPy array of shape (rows, 1 + features)"

enum { NPY_HEAD_MOST = 1 << 16 /* upper limit on the bytes before the numbers */ };

/* An array in C order of little-endian numbers. */
typedef struct {
    size_t item;     /* bytes per number: 8 or 4 */
    size_t dims;     /* 1 or 2 */
    size_t shape[2]; /* the second is 1 if dims is 1 */
    size_t offset;   /* where the numbers begin */
} npy_head;

/* Reads the header at the start of an array of `size` bytes, of which `given` are available: all, or at least
 * NPY_HEAD_MOST. The numbers fill the rest exactly. `name` is the name of file and array in messages. */
hfsad_status npy_read_head(npy_head *h, const char *bytes, size_t given, size_t size, const char *name,
                           hfsad_error *err);
/* Converts `count` numbers of `item` bytes. */
void npy_convert(double *to, const char *from, size_t item, size_t count);

/* Reads the rows of a client's own file: y in column 0, then the features. */
hfsad_status npy_take(intake *in, file_bytes *from, const char *name);

#endif
