/* The script for gnuplot and, if gnuplot is installed, its output. */
#include "lab/plot.h"
#include "tools.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

enum { POINTS = 301 };

typedef struct {
    double line[POINTS], thin[POINTS], low[POINTS], high[POINTS];
} curve;

static void fill(curve *c, double rate)
{
    for (int i = 0; i < POINTS; i++) {
        c->line[i] = exp(-rate * i);
        c->thin[i] = 0.9 * c->line[i];
        c->low[i] = 0.5 * c->line[i];
        c->high[i] = 2 * c->line[i];
    }
}

static plot_series series_of(const char *label, const curve *c)
{
    return (plot_series){label, c->line, c->thin, c->low, c->high};
}

static char *script(const plot *p)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    plot_script(out, p, "a.png", "a.svg");
    assert_int_equal(fclose(out), 0);
    return text;
}

static void labels_and_last_point(void **state)
{
    (void)state;
    static curve a, b;
    fill(&a, 0.01);
    fill(&b, 0.03);
    const plot_series series[] = {series_of("first of them", &a), series_of("second of them", &b)};
    const plot p = {"x of it", "y of it", POINTS, 2, series};
    char *text = script(&p), row[200];
    assert_non_null(strstr(text, "title 'first of them'"));
    assert_non_null(strstr(text, "title 'second of them'"));
    assert_non_null(strstr(text, "x of it"));
    assert_non_null(strstr(text, "y of it"));
    snprintf(row, sizeof row, "\n0 %.9g %.9g %.9g %.9g %.9g", a.line[0], a.thin[0], a.low[0], a.high[0], b.line[0]);
    assert_non_null(strstr(text, row));
    assert_non_null(strstr(text, "\n300 "));
    assert_null(strstr(text, "\n301 "));
    free(text);
}

/* The first series of the script's data: the number of rows, values in line[]. */
static size_t drawn_rows(const plot *p, double *line)
{
    char row[200];
    size_t n = 0;
    FILE *f = tmpfile();
    assert_non_null(f);
    plot_script(f, p, "a.png", "a.svg");
    rewind(f);
    assert_non_null(fgets(row, sizeof row, f));
    assert_string_equal(row, "$data << END\n");
    while (fgets(row, sizeof row, f) && strcmp(row, "END\n") != 0) {
        char *end;
        assert_true(strtoul(row, &end, 10) < p->points);
        line[n++] = strtod(end, NULL);
    }
    fclose(f);
    return n;
}

/* Every iteration up to a thousand is drawn; a curve that jumps up and down in turn is drawn as its middle, whatever
 * the number of points; one that does not jump keeps its heights. */
static void jumping_curves(void **state)
{
    (void)state;
    enum { MANY = 5001 };
    static double jumping[MANY], smooth[MANY], line[MANY];
    for (int i = 0; i < MANY; i++) {
        jumping[i] = i % 2 ? 0.5 : 0.02;
        smooth[i] = exp(-0.01 * i);
    }
    for (size_t points = 301; points <= MANY; points += MANY - 301) {
        const plot_series series[] = {{"a", jumping, jumping, jumping, jumping}};
        plot_series straight[] = {{"b", smooth, smooth, smooth, smooth}};
        const plot p = {"x", "y", points, 1, series}, q = {"x", "y", points, 1, straight};
        const size_t n = drawn_rows(&p, line);
        assert_true(points > 1001 ? n > 500 && n <= 1002 : n == points);
        assert_float_equal(line[0], jumping[0], 1e-9);
        for (size_t i = 1; i < n; i++)
            assert_float_equal(line[i], 0.1, 1e-8);
        if (points > 1001)
            continue;
        assert_int_equal(drawn_rows(&q, line), n);
        for (size_t i = 0; i + 1 < n; i++)
            assert_float_equal(line[i], smooth[i], 1e-8);
    }
}

/* A logarithmic axis has no place for 0, and none for what diverged. */
static void undrawable_values(void **state)
{
    (void)state;
    static curve a;
    fill(&a, 0.01);
    a.line[0] = 0;
    a.thin[0] = INFINITY;
    a.low[0] = NAN;
    const plot_series series[] = {series_of("a", &a)};
    const plot p = {"x", "y", POINTS, 1, series};
    char *text = script(&p);
    assert_non_null(strstr(text, "\n0 NaN NaN NaN 2\n"));
    assert_null(strstr(text, "inf"));
    free(text);
}

/* Curves of different lengths over x of their own; a name that would end the script's text cannot. */
static void curves_with_x(void **state)
{
    (void)state;
    const double x[] = {0, 2.5, 40}, y[] = {8, 8, 8}, short_x[] = {0, 7}, short_y[] = {3, 0};
    const plot_curve curves[] = {{"plain_name", 3, x, y}, {"it's \"@x\" \\", 2, short_x, short_y}};
    const curve_plot p = {"bytes", "error", 2, curves};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    curve_plot_script(out, &p, "a.png", "a.svg");
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "$curve0 << END\n0 8\n2.5 8\n40 8\nEND\n"));
    assert_non_null(strstr(text, "$curve1 << END\n0 3\n7 NaN\nEND\n"));
    assert_non_null(strstr(text, "set xrange [0:40]"));
    assert_non_null(strstr(text, "title 'plain_name' noenhanced"));
    assert_non_null(strstr(text, "title 'it?s ??x? ?' noenhanced"));
    free(text);
}

/* gnuplot draws no column of a legend that does not fit: two columns only if every label is short. A longer label than
 * a line keeps its beginning and its end. */
static void long_labels(void **state)
{
    (void)state;
    const double x[] = {0, 1}, y[] = {8, 4}, *model = y;
    const char *const long_name = "a-rather-long-name-of-a-spec-hfsad",
                      *const endless =
                          "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz-fedavg";
    for (size_t kind = 0; kind < 3; kind++) {
        const char *const second = kind == 0 ? "short" : kind == 1 ? long_name : endless;
        const plot_curve curves[] = {{"a", 2, x, y}, {second, 2, x, y}, {"b", 2, x, y}};
        const plot_bundle bundles[] = {
            {"a", BUNDLE_THIN, 0, 1, &model}, {second, BUNDLE_DASHED, 1, 1, &model}, {"b", BUNDLE_MARKS, 2, 1, &model}};
        for (size_t models = 0; models < 2; models++) {
            char *text = NULL;
            size_t size;
            FILE *out = open_memstream(&text, &size);
            if (models)
                model_plot_script(out, &(model_plot){2, 3, bundles, NULL, false}, "a.png", "a.svg");
            else
                curve_plot_script(out, &(curve_plot){"x", "y", 3, curves}, "a.png", "a.svg");
            assert_int_equal(fclose(out), 0);
            assert_non_null(strstr(text, kind ? "maxrows 3 " : "maxrows 2 "));
            assert_non_null(
                strstr(text, kind < 2 ? second : "0123456789abcdefghijklmnopqrstu..mnopqrstuvwxyz-fedavg'"));
            free(text);
        }
    }
}

static size_t count_files(const char *place)
{
    size_t n = 0;
    DIR *d = opendir(place);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") ? 1 : 0;
    closedir(d);
    return n;
}

static void check_head(const char *place, const char *name, const char *head, size_t length)
{
    char path[200], bytes[64] = "";
    snprintf(path, sizeof path, "%s/%s", place, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(fread(bytes, 1, length, f) == length);
    fclose(f);
    assert_memory_equal(bytes, head, length);
    unlink(path);
}

/* Draws name.png and name.svg; on failure both are dropped. */
static hfsad_status draw(const plot *p, const char *place, const char *name, hfsad_error *err)
{
    char png_name[100], svg_name[100];
    whole_file png, svg;
    snprintf(png_name, sizeof png_name, "%s.png", name);
    snprintf(svg_name, sizeof svg_name, "%s.svg", name);
    ok(whole_file_begin(&png, place, png_name, err), err);
    ok(whole_file_begin(&svg, place, svg_name, err), err);
    const hfsad_status status = plot_draw(p, &png, &svg, err);
    if (!status) {
        ok(whole_file_end(&png, err), err);
        ok(whole_file_end(&svg, err), err);
    }
    whole_file_drop(&png);
    whole_file_drop(&svg);
    return status;
}

static void drawn(void **state)
{
    (void)state;
    hfsad_error err;
    if (plot_check("give --no-plot", &err))
        skip();
    char place[] = "/tmp/hfsad plot's test XXXXXX"; /* a name that a shell or gnuplot would stumble over */
    static curve a, nothing;
    fill(&a, 0.02);
    assert_non_null(mkdtemp(place));
    const plot_series series[] = {series_of("HFSAD ({/:Italic K_m}=10)", &a), series_of("all zero", &nothing)};
    plot p = {"global iteration", "relative error", POINTS, 2, series};
    ok(draw(&p, place, "one", &err), &err);
    p.points = 1; /* iteration 0 alone */
    ok(draw(&p, place, "short", &err), &err);
    assert_int_equal(count_files(place), 4);
    check_head(place, "one.png", "\x89PNG\r\n", 6);
    check_head(place, "one.svg", "<?xml", 5);
    check_head(place, "short.png", "\x89PNG\r\n", 6);
    check_head(place, "short.svg", "<?xml", 5);
    p.x_label = "a ' quote that breaks the script"; /* gnuplot's own message comes back, and nothing is left */
    assert_int_equal(draw(&p, place, "broken", &err), HFSAD_ERROR_IO);
    assert_non_null(strstr(err.message, "gnuplot failed"));
    assert_int_equal(count_files(place), 0);
    assert_int_equal(rmdir(place), 0);
}

static void missing_gnuplot(void **state)
{
    (void)state;
    hfsad_error err;
    const char *usual = getenv("PATH");
    char *path = strdup(usual ? usual : "/usr/bin");
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(plot_check("give --no-plot", &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "gnuplot-nox"));
    assert_non_null(strstr(err.message, "--no-plot"));
    setenv("PATH", path, 1);
    free(path);
}

/* Every coefficient of every model up to a thousand of them, evenly chosen beyond; what a script cannot hold is no
 * label. */
static void bundles_of_models(void **state)
{
    (void)state;
    enum { M = 3 };
    for (size_t n = 1; n < 5000; n = 3 * n + 1) {
        double(*models)[M] = alloc_zero(n, sizeof *models);
        const double **w = alloc_zero(n, sizeof *w);
        assert_true(models && w);
        for (size_t i = 0; i < n; i++) {
            w[i] = models[i];
            for (size_t m = 0; m < M; m++)
                models[i][m] = (double)(10 * i + m);
        }
        const double truth[M] = {-1, -2, -3}, *one = truth;
        const plot_bundle bundles[] = {{"it's \"all\"", BUNDLE_THIN, 0, n, w}, {"truth", BUNDLE_MARKS, 1, 1, &one}};
        const model_plot p = {M, 2, bundles, n == 1 ? "age\0it's\0x" : NULL, n == 1};
        char *text = NULL;
        size_t size, drawn = 0, last = 0;
        FILE *out = open_memstream(&text, &size);
        model_plot_script(out, &p, "a.png", "a.svg");
        assert_int_equal(fclose(out), 0);
        assert_non_null(strstr(text, "title 'it?s ?all?'"));
        assert_true((n == 1) == (strstr(text, "('age' 1, 'it?s' 2, 'x' 3)") != NULL));
        assert_null(strstr(text, "lmargin")); /* gnuplot's own is as wide as the labels */
        assert_non_null(strstr(text, "$bundle1 << END\n1 -1\n2 -2\n3 -3\n\nEND\n"));
        const char *at = text + strlen("$bundle0 << END\n");
        for (; strncmp(at, "END\n", 4) != 0; drawn++) {
            char wanted[100];
            const size_t i = strtoul(at + 2, NULL, 10) / 10;
            snprintf(wanted, sizeof wanted, "1 %zu\n2 %zu\n3 %zu\n\n", 10 * i, 10 * i + 1, 10 * i + 2);
            assert_memory_equal(at, wanted, strlen(wanted));
            assert_true(drawn == 0 || i > last);
            last = i;
            at += strlen(wanted);
        }
        assert_true(n <= PLOT_MODELS_MOST ? drawn == n : drawn <= PLOT_MODELS_MOST && 3 * drawn > PLOT_MODELS_MOST);
        free(text);
        free(models);
        free(w);
    }
}

/* Where no temporary file can be had that is said, and not that gnuplot cannot draw. */
static void no_temporary_file(void **state)
{
    (void)state;
    hfsad_error err;
    struct rlimit usual, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const hfsad_status status = plot_check("give --no-plot", &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(status, HFSAD_ERROR_IO);
    assert_non_null(strstr(err.message, "temporary file"));
    assert_null(strstr(err.message, "install"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_and_last_point), cmocka_unit_test(jumping_curves),
        cmocka_unit_test(curves_with_x),         cmocka_unit_test(undrawable_values),
        cmocka_unit_test(long_labels),           cmocka_unit_test(drawn),
        cmocka_unit_test(missing_gnuplot),       cmocka_unit_test(no_temporary_file),
        cmocka_unit_test(bundles_of_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
