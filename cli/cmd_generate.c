/* hfsad generate: draws data from a known distribution, and writes the truth and a spec. */
#include "generate.h"

#include "cli.h"
#include "paper.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Larger values are typing errors: the data would fill a disk. */
static const double CLIENTS_MOST = 1e8, NUMBERS_MOST = 1e12;

/* The range of run.seed. */
static const int64_t SEED_MOST = INT64_C(1) << 53;

const char *const generate_kind_names[KINDS + 1] = {"phase-retrieval", "quantile", "clustered", NULL};
const char *const generate_noise_names[] = {NOISE_NAMES, NULL};
const char *const generate_task_names[] = {"regression", "classification", "counts", NULL};
const char *const generate_spread_names[] = {"client", "edge", NULL};
const char *const generate_loss_names[] = {"quantile", "absolute",  "squared",           "huber",   "logistic",
                                           "hinge",    "expectile", "smoothed-quantile", "poisson", NULL};

/* ---- options ---- */

enum { OPTIONS_MOST = 40 };

typedef struct {
    size_t count;
    cli_option rows[OPTIONS_MOST];
    unsigned kinds[OPTIONS_MOST]; /* kinds that have the option: bits 1 << generate_kind */
} option_list;

enum { OF_PHASE = 1 << KIND_PHASE_RETRIEVAL, OF_CLUSTERED = 1 << KIND_CLUSTERED };
enum { OF_ROWS = OF_CLUSTERED | 1 << KIND_QUANTILE, OF_ALL = OF_PHASE | OF_ROWS };

static void add_options(option_list *list, unsigned kinds, const cli_option *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        list->kinds[list->count] = kinds;
        list->rows[list->count++] = rows[i];
    }
}
#define ADD(list, kinds, rows) add_options(list, kinds, rows, sizeof(rows) / sizeof *(rows))

static void list_common(option_list *list, generate_arguments *a)
{
    const cli_option common[] = {
        {"out", CLI_NEEDED, &a->out, 0, 0, NULL, "DIR", "output folder; required"},
        {"edges", CLI_WHOLE, &a->edges, 1, 1e8, NULL, "L", "number of edges (5)"},
        {"clients", CLI_WHOLE, &a->clients, 1, 1e8, NULL, "N", "clients below each edge (50)"},
        {"features", CLI_WHOLE, &a->features, 1, 1e7, NULL, "M", "length of the model (25)"},
        {"rows", CLI_WHOLE, &a->rows, 1, 1e9, NULL, "N", "rows per client (100; phase-retrieval: 1)"},
        {"names", CLI_TEXT, &a->names, 0, 0, NULL, "E,C",
         "prefixes of the names of edges and clients\n"
         "(edge,client)"},
        {"seed", CLI_TEXT, &a->seed_text, 0, 0, NULL, "N", "seed of all random draws (1)"},
        {"digits", CLI_WHOLE, &a->digits, 1, 17, NULL, "D", "significant digits of y and the features (17)"},
        {"tree", CLI_FLAG, &a->tree, 0, 0, NULL, NULL,
         "write a folder data with EDGE/CLIENT.csv for each client\n"
         "instead of data.csv; the same for test"},
        {"force", CLI_FLAG, &a->force, 0, 0, NULL, NULL, "replace existing files"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress, no summary"},
    };
    const cli_option phase[] = {
        {"snr-db", CLI_REAL, &a->snr_db, -300, 300, NULL, "DB", "signal-to-noise ratio in decibels (20)"},
        {"keep-x", CLI_REAL, &a->keep_x, 1e-9, 1, NULL, "RATIO", "share of the features that an edge observes (0.8)"},
        {"keep-w", CLI_REAL, &a->keep_w, 1e-9, 1, NULL, "RATIO", "share of the true model that is not zero (0.3)"},
    };
    ADD(list, OF_ALL, common);
    ADD(list, OF_PHASE, phase);
}

static void list_rows(option_list *list, generate_arguments *a)
{
    const cli_option rows[] = {
        {"test-rows", CLI_WHOLE, &a->test_rows, 0, 1e9, NULL, "N", "additional rows per client in test.csv (0: none)"},
        {"nonzero", CLI_WHOLE, &a->nonzero, 1, 1e7, NULL, "K",
         "number of non-zero coefficients (4, or M if that is less)"},
        {"rho", CLI_REAL, &a->rho, -0.999, 0.999, NULL, "R", "correlation R^|i-j| between features i and j (0.5)"},
        {"shift", CLI_REAL, &a->shift, 0, 1e6, NULL, "S",
         "standard deviation of a feature's mean between clients;\n"
         "the variance within a client is 1 (0: no difference)"},
        {"intercepts", CLI_REAL, &a->intercepts, 0, 1e6, NULL, "S",
         "standard deviation of the intercepts of edges (0: none)"},
        {"noise", CLI_CHOICE, &a->noise, 0, 0, generate_noise_names, "LAW",
         "gaussian, student, mixture (of two gaussians), laplace or\n"
         "logistic (student; loss squared: gaussian; classes:\n"
         "logistic)"},
        {"noise-scale", CLI_REAL, &a->noise_scale, 0, 1e6, NULL, "S", "scale of the noise (1)"},
        {"df", CLI_REAL, &a->df, 0.5, 1000, NULL, "D", "student: degrees of freedom (2)"},
        {"outliers", CLI_REAL, &a->outliers, 0, 1, NULL, "SHARE", "mixture: share of the wider gaussian (0.1)"},
        {"outlier-factor", CLI_REAL, &a->outlier_factor, 1e-6, 1e6, NULL, "F", "mixture: factor of its width (10)"},
        {"heteroscedastic", CLI_FLAG, &a->heteroscedastic, 0, 0, NULL, NULL, "noise times (1 + |x_1|)/2"},
        {"tau", CLI_REAL, &a->tau, 1e-4, 1 - 1e-4, NULL, "TAU",
         "loss quantile: the level; the noise is shifted so that\n"
         "the TAU-quantile of y given x is <x,w> plus the edge's\n"
         "intercept (0.5)"},
    };
    ADD(list, OF_ROWS, rows);
}

static void list_clustered(option_list *list, generate_arguments *a)
{
    const cli_option clustered[] = {
        {"task", CLI_CHOICE, &a->task, 0, 0, generate_task_names, "TASK",
         "regression; classification: y is -1 or 1; counts: y is\n0, 1, 2, ... (regression)"},
        {"loss", CLI_CHOICE, &a->loss, 0, 0, generate_loss_names, "LOSS",
         "loss of the spec: quantile, smoothed-quantile, expectile,\nabsolute, squared, huber; logistic, hinge for "
         "classes;\npoisson for counts (quantile; logistic; poisson)"},
        {"groups", CLI_WHOLE, &a->groups, 2, GROUPS_MOST, NULL, "G",
         "number of models, including that of the majority (2)"},
        {"minority", CLI_REAL, &a->minority, 1e-6, 0.5, NULL, "SHARE", "share that follows the other models (0.1)"},
        {"minority-by", CLI_CHOICE, &a->minority_by, 0, 0, generate_spread_names, "WHAT",
         "client: clients in all edges; edge: whole edges (client)"},
        {"distance", CLI_REAL, &a->distance, 1e-6, 1e6, NULL, "D",
         "distance of the other models from that of the majority,\n"
         "in each of K features (2)"},
    };
    ADD(list, OF_CLUSTERED, clustered);
}

static option_list list_options(generate_arguments *a)
{
    option_list list = {0};
    list_common(&list, a);
    list_rows(&list, a);
    list_clustered(&list, a);
    return list;
}

/* The place of the option that an argument names, or SIZE_MAX. */
static size_t option_named(const option_list *list, const char *argument)
{
    const size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < list->count && !strncmp(argument, "--", 2); i++)
        if (strlen(list->rows[i].name) == length - 2 && !strncmp(list->rows[i].name, argument + 2, length - 2))
            return i;
    return SIZE_MAX;
}

/* Whether the option's operand is the next argument. */
static bool operand_follows(const option_list *list, size_t option, const char *argument)
{
    return option != SIZE_MAX && list->rows[option].kind != CLI_FLAG && !strchr(argument, '=');
}

static int unknown_kind(const char *command, const char *kind)
{
    char shown[CLI_SHOWN_SIZE];
    cli_shown(shown, kind);
    const char *nearest = cli_nearest(kind, generate_kind_names);
    if (nearest)
        return cli_wrong(command, "unknown kind of data '%s'; did you mean %s?", shown, nearest);
    return cli_wrong(command, "unknown kind of data '%s'; known: phase-retrieval, quantile, clustered", shown);
}

/* Options depend on the kind of data, which may come after some of them. *kind: KINDS for none. */
static int find_kind(const option_list *list, int argc, char **argv, generate_kind *kind)
{
    const char *word = NULL;
    for (int i = 1; i < argc && !word; i++) {
        if (operand_follows(list, option_named(list, argv[i]), argv[i]))
            i++;
        else if (argv[i][0] != '-')
            word = argv[i];
    }
    *kind = word ? KIND_PHASE_RETRIEVAL : KINDS;
    while (word && *kind < KINDS && strcmp(word, generate_kind_names[*kind]) != 0)
        ++*kind;
    return word && *kind == KINDS ? unknown_kind(argv[0], word) : CLI_GO;
}

static int refuse_foreign(const option_list *list, generate_kind kind, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const size_t option = option_named(list, argv[i]);
        if (operand_follows(list, option, argv[i]))
            i++;
        if (option == SIZE_MAX || list->kinds[option] >> kind & 1)
            continue;
        int owner = 0;
        while (!(list->kinds[option] >> owner & 1))
            owner++;
        return cli_wrong(argv[0], "--%s is an option of %s data, not of %s", list->rows[option].name,
                         generate_kind_names[owner], generate_kind_names[kind]);
    }
    return CLI_GO;
}

static const char *const USAGE[KINDS + 1] = {
    "generate phase-retrieval --out DIR [OPTIONS]",
    "generate quantile --out DIR [OPTIONS]",
    "generate clustered --out DIR [OPTIONS]",
    "generate phase-retrieval|quantile|clustered --out DIR [OPTIONS]\nhfsad generate KIND --help",
};
static const char *const ABOUT[KINDS + 1] = {
    "Generates the data of the paper's experiment: one intensity y = <x,w>^2 + noise of a sparse model\n"
    "per client. The noise is exponential, and ten times larger in one of ten rows. Trial t of\n"
    "`hfsad paper --seed S` uses the data of seed S + t - 1. With --rows R each client has R\n"
    "intensities: the same rows as R times as many clients with one row each.",
    "Generates a sparse quantile regression: many rows y = <x,w> + noise per client, correlated\n"
    "features, heavy-tailed noise whose TAU-quantile is 0.",
    "Generates rows of clients, a minority of which follows other models than the majority, for\n"
    "regression (y = <x,w> + noise, as in quantile) or classification (y is the sign of <x,w> + noise).",
    "Generates data from a known model, and a spec to run them with. The kinds:\n"
    "  phase-retrieval   the paper's experiment: intensities of a sparse model\n"
    "  quantile          sparse quantile regression, many rows per client\n"
    "  clustered         regression or classes; a minority of the clients has other models\n"
    "Each kind has more options than those below; its own help lists them.",
};
static const char *const AFTER[KINDS + 1] = {
    "The command writes data.csv (edge, client, y, features) or the folder data, truth.csv (the\n"
    "true model, one number per line) and spec.yaml, for `hfsad run DIR/spec.yaml`.\n\n",
    "The command writes data.csv (edge, client, y, features) or the folder data, truth.csv (the\n"
    "true model, one number per line), spec.yaml, for `hfsad run DIR/spec.yaml`, and with\n"
    "--test-rows test.csv or the folder test.\n\n",
    "The command writes data.csv (edge, client, y, features) or the folder data, truth.csv (the\n"
    "majority's model, one number per line), truth-1.csv (the same), truth-2.csv, ... for all\n"
    "groups, groups.csv (client, group), spec.yaml, for `hfsad run DIR/spec.yaml`, and with\n"
    "--test-rows test.csv or the folder test.\n\n",
    "",
};

static int parse_arguments(generate_arguments *a, int argc, char **argv)
{
    const option_list list = list_options(a);
    int status = find_kind(&list, argc, argv, &a->kind);
    if (status == CLI_GO && a->kind < KINDS)
        status = refuse_foreign(&list, a->kind, argc, argv);
    if (status != CLI_GO)
        return status;
    cli_option options[OPTIONS_MOST];
    size_t n = 0;
    for (size_t i = 0; i < list.count; i++)
        if (a->kind < KINDS ? list.kinds[i] >> a->kind & 1 : list.kinds[i] == OF_ALL)
            options[n++] = list.rows[i];
    char after[1000];
    snprintf(after, sizeof after,
             "%sExit status: 0 done, 1 the files could not be written, 2 the arguments are wrong, 129 after\n"
             "SIGHUP, 130 after Ctrl-C, 143 after SIGTERM. If the status is not 0, DIR is unchanged.",
             AFTER[a->kind]);
    const cli_syntax syntax = {
        .usage = USAGE[a->kind],
        .about = ABOUT[a->kind],
        .options = options,
        .n_options = n,
        .least_words = 1,
        .most_words = 1,
        .words = "the kind of data (phase-retrieval, quantile or clustered)",
        .after = after,
    };
    const char *word;
    return cli_parse(&syntax, argc, argv, &word);
}

/* ---- checks ---- */

static int task_of(int loss)
{
    return loss == LOSS_LOGISTIC || loss == LOSS_HINGE ? TASK_CLASSIFICATION
           : loss == LOSS_POISSON                      ? TASK_COUNTS
                                                       : TASK_REGRESSION;
}

/* Options of a noise distribution or a loss that is not in use. */
static int check_applies(const generate_arguments *a, const char *command)
{
    const struct {
        const char *name, *of;
        bool given, applies;
    } options[] = {
        {"df", "--noise student", !isnan(a->df), a->noise == NOISE_STUDENT},
        {"outliers", "--noise mixture", !isnan(a->outliers), a->noise == NOISE_MIXTURE},
        {"outlier-factor", "--noise mixture", !isnan(a->outlier_factor), a->noise == NOISE_MIXTURE},
        {"tau", "--loss quantile", !isnan(a->tau), generate_has_level(a->loss)},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].applies)
            return cli_wrong(command, "--%s needs %s; give both or neither", options[i].name, options[i].of);
    return CLI_GO;
}

static void fill_in(double *value, double usual)
{
    *value = isnan(*value) ? usual : *value;
}

/* "region,site" into its two words. */
static int read_names(generate_arguments *a, const char *command)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t first = strspn(a->names, plain);
    const char *second = a->names + first + 1;
    char shown[CLI_SHOWN_SIZE];
    if (a->names[first] != ',' || first == 0 || !*second || second[strspn(second, plain)] || first >= WORD_SIZE ||
        strlen(second) >= WORD_SIZE)
        return cli_wrong(command,
                         "--names must be two words of letters, digits, - and _, separated by a comma, not '%s'",
                         cli_shown(shown, a->names));
    snprintf(a->edge_word, WORD_SIZE, "%.*s", (int)first, a->names);
    snprintf(a->client_word, WORD_SIZE, "%s", second);
    return CLI_GO;
}

/* Choices that depend on others. */
static int settle_arguments(generate_arguments *a, const char *command)
{
    if (a->rows < 0)
        a->rows = a->kind == KIND_PHASE_RETRIEVAL ? 1 : 100;
    if (a->kind == KIND_PHASE_RETRIEVAL)
        return CLI_GO;
    if (a->task < 0)
        a->task = task_of(a->loss);
    if (a->loss < 0)
        a->loss = a->task == TASK_CLASSIFICATION ? LOSS_LOGISTIC
                  : a->task == TASK_COUNTS       ? LOSS_POISSON
                                                 : LOSS_QUANTILE;
    if (task_of(a->loss) != a->task)
        return cli_wrong(command, "--loss %s does not fit --task %s; use %s", generate_loss_names[a->loss],
                         generate_task_names[a->task],
                         a->task == TASK_CLASSIFICATION ? "logistic or hinge"
                         : a->task == TASK_COUNTS       ? "poisson"
                                                  : "quantile, smoothed-quantile, expectile, absolute, squared or "
                                                    "huber");
    if (a->task == TASK_COUNTS && a->noise > NOISE_GAUSSIAN)
        return cli_wrong(command, "--noise is not for --task counts, whose noise is that of the counts");
    if (a->noise < 0)
        a->noise = a->task == TASK_CLASSIFICATION                                                   ? NOISE_LOGISTIC
                   : a->task == TASK_COUNTS || a->loss == LOSS_SQUARED || a->loss == LOSS_EXPECTILE ? NOISE_GAUSSIAN
                                                                                                    : NOISE_STUDENT;
    const int status = check_applies(a, command);
    fill_in(&a->df, 2);
    fill_in(&a->outliers, 0.1);
    fill_in(&a->outlier_factor, 10);
    fill_in(&a->tau, 0.5);
    if (a->nonzero < 0)
        a->nonzero = a->features < 4 ? a->features : 4;
    return status;
}

population_law generate_law(const generate_arguments *a)
{
    return (population_law){
        .edges = (size_t)a->edges,
        .clients = (size_t)a->clients,
        .features = (size_t)a->features,
        .nonzero = (size_t)a->nonzero,
        .rho = a->rho,
        .shift = a->shift,
        .intercepts = a->intercepts,
        .task = (population_task)a->task,
        .noise = {(noise_kind)a->noise, a->noise_scale, a->df, a->outliers, a->outlier_factor},
        .tau = a->tau,
        .heteroscedastic = a->heteroscedastic,
        .groups = a->kind == KIND_CLUSTERED ? (size_t)a->groups : 1,
        .minority = a->minority,
        .distance = a->distance,
        .minority_by = (minority_spread)a->minority_by,
        .seed = (uint64_t)a->seed,
    };
}

static int check_size(const generate_arguments *a, const char *command)
{
    const double clients = (double)a->edges * (double)a->clients;
    const double rows = (double)a->rows + (double)a->test_rows;
    if (clients > CLIENTS_MOST)
        return cli_wrong(command, "--edges %" PRId64 " times --clients %" PRId64 " is more than %.0f clients", a->edges,
                         a->clients, CLIENTS_MOST);
    if (clients * rows * (double)a->features > NUMBERS_MOST)
        return cli_wrong(command,
                         "that would be %.0f numbers, more than %.0f; reduce --edges, --clients, --rows or --features",
                         clients * rows * (double)a->features, NUMBERS_MOST);
    return CLI_GO;
}

static int check_minority(const generate_arguments *a, const char *command)
{
    const population_law law = generate_law(a);
    const bool edges = a->minority_by == MINORITY_BY_EDGE;
    const size_t all = edges ? law.edges : law.edges * law.clients, chosen = population_minority(&law);
    const char *what = edges ? "edge" : "client";
    if (chosen + 1 < law.groups)
        return cli_wrong(
            command, "--minority %g of %zu %s%s is %zu, too few for %zu minority group%s; increase --minority or --%ss",
            a->minority, all, what, all == 1 ? "" : "s", chosen, law.groups - 1, law.groups == 2 ? "" : "s", what);
    if (chosen >= all)
        return cli_wrong(command, "--minority %g of %zu %s%s leaves no majority; increase --%ss", a->minority, all,
                         what, all == 1 ? "" : "s", what);
    return CLI_GO;
}

/* An existing folder is never replaced, because its other files would be lost. */
static int check_files(const generate_arguments *a, const char *command)
{
    char names[FILES_MOST][FILE_NAME_SIZE];
    const size_t n = generate_file_names(a, names), folders = generate_folders(a);
    for (size_t i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", a->out, names[i]);
        if ((a->force && i >= folders) || access(path, F_OK) != 0)
            continue;
        return cli_wrong(command, "%s already exists; give another --out, or %s", path,
                         i < folders ? "remove it" : "--force to replace it");
    }
    return CLI_GO;
}

/* Checks that involve several options. */
static int check_arguments(const generate_arguments *a, const char *command)
{
    int status = check_size(a, command);
    if (status == CLI_GO && a->kind != KIND_PHASE_RETRIEVAL && a->nonzero > a->features)
        status = cli_wrong(command, "--nonzero %" PRId64 " is more than --features %" PRId64, a->nonzero, a->features);
    if (status == CLI_GO && a->kind == KIND_CLUSTERED)
        status = check_minority(a, command);
    return status == CLI_GO ? check_files(a, command) : status;
}

/* ---- final output ---- */

/* Quotes an argument for a shell if necessary. */
static void print_path(const char *folder, const char *name)
{
    const size_t plain = strspn(folder, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-");
    if (!folder[plain]) {
        printf("%s/%s", folder, name);
        return;
    }
    putchar('\'');
    for (; *folder; folder++)
        fputs(*folder == '\'' ? "'\\''" : (char[2]){*folder, 0}, stdout);
    printf("/%s'", name);
}

/* "5 edges"; the word is in the singular. */
static void print_count(int64_t n, const char *word)
{
    printf("%" PRId64 " %s%s", n, word, n == 1 ? "" : "s");
}

static void print_details(const generate_arguments *a)
{
    const size_t M = (size_t)a->features;
    if (a->kind == KIND_PHASE_RETRIEVAL) {
        printf(" (%zu observed per edge, %zu of the model not zero), ", kept_count(a->keep_x, M),
               kept_count(a->keep_w, M));
        print_count(a->rows, "row");
        printf(" per client, snr %g dB", a->snr_db);
        return;
    }
    printf(" (%" PRId64 " of the model not zero), ", a->nonzero);
    print_count(a->rows, "row");
    printf(" per client, %s noise", generate_noise_names[a->noise]);
    if (a->kind == KIND_CLUSTERED) {
        const population_law law = generate_law(a);
        printf("; %zu of the %ss with ", population_minority(&law), generate_spread_names[a->minority_by]);
        if (a->groups == 2)
            printf("another model");
        else
            printf("%" PRId64 " other models", a->groups - 1);
    }
}

static void print_outcome(const generate_arguments *a)
{
    char names[FILES_MOST][FILE_NAME_SIZE];
    const size_t n = generate_file_names(a, names);
    printf("wrote %s: ", a->out);
    for (size_t i = 0; i < n; i++)
        printf("%s%s", i ? ", " : "", names[i]);
    putchar('\n');
    print_count(a->edges, "edge");
    printf(" with ");
    print_count(a->clients, "client");
    printf(" each, ");
    print_count(a->features, "feature");
    print_details(a);
    printf(", seed %" PRId64 "\nnext: hfsad run ", a->seed);
    print_path(a->out, names[n - 1]);
    printf(" --out ");
    print_path(a->out, "run");
    putchar('\n');
}

int cmd_generate(int argc, char **argv)
{
    const phase_retrieval usual = phase_retrieval_paper();
    generate_arguments a = {.edges = (int64_t)usual.edges,
                            .clients = (int64_t)usual.clients,
                            .features = (int64_t)usual.features,
                            .seed_text = "1",
                            .names = "edge,client",
                            .snr_db = usual.snr_db,
                            .keep_x = usual.keep_x,
                            .keep_w = usual.keep_w,
                            .rows = -1,
                            .digits = 17,
                            .nonzero = -1,
                            .rho = 0.5,
                            .noise = -1,
                            .df = NAN,
                            .outliers = NAN,
                            .outlier_factor = NAN,
                            .noise_scale = 1,
                            .tau = NAN,
                            .task = -1,
                            .loss = -1,
                            .groups = 2,
                            .minority = 0.1,
                            .distance = 2};
    int status = parse_arguments(&a, argc, argv);
    if (status == CLI_GO)
        status = paper_seed(argv[0], a.seed_text, SEED_MOST, &a.seed);
    if (status == CLI_GO)
        status = read_names(&a, argv[0]);
    if (status == CLI_GO)
        status = settle_arguments(&a, argv[0]);
    if (status == CLI_GO)
        status = check_arguments(&a, argv[0]);
    if (status != CLI_GO)
        return status;
    hfsad_error err = {0};
    bool whole;
    if (generate_files(&a, &whole, &err))
        return cli_fail(&err);
    if (!whole) {
        fputs("hfsad: interrupted; nothing was written\n", stderr);
        return 128 + cli_interrupted();
    }
    if (!a.quiet)
        print_outcome(&a);
    return cli_finish_stdout(CLI_DONE);
}
