/*
 * A trained model applied to data: which node's model each client gets, and <x, w> plus the intercept for its rows. The
 * client's loss says what a score means for y.
 */
#ifndef HFSAD_OUT_MODEL_SCORING_H
#define HFSAD_OUT_MODEL_SCORING_H

#include "core/softmax.h"
#include "math/loss_kind.h"
#include "out/model.h"

/*
 * auto: the client's own model if it has one, otherwise the model of its nearest ancestor that has one. client, edge:
 * its own model or its parent's (the cloud's for a client directly below the cloud); an error if there is none.
 */
#define MODEL_CHOICES "auto", "client", "edge", "cloud"
typedef enum { WITH_AUTO, WITH_CLIENT, WITH_EDGE, WITH_CLOUD } model_choice;

typedef struct {
    const char *folder, *path; /* folder of the model, path of the data */
    model *model;
    dataset *data;
    uint32_t *node;   /* n_leaves: the node whose model the client gets */
    size_t most_rows; /* rows of the client with the most rows */
} scoring;

/* Reads model and data and matches them. folder and path must outlive s. On failure there is nothing to free. */
hfsad_status scoring_create(scoring *s, const char *folder, const char *path, model_choice with, hfsad_error *err);
/* The same for a model and data in memory: checks that they fit and chooses the nodes. */
hfsad_status scoring_match(scoring *s, model_choice with, hfsad_error *err);
void scoring_free(scoring *s);

bool scoring_has_y(const scoring *s);

client_law scoring_law(const scoring *s, size_t leaf);
/* For rows with several scores: the loss of a client's row for y; the probabilities p of the classes; the scores of
 * each class against the rest; the predictions of the levels, sorted so that they rise with the level. */
double scoring_class(const scoring *s, size_t leaf, const client_rows *rows, size_t r, double y, double *p);
double most_likely(size_t classes, const double *p);
/* Whether the scores are levels; the level nearest to 0.5. */
bool scoring_has_levels(const scoring *s);
size_t scoring_middle(const scoring *s);
/* Writes a score per row of a client with this loss: for several classes the number of the most likely class, for
 * several levels the prediction of the middle level. HFSAD_ERROR_INPUT: a prediction is not finite. */
hfsad_status scoring_scores(const scoring *s, size_t leaf, hfsad_loss_kind kind, double *scores, hfsad_error *err);
/* Sets the error that this client's row (counted from 0) has a value that is too large. */
hfsad_status scoring_overflow(const scoring *s, size_t leaf, size_t row, const char *what, hfsad_error *err);

/* The predicted class, -1 or 1. */
static inline double score_label(double score)
{
    return score >= 0 ? 1 : -1;
}
/* The prediction of y from a score; for labels the probability of 1 (logistic) or the margin (hinge). */
double score_prediction(hfsad_loss_kind kind, double score);

#endif
