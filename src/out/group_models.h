/* The models of the groups that `personal: groups` wrote to summary.json, and the groups of clients that were not in
 * the training. */
#ifndef HFSAD_OUT_GROUP_MODELS_H
#define HFSAD_OUT_GROUP_MODELS_H

#include "out/model_scoring.h"
#include "personal/mixture.h"

typedef struct {
    mixture m;    /* in the user's units */
    double *room; /* memory of its numbers */
} group_models;

/* Reads the groups of the folder of s; HFSAD_ERROR_INPUT if its run did not look for groups. */
hfsad_status group_models_read(group_models *g, const scoring *s, hfsad_error *err);
void group_models_free(group_models *g);

/* From the rows of a client of s, which have y: the client's weights for the groups (K numbers) and its model. scratch:
 * mixture_scratch numbers for a model. */
void group_models_assign(const group_models *g, const scoring *s, size_t leaf, double *scratch, double *p, double *w);

#endif
