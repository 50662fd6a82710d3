/*
 * Every question of the cloud to the nodes below it, written once. A row is
 *
 *     X(name, down, most, up, answer, how, bound, mask, budget, limit, by, words)
 *
 * name    with the prefix of its list. The number on the wire follows from the order: new rows come last in a list.
 *
 * down    numbers that go down: vectors of a model's length, lower triangles row by row, single numbers
 *
 * most    numbers of an answer that are combined by their maximum on the way up
 *
 * up      numbers of an answer that are added on the way up, in slot order
 *
 * answer  the function of a client, in the file that expands the list
 *
 * how     ASK_... below: how it travels, what it leaves behind, which answers are possible
 *
 * bound   the numbers that privacy.largest bounds, BOUND_... below
 *
 * mask    what becomes of an answer with secure aggregation
 *
 * budget  what becomes of the question with privacy.rho
 *
 * limit   different questions that a client answers, for each score. 0: the order of the set-up (net/warden.c) or the
 * rounds of training have the limit.
 *
 * by      the specs that imply it, and the word of privacy.refuse that excludes it
 *
 * words   the question in the audit
 *
 * plan/survey, polish/answers, personal/mixture and net/node_question expand a list each for what a node does;
 * net/catalogue expands all of them for what a client allows. Retransmission, waiting and crashes are the same for all
 * rows: net/inquiry.c (the first four lists), net/node_question.c (training). docs/audit.md shows the table, and
 * tests/test_catalogue.c compares the two.
 */
#ifndef HFSAD_PLAN_QUESTIONS_H
#define HFSAD_PLAN_QUESTIONS_H

#include <stddef.h>

enum { SURVEY_THRESHOLDS = 32 };

enum {
    ASK_KEPT = 1,       /* a node keeps a part of it: in memory, and the question is asked again if a client is lost; in
                           training on disk */
    ASK_MOVES = 2,      /* answering twice would move the client twice: a repeated question gets the last answer */
    ASK_SMALL = 4,      /* not asked if the second derivative is too large to travel */
    ASK_TERMS = 8,      /* every row adds one term to each number of the answer */
    ASK_HOLDS = 16,     /* no round begins while it is in hand */
    ASK_AT_ONCE = 32,   /* an inner node forwards it at once; otherwise when its own rounds have reached it */
    ASK_ANNOUNCED = 64, /* every node takes note of it and answers 1 for itself; clients do not ask their rows */
    ASK_RESULT = 128,   /* it is the result of the set-up, which outlasts a crash */
    ASK_LAST_WORD = 256, /* it counts from the second time on in a connection, and is never too old */
    ASK_IN_ORDER = 512,  /* numbers only grow: an older question would make clients drop their state */
    ASK_ERRORS = 16384,  /* of the standard errors, which come after everything else */
    /* numbers of an answer that no rows can make negative */
    ASK_POSITIVE = 1024,         /* all */
    ASK_POSITIVE_FIRST = 2048,   /* the first */
    ASK_POSITIVE_COLUMNS = 4096, /* all but the last two */
    ASK_FLAGS_AND_ROWS = 8192    /* two flags, a number of rows, then flags */
};

/* The numbers of a question that privacy.largest bounds; 0 and above: from this place on. */
enum {
    BOUND_NONE = -1,   /* thresholds, a matrix, a direction, or no numbers */
    BOUND_POINT = -2,  /* the second half, a point; the first is a direction */
    BOUND_GROUPS = -3, /* the models of one or two mixtures */
};

typedef enum {
    MASK_BUCKETS, /* masked; maxima travel as a histogram */
    MASK_FLAGS,   /* masked; maxima are flags, which are counted */
    MASK_APART,   /* masked; a lost client says so in the open */
    MASK_SUM,     /* masked; there are no maxima */
    MASK_ZEROS,   /* zeros are sent */
    MASK_NOTHING, /* its answer has nothing of the rows */
} question_mask;

typedef enum {
    BUDGET_MADE_UP,   /* answered for made-up rows */
    BUDGET_NOT_ASKED, /* refused: the spec does not imply it */
    BUDGET_NOTHING,   /* its answer has nothing of the rows */
    BUDGET_NOISE,     /* the answer has the noise of the last round */
    BUDGET_ZEROS,     /* asked; what the rows would say is not computed, and zeros are sent */
} question_budget;

typedef struct {
    size_t vectors, triangles, numbers;
} question_shape;

static inline size_t question_count(question_shape s, size_t M)
{
    return s.vectors * M + s.triangles * (M * (M + 1) / 2) + s.numbers;
}

/* ---- words of the columns ---- */

#define SHAPE_OF(vectors, triangles, numbers)                                                                          \
    {                                                                                                                  \
        vectors, triangles, numbers                                                                                    \
    }
#define SHAPE_NOTHING SHAPE_OF(0, 0, 0)
#define SHAPE_NUMBERS(n) SHAPE_OF(0, 0, n)
#define SHAPE_VECTOR SHAPE_OF(1, 0, 0)
#define SHAPE_VECTORS(n) SHAPE_OF(n, 0, 0)
#define SHAPE_VECTOR_AND(n) SHAPE_OF(1, 0, n)
#define SHAPE_TRIANGLE SHAPE_OF(0, 1, 0)

/* Polish and star have at most POLISH_EXCHANGES questions, and as many again if a choice of columns is given up.
 * Questions without vectors count each time that they come, also from a cloud that was restarted. Standard errors have
 * 15, and four times as many may come: another process of the cloud may find a model that differs in its last digits.
 */
#define LIMIT_STEPS (2 * POLISH_EXCHANGES)
#define LIMIT_BARE (10 * POLISH_EXCHANGES)
#define LIMIT_WIDTHS (4 * 13)
#define LIMIT_ERRORS 4
#define LIMIT_GROUPS 100000

/* The specs that imply a question, in words; the word of privacy.refuse that excludes it, "": none; and the condition
 * itself, NULL if the order of the set-up has it (warden.c: steps). */
#define WORDS_START                                                                                                    \
    "`run.start: spectral` or `robust`; phase retrieval unless `run.start` is given and `run.cycles: false`"
#define WORDS_INTERCEPT "`features.intercept`"
#define WORDS_BASELINE "`algorithm: fedavg` or `fedprox`"
#define WORDS_TUNED "`preset: tuned` and a convex loss, unless the star trains"
#define WORDS_STAR "`algorithm: star` or `auto`"
#define WORDS_POLISH "`run.polish`, `algorithm: star` or `auto`"
#define WORDS_GROUPS "`personal: groups`"

#define BY_EVERY "every spec", "", NULL
#define BY_START WORDS_START, "robust-start", NULL
#define BY_START_OR_BASELINE WORDS_START "; " WORDS_BASELINE, "robust-start, step", NULL
#define BY_START_OR_LAMBDA "`lambda: auto` of a prior; " WORDS_START, "", NULL
#define BY_STANDARDIZE "`features.standardize`", "standardize", NULL
#define BY_INTERCEPT WORDS_INTERCEPT, "", NULL
#define BY_INTERCEPT_OR_BASELINE WORDS_INTERCEPT "; " WORDS_BASELINE, "", NULL
#define BY_BASELINE WORDS_BASELINE, "step", NULL
#define BY_OWN_LOSS "`loss.kind: own`", "", NULL
#define BY_TUNED_INTERCEPT WORDS_TUNED ", with " WORDS_INTERCEPT, "", NULL
#define BY_TUNED_OR_BASELINE WORDS_TUNED ", of bounded slope; " WORDS_BASELINE, "", NULL
#define BY_STAR WORDS_STAR, "star", implied_by_star
#define BY_POLISH WORDS_POLISH, "polish", implied_by_polish
#define BY_PHASE WORDS_POLISH ", of phase retrieval", "polish", implied_by_phase
#define BY_STAR_OR_PHASE WORDS_STAR "; " WORDS_POLISH ", of phase retrieval", "", implied_by_star_or_phase
#define BY_ERRORS "`output.errors`", "errors", implied_by_errors
#define BY_GROUPS WORDS_GROUPS, "groups", implied_by_groups
#define BY_SHOWN_GROUPS                                                                                                \
    WORDS_GROUPS ", if clients have rows in `model.csv`: not with secure aggregation", "groups", implied_by_shown_groups
#define BY_ROUNDS "every spec that trains by rounds", "", NULL

/* ---- before training: sums over the rows of all clients, SURVEY_... ----
 *
 * w: a row's weight; N: thresholds. CURVE and CURVE_ALONE have their vectors and answers once for every group of nodes;
 * LEVELS may be without its vector. */
#define SURVEY_QUESTIONS(X)                                                                                            \
    X(CENTRE, SHAPE_NOTHING, 0, SHAPE_NUMBERS(2), answer_sums, ASK_POSITIVE_FIRST, BOUND_NONE, MASK_BUCKETS,           \
      BUDGET_NOT_ASKED, 0, BY_INTERCEPT_OR_BASELINE, "sum of y")                                                       \
    X(SCALE, SHAPE_NUMBERS(1), 1, SHAPE_NUMBERS(5), answer_scale, ASK_POSITIVE, BOUND_NONE, MASK_BUCKETS,              \
      BUDGET_MADE_UP, 0, BY_EVERY, "scale of the data: largest slope, sums of squares")                                \
    X(OWN, SHAPE_NUMBERS(1), 1, SHAPE_NUMBERS(1), answer_own, 0, BOUND_NONE, MASK_BUCKETS, BUDGET_NOT_ASKED, 0,        \
      BY_OWN_LOSS, "slope and bend of the own loss")                                                                   \
    X(BOUND, SHAPE_NOTHING, 1, SHAPE_NOTHING, answer_bound, ASK_POSITIVE, BOUND_NONE, MASK_BUCKETS, BUDGET_MADE_UP, 0, \
      BY_EVERY, "largest slope within the box")                                                                        \
    X(COLUMNS, SHAPE_NOTHING, 0, SHAPE_VECTOR_AND(2), answer_columns, ASK_POSITIVE_COLUMNS, BOUND_NONE, MASK_BUCKETS,  \
      BUDGET_NOT_ASKED, 0, BY_START, "sums of squares of the columns")                                                 \
    X(BELOW, SHAPE_NUMBERS(SURVEY_THRESHOLDS), 0, SHAPE_NUMBERS(SURVEY_THRESHOLDS + 1), answer_below, ASK_POSITIVE,    \
      BOUND_NONE, MASK_BUCKETS, BUDGET_NOT_ASKED, 0, BY_START_OR_BASELINE, "rows with y below thresholds")             \
    X(BELOW_ONE, SHAPE_NUMBERS(SURVEY_THRESHOLDS), 0, SHAPE_NUMBERS(SURVEY_THRESHOLDS + 1), answer_below,              \
      ASK_POSITIVE, BOUND_NONE, MASK_BUCKETS, BUDGET_NOT_ASKED, 0, BY_START, "rows with y/|x|^2 below thresholds")     \
    X(BELOW_FIT, SHAPE_VECTOR_AND(SURVEY_THRESHOLDS), 0, SHAPE_NUMBERS(SURVEY_THRESHOLDS + 1), answer_below,           \
      ASK_POSITIVE, SURVEY_THRESHOLDS, MASK_BUCKETS, BUDGET_NOT_ASKED, 0, BY_START,                                    \
      "rows with y/<x,v>^2 below thresholds")                                                                          \
    X(TRUNCATED, SHAPE_VECTOR_AND(1), 0, SHAPE_VECTOR, answer_direction, 0, 1, MASK_BUCKETS, BUDGET_NOT_ASKED, 0,      \
      BY_START, "spectral start: product with a vector")                                                               \
    X(ROBUST, SHAPE_VECTOR_AND(1), 0, SHAPE_VECTOR, answer_direction, 0, 1, MASK_BUCKETS, BUDGET_NOT_ASKED, 0,         \
      BY_START, "robust start: product with a vector")                                                                 \
    X(LEFT, SHAPE_VECTOR, 0, SHAPE_NUMBERS(2), answer_sums, ASK_POSITIVE_FIRST, 0, MASK_BUCKETS, BUDGET_NOT_ASKED, 0,  \
      BY_INTERCEPT, "sum of residuals at the start")                                                                   \
    X(ENERGY, SHAPE_NOTHING, 0, SHAPE_NUMBERS(2), answer_energy, ASK_POSITIVE, BOUND_NONE, MASK_BUCKETS,               \
      BUDGET_NOT_ASKED, 0, BY_INTERCEPT, "sum of squares of the rows")                                                 \
    X(MOMENTS, SHAPE_VECTOR_AND(1), 0, SHAPE_OF(2, 0, 1), answer_moments, ASK_POSITIVE_FIRST, 1, MASK_BUCKETS,         \
      BUDGET_NOT_ASKED, 0, BY_STANDARDIZE, "means and deviations of the columns")                                      \
    X(MISFIT, SHAPE_VECTOR_AND(SURVEY_THRESHOLDS), 0, SHAPE_NUMBERS(SURVEY_THRESHOLDS + 1), answer_below,              \
      ASK_POSITIVE, SURVEY_THRESHOLDS, MASK_BUCKETS, BUDGET_NOT_ASKED, 0, BY_TUNED_OR_BASELINE,                        \
      "rows with a residual below thresholds")                                                                         \
    X(CURVE, SHAPE_VECTOR_AND(4), 0, SHAPE_VECTOR_AND(1), baseline_step_answer, 0, BOUND_NONE, MASK_BUCKETS,           \
      BUDGET_NOT_ASKED, 0, BY_BASELINE, "curvature along a vector")                                                    \
    X(CURVE_ALONE, SHAPE_VECTOR_AND(4), 1, SHAPE_NOTHING, baseline_step_answer, 0, BOUND_NONE, MASK_BUCKETS,           \
      BUDGET_NOT_ASKED, 0, BY_BASELINE, "largest curvature")                                                           \
    X(LOSS, SHAPE_VECTOR, 0, SHAPE_NUMBERS(1), answer_loss, 0, 0, MASK_BUCKETS, BUDGET_NOT_ASKED, 0, BY_START,         \
      "loss at a model")                                                                                               \
    X(LEVELS, SHAPE_VECTOR_AND(SURVEY_THRESHOLDS), 0, SHAPE_NUMBERS(SURVEY_THRESHOLDS), answer_levels, 0,              \
      SURVEY_THRESHOLDS, MASK_BUCKETS, BUDGET_NOT_ASKED, 0, BY_TUNED_INTERCEPT, "slopes of the loss at thresholds")    \
    X(GRADIENT, SHAPE_VECTOR, 0, SHAPE_VECTOR, answer_gradient, 0, 0, MASK_BUCKETS, BUDGET_NOT_ASKED, 0,               \
      BY_START_OR_LAMBDA, "gradient at a model")

/* ---- around the survey, INQUIRY_... ---- */
#define SETUP_QUESTIONS(X)                                                                                             \
    X(SHAPE, SHAPE_VARIES, 2, SHAPE_VARIES, answer_shape, ASK_FLAGS_AND_ROWS, BOUND_NONE, MASK_FLAGS, BUDGET_MADE_UP,  \
      0, BY_EVERY, "number of rows")                                                                                   \
    X(RESULT, SHAPE_VARIES, 0, SHAPE_NUMBERS(1), NULL, ASK_ANNOUNCED | ASK_RESULT, BOUND_NONE, MASK_NOTHING,           \
      BUDGET_NOTHING, 0, BY_EVERY, "the result of the set-up (no question)")                                           \
    X(END, SHAPE_VARIES, 0, SHAPE_NUMBERS(1), NULL, ASK_ANNOUNCED | ASK_LAST_WORD, BOUND_NONE, MASK_NOTHING,           \
      BUDGET_NOTHING, 0, BY_EVERY, "the end of the run (no question)")

/* ---- after training, or in its place: star, polish and standard errors, POLISH_... ----
 *
 * The one maximum says that a client is lost. A restarted client has nothing of what ASK_KEPT left. */
#define POLISH_QUESTIONS(X)                                                                                            \
    X(ANCHOR, SHAPE_VECTOR, 1, SHAPE_NUMBERS(1), answer_anchor, ASK_KEPT, POLISH_HEAD, MASK_APART, BUDGET_NOT_ASKED,   \
      LIMIT_STEPS, BY_PHASE, "polish: loss at a model")                                                                \
    X(SCALES, SHAPE_NOTHING, 1, SHAPE_OF(POLISH_VECTORS, 0, POLISH_COUNTS), answer_scales, 0, BOUND_NONE, MASK_APART,  \
      BUDGET_NOT_ASKED, LIMIT_BARE, BY_POLISH, "polish: bounds of slopes, sums of squares of the columns")             \
    X(VALUE, SHAPE_VECTOR, 1, SHAPE_VECTOR_AND(POLISH_NUMBERS), answer_value, ASK_KEPT | ASK_TERMS, POLISH_HEAD,       \
      MASK_APART, BUDGET_NOT_ASKED, LIMIT_STEPS, BY_POLISH, "polish: loss and slope at a model")                       \
    X(LINE, SHAPE_VECTORS(2), 1, SHAPE_NUMBERS(POLISH_STEPS), answer_line, 0, BOUND_POINT, MASK_APART,                 \
      BUDGET_NOT_ASKED, LIMIT_STEPS, BY_POLISH, "polish: slopes along a line")                                         \
    X(DIAGONAL, SHAPE_NOTHING, 1, SHAPE_VECTOR, answer_diagonal, 0, BOUND_NONE, MASK_APART, BUDGET_NOT_ASKED,          \
      LIMIT_BARE, BY_POLISH, "polish: diagonal of the second derivative")                                              \
    X(HESSIAN, SHAPE_NOTHING, 1, SHAPE_TRIANGLE, answer_squares, ASK_TERMS, BOUND_NONE, MASK_APART, BUDGET_NOT_ASKED,  \
      LIMIT_BARE, BY_POLISH, "polish: second derivative")                                                              \
    X(PRODUCT, SHAPE_VECTOR, 1, SHAPE_VECTOR, answer_product, 0, BOUND_NONE, MASK_APART, BUDGET_NOT_ASKED,             \
      LIMIT_STEPS, BY_POLISH, "polish: second derivative times a vector")                                              \
    X(COMMIT, SHAPE_VECTOR, 1, SHAPE_NUMBERS(1), answer_commit, ASK_KEPT | ASK_MOVES, POLISH_HEAD, MASK_APART,         \
      BUDGET_NOT_ASKED, LIMIT_STEPS, BY_POLISH, "polish: moves the multipliers of the rows to a model")                \
    X(REPAIR, SHAPE_VECTORS(2), 1, SHAPE_VECTOR_AND(1), answer_repair, 0, BOUND_POINT, MASK_APART, BUDGET_NOT_ASKED,   \
      LIMIT_STEPS, BY_POLISH, "polish: slopes for a bound of the gap")                                                 \
    X(GRAM, SHAPE_NOTHING, 1, SHAPE_OF(0, 1, 1), answer_gram, ASK_KEPT, BOUND_NONE, MASK_APART, BUDGET_NOT_ASKED,      \
      LIMIT_BARE, BY_STAR, "star: products of the columns")                                                            \
    X(GRAM_DIAGONAL, SHAPE_NOTHING, 1, SHAPE_VECTOR_AND(1), answer_gram, ASK_KEPT, BOUND_NONE, MASK_APART,             \
      BUDGET_NOT_ASKED, LIMIT_BARE, BY_STAR, "star: sums of squares of the columns")                                   \
    X(SPREAD, SHAPE_VECTOR, 1, SHAPE_NUMBERS(POLISH_LEVELS), answer_spread, 0, POLISH_HEAD, MASK_APART,                \
      BUDGET_NOT_ASKED, LIMIT_STEPS, BY_STAR, "star: rows with a residual below thresholds")                           \
    X(METRIC, SHAPE_TRIANGLE, 1, SHAPE_NUMBERS(2), star_client_begin, ASK_KEPT | ASK_MOVES, BOUND_NONE, MASK_APART,    \
      BUDGET_NOT_ASKED, LIMIT_STEPS, BY_STAR, "star: metric")                                                          \
    X(METRIC_DIAGONAL, SHAPE_VECTOR, 1, SHAPE_NUMBERS(2), star_client_begin, ASK_KEPT | ASK_MOVES, BOUND_NONE,         \
      MASK_APART, BUDGET_NOT_ASKED, LIMIT_STEPS, BY_STAR, "star: metric, its diagonal")                                \
    X(ROUND, SHAPE_VECTOR, 1, SHAPE_VECTOR_AND(STAR_NUMBERS), star_client_round, ASK_KEPT | ASK_MOVES, POLISH_HEAD,    \
      MASK_APART, BUDGET_NOT_ASKED, LIMIT_STEPS, BY_STAR, "star: a step on a model of the cloud")                      \
    X(FORGET, SHAPE_NOTHING, 1, SHAPE_NUMBERS(1), answer_forget, 0, BOUND_NONE, MASK_APART, BUDGET_NOT_ASKED,          \
      LIMIT_BARE, BY_STAR_OR_PHASE, "star, polish: forgets its steps")                                                 \
    X(RESIDUALS, SHAPE_VECTOR, 1, SHAPE_NUMBERS(POLISH_LEVELS + POLISH_MOMENTS), answer_residuals, ASK_ERRORS,         \
      POLISH_HEAD, MASK_APART, BUDGET_NOT_ASKED, LIMIT_WIDTHS, BY_ERRORS,                                              \
      "errors: rows with a residual below thresholds")                                                                 \
    X(BREAD, SHAPE_VECTOR, 1, SHAPE_TRIANGLE, answer_bread, ASK_ERRORS, POLISH_HEAD, MASK_APART, BUDGET_NOT_ASKED,     \
      LIMIT_ERRORS, BY_ERRORS, "errors: second derivative")                                                            \
    X(MEAT, SHAPE_VECTOR, 1, SHAPE_TRIANGLE, answer_meat, ASK_ERRORS, POLISH_HEAD, MASK_APART, BUDGET_NOT_ASKED,       \
      LIMIT_ERRORS, BY_ERRORS, "errors: squares of the slopes")                                                        \
    X(SEARCH, SHAPE_VECTORS(POLISH_LANES), 1, SHAPE_OF(POLISH_LANES, 0, POLISH_LANES), answer_search,                  \
      ASK_SMALL | ASK_TERMS, POLISH_HEAD, MASK_APART, BUDGET_NOT_ASKED, LIMIT_STEPS, BY_PHASE,                         \
      "polish: loss and slope at several models")                                                                      \
    X(CHOOSE, SHAPE_VECTOR, 1, SHAPE_NUMBERS(1), answer_choose, ASK_KEPT, BOUND_NONE, MASK_APART, BUDGET_NOT_ASKED,    \
      LIMIT_STEPS, BY_STAR, "star: columns of later questions")                                                        \
    X(PROJECT, SHAPE_VECTORS(2), 1, SHAPE_VECTOR_AND(1 + POLISH_LEVELS), answer_project, ASK_KEPT | ASK_MOVES,         \
      BOUND_POINT, MASK_APART, BUDGET_NOT_ASKED, LIMIT_STEPS, BY_STAR, "star: slopes for a bound of the gap")          \
    X(SQUARES, SHAPE_NOTHING, 1, SHAPE_TRIANGLE, answer_squares, ASK_TERMS, BOUND_NONE, MASK_APART, BUDGET_NOT_ASKED,  \
      LIMIT_BARE, BY_PHASE, "polish: products of the columns")

/* ---- groups of clients, MIXTURE_...: counts depend on the number of groups (mixture_count, mixture_length) ---- */
#define GROUPS_QUESTIONS(X)                                                                                            \
    X(COLUMNS, SHAPE_VARIES, 0, SHAPE_VARIES, answer_squares, 0, BOUND_GROUPS, MASK_BUCKETS, BUDGET_NOT_ASKED,         \
      LIMIT_GROUPS, BY_GROUPS, "groups: sums of squares of the columns")                                               \
    X(STATS, SHAPE_VARIES, 0, SHAPE_VARIES, answer_stats, 0, BOUND_GROUPS, MASK_BUCKETS, BUDGET_NOT_ASKED,             \
      LIMIT_GROUPS, BY_GROUPS, "groups: losses, slopes and second derivatives at models")                              \
    X(SPREAD, SHAPE_VARIES, 0, SHAPE_VARIES, answer_spread, 0, BOUND_GROUPS, MASK_BUCKETS, BUDGET_NOT_ASKED,           \
      LIMIT_GROUPS, BY_GROUPS, "groups: spread of slopes")                                                             \
    X(CUTS, SHAPE_VARIES, 0, SHAPE_VARIES, answer_cuts, 0, BOUND_GROUPS, MASK_BUCKETS, BUDGET_NOT_ASKED, LIMIT_GROUPS, \
      BY_GROUPS, "groups: place along directions")                                                                     \
    X(CROSS, SHAPE_VARIES, 0, SHAPE_VARIES, answer_cross, 0, BOUND_GROUPS, MASK_BUCKETS, BUDGET_NOT_ASKED,             \
      LIMIT_GROUPS, BY_GROUPS, "groups: losses on half of the rows")                                                   \
    X(MEMBERS, SHAPE_VARIES, 0, SHAPE_VARIES, answer_members, 0, BOUND_GROUPS, MASK_BUCKETS, BUDGET_NOT_ASKED,         \
      LIMIT_GROUPS, BY_SHOWN_GROUPS, "groups: weights of this client")                                                 \
    X(SIZES, SHAPE_VARIES, 0, SHAPE_VARIES, answer_size, 0, BOUND_GROUPS, MASK_BUCKETS, BUDGET_NOT_ASKED,              \
      LIMIT_GROUPS, BY_GROUPS, "groups: size of each group")

/* ---- while nodes train, QUESTION_..., in the order of their phases from NODE_PHASE_TRAIN on ----
 *
 * FIGURES: w_0, then the parent's w; from the cloud only the first. UP_TALLY: sums, added in slot order; UP_MODELS: the
 * models of a node and of all below it, one after another, in parts; UP_WORD: that all have done it. FUNCTIONS: whether
 * it is new, how it begins, what is passed on, what all answers give. */
#define TRAINING_QUESTIONS(X)                                                                                          \
    X(FIGURES, SHAPE_VECTORS(2), 0, UP_TALLY,                                                                          \
      FUNCTIONS(where_figures, begin_figures, pass_figures_on, finish_figures), ASK_HOLDS | ASK_KEPT, 0, MASK_SUM,     \
      BUDGET_ZEROS, 0, BY_ROUNDS, "figures: losses at its own model and at the cloud's, and residuals")                \
    X(MODELS, SHAPE_NOTHING, 0, UP_MODELS, FUNCTIONS(where_models, begin_final, begin_models, finish_models),          \
      ASK_HOLDS | ASK_KEPT, BOUND_NONE, MASK_ZEROS, BUDGET_NOISE, 0, BY_ROUNDS, "the end: its model")                  \
    X(REPAIR, SHAPE_VECTOR, 0, UP_WORD, FUNCTIONS(where_repair, begin_repair, NULL, finish_repair),                    \
      ASK_HOLDS | ASK_AT_ONCE | ASK_KEPT, 0, MASK_NOTHING, BUDGET_NOT_ASKED, 0, BY_ROUNDS,                             \
      "a repair: training begins again (no question)")                                                                 \
    X(STAGE, SHAPE_VECTOR, 0, UP_WORD, FUNCTIONS(where_stage, begin_stage, NULL, finish_stage),                        \
      ASK_HOLDS | ASK_AT_ONCE | ASK_KEPT, 0, MASK_NOTHING, BUDGET_NOT_ASKED, 0, BY_ROUNDS,                             \
      "the next stage: training begins again (no question)")                                                           \
    X(LOOK, SHAPE_NOTHING, 0, UP_MODELS, FUNCTIONS(where_look, begin_look, begin_models, gather_models), ASK_AT_ONCE,  \
      BOUND_NONE, MASK_ZEROS, BUDGET_NOISE, 0, BY_ROUNDS, "a look: its model")

#endif
