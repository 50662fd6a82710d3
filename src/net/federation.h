/*
 * Data of a process of a federation besides its nodes: the spec, the tree, the rows of its own clients if it has any;
 * its answers to the questions of the set-up (inquiry.h), the root's use of the answers, and the creation of the nodes
 * from the result.
 */
#ifndef HFSAD_NET_FEDERATION_H
#define HFSAD_NET_FEDERATION_H

#include "net/host.h"
#include "net/inquiry.h"
#include "net/tree.h"
#include "personal/grow.h"
#include "polish/polish.h"

typedef struct federation federation;

/* The result of the set-up. */
typedef struct {
    data_scales scales;
    double nu_f;
    survey_cost cost;
    bool many;       /* clients have many rows, kept in a table of rows */
    double constant; /* value of the intercept's column */
    size_t n_rows;
    const double *start; /* M: start of the first stage */
} federation_result;

/* Takes ownership of shape, also on failure; spec must outlive the federation. An error if a federation cannot do what
 * the spec asks for. */
hfsad_status federation_create(federation **f, const hfsad_spec *spec, dataset *shape, hfsad_error *err);
void federation_free(federation *f);

/* Adds the rows of this process's clients, as a table of rows, and takes ownership of it, also on failure. Rows of
 * clients that the tree does not have are ignored. name: the file's name, for messages. */
hfsad_status federation_take_rows(federation *f, dataset *rows, const char *name, hfsad_error *err);
/* A function that reads the rows again. With it a process keeps only the standardised rows in memory, and rereads the
 * original rows if a root that has restarted during the set-up asks for them. */
typedef hfsad_status federation_reader(void *context, dataset **rows, hfsad_error *err);
void federation_set_reader(federation *f, federation_reader *read, void *context);
/* The error of rereading the rows, after which the process answers no further questions; NULL: no error. */
const hfsad_error *federation_broken(const federation *f);
/* Whether this process has the rows of a client. */
bool federation_has_rows(const federation *f, size_t leaf);

uint64_t federation_run(const federation *f);
const dataset *federation_shape(const federation *f);
/* The rule of FedAvg and FedProx; valid after the first node is created. */
const baseline_rule *federation_rule(const federation *f);
/* The plan; valid after the first node is created. */
plan *federation_plan(const federation *f);
bool federation_is_async(const federation *f);

/* Upper limit on the count of numbers in a message of this federation. */
size_t federation_message_most(const federation *f);

/* Files of a node, each may be NULL: certificate and key of its connection; certificate and key for signatures, and the
 * certificate of the authority. */
typedef struct {
    const char *certificate, *key;
    const char *signs, *signs_key, *ca;
} federation_files;
/* Adds a node to the host. */
hfsad_status federation_join(federation *f, host *h, size_t number, const federation_files *files, hfsad_error *err);
/* Called with every row of the trace that the star makes; the function fills in FEDERATION_ROW numbers, which are
 * stored with the result. */
enum { FEDERATION_ROW = 8 };
typedef struct {
    void *context;
    void (*row)(void *context, const polish_row *row, double *numbers);
} federation_rows;
/* Creates a node's part in the set-up. Free it and its context (by free) before the federation. */
hfsad_status federation_inquiry(federation *f, size_t number, inquiry **q, void **context, hfsad_error *err);
/* Root: runs the set-up from the first question until its node exists, or until a turn fails. Returns at once if the
 * node exists already. */
hfsad_status federation_play(federation *f, host *h, const inquiry_turns *turns, hfsad_error *err);
/* Two parts of federation_play and of the end of a run: the questions of the set-up, until all nodes and q have the
 * result; and the polish, if the root waits for it. */
hfsad_status federation_set_up(federation *f, inquiry *q, const inquiry_turns *turns, hfsad_error *err);
hfsad_status federation_polish(const federation *f, inquiry *q, const inquiry_turns *turns, node *root,
                               const federation_rows *rows, hfsad_error *err);
/* Runs the polish from w; life: the root's number of starts. numbers: as in node_get_polish. An error is that of a
 * turn. */
hfsad_status federation_polish_from(const federation *f, inquiry *q, const inquiry_turns *turns, uint64_t life,
                                    const double *w, const federation_rows *rows, double *numbers, hfsad_error *err);
/* For host_settings.make: creates a node from the result of the set-up. */
hfsad_status federation_make(void *federation, const char *path, const double *result, size_t count, node **n,
                             hfsad_error *err);
/* For host_settings.knows. */
bool federation_knows(const void *context, const char *path);
/* For host_settings.lived: notes the life of a client's link. */
void federation_note_life(void *federation, const char *path, uint64_t life);
/* The result of the set-up; valid after the first node is created. */
const federation_result *federation_outcome(const federation *f);
/* Layout of the numbers of node_get_polish: FEDERATION_POLISH_HEAD numbers of the result, then the model, then the rows
 * of a star. */
enum { FEDERATION_POLISH_HEAD = 11 };
/* The count of these numbers, and the number of rows. */
size_t federation_polish_numbers(const plan *p, size_t M);
uint64_t federation_polish_rows(const double *numbers);
polish_result federation_polish_result(const double *numbers);
/* Reads the groups, which follow the model. Returns the reason if there are none, otherwise NULL. Free the result in
 * either case. */
const char *federation_groups_take(const federation *f, const double *numbers, personal_result *result);
/* Clients: the groups that the cloud has found. m->K is 0 if it has found none, or one; m lasts as long as f. The
 * weights p and the model w of a client follow from them and from its rows; false: no memory. */
hfsad_status federation_own_groups(federation *f, mixture *m, hfsad_error *err);
bool federation_own_model(const federation *f, size_t leaf, const mixture *m, double *p, double *w);
/* The reason why the polish has no result; NULL: it has one. */
const char *federation_polish_failure(const double *numbers);
/* The start of the run: its kind or the name of a file; the caller frees it. */
char *federation_start_kind(const federation *f);

/* The fingerprints of this spec and its nodes. */
const double *federation_prints(const federation *f, size_t *count);
/* As store_open_as; if the folder belongs to another run, the message says in which settings the runs differ. */
hfsad_status federation_open_store(const federation *f, const char *folder, const char *shown, store **s,
                                   hfsad_error *err);
/* A message to the parent with the fingerprints of this spec. The caller frees its numbers; NULL: no memory. */
message federation_introduce(const federation *f);
/* Explains, from the fingerprints in a question of another run or in a child's introduction, how the two specs differ.
 * false: the message has no fingerprints. */
bool federation_explain(const federation *f, const message *m, char *text, size_t size);

#endif
