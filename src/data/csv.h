/* Readers of CSV data and of files of numbers, over bytes in memory; file readers and fuzz targets share them. */
#ifndef HFSAD_DATA_CSV_H
#define HFSAD_DATA_CSV_H

#include "data/intake.h"

#define EXPECTED_CSV "a CSV file with the header edge,client,y,x1,x2,..."
#define EXPECTED_OWN_CSV "a CSV file with the header y,x1,x2,..."

/* Reads the rows of a CSV file. */
hfsad_status csv_take(intake *in, file_bytes *from, const char *name);

/* `name`: name of the file in messages; table and as_rows: see dataset_read_table. On failure *d is NULL. */
hfsad_status csv_parse(const char *bytes, size_t size, const char *name, const table_settings *table, bool as_rows,
                       dataset **d, hfsad_error *err);
/* See vector_read. */
hfsad_status vector_parse(double *values, size_t count, const char *bytes, size_t size, const char *name,
                          const char *what, hfsad_error *err);

#endif
