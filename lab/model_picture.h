/* The models of all clients of a run as lines, coloured by group, with the cloud's models of other runs and true
 * models. */
#ifndef HFSAD_LAB_MODEL_PICTURE_H
#define HFSAD_LAB_MODEL_PICTURE_H

#include "hfsad/hfsad.h"

enum { MODEL_PICTURE_OTHERS = 2, MODEL_PICTURE_TRUTHS = 4 };

/* The texts must outlive the picture. */
typedef struct {
    const char *folders[1 + MODEL_PICTURE_OTHERS]; /* the run and the others; NULL: the end */
    const char *groups;                            /* CSV client,group; NULL: the groups that the run found */
    const char *const *truths;                     /* files */
    size_t n_truths;
    bool raw; /* units of the data even if the run standardized the features */
    const char *out;
} model_picture_settings;

typedef struct model_picture model_picture;
extern const char *const model_picture_names[2]; /* names of the files */

/* Reads and checks everything. */
hfsad_status model_picture_create(model_picture **p, const model_picture_settings *settings, hfsad_error *err);
/* Writes both files; none if `interrupted` becomes non-zero before the end. */
hfsad_status model_picture_draw(const model_picture *p, int (*interrupted)(void), hfsad_error *err);
/* p may be NULL. */
void model_picture_free(model_picture *p);

#endif
