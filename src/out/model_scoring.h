/*
 * A trained model on data: which node's model each client gets, and <x, w> plus the intercept for its rows. What a
 * score says about y depends on the client's loss.
 */
#ifndef HFSAD_OUT_MODEL_SCORING_H
#define HFSAD_OUT_MODEL_SCORING_H

#include "core/softmax.h"
#include "math/loss_kind.h"
#include "out/model.h"

/*
 * auto: the client's own model if there is one, otherwise that of its nearest ancestor that has one. client, edge: its
 * own or its parent's model (the cloud's if it is directly below the cloud); an error if there is none.
 */
#define MODEL_CHOICES "auto", "client", "edge", "cloud"
typedef enum { WITH_AUTO, WITH_CLIENT, WITH_EDGE, WITH_CLOUD } model_choice;

typedef struct {
    const char *folder, *path; /* of the model and of the data */
    model *model;
    dataset *data;
    uint32_t *node;   /* n_leaves: whose model the client gets */
    size_t most_rows; /* of one client */
} scoring;

/* Reads both and matches them. folder and path must outlive s. On failure there is nothing to free. */
hfsad_status scoring_create(scoring *s, const char *folder, const char *path, model_choice with, hfsad_error *err);
/* The second half, for a model and data that are there: checks that they fit and chooses the nodes. */
hfsad_status scoring_match(scoring *s, model_choice with, hfsad_error *err);
void scoring_free(scoring *s);

bool scoring_has_y(const scoring *s);

client_law scoring_law(const scoring *s, size_t leaf);
/* If rows have several scores: the loss of a row of that client for y; p: the probabilities of the classes; their
 * scores, of a class against the rest; the predictions of the levels, sorted so that they rise with the level. */
double scoring_class(const scoring *s, size_t leaf, const client_rows *rows, size_t r, double y, double *p);
double most_likely(size_t classes, const double *p);
/* Whether these are levels; the one that is nearest to 0.5. */
bool scoring_has_levels(const scoring *s);
size_t scoring_middle(const scoring *s);
/* A score per row of a client with this kind of loss, of several classes the number of the most likely one,
 * of several levels the prediction of the middle one.
 * HFSAD_ERROR_INPUT: a prediction is not finite. */
hfsad_status scoring_scores(const scoring *s, size_t leaf, hfsad_loss_kind kind, double *scores, hfsad_error *err);
/* Says that this client's row, counted from 0, has something that is too large. */
hfsad_status scoring_overflow(const scoring *s, size_t leaf, size_t row, const char *what, hfsad_error *err);

/* The class, -1 or 1. */
static inline double score_label(double score)
{
    return score >= 0 ? 1 : -1;
}
/* What a score predicts of y; of a label the probability of 1 (logistic) or the margin (hinge). */
double score_prediction(hfsad_loss_kind kind, double score);

#endif
