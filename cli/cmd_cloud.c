/* hfsad cloud: the root of a federation, and the output folder. */
#include "base/clock.h"
#include "member.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "data/features.h"
#include "out/report.h"
#include "polish/task.h"
#include "progress.h"
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *out;
    bool quiet;
    hfsad_spec *spec;
    hfsad_run run; /* as the report sees it; data and plan are the federation's */
    const node *root;
    survey_cost setup; /* what was sent before the first stage */
    size_t *place;     /* of every node: where its model is among the root's, as a number of models */
    report *report;
    hfsad_figures figures;
    progress progress;
    double begun, before; /* on clock_seconds; seconds of earlier lives */
    double row_at;        /* on clock_seconds: when the last row came, or this life began */
    double *scratch;      /* M */
    bool has_row, sign_free, write_failed;
    double write_next;
    int lock;
    size_t made;
} session;

/* ---- the run as the report sees it ---- */

static bool knows(const hfsad_run *r, size_t number)
{
    const session *s = r->driver;
    return number == 0 || node_models_below(s->root) != NULL;
}

static const double *inner_model(const hfsad_run *r, size_t i)
{
    const session *s = r->driver;
    if (i > 0)
        return node_models_below(s->root) + (s->place[i] - 1) * r->data->M;
    node_model(s->root, s->scratch);
    return s->scratch;
}

static void leaf_model(const hfsad_run *r, size_t leaf, double *w)
{
    const session *s = r->driver;
    const double *below = node_models_below(s->root);
    memcpy(w, below + (s->place[r->data->n_inner + leaf] - 1) * r->data->M, r->data->M * sizeof *w);
}

static uint64_t repairs(const hfsad_run *r, uint64_t *last)
{
    return node_repairs(((const session *)r->driver)->root, last);
}

static void measure(hfsad_run *r, hfsad_figures *figures)
{
    *figures = ((const session *)r->driver)->figures;
}

static const char *polish(hfsad_run *r, double *w, polish_result *found)
{
    const double *numbers = node_get_polish(((const session *)r->driver)->root);
    const char *why = federation_polish_failure(numbers);
    if (why)
        return why;
    *found = federation_polish_result(numbers);
    memcpy(w, numbers + FEDERATION_POLISH_HEAD, r->data->M * sizeof *w);
    return NULL;
}

static const engine federation_engine = {
    .links = true,
    .remedy = "a larger schedule.client.c and schedule.edge.c, or another run.start",
    .measure = measure,
    .inner_model = inner_model,
    .leaf_model = leaf_model,
    .knows = knows,
    .repairs = repairs,
    .polish = polish,
};

/* ---- what the member calls ---- */

static int check(void *context, const member *m)
{
    session *s = context;
    hfsad_error err = {0};
    const char *labels[] = {"the spec", "truth"};
    char *truth = m->spec->top.truth ? spec_find_file(m->spec, m->spec->top.truth) : NULL;
    const char *inputs[] = {m->args.spec_path, truth};
    s->spec = m->spec;
    const bool wrong = folder_check(s->out, &err) || report_check_inputs(s->out, labels, inputs, 2, &err) ||
                       folder_make_new(s->out, &s->made, &err) || folder_lock(s->out, &s->lock, &err);
    free(truth);
    if (wrong)
        return cli_fail(&err);
    report_sweep(s->out);
    return CLI_GO;
}

static hfsad_status place_models(session *s, const dataset *d, hfsad_error *err)
{
    const size_t nodes = d->n_inner + d->n_leaves;
    size_t *order = alloc_zero(nodes, sizeof *order);
    s->place = alloc_zero(nodes, sizeof *s->place);
    s->scratch = alloc_zero(d->M, sizeof *s->scratch);
    if (order && s->place) {
        tree_order(d, order);
        for (size_t i = 0; i < nodes; i++)
            s->place[order[i]] = i;
    }
    free(order);
    return order && s->place && s->scratch ? HFSAD_OK : error_memory(err, nodes * sizeof *order, "the models");
}

static hfsad_status begin(void *context, const member *m, const node *root, hfsad_error *err)
{
    session *s = context;
    const federation_result *result = federation_outcome(m->f);
    hfsad_run *r = &s->run;
    s->root = root;
    s->setup = result->cost;
    *r = (hfsad_run){
        .data = (dataset *)federation_shape(m->f),
        .plan = federation_plan(m->f),
        .scales = result->scales,
        .nu_f = result->nu_f,
        .engine = &federation_engine,
        .driver = s,
        .start = (double *)result->start,
        .start_kind = federation_start_kind(m->f),
    };
    s->sign_free = signs_are_free(r->plan, r->data->n_leaves);
    hfsad_status status = place_models(s, r->data, err);
    if (!status && !r->start_kind)
        status = error_memory(err, 0, "a name");
    if (!status)
        status = run_read_truth(r, s->spec, err);
    if (!status)
        status = pool_create(&r->threads, 1, err);
    if (!status)
        status = report_create(&s->report, r, s->spec, s->out, err);
    s->begun = clock_seconds();
    s->write_next = s->begun + (report_exists(s->out) ? s->spec->output.every_seconds : 0);
    progress_start(&s->progress, "round", node_get_status(root).round, 0, s->quiet);
    return status;
}

static void finish_row(void *context, const node *root, hfsad_figures *row)
{
    session *s = context;
    row->seconds = s->before + clock_seconds() - s->begun;
    if (s->run.truth)
        row->relative_error = model_error(s->run.data, node_row_w(root), s->run.truth, s->sign_free, s->scratch);
}

static void take_row(void *context, const hfsad_figures *row)
{
    session *s = context;
    if (!s->has_row || row->iteration > s->figures.iteration)
        report_row(s->report, row);
    s->figures = *row;
    s->has_row = true;
    s->row_at = clock_seconds();
    /* those of an earlier life come before the first of this one */
    if (row->seconds > s->before + clock_seconds() - s->begun)
        s->before = row->seconds;
}

/* What came of the polish, once it has come to it. */
static void take_polish(session *s)
{
    hfsad_run *r = &s->run;
    hfsad_polish result;
    hfsad_error err;
    const double *numbers = node_get_polish(s->root);
    const bool refused = polish_why_not(r->plan, r->data->n_inner) != NULL;
    if (!polish_is_due(s->spec, r->plan, r->data->n_inner, r->data->M) || (!numbers && !refused))
        return;
    if (hfsad_run_polish(r, NULL, NULL, &result, &err)) /* the run's own models are written all the same */
        snprintf(r->polish.reason, sizeof r->polish.reason, "not enough memory for the model");
    if (numbers && !federation_polish_failure(numbers))
        r->polish.seconds = clock_seconds() - s->row_at;
}

static hfsad_status write_folder(session *s, stop_reason stopped, hfsad_error *err)
{
    const start_search *search = node_get_search(s->root);
    s->run.before = s->setup;
    s->run.before.bytes_up += search->bytes_up;
    s->run.before.bytes_down += search->bytes_down;
    s->run.start_index = (uint32_t)search->kept;
    return run_write(s->report, &s->figures, stopped, s->spec->output.every_seconds, &s->write_next, err);
}

/* Before the first row there may be training for the start; the rate is then that of this life's own iterations. */
static void draw(session *s)
{
    if (!s->has_row) {
        progress_draw(&s->progress, s->root ? node_get_status(s->root).round : 0, "before the run");
        return;
    }
    if (s->progress.total == 0) {
        progress_end(&s->progress);
        progress_start(&s->progress, "iteration", s->figures.iteration, (uint64_t)s->spec->run.iterations, s->quiet);
    }
    if (progress_due(&s->progress)) {
        char detail[100];
        const int n = snprintf(detail, sizeof detail, "objective %.4g", s->figures.objective);
        if (s->run.truth)
            snprintf(detail + n, sizeof detail - (size_t)n, "  error %.1e", s->figures.relative_error);
        progress_draw(&s->progress, s->figures.iteration, detail);
    }
}

static void turn(void *context)
{
    session *s = context;
    hfsad_error err;
    draw(s);
    if (!s->has_row || clock_seconds() < s->write_next)
        return;
    const bool failed = write_folder(s, STOP_RUNNING, &err) != HFSAD_OK;
    if (failed && !s->write_failed)
        fprintf(stderr, "hfsad: %s; the run continues and tries again later\n", err.message);
    s->write_failed = failed;
}

static int end(void *context, const member *m, const node *root)
{
    session *s = context;
    hfsad_error err = {0};
    const node_end ended = node_ended(root);
    const stop_reason stopped = ended == NODE_RUNNING     ? STOP_INTERRUPTED
                                : ended == NODE_CONVERGED ? STOP_TOLERANCE
                                : ended == NODE_DIVERGED  ? STOP_DIVERGED
                                                          : STOP_ITERATIONS;
    progress_end(&s->progress);
    if (!s->has_row && stopped == STOP_DIVERGED) {
        fprintf(stderr, "hfsad: the consensus start is no longer finite: try %s\n", federation_engine.remedy);
        return CLI_FAILED;
    }
    if (!s->has_row)
        return cli_interrupted() ? 128 + cli_interrupted() : CLI_DONE;
    if (stopped != STOP_INTERRUPTED && stopped != STOP_DIVERGED)
        take_polish(s);
    if (write_folder(s, stopped, &err))
        return cli_fail(&err);
    if (!s->quiet && stopped != STOP_INTERRUPTED)
        run_print_table(&s->run, m->spec, s->report, &s->figures, stopped, s->out);
    const int printed = cli_finish_stdout(CLI_DONE);
    if (stopped == STOP_DIVERGED) {
        fprintf(stderr, "hfsad: the iterates are no longer finite after iteration %" PRIu64 ": try %s; wrote %s\n",
                s->figures.iteration, federation_engine.remedy, s->out);
        return CLI_FAILED;
    }
    if (stopped == STOP_INTERRUPTED) {
        fprintf(stderr, "hfsad: interrupted after iteration %" PRIu64 ": wrote %s%s\n", s->figures.iteration, s->out,
                knows(&s->run, 1) ? "" : ", without the models below the cloud");
        return 128 + cli_interrupted();
    }
    return printed;
}

static void tear_down(session *s)
{
    report_free(s->report);
    pool_free(s->run.threads);
    free(s->run.truth);
    free(s->run.start_kind);
    free(s->run.polished);
    free(s->place);
    free(s->scratch);
    folder_unlock(s->lock);
    if (!s->has_row)
        folder_unmake(s->out, s->made);
}

int cmd_cloud(int argc, char **argv)
{
    member_arguments a = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)), .level = LOG_INFO, .linger = 6};
    int status = CLI_FAILED;
    char *folder = NULL;
    if (a.sets.room)
        status = member_parse(&a, ROLE_CLOUD, argc, argv);
    if (status == CLI_GO && !a.out)
        a.out = folder = run_folder(a.spec_path, "out");
    if (status == CLI_GO && a.out) {
        session s = {.out = a.out, .quiet = a.quiet, .lock = -1};
        const member_cloud cloud = {&s, check, begin, finish_row, take_row, turn, end};
        status = member_run(&a, ROLE_CLOUD, &cloud);
        tear_down(&s);
    } else if (status == CLI_GO || !a.sets.room) {
        fputs("hfsad: not enough memory\n", stderr);
        status = CLI_FAILED;
    }
    free(folder);
    free(a.sets.room);
    return status;
}
