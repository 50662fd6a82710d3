/* What is handed to gnuplot and, where gnuplot is installed, what comes back. */
#include "report/plot.h"
#include "tools.h"

#include <dirent.h>
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
    snprintf(row, sizeof row, "\n300 %.9g %.9g %.9g %.9g %.9g", a.line[300], a.thin[300], a.low[300], a.high[300],
             b.line[300]);
    assert_non_null(strstr(text, row));
    free(text);
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

static size_t count_files(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") ? 1 : 0;
    closedir(d);
    return n;
}

static void check_head(const char *folder, const char *name, const char *head, size_t length)
{
    char path[200], bytes[64] = "";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(fread(bytes, 1, length, f) == length);
    fclose(f);
    assert_memory_equal(bytes, head, length);
    unlink(path);
}

static void drawn(void **state)
{
    (void)state;
    hfsad_error err;
    if (plot_check(&err))
        skip();
    char folder[] = "/tmp/hfsad plot's test XXXXXX"; /* a name that a shell or gnuplot would stumble over */
    static curve a, nothing;
    fill(&a, 0.02);
    assert_non_null(mkdtemp(folder));
    const plot_series series[] = {series_of("HFSAD ({/:Italic K_m}=10)", &a), series_of("all zero", &nothing)};
    plot p = {"global iteration", "relative error", POINTS, 2, series};
    ok(plot_write(&p, folder, "one", &err), &err);
    p.points = 1; /* iteration 0 alone */
    ok(plot_write(&p, folder, "short", &err), &err);
    assert_int_equal(count_files(folder), 4);
    check_head(folder, "one.png", "\x89PNG\r\n", 6);
    check_head(folder, "one.svg", "<?xml", 5);
    check_head(folder, "short.png", "\x89PNG\r\n", 6);
    check_head(folder, "short.svg", "<?xml", 5);
    p.x_label = "a ' quote that breaks the script"; /* gnuplot's own message comes back, and nothing is left */
    assert_int_equal(plot_write(&p, folder, "broken", &err), HFSAD_ERROR_IO);
    assert_non_null(strstr(err.message, "gnuplot failed"));
    assert_int_equal(count_files(folder), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(plot_write(&p, folder, "gone", &err), HFSAD_ERROR_IO);
}

static void missing_gnuplot(void **state)
{
    (void)state;
    hfsad_error err;
    const char *usual = getenv("PATH");
    char *path = strdup(usual ? usual : "/usr/bin");
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(plot_check(&err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "gnuplot-nox"));
    assert_non_null(strstr(err.message, "--no-plot"));
    setenv("PATH", path, 1);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_and_last_point),
        cmocka_unit_test(undrawable_values),
        cmocka_unit_test(drawn),
        cmocka_unit_test(missing_gnuplot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
