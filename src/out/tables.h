/* Writes model.csv and state.csv from a run: a row per node or link. */
#ifndef HFSAD_OUT_TABLES_H
#define HFSAD_OUT_TABLES_H

#include "base/whole_file.h"

/* Room for one row: two vectors, a name, the text. Allocated once. */
typedef struct {
    size_t name_size;
    double *z, *q;
    char *name, *text;
} row_room;

hfsad_status row_room_create(row_room *room, const hfsad_run *run, hfsad_error *err);
void row_room_free(row_room *room);

/* Writes ",w1,…,wM" or ",age,income", ",intercept" if there is one, `more`, and the line end. */
void model_head(whole_file *f, const hfsad_run *run, const char *more);
/* Columns: node, the features, intercept if there is one. Rows: the cloud, inner nodes and, if requested, clients. */
void model_table(whole_file *f, const hfsad_run *run, bool clients, row_room *room);
/* The cloud's model, a line for each coefficient: w1 and its name; if the columns were standardised, also per standard
 * deviation. */
void coefficient_table(whole_file *f, const hfsad_run *run, row_room *room);
/* First columns of state.csv. */
#define STATE_HEAD "node,k,last"
/* node,k,last,z1,…,zM,q1,…,qM: a row for every link, named after its child. */
void state_table(whole_file *f, const hfsad_run *run, row_room *room);

#endif
