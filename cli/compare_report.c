/* Tables, compare.csv and the plot of `hfsad compare`. */
#include "compare.h"

#include "base/error.h"
#include "base/format_number.h"
#include "lab/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The smallest value of an objective over all runs; accuracy is relative to it. */
typedef struct {
    double value, iteration;
    const char *run; /* NULL: no number */
} best_found;

/* The best value of the other columns is 0. */
static bool is_objective(const comparison *c)
{
    return c->metric == COMPARE_objective || c->metric == COMPARE_consensus_objective;
}

static best_found find_best(const comparison *c)
{
    best_found best = {INFINITY, 0, NULL};
    for (size_t i = 0; i < c->n_runs; i++)
        for (size_t row = 0; row < c->runs[i].rows; row++)
            if (c->runs[i].column[c->metric][row] < best.value)
                best = (best_found){c->runs[i].column[c->metric][row], c->runs[i].column[COMPARE_iteration][row],
                                    c->runs[i].name};
    return best;
}

/* The number in tables and plot: (v - best)/|best| for an objective, otherwise the value itself. */
static double distance_of(const comparison *c, const best_found *best, double value)
{
    if (!is_objective(c))
        return value;
    return (value - best->value) / (best->value != 0 ? fabs(best->value) : 1);
}

static double bytes_of(const compared_run *r, size_t row)
{
    return r->column[COMPARE_bytes_up][row] + r->column[COMPARE_bytes_down][row];
}

static double axis_place(const compared_run *r, size_t row, compare_against against)
{
    switch (against) {
    case AGAINST_ITERATIONS:
        return r->column[COMPARE_iteration][row];
    case AGAINST_ROUNDS:
        return r->column[COMPARE_iteration][row] * r->edge_rounds;
    case AGAINST_BYTES:
        return bytes_of(r, row) / 1e6;
    case AGAINST_SECONDS:
        return r->column[COMPARE_seconds][row];
    }
    return NAN;
}

static const char *const PLACES[] = {"global iterations", "edge rounds", "megabytes sent, up and down", "seconds"};

enum { CELL_WIDTH = 12 };

static int name_width(const comparison *c)
{
    size_t width = 3;
    for (size_t i = 0; i < c->n_runs; i++)
        width = strlen(c->runs[i].name) > width ? strlen(c->runs[i].name) : width;
    return width < 60 ? (int)width : 60;
}

static void print_cell(FILE *out, const char *format, double value)
{
    char text[40] = "-";
    if (!isnan(value))
        snprintf(text, sizeof text, format, value);
    fprintf(out, "| %*s ", CELL_WIDTH, text);
}

static void print_rule(FILE *out, int first, size_t cells)
{
    fputc('|', out);
    for (int i = 0; i < first + 2; i++)
        fputc('-', out);
    for (size_t k = 0; k < cells; k++) {
        fputc('|', out);
        for (int i = 0; i < CELL_WIDTH + 2; i++)
            fputc('-', out);
    }
    fputs("|\n", out);
}

/* The last row of every run. */
static void print_ends(FILE *out, const comparison *c)
{
    static const char *const heads[] = {"algorithm", "iterations", "objective", "rel. error", "seconds", "megabytes"};
    const int width = name_width(c);
    const bool other = c->metric != COMPARE_consensus_objective && c->metric != COMPARE_relative_error;
    fprintf(out, "| %-*s ", width, "run");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        fprintf(out, "| %*s ", CELL_WIDTH, heads[i]);
    if (other)
        fprintf(out, "| %*.*s ", CELL_WIDTH, CELL_WIDTH, compare_names[c->metric]);
    fputs("|\n", out);
    print_rule(out, width, sizeof heads / sizeof *heads + other);
    for (size_t i = 0; i < c->n_runs; i++) {
        const compared_run *r = &c->runs[i];
        const size_t last = r->rows - 1;
        fprintf(out, "| %-*s | %*s ", width, r->name, CELL_WIDTH, r->algorithm);
        print_cell(out, "%.0f", r->column[COMPARE_iteration][last]);
        print_cell(out, "%.7g", r->column[COMPARE_consensus_objective][last]);
        print_cell(out, "%.3g", r->column[COMPARE_relative_error][last]);
        print_cell(out, "%.3g", r->column[COMPARE_seconds][last]);
        print_cell(out, "%.4g", bytes_of(r, last) / 1e6);
        if (other)
            print_cell(out, "%.5g", r->column[c->metric][last]);
        fputs("|\n", out);
    }
}

/* The first place at which the run is this close; NAN: never. */
static double place_reached(const comparison *c, const best_found *best, const compared_run *r, double accuracy,
                            compare_against against)
{
    for (size_t row = 0; row < r->rows; row++)
        if (distance_of(c, best, r->column[c->metric][row]) <= accuracy)
            return axis_place(r, row, against);
    return NAN;
}

static void print_reached(FILE *out, const comparison *c, const best_found *best, compare_against against)
{
    const int width = name_width(c);
    fprintf(out, "\n%s until %s is ", PLACES[against], compare_names[c->metric]);
    if (is_objective(c))
        fprintf(out, "above the best by at most this share:\n\n");
    else
        fprintf(out, "at most:\n\n");
    fprintf(out, "| %-*s ", width, "run");
    for (size_t k = 0; k < c->n_accuracies; k++)
        print_cell(out, "%g", c->accuracies[k]);
    fputs("|\n", out);
    print_rule(out, width, c->n_accuracies);
    for (size_t i = 0; i < c->n_runs; i++) {
        fprintf(out, "| %-*s ", width, c->runs[i].name);
        for (size_t k = 0; k < c->n_accuracies; k++)
            print_cell(out, "%.4g", place_reached(c, best, &c->runs[i], c->accuracies[k], against));
        fputs("|\n", out);
    }
}

void comparison_print(FILE *out, const comparison *c)
{
    const best_found best = find_best(c);
    fputs("# Runs compared\n\n"
          "At the end (objective: all nodes at the cloud's model):\n\n",
          out);
    print_ends(out, c);
    if (!best.run) {
        fprintf(out, "\nNo run has a %s.\n", compare_names[c->metric]);
        return;
    }
    if (is_objective(c))
        fprintf(out, "\nThe best %s, %.10g, was found by %s at iteration %.0f.\n", compare_names[c->metric], best.value,
                best.run, best.iteration);
    print_reached(out, c, &best, AGAINST_ITERATIONS);
    if (c->against == AGAINST_ROUNDS || c->against == AGAINST_SECONDS)
        print_reached(out, c, &best, c->against);
    print_reached(out, c, &best, AGAINST_BYTES);
}

static void put_compared_row(whole_file *f, const comparison *c, const best_found *best, const compared_run *r,
                             size_t row)
{
    char line[(COMPARE_COLUMNS + 2) * (NUMBER_SIZE + 1) + sizeof r->algorithm];
    whole_file_put_field(f, r->name, "");
    size_t n = (size_t)sprintf(line, ",%s", r->algorithm);
    for (int i = 0; i < COMPARE_COLUMNS; i++) {
        line[n++] = ',';
        n += number_write(line + n, r->column[i][row]);
        if (i == COMPARE_iteration) {
            line[n++] = ',';
            n += number_write(line + n, axis_place(r, row, AGAINST_ROUNDS));
        }
    }
    if (is_objective(c)) {
        line[n++] = ',';
        n += number_write(line + n, distance_of(c, best, r->column[c->metric][row]));
    }
    line[n++] = '\n';
    whole_file_put(f, line, n);
}

static hfsad_status write_csv(const comparison *c, file_batch *files, hfsad_error *err)
{
    const best_found best = find_best(c);
    whole_file *f = file_batch_add(files, "compare.csv", err);
    if (!f)
        return err->status;
    fputs("run,algorithm", f->stream);
    for (int i = 0; i < COMPARE_COLUMNS; i++)
        fprintf(f->stream, ",%s%s", compare_names[i], i == COMPARE_iteration ? ",rounds" : "");
    fputs(is_objective(c) ? ",above_best\n" : "\n", f->stream);
    for (size_t i = 0; i < c->n_runs; i++)
        for (size_t row = 0; row < c->runs[i].rows; row++)
            put_compared_row(f, c, &best, &c->runs[i], row);
    return whole_file_close(f, err);
}

static hfsad_status write_table(const comparison *c, file_batch *files, hfsad_error *err)
{
    whole_file *f = file_batch_add(files, "compare.md", err);
    if (!f)
        return err->status;
    comparison_print(f->stream, c);
    return whole_file_close(f, err);
}

static hfsad_status draw_comparison(const comparison *c, file_batch *files, double *room, hfsad_error *err)
{
    plot_curve curves[PLOT_SERIES_MOST];
    char label[80];
    const best_found best = find_best(c);
    for (size_t i = 0; i < c->n_runs; i++) {
        const compared_run *r = &c->runs[i];
        double *x = room, *y = room + r->rows;
        for (size_t row = 0; row < r->rows; row++) {
            x[row] = axis_place(r, row, c->against);
            y[row] = distance_of(c, &best, r->column[c->metric][row]);
        }
        curves[i] = (plot_curve){r->name, r->rows, x, y};
        room += 2 * r->rows;
    }
    snprintf(label, sizeof label, "%s%s", compare_names[c->metric], is_objective(c) ? ", above the best" : "");
    for (char *p = label; *p; p++) /* a lowered letter in gnuplot's text */
        *p = *p == '_' ? ' ' : *p;
    const curve_plot p = {PLACES[c->against], label, c->n_runs, curves};
    const whole_file *png = file_batch_add(files, "compare.png", err);
    const whole_file *svg = png ? file_batch_add(files, "compare.svg", err) : NULL;
    return svg ? curve_plot_draw(&p, png, svg, err) : err->status;
}

hfsad_status comparison_write(const comparison *c, file_batch *files, bool plotted, hfsad_error *err)
{
    hfsad_status status = write_csv(c, files, err);
    if (!status)
        status = write_table(c, files, err);
    if (status || !plotted)
        return status;
    size_t rows = 1;
    for (size_t i = 0; i < c->n_runs; i++)
        rows += c->runs[i].rows;
    double *room = calloc(2 * rows, sizeof *room);
    status = room ? draw_comparison(c, files, room, err) : error_memory(err, 2 * rows * sizeof *room, "the curves");
    free(room);
    return status;
}
