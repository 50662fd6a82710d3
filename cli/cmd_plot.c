/* hfsad plot: the models of a run in one picture. */
#include "base/alloc.h"
#include "base/batch.h"
#include "base/error.h"
#include "cli.h"
#include "lab/plot.h"
#include "out/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS_MOST = 2, TRUTHS_MOST = 4, COLOURED_MOST = 4, FEATURES_MOST = 1000, LABEL_SIZE = 100 };
static const char *const NAMES[] = {"models.png", "models.svg"};

typedef struct {
    const char *folders[1 + OTHERS_MOST]; /* the run and the others */
    const char *groups, *out;
    cli_texts truths;
    bool raw;
} plot_arguments;

/* Everything between set-up and clean-up; zero: not made yet. */
typedef struct {
    const plot_arguments *args;
    model *models[1 + OTHERS_MOST];
    client_groups groups;      /* of the file */
    const client_groups *sets; /* these, or the run's own; NULL: none */
    double *truths[TRUTHS_MOST];
    const double **w; /* what the bundles point into */
    size_t n_w, n_bundles;
    plot_bundle bundles[PLOT_BUNDLES_MOST];
    char labels[PLOT_BUNDLES_MOST][LABEL_SIZE];
    char *names; /* of several scores */
} picture;

static int parse_arguments(plot_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"groups", CLI_TEXT, &a->groups, 0, 0, NULL, "FILE",
         "CSV client,group: colours by these groups; by default\n"
         "by the groups that the run found"},
        {"truth", CLI_TEXTS, &a->truths, 0, 0, NULL, "FILE",
         "true model, one number per line and feature, drawn as\n"
         "marks; up to four times"},
        {"raw", CLI_FLAG, &a->raw, 0, 0, NULL, NULL,
         "units of the data also if the run has standardized\nthe features"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "output folder for models.png and models.svg (plot-out)"},
    };
    const cli_syntax syntax = {
        .usage = "plot RUN [OTHER] [OTHER] [--groups FILE] [--truth FILE]... [--raw]\n"
                 "          [--out DIR]",
        .about = "Draws the model of every client of RUN, the output folder of `hfsad run`: a thin line\n"
                 "through its coefficients, coloured by the group of the client. The cloud's models of\n"
                 "OTHER runs are dashed lines. If RUN has standardized the features, the coefficients\n"
                 "are those of the standardized ones, on which a penalty acts.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1 + OTHERS_MOST,
        .words = "the output folder of a run",
        .after = "Groups beyond the fourth share a colour. Intercepts are not drawn. Limits: 1000\n"
                 "features, and 1000 clients per group.\n\n"
                 "Exit status: 0 done, 1 the files could not be written, 2 a folder, a file or an\n"
                 "argument is wrong or gnuplot is missing. If the status is not 0, DIR is unchanged.",
    };
    return cli_parse(&syntax, argc, argv, a->folders);
}

/* ---- reading ---- */

static hfsad_status read_one(model **m, const char *folder, hfsad_error *err)
{
    const hfsad_status status = model_read(m, folder, err);
    if (status || (*m)->F <= FEATURES_MOST)
        return status;
    return error_set(err, HFSAD_ERROR_INPUT, "%.300s has %zu features; a plot shows at most %d", folder, (*m)->F,
                     FEATURES_MOST);
}

static hfsad_status read_models(picture *p, hfsad_error *err)
{
    const char *const *folders = p->args->folders;
    hfsad_status status = read_one(&p->models[0], folders[0], err);
    if (status)
        return status;
    const model *first = p->models[0];
    if (first->n_nodes == first->n_inner)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s has no models of clients; repeat the run with output.clients true", folders[0]);
    for (int i = 1; i <= OTHERS_MOST && folders[i]; i++) {
        status = read_one(&p->models[i], folders[i], err);
        if (status)
            return status;
        if (p->models[i]->F != first->F)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.300s has %zu features and %.300s has %zu; a plot needs equal numbers", folders[i],
                             p->models[i]->F, folders[0], first->F);
    }
    return HFSAD_OK;
}

static hfsad_status read_truths(picture *p, hfsad_error *err)
{
    const size_t F = p->models[0]->F;
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < p->args->truths.count && !status; i++) {
        p->truths[i] = alloc_zero(F, sizeof(double));
        status = p->truths[i] ? vector_read(p->truths[i], F, p->args->truths.room[i], "truth", err)
                              : error_memory(err, F * sizeof(double), "a true model");
    }
    return status;
}

static hfsad_status read_groups(picture *p, hfsad_error *err)
{
    const model *m = p->models[0];
    if (!p->args->groups) {
        p->sets = m->groups.count ? &m->groups : NULL;
        return HFSAD_OK;
    }
    p->sets = &p->groups;
    const hfsad_status status = client_groups_read(&p->groups, p->args->groups, err);
    for (size_t node = m->n_inner; node < m->n_nodes && !status; node++)
        if (client_groups_find(p->sets, model_name(m, (uint32_t)node)) == GROUP_NONE)
            return error_set(err, HFSAD_ERROR_INPUT, "%.300s has no group for %.300s, which is in %.300s",
                             p->args->groups, model_name(m, (uint32_t)node), p->args->folders[0]);
    return status;
}

static bool is_standardized(const picture *p)
{
    return p->models[0]->scales && !p->args->raw;
}

static void multiply(const model *by, double *w)
{
    for (size_t i = 0; i < model_slopes(by); i++)
        w[i] *= by->scales[by->classes ? i / by->classes : i];
}

/* All models and truths by the scales of the first one's features. */
static void standardize(picture *p)
{
    const model *first = p->models[0];
    for (int i = 0; i <= OTHERS_MOST && is_standardized(p); i++)
        for (size_t node = 0; p->models[i] && node < p->models[i]->n_nodes; node++)
            multiply(first, p->models[i]->w + node * model_width(p->models[i]));
    for (size_t i = 0; i < p->args->truths.count && is_standardized(p); i++)
        multiply(first, p->truths[i]);
}

/* "age:0.1", "age:0.9", ... of several levels, "age:0", "age:1", ... of several classes. */
static hfsad_status first_names(picture *p, hfsad_error *err)
{
    const model *m = p->models[0];
    const char *name = m->feature_names;
    size_t size = 0;
    if (!m->classes || !name)
        return HFSAD_OK;
    FILE *o = open_memstream(&p->names, &size);
    for (size_t i = 0; o && i < m->features; i++, name += strlen(name) + 1)
        for (size_t k = 0; k < m->classes; k++)
            fprintf(o, "%s:%.15g%c", name, m->scores.K && !m->scores.labels ? m->scores.levels[k] : (double)k, 0);
    return o && !fclose(o) ? HFSAD_OK : error_memory(err, size, "the features' names");
}

/* ---- bundles ---- */

static void add_bundle(picture *p, bundle_style style, size_t look, size_t n)
{
    p->bundles[p->n_bundles] = (plot_bundle){p->labels[p->n_bundles], style, look, n, p->w + p->n_w - n};
    p->n_bundles++;
}

/* The clients of one group or, for the last colour, of all groups from there on. */
static void add_group(picture *p, uint32_t first, uint32_t end)
{
    const model *m = p->models[0];
    size_t n = 0;
    for (size_t node = m->n_inner; node < m->n_nodes; node++) {
        const uint32_t group = p->sets ? client_groups_find(p->sets, model_name(m, (uint32_t)node)) : 0;
        if (group < first || group >= end)
            continue;
        p->w[p->n_w++] = model_weights(m, (uint32_t)node);
        n++;
    }
    if (n == 0)
        return;
    char *label = p->labels[p->n_bundles];
    const char *clients = n == 1 ? "client" : "clients";
    if (!p->sets)
        snprintf(label, LABEL_SIZE, "%zu %s", n, clients);
    else if (end - first > 1)
        snprintf(label, LABEL_SIZE, "other groups: %zu %s", n, clients);
    else
        snprintf(label, LABEL_SIZE, "group %s: %zu %s", p->sets->labels[first], n, clients);
    add_bundle(p, BUNDLE_THIN, first, n);
}

/* The text after the last slash, ignoring slashes at the end. */
static void put_last_part(char *label, const char *before, const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    snprintf(label, LABEL_SIZE, "%s%.*s", before, (int)(end - begin), path + begin);
}

static void add_bundles(picture *p)
{
    const uint32_t groups = p->sets ? (uint32_t)p->sets->count : 1;
    for (uint32_t g = 0; g < groups && g < COLOURED_MOST; g++)
        add_group(p, g, g + 1);
    if (groups > COLOURED_MOST)
        add_group(p, COLOURED_MOST, groups);
    for (size_t i = 1; i <= OTHERS_MOST && p->models[i]; i++) {
        p->w[p->n_w++] = model_weights(p->models[i], 0);
        put_last_part(p->labels[p->n_bundles], "cloud of ", p->args->folders[i]);
        add_bundle(p, BUNDLE_DASHED, PLOT_SERIES_MOST - i, 1);
    }
    for (size_t i = 0; i < p->args->truths.count; i++) {
        p->w[p->n_w++] = p->truths[i];
        put_last_part(p->labels[p->n_bundles], "", p->args->truths.room[i]);
        add_bundle(p, BUNDLE_MARKS, i, 1);
    }
}

/* ---- the command ---- */

static hfsad_status draw_files(const picture *p, file_batch *batch, hfsad_error *err)
{
    const model *first = p->models[0];
    const model_plot drawing = {model_slopes(first), p->n_bundles, p->bundles,
                                first->classes ? p->names : first->feature_names, is_standardized(p)};
    const whole_file *files[2] = {0};
    hfsad_status status = file_batch_begin(batch, p->args->out, err);
    for (int i = 0; i < 2 && !status; i++) {
        files[i] = file_batch_add(batch, NAMES[i], err);
        status = files[i] ? HFSAD_OK : err->status;
    }
    if (!status)
        status = model_plot_draw(&drawing, files[0], files[1], err);
    return status || cli_interrupted() ? status : file_batch_commit(batch, err);
}

static int draw_picture(const picture *p)
{
    hfsad_error err = {0};
    file_batch batch = {0};
    cli_catch_interrupts(); /* before this the default action does no harm; from here on it would leave temporaries */
    const hfsad_status status = draw_files(p, &batch, &err);
    file_batch_drop(&batch);
    if (status)
        return cli_fail(&err);
    if (cli_interrupted()) {
        fputs("hfsad: interrupted; nothing was written\n", stderr);
        return 128 + cli_interrupted();
    }
    printf("wrote %s: %s, %s\n", p->args->out, NAMES[0], NAMES[1]);
    return cli_finish_stdout(CLI_DONE);
}

static hfsad_status set_up(picture *p, hfsad_error *err)
{
    hfsad_status status = folder_check(p->args->out, err);
    if (!status)
        status = read_models(p, err);
    if (!status)
        status = read_truths(p, err);
    if (!status)
        status = read_groups(p, err);
    if (!status)
        status = plot_check("plot model.csv with another program", err);
    if (status)
        return status;
    const size_t most = p->models[0]->n_nodes + OTHERS_MOST + TRUTHS_MOST;
    p->w = alloc_zero(most, sizeof *p->w);
    if (!p->w)
        return error_memory(err, most * sizeof *p->w, "the plot");
    standardize(p);
    add_bundles(p);
    return first_names(p, err);
}

static void tear_down(picture *p)
{
    for (int i = 0; i <= OTHERS_MOST; i++)
        model_free(p->models[i]);
    for (int i = 0; i < TRUTHS_MOST; i++)
        free(p->truths[i]);
    client_groups_free(&p->groups);
    free(p->w);
    free(p->names);
}

int cmd_plot(int argc, char **argv)
{
    plot_arguments a = {.out = "plot-out", .truths.room = calloc((size_t)argc + 1, sizeof(char *))};
    hfsad_error err = {0};
    if (!a.truths.room) {
        error_memory(&err, (size_t)argc * sizeof(char *), "the arguments");
        return cli_fail(&err);
    }
    int status = parse_arguments(&a, argc, argv);
    if (status == CLI_GO && a.truths.count > TRUTHS_MOST)
        status = cli_wrong(argv[0], "more than %d true models", TRUTHS_MOST);
    if (status == CLI_GO) {
        picture p = {.args = &a};
        status = set_up(&p, &err) ? cli_fail(&err) : draw_picture(&p);
        tear_down(&p);
    }
    free(a.truths.room);
    return status;
}
