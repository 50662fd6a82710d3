/* gnuplot as a child process; see plot.h. */
#include "report/plot.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Okabe and Ito's colours, ordered so that neighbours differ in grey as well, and a mark each. Lines are solid: some
 * methods jump up and down from one iteration to the next, which makes dashes unreadable. */
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

/* Iterations between two points that are drawn: about sixty points, as many as a column can show. Odd, so that a
 * method that jumps up and down in turn is shown to do so. */
static size_t stride_of(const plot *p)
{
    const size_t stride = p->points / 60;
    return stride % 2 ? stride : stride + 1;
}

/* In the script rather than in a file: no path needs quoting. */
static void print_data(FILE *out, const plot *p)
{
    const size_t stride = stride_of(p);
    fputs("$data << END\n", out);
    for (size_t i = 0; i < p->points; i++) {
        if (i % stride && i + 1 < p->points)
            continue;
        fprintf(out, "%zu", i);
        for (size_t s = 0; s < p->n_series; s++) {
            print_number(out, p->series[s].line[i]);
            print_number(out, p->series[s].thin[i]);
            print_number(out, p->series[s].low[i]);
            print_number(out, p->series[s].high[i]);
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

/* The error axis: as long as the data. Labels at the decades, where it has less than two of them at 1, 2 and 5, where
 * it is shorter still at every digit. */
static void print_axis(FILE *out, const plot *p)
{
    double least = INFINITY, most = 0;
    for (size_t s = 0; s < p->n_series; s++)
        for (size_t i = 0; i < p->points; i += stride_of(p)) {
            const plot_series *series = &p->series[s];
            const double values[] = {series->line[i], series->thin[i], series->low[i], series->high[i]};
            for (size_t k = 0; k < 4; k++)
                widen(values[k], &least, &most);
        }
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

static void print_setting(FILE *out, const plot *p)
{
    const size_t rows = (p->n_series + 1) / 2; /* of the legend, below the axes */
    fprintf(out,
            "set datafile missing 'NaN'\n"
            "set xrange [0:%zu]\n"
            "set xlabel '%s' offset 0,0.4\n"
            "set ylabel '%s' offset 0.4,0\n"
            "set border 3 linewidth 0.7\n"
            "set tics nomirror out scale 0.6,0.3\n"
            "set grid ytics linewidth 0.5 linetype 1 linecolor rgb '#e4e4e4'\n"
            "set lmargin screen 0.145\n"
            "set rmargin screen 0.965\n"
            "set tmargin screen 0.975\n"
            "set bmargin screen %g\n"
            "set key at screen 0.53,0.015 bottom center vertical maxrows %zu Left reverse samplen 3.6 spacing 1.15\n",
            p->points > 1 ? p->points - 1 : 1, p->x_label, p->y_label, 0.16 + 0.045 * (double)rows, rows);
}

void plot_script(FILE *out, const plot *p, const char *png, const char *svg)
{
    print_data(out, p);
    print_setting(out, p);
    print_axis(out, p);
    const size_t drawn = p->points / stride_of(p), marks = drawn > 8 ? drawn / 8 : 1;
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
                4 * s + 2, LOOKS[s].colour, s ? 1.1 : 1.6, LOOKS[s].mark, marks, p->series[s].label);
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

/* The child: a script as its input, everything it says into messages. Ctrl-C is the parent's business. */
_Noreturn static void become_gnuplot(const char *folder, int script, int messages)
{
    signal(SIGINT, SIG_IGN);
    if (dup2(script, STDIN_FILENO) >= 0 && dup2(messages, STDOUT_FILENO) >= 0 && dup2(messages, STDERR_FILENO) >= 0 &&
        chdir(folder) == 0)
        execlp("gnuplot", "gnuplot", "--default-settings", (char *)NULL);
    _exit(127);
}

/* The exit status of gnuplot, 127 where it could not be started, -1 where even that failed (errno). */
static int run_gnuplot(FILE *script, const char *folder, FILE *messages)
{
    if (fflush(script) || fseek(script, 0, SEEK_SET))
        return -1;
    const pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0)
        become_gnuplot(folder, fileno(script), fileno(messages));
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* What gnuplot said, as one line: it repeats the command with a caret under it before it comes to the point. */
static void last_message(FILE *messages, char *text, size_t size)
{
    char line[300];
    snprintf(text, size, "no message");
    rewind(messages);
    while (fgets(line, sizeof line, messages)) {
        line[strcspn(line, "\n")] = 0;
        if (line[strspn(line, " \t^")])
            snprintf(text, size, "%s", line + strspn(line, " \t"));
    }
}

hfsad_status plot_check(hfsad_error *err)
{
    FILE *script = tmpfile(), *messages = tmpfile();
    int status = -1;
    if (script && messages) {
        fputs("set terminal pngcairo\nset terminal svg\n", script);
        status = run_gnuplot(script, ".", messages);
    }
    if (script)
        fclose(script);
    if (messages)
        fclose(messages);
    if (status == 0)
        return HFSAD_OK;
    const char *remedy = "install it (Debian: apt install gnuplot-nox), or give --no-plot";
    if (status == 127)
        return error_set(err, HFSAD_ERROR_INPUT, "gnuplot, which draws the plots, was not found; %s", remedy);
    return error_set(err, HFSAD_ERROR_INPUT, "the gnuplot that was found cannot draw PNG and SVG; %s", remedy);
}

/* Whether the file has this mark near its end: gnuplot does not notice that a disk is full. */
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

typedef struct {
    char partial_name[120], partial[4200], path[4200];
    const char *mark;
} image;

static hfsad_status image_name(image *g, const char *folder, const char *name, const char *type, const char *mark,
                               hfsad_error *err)
{
    g->mark = mark;
    const int a = snprintf(g->partial_name, sizeof g->partial_name, ".%s.%s.%ld", name, type, (long)getpid());
    const int b = snprintf(g->partial, sizeof g->partial, "%s/%s", folder, g->partial_name);
    snprintf(g->path, sizeof g->path, "%s/%s.%s", folder, name, type);
    if (a < 0 || b < 0 || (size_t)a >= sizeof g->partial_name || (size_t)b >= sizeof g->partial)
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the name is too long for a plot", folder);
    return HFSAD_OK;
}

static hfsad_status image_take(const image *g, hfsad_error *err)
{
    if (!is_whole(g->partial, g->mark))
        return error_set(err, HFSAD_ERROR_IO, "%s: gnuplot did not write the whole plot; is the disk full?", g->path);
    if (rename(g->partial, g->path))
        return error_set(err, HFSAD_ERROR_IO, "%s: %s", g->path, strerror(errno));
    return HFSAD_OK;
}

hfsad_status plot_write(const plot *p, const char *folder, const char *name, hfsad_error *err)
{
    image png, svg;
    hfsad_status status = image_name(&png, folder, name, "png", "IEND", err);
    if (!status)
        status = image_name(&svg, folder, name, "svg", "</svg>", err);
    if (status)
        return status;
    FILE *script = tmpfile(), *messages = tmpfile();
    int code = -1;
    if (script && messages) {
        plot_script(script, p, png.partial_name, svg.partial_name);
        code = run_gnuplot(script, folder, messages);
    }
    char text[300] = "it could not be started";
    if (code > 0 && code != 127)
        last_message(messages, text, sizeof text);
    if (code != 0)
        status = error_set(err, HFSAD_ERROR_IO, "%s: gnuplot failed: %s", png.path, text);
    if (!status)
        status = image_take(&png, err);
    if (!status)
        status = image_take(&svg, err);
    if (status) {
        remove(png.partial);
        remove(svg.partial);
    }
    if (script)
        fclose(script);
    if (messages)
        fclose(messages);
    return status;
}
