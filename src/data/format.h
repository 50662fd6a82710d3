/* Formats of data files. A format is one file, src/data/<name>.c, with its reader and its row, and one name in the list
 * below. */
#ifndef HFSAD_DATA_FORMAT_H
#define HFSAD_DATA_FORMAT_H

#include "data/intake.h"

typedef struct {
    const char *ends[4];  /* extensions of file names; unused ones are NULL */
    const char *expected; /* description of the expected file */
    bool text;
    bool columns; /* columns have names: a first pass looks for categories and missing values */
    /* How a file names the clients of its rows: not at all, by a column, or by a comment at the end of each row. */
    enum { CLIENTS_NONE, CLIENTS_COLUMN, CLIENTS_COMMENT } clients;
    hfsad_status (*take)(intake *in, file_bytes *from, const char *name);
} data_format;

#define FORMAT_LIST(X) X(csv) X(npy) X(npz) X(svm) X(records)

#define FORMAT_ROW(name) extern const data_format name##_format;
FORMAT_LIST(FORMAT_ROW)
#undef FORMAT_ROW

/* The format by the extension of a file's name; NULL: none. *stem: length of the name without the extension. */
const data_format *format_of(const char *name, size_t *stem);
/* The same; CSV if the extension is unknown. */
const data_format *format_or_csv(const char *name, size_t *stem);
/* CSV for text with a LIBSVM extension that begins with names of columns, as R's write.table writes a .txt file. */
const data_format *format_settle(const data_format *format, const file_bytes *f);
/* ".csv, .npy or .svm (.gz and .zst may follow)" */
void format_ends(char *text, size_t size);

#endif
