/*
 * The tree of a federation without its rows, for machines that have no data: a text with
 *
 *     features 25           number of columns of the clients' rows; "feature NAME" lines may follow, one for each
 *     features categorical region=north|south, features labels no,yes, features means 1.5 2: how a table was read
 *     edge1/                an inner node, if its place among its siblings is not that of its first client
 *     edge1/client7         a client
 *
 * Empty lines and lines that begin with # are skipped. The reader makes a data set with names, slots and M, whose
 * clients have no rows.
 */
#ifndef HFSAD_DATA_NODES_H
#define HFSAD_DATA_NODES_H

#include "data/dataset.h"

/* The text for the tree of d, which the caller frees; NULL: no memory. */
char *nodes_text(const dataset *d);
/* A hash of the list at the start of the run, without clients that joined later; 0: no memory. */
uint64_t nodes_print(const dataset *d);
/* name: of the text in messages. */
hfsad_status nodes_parse(dataset **d, const char *text, const char *name, hfsad_error *err);
hfsad_status nodes_read(dataset **d, const char *path, hfsad_error *err);

/* Sets what is known of the clients' rows after a survey: whether they are in a table, the constant of the intercept's
 * column (0: no intercept), and their number. false: no memory. */
bool nodes_settle(dataset *d, bool many, double constant, size_t n_rows);

/* Sets how the rows are standardised: centre, then scale, F numbers each. false: no memory. */
bool nodes_set_columns(dataset *d, const double *columns);

/* Checks that all names are allowed in a list of nodes and in topics. */
hfsad_status nodes_check_names(const dataset *d, hfsad_error *err);
/* The number of the node with this path, as in hfsad_run_node_name; SIZE_MAX: no such node. */
size_t nodes_find(const dataset *d, const char *path);
/* Writes the path of a node, truncated to size; returns the full length. */
size_t nodes_name(const dataset *d, size_t number, char *buffer, size_t size);

#endif
