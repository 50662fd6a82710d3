/* See end_table.h. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "out/end_table.h"

#include "base/alloc.h"
#include "data/features.h"
#include "data/nodes.h"
#include "math/normal.h"
#include "out/groups.h"
#include "out/settings_rows.h"
#include "plan/accountant.h"
#include "plan/choices.h"
#include "plan/labels.h"
#include "plan/noise.h"
#include "polish/task.h"
#include "run/anew.h"
#include "run/personal_run.h"
#include "spec/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints label and value. The value is broken at spaces to stay within 80 columns. */
static void put_row(FILE *o, const char *label, const char *value)
{
    enum { COLUMN = 21, WIDTH = 80 };
    fprintf(o, "%-*s", COLUMN, label);
    int at = COLUMN;
    while (*value) {
        const int length = (int)strcspn(value, " ");
        if (at > COLUMN && at + 1 + length > WIDTH) {
            fprintf(o, "\n%*s", COLUMN, "");
            at = COLUMN;
        } else if (at > COLUMN) {
            fputc(' ', o);
            at++;
        }
        fprintf(o, "%.*s", length, value);
        at += length;
        value += length + (value[length] == ' ');
    }
    fputc('\n', o);
}

static void put_number(FILE *o, const char *label, double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.8g", v);
    put_row(o, label, text);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void put_data(FILE *o, const dataset *d)
{
    char text[300], each[100] = "";
    const clients_per_edge clients = count_clients(d);
    if (d->n_inner > 1 && clients.least == clients.most)
        snprintf(each, sizeof each, " (%zu each)", clients.least);
    else if (d->n_inner > 1)
        snprintf(each, sizeof each, " (%zu to %zu each)", clients.least, clients.most);
    const size_t F = features_count(d);
    char rows[60] = "";
    if (d->n_rows > d->n_leaves)
        snprintf(rows, sizeof rows, ", %zu rows", d->n_rows);
    snprintf(text, sizeof text, "%zu edge%s, %zu client%s%s%s, %zu feature%s%s, %" PRIu32 " tier%s", d->n_inner - 1,
             plural(d->n_inner - 1), d->n_leaves, plural(d->n_leaves), each, rows, F, plural(F),
             d->rows.constant != 0 ? " and intercept" : "", d->depth, plural(d->depth));
    put_row(o, "data", text);
}

static void put_loss(FILE *o, const hfsad_spec *spec, bool star)
{
    static const char *const presets[] = {PRESET_NAMES}, *const algorithms[] = {ALGORITHM_NAMES};
    const hfsad_loss loss = loss_of(&spec->loss, NULL);
    char text[300];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", loss_names[loss.kind]);
    n += loss_parameters_text(&loss, ", ", text + n, sizeof text - n);
    if (spec->loss.levels)
        n = (size_t)snprintf(text, sizeof text, "%s, tau %.200s", loss_names[loss.kind], spec->loss.levels);
    else if (spec_scores(spec))
        n += (size_t)snprintf(text + n, sizeof text - n, ", %d classes", (int)spec->loss.classes);
    if (isfinite(spec->loss.box))
        snprintf(text + n, sizeof text - n, ", box %g", spec->loss.box);
    put_row(o, "loss", text);
    if (algorithm_is_baseline(spec->top.algorithm) || star)
        put_row(o, "algorithm", algorithms[star ? ALGORITHM_STAR : spec->top.algorithm]);
    n = (size_t)snprintf(text, sizeof text, "%s", presets[spec->top.preset]);
    if (spec->n_overrides)
        snprintf(text + n, sizeof text - n, ", %zu override%s", spec->n_overrides, plural(spec->n_overrides));
    put_row(o, "preset", text);
}

/* Prints a row from an allocated text, which is freed; no row if the text is empty. */
static void put_made(FILE *o, const char *label, char *text)
{
    if (text && *text)
        put_row(o, label, text);
    free(text);
}

static void put_settings(FILE *o, const hfsad_run *run, const hfsad_spec *spec)
{
    put_made(o, "prior", priors_text(run));
    put_made(o, "link", links_text(run));
    put_made(o, "features", features_text(run, spec));
    put_made(o, "constant columns", constants_text(run));
    put_made(o, "categories", categories_text(run, spec));
    put_made(o, "labels", labels_text(run->data));
    put_made(o, "other settings", changed_text(run, spec));
    put_made(o, "without effect", idle_text(run, spec));
}

/* Prints the nodes that did not answer at the end of an asynchronous run. */
static void put_absent(FILE *o, const hfsad_run *run)
{
    enum { SHOWN = 4 };
    char text[1200] = "", name[HFSAD_TIERS_MAX * 256];
    size_t count = 0, at = 0;
    for (size_t node = 1; node < run_may_be_absent(run); node++) {
        const char *why = run_why_absent(run, node);
        if (!why || count++ >= SHOWN)
            continue;
        nodes_name(run->data, node, name, sizeof name);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.200s (%s)", at ? ", " : "", name, why);
    }
    if (count > SHOWN)
        snprintf(text + at, sizeof text - at, " and %zu more", count - SHOWN);
    if (count)
        put_row(o, "absent", text);
}

static void put_end(FILE *o, const hfsad_run *run, const train_end *end)
{
    static const char *const reasons[] = {
        [STOP_RUNNING] = "?",
        [STOP_ITERATIONS] = "iteration limit",
        [STOP_TOLERANCE] = "tolerances met",
        [STOP_INTERRUPTED] = "interrupted",
        [STOP_DIVERGED] = "diverged: the iterates are no longer finite",
    };
    char text[200];
    const hfsad_figures *f = &end->figures;
    const unsigned threads = pool_threads(run->threads);
    put_row(o, "start", run->start_kind ? run->start_kind : "?");
    put_row(o, "stopped", run->timed_out ? "time limit: run.stop.time" : reasons[end->stopped]);
    snprintf(text, sizeof text, "%" PRIu64 " in %.3g s, %.4g per second, %u thread%s", f->iteration, f->seconds,
             f->seconds > 0 ? (double)f->iteration / f->seconds : 0.0, threads, plural(threads));
    put_row(o, "iterations", text);
    put_absent(o, run);
}

/* "25 clients share another model: edge1/client3, edge2/client7, ..."; the number of the group comes first if the run
 * looked for groups. */
static void put_group(FILE *o, const hfsad_run *run, const node_groups *g, uint32_t group)
{
    enum { SHOWN = 6 };
    char text[80 + SHOWN * 70], name[64], number[32] = "";
    const size_t clients = g->clients[group];
    const bool known = run->personal.found.p || !run->personal.found.K;
    if (run->personal.found.K)
        snprintf(number, sizeof number, "%" PRIu32 ": ", group + 1);
    size_t shown = 0, n = (size_t)snprintf(text, sizeof text, "%s%zu client%s%s%s", number, clients, plural(clients),
                                           number[0]      ? ""
                                           : clients == 1 ? " with a model of its own"
                                                          : " share another model",
                                           known ? ":" : "");
    const size_t inner = run->data->n_inner;
    for (size_t node = inner; known && node < hfsad_run_nodes(run) && shown <= SHOWN; node++) {
        if (g->group[node] != group)
            continue;
        hfsad_run_node_name(run, node, name, sizeof name);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", shown ? ", " : " ", shown < SHOWN ? name : "...");
        shown++;
    }
    put_row(o, "", text);
}

/* A link that holds a client need not pull it to the cloud's model, so the clients that have the cloud's model are
 * counted. */
static void cloud_group_text(char *text, size_t size, const hfsad_run *run, const node_groups *g)
{
    const size_t held = g->clients[0], same = groups_count_same(g, run);
    size_t n = (size_t)snprintf(text, size, "%zu found: %zu client%s", g->count, held, plural(held));
    if (same == held)
        snprintf(text + n, size - n, " with the cloud's model");
    else
        snprintf(text + n, size - n, " that no link has let go, %zu of them with the cloud's model to 1%%", same);
}

static void put_groups(FILE *o, const hfsad_run *run)
{
    enum { LINES = 8 };
    node_groups g;
    char text[300];
    const run_personal *p = &run->personal;
    if (p->reason[0]) {
        snprintf(text, sizeof text, "not looked for: %s", p->reason);
        put_row(o, "groups", text);
    }
    if (groups_find(&g, run, NULL) || g.count == 0)
        return;
    if (p->found.K > 1)
        snprintf(text, sizeof text, "%zu found in %" PRIu64 " exchanges, %.3g s", g.count, p->found.exchanges,
                 p->seconds);
    else if (p->found.K)
        snprintf(text, sizeof text, "1: all clients share %s",
                 run_is_held(run) ? "one model with a small ridge, because the cloud's has no minimum"
                                  : "the cloud's model");
    else
        cloud_group_text(text, sizeof text, run, &g);
    put_row(o, "groups", text);
    for (uint32_t i = p->found.K > 1 ? 0 : 1; i < g.count && i <= LINES; i++)
        put_group(o, run, &g, i);
    if (g.count > LINES + 1)
        put_row(o, "", "and others; summary.json lists all");
    groups_free(&g);
}

static void put_exchanges(FILE *o, const hfsad_polish *p)
{
    char text[80];
    snprintf(text, sizeof text, "%" PRIu64 " in %.3g s", p->exchanges, p->seconds);
    put_row(o, "exchanges", text);
}

/* First the figures of the models in the folder, then one row with the figures of the iterations before the polish. */
static void put_polished(FILE *o, const hfsad_run *run, const hfsad_figures *f)
{
    const hfsad_polish *p = &run->polish;
    char text[300];
    put_number(o, "objective", p->objective_after);
    put_row(o, "consensus gap", "0");
    if (!isnan(p->relative_error))
        put_number(o, "relative error", p->relative_error);
    snprintf(text, sizeof text, "objective by %.1e lower, gap %.1e", p->objective_before - p->objective_after, p->gap);
    put_row(o, "polish", text);
    put_exchanges(o, p);
    snprintf(text, sizeof text, "objective %.8g, consensus gap %.3g, residuals %.3g and %.3g", f->consensus_objective,
             f->consensus_gap, f->primal_residual, f->dual_residual);
    put_row(o, "before the polish", text);
    if (run->truth)
        put_number(o, "error before", f->relative_error);
}

/* With noise, these rows replace figures that would be computed from the clients' rows. */
static void put_noise(FILE *o, const hfsad_run *run, const hfsad_spec *spec, const hfsad_figures *f)
{
    const noise_budget *b = &run->plan->noise;
    const double spent = noise_spent(b, f->iteration);
    char text[300];
    snprintf(text, sizeof text, "epsilon %.4g at delta %.3g (rho %.4g) spent, for each %s",
             zcdp_epsilon(spent, b->delta), b->delta, spent, b->row > 0 ? "row" : "client");
    put_row(o, "privacy", text);
    if (!run->engine->next_row || spec->privacy.noise == NOISE_SEED)
        put_row(o, "", "a simulation of the noise, by run.seed: it protects nothing");
    snprintf(text, sizeof text, "deviation %.3g on every number of %s%s, %llu rounds", noise_deviation(b),
             run->plan->secure ? "a cohort's sum" : "a client's model", b->row > 0 ? " in the first round" : "",
             (unsigned long long)b->rounds);
    put_row(o, "noise", text);
    if (run->truth)
        put_number(o, "relative error", f->relative_error);
}

static void put_figures(FILE *o, const hfsad_run *run, const hfsad_spec *spec, const hfsad_figures *f)
{
    const bool links = run->algorithm->links && !run->plan->star; /* these have the state of Algorithm 1 */
    const bool due = polish_is_due(spec, run->plan, run->data->n_inner, run->data->M);
    char text[300];
    put_number(o, "objective", f->objective);
    put_number(o, "consensus objective", f->consensus_objective);
    if (links) {
        put_number(o, "primal residual", f->primal_residual);
        put_number(o, "dual residual", f->dual_residual);
    }
    put_number(o, "consensus gap", f->consensus_gap);
    if (links)
        put_number(o, "smoothing gap", f->smoothing_gap);
    if (run->truth)
        put_number(o, "relative error", f->relative_error);
    if (run->polished && isfinite(run->best)) {
        snprintf(text, sizeof text, "of an earlier iteration, with the consensus objective %.6g", run->best);
        put_row(o, "model", text);
    }
    if (run->plan->star && run->polish.accepted) { /* rounds and questions of a star are the run itself */
        put_exchanges(o, &run->polish);
    } else if (due) {
        snprintf(text, sizeof text, "not done: %s",
                 run->polish.reason[0] ? run->polish.reason : "the run ended before");
        put_row(o, "polish", text);
    }
}

/* Prints the first coefficients; coefficients.csv has all of them. */
static void put_errors(FILE *o, const hfsad_run *run)
{
    enum { SHOWN = 20 };
    const size_t M = run->data->M, F = features_count(run->data);
    double *w = run->errors ? alloc_zero(M, sizeof *w) : NULL;
    const char *name = run->data->feature_names;
    const double factor = normal_quantile(0.5 + run->spec->output.confidence / 2);
    char text[200], label[24];
    if (!w)
        return;
    hfsad_run_node_model(run, 0, w);
    for (size_t m = 0; m < M && m < SHOWN; m++) {
        const double away = factor * run->errors[m];
        snprintf(label, sizeof label, "w%zu", m + 1);
        snprintf(text, sizeof text, "%.6g, standard error %.3g, %g%% from %.6g to %.6g", w[m], run->errors[m],
                 100 * run->spec->output.confidence, w[m] - away, w[m] + away);
        put_row(o, m == F ? "intercept" : name ? name : label, text);
        name = name && m < F ? name + strlen(name) + 1 : name;
    }
    free(w);
}

static void put_table(FILE *o, hfsad_run *run, const hfsad_spec *spec, const report *written, const train_end *end)
{
    const theorem_report *theorem = report_theorem(written);
    char text[300];
    put_data(o, run->data);
    put_loss(o, spec, run->plan->star);
    put_settings(o, run, spec);
    put_end(o, run, end);
    if (run->polish.accepted && !run->plan->star)
        put_polished(o, run, &end->figures);
    else if (plan_has_noise(run->plan))
        put_noise(o, run, spec, &end->figures);
    else
        put_figures(o, run, spec, &end->figures);
    snprintf(text, sizeof text, "%zu of %zu in the cloud's model", count_nonzero(run), features_weights(run->data));
    put_row(o, "non-zero", text);
    put_errors(o, run);
    put_groups(o, run);
    snprintf(text, sizeof text, "%s%s",
             theorem->holds ? "covers this run" : "does not cover this run: ", theorem->holds ? "" : theorem->reason);
    if (run->algorithm->links && !run->plan->star)
        put_row(o, "Theorem 1", text);
    hfsad_verdict verdict;
    run_verdict(run, spec, end->stopped == STOP_INTERRUPTED, &verdict);
    put_row(o, "verdict", verdict.text);
}

char *table_text(hfsad_run *run, const hfsad_spec *spec, const report *written, const train_end *end, const char *out)
{
    char *text = NULL;
    size_t size;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    put_table(o, run, spec, written, end);
    put_row(o, "written to", out);
    if (fclose(o) == 0)
        return text;
    free(text);
    return NULL;
}
