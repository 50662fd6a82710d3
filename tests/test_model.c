/* Models read from an output folder, damaged folders, and predictions for rows. */
#include "defined_losses.h"

#include "base/format_number.h"
#include "out/model_evaluation.h"

#include <sys/stat.h>
#include <unistd.h>

static void put(const char *name, const char *bytes, size_t size)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void put_summary(size_t inner, size_t clients, size_t features, bool kept, const char *loss,
                        const char *overrides)
{
    char text[2000];
    snprintf(text, sizeof text,
             "{\"data\": {\"inner_nodes\": %zu, \"clients\": %zu, \"features\": %zu},\n"
             "\"settings\": {\"loss\": {%s}, \"output\": {\"clients\": %s}, \"overrides\": [%s]}}\n",
             inner, clients, features, loss, kept ? "true" : "false", overrides);
    put_text("summary.json", text);
}

static model *read_ok(void)
{
    hfsad_error err = {0};
    model *m;
    ok(model_read(&m, folder, &err), &err);
    return m;
}

static void read_refused(const char *words)
{
    hfsad_error err = {0};
    model *m;
    const hfsad_status status = model_read(&m, folder, &err);
    assert_null(m);
    assert_int_equal(status, HFSAD_ERROR_INPUT);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_null(strchr(err.message, '\n'));
}

/* ---- reading ---- */

/* Random numbers and names; what is read back has the same bits under the same names. */
static void test_round_trip(void **state)
{
    (void)state;
    enum { NODES = 500, INNER = 7, MOST = 9 };
    static double w[NODES][MOST + 1];
    static char text[NODES * (MOST + 1) * 40];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rng r = {.key = seed};
        const size_t F = 1 + below(&r, MOST), width = F + seed % 2;
        const bool quoted = seed % 3 == 0;
        const char *end = seed % 5 ? "\n" : "\r\n";
        char *at = text + sprintf(text, "node");
        for (size_t m = 1; m <= F; m++)
            at += sprintf(at, ",w%zu", m);
        at += sprintf(at, "%s%s", width > F ? ",intercept" : "", end);
        for (size_t n = 0; n < NODES; n++) {
            if (n == 0)
                at += sprintf(at, "cloud");
            else
                at += sprintf(at, quoted ? "\"node %zu\"" : "edge/node %zu", n);
            for (size_t m = 0; m < width; m++) {
                w[n][m] = below(&r, 4) ? rng_next_normal(&r) * log_uniform(&r, 1e-300, 1e300) : 0;
                at += sprintf(at, ",%.17g", w[n][m]);
            }
            at += sprintf(at, "%s", end);
        }
        put("model.csv", text, (size_t)(at - text));
        put_summary(INNER, NODES - INNER, seed % 4 ? F : width, true, "\"kind\": \"squared\"", "");
        model *m = read_ok();
        if (m->n_nodes != NODES || m->n_inner != INNER || m->F != F || m->intercept != (width > F))
            fail_msg("seed %d: another shape", (int)seed);
        for (uint32_t n = 0; n < NODES; n++) {
            char name[40] = "cloud", other[48];
            if (n)
                sprintf(name, quoted ? "node %u" : "edge/node %u", n);
            sprintf(other, "%s ", name);
            if (model_find(m, name) != n || strcmp(model_name(m, n), name) != 0 || model_find(m, other) != MODEL_NONE ||
                memcmp(model_weights(m, n), w[n], width * sizeof(double)) != 0)
                fail_msg("seed %d: node %u is not what was written", (int)seed, n);
        }
        assert_int_equal(model_find(m, ""), MODEL_NONE);
        model_free(m);
    }
}

static const char whole_model[] = "node,w1,w2,intercept\ncloud,1,2.5,3\nedge1,4,5,6\nedge1/a,7,8,-9.25\n";

static void put_whole(void)
{
    put_text("model.csv", whole_model);
    put_summary(2, 1, 2, true, "\"kind\": \"quantile\", \"tau\": 0.25, \"scale\": \"mean\"",
                "{\"node\": \"edge1/*\", \"loss\": {\"tau\": 0.5}}");
}

static void test_damaged_tables(void **state)
{
    (void)state;
    const struct {
        const char *text, *words;
    } cases[] = {
        {"", "model.csv:1: the file is cut short"},
        {"\n", "column 1 is called \"\" instead of node"},
        {"node\ncloud\n", "no models in the header"},
        {"node,intercept\ncloud,1\n", "column 2 is called \"intercept\" instead of w1"},
        {"node,w1,w3,intercept\n", "column 3 is called \"w3\" instead of w2"},
        {"node,w1,w2,intercept,w3\n", "column 4 is called \"intercept\" instead of w3"},
        {"node,w1,w2,\n", "column 4 is called \"\" instead of w3"},
        {"node,w1,w2,intercept\ncloud,1,2\n", "model.csv:2: 2 numbers instead of 3"},
        {"node,w1,w2,intercept\ncloud,1,2,3,4,5\n", "model.csv:2: 5 numbers instead of 3"},
        {"node,w1,w2,intercept\ncloud,1,2,3\n\nedge1/a,1,2,3\n", "model.csv:3: 0 numbers instead of 3"},
        {"node,w1,w2,intercept\ncloud,1,nan,3\n", "model.csv:2: w2 is \"nan\"; expected a finite number"},
        {"node,w1,w2,intercept\ncloud,1,2,-inf\n", "model.csv:2: intercept is \"-inf\""},
        {"node,w1,w2,intercept\ncloud,1e999,2,3\n", "model.csv:2: w1 is \"1e999\""},
        {"node,w1,w2,intercept\ncloud,1,,3\n", "model.csv:2: w2 is \"\""},
        {"node,w1,w2,intercept\ncloud,1,2x,3\n", "model.csv:2: w2 is \"2x\""},
        {"node,w1,w2,intercept\ncloud,1,2,3\nedge1,4,5,6\n", "has 2 models, but the summary.json beside it states 3"},
        {"node,w1,w2,intercept\nedge1,1,2,3\ncloud,4,5,6\na,1,2,3\n", "the first model is \"edge1\" instead of cloud"},
        {"node,w1,w2,intercept\ncloud,1,2,3\na,4,5,6\na,1,2,3\n", "lines 3 and 4 both belong to the node \"a\""},
        {"node,w1\ncloud,1\nedge1,4\na,1\n", "has 1 features, but the summary.json beside it states 2"},
    };
    put_whole();
    model_free(read_ok());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("model.csv", cases[i].text);
        read_refused(cases[i].words);
    }
}

static void test_damaged_summaries(void **state)
{
    (void)state;
    put_whole();
    put_summary(2, 1, 2, true, "\"kind\": \"median\"", "");
    read_refused("\"loss.kind\"");
    put_summary(2, 1, 2, true, "", "");
    read_refused("\"settings.loss.kind\"");
    put_summary(2, 1, 2, true, "\"kind\": \"quantile\", \"tau\": 1", "");
    read_refused("\"loss.tau\" is not a number above 0 and below 1");
    put_summary(2, 1, 2, true, "\"kind\": \"huber\", \"delta\": \"x\"", "");
    read_refused("\"loss.delta\" is not a number above 0");
    put_summary(2, 1, 2, true, "\"kind\": \"huber\", \"delta\": 1e999", "");
    read_refused("\"loss.delta\"");
    put_summary(2, 1, 2, true, "\"kind\": 3", "");
    read_refused("\"loss.kind\"");
    put_summary(2, 1, 2, true, "\"kind\": \"squared\", \"scale\": \"most\"", "");
    read_refused("\"loss.scale\"");
    put_summary(2, 1, 2, true, "\"kind\": \"squared\"", "3");
    read_refused("\"settings.overrides\"");
    put_summary(2, 1, 2, true, "\"kind\": \"squared\"", "{\"node\": \"a\", \"loss\": {\"kind\": \"b\"}}");
    read_refused("\"loss.kind\"");
    put_summary(0, 1, 2, true, "\"kind\": \"squared\"", "");
    read_refused("\"data.inner_nodes\"");
    put_summary(2, 1, 2, false, "\"kind\": \"squared\"", "");
    read_refused("has 3 models, but the summary.json beside it states 2");
    put_text("summary.json", "[1, 2]");
    read_refused("not a complete JSON object");
    put_text("summary.json", "{}");
    read_refused("\"data.inner_nodes\"");
    const char *path = in_folder("summary.json");
    unlink(path);
    read_refused("summary.json cannot be read: No such file or directory; expected the output folder of hfsad run");
    assert_int_equal(mkdir(path, 0777), 0);
    read_refused("it is not a regular file");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0666), 0); /* nobody writes to it */
    read_refused("it is not a regular file");
    unlink(path);
}

/* However a file is cut short, it is noticed. */
static void test_cut_short(void **state)
{
    (void)state;
    put_whole();
    for (size_t size = 0; size < sizeof whole_model - 1; size++) {
        put("model.csv", whole_model, size);
        read_refused("model.csv");
    }
    put_whole();
    char text[2000];
    FILE *f = fopen(in_folder("summary.json"), "r");
    assert_non_null(f);
    const size_t whole = fread(text, 1, sizeof text, f);
    fclose(f);
    for (size_t size = 0; size + 1 < whole; size++) { /* without its last newline it is whole */
        put("summary.json", text, size);
        read_refused("summary.json");
    }
}

/* Whatever stands in the files, they are read or refused. */
static void test_garbage(void **state)
{
    (void)state;
    static const char bytes[] = ",\n\r\"0123456789.e-+wnod{}[]:\0\xff";
    rng r = {.key = 5};
    char text[sizeof whole_model];
    put_whole();
    for (int trial = 0; trial < 1000; trial++) {
        memcpy(text, whole_model, sizeof text);
        for (size_t n = 1 + below(&r, 4); n > 0; n--)
            text[below(&r, sizeof text - 1)] = bytes[below(&r, sizeof bytes - 1)];
        put("model.csv", text, sizeof text - 1);
        hfsad_error err = {0};
        model *m;
        const hfsad_status status = model_read(&m, folder, &err);
        if (status != HFSAD_OK && status != HFSAD_ERROR_INPUT)
            fail_msg("trial %d: %s", trial, err.message);
        assert_true((m != NULL) == (status == HFSAD_OK));
        model_free(m);
    }
}

static void test_law(void **state)
{
    (void)state;
    put_text("model.csv", "node,w1\ncloud,1\nedge1,4\n");
    put_summary(2, 9, 1, false, "\"kind\": \"squared\", \"scale\": \"sum\"",
                "{\"node\": \"edge1\", \"prior\": {\"weight\": 3}},"
                "{\"node\": \"edge1/*\", \"loss\": {\"kind\": \"quantile\", \"tau\": 0.1, \"scale\": \"mean\"}},"
                "{\"node\": \"edge?/b\", \"loss\": {\"kind\": \"huber\", \"delta\": 3}},"
                "{\"node\": \"edge1/c\", \"loss\": {\"kind\": \"quantile\", \"tau\": 0.9}}");
    const struct {
        const char *client;
        hfsad_loss_kind kind;
        double tau, delta;
        bool mean;
    } cases[] = {
        {"a", HFSAD_LOSS_SQUARED, 0.5, 1, false},
        {"edge1/a", HFSAD_LOSS_QUANTILE, 0.1, 1, true},
        {"edge1/b", HFSAD_LOSS_HUBER, 0.1, 3, true},
        {"edge1/c", HFSAD_LOSS_QUANTILE, 0.9, 1, true},
        {"edge2/b", HFSAD_LOSS_HUBER, 0.5, 3, false},
        {"edge1/deep/a", HFSAD_LOSS_SQUARED, 0.5, 1, false},
        {"region/edge1/a", HFSAD_LOSS_SQUARED, 0.5, 1, false},
    };
    model *m = read_ok();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const client_law law = model_law(m, cases[i].client);
        if (law.loss.kind != cases[i].kind || law.loss.tau != cases[i].tau || law.loss.delta != cases[i].delta ||
            law.mean != cases[i].mean || !isinf(law.loss.box))
            fail_msg("another loss for %s", cases[i].client);
    }
    model_free(m);
}

/* ---- scoring ---- */

/* Five inner nodes and three clients with random models. */
static void put_tree(size_t F, rng *r, bool clients)
{
    static const char *const names[] = {"cloud",           "far",   "region", "gone", "region/edge",
                                        "region/edge/own", "far/b", "top"};
    char text[4000], *at = text + sprintf(text, "node");
    for (size_t m = 1; m <= F; m++)
        at += sprintf(at, ",w%zu", m);
    at += sprintf(at, ",intercept\n");
    for (size_t n = 0; n < (clients ? 8 : 5); n++) {
        at += sprintf(at, "%s", names[n]);
        for (size_t m = 0; m <= F; m++)
            at += sprintf(at, ",%.17g", rng_next_normal(r));
        at += sprintf(at, "\n");
    }
    put("model.csv", text, (size_t)(at - text));
    put_summary(5, 3, F, clients, "\"kind\": \"absolute\"", "");
}

static const struct {
    const char *path, *client;
    const char *by_auto, *by_edge; /* whose model; by_edge NULL: there is none */
} people[] = {
    {"region/edge", "own", "region/edge/own", "region/edge"},
    {"region/edge", "new", "region/edge", "region/edge"},
    {"region", "direct", "region", "region"},
    {"", "top", "top", "cloud"},
    {"", "newcomer", "cloud", "cloud"},
    {"far", "a", "far", "far"},
    {"region/other", "c", "region", NULL},
    {"region/other/deep", "d", "region", NULL},
    {"elsewhere", "e", "cloud", NULL},
    {"", "gone", "cloud", "cloud"}, /* the model's gone is an edge */
    {"far/b", "g", "far", NULL},    /* the model's far/b is a client */
};
enum { PEOPLE = sizeof people / sizeof *people };

/* The first `count` of them with random rows. */
static dataset *make_people(rng *r, size_t count, size_t F)
{
    hfsad_error err = {0};
    dataset_builder *b;
    dataset *d;
    double x[16];
    ok(dataset_builder_create(&b, F, &err), &err);
    for (size_t i = 0; i < 3 * count; i++) {
        for (size_t m = 0; m < F; m++)
            x[m] = below(r, 3) ? rng_next_normal(r) : 0;
        ok(dataset_builder_add(b, people[i % count].path, people[i % count].client, rng_next_normal(r), x, NULL, i + 1,
                               &err),
           &err);
    }
    dataset_builder_use_rows(b);
    ok(dataset_builder_finish(b, &d, &err), &err);
    return d;
}

static void check_choice(const scoring *s, const char *(*wanted)(size_t))
{
    for (size_t leaf = 0; leaf < s->data->n_leaves; leaf++) {
        const char *client = s->data->names + s->data->leaf_name[leaf];
        size_t i = 0;
        while (strcmp(people[i].client, client) != 0)
            i++;
        assert_string_equal(model_name(s->model, s->node[leaf]), wanted(i));
    }
}

static const char *wanted_auto(size_t i)
{
    return people[i].by_auto;
}

static const char *wanted_edge(size_t i)
{
    return people[i].by_edge;
}

static const char *wanted_cloud(size_t i)
{
    (void)i;
    return "cloud";
}

static void test_choice(void **state)
{
    (void)state;
    hfsad_error err = {0};
    rng r = {.key = 3};
    put_tree(3, &r, true);
    scoring s = {.folder = folder, .path = "data", .model = read_ok(), .data = make_people(&r, PEOPLE, 3)};
    ok(scoring_match(&s, WITH_AUTO, &err), &err);
    check_choice(&s, wanted_auto);
    assert_int_equal(s.most_rows, 3);
    free(s.node);
    ok(scoring_match(&s, WITH_CLOUD, &err), &err);
    check_choice(&s, wanted_cloud);
    free(s.node);
    assert_int_equal(scoring_match(&s, WITH_EDGE, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "has no model"));
    free(s.node);
    assert_int_equal(scoring_match(&s, WITH_CLIENT, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "the client newcomer has no model"));
    dataset_free(s.data);
    free(s.node);
    s.data = make_people(&r, 6, 3); /* those whose edges have models */
    ok(scoring_match(&s, WITH_EDGE, &err), &err);
    check_choice(&s, wanted_edge);
    free(s.node);
    s.node = NULL;
    model_free(s.model);
    put_tree(3, &r, false);
    s.model = read_ok();
    assert_int_equal(scoring_match(&s, WITH_CLIENT, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "output.clients"));
    scoring_free(&s);
}

/* The same rows without their zeros and without the columns behind the last one that is used. */
static void make_sparse(dataset *d, size_t used)
{
    row_table *t = &d->rows;
    size_t n = 0;
    t->start = alloc_zero(d->n_rows + 1, sizeof *t->start);
    t->column = alloc_zero(d->n_rows * t->F, sizeof *t->column);
    for (size_t r = 0; r < d->n_rows; r++) {
        for (size_t m = 0; m < used; m++)
            if (t->x[r * t->F + m] != 0) {
                t->column[n] = (uint32_t)m;
                t->x[n++] = t->x[r * t->F + m];
            }
        t->start[r + 1] = n;
    }
    t->F = d->M = used;
}

/* Scores against plain sums; sparse rows, which may have fewer columns, give the same. */
static void test_scores(void **state)
{
    (void)state;
    enum { F = 6 };
    for (uint64_t seed = 1; seed <= 30; seed++) {
        hfsad_error err = {0};
        rng r = {.key = seed};
        const size_t used = 1 + below(&r, F);
        double scores[3], wanted[PEOPLE * 3];
        put_tree(F, &r, true);
        scoring s = {.folder = folder, .path = "data", .model = read_ok(), .data = make_people(&r, PEOPLE, F)};
        for (size_t row = 0; row < s.data->n_rows; row++)
            for (size_t m = used; m < F; m++)
                s.data->rows.x[row * F + m] = 0;
        for (int sparse = 0; sparse < 2; sparse++) {
            ok(scoring_match(&s, WITH_AUTO, &err), &err);
            for (size_t leaf = 0; leaf < s.data->n_leaves; leaf++) {
                const double *w = model_weights(s.model, s.node[leaf]);
                ok(scoring_scores(&s, leaf, HFSAD_LOSS_ABSOLUTE, scores, &err), &err);
                for (size_t i = 0; i < 3; i++) {
                    const size_t row = s.data->rows.first[leaf] + i;
                    double sum = w[F];
                    for (size_t m = 0; m < F && !sparse; m++)
                        sum += w[m] * s.data->rows.x[row * F + m];
                    wanted[row] = sparse ? wanted[row] : sum;
                    if (!(fabs(scores[i] - wanted[row]) <= 1e-13 * (1 + fabs(sum))))
                        fail_msg("seed %d: %.17g instead of %.17g", (int)seed, scores[i], wanted[row]);
                }
            }
            free(s.node);
            s.node = NULL;
            if (!sparse)
                make_sparse(s.data, used);
        }
        scoring_free(&s);
    }
}

static void test_misfits(void **state)
{
    (void)state;
    hfsad_error err = {0};
    rng r = {.key = 9};
    double scores[3];
    put_tree(3, &r, true);
    scoring s = {.folder = "FOLDER", .path = "DATA", .model = read_ok(), .data = make_people(&r, 2, 4)};
    assert_int_equal(scoring_match(&s, WITH_AUTO, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "DATA has 4 features, but the model in FOLDER has 3"));
    make_sparse(s.data, 4);
    assert_int_equal(scoring_match(&s, WITH_AUTO, &err), HFSAD_ERROR_INPUT);
    dataset_free(s.data);
    s.data = make_people(&r, 2, 2);
    assert_int_equal(scoring_match(&s, WITH_AUTO, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "DATA has 2 features, but the model in FOLDER has 3"));
    dataset_free(s.data);
    s.data = make_people(&r, 2, 3);
    ok(scoring_match(&s, WITH_AUTO, &err), &err);
    for (size_t i = 0; i < s.model->n_nodes * model_width(s.model); i++)
        s.model->w[i] = 1e200;
    for (size_t i = 0; i < s.data->n_rows * 3; i++)
        s.data->rows.x[i] = 1;
    ok(scoring_scores(&s, 1, HFSAD_LOSS_ABSOLUTE, scores, &err), &err);
    assert_int_equal(scoring_scores(&s, 1, HFSAD_LOSS_PHASE_RETRIEVAL, scores, &err), HFSAD_ERROR_INPUT);
    assert_non_null(
        strstr(err.message, "DATA: the prediction of row 1 of region/edge/new by the model of region/edge"));
    evaluation e;
    ok(evaluation_create(&e, &s, NULL, &err), &err);
    s.model->loss.kind = HFSAD_LOSS_HINGE + 1; /* a program's own */
    assert_int_equal(evaluation_add(&e, 0, scores, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "a loss that its program supplied"));
    evaluation_free(&e);
    free(s.data->rows.y);
    s.data->rows.y = NULL;
    assert_false(scoring_has_y(&s));
    assert_int_equal(evaluation_create(&e, &s, NULL, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "DATA has no y"));
    scoring_free(&s);
}

static void test_predictions(void **state)
{
    (void)state;
    for (double s = -3; s <= 3; s += 0.25) {
        assert_true(score_prediction(HFSAD_LOSS_PHASE_RETRIEVAL, s) == s * s);
        assert_true(fabs(score_prediction(HFSAD_LOSS_LOGISTIC, s) - exp(s) / (exp(s) + 1)) < 1e-15);
        for (int kind = HFSAD_LOSS_QUANTILE; kind <= HFSAD_LOSS_HINGE; kind++)
            if (kind != HFSAD_LOSS_LOGISTIC)
                assert_true(score_prediction((hfsad_loss_kind)kind, s) == s);
        assert_true(score_label(s) == (s < 0 ? -1 : 1));
        assert_int_equal(score_label(s) > 0, score_prediction(HFSAD_LOSS_LOGISTIC, s) >= 0.5);
    }
    assert_true(score_prediction(HFSAD_LOSS_LOGISTIC, -1e6) == 0 && score_prediction(HFSAD_LOSS_LOGISTIC, 1e6) == 1);
}

/* ---- evaluation: what tests/cli_evaluate.sh cannot reach ---- */

/* A row that lies on the prediction is covered; a median of an even number lies between two; of equals the first is
 * the worst. */
static void test_ties(void **state)
{
    (void)state;
    hfsad_error err = {0};
    const double y[] = {-1, 3, 3, 0}, x[] = {0};
    double scores[1], truth[] = {2};
    put_text("model.csv", "node,w1\ncloud,0\n");
    put_summary(1, 4, 1, false, "\"kind\": \"quantile\", \"tau\": 0.5", "");
    dataset_builder *b;
    scoring s = {.folder = folder, .path = "data", .model = read_ok()};
    ok(dataset_builder_create(&b, 1, &err), &err);
    for (size_t i = 0; i < 4; i++)
        ok(dataset_builder_add(b, "", (const char[]){(char)('a' + i), 0}, y[i], x, NULL, i + 1, &err), &err);
    dataset_builder_use_rows(b);
    ok(dataset_builder_finish(b, &s.data, &err), &err);
    ok(scoring_match(&s, WITH_AUTO, &err), &err);
    evaluation e;
    ok(evaluation_create(&e, &s, truth, &err), &err);
    for (size_t leaf = 0; leaf < 4; leaf++)
        ok(evaluation_add(&e, leaf, scores, &err), &err);
    ok(evaluation_finish(&e, &err), &err);
    assert_true(coverage_of(&e.nodes[0]) == 0.5 && level_of(&e.nodes[0]) == 0.5); /* -1 and 0 of -1, 3, 3, 0 */
    assert_true(isnan(accuracy_of(&e.nodes[0])));
    assert_true(mean_loss(&e.nodes[0]) == (0.5 + 1.5 + 1.5 + 0) / 4 && e.nodes[0].total == 3.5);
    assert_true(e.median_loss == 1 && e.worst_client == 1 && e.worst_edge == 0);
    const support_figures support = evaluation_support(&e, 0);
    assert_true(support.nonzero == 0 && support.recall == 0 && isnan(support.precision) && support.relative_error == 1);
    evaluation_free(&e);
    scoring_free(&s);
}

/* Phase retrieval does not know the sign of w, and only phase retrieval. */
static void test_sign(void **state)
{
    (void)state;
    for (int phase = 0; phase < 2; phase++) {
        put_text("model.csv", "node,w1,w2\ncloud,-1,2\n");
        put_summary(1, 1, 2, false, phase ? "\"kind\": \"phase-retrieval\"" : "\"kind\": \"squared\"", "");
        const double truth[] = {1, -2};
        scoring s = {.model = read_ok()};
        const evaluation e = {.scoring = &s, .truth = truth};
        const support_figures f = evaluation_support(&e, 0);
        assert_true(f.relative_error == (phase ? 0 : 4) && f.recall == 1 && f.precision == 1 && f.nonzero == 2);
        model_free(s.model);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_round_trip),
        IN_FOLDER(test_damaged_tables),
        IN_FOLDER(test_damaged_summaries),
        IN_FOLDER(test_cut_short),
        IN_FOLDER(test_garbage),
        IN_FOLDER(test_law),
        IN_FOLDER(test_choice),
        IN_FOLDER(test_scores),
        IN_FOLDER(test_misfits),
        cmocka_unit_test(test_predictions),
        IN_FOLDER(test_ties),
        IN_FOLDER(test_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
