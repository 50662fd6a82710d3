/*
 * hfsad: hierarchical federated learning with non-smooth and non-convex objectives.
 *
 * Two levels. The upper one reads a spec and runs it (hfsad_spec_*, hfsad_run_*). The lower one is the
 * mathematics of docs/algorithm.md as functions of their arguments (penalties, losses, schedule, link, leaf,
 * inner and root steps): they take caller-owned memory, allocate nothing, print nothing, read no clock.
 *
 * Every function that can fail returns an hfsad_status and, if err is not NULL, leaves one line in it.
 *
 * Growing without breaking callers: handles (hfsad_spec, hfsad_data, hfsad_run, ...) are opaque. Other structs may get
 * more members at their end. If the memory is the caller's, the first member is `size`: the caller sets it to sizeof
 * the struct as it was compiled, and the library reads and writes no more than that. If the memory is the library's,
 * the caller gets a const pointer and reads the members that it knows. hfsad_error and the structs of the lower level
 * change with the soname only.
 *
 * Threads: any thread may call any function, but no two threads may use the same handle at the same time. Exceptions:
 *   - hfsad_run_cancel: at any time from any thread or signal handler, as long as the run exists;
 *   - an hfsad_result, an hfsad_evaluation and an hfsad_spec that no thread changes: read by any number of threads;
 *   - an hfsad_data that no thread changes: any number of runs, predictions and evaluations on it at the same time.
 * Results do not depend on the number of threads, nor on what other threads do.
 */
#ifndef HFSAD_HFSAD_H
#define HFSAD_HFSAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HFSAD_API __attribute__((visibility("default")))
#else
#define HFSAD_API
#endif

#define HFSAD_VERSION_MAJOR 0
#define HFSAD_VERSION_MINOR 1
#define HFSAD_VERSION_PATCH 0

/* "0.1.0" */
HFSAD_API const char *hfsad_version(void);

/* ---- status ------------------------------------------------------------------------------------------- */

/* name, text. Errors of input and environment; bugs of the library are assertions. */
#define HFSAD_STATUS_LIST(X)                                                                                           \
    X(OK, "ok")                                                                                                        \
    X(ERROR_INPUT, "the spec, the data or an argument is wrong")                                                       \
    X(ERROR_IO, "a file could not be written")                                                                         \
    X(ERROR_MEMORY, "not enough memory")                                                                               \
    X(ERROR_DIVERGED, "the iterates are no longer finite")

typedef enum {
#define HFSAD_STATUS_ENUM(name, text) HFSAD_##name,
    HFSAD_STATUS_LIST(HFSAD_STATUS_ENUM)
#undef HFSAD_STATUS_ENUM
} hfsad_status;

typedef struct {
    hfsad_status status;
    char message[1000]; /* one line without a newline: what is wrong, where, and the way out */
} hfsad_error;

HFSAD_API const char *hfsad_status_name(hfsad_status status);
HFSAD_API const char *hfsad_status_text(hfsad_status status);

/* ---- penalties ---------------------------------------------------------------------------------------- */

/* enumerator, prefix of its functions in src/math/penalty_<prefix>.h, name on a link, name as a prior, what gamma must
 * exceed (0: it has no gamma). Of links and priors, then of priors only, then of links only. */
#define HFSAD_PENALTY_BOTH(X)                                                                                          \
    X(NONE, none, "none", "none", 0)                                                                                   \
    X(L1, l1, "tv", "l1", 0)                                                                                           \
    X(MCP, mcp, "mcp", "mcp", 1)                                                                                       \
    X(SCAD, scad, "scad", "scad", 2)
#define HFSAD_PENALTY_PRIORS(X)                                                                                        \
    X(L2, l2, NULL, "l2", 0)                                                                                           \
    X(ELASTIC_NET, elastic_net, NULL, "elastic-net", 0)
#define HFSAD_PENALTY_LINKS(X)                                                                                         \
    X(GROUP_MCP, group_mcp, "group-mcp", NULL, 1)                                                                      \
    X(GROUP_SCAD, group_scad, "group-scad", NULL, 2)
#define HFSAD_PENALTY_LIST(X) HFSAD_PENALTY_BOTH(X) HFSAD_PENALTY_PRIORS(X) HFSAD_PENALTY_LINKS(X)

typedef enum {
#define HFSAD_PENALTY_ENUM(KIND, prefix, link, prior, gamma_above) HFSAD_PENALTY_##KIND,
    HFSAD_PENALTY_LIST(HFSAD_PENALTY_ENUM)
#undef HFSAD_PENALTY_ENUM
} hfsad_penalty_kind;

#define HFSAD_PENALTY_ONE(KIND, prefix, link, prior, gamma_above) +1
enum { HFSAD_PENALTY_COUNT = HFSAD_PENALTY_LIST(HFSAD_PENALTY_ONE) };

/* weight * P(t; lambda, gamma): lambda |t| for l1; gamma > 1 for mcp, > 2 for scad; lambda t^2 / 2 for l2;
 * lambda (ratio |t| + (1 - ratio) t^2 / 2) for elastic-net. group-mcp and group-scad: t is the norm of a vector. */
typedef struct {
    hfsad_penalty_kind kind;
    double weight, lambda, gamma;
    size_t free;  /* number of coordinates at the end of a vector without penalty: an intercept */
    double ratio; /* elastic-net: from 0 to 1 */
} hfsad_penalty;

/* mu > 0: the kink smoothed by |t|_mu; mu = 0: the penalty itself. */
HFSAD_API double hfsad_penalty_value(const hfsad_penalty *p, double t, double mu);
/* derivative of the smoothed value; mu > 0 (mu may be INFINITY). */
HFSAD_API double hfsad_penalty_gradient(const hfsad_penalty *p, double t, double mu);
/* a global minimiser of value(x, mu) + (x - v)^2 / (2 step), step > 0, also if that is not convex. */
HFSAD_API double hfsad_penalty_prox(const hfsad_penalty *p, double v, double step, double mu);
/* the slope beside 0: weight * lambda, times ratio for elastic-net, 0 for l2 and none. No slope of l1, mcp and scad is
 * larger. */
HFSAD_API double hfsad_penalty_slope(const hfsad_penalty *p);

/* ---- losses of one observation -------------------------------------------------------------------------- */

/* enumerator, prefix of its functions in src/math/loss_<prefix>.h, name in a spec. r = y - s. */
#define HFSAD_LOSS_LIST(X)                                                                                             \
    X(PHASE_RETRIEVAL, phase, "phase-retrieval") /* |y - s^2| */                                                       \
    X(QUANTILE, quantile, "quantile")            /* tau r, (tau - 1) r if r < 0 */                                     \
    X(ABSOLUTE, absolute, "absolute")            /* |r| */                                                             \
    X(SQUARED, squared, "squared")               /* r^2 / 2 */                                                         \
    X(HUBER, huber, "huber")                     /* r^2 / 2, delta |r| - delta^2 / 2 beyond delta */                   \
    X(LOGISTIC, logistic, "logistic")            /* log(1 + exp(-y s)), y = -1 or 1 */                                 \
    X(HINGE, hinge, "hinge")                     /* max(0, 1 - y s), y = -1 or 1 */                                    \
    X(OWN, own, "own")                   /* the program's own: hfsad_spec_own_loss; not for the functions below */     \
    X(EXPECTILE, expectile, "expectile") /* tau r^2, (1 - tau) r^2 if r < 0 */                                         \
    X(SMOOTHED_QUANTILE, smoothed_quantile, "smoothed-quantile") /* the quantile loss averaged over r +- h */          \
    X(POISSON, poisson, "poisson")                               /* exp(s) - y s - y + y log y, y >= 0 */              \
    X(SQUARED_HINGE, squared_hinge, "squared-hinge")             /* max(0, 1 - y s)^2, y = -1 or 1 */                  \
    X(MULTINOMIAL, multinomial, "multinomial") /* log(sum exp(s_k)) - s_y, a score for each class, y = 0, 1, ...; not  \
                                                  for the functions below */

typedef enum {
#define HFSAD_LOSS_ENUM(KIND, prefix, name) HFSAD_LOSS_##KIND,
    HFSAD_LOSS_LIST(HFSAD_LOSS_ENUM)
#undef HFSAD_LOSS_ENUM
} hfsad_loss_kind;

#define HFSAD_LOSS_ONE(KIND, prefix, name) +1
enum { HFSAD_LOSS_COUNT = HFSAD_LOSS_LIST(HFSAD_LOSS_ONE) };
#undef HFSAD_LOSS_ONE

typedef struct {
    hfsad_loss_kind kind;
    double tau;   /* quantile, expectile, smoothed-quantile: in (0, 1) */
    double delta; /* huber: > 0 */
    double box;   /* |w_m| <= box; INFINITY: none */
    double h;     /* smoothed-quantile: > 0 */
} hfsad_loss;

/* The loss at the inner product s = <x, w>, the box left out. */
HFSAD_API double hfsad_loss_value(const hfsad_loss *loss, double y, double s);
/* A subgradient of it in s. */
HFSAD_API double hfsad_loss_slope(const hfsad_loss *loss, double y, double s);

/* Doubles of scratch that a prox or a leaf step with M features needs. */
HFSAD_API size_t hfsad_loss_scratch(const hfsad_loss *loss, size_t M);

/* w = a global minimiser of loss(y, <x,w>) + sigma/2 |w - v|^2 over the box. n = |x|^2. w may be v. */
HFSAD_API void hfsad_loss_prox(const hfsad_loss *loss, size_t M, const double *x, double y, double n, const double *v,
                               double sigma, double *w, double *scratch);

/* ---- one link and the three node steps ----------------------------------------------------------------- */

/* sigma(k) = c r(k), mu(k) = alpha / r(k), so that sigma mu never changes. growth = 0: r(k) = sqrt(k), the paper's.
 * Otherwise r(k) = sqrt(k) up to k = turn, and growth times as much with every step after, but 1e8 at most: turn = 1 is
 * geometric from the first step on. */
typedef struct {
    double c, alpha;
    double turn, growth; /* turn: a whole number from 1 on; growth: 0 or above 1 */
    double over;         /* over-relaxation, 0: none. A link step takes w_child + over (w_child - z) for w_child */
} hfsad_schedule;

HFSAD_API double hfsad_schedule_root(const hfsad_schedule *s, uint64_t k); /* r(k) */
HFSAD_API double hfsad_schedule_sigma(const hfsad_schedule *s, uint64_t k);
HFSAD_API double hfsad_schedule_mu(const hfsad_schedule *s, uint64_t k);

typedef struct {
    hfsad_penalty penalty;
    hfsad_schedule schedule;
} hfsad_link_rule;

/* The whole state of a link. z and q have M numbers each and belong to the caller. */
typedef struct {
    double *z, *q;
    uint32_t k;
} hfsad_link;

/* All of w, z, q equal to start, k = 0. */
HFSAD_API void hfsad_link_start(hfsad_link *link, size_t M, const double *start);

/* The link step; link->k is already incremented. */
HFSAD_API void hfsad_link_step(const hfsad_link_rule *rule, hfsad_link *link, size_t M, const double *w_child,
                               const double *w_parent);

/* What the parent needs: u = sigma(k+1) q - Gamma; returns sigma(k+1). */
HFSAD_API double hfsad_link_message(const hfsad_link_rule *rule, const hfsad_link *link, size_t M, double *u);

/* A client: its one observation and its loss. n = |x|^2. */
typedef struct {
    const hfsad_loss *loss;
    const double *x;
    double y, n;
} hfsad_leaf;

/* One step: k is incremented, w = prox_f(z - Lambda/sigma; 1/sigma), then the link step with w_parent. */
HFSAD_API void hfsad_leaf_step(const hfsad_leaf *leaf, const hfsad_link_rule *rule, hfsad_link *link, size_t M,
                               const double *w_parent, double *w, double *scratch);

/* One step of an inner node from the sums over its children of u and of sigma: k is incremented, w is
 * updated, then the link step with w_parent. */
HFSAD_API void hfsad_inner_step(const hfsad_penalty *prior, const hfsad_link_rule *rule, hfsad_link *link, size_t M,
                                const double *sum_u, double sum_sigma, const double *w_parent, double *w);

/* The root's step. */
HFSAD_API void hfsad_root_step(const hfsad_penalty *prior, size_t M, const double *sum_u, double sum_sigma, double *w);

/* ---- a run ------------------------------------------------------------------------------------------------ */

/* What a spec file says, checked. */
typedef struct hfsad_spec hfsad_spec;

HFSAD_API hfsad_status hfsad_spec_load(hfsad_spec **spec, const char *path, hfsad_error *err);
/* All defaults, to be filled by hfsad_spec_set; files are looked for in the current folder. */
HFSAD_API hfsad_status hfsad_spec_create(hfsad_spec **spec, hfsad_error *err);
/* "run.iterations", "100"; the value is YAML. Call hfsad_spec_check after the last one. */
HFSAD_API hfsad_status hfsad_spec_set(hfsad_spec *spec, const char *key, const char *value, hfsad_error *err);
HFSAD_API hfsad_status hfsad_spec_check(const hfsad_spec *spec, hfsad_error *err);
HFSAD_API void hfsad_spec_free(hfsad_spec *spec);

/* A spec from YAML text of `length` bytes. Files that it names are looked for in the current folder. */
HFSAD_API hfsad_status hfsad_spec_parse(hfsad_spec **spec, const char *text, size_t length, hfsad_error *err);

/* hfsad_spec_set without YAML. A real setting takes a whole number and a whole one a real number without a fraction; a
 * text goes to settings of text, as it is, and to settings with a list of words. "auto" and "none" go by
 * hfsad_spec_set. */
HFSAD_API hfsad_status hfsad_spec_set_real(hfsad_spec *spec, const char *key, double value, hfsad_error *err);
HFSAD_API hfsad_status hfsad_spec_set_whole(hfsad_spec *spec, const char *key, int64_t value, hfsad_error *err);
HFSAD_API hfsad_status hfsad_spec_set_flag(hfsad_spec *spec, const char *key, bool value, hfsad_error *err);
HFSAD_API hfsad_status hfsad_spec_set_text(hfsad_spec *spec, const char *key, const char *value, hfsad_error *err);

/* The value as hfsad_spec_set takes it: "0.3", "true", "quantile", "auto"; of "overrides" the whole list. A text is
 * given as it is. It is written to buffer, cut to size and closed by a 0; *length, unless NULL, becomes its full
 * length. */
HFSAD_API hfsad_status hfsad_spec_get(const hfsad_spec *spec, const char *key, char *buffer, size_t size,
                                      size_t *length, hfsad_error *err);
/* The value of a setting of that type. auto and none are NAN for a real and -1 for a whole number. */
HFSAD_API hfsad_status hfsad_spec_get_real(const hfsad_spec *spec, const char *key, double *value, hfsad_error *err);
HFSAD_API hfsad_status hfsad_spec_get_whole(const hfsad_spec *spec, const char *key, int64_t *value, hfsad_error *err);
HFSAD_API hfsad_status hfsad_spec_get_flag(const hfsad_spec *spec, const char *key, bool *value, hfsad_error *err);

typedef enum {
    HFSAD_SETTING_REAL,
    HFSAD_SETTING_WHOLE,
    HFSAD_SETTING_FLAG,
    HFSAD_SETTING_TEXT,
    HFSAD_SETTING_CHOICE, /* one of a list of words */
} hfsad_setting_type;

/* One setting of a spec. */
typedef struct {
    size_t size;  /* sizeof(hfsad_setting), by the caller */
    char key[64]; /* "link.client.weight" */
    hfsad_setting_type type;
    const char *fallback;       /* the default as text; "auto", "none", "required" */
    char range[256];            /* "above 0", "from 1 to 1000000", "one of tv, mcp, scad", "true or false", "text" */
    const char *help;           /* a sentence */
    const char *const *choices; /* the words of a choice, closed by NULL; NULL for other types */
    const char *heading;        /* of the settings that belong together */
} hfsad_setting;

/* How many settings there are, and the i-th of them; false behind the last one. `overrides` is a list and no setting.
 */
HFSAD_API size_t hfsad_settings_count(void);
HFSAD_API bool hfsad_settings_at(size_t i, hfsad_setting *setting);
/* The same for the settings of an entry of `overrides`. */
HFSAD_API bool hfsad_settings_override_at(size_t i, hfsad_setting *setting);

/* ---- a loss of one's own ---- */

/* A client as a callback sees it; valid during the call. */
typedef struct {
    size_t node;          /* as in hfsad_run_node_name */
    size_t rows;          /* at least 1 */
    size_t M;             /* count of numbers in a model: the features, then the intercept if there is one */
    const double *y;      /* rows */
    const double *weight; /* rows; NULL: all 1 */
    const void *inside;   /* for the functions below */
} hfsad_client;

/* The product <x, w> of a row; g += a x; the row as M numbers. All three include intercept and standardisation, and
 * take time proportional to the non-zeros of a sparse row. */
HFSAD_API double hfsad_client_dot(const hfsad_client *client, size_t row, const double *w);
HFSAD_API void hfsad_client_add(const hfsad_client *client, size_t row, double a, double *g);
HFSAD_API void hfsad_client_row(const hfsad_client *client, size_t row, double *x);

/*
 * The loss of a whole client, f(w). `value` and one of `prox` and `gradient` are needed; with both, loss.solver chooses
 * (auto: prox).
 *
 * Every slot is called for different clients from different threads at once, never for one client twice at once. It
 * must give the same result for the same arguments, must not change anything that another client's call reads, and must
 * not keep a pointer after the call. It may block and allocate. The loss applies row weights itself; loss.scale is not
 * applied.
 */
typedef struct {
    size_t size;   /* sizeof(hfsad_own_loss), by the caller */
    void *context; /* passed to every call; belongs to the caller and must outlive the run */
    /* f(w), finite for every finite w. */
    double (*value)(void *context, const hfsad_client *client, const double *w);
    /* w = argmin f(w) + sigma/2 |w - v|^2, sigma > 0. On entry w is the client's last w, a starting point. v and w do
     * not overlap. loss.box is an error with it. */
    void (*prox)(void *context, const hfsad_client *client, const double *v, double sigma, double *w);
    /* g = the gradient at w (all M numbers written); returns f(w). The client then steps by linearising: f must have a
     * Lipschitz gradient on bounded sets, which is found by backtracking. */
    double (*gradient)(void *context, const hfsad_client *client, const double *w, double *g);
} hfsad_own_loss;

/* Sets the loss of clients whose loss.kind is `own`. The struct is copied. In a federation the process of a client
 * supplies it; the cloud and the edges need only the kind. */
HFSAD_API hfsad_status hfsad_spec_own_loss(hfsad_spec *spec, const hfsad_own_loss *loss, hfsad_error *err);

/* ---- data in memory ---- */

/*
 * The rows of all clients as arrays of the caller. Create the data with its shape, then set x (dense or sparse), y, the
 * node of every row and the optional parts, in any order; a second call of a function replaces the first. Shapes are
 * checked at once, numbers when the data is first used. All functions except hfsad_data_free fail while a run or a
 * result uses the data.
 */
typedef struct hfsad_data hfsad_data;

/*
 * HFSAD_COPY: the arrays of numbers are copied. HFSAD_BORROW: they stay the caller's, unchanged until the data and all
 * that was made from it is freed. A run on dense borrowed rows copies x once, into the order in which it works, and not
 * at all if
 *   - the rows lie side by side: column_stride 1, row_stride equal to features;
 *   - the rows of a client follow each other, and so do the clients of an edge;
 *   - a client has several rows, or rows have weights, or there is an intercept;
 *   - features.standardize is false.
 * Names are always copied.
 */
typedef enum { HFSAD_COPY, HFSAD_BORROW } hfsad_keep;

HFSAD_API hfsad_status hfsad_data_create(hfsad_data **data, size_t rows, size_t features, hfsad_keep keep,
                                         hfsad_error *err);
/* Releases the caller's reference; the memory is freed with the last run or result that uses it. NULL is allowed. */
HFSAD_API void hfsad_data_free(hfsad_data *data);

/* Feature m of row r is x[r * row_stride + m * column_stride]; strides count numbers, not bytes. */
HFSAD_API hfsad_status hfsad_data_dense(hfsad_data *data, const double *x, ptrdiff_t row_stride,
                                        ptrdiff_t column_stride, hfsad_error *err);
/* Compressed rows: those of row r are value[start[r]] to value[start[r + 1] - 1], in the columns column[start[r]] ...,
 * counted from 0 and rising. */
HFSAD_API hfsad_status hfsad_data_csr(hfsad_data *data, const int32_t *start, const int32_t *column,
                                      const double *value, hfsad_error *err);
HFSAD_API hfsad_status hfsad_data_csr64(hfsad_data *data, const int64_t *start, const int64_t *column,
                                        const double *value, hfsad_error *err);
/* y of row r is y[r * stride]. Data without y can only be predicted. */
HFSAD_API hfsad_status hfsad_data_y(hfsad_data *data, const double *y, ptrdiff_t stride, hfsad_error *err);
/* Weights of the rows, above 0; without them all are 1. */
HFSAD_API hfsad_status hfsad_data_weights(hfsad_data *data, const double *weight, ptrdiff_t stride, hfsad_error *err);
/* The client of every row with its path: "edge1/client7", "region2/edge1/client7", "client7" (right below the cloud).
 */
HFSAD_API hfsad_status hfsad_data_paths(hfsad_data *data, const char *const *paths, hfsad_error *err);
/* The same with integer codes: row r belongs to the client paths[codes[r]]. Paths without rows are ignored. */
HFSAD_API hfsad_status hfsad_data_codes(hfsad_data *data, const int64_t *codes, const char *const *paths,
                                        size_t n_paths, hfsad_error *err);
/* A name for every feature. */
HFSAD_API hfsad_status hfsad_data_feature_names(hfsad_data *data, const char *const *names, hfsad_error *err);
/* The model that the data was drawn from, one number per feature: adds relative_error to the figures. */
HFSAD_API hfsad_status hfsad_data_truth(hfsad_data *data, const double *truth, hfsad_error *err);

/* ---- the run ---- */

#define HFSAD_TIERS_MAX 16

/* The figures of one row of the trace; docs/algorithm.md defines each. A baseline has no residuals and no smoothing
 * gap: they are NAN. */
typedef struct {
    uint64_t iteration;
    double objective, consensus_objective;
    double primal_residual, dual_residual;
    double consensus_gap, smoothing_gap;
    double relative_error; /* NAN if the truth is not known */
    double seconds;
    uint64_t bytes_up, bytes_down;
    size_t tiers; /* tier t: the links at depth t + 1 */
    double primal_tier[HFSAD_TIERS_MAX], dual_tier[HFSAD_TIERS_MAX];
    double
        gap_bound; /* upper bound on the objective less its minimum; INFINITY: none yet, NAN: only the star has one */
} hfsad_figures;

/* A federation in this process: the tree, the data and the state of every link. */
typedef struct hfsad_run hfsad_run;
/* The result of a run. */
typedef struct hfsad_result hfsad_result;

/* Reads the data that the spec names and allocates all memory. threads = 0: one per core. The spec may be freed
 * afterwards. */
HFSAD_API hfsad_status hfsad_run_create(hfsad_run **run, const hfsad_spec *spec, unsigned threads, hfsad_error *err);
/* The same on data in memory; the spec's `data` is ignored. */
HFSAD_API hfsad_status hfsad_run_create_on(hfsad_run **run, const hfsad_spec *spec, hfsad_data *data, unsigned threads,
                                           hfsad_error *err);
HFSAD_API void hfsad_run_free(hfsad_run *run);
/* The settings of the run with the numbers that the presets have chosen, for hfsad_spec_get; it belongs to the run. A
 * setting that differs between nodes of a tier stays auto. */
HFSAD_API const hfsad_spec *hfsad_run_settings(const hfsad_run *run);
/* One global iteration; allocates nothing. */
HFSAD_API void hfsad_run_iterate(hfsad_run *run);
/* The figures at the current point; the run owns them until it is measured again. HFSAD_ERROR_DIVERGED: the objective
 * is not finite, and *figures says so. */
HFSAD_API hfsad_status hfsad_run_measure(hfsad_run *run, const hfsad_figures **figures, hfsad_error *err);
/* Whether the stop rule's tolerances were met at the last measurement. */
HFSAD_API bool hfsad_run_converged(const hfsad_run *run);

/* The result of hfsad_run_polish. */
typedef struct {
    bool accepted;
    bool unbounded;   /* no minimum exists: the loss of some rows decreases without limit as the model grows */
    char reason[200]; /* why it was not accepted, or why no minimum exists, or "" */
    double objective_before,
        objective_after;   /* of one model for all nodes: the cloud's, cut to the box; the polished one */
    double objective_zero; /* of the model 0 */
    double gap;            /* upper bound on objective_after minus the minimum (convex problems); INFINITY: not known;
                       NAN: not accepted */
    double residual;       /* largest remaining derivative, relative to the sum of the sizes of its terms */
    double relative_error; /* NAN if the truth is not known */
    uint64_t exchanges;    /* number of questions to all clients, each answered by sums */
    uint64_t bytes_up, bytes_down;
    double seconds;
} hfsad_polish;

/*
 * The last stage of a run: finds one model for all nodes that minimises the objective without smoothing (convex
 * losses), or is stationary (phase retrieval, mcp and scad priors). If the model is accepted, hfsad_run_node_model
 * returns it for every node until the run iterates again; the state of the run does not change. `proceed` (may be NULL)
 * is called before every exchange; if it returns false, the polish ends and changes nothing. *result (result may be
 * NULL) belongs to the run until the run iterates or is polished again.
 */
HFSAD_API hfsad_status hfsad_run_polish(hfsad_run *run, bool (*proceed)(void *context, const hfsad_polish *so_far),
                                        void *context, const hfsad_polish **result, hfsad_error *err);

/* Whether the run's models are at the optimum. */
typedef enum {
    HFSAD_VERDICT_UNKNOWN,       /* no bound is known: the problem is not convex, or was not polished */
    HFSAD_VERDICT_CONVERGED,     /* the objective is at most HFSAD_VERDICT_GAP above its minimum, relatively */
    HFSAD_VERDICT_NOT_CONVERGED, /* this could not be proven */
} hfsad_verdict_kind;

#define HFSAD_VERDICT_GAP 1e-4

typedef struct {
    hfsad_verdict_kind kind;
    double gap;     /* upper bound on the objective minus its minimum; NAN: not known */
    char text[400]; /* one line: "converged: ...", "not converged: ... and the way out", "not known: ... and why" */
} hfsad_verdict;

/* The verdict on the current state of the run, after hfsad_run_polish if there was one; it belongs to the run until the
 * next call. */
HFSAD_API const hfsad_verdict *hfsad_run_verdict(hfsad_run *run);

/* Writes a checkpoint, replacing the file whole; run must not be iterating. Its folder must exist. */
HFSAD_API hfsad_status hfsad_run_save(const hfsad_run *run, const char *path, hfsad_error *err);
/* Restores a checkpoint into a run with the same spec and data. The run then continues to the same bits, with any
 * number of threads. Of the settings, run.iterations, run.stop and output (except output.clients) may differ. On
 * failure the run is unchanged. */
HFSAD_API hfsad_status hfsad_run_resume(hfsad_run *run, const char *path, hfsad_error *err);

/* Count of numbers in a model: the features, then the intercept if there is one. */
HFSAD_API size_t hfsad_run_features(const hfsad_run *run);
HFSAD_API bool hfsad_run_intercept(const hfsad_run *run);
HFSAD_API size_t hfsad_run_nodes(const hfsad_run *run);
/* Node 0 is the cloud, then the inner nodes by depth, then the clients: "cloud", "edge1", "edge1/client7". The
 * name is written to buffer (cut to size) and its full length is returned. */
HFSAD_API size_t hfsad_run_node_name(const hfsad_run *run, size_t node, char *buffer, size_t size);
/* Copies the node's w, in the units of the data. If the spec's output.clients is false, a client has its copy z instead
 * of its own w. */
HFSAD_API void hfsad_run_node_model(const hfsad_run *run, size_t node, double *w);

/* ---- training ---- */

/* Why a run has stopped. */
#define HFSAD_STOP_LIST(X)                                                                                             \
    X(RUNNING, "running")                                                                                              \
    X(ITERATIONS, "iterations")                                                                                        \
    X(TOLERANCE, "tolerance")                                                                                          \
    X(INTERRUPTED, "interrupted")                                                                                      \
    X(DIVERGED, "diverged")

typedef enum {
#define HFSAD_STOP_ENUM(name, text) HFSAD_STOP_##name,
    HFSAD_STOP_LIST(HFSAD_STOP_ENUM)
#undef HFSAD_STOP_ENUM
} hfsad_stop;

/* "tolerance" */
HFSAD_API const char *hfsad_stop_name(hfsad_stop stop);

/* Argument of a callback; it belongs to the library. */
typedef struct {
    const hfsad_figures *figures; /* of the last row of the trace */
    const hfsad_polish *polish;   /* NULL: the row is new; otherwise the polish so far, before its next exchange */
} hfsad_progress;

/* Returns false to stop the training. Called by the training thread between iterations; it may read the run, write it
 * to a folder and save it, but must not change it. */
typedef bool (*hfsad_callback)(void *context, const hfsad_progress *progress);

/*
 * Trains from the current state of the run, by run.iterations, run.stop, run.trace_every and run.polish. callback (may
 * be NULL) is called for every row of the trace, with the start as iteration 0, and during the polish. *result (result
 * may be NULL) becomes the result, also after HFSAD_ERROR_DIVERGED; NULL on any other failure. Another call continues a
 * cancelled run, to the same bits.
 */
HFSAD_API hfsad_status hfsad_run_train(hfsad_run *run, hfsad_callback callback, void *context, hfsad_result **result,
                                       hfsad_error *err);
/* Ends the current training after its current iteration, or the next training if none is under way. May be called from
 * any thread and from a signal handler. */
HFSAD_API void hfsad_run_cancel(hfsad_run *run);
/* Starts every node from its model in `from`, or from its nearest ancestor's if `from` lacks the node. Call it before
 * the first iteration. */
HFSAD_API hfsad_status hfsad_run_warm_start(hfsad_run *run, const hfsad_result *from, hfsad_error *err);
/* Writes trace.csv, model.csv, state.csv, summary.json and checkpoint.bin, as `hfsad run` does; creates the folder. */
HFSAD_API hfsad_status hfsad_run_write(hfsad_run *run, const char *folder, hfsad_error *err);

/* Whether run.stop.time ended the last training. hfsad_run_remedy: advice if the iterates diverge. */
HFSAD_API bool hfsad_run_timed_out(const hfsad_run *run);
HFSAD_API const char *hfsad_run_remedy(const hfsad_run *run);
/* The number of repairs of the safeguard so far, and the iteration of the last. */
HFSAD_API uint64_t hfsad_run_repairs(const hfsad_run *run, uint64_t *last);

/* ---- a run into a folder, as `hfsad run` makes it ---- */

typedef struct hfsad_job hfsad_job;

/* The texts must outlive the job. */
typedef struct {
    size_t size;           /* sizeof(hfsad_job_settings), by the caller; members that do not apply are 0 */
    const char *folder;    /* for the output; created when the training begins */
    const char *spec_path; /* file of the spec; may be NULL if a run is resumed */
    bool resume;           /* continue the run in the folder from its checkpoint */
    bool force;            /* replace results of another spec in the folder */
    unsigned threads;      /* 0: one per core */
    const char *replay;    /* record of a federation to repeat */
    const char *warm;      /* output folder or model.csv that every node starts from */
    const char *device;    /* "cuda"; NULL: the processor */
    void *context;
    /* Changes settings before they are checked; false ends the set-up with HFSAD_ERROR_INPUT. */
    bool (*adjust)(void *context, hfsad_spec *spec);
} hfsad_job_settings;

/* Every hook may be NULL. */
typedef struct {
    size_t size; /* sizeof(hfsad_job_hooks), by the caller */
    void *context;
    /* Called when the folder exists and is locked; false ends the job with HFSAD_ERROR_INPUT. */
    bool (*opened)(void *context);
    /* Called after every iteration; true: stop. */
    bool (*cancelled)(void *context);
    void (*row)(void *context, const hfsad_figures *row);
    void (*begun)(void *context, const hfsad_figures *figures);
    void (*iterated)(void *context, uint64_t iteration, const hfsad_figures *figures);
    /* The folder could not be updated; the run continues and tries again later. */
    void (*unwritten)(void *context, const hfsad_figures *figures, const char *why);
    /* Called before the polish, and before each of its exchanges; false: stop the polish. */
    void (*trained)(void *context);
    bool (*polishing)(void *context, const hfsad_polish *so_far);
} hfsad_job_hooks;

/* Checks spec, data and settings completely; writes nothing. */
HFSAD_API hfsad_status hfsad_job_create(hfsad_job **job, const hfsad_job_settings *settings, hfsad_error *err);
/* Trains to the end, or until it is cancelled, and writes the folder on the way and at the end. A run that diverges is
 * not an error here: *stop is HFSAD_STOP_DIVERGED. */
HFSAD_API hfsad_status hfsad_job_train(hfsad_job *job, const hfsad_job_hooks *hooks, hfsad_stop *stop,
                                       hfsad_error *err);
/* NULL is allowed. */
HFSAD_API void hfsad_job_free(hfsad_job *job);
/* Of the job: its run, its spec, and the last figures. */
HFSAD_API hfsad_run *hfsad_job_run(const hfsad_job *job);
HFSAD_API const hfsad_spec *hfsad_job_spec(const hfsad_job *job);
HFSAD_API const hfsad_figures *hfsad_job_figures(const hfsad_job *job);
/* The table that `hfsad run` ends with, to be freed by free; NULL: no memory. */
HFSAD_API char *hfsad_job_table(const hfsad_job *job);
/* Whether the folder has results of another spec than the one at this path: HFSAD_ERROR_INPUT. */
HFSAD_API hfsad_status hfsad_folder_check_owner(const char *folder, const char *spec_path, hfsad_error *err);

/* ---- results ---- */

/* The result of a run, in its own arrays. A result never changes, and any number of threads may read it at the same
 * time. Returned pointers belong to the result. */

/* The result of the current state of a run. */
HFSAD_API hfsad_status hfsad_result_take(hfsad_result **result, hfsad_run *run, hfsad_error *err);
/* From the output folder of `hfsad run`, `hfsad up` or hfsad_run_write. */
HFSAD_API hfsad_status hfsad_result_load(hfsad_result **result, const char *folder, hfsad_error *err);
/* The same without the models: hfsad_result_nodes is then 0. trace.csv and summary.json are enough. */
HFSAD_API hfsad_status hfsad_result_load_trace(hfsad_result **result, const char *folder, hfsad_error *err);
HFSAD_API void hfsad_result_free(hfsad_result *result);

/* Node 0 is the cloud, then the other inner nodes, then the clients, which are left out if output.clients is false. */
HFSAD_API size_t hfsad_result_nodes(const hfsad_result *result);
HFSAD_API size_t hfsad_result_inner_nodes(const hfsad_result *result);
/* Count of numbers in a model; the intercept is the last if there is one. */
HFSAD_API size_t hfsad_result_width(const hfsad_result *result);
HFSAD_API bool hfsad_result_intercept(const hfsad_result *result);
/* Standard errors of the cloud's model, `width` numbers, NAN for a coefficient without one; NULL: the run had no
 * output.errors, or did not get to the minimum. */
HFSAD_API const double *hfsad_result_errors(const hfsad_result *result);
/* All models, in the units of the data: nodes rows of `width` numbers. */
HFSAD_API const double *hfsad_result_models(const hfsad_result *result);
HFSAD_API const char *hfsad_result_node_name(const hfsad_result *result, size_t node);
/* The node of that name; SIZE_MAX: none. */
HFSAD_API size_t hfsad_result_find(const hfsad_result *result, const char *name);

/* The columns of trace.csv. hfsad_result_trace: the numbers of a column, one per row; NULL: no such column. */
HFSAD_API size_t hfsad_result_trace_rows(const hfsad_result *result);
HFSAD_API size_t hfsad_result_trace_columns(const hfsad_result *result);
HFSAD_API const char *hfsad_result_trace_name(const hfsad_result *result, size_t column);
HFSAD_API const double *hfsad_result_trace(const hfsad_result *result, const char *name);

/* The number of groups of clients that mcp and scad links have found; 0: no link of this kind. */
HFSAD_API size_t hfsad_result_groups(const hfsad_result *result);
/* The group of a client's node, from 0; group 0 has the cloud's model. */
HFSAD_API size_t hfsad_result_group(const hfsad_result *result, size_t node);

/* Why the run stopped, and whether its models are at the optimum. */
HFSAD_API hfsad_stop hfsad_result_stop(const hfsad_result *result);
HFSAD_API const hfsad_verdict *hfsad_result_verdict(const hfsad_result *result);

/* The settings in force, as by hfsad_run_settings. */
HFSAD_API const hfsad_spec *hfsad_result_settings(const hfsad_result *result);
/* The algorithm that trained it: "star", "hfsad", "fedavg", "fedprox". */
HFSAD_API const char *hfsad_result_algorithm(const hfsad_result *result);

/* ---- prediction and evaluation ---- */

/* The model that a client's rows get. AUTO: its own, otherwise that of its nearest ancestor. CLIENT, EDGE: its own, or
 * its parent's; a client without one is an error. */
typedef enum { HFSAD_WITH_AUTO, HFSAD_WITH_CLIENT, HFSAD_WITH_EDGE, HFSAD_WITH_CLOUD } hfsad_with;

/* A prediction for every row of data, in its order: <x, w> with the intercept; its square for phase-retrieval, the
 * probability of the label 1 for logistic, the margin for hinge. */
HFSAD_API hfsad_status hfsad_result_predict(const hfsad_result *result, hfsad_data *data, hfsad_with with,
                                            double *prediction, hfsad_error *err);

#define HFSAD_WITH_WORDS "auto", "client", "edge", "cloud" /* of hfsad_with */

/* Receives part of a table, after `done` of `rows` rows; returns false to stop. */
typedef bool hfsad_put(void *context, const char *text, size_t length, size_t done, size_t rows);
/* The predictions for a file of rows by the models of an output folder, as `hfsad predict` prints them. `put` is called
 * only after all rows are predicted. */
HFSAD_API hfsad_status hfsad_predict_table(const char *folder, const char *data, hfsad_with with, hfsad_put *put,
                                           void *context, hfsad_error *err);
/* The group, the weights of all groups and the model of every client in a file of rows with y, as `hfsad assign` prints
 * them, by the groups that a run with `personal: groups` left in the folder. */
HFSAD_API hfsad_status hfsad_assign_table(const char *folder, const char *data, hfsad_put *put, void *context,
                                          hfsad_error *err);

/* Evaluation of files, as `hfsad evaluate` does it. */
typedef struct {
    size_t size;        /* sizeof(hfsad_evaluate_settings), by the caller; members that do not apply are 0 */
    const char *model;  /* output folder */
    const char *data;   /* file of held-out rows */
    hfsad_with with;    /* whose model a client gets */
    const char *truth;  /* file with the true model */
    const char *groups; /* CSV client,group; NULL: the groups that the run found */
    const char *out;    /* folder for evaluation.csv and evaluation.json; NULL: no files */
    void *context;
    /* Called after every client, and before the files are replaced; false: stop, and leave the folder unchanged. */
    bool (*proceed)(void *context, size_t done, size_t clients);
} hfsad_evaluate_settings;
/* *table: the table that the program prints, to be freed by free. */
HFSAD_API hfsad_status hfsad_evaluate_folder(const hfsad_evaluate_settings *settings, char **table, hfsad_error *err);

/* Figures of the rows of a client, or of all clients below a node; NAN: there is no such figure. */
typedef struct {
    size_t size; /* sizeof(hfsad_row_figures), by the caller */
    size_t rows;
    double weight;   /* sum of the rows' weights */
    double loss;     /* weighted mean over the rows */
    double total;    /* sum of the clients' losses, each a sum or a mean as loss.scale says */
    double accuracy; /* logistic, hinge: share of right labels */
    double coverage; /* quantile: share of rows with y at or below the prediction */
    /* Rows without labels: root mean square and mean absolute error of the prediction, share of explained variance. */
    double rmse, mae, r2;
    /* Rows with labels, of which 1 is the positive: area under the ROC curve, F1; logistic: mean distance between the
     * probability and the share of positives in ten bins; weight of the rows by label and prediction. */
    double auc, f1, calibration, true_positive, false_positive, true_negative, false_negative;
    double pinball; /* quantile, smoothed-quantile: mean of max(tau r, (tau - 1) r), r = y - prediction */
} hfsad_row_figures;

typedef struct hfsad_evaluation hfsad_evaluation;

/* Evaluates the models on rows with y, with the loss of the training. */
HFSAD_API hfsad_status hfsad_result_evaluate(const hfsad_result *result, hfsad_data *data, hfsad_with with,
                                             hfsad_evaluation **evaluation, hfsad_error *err);
HFSAD_API void hfsad_evaluation_free(hfsad_evaluation *evaluation);
/* The nodes of the data, the cloud first, whose figures are those of all rows. */
HFSAD_API size_t hfsad_evaluation_nodes(const hfsad_evaluation *evaluation);
HFSAD_API const char *hfsad_evaluation_node_name(const hfsad_evaluation *evaluation, size_t node);
HFSAD_API void hfsad_evaluation_figures(const hfsad_evaluation *evaluation, size_t node, hfsad_row_figures *figures);
/* Median over the clients of their mean losses. */
HFSAD_API double hfsad_evaluation_median(const hfsad_evaluation *evaluation);

/* ---- paths over lambda ---- */

/* The same run for one lambda of a prior after another, from large to small, each from the end of the one before. */
typedef struct hfsad_path hfsad_path;

/* ONE_SE: the largest lambda whose loss in the cross-validation is at most one standard error above the least one; CV:
 * the one with the least. */
typedef enum {
    HFSAD_SELECT_HELDOUT,
    HFSAD_SELECT_BIC,
    HFSAD_SELECT_AIC,
    HFSAD_SELECT_ONE_SE,
    HFSAD_SELECT_CV
} hfsad_select;

typedef struct {
    size_t size;              /* sizeof(hfsad_path_settings), by the caller; all other members may be 0 */
    const double *lambdas;    /* n_lambdas of them, falling; NULL: in equal ratios from the least one that makes the
                                 cloud's model zero */
    size_t n_lambdas;         /* 0: 30 */
    double ratio;             /* the last lambda over the first; 0: 1e-3 */
    bool edges;               /* the prior of the edges; otherwise of the cloud */
    double heldout_share;     /* fraction of every client's rows to hold out; 0: none */
    hfsad_data *heldout;      /* held-out rows; NULL: none */
    const char *heldout_file; /* the same in a file */
    hfsad_select select;      /* HELDOUT needs held-out rows */
    unsigned threads;         /* 0: one per core */
    size_t folds;             /* of cross-validation; 0: none. ONE_SE and CV need them */
    bool fold_clients;        /* folds of whole clients; otherwise of the rows of every client */
    const char *folder;       /* for path.csv, path.png, path.svg and best/; refused if one of these is read. NULL: no
                                 file is checked */
    const char *spec_path;    /* file of the spec, one of those that are read; NULL: none */
} hfsad_path_settings;

enum { HFSAD_PATH_LAMBDAS = 30, HFSAD_PATH_LAMBDAS_MOST = 10000 }; /* by default, and at most */

/* One lambda of a path. */
typedef struct {
    size_t size; /* sizeof(hfsad_path_point), by the caller */
    double lambda, objective, consensus_objective;
    size_t nonzero; /* coefficients of the cloud's model */
    double heldout; /* mean loss of the held-out rows; NAN: there are none */
    double bic, aic;
    double relative_error;      /* NAN: the truth is not known */
    double cv_loss, cv_error;   /* mean loss over the folds, and its standard error; NAN: there are none */
    hfsad_verdict_kind verdict; /* a path by star proves its points */
    double gap_bound;           /* upper bound on the objective minus its minimum; NAN: not known */
} hfsad_path_point;

/* data NULL: the data that the spec names. Of settings only the data must stay valid after the call. */
HFSAD_API hfsad_status hfsad_path_create(hfsad_path **path, const hfsad_spec *spec, hfsad_data *data,
                                         const hfsad_path_settings *settings, hfsad_error *err);
HFSAD_API void hfsad_path_free(hfsad_path *path);
/* Trains all points. `point` (may be NULL) is called for each point, `proceed` (may be NULL) after every iteration. If
 * one of them returns false, the training ends with HFSAD_ERROR_INPUT, and the path can only be freed. */
HFSAD_API hfsad_status hfsad_path_train(hfsad_path *path,
                                        bool (*point)(void *context, size_t done, const hfsad_path_point *point),
                                        bool (*proceed)(void *context), void *context, hfsad_error *err);
HFSAD_API size_t hfsad_path_points(const hfsad_path *path);
HFSAD_API void hfsad_path_at(const hfsad_path *path, size_t i, hfsad_path_point *point);
/* The cloud's models: `points` rows of hfsad_path_width numbers. */
HFSAD_API size_t hfsad_path_width(const hfsad_path *path);
HFSAD_API const double *hfsad_path_models(const hfsad_path *path);
/* The index of the chosen point, and its complete result, for which the run is repeated. */
HFSAD_API size_t hfsad_path_chosen(const hfsad_path *path);
HFSAD_API hfsad_status hfsad_path_result(hfsad_path *path, hfsad_result **result, hfsad_error *err);
/* The verdict on the whole path; it says why points could not be proven. */
HFSAD_API const hfsad_verdict *hfsad_path_verdict(const hfsad_path *path);
/* The text of path.csv, to be freed by free: a row per point with its figures and the cloud's model; NULL: no memory.
 */
HFSAD_API char *hfsad_path_table(const hfsad_path *path);
/* Writes that result to a folder, as hfsad_run_write does. */
HFSAD_API hfsad_status hfsad_path_write(hfsad_path *path, const char *folder, hfsad_error *err);

#ifdef __cplusplus
}
#endif

#endif
