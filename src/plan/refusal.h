/* Questions that clients may be told never to answer (`privacy.refuse`), and clients with too few rows. */
#ifndef HFSAD_PLAN_REFUSAL_H
#define HFSAD_PLAN_REFUSAL_H

#include "data/dataset.h"
#include "spec/settings.h"

/* Word of privacy.refuse, its questions in words. */
#define REFUSAL_LIST(X)                                                                                                \
    X(STANDARDIZE, "standardize", "means and deviations of the columns")                                               \
    X(ROBUST_START, "robust-start", "sums for the start of phase retrieval, at vectors of the cloud's choice")         \
    X(STEP, "step", "curvatures for the step size of fedavg and fedprox")                                              \
    X(STAR, "star", "the matrix of products of columns, and steps on models of the cloud")                             \
    X(POLISH, "polish", "losses, slopes and second derivatives at models of the cloud's choice")                       \
    X(ERRORS, "errors", "residuals below thresholds, sums of squares of slopes at the model")                          \
    X(GROUPS, "groups", "losses and slopes at several models, and the client's weights in the groups")

typedef enum {
#define REFUSAL_ENUM(name, word, text) REFUSAL_##name,
    REFUSAL_LIST(REFUSAL_ENUM)
#undef REFUSAL_ENUM
        REFUSALS
} refusal_kind;

/* Whether a run of this spec may ask such questions. */
bool refusal_is_implied(const hfsad_spec *spec, refusal_kind kind);
/* The spec must not need what it refuses, and privacy.refuse must have known words. */
hfsad_status refusal_check(const hfsad_spec *spec, hfsad_error *err);
/* Whether a client has privacy.least_rows, none longer than privacy.record; path: of the client. */
hfsad_status refusal_check_rows(const hfsad_spec *spec, const char *path, const client_rows *rows, hfsad_error *err);

#endif
