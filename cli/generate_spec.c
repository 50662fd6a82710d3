/* Writes spec.yaml of `hfsad generate`: settings that suit the data, from the distribution of the data; see
 * generate.h. */
#include "generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fewest digits that give the number back, so that 0.1 stays 0.1. */
static const char *shortest(char text[32], double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

static void put_option(whole_file *f, const char *name, double value)
{
    char text[32];
    generate_put(f, " --%s %s", name, shortest(text, value));
}

static void put_population_options(whole_file *f, const generate_arguments *a)
{
    generate_put(f, "\n#   --test-rows %" PRId64 " --nonzero %" PRId64, a->test_rows, a->nonzero);
    put_option(f, "rho", a->rho);
    put_option(f, "shift", a->shift);
    put_option(f, "intercepts", a->intercepts);
    generate_put(f, "\n#   --noise %s", generate_noise_names[a->noise]);
    put_option(f, "noise-scale", a->noise_scale);
    if (a->noise == NOISE_STUDENT)
        put_option(f, "df", a->df);
    if (a->noise == NOISE_MIXTURE) {
        put_option(f, "outliers", a->outliers);
        put_option(f, "outlier-factor", a->outlier_factor);
    }
    if (generate_has_level(a->loss))
        put_option(f, "tau", a->tau);
    if (a->heteroscedastic)
        generate_put(f, " --heteroscedastic");
    if (a->kind != KIND_CLUSTERED)
        return;
    generate_put(f, "\n#   --task %s --loss %s --groups %" PRId64, generate_task_names[a->task],
                 generate_loss_names[a->loss], a->groups);
    put_option(f, "minority", a->minority);
    generate_put(f, " --minority-by %s", generate_spread_names[a->minority_by]);
    put_option(f, "distance", a->distance);
}

/* The command that produces the same bytes again. */
static void put_origin(whole_file *f, const generate_arguments *a)
{
    generate_put(f,
                 "# Made by: hfsad generate %s --edges %" PRId64 " --clients %" PRId64 " --features %" PRId64
                 " --rows %" PRId64 " --seed %" PRId64,
                 generate_kind_names[a->kind], a->edges, a->clients, a->features, a->rows, a->seed);
    if (a->digits < 17 || a->tree || strcmp(a->names, "edge,client") != 0)
        generate_put(f, "\n#   --names %s --digits %" PRId64 "%s", a->names, a->digits, a->tree ? " --tree" : "");
    if (a->kind == KIND_PHASE_RETRIEVAL) {
        generate_put(f, "\n#  ");
        put_option(f, "snr-db", a->snr_db);
        put_option(f, "keep-x", a->keep_x);
        put_option(f, "keep-w", a->keep_w);
    } else {
        put_population_options(f, a);
    }
    generate_put(f,
                 "\n# `hfsad settings` lists every key.\n"
                 "data: data%s\n"
                 "truth: truth.csv          # adds relative_error to the trace\n",
                 a->tree ? "                # a folder: data/EDGE/CLIENT.csv" : ".csv");
    if (a->intercepts > 0)
        generate_put(f, "features: {intercept: edge}\n");
}

/* The standard deviation of a row's slope along a feature at the true model; its mean is 0. */
static double pull_of_row(const generate_arguments *a)
{
    const double feature = sqrt(1 + a->shift * a->shift);
    switch (a->loss) {
    case LOSS_QUANTILE:
    case LOSS_SMOOTHED_QUANTILE:
        return sqrt(a->tau * (1 - a->tau)) * feature;
    case LOSS_SQUARED:
    case LOSS_EXPECTILE: {
        /* Not the variance of the noise, which need not exist; 0.67449 is the upper quartile of N(0, 1). */
        const noise_law noise = generate_law(a).noise;
        return fmax(noise_quantile(&noise, 0.75) / 0.67449, 0.01) * feature;
    }
    case LOSS_LOGISTIC: /* sqrt(p (1 - p)), less than 1/2 because most rows are on the correct side */
        return 0.35 * feature;
    case LOSS_HINGE: /* most rows have slope 0 */
        return 0.5 * feature;
    default:
        return feature;
    }
}

static void put_run(whole_file *f, const generate_arguments *a)
{
    generate_put(f,
                 "run:\n"
                 "  iterations: 300\n"
                 "  edge_rounds: 10         # K_m\n"
                 "  seed: %" PRId64 "\n",
                 a->seed);
}

static void put_loss(whole_file *f, const generate_arguments *a)
{
    char text[32];
    if (generate_has_level(a->loss))
        generate_put(f, "loss: {kind: %s, tau: %s}\n", generate_loss_names[a->loss], shortest(text, a->tau));
    else
        generate_put(f, "loss: {kind: %s}\n", generate_loss_names[a->loss]);
}

static void put_quantile(whole_file *f, const generate_arguments *a)
{
    const double rows = (double)a->edges * (double)a->clients * (double)a->rows;
    put_loss(f, a);
    generate_put(
        f,
        "prior:\n"
        "  cloud:                  # lambda: about the largest gradient of any feature that noise alone causes\n"
        "    {penalty: l1, weight: 1, lambda: %.6g}\n",
        pull_of_row(a) * sqrt(2 * rows * log(2 * (double)a->features)));
    put_run(f, a);
}

static void put_clustered(whole_file *f, const generate_arguments *a)
{
    put_loss(f, a);
    generate_put(f,
                 "link:\n"
                 "  %-24s# a child that is far away keeps its own model; the distance follows from the data\n"
                 "    {penalty: mcp}\n",
                 a->minority_by == MINORITY_BY_EDGE ? "edge:" : "client:");
    put_run(f, a);
}

void generate_spec(whole_file *f, const generate_arguments *a)
{
    put_origin(f, a);
    if (a->kind == KIND_QUANTILE) {
        put_quantile(f, a);
    } else if (a->kind == KIND_CLUSTERED) {
        put_clustered(f, a);
    } else {
        generate_put(f,
                     "loss: {kind: phase-retrieval, box: 5}\n"
                     "preset: paper             # the paper's constants; tuned: the default\n"
                     "run:\n"
                     "  iterations: 300\n"
                     "  edge_rounds: 10         # K_m\n"
                     "  seed: %" PRId64 "\n",
                     a->seed);
    }
}
