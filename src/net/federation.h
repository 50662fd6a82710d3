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

/* What the set-up came to. */
typedef struct {
    data_scales scales;
    double nu_f;
    survey_cost cost;
    bool many;       /* the clients' rows are kept as in the table of rows */
    double constant; /* of the intercept */
    size_t n_rows;
    const double *start; /* M: of the first stage */
} federation_result;

/* shape: of nodes.h, taken over also on failure; spec must outlive it. Refused: what a federation cannot do. */
hfsad_status federation_create(federation **f, const hfsad_spec *spec, dataset *shape, hfsad_error *err);
void federation_free(federation *f);

/* Rows of this process's clients, in the table of rows; taken over also on failure. What is of no client of the tree is
 * passed over. name: of the file, for messages. */
hfsad_status federation_take_rows(federation *f, dataset *rows, const char *name, hfsad_error *err);
/* Reads the rows again. With it a process keeps only the standardised rows in memory if the spec standardises, and
 * rereads the original rows on request: a root that restarts during the set-up asks for them. */
typedef hfsad_status federation_reader(void *context, dataset **rows, hfsad_error *err);
void federation_set_reader(federation *f, federation_reader *read, void *context);
/* Why they could not be read again, so that questions are not answered any more; NULL: they could, or need not be. */
const hfsad_error *federation_broken(const federation *f);
/* Whether the rows of a client are here. */
bool federation_has_rows(const federation *f, size_t leaf);

uint64_t federation_run(const federation *f);
const dataset *federation_shape(const federation *f);
/* The rule of FedAvg and FedProx, once a node has been made. */
const baseline_rule *federation_rule(const federation *f);
/* The plan, once a node has been made. */
plan *federation_plan(const federation *f);
bool federation_is_async(const federation *f);

/* Numbers of the longest message of this federation. */
size_t federation_message_most(const federation *f);

/* Files of a node, each may be NULL: its own certificate and key, for its connection; those that it signs with, and
 * its authority's. */
typedef struct {
    const char *certificate, *key;
    const char *signs, *signs_key, *ca;
} federation_files;
/* Puts a node into the host. */
hfsad_status federation_join(federation *f, host *h, size_t number, const federation_files *files, hfsad_error *err);
/* What hears of the rows of a star; numbers: FEDERATION_ROW of them, to be kept with the result. */
enum { FEDERATION_ROW = 8 };
typedef struct {
    void *context;
    void (*row)(void *context, const polish_row *row, double *numbers);
} federation_rows;
/* A node's part in the set-up, to be freed with its context (by free) before the federation. */
hfsad_status federation_inquiry(federation *f, size_t number, inquiry **q, void **context, hfsad_error *err);
/* The root's set-up from the first question to its node, or until a turn fails. A root that already has its node is set
 * up. */
hfsad_status federation_play(federation *f, host *h, const inquiry_turns *turns, hfsad_error *err);
/* Parts of that: the questions of the set-up, until all nodes and q have the result; and the polish, if the root waits
 * for it. */
hfsad_status federation_set_up(federation *f, inquiry *q, const inquiry_turns *turns, hfsad_error *err);
hfsad_status federation_polish(const federation *f, inquiry *q, const inquiry_turns *turns, node *root,
                               const federation_rows *rows, hfsad_error *err);
/* The polish from w; life: how often the root has begun. numbers: those of node_get_polish. A status is a turn's. */
hfsad_status federation_polish_from(const federation *f, inquiry *q, const inquiry_turns *turns, uint64_t life,
                                    const double *w, const federation_rows *rows, double *numbers, hfsad_error *err);
/* For host_settings.make: the node from the set-up's result. */
hfsad_status federation_make(void *federation, const char *path, const double *result, size_t count, node **n,
                             hfsad_error *err);
/* For host_settings.knows. */
bool federation_knows(const void *context, const char *path);
/* For host_settings.lived: the number of the readmission that a client's link began with. */
void federation_note_life(void *federation, const char *path, uint64_t life);
/* The result in force, once a node has been made. */
const federation_result *federation_outcome(const federation *f);
/* The numbers of node_get_polish: these of the result, then the model; of a star then the rows. */
enum { FEDERATION_POLISH_HEAD = 11 };
/* How many they are, and how many rows. */
size_t federation_polish_numbers(const plan *p, size_t M);
uint64_t federation_polish_rows(const double *numbers);
polish_result federation_polish_result(const double *numbers);
/* The groups behind the model; the reason for which there are none, or NULL. The result is to be freed in any case. */
const char *federation_groups_take(const federation *f, const double *numbers, personal_result *result);
/* Why there is neither; NULL: there are. */
const char *federation_polish_failure(const double *numbers);
/* What the spec begins from: a kind of start or the name of a file, to be freed. */
char *federation_start_kind(const federation *f);

/* The prints of this spec and its nodes. */
const double *federation_prints(const federation *f, size_t *count);
/* store_open_as: of a folder of another run it is said in what they differ. shown: as there. */
hfsad_status federation_open_store(const federation *f, const char *folder, const char *shown, store **s,
                                   hfsad_error *err);
/* A message to the parent that holds the prints of this spec; its numbers are to be freed, NULL: no memory. */
message federation_introduce(const federation *f);
/* A question of another run, or a child's introduction, which holds the prints of its spec: why it is another, for a
 * person; false: it does not say. */
bool federation_explain(const federation *f, const message *m, char *text, size_t size);

#endif
