/*
 * The spec reader: the struct holds the values of the file or of --set, for every row of the table; and every wrong
 * input gives one line with file, line, key and the way out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spec/table.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define SMALLEST "data: d.csv\nloss: {kind: squared}\n"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/hfsad-test-spec-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void path_in(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
}

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static hfsad_status load(hfsad_spec **spec, const char *text, hfsad_error *err)
{
    return spec_load_text(spec, "spec.yaml", text, strlen(text), err);
}

static hfsad_spec *load_good(const char *text)
{
    hfsad_spec *spec = NULL;
    hfsad_error err = {0};
    if (load(&spec, text, &err) != HFSAD_OK)
        fail_msg("%s\nrefused: %s", text, err.message);
    return spec;
}

static void set_good(hfsad_spec *spec, const char *key, const char *value)
{
    hfsad_error err = {0};
    if (hfsad_spec_set(spec, key, value, &err) != HFSAD_OK)
        fail_msg("%s=%s refused: %s", key, value, err.message);
}

/* wanted: pieces of the message, separated by '|'. */
static void assert_message(hfsad_status status, const hfsad_error *err, const char *input, const char *wanted)
{
    char pieces[600];
    snprintf(pieces, sizeof pieces, "%s", wanted);
    if (status != HFSAD_ERROR_INPUT || err->status != HFSAD_ERROR_INPUT)
        fail_msg("status %s for:\n%s", hfsad_status_name(status), input);
    if (strchr(err->message, '\n'))
        fail_msg("more than one line: %s", err->message);
    for (const char *piece = strtok(pieces, "|"); piece; piece = strtok(NULL, "|"))
        if (!strstr(err->message, piece))
            fail_msg("'%s' is not in the message: %s\nfor:\n%s", piece, err->message, input);
}

/* ---- good specs ---- */

static const char design_example[] = "data: data.csv                 # columns: edge, client, y, x1 … xM\n"
                                     "truth: truth.csv               # optional\n"
                                     "loss: {kind: phase-retrieval, box: 5}\n"
                                     "preset: paper\n"
                                     "link:                          # R_c of each tier: tv | mcp | scad\n"
                                     "  client: {penalty: tv, weight: 32.5}\n"
                                     "  edge:   {penalty: tv, weight: 1650}\n"
                                     "prior:\n"
                                     "  edge:   {penalty: scad, lambda: 0.1, gamma: 2.4, weight: 49.8}\n"
                                     "  cloud:  {penalty: scad, lambda: 0.1, gamma: 2.4, weight: 1}\n"
                                     "schedule:\n"
                                     "  client: {c: 32.5, alpha: 4.47213595499958}\n"
                                     "  edge:   {c: 66, alpha: 111.803398874989}\n"
                                     "run:\n"
                                     "  iterations: 300              # global iterations\n"
                                     "  edge_rounds: 10              # K_m\n"
                                     "  local_steps: 1\n"
                                     "  participation: {client: 1, edge: 1, at_least_every: 20}\n"
                                     "  start: spectral\n"
                                     "  seed: 1\n"
                                     "overrides:\n"
                                     "  - {node: edge2, prior: {penalty: mcp, lambda: 0.2, gamma: 3}}\n";

static void check_design_override(const hfsad_spec *spec)
{
    assert_int_equal(spec->n_overrides, 1);
    const override_settings *o = &spec->overrides[0];
    assert_string_equal(o->node, "edge2");
    assert_int_equal(o->line, 22);
    assert_int_equal(o->prior.penalty, HFSAD_PENALTY_MCP);
    assert_true(o->prior.lambda == 0.2 && o->prior.gamma == 3 && isnan(o->prior.weight));
    assert_int_equal(o->loss.kind, -1);
    assert_true(isnan(o->loss.box) && isnan(o->loss.tau) && isnan(o->loss.delta));
    assert_int_equal(o->link.penalty, -1);
    assert_true(isnan(o->link.weight) && isnan(o->schedule.c) && isnan(o->schedule.alpha));
    assert_int_equal(o->local_steps, -1);
    assert_true(isnan(o->participation));
}

static void test_design_example(void **state)
{
    (void)state;
    char path[100];
    hfsad_spec *spec = NULL;
    hfsad_error err = {0};
    path_in(path, sizeof path, "spec.yaml");
    write_file(path, design_example, sizeof design_example - 1);
    if (hfsad_spec_load(&spec, path, &err) || hfsad_spec_check(spec, &err))
        fail_msg("%s", err.message);
    unlink(path);
    assert_string_equal(spec->path, path);
    assert_string_equal(spec->folder, folder);
    assert_string_equal(spec->top.data, "data.csv");
    assert_string_equal(spec->top.truth, "truth.csv");
    assert_int_equal(spec->top.preset, PRESET_PAPER);
    assert_int_equal(spec->loss.kind, HFSAD_LOSS_PHASE_RETRIEVAL);
    assert_true(spec->loss.box == 5 && spec->loss.tau == 0.5 && spec->loss.delta == 1);
    assert_int_equal(spec->link_client.penalty, HFSAD_PENALTY_L1);
    assert_int_equal(spec->link_edge.penalty, HFSAD_PENALTY_L1);
    assert_true(spec->link_client.weight == 32.5 && spec->link_edge.weight == 1650);
    assert_true(isnan(spec->link_client.lambda) && isnan(spec->link_edge.gamma));
    assert_int_equal(spec->prior_edge.penalty, HFSAD_PENALTY_SCAD);
    assert_true(spec->prior_edge.lambda == 0.1 && spec->prior_edge.gamma == 2.4 && spec->prior_edge.weight == 49.8);
    assert_int_equal(spec->prior_cloud.penalty, HFSAD_PENALTY_SCAD);
    assert_true(spec->prior_cloud.lambda == 0.1 && spec->prior_cloud.gamma == 2.4 && spec->prior_cloud.weight == 1);
    assert_true(spec->schedule_client.c == 32.5 && spec->schedule_client.alpha == 4.47213595499958);
    assert_true(spec->schedule_edge.c == 66 && spec->schedule_edge.alpha == 111.803398874989);
    assert_int_equal(spec->run.iterations, 300);
    assert_int_equal(spec->run.edge_rounds, 10);
    assert_int_equal(spec->run.local_steps, 1);
    assert_true(spec->participation.client == 1 && spec->participation.edge == 1);
    assert_int_equal(spec->participation.at_least_every, 20);
    assert_string_equal(spec->run.start, "spectral");
    assert_int_equal(spec->run.seed, 1);
    check_design_override(spec);
    hfsad_spec_free(spec);
}

static void test_defaults(void **state)
{
    (void)state;
    hfsad_error err = {0};
    hfsad_spec *spec = load_good(SMALLEST);
    assert_int_equal(hfsad_spec_check(spec, &err), HFSAD_OK);
    assert_string_equal(spec->folder, ".");
    assert_null(spec->top.truth);
    assert_null(spec->run.start);
    assert_int_equal(spec->top.preset, PRESET_TUNED);
    assert_true(isnan(spec->loss.box) && isnan(spec->schedule_edge.c));
    assert_int_equal(spec->link_client.penalty, -1);
    assert_int_equal(spec->run.iterations, 300);
    assert_int_equal(spec->output.clients, 1);
    assert_true(spec->stop.absolute == 0 && spec->output.every_seconds == 10);
    assert_int_equal(spec->n_overrides, 0);
    hfsad_spec_free(spec);
}

/* Values inside and outside each range of the table, by hand: a range that is new in the table needs a row here. */
static const struct {
    const char *range;
    const char *good[3], *bad[3];
} samples[] = {
    {"(0,1)", {"0.25", "1e-300", "0.999"}, {"0", "1", "-0.5"}},
    {"(0,1]", {"0.5", "1", "1e-9"}, {"0", "1.5", "-1"}},
    {"[0,1]", {"0", "1", "+.75"}, {"-1e-9", "1.0001", "2"}},
    {"(0,inf)", {"2.5", "1e-9", "1e300"}, {"0", "-0", "-3"}},
    {"[0,inf)", {"0", "7", "1.5e10"}, {"-1e-300", "-1", "-1e300"}},
    {"(1,inf)", {"1.5", "3", "1e6"}, {"1", "0", "-4"}},
    {"[0,1000000000]", {"0", "1000000000", "3e2"}, {"-1", "1000000001", "2.5"}},
    {"[1,1000000000]", {"1", "1000000000", "1e9"}, {"0", "1e10", "1.0000001"}},
    {"(0,1000]", {"0.001", "1000", "60"}, {"0", "1001", "-1"}},
    {"(0,1000000]", {"0.001", "1000000", "60"}, {"0", "1000001", "-1"}},
    {"(1,2]", {"1.001", "2", "1.5"}, {"1", "2.1", "-4"}},
    {"[1,2)", {"1", "1.9", "1.5"}, {"0.9", "2", "-1"}},
    {"[1,100]", {"1", "100", "7"}, {"0", "101", "1.5"}},
    {"[0,1000000]", {"0", "1000000", "60"}, {"-1", "1000001", "-1e9"}},
    {"[0,200]", {"0", "200", "33"}, {"-2", "201", "-1e9"}},
    {"[1,32]", {"1", "32", "8"}, {"0", "33", "1.5"}},
    {"[2,256]", {"2", "256", "10"}, {"1", "257", "2.5"}},
    {"[1,1000000]", {"1", "1000000", "77."}, {"0", "1000001", "-1"}},
    {"[0,9007199254740992]", {"0", "9007199254740992", "9007199254740991"}, {"-1", "9007199254740993", "1e16"}},
};

static const char *sample_of(const setting *row, size_t i, bool good)
{
    static const char *const texts[] = {"a file.csv", "x", "née: \"2\""};
    static const char *const flags[] = {"false", "true", "false"}, *const wrong_flags[] = {"maybe", "2", "tru"};
    static const char *const wrong_choices[] = {"nothing", "TV", "1"};
    switch (row->type) {
    case SETTING_TEXT:
        return good ? texts[i] : NULL;
    case SETTING_FLAG:
        return good ? flags[i] : wrong_flags[i];
    case SETTING_CHOICE: {
        size_t count = 0;
        while (row->choices[count])
            count++;
        return good ? row->choices[i * (count - 1) / 2] : wrong_choices[i];
    }
    case SETTING_REAL:
    case SETTING_WHOLE:
        break;
    }
    for (size_t k = 0; k < COUNT(samples); k++)
        if (!strcmp(samples[k].range, row->range))
            return good ? samples[k].good[i] : samples[k].bad[i];
    fail_msg("no samples for the range %s of %s", row->range, row->name);
    return NULL;
}

/* "run: {seed: 5}" from "run.seed"; a text is quoted. */
static void nest(const setting_at *at, const char *value, char *text, size_t size)
{
    size_t depth = 0;
    *text = 0;
    for (const char *p = at->key; *p; p++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, *p == '.' ? ":\n%*s" : "%.*s", *p == '.' ? (int)(2 * ++depth) : 1,
                 *p == '.' ? "" : p);
    }
    const size_t used = strlen(text);
    const char *quote = at->row->type == SETTING_TEXT ? "'" : "";
    snprintf(text + used, size - used, ": %s%s%s\n", quote, value, quote);
}

static bool holds(const hfsad_spec *spec, const setting_at *at, const char *value)
{
    const void *member = (const char *)spec + at->offset;
    switch (at->row->type) {
    case SETTING_REAL:
        return *(const double *)member == strtod(value, NULL);
    case SETTING_WHOLE:
        return (long double)*(const int64_t *)member == strtold(value, NULL);
    case SETTING_FLAG:
        return *(const int *)member == !strcmp(value, "true");
    case SETTING_CHOICE:
        return !strcmp(at->row->choices[*(const int *)member], value);
    case SETTING_TEXT:
        return !strcmp(*(char *const *)member, value);
    }
    return false;
}

static bool same(const hfsad_spec *a, const hfsad_spec *b, const setting_at *at)
{
    const void *x = (const char *)a + at->offset, *y = (const char *)b + at->offset;
    switch (at->row->type) {
    case SETTING_REAL: {
        const double p = *(const double *)x, q = *(const double *)y;
        return p == q || (isnan(p) && isnan(q));
    }
    case SETTING_WHOLE:
        return *(const int64_t *)x == *(const int64_t *)y;
    case SETTING_FLAG:
    case SETTING_CHOICE:
        return *(const int *)x == *(const int *)y;
    case SETTING_TEXT: {
        const char *p = *(char *const *)x, *q = *(char *const *)y;
        return p == q || (p && q && !strcmp(p, q));
    }
    }
    return false;
}

/* All but one setting of the two are the same. */
static void assert_same_but(const hfsad_spec *a, const hfsad_spec *b, const char *key)
{
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++)
        if (strcmp(at.key, key) != 0 && !same(a, b, &at))
            fail_msg("%s changed although %s was set", at.key, key);
}

static void test_every_key(void **state)
{
    (void)state;
    hfsad_spec *plain = NULL;
    assert_int_equal(spec_create(&plain, "spec.yaml", NULL), HFSAD_OK);
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++)
        for (size_t k = 0; k < 3; k++) {
            char text[200], quoted[100];
            const char *value = sample_of(at.row, k, true);
            nest(&at, value, text, sizeof text);
            hfsad_spec *from_file = load_good(text), *by_set = NULL;
            if (!holds(from_file, &at, value))
                fail_msg("%s does not hold %s after:\n%s", at.key, value, text);
            assert_same_but(from_file, plain, at.key);
            assert_int_equal(spec_create(&by_set, "spec.yaml", NULL), HFSAD_OK);
            snprintf(quoted, sizeof quoted, at.row->type == SETTING_TEXT ? "'%s'" : "%s", value);
            set_good(by_set, at.key, quoted);
            if (!holds(by_set, &at, value))
                fail_msg("%s does not hold %s after --set", at.key, value);
            assert_same_but(by_set, plain, at.key);
            set_good(from_file, at.key, quoted); /* over an old value, whose text must be freed */
            hfsad_spec_free(from_file);
            hfsad_spec_free(by_set);
        }
    hfsad_spec_free(plain);
}

static void test_every_range(void **state)
{
    (void)state;
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++)
        for (size_t k = 0; k < 3; k++) {
            char text[200], wanted[200], expected[SETTING_TEXT_MAX];
            const char *value = sample_of(at.row, k, false);
            if (!value)
                continue;
            hfsad_error err = {0};
            hfsad_spec *spec = NULL;
            nest(&at, value, text, sizeof text);
            size_t line = 0;
            for (const char *p = text; *p; p++)
                line += *p == '\n';
            setting_range_text(at.row, expected, sizeof expected);
            snprintf(wanted, sizeof wanted, "spec.yaml:%zu: |%s = '%s' is |%.90s", line, at.key, value, expected);
            const hfsad_status status = load(&spec, text, &err);
            assert_message(status, &err, text, wanted);
            assert_null(spec);
        }
}

static void test_unset_words(void **state)
{
    (void)state;
    hfsad_spec *spec = load_good(design_example);
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++) {
        const bool unsettable = !strcmp(at.row->fallback, "auto") || !strcmp(at.row->fallback, "none");
        hfsad_spec *plain = NULL;
        if (!unsettable)
            continue;
        assert_int_equal(spec_create(&plain, "spec.yaml", NULL), HFSAD_OK);
        set_good(spec, at.key, at.row->fallback);
        assert_true(same(spec, plain, &at));
        hfsad_spec_free(plain);
    }
    set_good(spec, "truth", "'none'"); /* quoted: a file of that name */
    assert_string_equal(spec->top.truth, "none");
    set_good(spec, "prior.cloud.penalty", "none"); /* a choice, not absence */
    assert_int_equal(spec->prior_cloud.penalty, HFSAD_PENALTY_NONE);
    hfsad_spec_free(spec);
}

static void test_overrides(void **state)
{
    (void)state;
    hfsad_spec *spec = load_good(SMALLEST "overrides:\n"
                                          "  - node: edge1/*\n"
                                          "    loss: {kind: huber, box: none, delta: 2, tau: auto}\n"
                                          "    local_steps: 3\n"
                                          "    participation: 0.25\n"
                                          "  - {node: '7', link: {penalty: mcp, gamma: 1.5}, schedule: {c: 2}}\n");
    assert_int_equal(spec->n_overrides, 2);
    const override_settings *o = spec->overrides;
    assert_string_equal(o[0].node, "edge1/*");
    assert_int_equal(o[0].line, 4);
    assert_int_equal(o[0].loss.kind, HFSAD_LOSS_HUBER);
    assert_true(o[0].loss.box == INFINITY); /* lifted, not inherited */
    assert_true(o[0].loss.delta == 2 && isnan(o[0].loss.tau) && o[0].participation == 0.25);
    assert_int_equal(o[0].local_steps, 3);
    assert_string_equal(o[1].node, "7");
    assert_int_equal(o[1].line, 8);
    assert_int_equal(o[1].link.penalty, HFSAD_PENALTY_MCP);
    assert_true(o[1].link.gamma == 1.5 && isnan(o[1].link.weight) && o[1].schedule.c == 2);
    assert_int_equal(o[1].loss.kind, -1);
    assert_int_equal(hfsad_spec_check(spec, NULL), HFSAD_OK);
    set_good(spec, "overrides", "[{node: a, prior: {penalty: none}}]");
    assert_int_equal(spec->n_overrides, 1);
    assert_int_equal(spec->overrides[0].prior.penalty, HFSAD_PENALTY_NONE);
    assert_int_equal(spec->overrides[0].line, 0);
    set_good(spec, "overrides", "[]");
    assert_int_equal(spec->n_overrides, 0);
    hfsad_spec_free(spec);
}

static void test_set_mapping(void **state)
{
    (void)state;
    hfsad_spec *spec = load_good("data: d\nloss: {kind: huber, box: 3, delta: 4}\n");
    set_good(spec, "loss", "{kind: quantile, tau: 0.3}");
    assert_int_equal(spec->loss.kind, HFSAD_LOSS_QUANTILE);
    assert_true(spec->loss.tau == 0.3 && spec->loss.box == 3 && spec->loss.delta == 4);
    set_good(spec, "run", "{participation: {client: 0.5}, seed: 9}");
    assert_true(spec->participation.client == 0.5 && spec->participation.edge == 1 && spec->run.seed == 9);
    set_good(spec, "run.seed", "10");
    assert_int_equal(spec->run.seed, 10);
    /* What is refused in part changes nothing. */
    hfsad_error err = {0};
    assert_int_equal(hfsad_spec_set(spec, "loss", "{kind: hinge, tau: 0.4, box: -1}", &err), HFSAD_ERROR_INPUT);
    assert_int_equal(spec->loss.kind, HFSAD_LOSS_QUANTILE);
    assert_true(spec->loss.tau == 0.3 && spec->loss.box == 3);
    hfsad_spec_free(spec);
}

static void test_aliases(void **state)
{
    (void)state;
    hfsad_spec *spec = load_good("data: d\nlink: {client: &a {penalty: tv, weight: 2}, edge: *a}\n");
    assert_int_equal(spec->link_edge.penalty, HFSAD_PENALTY_L1);
    assert_true(spec->link_edge.weight == 2);
    hfsad_spec_free(spec);
}

/* A word is the kind of a mapping. */
static void test_words(void **state)
{
    (void)state;
    hfsad_spec *spec =
        load_good("{\"data\": \"d\", \"loss\": \"absolute\", \"prior\": {\"cloud\": \"elastic-net\"},\n"
                  "\"link\": {\"client\": \"mcp\"}, \"overrides\": [{\"node\": \"e\", \"prior\": \"l1\"}]}\n");
    assert_int_equal(spec->loss.kind, HFSAD_LOSS_ABSOLUTE);
    assert_int_equal(spec->prior_cloud.penalty, HFSAD_PENALTY_ELASTIC_NET);
    assert_int_equal(spec->link_client.penalty, HFSAD_PENALTY_MCP);
    assert_int_equal(spec->overrides[0].prior.penalty, HFSAD_PENALTY_L1);
    set_good(spec, "loss", "hinge");
    assert_int_equal(spec->loss.kind, HFSAD_LOSS_HINGE);
    assert_int_equal(hfsad_spec_set_text(spec, "prior.edge", "l2", NULL), HFSAD_OK);
    assert_int_equal(spec->prior_edge.penalty, HFSAD_PENALTY_L2);
    hfsad_spec_free(spec);
}

/* ---- bad specs ---- */

static const struct {
    const char *text, *wanted;
} bad_files[] = {
    {"data: d\nlink:\n  client: {wieght: 3}\n",
     "spec.yaml:3: unknown key 'link.client.wieght'; did you mean 'weight'?"},
    {"iterations: 5\n", "spec.yaml:1: unknown key 'iterations'; did you mean 'run.iterations'?"},
    {"link: {penalty: tv}\n", "unknown key 'link.penalty'; did you mean 'link.client.penalty'?"},
    {"data: d\nzzzzzzzz: 1\n",
     "spec.yaml:2: unknown key 'zzzzzzzz'|known here: data, truth,|output, federation, privacy, overrides"},
    {"run.seed: 5\n", "unknown key 'run.seed'|run: {seed: 1}"},
    {"'': 5\n", "unknown key ''"},
    {"\"data\\0\": 5\n", "unknown key 'data'"},
    {"loss: quantil\n", "spec.yaml:1: loss.kind = 'quantil' is not known|quantile"},
    {"loss: [quantile]\n", "spec.yaml:1: 'loss' takes keys, not a list"},
    {"prior: l1\n", "'prior' takes keys"},
    {"link: scad\n", "'link' takes keys|link: {client: {penalty: scad}}"},
    {"run:\n  participation: 0.5\n", "spec.yaml:2: 'run.participation' takes keys|participation: {client: 0.5}"},
    {"run: [1]\n", "'run' takes keys, not a list; write 'run: {iterations: 300}'"},
    {"loss:\n", "spec.yaml:1: 'loss' has no value|loss: {kind: |remove the key"},
    {"loss: {kind: quantle}\n",
     "loss.kind = 'quantle' is not known; did you mean 'quantile'?|phase-retrieval, quantile, "
     "absolute, squared, huber, logistic, hinge"},
    {"prior: {kind: l1}\n", "unknown key 'prior.kind'; did you mean 'prior.cloud.penalty'?"},
    {"lambda: 1\n", "unknown key 'lambda'; did you mean 'prior.cloud.lambda'?"},
    {"seed: 1\n", "unknown key 'seed'; did you mean 'run.seed'?"},
    {"loss: {kind: mae}\n", "loss.kind = 'mae' is not known; did you mean 'absolute'?|quantile"},
    {"features: {intercept: true}\n", "features.intercept = 'true' is not known; did you mean 'global'?"},
    {"prior: {cloud: {penalty: lasso}}\n", "prior.cloud.penalty = 'lasso' is not known; did you mean 'l1'?"},
    {"Data: d\n", "spec.yaml:1: unknown key 'Data'; did you mean 'data'?"},
    {"loss: {kind: HUBER}\n", "loss.kind = 'HUBER' is not known; did you mean 'huber'?"},
    {"loss: {kind: xyzzy}\n", "loss.kind = 'xyzzy' is not known; expected one of phase-retrieval"},
    {"preset: papr\n", "preset = 'papr'|did you mean 'paper'?|one of paper, tuned"},
    {"loss: {tau: {a: 1}}\n", "'loss.tau' takes one value, not a mapping; expected a number above 0 and below 1"},
    {"loss: {delta: [1]}\n", "'loss.delta' takes one value, not a list; expected a number above 0"},
    {"loss: {tau: [1]}\n", "loss.tau = '1' is out of range; expected a number above 0 and below 1"},
    {"loss:\n  tau:\n", "spec.yaml:2: 'loss.tau' has no value; expected a number above 0 and below 1"},
    {"loss: {tau: ~}\n", "'loss.tau' has no value"},
    {"data: ''\n", "'data' has no value"},
    {"data: null\n", "'data' has no value"},
    {"data: \"a\\0b\"\n", "spec.yaml:1: 'data' contains a NUL character"},
    {"loss:\n  tau: 0.2\n  tau: 0.3\n", "spec.yaml:3: 'loss.tau' is given twice, first in line 2"},
    {"data: a\nloss: {kind: hinge}\ndata: b\n", "spec.yaml:3: 'data' is given twice, first in line 1"},
    {"loss: {tau: .nan}\n", "loss.tau = '.nan' is not a finite number; expected a number above 0 and below 1"},
    {"loss: {tau: nan}\n", "is not a finite number"},
    {"loss: {box: .inf}\n", "loss.box = '.inf' is not a finite number; expected a number above 0, or none"},
    {"loss: {box: -Infinity}\n", "is not a finite number"},
    {"loss: {box: 1e999}\n", "loss.box = '1e999' is too large"},
    {"loss: {box: 0x10}\n", "loss.box = '0x10' is not a number"},
    {"loss: {box: 5 apples}\n", "loss.box = '5 apples' is not a number"},
    {"loss: {box: '5x'}\n", "loss.box = '5x' is not a number"},
    {"data: {y: price}\n", "'data' has no key 'file'"},
    {"data: {file: a.csv, colour: x}\n", "unknown key 'data.colour'; expected file, y, client"},
    {"data: {file: a.csv, y: a, y: b}\n", "'data.y' is given twice"},
    {"data: {file: a.csv, split: 5}\n", "'split' takes keys, not a value"},
    {"data: {file: a.csv, features: [a, [b]]}\n", "an entry of the list is not a name"},
    {"data: {file: a.csv, features: []}\n", "is an empty list"},
    {"data: {file: a.csv, y: [a]}\n", "'columns.y' takes one value, not a list"},
    {"loss: {tau: auto}\n", "loss.tau = 'auto' is not a number"},
    {"schedule: {edge: {c: none}}\n", "schedule.edge.c = 'none' is not a number; expected a number above 0, or auto"},
    {"run: {seed: 1.5}\n", "run.seed = '1.5' is not a whole number; expected a whole number from 0 to"},
    {"output: {state: maybe}\n", "output.state = 'maybe' is neither true nor false"},
    {"? [a]\n: 5\n", "spec.yaml:1: a key is a list"},
    {"data: !!int 5\n", "spec.yaml:1: the tag "},
    {"data: d\n---\nloss: {kind: hinge}\n", "spec.yaml:2: a second document"},
    {"", "spec.yaml: is empty|data: data.csv|loss: {kind: "},
    {"# nothing\n", "spec.yaml: is empty"},
    {"---\n", "spec.yaml: is empty"},
    {"- a\n", "spec.yaml:1: expected keys, found a list|data: data.csv"},
    {"data.csv\n", "spec.yaml:1: expected keys, found a value"},
    {"run:\n\tseed: 1\n", "spec.yaml:2: a tab in the indentation; indent YAML with spaces"},
    {"data: a\nloss: {kind: hinge\nrun: {}\n", "spec.yaml:3: not valid YAML"},
    {"data: d\n  loss: x\n", "spec.yaml:2: not valid YAML"},
    {"data: d\nx: caf\xe9\n", "spec.yaml:2: not UTF-8|save the file as UTF-8"},
    {"data: d\n\nx: \x01\n", "spec.yaml:3: a control character"},
    {"data: d\nloss: &x {kind: *x}\n", "spec.yaml:2: the alias '*x' is inside its own anchor"},
    {"overrides: &x [*x]\n", "spec.yaml:1: the alias '*x' is inside its own anchor"},
    {"&x a: {b: *y}\n", "spec.yaml:1: not valid YAML, found undefined alias"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n", "spec.yaml:1: nested deeper than 32"},
    {"overrides: {node: e}\n", "spec.yaml:1: 'overrides' takes a list; write 'overrides: [{node: "},
    {"overrides:\n  - 3\n", "spec.yaml:2: an entry of 'overrides' takes keys; write 'overrides: [{node: "},
    {"overrides:\n  - local_steps: 2\n", "spec.yaml:2: an entry of 'overrides' lacks the key 'node'"},
    {"overrides:\n  - nod: e\n", "spec.yaml:2: unknown key 'overrides.nod'; did you mean 'node'?"},
    {"overrides:\n  - node: e\n    prior: {gama: 3}\n", "spec.yaml:3: unknown key 'overrides[e].prior.gama'|'gamma'?"},
    {"overrides:\n  - node: e\n    loss: hing\n", "spec.yaml:3: overrides[e].loss.kind = 'hing' is not known|hinge"},
    {"overrides: [{node: e, local_steps: 0}]\n", "overrides[e].local_steps = '0' is out of range|from 1 to 1000000"},
    {"overrides: [{node: e, participation: {client: 1}}]\n", "'overrides[e].participation' takes one value"},
    {"overrides: [{node: e, node: f}]\n", "'overrides[e].node' is given twice"},
};

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_files); i++) {
        hfsad_error err = {0};
        hfsad_spec *spec = NULL;
        assert_message(load(&spec, bad_files[i].text, &err), &err, bad_files[i].text, bad_files[i].wanted);
        assert_null(spec);
        assert_int_equal(load(&spec, bad_files[i].text, NULL), HFSAD_ERROR_INPUT);
    }
}

static void test_bad_sets(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *wanted;
    } bad[] = {
        {"run.iteratons", "5", "run.iteratons=5: unknown key 'run.iteratons'; did you mean 'run.iterations'?"},
        {"tau", "0.3", "tau=0.3: unknown key 'tau'; did you mean 'loss.tau'?"},
        {"loss.kind.x", "1", "unknown key 'loss.kind.x'; did you mean 'loss.kind'?"},
        {"overrides.x", "1", "unknown key 'overrides.x'; did you mean 'overrides'?"},
        {"", "1", "=1: unknown key ''"},
        {"run.", "1", "unknown key 'run.'|known here: iterations"},
        {"loss", "quantil", "loss.kind = 'quantil' is not known|quantile"},
        {"loss", "{kind: x", "loss={kind: x: not valid YAML"},
        {"loss", "{tua: 1}", "unknown key 'loss.tua'; did you mean 'loss.tau'?"},
        {"loss.tau", "", "loss.tau=: 'loss.tau' has no value"},
        {"loss.tau", "~", "'loss.tau' has no value; expected a number above 0 and below 1"},
        {"loss.tau", "7", "loss.tau=7: loss.tau = '7' is out of range; expected a number above 0 and below 1"},
        {"loss.tau", "0.5\n---\n1", "a second document"},
        {"data", "a: b", "unknown key 'data.a'; expected file, y, client"},
        {"data", "\xff", "data=|not UTF-8"},
        {"overrides", "[{node: e, loss: {kind: x}}]", "overrides=|overrides[e].loss.kind = 'x' is not known"},
    };
    hfsad_spec *spec = load_good(SMALLEST), *twin = load_good(SMALLEST);
    for (size_t i = 0; i < COUNT(bad); i++) {
        hfsad_error err = {0};
        assert_message(hfsad_spec_set(spec, bad[i].key, bad[i].value, &err), &err, bad[i].key, bad[i].wanted);
        assert_same_but(spec, twin, "");
    }
    hfsad_spec_free(spec);
    hfsad_spec_free(twin);
}

/* One wrong letter anywhere in a key of four letters or more: the right key is named. */
static void test_nearest_key(void **state)
{
    (void)state;
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++) {
        const size_t start = strlen(at.key) - strlen(at.row->name);
        for (size_t k = start; strlen(at.row->name) >= 4 && at.key[k]; k++) {
            hfsad_error err = {0};
            hfsad_spec *spec = NULL;
            setting_at slip = at;
            char text[200], wanted[200];
            slip.key[k] = at.key[k] == 'q' ? 'z' : 'q';
            nest(&slip, "1", text, sizeof text);
            snprintf(wanted, sizeof wanted, "unknown key '%s'; did you mean '%s'?", slip.key, at.row->name);
            const hfsad_status status = load(&spec, text, &err);
            assert_message(status, &err, text, wanted);
        }
    }
}

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *text, *key, *value, *wanted;
    } bad[] = {
        {"loss: {kind: hinge}\n", NULL, NULL, "spec.yaml: the key 'data' is missing; add 'data: data.csv'"},
        {"data: d\n", NULL, NULL, "spec.yaml: the key 'loss.kind' is missing; add 'loss: {kind: |one of phase-retr"},
        {SMALLEST "prior:\n  edge:\n    penalty: scad\n    gamma: 2\n", NULL, NULL,
         "spec.yaml:6: prior.edge.gamma = 2 is out of range for the penalty scad; expected a number above 2"},
        {SMALLEST "link: {edge: {penalty: scad}}\n", "link.edge.gamma", "1.5",
         "link.edge.gamma=1.5: link.edge.gamma = 1.5 is out of range for the penalty scad|above 2"},
        {SMALLEST "link: {client: {gamma: 1.5}}\n", "link.client.penalty", "scad", "spec.yaml:3: link.client.gamma"},
        {SMALLEST "prior: {cloud: {gamma: 1.5, penalty: scad}}\n", NULL, NULL, "spec.yaml:3: prior.cloud.gamma"},
        {SMALLEST "overrides:\n  - {node: e, prior: {penalty: scad, gamma: 1.5}}\n", NULL, NULL,
         "spec.yaml:4: overrides[e].prior.gamma = 1.5|scad; expected a number above 2"},
        {SMALLEST "run:\n  start: Spectrl\n", NULL, NULL,
         "spec.yaml:4: run.start = 'Spectrl'|did you mean 'spectral'?"},
        {SMALLEST "run: {start: robst}\n", NULL, NULL,
         "spec.yaml:3: run.start = 'robst'|did you mean 'robust'? (expected zero, normal, spectral, robust, consensus, "
         "or a file)"},
        {SMALLEST, "run.start", "zeroes", "run.start=zeroes: |did you mean 'zero'?"},
        {SMALLEST, "overrides", "[{node: e, link: {penalty: scad, gamma: 2}}]", "overrides[e].link.gamma = 2"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        hfsad_error err = {0};
        hfsad_spec *spec = load_good(bad[i].text);
        if (bad[i].key)
            set_good(spec, bad[i].key, bad[i].value);
        assert_message(hfsad_spec_check(spec, &err), &err, bad[i].text, bad[i].wanted);
        hfsad_spec_free(spec);
    }
    hfsad_spec *spec = load_good(SMALLEST "prior: {edge: {penalty: mcp, gamma: 1.5}, cloud: {gamma: 1.5}}\n");
    assert_int_equal(hfsad_spec_check(spec, NULL), HFSAD_OK);
    set_good(spec, "prior.edge", "{penalty: scad, gamma: 2.000001}");
    assert_int_equal(hfsad_spec_check(spec, NULL), HFSAD_OK);
    /* a missing file that is like none of the words is found where it is read; one that exists may have any name */
    static const char *const starts[] = {"zero",      "normal", "spectral",  "robust",
                                         "consensus", "w0.csv", "/dev/null", "auto"};
    for (size_t i = 0; i < COUNT(starts); i++) {
        set_good(spec, "run.start", starts[i]);
        assert_int_equal(hfsad_spec_check(spec, NULL), HFSAD_OK);
    }
    hfsad_spec_free(spec);
}

/* ---- files ---- */

static void test_bad_paths(void **state)
{
    (void)state;
    char path[100];
    hfsad_spec *spec = NULL;
    hfsad_error err = {0};
    assert_message(hfsad_spec_load(&spec, folder, &err), &err, folder, "is a folder; give the YAML file");
    path_in(path, sizeof path, "nothing.yaml");
    assert_message(hfsad_spec_load(&spec, path, &err), &err, path, "nothing.yaml: cannot be opened: No such file");
    path_in(path, sizeof path, "closed.yaml");
    write_file(path, SMALLEST, strlen(SMALLEST));
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0) /* root reads it all the same */
        assert_message(hfsad_spec_load(&spec, path, &err), &err, path, "closed.yaml: cannot be opened: Permission");
    assert_null(spec);
    unlink(path);
}

static void test_file_size(void **state)
{
    (void)state;
    enum { MOST = 1 << 20 };
    char path[100];
    hfsad_spec *spec = NULL;
    hfsad_error err = {0};
    char *text = malloc(MOST + 1);
    assert_non_null(text);
    memset(text, '#', MOST + 1);
    memcpy(text, SMALLEST, strlen(SMALLEST));
    path_in(path, sizeof path, "large.yaml");
    write_file(path, text, MOST);
    assert_int_equal(hfsad_spec_load(&spec, path, &err), HFSAD_OK);
    hfsad_spec_free(spec);
    write_file(path, text, MOST + 1);
    assert_message(hfsad_spec_load(&spec, path, &err), &err, path, "large.yaml: is larger than 1048576 bytes");
    unlink(path);
    free(text);
}

static void assert_found(const hfsad_spec *spec, const char *name, const char *wanted)
{
    char *found = spec_find_file(spec, name);
    assert_non_null(found);
    assert_string_equal(found, wanted);
    free(found);
}

static void test_find_file(void **state)
{
    (void)state;
    char path[100], beside[100], here[] = "hfsad-test-spec-here.csv", old[4096];
    hfsad_spec *spec = NULL;
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("sub", 0700), 0);
    path_in(path, sizeof path, "sub/spec.yaml");
    assert_int_equal(spec_create(&spec, path, NULL), HFSAD_OK);
    path_in(beside, sizeof beside, "sub/hfsad-test-spec-here.csv");
    assert_found(spec, here, beside); /* neither exists: named beside the spec */
    write_file(here, "1\n", 2);
    assert_found(spec, here, here);
    write_file(beside, "1\n", 2);
    assert_found(spec, here, beside);
    assert_found(spec, "/dev/null", "/dev/null");
    hfsad_spec_free(spec);
    assert_int_equal(spec_create(&spec, "spec.yaml", NULL), HFSAD_OK);
    assert_found(spec, here, here);
    hfsad_spec_free(spec);
    assert_int_equal(spec_create(&spec, "/spec.yaml", NULL), HFSAD_OK);
    assert_string_equal(spec->folder, "/");
    hfsad_spec_free(spec);
    unlink(here);
    unlink(beside);
    rmdir("sub");
    assert_int_equal(chdir(old), 0);
}

/* A program that shows its numbers with a decimal comma still reads specs. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const comma[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool found = false;
    for (size_t i = 0; i < COUNT(comma) && !found; i++)
        found = setlocale(LC_ALL, comma[i]) != NULL;
    hfsad_spec *spec = load_good("loss: {tau: 0.25}\n");
    assert_true(spec->loss.tau > 0.2 && spec->loss.tau < 0.3);
    hfsad_spec_free(spec);
    setlocale(LC_ALL, "C");
    if (!found)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_design_example), cmocka_unit_test(test_defaults),    cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_every_range),    cmocka_unit_test(test_unset_words), cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_set_mapping),    cmocka_unit_test(test_aliases),     cmocka_unit_test(test_words),
        cmocka_unit_test(test_bad_files),      cmocka_unit_test(test_bad_sets),    cmocka_unit_test(test_nearest_key),
        cmocka_unit_test(test_check),          cmocka_unit_test(test_bad_paths),   cmocka_unit_test(test_file_size),
        cmocka_unit_test(test_find_file),      cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
