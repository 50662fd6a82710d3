/*
 * Every setting of a spec, written once. A row is
 *
 *     X(GROUP, type, field, default, range, sentence)
 *
 * and yields the struct member, the check, the spec key, `hfsad settings` and docs/settings.md. A group may occur
 * several times in the spec (SPEC_GROUPS): client link and edge link have the same rows.
 *
 * Types: REAL (double; "auto" = NAN: the preset decides, an override inherits), WHOLE (int64_t; auto = -1),
 * CHOICE_xxx (int, index into the list of names; auto = -1), FLAG (int: 0, 1; auto = -1), TEXT (char *, NULL: unset).
 * The default is written as a spec would write it; "auto" and "none" are unset, "required" must be given.
 * Range: REAL and WHOLE as an interval such as "(0,1)", "[0,inf)"; "list" for a TEXT that may be written as a list,
 * whose entries are then joined by commas; "" otherwise.
 *
 * `data: {file: F, y: COLUMN, split: {...}}` is another way to write `data: F`, `columns: {y: COLUMN}` and `split:
 * {...}`.
 */
#ifndef HFSAD_SPEC_SETTINGS_H
#define HFSAD_SPEC_SETTINGS_H

#include "base/wire.h"
#include "hfsad/hfsad.h"

#define RANGE_LOCAL_STEPS "[1,1000000]"
#define RANGE_PROBABILITY "[0,1]"

#define SETTINGS_TOP(X)                                                                                                \
    X(TOP, TEXT, data, "required", "",                                                                                 \
      "CSV file with the columns edge, client, y, then the features; LIBSVM file; or a folder with a file for every "  \
      "client, data/<edge>/<client>.csv, .npy, .npz or .svm: see docs/data.md; or rows to be drawn: `generate "        \
      "phase-retrieval edges=5 seed=1`")                                                                               \
    X(TOP, TEXT, truth, "none", "",                                                                                    \
      "file with one number per line, the true model: adds relative_error; or `generate ...`, as for data")            \
    X(TOP, CHOICE_PRESET, preset, "tuned", "", "rule that sets the keys below that are not given")                     \
    X(TOP, CHOICE_ALGORITHM, algorithm, "auto", "",                                                                    \
      "training algorithm: hfsad; star, for convex problems with one model for all nodes; fedavg and fedprox, "        \
      "sub-gradient baselines for comparison; auto: star if the problem allows it and no setting that only hfsad has " \
      "(schedule, link, edge_rounds, local_steps, start, stop.absolute, stop.relative, polish, loss.solver, "          \
      "aggregate, preset paper) is "                                                                                   \
      "changed, otherwise hfsad")                                                                                      \
    X(TOP, CHOICE_PERSONAL, personal, "none", "",                                                                      \
      "groups: after the run, find groups of clients that share a model; see docs/personal.md")                        \
    X(TOP, CHOICE_AGGREGATE, aggregate, "mean", "",                                                                    \
      "sum over the children of a node, in every coordinate: mean; trimmed: without the lowest and the highest "       \
      "quarter of the children; median; only hfsad without polish has the last two")

#define SETTINGS_GROUPS(X)                                                                                             \
    X(GROUPS, WHOLE, most, "8", "[1,32]", "personal: groups: upper limit on the number of groups")

#define SETTINGS_COLUMNS(X)                                                                                            \
    X(COLUMNS, TEXT, y, "none", "", "name of the column to predict; none: y")                                          \
    X(COLUMNS, TEXT, client, "none", "", "name of the column with the client of a row; none: client")                  \
    X(COLUMNS, TEXT, edge, "none", "", "name of the column with the edge of a row; none: edge")                        \
    X(COLUMNS, TEXT, weight, "none", "",                                                                               \
      "name of the column with the weight of a row; none: weight, if it follows y directly")                           \
    X(COLUMNS, TEXT, features, "none", "list",                                                                         \
      "names of the features, * and ? are wildcards, -name leaves a column out; none: all other columns")              \
    X(COLUMNS, TEXT, categorical, "none", "list",                                                                      \
      "names of the features that are categories, one-hot without the first level; region=north|south states the "     \
      "levels")                                                                                                        \
    X(COLUMNS, TEXT, labels, "none", "list",                                                                           \
      "labels of the classes in y, such as [no, yes]: of two, the second is the positive class, 1; of several, the "   \
      "first is class 0; none: numbers, or the labels that the table has, sorted")                                     \
    X(COLUMNS, CHOICE_MISSING, missing, "refuse", "",                                                                  \
      "feature without a value (empty, NA, NaN): an error, or the mean of the column")

#define SETTINGS_SPLIT(X)                                                                                              \
    X(SPLIT, WHOLE, clients, "0", "[0,1000000000]",                                                                    \
      "number of clients that rows without a client are dealt over; 0: the rows name their clients")                   \
    X(SPLIT, WHOLE, edges, "0", "[0,1000000000]", "number of edges that the clients are dealt over; 0: none")          \
    X(SPLIT, TEXT, by, "none", "", "name of the column whose values are the clients")                                  \
    X(SPLIT, WHOLE, seed, "1", "[0,9007199254740992]", "seed of the order in which rows are dealt")

#define SETTINGS_LOSS(X)                                                                                               \
    X(LOSS, CHOICE_LOSS, kind, "required", "",                                                                         \
      "loss of a row; own: supplied by a program through hfsad_spec_own_loss")                                         \
    X(LOSS, REAL, box, "none", "(0,inf)", "upper limit on every |w_m| of a client")                                    \
    X(LOSS, REAL, tau, "0.5", "(0,1)", "quantile, smoothed-quantile, expectile: the level, or a list of levels")       \
    X(LOSS, TEXT, levels, "none", "list",                                                                              \
      "the same: several levels, rising, in one run; tau: [0.1, 0.5, 0.9] is another way to write it")                 \
    X(LOSS, REAL, delta, "1", "(0,inf)", "huber: residual at which the loss turns from quadratic to linear")           \
    X(LOSS, REAL, h, "0.1", "(0,inf)", "smoothed-quantile: half-width of the window that the loss is averaged over")   \
    X(LOSS, WHOLE, classes, "2", "[2,256]",                                                                            \
      "multinomial, and above 2 hinge and squared-hinge, by every class against the rest: number of classes; y is 0, " \
      "1, ... below it")                                                                                               \
    X(LOSS, CHOICE_SCALE, scale, "sum", "", "the loss of a client is the sum or the mean over its rows")               \
    X(LOSS, CHOICE_SOLVER, solver, "auto", "",                                                                         \
      "client step for many rows: exact prox, or smoothed and linearised loss; auto: exact")                           \
    X(LOSS, REAL, tolerance, "0.1", "(0,1)",                                                                           \
      "exact: sweeps over the rows end when they change the step by at most this share")                               \
    X(LOSS, WHOLE, sweeps, "200", "[1,1000000]", "exact: upper limit on the number of sweeps over a client's rows")

#define SETTINGS_FEATURES(X)                                                                                           \
    X(FEATURES, CHOICE_INTERCEPT, intercept, "none", "",                                                               \
      "one constant per client, per edge or for all nodes; never penalised")                                           \
    X(FEATURES, FLAG, standardize, "auto", "",                                                                         \
      "scale columns to variance 1 and, with an intercept, to mean 0; auto: for links that let go of a node, if no "   \
      "link, prior, box or schedule of the spec is in units of the data")                                              \
    X(FEATURES, FLAG, positive, "false", "", "no coefficient below 0 but the intercept; algorithm star")

#define SETTINGS_LINK(X)                                                                                               \
    X(LINK, CHOICE_LINK, penalty, "auto", "",                                                                          \
      "penalty on the difference between child and parent, R_c; group-mcp and group-scad: on its norm")                \
    X(LINK, REAL, weight, "auto", "[0,inf)", "factor of the penalty")                                                  \
    X(LINK, REAL, lambda, "auto", "(0,inf)", "slope of the penalty at 0")                                              \
    X(LINK, REAL, gamma, "auto", "(1,inf)", "the penalty is flat beyond gamma * lambda; mcp: above 1, scad: above 2")

#define SETTINGS_PRIOR(X)                                                                                              \
    X(PRIOR, CHOICE_PRIOR, penalty, "auto", "", "penalty on the model of a node: R_w")                                 \
    X(PRIOR, REAL, weight, "auto", "[0,inf)", "factor of the penalty")                                                 \
    X(PRIOR, REAL, lambda, "auto", "(0,inf)",                                                                          \
      "slope of the penalty at 0; auto: 0.05 of the smallest lambda at which all coefficients are 0, from sums over "  \
      "the clients; 0.1 with the preset paper and for losses that are not convex")                                     \
    X(PRIOR, REAL, gamma, "auto", "(1,inf)", "the penalty is flat beyond gamma * lambda; mcp: above 1, scad: above 2") \
    X(PRIOR, REAL, ratio, "auto", "[0,1]", "elastic-net: share of l1 in the penalty, the rest is l2; auto: 0.5")

#define SETTINGS_SCHEDULE(X)                                                                                           \
    X(SCHEDULE, REAL, c, "auto", "(0,inf)", "sigma = c r(k) at step k; r(k) = sqrt(k) for the shape sqrt")             \
    X(SCHEDULE, REAL, alpha, "auto", "(0,inf)", "mu = alpha / r(k) at step k")                                         \
    X(SCHEDULE, CHOICE_SHAPE, shape, "auto", "",                                                                       \
      "r(k): sqrt(k); growth^(k-1); or sqrt(k) while that grows faster than by growth per step, then by growth; "      \
      "auto: "                                                                                                         \
      "that of the preset, but sqrt if c or alpha is given")                                                           \
    X(SCHEDULE, REAL, growth, "auto", "(1,2]", "geometric shapes: factor of r per step")                               \
    X(SCHEDULE, REAL, relax, "auto", "[1,2)",                                                                          \
      "over-relaxation: the link step uses w + (relax - 1)(w - z) in place of w")

#define SETTINGS_RUN(X)                                                                                                \
    X(RUN, WHOLE, iterations, "300", "[0,1000000000]", "global iterations")                                            \
    X(RUN, WHOLE, edge_rounds, "10", "[1,1000000]",                                                                    \
      "rounds of clients and edges per global iteration: K_m; auto: from run.cost, 4, or 2 if a round of the cloud "   \
      "costs less than a third of a round of the edges; phase-retrieval: 10")                                          \
    X(RUN, WHOLE, local_steps, "1", RANGE_LOCAL_STEPS, "steps of a client per round")                                  \
    X(RUN, TEXT, start, "auto", "",                                                                                    \
      "zero, normal, spectral, robust, consensus (result of 100 iterations with tv links) or a file with one number "  \
      "per line; auto: consensus if a link is mcp or scad; else robust for phase-retrieval (spectral with the "        \
      "preset paper); else zero")                                                                                      \
    X(RUN, WHOLE, tries, "1", "[1,100]",                                                                               \
      "number of starts to try, 20 iterations each; the best is kept; the first is `start`, the others are random")    \
    X(RUN, FLAG, cycles, "auto", "",                                                                                   \
      "phase-retrieval with the preset tuned: begin at the robust start if it leads to a smaller loss than `start`; "  \
      "true: also begin a new cycle at the best point when a run has frozen; false: neither; auto: cycles if "         \
      "run.polish is false")                                                                                           \
    X(RUN, WHOLE, seed, "1", "[0,9007199254740992]", "seed of every random draw")                                      \
    X(RUN, FLAG, polish, "auto", "",                                                                                   \
      "after the iterations, go on to the exact optimum of one model for all nodes, with a bound on what is missing; " \
      "not convex: to a stationary point; auto: if there is one model for all, of at most 512 coordinates, but not "   \
      "with the preset paper")                                                                                         \
    X(RUN, WHOLE, trace_every, "1", "[1,1000000000]", "global iterations per row of the trace")                        \
    X(RUN, CHOICE_PRECISION, precision, "double", "",                                                                  \
      "numbers of a client's link between two steps, which a device keeps in 8, 4 or 2 bytes; sums stay double; one "  \
      "row per client; every command rounds alike")

#define SETTINGS_PARTICIPATION(X)                                                                                      \
    X(PARTICIPATION, REAL, client, "1", RANGE_PROBABILITY, "probability that a client takes part in a round: p_c")     \
    X(PARTICIPATION, REAL, edge, "1", RANGE_PROBABILITY, "probability that an edge takes part in a round")             \
    X(PARTICIPATION, WHOLE, at_least_every, "20", "[1,1000000000]",                                                    \
      "a node takes part at least once in this number of global iterations: K_a")

#define SETTINGS_COST(X)                                                                                               \
    X(COST, REAL, edge_round, "1", "(0,inf)",                                                                          \
      "cost of a round of clients and edges, in any unit; for edge_rounds: auto")                                      \
    X(COST, REAL, cloud_round, "1", "[0,inf)", "cost of a round of the cloud and its children, in the same unit")

#define SETTINGS_STOP(X)                                                                                               \
    X(STOP, REAL, absolute, "0", "[0,inf)", "stop when both residuals per constraint are below this; 0: off")          \
    X(STOP, REAL, relative, "0", "[0,inf)", "the same relative to the norms of iterates and multipliers; 0: off")      \
    X(STOP, REAL, time, "0", "[0,inf)",                                                                                \
      "seconds of training after which `hfsad run` ends as by Ctrl-C: it writes what it has, to be resumed to the "    \
      "same bits, with exit status 0; 0: no limit; without effect in a federation")                                    \
    X(STOP, REAL, gap, "1e-4", "[0,1]",                                                                                \
      "star: stop when the objective is proven to be at most this far above its minimum, relative to it; 0: as close " \
      "as rounding permits")

#define SETTINGS_BASELINE(X)                                                                                           \
    X(BASELINE, REAL, step, "auto", "(0,inf)", "first step size on a client's mean loss; auto: from the data")         \
    X(BASELINE, CHOICE_STEP_RULE, rule, "power", "",                                                                   \
      "step size of edge round k: step, step / k^decay, or step * decay^(k-1)")                                        \
    X(BASELINE, REAL, decay, "auto", "(0,1]",                                                                          \
      "power: exponent, auto: 0.5; geometric: factor, auto: the run ends at step / 1000")                              \
    X(BASELINE, REAL, rho, "auto", "[0,inf)", "fedprox: weight of |w - w_edge|^2 / 2; auto: 1 / step")

#define SETTINGS_OUTPUT(X)                                                                                             \
    X(OUTPUT, FLAG, clients, "true", "", "keep and write every client's own model")                                    \
    X(OUTPUT, FLAG, state, "true", "", "write state.csv: z, q and counter of every link")                              \
    X(OUTPUT, FLAG, checkpoint, "true", "", "write checkpoint.bin, from which a run can go on")                        \
    X(OUTPUT, FLAG, errors, "false", "",                                                                               \
      "standard errors and confidence intervals of the coefficients, by sums over the clients' rows; one model for "   \
      "all, at most 512 coordinates, priors none or l2")                                                               \
    X(OUTPUT, REAL, confidence, "0.95", "(0,1)", "errors: probability of the intervals")                               \
    X(OUTPUT, REAL, every_seconds, "10", "(0,inf)", "seconds between updates of the output folder")

#define SETTINGS_FEDERATION(X)                                                                                         \
    X(FEDERATION, TEXT, nodes, "none", "",                                                                             \
      "file with the number of features and the paths of all clients, see `hfsad nodes`; none: read from data")        \
    X(FEDERATION, TEXT, name, "run", "", "name of the run in MQTT topics")                                             \
    X(FEDERATION, CHOICE_MODE, mode, "sync", "",                                                                       \
      "sync: a round waits for all participants, same bits as `hfsad run`; async: a round does not wait for "          \
      "stragglers")                                                                                                    \
    X(FEDERATION, REAL, quorum, "0.5", "(0,1]",                                                                        \
      "async: a node steps when this share of its children has sent something new")                                    \
    X(FEDERATION, REAL, deadline, "10", "(0,1000000]",                                                                 \
      "async: or after this number of seconds if at least one child has; rows and the end wait that long for "         \
      "answers, 2 at least")                                                                                           \
    X(FEDERATION, CHOICE_STALE, stale, "go_on", "",                                                                    \
      "async: a child that is run.participation.at_least_every global iterations behind: go on without it until it "   \
      "speaks again, or wait for it")                                                                                  \
    X(FEDERATION, REAL, stale_seconds, "0", "[0,1000000]",                                                             \
      "async: go_on: seconds to wait for such a child first, once for an absence")                                     \
    X(FEDERATION, REAL, join_seconds, "60", "[0,1000000]",                                                             \
      "async: the set-up goes without clients that have not answered after this number of seconds; they join when "    \
      "they speak; 0: it waits for all, as with stale: wait and with run.start: consensus or run.tries")               \
    X(FEDERATION, REAL, local_seconds, "none", "(0,1000000]",                                                          \
      "async: seconds of local steps per round; none: local_steps steps")                                              \
    X(FEDERATION, WHOLE, exclude_after, "3", "[1,1000000]",                                                            \
      "messages of a child beyond the bounds of the mathematics after which it is named, and the run ends (sync) or "  \
      "goes on without it (async)")                                                                                    \
    X(FEDERATION, CHOICE_WIRE, wire, "double", "",                                                                     \
      "encoding of models on the wire: exact, rounded to float, exact as compressed differences, or what goes up in "  \
      "fixed point, whose sums are exact; with float and fixed, `hfsad run` rounds too")                               \
    X(FEDERATION, WHOLE, fraction, "auto", "[0,200]",                                                                  \
      "wire fixed: bits after the binary point of a model's numbers in an UP; auto: from the length of the survey")    \
    X(FEDERATION, FLAG, retain, "true", "",                                                                            \
      "the broker keeps the last message of every topic; false: only of status and hello, for a clustered "            \
      "broker whose nodes would write each message to their disks")

#define SETTINGS_PRIVACY(X)                                                                                            \
    X(PRIVACY, CHOICE_AGGREGATION, aggregation, "plain", "",                                                           \
      "secure: what a client says is masked, and only the sum over its cohort can be read; see docs/privacy.md")       \
    X(PRIVACY, WHOLE, cohort, "0", "[0,1000000]",                                                                      \
      "least number of children of a node whose sum is added up as one; 0: every child by itself, or 8 with secure "   \
      "aggregation")                                                                                                   \
    X(PRIVACY, WHOLE, least_rows, "1", "[1,1000000000]", "a client with fewer rows takes no part: the run is refused") \
    X(PRIVACY, REAL, largest, "none", "(0,inf)",                                                                       \
      "a client answers no question about models with larger numbers; none: no bound")                                 \
    X(PRIVACY, TEXT, refuse, "none", "list",                                                                           \
      "questions that clients never answer: standardize, robust-start, step, star, polish, errors, groups")            \
    X(PRIVACY, REAL, epsilon, "none", "(0,1000]",                                                                      \
      "differential privacy: clients add noise, and the whole run is (epsilon, delta)-private for each client")        \
    X(PRIVACY, REAL, rho, "none", "(0,1000]", "the same budget as zero-concentrated privacy; in place of epsilon")     \
    X(PRIVACY, REAL, delta, "1e-06", "(0,1)", "of (epsilon, delta); far below 1 / number of clients")                  \
    X(PRIVACY, REAL, clip, "none", "(0,inf)",                                                                          \
      "with noise: largest distance of what a client says from its parent's model; a smaller one needs less noise")    \
    X(PRIVACY, REAL, record, "none", "(0,inf)",                                                                        \
      "with noise: the budget is one for each row instead of each client, and no row of features is longer than this") \
    X(PRIVACY, WHOLE, rows, "1", "[1,1000000000]",                                                                     \
      "with noise: rows of a client that the presets assume, with features and y of size 1; the data is not asked")    \
    X(PRIVACY, CHOICE_NOISE, noise, "secret", "",                                                                      \
      "random numbers of the noise in a federation: by each node's secret, or by run.seed, which protects nothing "    \
      "and "                                                                                                           \
      "repeats `hfsad run`")

/* Rows of an entry of `overrides`, besides the groups below. */
#define SETTINGS_OVERRIDE(X)                                                                                           \
    X(OVERRIDE, TEXT, node, "required", "",                                                                            \
      "name of the edge or client, \"edge2\" or \"edge1/client7\"; * and ? are wildcards")                             \
    X(OVERRIDE, WHOLE, local_steps, "auto", RANGE_LOCAL_STEPS, "steps of this client per round")                       \
    X(OVERRIDE, REAL, participation, "auto", RANGE_PROBABILITY, "probability that this node takes part in a round")

/* C member, key prefix, group, heading. Members are declared from this list in this order. */
#define SPEC_GROUPS(G)                                                                                                 \
    G(top, "", TOP, "What to train on")                                                                                \
    G(groups, "groups", GROUPS, "Groups of clients")                                                                   \
    G(columns, "columns", COLUMNS, "Columns of a table; also as keys of `data`")                                       \
    G(split, "split", SPLIT, "Dealing the rows of a table over clients; also as `data: {split: ...}`")                 \
    G(features, "features", FEATURES, "Features")                                                                      \
    G(loss, "loss", LOSS, "Loss of the clients")                                                                       \
    G(link_client, "link.client", LINK, "Links between clients and edges")                                             \
    G(link_edge, "link.edge", LINK, "Links between edges and cloud")                                                   \
    G(prior_edge, "prior.edge", PRIOR, "Prior of the edges")                                                           \
    G(prior_cloud, "prior.cloud", PRIOR, "Prior of the cloud")                                                         \
    G(schedule_client, "schedule.client", SCHEDULE, "Schedule of the client links")                                    \
    G(schedule_edge, "schedule.edge", SCHEDULE, "Schedule of the edge links")                                          \
    G(run, "run", RUN, "The run")                                                                                      \
    G(participation, "run.participation", PARTICIPATION, "Participation")                                              \
    G(cost, "run.cost", COST, "Cost of a round, for `run.edge_rounds: auto`")                                          \
    G(stop, "run.stop", STOP, "Stop rule")                                                                             \
    G(baseline, "baseline", BASELINE, "Baselines: fedavg and fedprox")                                                 \
    G(output, "output", OUTPUT, "Output")                                                                              \
    G(federation, "federation", FEDERATION, "Federation of processes")                                                 \
    G(privacy, "privacy", PRIVACY, "Privacy")

/* The groups that an entry of `overrides` may have, in the same form. */
#define OVERRIDE_GROUPS(G)                                                                                             \
    G(loss, "loss", LOSS, "Loss of a client")                                                                          \
    G(link, "link", LINK, "Link of the node to its parent")                                                            \
    G(prior, "prior", PRIOR, "Prior of an edge")                                                                       \
    G(schedule, "schedule", SCHEDULE, "Schedule of the node's link to its parent")

#define LOSS_NAME(KIND, prefix, name) name,
#define LOSS_NAMES HFSAD_LOSS_LIST(LOSS_NAME) /* index = hfsad_loss_kind */
#define ALGORITHM_NAMES "hfsad", "fedavg", "fedprox", "star"
#define PERSONAL_NAMES "none", "groups"
#define STEP_RULE_NAMES "constant", "power", "geometric"
#define SHAPE_NAMES "sqrt", "geometric", "sqrt-geometric"
#define PRESET_NAMES "paper", "tuned"
#define SCALE_NAMES "sum", "mean"
#define SOLVER_NAMES "exact", "linearized"
#define INTERCEPT_NAMES "none", "client", "edge", "global"
#define MODE_NAMES "sync", "async"
#define STALE_NAMES "wait", "go_on"
#define MISSING_NAMES "refuse", "mean"                 /* index = missing_rule */
#define PRECISION_NAMES "double", "float", "bfloat16"  /* index = precision_kind */
#define WIRE_NAMES "double", "float", "delta", "fixed" /* index = wire_encoding */
#define AGGREGATION_NAMES "plain", "secure"
#define NOISE_BY_NAMES "secret", "seed"
#define AGGREGATE_NAMES "mean", "trimmed", "median" /* index = AGGREGATE_xxx of core/robust.h */
#define LINK_NAME(KIND, prefix, link, prior, gamma_above) link,
#define PRIOR_NAME(KIND, prefix, link, prior, gamma_above) prior,
#define LINK_NAMES HFSAD_PENALTY_BOTH(LINK_NAME) HFSAD_PENALTY_LINKS(LINK_NAME) /* a link of kind none ties nothing */
#define PRIOR_NAMES HFSAD_PENALTY_BOTH(PRIOR_NAME) HFSAD_PENALTY_PRIORS(PRIOR_NAME) /* index = hfsad_penalty_kind */

/* The setting of a link, an index of LINK_NAMES, from and to a hfsad_penalty_kind; -1 stays. */
enum { LINK_SKIPS = HFSAD_PENALTY_PRIORS(HFSAD_PENALTY_ONE) };
static inline int link_kind(int setting)
{
    return setting >= (int)HFSAD_PENALTY_L2 ? setting + LINK_SKIPS : setting;
}
static inline int link_setting(int kind)
{
    return kind >= (int)HFSAD_PENALTY_GROUP_MCP ? kind - LINK_SKIPS : kind;
}

enum { PERSONAL_NONE, PERSONAL_GROUPS };
enum { ALGORITHM_AUTO = -1, ALGORITHM_HFSAD, ALGORITHM_FEDAVG, ALGORITHM_FEDPROX, ALGORITHM_STAR };
static inline bool algorithm_is_baseline(int algorithm)
{
    return algorithm == ALGORITHM_FEDAVG || algorithm == ALGORITHM_FEDPROX;
}
static inline bool algorithm_may_be_star(int algorithm)
{
    return algorithm == ALGORITHM_STAR || algorithm == ALGORITHM_AUTO;
}
enum { SHAPE_SQRT, SHAPE_GEOMETRIC, SHAPE_SQRT_GEOMETRIC };
enum { STEP_RULE_CONSTANT, STEP_RULE_POWER, STEP_RULE_GEOMETRIC };
enum { PRESET_PAPER, PRESET_TUNED };
enum { SCALE_SUM, SCALE_MEAN };
enum { SOLVER_EXACT, SOLVER_LINEARIZED };
enum { MODE_SYNC, MODE_ASYNC };
enum { AGGREGATION_PLAIN, AGGREGATION_SECURE, COHORT_LEAST = 2, COHORT_DEFAULT = 8 };
enum { NOISE_SECRET, NOISE_SEED };
enum { STALE_WAIT, STALE_GO_ON };
enum { INTERCEPT_NONE, INTERCEPT_CLIENT, INTERCEPT_EDGE, INTERCEPT_GLOBAL };

#define C_TYPE_REAL double
#define C_TYPE_WHOLE int64_t
#define C_TYPE_FLAG int
#define C_TYPE_TEXT char *
#define C_TYPE_CHOICE_ALGORITHM int
#define C_TYPE_CHOICE_PERSONAL int
#define C_TYPE_CHOICE_STEP_RULE int
#define C_TYPE_CHOICE_SHAPE int
#define C_TYPE_CHOICE_PRESET int
#define C_TYPE_CHOICE_LOSS int
#define C_TYPE_CHOICE_SCALE int
#define C_TYPE_CHOICE_SOLVER int
#define C_TYPE_CHOICE_INTERCEPT int
#define C_TYPE_CHOICE_MODE int
#define C_TYPE_CHOICE_STALE int
#define C_TYPE_CHOICE_WIRE int
#define C_TYPE_CHOICE_PRECISION int
#define C_TYPE_CHOICE_AGGREGATION int
#define C_TYPE_CHOICE_NOISE int
#define C_TYPE_CHOICE_AGGREGATE int
#define C_TYPE_CHOICE_MISSING int
#define C_TYPE_CHOICE_LINK int
#define C_TYPE_CHOICE_PRIOR int
#define SETTING_MEMBER(group, type, field, fallback, range, sentence) C_TYPE_##type field;

typedef struct {
    SETTINGS_TOP(SETTING_MEMBER)
} TOP_settings;
typedef struct {
    SETTINGS_GROUPS(SETTING_MEMBER)
} GROUPS_settings;
typedef struct {
    SETTINGS_LOSS(SETTING_MEMBER)
} LOSS_settings;
typedef struct {
    SETTINGS_COLUMNS(SETTING_MEMBER)
} COLUMNS_settings;
typedef struct {
    SETTINGS_SPLIT(SETTING_MEMBER)
} SPLIT_settings;
typedef struct {
    SETTINGS_FEATURES(SETTING_MEMBER)
} FEATURES_settings;
typedef struct {
    SETTINGS_LINK(SETTING_MEMBER)
} LINK_settings;
typedef struct {
    SETTINGS_PRIOR(SETTING_MEMBER)
} PRIOR_settings;
typedef struct {
    SETTINGS_SCHEDULE(SETTING_MEMBER)
} SCHEDULE_settings;
typedef struct {
    SETTINGS_RUN(SETTING_MEMBER)
} RUN_settings;
typedef struct {
    SETTINGS_PARTICIPATION(SETTING_MEMBER)
} PARTICIPATION_settings;
typedef struct {
    SETTINGS_COST(SETTING_MEMBER)
} COST_settings;
typedef struct {
    SETTINGS_STOP(SETTING_MEMBER)
} STOP_settings;
typedef struct {
    SETTINGS_BASELINE(SETTING_MEMBER)
} BASELINE_settings;
typedef struct {
    SETTINGS_OUTPUT(SETTING_MEMBER)
} OUTPUT_settings;
typedef struct {
    SETTINGS_FEDERATION(SETTING_MEMBER)
} FEDERATION_settings;
typedef struct {
    SETTINGS_PRIVACY(SETTING_MEMBER)
} PRIVACY_settings;

#define SPEC_MEMBER(member, key, GROUP, heading) GROUP##_settings member;

/*
 * An entry of `overrides`: settings for the nodes whose name matches `node` ("edge2", "edge1/client7", with the
 * wildcards of fnmatch: "edge1/ *" without the space). No row has a default here: auto means inherited. A box of
 * "none" is INFINITY, because NAN means inherited. line: of the spec; 0 if hfsad_spec_set gave the entry.
 */
typedef struct {
    int line;
    SETTINGS_OVERRIDE(SETTING_MEMBER)
    OVERRIDE_GROUPS(SPEC_MEMBER)
} override_settings;

struct hfsad_spec {
    char *path;   /* of the spec file */
    char *folder; /* of the spec file, "." if its path has none */
    char *base;   /* folder and file names are relative to this; NULL: the current folder */
    SPEC_GROUPS(SPEC_MEMBER)
    size_t n_overrides;
    override_settings *overrides;
    hfsad_own_loss own; /* all NULL: none */
    bool some_clients;  /* a fold of them trains: an override may name one of the others */
    bool own_elsewhere; /* a process of a federation: clients of other processes bring the own loss */
    int *lines;         /* line of each setting, in the order of settings_at; 0: not given, -1: by hfsad_spec_set */
};

/* Scores of a row, if it has one for each of loss.classes or of loss.levels; otherwise 0. */
size_t spec_scores(const hfsad_spec *spec);
/* loss.levels as numbers; returns how many there are. */
enum { SPEC_LEVELS = 99 };
size_t spec_levels(const hfsad_spec *spec, double levels[SPEC_LEVELS]);

/* run.edge_rounds, with auto chosen. More than about 10 rounds with the same w_0 do not pay at any cost
 * (docs/algorithm.md).
 */
static inline int64_t spec_edge_rounds(const hfsad_spec *spec)
{
    if (spec->run.edge_rounds >= 1)
        return spec->run.edge_rounds;
    if (spec->loss.kind == (int)HFSAD_LOSS_PHASE_RETRIEVAL)
        return 10;
    return 3 * spec->cost.cloud_round < spec->cost.edge_round ? 2 : 4;
}

/* All defaults, as if read from an empty file at path. */
hfsad_status spec_create(hfsad_spec **spec, const char *path, hfsad_error *err);
/* hfsad_spec_load from memory; path is for messages and for finding files. */
hfsad_status spec_load_text(hfsad_spec **spec, const char *path, const char *text, size_t size, hfsad_error *err);

/* What secure aggregation implies: fixed point, cohorts, and clients that keep their models. */
static inline bool spec_is_secure(const hfsad_spec *spec)
{
    return spec->privacy.aggregation == AGGREGATION_SECURE;
}
/* Differential privacy (plan/noise.h): an epsilon or a rho is given. */
static inline bool spec_has_noise(const hfsad_spec *spec)
{
    return spec->privacy.epsilon > 0 || spec->privacy.rho > 0;
}
static inline bool spec_is_fixed(const hfsad_spec *spec)
{
    return spec_is_secure(spec) || spec_has_noise(spec) || spec->federation.wire == WIRE_FIXED;
}
static inline bool spec_shows_clients(const hfsad_spec *spec)
{
    return spec->output.clients && !spec_is_secure(spec);
}
/* Least size of a cohort; 0: every child by itself. */
static inline size_t spec_cohort(const hfsad_spec *spec)
{
    return spec->privacy.cohort > 0 ? (size_t)spec->privacy.cohort : spec_is_secure(spec) ? COHORT_DEFAULT : 0;
}

/* hfsad_spec_check; needs_data: the key `data` must be there. */
hfsad_status spec_check_settings(const hfsad_spec *spec, bool needs_data, hfsad_error *err);

/* Path of a file that the spec names: in the folder of the spec, otherwise in the current folder (or `base`). The
 * caller frees it. NULL: no memory.
 */
char *spec_find_file(const hfsad_spec *spec, const char *name);
/* The same for a start, which is one of run.start's words or a file. */
char *spec_find_start(const hfsad_spec *spec, const char *start);

#endif
