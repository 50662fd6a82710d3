/* model.csv and state.csv: a row per node or link, read from a run. */
#ifndef HFSAD_OUT_TABLES_H
#define HFSAD_OUT_TABLES_H

#include "base/whole_file.h"

/* Room for one row: two vectors, a name, the text. Taken once. */
typedef struct {
    size_t name_size;
    double *z, *q;
    char *name, *text;
} row_room;

hfsad_status row_room_create(row_room *room, const hfsad_run *run, hfsad_error *err);
void row_room_free(row_room *room);

/* ",w1,…,wM" or ",age,income", ",intercept" if there is one, `more`, and the end of the line. */
void model_head(whole_file *f, const hfsad_run *run, const char *more);
/* node, the features and, if there is one, intercept: cloud, inner nodes and, if requested, clients. */
void model_table(whole_file *f, const hfsad_run *run, bool clients, row_room *room);
/* The cloud's model, a line for each coefficient: w1 and the name beside it; per standard deviation too, if the columns
 * were standardised. */
void coefficient_table(whole_file *f, const hfsad_run *run, row_room *room);
/* What the first line of state.csv starts with. */
#define STATE_HEAD "node,k,last"
/* node,k,last,z1,…,zM,q1,…,qM: every link under the name of its child. */
void state_table(whole_file *f, const hfsad_run *run, row_room *room);

#endif
