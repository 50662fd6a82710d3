/*
 * The tree of a federation without its rows, for machines that have no data: a text with
 *
 *     features 25           how many columns the clients' rows have; "feature NAME" lines may follow, one for each
 *     features categorical region=north|south, features labels no,yes, features means 1.5 2: what a table was read with
 *     edge1/                an inner node, where its place among its siblings is not that of its first client
 *     edge1/client7         a client
 *
 * and lines that are empty or begin with #. The reader gets a data set that knows names, slots and M and whose clients
 * have no rows.
 */
#ifndef HFSAD_DATA_NODES_H
#define HFSAD_DATA_NODES_H

#include "data/dataset.h"

/* The text for the tree of d, to be freed; NULL: no memory. */
char *nodes_text(const dataset *d);
/* A number of the list as it was at the start, without the clients that came later; 0: no memory. */
uint64_t nodes_print(const dataset *d);
/* name: of the text in messages. */
hfsad_status nodes_parse(dataset **d, const char *text, const char *name, hfsad_error *err);
hfsad_status nodes_read(dataset **d, const char *path, hfsad_error *err);

/* What is known of the clients' rows once they have been asked: whether they are kept in a table, the column of an
 * intercept (0: none), how many there are. false: no memory. */
bool nodes_settle(dataset *d, bool many, double constant, size_t n_rows);

/* How the rows are standardised: centre, then scale, F numbers each. false: no memory. */
bool nodes_set_columns(dataset *d, const double *columns);

/* Whether all names are allowed in a list of nodes and in topics. */
hfsad_status nodes_check_names(const dataset *d, hfsad_error *err);
/* The number of the node with that path, as in hfsad_run_node_name; SIZE_MAX: no such node. */
size_t nodes_find(const dataset *d, const char *path);
/* The path of a node, cut to size; returns the full length. */
size_t nodes_name(const dataset *d, size_t number, char *buffer, size_t size);

#endif
