/* gnuplot as a child process; see plot.h. */
#include "lab/plot.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Okabe and Ito's colours, ordered so that neighbours differ in grey as well, and a mark each. The strong lines
 * are solid, the medians dashed. */
static const struct {
    const char *colour;
    int mark;
} LOOKS[PLOT_SERIES_MOST] = {{"0072b2", 7},  {"d55e00", 5},  {"009e73", 9},
                             {"cc79a7", 11}, {"e69f00", 13}, {"000000", 4}};

static bool drawable(double value)
{
    return isfinite(value) && value > 0;
}

static void print_number(FILE *out, double value)
{
    if (drawable(value))
        fprintf(out, " %.9g", value);
    else
        fputs(" NaN", out);
}

/* Iterations between two drawn points: 1 up to a thousand iterations, because a column cannot show more points. */
static size_t stride_of(size_t points)
{
    return 1 + points / 1002;
}

/* The height of a curve at iteration i: on the logarithmic axis the mean of the iteration and its neighbours, weighted
 * 1:2:1. Sub-gradient methods alternate between two levels, which would fill the plot with hatching; this mean removes
 * the alternation and keeps the trend. The start is drawn as it is. */
static double height(size_t points, const double *curve, size_t i)
{
    if (i == 0)
        return curve[0];
    const double before = curve[i - 1], here = curve[i], after = i + 1 < points ? curve[i + 1] : before;
    if (!drawable(before) || !drawable(here) || !drawable(after))
        return here;
    if (i + 1 == points)
        return sqrt(before) * sqrt(here);
    return exp((log(before) + 2 * log(here) + log(after)) / 4);
}

/* Data go into the script, not into a file: no path needs quoting. */
static void print_data(FILE *out, const plot *p)
{
    const size_t stride = stride_of(p->points);
    fputs("$data << END\n", out);
    for (size_t i = 0; i < p->points; i++) {
        if (i % stride && i + 1 < p->points)
            continue;
        fprintf(out, "%zu", i);
        for (size_t s = 0; s < p->n_series; s++) {
            const double *const curves[] = {p->series[s].line, p->series[s].thin, p->series[s].low, p->series[s].high};
            for (size_t k = 0; k < 4; k++)
                print_number(out, height(p->points, curves[k], i));
        }
        fputc('\n', out);
    }
    fputs("END\n", out);
}

static void widen(double value, double *least, double *most)
{
    if (!drawable(value))
        return;
    *least = fmin(*least, value);
    *most = fmax(*most, value);
}

/* The error axis spans the data. Labels at the decades; at 1, 2 and 5 if it has less than two decades; at every digit
 * if it is shorter still. */
static void print_axis(FILE *out, double least, double most)
{
    if (most == 0)
        least = most = 1;
    least /= 1.25;
    most *= 1.25;
    fprintf(out, "set logscale y 10\nset yrange [%.9g:%.9g]\n", least, most);
    if (most / least >= 100) {
        fputs("set format y '10^{%L}'\nset mytics 10\n", out);
        return;
    }
    const bool every = most / least < 10;
    fputs("set ytics (", out);
    const int first = (int)floor(log10(least)), last = (int)ceil(log10(most));
    for (int decade = first; decade <= last; decade++)
        for (int i = 1; i < 10; i++) /* the last number is the level: 1 without a label */
            fprintf(out, "%s'%.*f' %de%d %d", decade > first || i > 1 ? ", " : "", decade < 0 ? -decade : 0,
                    i * pow(10, decade), i, decade, every || i == 1 || i == 2 || i == 5 ? 0 : 1);
    fputs(")\n", out);
}

/* Sets axes and margins; the legend is below them. gnuplot sets the left margin by the width of the labels. tics: share
 * of the height that the labels of the x axis need beyond one line. */
static void print_frame(FILE *out, const char *x_label, const char *y_label, size_t legend_rows, double tics)
{
    const double bottom = 0.16 + tics + 0.045 * (double)legend_rows;
    /* The label is centred on the axis: shares of the height to the upper edge, and of one character. */
    const double room = 2 - 0.975 - bottom, wide = 0.018 * (double)strlen(y_label);
    fprintf(out,
            "set datafile missing 'NaN'\n"
            "set xlabel '%s' offset 0,0.4\n"
            "set ylabel '%s' font ',%.3g'\n"
            "set border 3 linewidth 0.7\n"
            "set tics nomirror out scale 0.6,0.3\n"
            "set grid ytics linewidth 0.5 linetype 1 linecolor rgb '#e4e4e4'\n"
            "set rmargin screen 0.965\n"
            "set tmargin screen 0.975\n"
            "set bmargin screen %g\n"
            "set key at screen 0.53,0.015 bottom center vertical maxrows %zu Left reverse samplen 3.6 spacing 1.15\n",
            x_label, y_label, wide > room ? 8 * room / wide : 8, bottom, legend_rows);
}

static void print_x_range(FILE *out, double most)
{
    fprintf(out, "set xrange [0:%.9g]\n", most);
}

/* Eight marks a curve. */
static size_t mark_interval(size_t points)
{
    const size_t drawn = points / stride_of(points);
    return drawn > 8 ? drawn / 8 : 1;
}

/* Ends the script's `draw` and draws it twice: PNG and SVG. */
static void print_drawing(FILE *out, const char *png, const char *svg)
{
    fprintf(out,
            "\"\n"
            "set terminal pngcairo enhanced size 1400,1120 font 'Helvetica,8' fontscale 3.5 linewidth 3.2 "
            "pointscale 2.6\n"
            "set output '%s'\n"
            "@draw\n"
            "set output\n"
            "set terminal svg enhanced size 350,280 font 'Helvetica,8' linewidth 0.9\n"
            "set output '%s'\n"
            "@draw\n"
            "set output\n",
            png, svg);
}

void plot_script(FILE *out, const plot *p, const char *png, const char *svg)
{
    double least = INFINITY, most = 0;
    for (size_t s = 0; s < p->n_series; s++)
        for (size_t i = 0; i < p->points; i += stride_of(p->points)) {
            const double *const curves[] = {p->series[s].line, p->series[s].thin, p->series[s].low, p->series[s].high};
            for (size_t k = 0; k < 4; k++)
                widen(height(p->points, curves[k], i), &least, &most);
        }
    print_data(out, p);
    print_frame(out, p->x_label, p->y_label, (p->n_series + 1) / 2, 0);
    print_x_range(out, p->points > 1 ? (double)(p->points - 1) : 1);
    print_axis(out, least, most);
    fputs("draw = \"plot", out);
    for (size_t s = 0; s < p->n_series; s++) /* bands first, so that no band hides a line */
        fprintf(out,
                "%s $data using 1:%zu:%zu with filledcurves fillcolor rgb '#%s' fillstyle transparent solid 0.14 "
                "notitle",
                s ? "," : "", 4 * s + 4, 4 * s + 5, LOOKS[s].colour);
    for (size_t s = 0; s < p->n_series; s++)
        fprintf(out, ", $data using 1:%zu with lines linecolor rgb '#%s' linewidth 0.8 dashtype (9,5) notitle",
                4 * s + 3, LOOKS[s].colour);
    for (size_t s = 0; s < p->n_series; s++)
        fprintf(out,
                ", $data using 1:%zu with linespoints linecolor rgb '#%s' linewidth %g dashtype 1 pointtype %d "
                "pointsize 0.5 pointinterval %zu title '%s'",
                4 * s + 2, LOOKS[s].colour, s ? 1.1 : 1.6, LOOKS[s].mark, mark_interval(p->points), p->series[s].label);
    print_drawing(out, png, svg);
}

/* Replaces quotes and backslashes, which would end the text or start an escape. */
static void print_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f || strchr("'\"\\`@", *text) ? '?' : *text, out);
}

/* Limits in bytes: a feature's name, another label, and a label that leaves room for a second column. */
enum { FEATURE_SHOWN = 32, LABEL_SHOWN = 56, LABEL_OF_TWO = 24 };

static bool is_within_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* A text of more than `shown` bytes keeps its start and its end, which names the level, class or algorithm. */
static void print_short(FILE *out, const char *text, size_t shown)
{
    char cut[LABEL_SHOWN + 8];
    const size_t length = strlen(text);
    if (length <= shown) {
        print_plain(out, text);
        return;
    }
    size_t begin = shown * 9 / 16, end = length - shown * 3 / 8;
    while (begin > 0 && is_within_character(text[begin]))
        begin--;
    while (is_within_character(text[end]))
        end++;
    snprintf(cut, sizeof cut, "%.*s..%s", (int)begin, text, text + end);
    print_plain(out, cut);
}

/* Rows of a legend with n labels: two columns, or one if a label is too long for half of the width. gnuplot does not
 * draw a column that does not fit. */
static size_t legend_rows(size_t n, size_t longest)
{
    return longest > LABEL_OF_TWO ? n : (n + 1) / 2;
}

static void print_curve(FILE *out, size_t number, const plot_curve *c)
{
    const size_t stride = stride_of(c->points);
    fprintf(out, "$curve%zu << END\n", number);
    for (size_t i = 0; i < c->points; i++) {
        if ((i % stride && i + 1 < c->points) || !isfinite(c->x[i]))
            continue;
        fprintf(out, "%.9g", c->x[i]);
        print_number(out, height(c->points, c->y, i));
        fputc('\n', out);
    }
    fputs("END\n", out);
}

void curve_plot_script(FILE *out, const curve_plot *p, const char *png, const char *svg)
{
    double least = INFINITY, most = 0, x_most = 0;
    size_t longest = 0;
    for (size_t c = 0; c < p->n_curves; c++) {
        const plot_curve *curve = &p->curves[c];
        longest = strlen(curve->label) > longest ? strlen(curve->label) : longest;
        for (size_t i = 0; i < curve->points; i++) {
            widen(height(curve->points, curve->y, i), &least, &most);
            x_most = isfinite(curve->x[i]) ? fmax(x_most, curve->x[i]) : x_most;
        }
        print_curve(out, c, curve);
    }
    print_frame(out, p->x_label, p->y_label, legend_rows(p->n_curves, longest), 0);
    print_x_range(out, x_most > 0 ? x_most : 1);
    print_axis(out, least, most);
    fputs("draw = \"plot", out);
    for (size_t c = 0; c < p->n_curves; c++) {
        fprintf(out,
                "%s $curve%zu using 1:2 with linespoints linecolor rgb '#%s' linewidth 1.3 dashtype 1 pointtype %d "
                "pointsize 0.5 pointinterval %zu title '",
                c ? "," : "", c, LOOKS[c].colour, LOOKS[c].mark, mark_interval(p->curves[c].points));
        print_short(out, p->curves[c].label, LABEL_SHOWN);
        fputs("' noenhanced", out);
    }
    print_drawing(out, png, svg);
}

/* The lines of a lambda_plot, the largest first. */
typedef struct {
    size_t m;
    double most;
} path_line;

static int larger_first(const void *a, const void *b)
{
    const path_line *x = a, *y = b;
    if (x->most != y->most)
        return x->most > y->most ? -1 : 1;
    return (x->m > y->m) - (x->m < y->m);
}

/* Puts the PLOT_LINES_MOST largest into lines, in order; returns their number. */
static size_t choose_lines(const lambda_plot *p, path_line *lines)
{
    size_t n = 0;
    for (size_t m = 0; m + p->hidden < p->M; m++) {
        path_line line = {m, 0};
        for (size_t i = 0; i < p->points; i++)
            line.most = fmax(line.most, fabs(p->w[i * p->M + m]));
        if (n == PLOT_LINES_MOST && larger_first(&lines[n - 1], &line) < 0)
            continue;
        n -= n == PLOT_LINES_MOST;
        size_t at = n++;
        for (; at > 0 && larger_first(&line, &lines[at - 1]) < 0; at--)
            lines[at] = lines[at - 1];
        lines[at] = line;
    }
    return n;
}

/* A feature's name, cut to what a legend holds; without names w_{1} and so on. */
static void print_feature(FILE *out, const char *names, size_t m)
{
    if (!names) {
        fprintf(out, "w_{%zu}", m + 1);
        return;
    }
    while (m-- > 0)
        names += strlen(names) + 1;
    print_short(out, names, FEATURE_SHOWN);
}

static size_t name_length(const char *names, size_t m)
{
    while (names && m-- > 0)
        names += strlen(names) + 1;
    return names ? strlen(names) : 0;
}

static void print_lambda_data(FILE *out, const lambda_plot *p, const path_line *lines, size_t n)
{
    fputs("$data << END\n", out);
    for (size_t i = 0; i < p->points; i++) {
        fprintf(out, "%.9g", p->lambda[i]);
        for (size_t k = 0; k < n; k++)
            fprintf(out, " %.9g", p->w[i * p->M + lines[k].m]);
        fputc('\n', out);
    }
    fputs("END\n", out);
}

void lambda_plot_script(FILE *out, const lambda_plot *p, const char *png, const char *svg)
{
    path_line lines[PLOT_LINES_MOST];
    const size_t n = choose_lines(p, lines), named = n < PLOT_SERIES_MOST ? n : PLOT_SERIES_MOST;
    double least = p->lambda[0], most = p->lambda[0];
    for (size_t i = 1; i < p->points; i++) {
        least = fmin(least, p->lambda[i]);
        most = fmax(most, p->lambda[i]);
    }
    size_t longest = 0;
    for (size_t k = 0; k < named; k++)
        longest = name_length(p->names, lines[k].m) > longest ? name_length(p->names, lines[k].m) : longest;
    const size_t columns = longest > 16 ? 1 : longest > 8 ? 2 : 3; /* of the legend */
    print_lambda_data(out, p, lines, n);
    print_frame(out, "{/Symbol l}", p->standardized ? "standardized coefficient" : "coefficient in the cloud",
                (named + columns - 1) / columns, 0);
    fprintf(
        out,
        "set logscale x 10\n"
        "set format x '%%g'\n"
        "set xrange [%.9g:%.9g]\n"
        "set xzeroaxis linetype 1 linewidth 0.5 linecolor rgb '#808080'\n"
        "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead dashtype (6,4) linewidth 0.9 linecolor rgb '#404040'\n"
        "set label 'chosen' at %.9g, graph 0.97 offset 0.5,0\n",
        least / 1.02, most * 1.02, p->chosen, p->chosen, p->chosen);
    fputs("draw = \"plot", out);
    for (size_t k = n; k-- > 0;) /* the largest last, over the others */
        if (k >= named)
            fprintf(out, "%s $data using 1:%zu with lines linecolor rgb '#b0b0b0' linewidth 0.7 notitle",
                    k + 1 < n ? "," : "", k + 2);
    for (size_t k = 0; k < named; k++) {
        fprintf(out,
                "%s $data using 1:%zu with linespoints linecolor rgb '#%s' linewidth 1.2 pointtype %d pointsize 0.4 "
                "pointinterval %zu title '",
                k || n > named ? "," : "", k + 2, LOOKS[k].colour, LOOKS[k].mark, p->points > 8 ? p->points / 8 : 1);
        print_feature(out, p->names, lines[k].m);
        fputs(p->names ? "' noenhanced" : "'", out);
    }
    print_drawing(out, png, svg);
}

static void print_bundle(FILE *out, size_t number, size_t M, const plot_bundle *b)
{
    const size_t stride = 1 + (b->n - 1) / PLOT_MODELS_MOST;
    fprintf(out, "$bundle%zu << END\n", number);
    for (size_t i = 0; i < b->n; i += stride) {
        for (size_t m = 0; m < M; m++)
            fprintf(out, "%zu %.9g\n", m + 1, b->w[i][m]);
        fputc('\n', out); /* ends the line */
    }
    fputs("END\n", out);
}

void model_plot_script(FILE *out, const model_plot *p, const char *png, const char *svg)
{
    enum { TICS_MOST = 30, TURNED_MOST = 20 };
    static const int shapes[PLOT_SERIES_MOST] = {1, 2, 3,
                                                 4, 6, 8}; /* open marks, so that the lines below are visible */
    const size_t shown = p->n_bundles > PLOT_SERIES_MOST ? LABEL_OF_TWO : LABEL_SHOWN; /* the axes need room, too */
    size_t label = 0;                                                                  /* the longest */
    for (size_t b = 0; b < p->n_bundles; b++) {
        print_bundle(out, b, p->M, &p->bundles[b]);
        label = strlen(p->bundles[b].label) > label ? strlen(p->bundles[b].label) : label;
    }
    const bool named = p->names && p->M <= TICS_MOST;
    size_t longest = 0;
    const char *name = p->names;
    for (size_t m = 0; named && m < p->M; m++, name += strlen(name) + 1)
        longest = strlen(name) > longest ? strlen(name) : longest;
    const bool turned = longest * p->M > 40; /* side by side they would overlap */
    longest = longest < FEATURE_SHOWN ? longest : FEATURE_SHOWN;
    /* Long names are smaller, so that the axis remains as high as its label is long. */
    const double size = longest > TURNED_MOST ? (double)TURNED_MOST / (double)longest : 1;
    print_frame(out, turned ? "" : "feature", p->standardized ? "standardized coefficient" : "coefficient",
                legend_rows(p->n_bundles, label < shown ? label : shown),
                turned ? 0.0175 * size * (double)longest - 0.05 : 0);
    if (turned && size < 1)
        fprintf(out, "set xtics font ',%.2g'\n", 8 * size);
    fprintf(out, "set xrange [0.7:%g]\nset xzeroaxis linetype 1 linewidth 0.5 linecolor rgb '#808080'\n",
            (double)p->M + 0.3);
    if (named) {
        fputs(turned ? "set xtics rotate by 90 right noenhanced (" : "set xtics noenhanced (", out);
        for (size_t m = 0; m < p->M; m++) {
            fputs(m ? ", '" : "'", out);
            print_feature(out, p->names, m);
            fprintf(out, "' %zu", m + 1);
        }
        fputs(")\n", out);
    } else if (p->M <= TICS_MOST) {
        fputs("set xtics 1\n", out);
    }
    fputs("draw = \"plot", out);
    for (size_t i = 0; i < p->n_bundles; i++) {
        const plot_bundle *b = &p->bundles[i];
        fprintf(out, "%s $bundle%zu using 1:2 with ", i ? "," : "", i);
        if (b->style == BUNDLE_THIN)
            fprintf(out, "%s linecolor rgb '#%s' linewidth 0.5 dashtype 1",
                    turned  ? "points pointtype 7 pointsize 0.6" /* features have no order that a line could show */
                    : named ? "linespoints pointtype 7 pointsize 0.4"
                            : "lines",
                    LOOKS[b->look].colour);
        else if (b->style == BUNDLE_DASHED)
            fprintf(out, "lines linecolor rgb '#%s' linewidth 1.4 dashtype (6,4)", LOOKS[b->look].colour);
        else
            fprintf(out, "points linecolor rgb '#000000' linewidth 1 pointtype %d pointsize 0.9", shapes[b->look]);
        fputs(" title '", out);
        print_short(out, b->label, shown);
        fputs("' noenhanced", out);
    }
    print_drawing(out, png, svg);
}

/* The child reads a script, writes all output to messages, and runs in a new session: the parent handles Ctrl-C and
 * SIGHUP. */
_Noreturn static void become_gnuplot(const char *folder, int script, int messages)
{
    enum { NO_START = 126, NOT_FOUND = 127 }; /* as a shell has it */
    setsid();
    if (dup2(script, STDIN_FILENO) < 0 || dup2(messages, STDOUT_FILENO) < 0 || dup2(messages, STDERR_FILENO) < 0 ||
        chdir(folder) != 0)
        _exit(NO_START);
    execlp("gnuplot", "gnuplot", "--default-settings", (char *)NULL);
    _exit(errno == ENOENT ? NOT_FOUND : NO_START);
}

/* A script for gnuplot, and gnuplot's output. Both are files, so that neither process waits for the other. */
typedef struct {
    FILE *script, *messages;
} dialogue;

/* Called after a failed begin too. */
static void dialogue_end(dialogue *d)
{
    if (d->script)
        fclose(d->script);
    if (d->messages)
        fclose(d->messages);
}

static hfsad_status dialogue_begin(dialogue *d, hfsad_error *err)
{
    d->script = tmpfile();
    d->messages = d->script ? tmpfile() : NULL;
    if (d->messages)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_IO, "a temporary file for gnuplot could not be made in %s: %s", P_tmpdir,
                     strerror(errno));
}

/* *code: the exit status of gnuplot as a shell shows it, 127 if it was not found. */
static hfsad_status dialogue_run(dialogue *d, const char *folder, int *code, hfsad_error *err)
{
    if (fflush(d->script) || ferror(d->script) || fseek(d->script, 0, SEEK_SET))
        return error_set(err, HFSAD_ERROR_IO, "the script for gnuplot could not be written in %s: %s", P_tmpdir,
                         strerror(errno));
    const pid_t child = fork();
    if (child == 0)
        become_gnuplot(folder, fileno(d->script), fileno(d->messages));
    int status = 0;
    pid_t ended = -1;
    while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        continue;
    if (ended < 0)
        return error_set(err, HFSAD_ERROR_IO, "gnuplot could not be started: %s", strerror(errno));
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return HFSAD_OK;
}

/* gnuplot's message as one line, without the repeated command and the caret under it. */
static void last_message(FILE *messages, int code, char *text, size_t size)
{
    char line[300];
    snprintf(text, size, "exit status %d", code);
    rewind(messages);
    while (fgets(line, sizeof line, messages)) {
        line[strcspn(line, "\n")] = 0;
        if (line[strspn(line, " \t^")])
            snprintf(text, size, "%s", line + strspn(line, " \t"));
    }
}

hfsad_status plot_check(const char *without, hfsad_error *err)
{
    static const char remedy[] = "install it (Debian: apt install gnuplot-nox), or";
    dialogue d;
    int code = 0;
    hfsad_status status = dialogue_begin(&d, err);
    if (!status) {
        fputs("set terminal pngcairo\nset terminal svg\n", d.script);
        status = dialogue_run(&d, ".", &code, err);
    }
    dialogue_end(&d);
    if (!status && code == 127)
        status =
            error_set(err, HFSAD_ERROR_INPUT, "gnuplot, which draws the plots, was not found; %s %s", remedy, without);
    else if (!status && code)
        status =
            error_set(err, HFSAD_ERROR_INPUT, "the installed gnuplot cannot draw PNG and SVG; %s %s", remedy, without);
    return status;
}

/* Whether the file has this mark near its end, because gnuplot does not report a full disk. */
static bool is_whole(const char *path, const char *mark)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    char tail[32] = {0};
    size_t count = 0;
    if (fseek(f, -(long)(sizeof tail), SEEK_END) == 0)
        count = fread(tail, 1, sizeof tail, f);
    fclose(f);
    for (size_t i = 0; i + strlen(mark) <= count; i++)
        if (!memcmp(tail + i, mark, strlen(mark)))
            return true;
    return false;
}

/* One of the kinds of plots; the others are NULL. */
typedef struct {
    const plot *series;
    const curve_plot *curves;
    const lambda_plot *coefficients;
    const model_plot *models;
} any_plot;

static hfsad_status draw_plot(dialogue *d, any_plot p, const whole_file *png, const whole_file *svg, char *folder,
                              hfsad_error *err)
{
    char text[300];
    int code = 0;
    *strrchr(folder, '/') = 0; /* whole_file_begin added it */
    const char *const png_name = strrchr(png->temporary, '/') + 1, *const svg_name = strrchr(svg->temporary, '/') + 1;
    if (p.curves)
        curve_plot_script(d->script, p.curves, png_name, svg_name);
    if (p.models)
        model_plot_script(d->script, p.models, png_name, svg_name);
    if (p.series)
        plot_script(d->script, p.series, png_name, svg_name);
    if (p.coefficients)
        lambda_plot_script(d->script, p.coefficients, png_name, svg_name);
    const hfsad_status status = dialogue_run(d, *folder ? folder : "/", &code, err);
    if (status)
        return status;
    if (code) {
        last_message(d->messages, code, text, sizeof text);
        return error_set(err, HFSAD_ERROR_IO, "%s: gnuplot failed: %s", png->path, text);
    }
    const bool first = is_whole(png->temporary, "IEND");
    if (!first || !is_whole(svg->temporary, "</svg>"))
        return error_set(err, HFSAD_ERROR_IO, "%s: gnuplot did not write the whole plot; is the disk full?",
                         first ? svg->path : png->path);
    return HFSAD_OK;
}

static hfsad_status draw_any(any_plot p, const whole_file *png, const whole_file *svg, hfsad_error *err)
{
    dialogue d;
    char *folder = strdup(png->temporary);
    if (!folder)
        return error_memory(err, strlen(png->temporary), "a file name");
    hfsad_status status = dialogue_begin(&d, err);
    if (!status)
        status = draw_plot(&d, p, png, svg, folder, err);
    dialogue_end(&d);
    free(folder);
    return status;
}

hfsad_status plot_draw(const plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err)
{
    return draw_any((any_plot){.series = p}, png, svg, err);
}

hfsad_status curve_plot_draw(const curve_plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err)
{
    return draw_any((any_plot){.curves = p}, png, svg, err);
}

hfsad_status lambda_plot_draw(const lambda_plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err)
{
    return draw_any((any_plot){.coefficients = p}, png, svg, err);
}

hfsad_status model_plot_draw(const model_plot *p, const whole_file *png, const whole_file *svg, hfsad_error *err)
{
    return draw_any((any_plot){.models = p}, png, svg, err);
}
