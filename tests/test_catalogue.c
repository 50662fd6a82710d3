/*
 * Every kind of question that exists in the code has a row in the catalogue: words of the audit, specs that imply it, a
 * limit, a bound of its models, a way in which its answer is masked and a rule for a budget; a client keeps to it, and
 * docs/audit.md says the same. That a kind exists is found without the catalogue: by the functions that answer it.
 */
#include "tools.h"

#include "net/catalogue.h"
#include "net/warden.h"
#include "personal/mixture.h"
#include "plan/refusal.h"
#include "plan/survey.h"
#include "polish/answers.h"

enum { M = 3, ROOM = 200 };

/* ---- kinds that exist ---- */

static bool survey_exists(int kind)
{
    double values[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        values[i] = 1; /* also: one group */
    for (size_t count = 0; count < 60; count++)
        for (size_t most = 0; most < 3; most++)
            for (size_t sums = 0; sums < 60; sums++) {
                const survey_question q = {(survey_kind)kind, count, values, most, sums};
                if (survey_question_fits(&q, M))
                    return true;
            }
    return false;
}

static bool exists(int kind)
{
    if (kind >= INQUIRY_GROUPS)
        return kind - INQUIRY_GROUPS < MIXTURE_KINDS;
    if (kind >= INQUIRY_POLISH)
        return kind - INQUIRY_POLISH < POLISH_KINDS;
    return kind >= INQUIRY_SHAPE ? kind <= INQUIRY_END : survey_exists(kind);
}

/* ---- specs ---- */

#define LINE "data: x.csv\n"
static const char *const texts[] = {
    LINE "loss: {kind: absolute}\n",
    LINE "loss: {kind: absolute}\nalgorithm: hfsad\nfeatures: {intercept: global}\nprior: {cloud: {penalty: l1}}\n",
    LINE "loss: {kind: absolute}\nalgorithm: hfsad\nrun: {polish: false}\n",
    LINE "loss: {kind: squared}\nfeatures: {standardize: true}\n",
    LINE "loss: {kind: quantile, tau: 0.3}\noutput: {errors: true}\n",
    LINE "loss: {kind: phase-retrieval}\n",
    LINE "loss: {kind: phase-retrieval}\nalgorithm: hfsad\nrun: {polish: false, start: normal, cycles: false}\n",
    LINE "loss: {kind: own}\n",
    LINE "loss: {kind: squared}\nalgorithm: fedavg\n",
    LINE "loss: {kind: squared}\npersonal: groups\n",
};
static const char *const budgets[] = {
    LINE "loss: {kind: absolute}\nprior: {cloud: none}\nprivacy: {rho: 1, clip: 1}\n",
    LINE "loss: {kind: absolute}\nprior: {cloud: none}\nprivacy: {rho: 1, clip: 1, aggregation: secure}\n",
    LINE "loss: {kind: absolute}\nprior: {cloud: none}\nprivacy: {rho: 1, clip: 1, record: 2}\n",
    LINE "loss: {kind: phase-retrieval}\nprior: {cloud: none}\nprivacy: {rho: 1, clip: 1}\nrun: {start: zero}\n",
    LINE "loss: {kind: squared}\nprior: {cloud: none}\nprivacy: {epsilon: 1, clip: 1}\nfederation: {mode: async}\n",
};
enum { SPECS = sizeof texts / sizeof *texts, BUDGETS = sizeof budgets / sizeof *budgets };

static hfsad_spec *spec_of(const char *text)
{
    hfsad_spec *spec;
    hfsad_error err;
    ok(spec_load_text(&spec, "spec.yaml", text, strlen(text), &err), &err);
    return spec;
}

/* ---- the rows ---- */

static void test_every_kind_has_a_row(void **state)
{
    (void)state;
    bool reached[INQUIRY_KINDS] = {false};
    size_t found = 0;
    for (size_t i = 0; i < SPECS; i++) {
        hfsad_spec *spec = spec_of(texts[i]);
        for (int kind = 0; kind < INQUIRY_KINDS; kind++)
            reached[kind] = reached[kind] || warden_most(spec, kind) > 0;
        hfsad_spec_free(spec);
    }
    for (int kind = 0; kind < INQUIRY_KINDS; kind++) {
        const catalogue_row *row = catalogue_find(kind);
        if ((row != NULL) != exists(kind))
            fail_msg("kind %d: %s", kind, row ? "a row without a question" : "a question without a row");
        if (!row)
            continue;
        found++;
        assert_true(strlen(row->text) > 3 && strlen(row->by) > 3);
        const char *text = row->text;
        for (int other = 0; other < kind; other++)
            assert_true(strcmp(catalogue_describe(other), text) != 0);
        const bool announced = kind == INQUIRY_RESULT || kind == INQUIRY_END;
        if (reached[kind] == announced)
            fail_msg("kind %d, %s: no spec of this test implies it", kind, row->text);
        assert_int_equal(row->budget == BUDGET_NOTHING, announced);
        if (kind >= INQUIRY_POLISH)
            assert_true(row->most > 0 && row->budget == BUDGET_NOT_ASKED);
    }
    assert_true(found > 40);
}

/* A question with numbers has a bound, unless they are known to be no model. */
static void test_models_have_bounds(void **state)
{
    (void)state;
    for (int kind = 0; kind < POLISH_KINDS; kind++) {
        const int bound = catalogue_find(INQUIRY_POLISH + kind)->bound;
        const bool matrix = kind == POLISH_METRIC || kind == POLISH_METRIC_DIAGONAL, other = kind == POLISH_CHOOSE;
        if (polish_points((polish_kind)kind, M) > 0)
            assert_int_equal(bound, BOUND_POINT);
        else if (polish_down((polish_kind)kind, M) == 0 || matrix || other || kind == POLISH_PRODUCT)
            assert_int_equal(bound, BOUND_NONE);
        else
            assert_int_equal(bound, POLISH_HEAD);
    }
    for (int kind = 0; kind < MIXTURE_KINDS; kind++)
        assert_int_equal(catalogue_find(INQUIRY_GROUPS + kind)->bound, BOUND_GROUPS);
}

/* With a budget clients answer for made-up rows, or not at all. */
static void test_budgets(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUDGETS; i++) {
        hfsad_spec *spec = spec_of(budgets[i]);
        hfsad_error err;
        ok(refusal_check(spec, &err), &err);
        for (int kind = 0; kind < INQUIRY_KINDS; kind++)
            if (warden_most(spec, kind) > 0 && catalogue_find(kind)->budget != BUDGET_MADE_UP)
                fail_msg("%s%s is answered", budgets[i], catalogue_find(kind)->text);
        hfsad_spec_free(spec);
    }
}

static bool has_word(const char *list, const char *word)
{
    const char *at = strstr(list, word);
    const size_t length = strlen(word);
    return at && (at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ',');
}

/* A spec either fails early, or implies none of the questions that its clients refuse. */
static void test_refusals(void **state)
{
    (void)state;
#define WORD(name, word, text) word,
    static const char *const words[] = {REFUSAL_LIST(WORD)};
#undef WORD
    for (size_t w = 0; w < REFUSALS; w++) {
        size_t rows = 0, passed = 0, failed = 0;
        for (int kind = 0; kind < INQUIRY_KINDS; kind++)
            rows += catalogue_find(kind) && has_word(catalogue_find(kind)->refuse, words[w]);
        assert_true(rows > 0);
        for (size_t i = 0; i < SPECS; i++) {
            char text[500];
            hfsad_error err;
            snprintf(text, sizeof text, "%sprivacy: {refuse: [%s]}\n", texts[i], words[w]);
            hfsad_spec *spec = spec_of(text);
            const bool early = refusal_check(spec, &err) != HFSAD_OK;
            failed += early;
            passed += !early;
            for (int kind = 0; kind < INQUIRY_KINDS && !early; kind++)
                if (catalogue_find(kind) && !strcmp(catalogue_find(kind)->refuse, words[w]) && warden_most(spec, kind))
                    fail_msg("%s is answered in spite of %s", catalogue_find(kind)->text, text);
            hfsad_spec_free(spec);
        }
        assert_true(passed > 0 && failed > 0);
    }
}

/* ---- what a client does ---- */

typedef struct {
    warden *w;
    hfsad_spec *spec;
    uint64_t attempt, round;
} client;

/* A question of the polish about a direction or model, and a point, all of whose numbers are equal. */
static const char *ask(client *c, polish_kind kind, double vector, double point, bool again)
{
    double values[ROOM] = {1, 1, 0.5, 1, 0};
    const size_t count = polish_down(kind, M), points = polish_points(kind, M);
    for (size_t i = 0; i < count; i++)
        values[POLISH_HEAD + i] = i < count - points ? vector : point;
    c->round += !again;
    values[1] = (double)c->round;
    const inquiry_question q = {.kind = INQUIRY_POLISH + (int)kind,
                                .most = 1,
                                .sums = polish_length(kind, M),
                                .count = POLISH_HEAD + count,
                                .values = values,
                                .round = ((1 + c->attempt) << INQUIRY_ATTEMPT_BIT) + c->round};
    return warden_judge(c->w, c->spec, &q, M, true);
}

static void open_client(client *c, const char *text)
{
    *c = (client){.w = calloc(1, sizeof(warden)), .spec = spec_of(text)};
    assert_non_null(c->w);
}

static void close_client(client *c)
{
    warden_free(c->w);
    hfsad_spec_free(c->spec);
}

static void test_bounds_are_kept(void **state)
{
    (void)state;
    client c;
    for (int kind = 0; kind < POLISH_KINDS; kind++) {
        const catalogue_row *row = catalogue_find(INQUIRY_POLISH + kind);
        const char *text = row->by[0] && strstr(row->by, "errors") ? LINE
                               "loss: {kind: quantile, tau: 0.3}\noutput: {errors: true}\nprivacy: {largest: 2}\n"
                           : strstr(row->by, "phase") ? LINE "loss: {kind: phase-retrieval}\nprivacy: {largest: 2}\n"
                                                      : LINE "loss: {kind: absolute}\nprivacy: {largest: 2}\n";
        open_client(&c, text);
        assert_null(ask(&c, (polish_kind)kind, 1.5, -2, false));
        const bool model = row->bound == POLISH_HEAD, point = row->bound == BOUND_POINT;
        assert_int_equal(ask(&c, (polish_kind)kind, 2.5, 1, false) != NULL, model);
        assert_int_equal(ask(&c, (polish_kind)kind, 1.5, -2.5, false) != NULL, point);
        assert_int_equal(ask(&c, (polish_kind)kind, 1.5, NAN, false) != NULL, point);
        close_client(&c);
    }
}

/* Different questions are counted, the same ones under new numbers are not; one number has one question. */
static void test_limits_are_kept(void **state)
{
    (void)state;
    client c;
    open_client(&c, LINE "loss: {kind: quantile, tau: 0.3}\noutput: {errors: true}\n");
    const unsigned most = warden_most(c.spec, INQUIRY_POLISH + POLISH_MEAT);
    assert_true(most > 0 && most < 10);
    for (unsigned i = 0; i < most; i++)
        for (int times = 0; times < (i + 1 < most ? 50 : 1); times++)
            assert_null(ask(&c, POLISH_MEAT, i + 1, 0, false));
    assert_null(ask(&c, POLISH_MEAT, most, 0, true));
    assert_string_equal(ask(&c, POLISH_MEAT, most + 1, 0, true), "another question with the number of one that was "
                                                                 "answered");
    assert_string_equal(ask(&c, POLISH_MEAT, most + 1, 0, false), "more questions than a run has");
    assert_null(ask(&c, POLISH_BREAD, 1, 0, false));
    close_client(&c);
    open_client(&c, LINE "loss: {kind: absolute}\n");
    const unsigned values = warden_most(c.spec, INQUIRY_POLISH + POLISH_VALUE);
    unsigned answered = 0;
    while (answered <= values && !ask(&c, POLISH_VALUE, answered, 0, false))
        answered++;
    assert_int_equal(answered, values);
    /* A parent that asks all of them does not fill the client's memory. */
    assert_true(values > WARDEN_PRINTS && c.w->n_prints <= WARDEN_PRINTS);
    assert_true(c.w->prints_room * sizeof *c.w->prints <= 512 << 10);
    assert_null(ask(&c, POLISH_LINE, 0.5, 1, false)); /* it still answers others */
    close_client(&c);
}

/* The mixture without a key that prints of questions once were, up to the last number but one. Whoever knows it chooses
 * the last number so that two questions have the same print. */
static uint64_t mixed(const inquiry_question *q)
{
    const double head[] = {q->kind, (double)q->most, (double)q->sums, q->constant};
    uint64_t words[ROOM] = {0}, h = 1;
    memcpy(words, head, sizeof head);
    words[4] = 4; /* numbers of the head */
    words[5] = 0; /* and of the columns */
    memcpy(words + 6, q->values, (q->count - 1) * sizeof *q->values);
    for (size_t i = 0; i + 1 < 6 + q->count; i++) {
        h = (h ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h = (h ^ h >> 29) | (i == 4 || i == 5);
    }
    return h;
}

/* A parent asks a second question under the number of one that was answered, with the print of the first if prints had
 * no key. */
static void test_forged_prints(void **state)
{
    (void)state;
    client c[2];
    double values[2][POLISH_HEAD + M] = {{1, 1, 0.5, 1, 0, 1, 1, 1}, {1, 1, 0.5, 1, 0, -4, 7, 0}};
    inquiry_question q[2];
    for (size_t i = 0; i < 2; i++)
        q[i] = (inquiry_question){.kind = INQUIRY_POLISH + POLISH_VALUE,
                                  .most = 1,
                                  .sums = polish_length(POLISH_VALUE, M),
                                  .count = POLISH_HEAD + M,
                                  .values = values[i],
                                  .round = (UINT64_C(1) << INQUIRY_ATTEMPT_BIT) + 1};
    uint64_t last;
    memcpy(&last, &values[0][POLISH_HEAD + M - 1], sizeof last);
    last ^= mixed(&q[0]) ^ mixed(&q[1]);
    memcpy(&values[1][POLISH_HEAD + M - 1], &last, sizeof last);
    for (size_t i = 0; i < 2; i++) {
        open_client(&c[i], LINE "loss: {kind: absolute}\n");
        assert_null(warden_judge(c[i].w, c[i].spec, &q[0], M, true));
        assert_null(warden_judge(c[i].w, c[i].spec, &q[0], M, true));
        assert_non_null(warden_judge(c[i].w, c[i].spec, &q[1], M, true));
    }
    /* Each client has a key of its own: what is found with one says nothing about another. */
    assert_true(c[0].w->late_print != c[1].w->late_print);
    for (size_t i = 0; i < 2; i++)
        close_client(&c[i]);
}

static const char out_of_order[] = "a question of star, polish or groups out of its order";

/* The first question of the set-up: from here on the client knows all that it was asked. */
static void begin(client *c, const char *text)
{
    open_client(c, text);
    const inquiry_question shape = {.kind = INQUIRY_SHAPE, .most = 2, .sums = 1, .round = 1};
    assert_null(warden_judge(c->w, c->spec, &shape, M, false));
    c->round = 1; /* no question is the first of an attempt */
}

static void refuse(client *c, polish_kind kind)
{
    const char *why = ask(c, kind, 3, 0, false);
    if (!why || strcmp(why, out_of_order) != 0)
        fail_msg("%s: %s", catalogue_describe(INQUIRY_POLISH + (int)kind), why ? why : "answered");
}

static void test_order_is_kept(void **state)
{
    (void)state;
    client c;
    begin(&c, LINE "loss: {kind: quantile, tau: 0.3}\noutput: {errors: true}\n");
    for (int kind = 0; kind < POLISH_KINDS; kind++)
        if (kind != POLISH_VALUE && catalogue_find(INQUIRY_POLISH + kind)->implied(c.spec))
            refuse(&c, (polish_kind)kind); /* none of them is the first */
    assert_null(ask(&c, POLISH_VALUE, 1, 0, false));
    refuse(&c, POLISH_METRIC);
    assert_null(ask(&c, POLISH_HESSIAN, 0, 0, false));
    refuse(&c, POLISH_DIAGONAL);
    assert_null(ask(&c, POLISH_COMMIT, 1, 0, false));
    refuse(&c, POLISH_LINE);
    assert_null(ask(&c, POLISH_GRAM, 0, 0, false));
    assert_null(ask(&c, POLISH_SPREAD, 1, 0, false));
    refuse(&c, POLISH_PRODUCT);
    /* Another client is lost: what clients keep comes again, and then the question that the cloud waits for. */
    assert_null(ask(&c, POLISH_VALUE, 1, 0, false));
    assert_null(ask(&c, POLISH_COMMIT, 1, 0, false));
    assert_null(ask(&c, POLISH_GRAM, 0, 0, false));
    assert_null(ask(&c, POLISH_SPREAD, 1, 0, false));
    assert_null(ask(&c, POLISH_METRIC, 1, 0, false));
    assert_null(ask(&c, POLISH_ROUND, 1, 0, false));
    assert_null(ask(&c, POLISH_RESIDUALS, 1, 0, false));
    refuse(&c, POLISH_MEAT);
    refuse(&c, POLISH_VALUE); /* standard errors are the last */
    assert_null(ask(&c, POLISH_BREAD, 1, 0, false));
    assert_null(ask(&c, POLISH_MEAT, 1, 0, false));
    refuse(&c, POLISH_RESIDUALS);
    c.round = 0; /* a cloud that is started again begins with the first question */
    c.attempt++;
    assert_null(ask(&c, POLISH_VALUE, 4, 0, false));
    close_client(&c);
}

/* ---- docs/audit.md ---- */

static const char *bound_text(int bound)
{
    return bound == BOUND_NONE ? "" : bound == BOUND_POINT ? "its point" : "its models";
}

static const char *const masks[] = {[MASK_BUCKETS] = "masked; maxima as a histogram",
                                    [MASK_FLAGS] = "masked; flags are counted",
                                    [MASK_APART] = "masked; \"lost\" in the open",
                                    [MASK_SUM] = "masked",
                                    [MASK_ZEROS] = "zeros are sent",
                                    [MASK_NOTHING] = "nothing of the rows"};
static const char *const budget_words[] = {[BUDGET_MADE_UP] = "made-up rows",
                                           [BUDGET_NOT_ASKED] = "not asked",
                                           [BUDGET_NOTHING] = "nothing of the rows",
                                           [BUDGET_NOISE] = "noise of the last round",
                                           [BUDGET_ZEROS] = "not computed"};

static void print_row(const catalogue_row *row, int kind, unsigned most, char *to, size_t size)
{
    char limit[20] = "", refuse[100] = "";
    if (most)
        snprintf(limit, sizeof limit, "%u", most);
    for (const char *word = row->refuse; *word;) {
        const size_t length = strcspn(word, ",");
        const size_t used = strlen(refuse);
        snprintf(refuse + used, sizeof refuse - used, "%s`%.*s`", used ? ", " : "", (int)length, word);
        word += length;
        word += strspn(word, ", ");
    }
    char text[200];
    size_t n = 0;
    for (const char *c = row->text; *c && n + 2 < sizeof text; c++) {
        if (*c == '|' || *c == '<')
            text[n++] = '\\';
        text[n++] = *c;
    }
    text[n] = 0;
    snprintf(to, size, "| %d | %s | %s | %s | %s | %s | %s | %s |", kind, text, row->by, limit, bound_text(row->bound),
             masks[row->mask], budget_words[row->budget], refuse);
}

/* The largest limit of all specs of this test. */
static unsigned most_of(int kind)
{
    unsigned most = 0;
    for (size_t i = 0; i < SPECS; i++) {
        hfsad_spec *spec = spec_of(texts[i]);
        const unsigned now = warden_most(spec, kind);
        most = now > most ? now : most;
        hfsad_spec_free(spec);
    }
    return most;
}

static void test_documented(void **state)
{
    (void)state;
    const char *source = getenv("SOURCE_DIR");
    char path[500], row[1000];
    snprintf(path, sizeof path, "%s/docs/audit.md", source ? source : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    static char page[1 << 16];
    const size_t length = fread(page, 1, sizeof page - 1, f);
    page[length] = 0;
    fclose(f);
    size_t missing = 0;
    for (int kind = 0; kind < INQUIRY_KINDS; kind++)
        if (catalogue_find(kind)) {
            print_row(catalogue_find(kind), kind, most_of(kind), row, sizeof row);
            if (!strstr(page, row)) {
                print_message("docs/audit.md lacks:\n%s\n", row);
                missing++;
            }
        }
    size_t trains = 0;
    for (uint64_t phase = 0; phase < 256; phase++) {
        const catalogue_row *r = catalogue_of_phase(phase);
        if (!r)
            continue;
        trains++;
        snprintf(row, sizeof row, "| %s | %s | %s | %s |", r->text, bound_text(r->bound), masks[r->mask],
                 budget_words[r->budget]);
        if (!strstr(page, row)) {
            print_message("docs/audit.md lacks:\n%s\n", row);
            missing++;
        }
    }
    assert_int_equal(trains, 5);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_has_a_row),
        cmocka_unit_test(test_models_have_bounds),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bounds_are_kept),
        cmocka_unit_test(test_limits_are_kept),
        cmocka_unit_test(test_forged_prints),
        cmocka_unit_test(test_order_is_kept),
        cmocka_unit_test(test_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
