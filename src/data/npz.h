/* Reader of NPZ files, over bytes in memory. */
#ifndef HFSAD_DATA_NPZ_H
#define HFSAD_DATA_NPZ_H

#include "data/intake.h"

#define EXPECTED_NPZ "a NumPy archive with the arrays X, y and, if rows have weights, weight"

/* Reads the rows of a client's own file. */
hfsad_status npz_take(intake *in, file_bytes *from, const char *name);

#endif
