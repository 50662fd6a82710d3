/*
 * Plots for print, one column wide, drawn by gnuplot as a child process, in colours that colour-blind readers can tell
 * apart. Convergence: logarithmic error axis; a line with marks, a thin dashed line and a band per series. Models:
 * their coefficients.
 */
#ifndef HFSAD_LAB_PLOT_H
#define HFSAD_LAB_PLOT_H

#include "base/whole_file.h"

enum { PLOT_SERIES_MOST = 6 };

/* Point i of each array is iteration i, drawn as the mean of the point and its neighbours (1:2:1, of the logarithms).
 * Values that are not above 0 and finite are left out. */
typedef struct {
    const char *label;  /* gnuplot's enhanced text: "K_m" has a lowered m */
    const double *line; /* strong, with marks */
    const double *thin; /* a second line */
    const double *low, *high;
} plot_series;

typedef struct {
    const char *x_label, *y_label;
    size_t points, n_series;
    const plot_series *series;
} plot;

/* Curves, each with its own points, drawn as a line with marks; x starts at 0. Point i is drawn as above. */
typedef struct {
    const char *label; /* plain text; characters that a script cannot hold become '?' */
    size_t points;
    const double *x, *y;
} plot_curve;

typedef struct {
    const char *x_label, *y_label;
    size_t n_curves; /* PLOT_SERIES_MOST at most */
    const plot_curve *curves;
} curve_plot;

/* Coefficients against the logarithm of lambda, with a line at the chosen lambda: the largest have colours and names,
 * the others are grey; at most PLOT_LINES_MOST are drawn. */
enum { PLOT_LINES_MOST = 200 };
typedef struct {
    size_t points, M;
    const double *lambda; /* points, all above 0 */
    const double *w;      /* points rows of M */
    double chosen;
    size_t hidden;     /* number of columns at the end of a row that are not drawn: an intercept */
    const char *names; /* names of the features, each with a terminating 0; NULL: w_1, w_2, ... */
    bool standardized; /* w is in units of the columns' deviations */
} lambda_plot;

/* Models as lines through their coefficients: bundles of thin lines, dashed lines, or marks without a line. At most
 * PLOT_MODELS_MOST models of a bundle are drawn, evenly chosen. */
enum { PLOT_MODELS_MOST = 1000, PLOT_BUNDLES_MOST = 12 };
typedef enum { BUNDLE_THIN, BUNDLE_DASHED, BUNDLE_MARKS } bundle_style;

typedef struct {
    const char *label; /* plain text, as above */
    bundle_style style;
    size_t look; /* colour, or for marks their shape; 0 … PLOT_SERIES_MOST - 1 */
    size_t n;
    const double *const *w; /* n models of M numbers */
} plot_bundle;

typedef struct {
    size_t M, n_bundles;
    const plot_bundle *bundles;
    const char *names; /* names of the features, each with a terminating 0; NULL: their numbers */
    bool standardized; /* as above */
} model_plot;

/* Checks that gnuplot exists and can draw PNG and SVG. HFSAD_ERROR_INPUT with the remedy if not; HFSAD_ERROR_IO if
 * gnuplot could not be started. without: how to do without plots, "give --no-plot". */
hfsad_status plot_check(const char *without, hfsad_error *err);

/* Draws into two files of one folder that were begun; the caller closes, replaces or drops them. gnuplot runs in its
 * own session, so that Ctrl-C does not reach it: check for interrupts after each plot. */
hfsad_status plot_draw(const plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err);

/* The same for curves, and for coefficients. */
hfsad_status curve_plot_draw(const curve_plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err);
hfsad_status lambda_plot_draw(const lambda_plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err);
hfsad_status model_plot_draw(const model_plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err);

/* The script that plot_draw hands to gnuplot, which draws `png` and `svg` in its current folder. Exposed for tests. */
void plot_script(FILE *out, const plot *p, const char *png, const char *svg);
void curve_plot_script(FILE *out, const curve_plot *p, const char *png, const char *svg);
void model_plot_script(FILE *out, const model_plot *p, const char *png, const char *svg);
void lambda_plot_script(FILE *out, const lambda_plot *p, const char *png, const char *svg);

#endif
