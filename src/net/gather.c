#define _POSIX_C_SOURCE 200809L
#include "net/gather.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/nodes.h"
#include "net/federation.h"
#include "out/report.h"
#include "plan/read_table.h"
#include "run/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const hfsad_spec *spec;
    federation *f;
    hfsad_run *run; /* NULL: not made yet */
    report *report;
    const char *out;
    uint64_t round; /* of the cloud's last row */
    hfsad_figures row;
    double *w; /* M */
    bool whole;
    char why[400]; /* it is not */
} gathering;

static void miss(gathering *g, const char *folder, const char *what)
{
    g->whole = false;
    snprintf(g->why, sizeof g->why, "%s%.250s%s", *folder ? "the state folder " : "", folder, what);
}

static hfsad_status open_federation(gathering *g, const dataset *shape, hfsad_error *err)
{
    dataset *copy = NULL, *rows = NULL;
    char *path = spec_find_file(g->spec, g->spec->top.data), *text = nodes_text(shape);
    const table_settings table = table_of_spec(g->spec);
    hfsad_status status =
        path && text ? nodes_parse(&copy, text, "the list of nodes", err) : error_memory(err, 0, "the list of nodes");
    if (!status)
        status = federation_create(&g->f, g->spec, copy, err);
    if (!status)
        status = dataset_read_client(&rows, path, &table, NULL, NULL, NULL, err);
    if (!status)
        status = federation_take_rows(g->f, rows, path, err);
    free(path);
    free(text);
    return status;
}

/* Whether the run's tree is the federation's, node for node. */
static bool same_nodes(const dataset *a, const dataset *b)
{
    char *ours = nodes_text(a), *theirs = nodes_text(b);
    const bool same = ours && theirs && strcmp(ours, theirs) == 0;
    free(ours);
    free(theirs);
    return same;
}

static hfsad_status make_run(gathering *g, hfsad_error *err)
{
    const federation_result *found = federation_outcome(g->f);
    char *kind = federation_start_kind(g->f);
    const run_known known = {.scales = found->scales, .nu_f = found->nu_f, .start_kind = kind};
    hfsad_status status =
        kind ? run_create_known(&g->run, g->spec, &known, err) : error_memory(err, 0, "the start's name");
    free(kind);
    if (!status)
        status = report_create(&g->report, g->run, g->spec, g->out, err);
    if (!status && !(g->w = alloc_zero(g->run->data->M, sizeof *g->w)))
        status = error_memory(err, g->run->data->M * sizeof *g->w, "a model");
    if (!status && !same_nodes(g->run->data, federation_shape(g->f)))
        miss(g, "", "federation.nodes and the data differ in nodes or their order");
    return status;
}

static void take_row(void *context, const hfsad_figures *row)
{
    gathering *g = context;
    g->row = *row;
    report_row(g->report, row);
}

static void put_share(gathering *g, size_t number, run_share share)
{
    if (federation_is_async(g->f) &&
        number < g->run->data->n_inner) /* it has made no iterations itself: as in a replay */
        share.last = (uint32_t)g->row.iteration;
    sim_put_share(g->run->sim, number, &share);
}

/* Whether all nodes can be in the state of the last row: in lock step always; otherwise only the last question of all
 * stops them. */
static bool is_still(const gathering *g)
{
    const uint64_t K = (uint64_t)spec_edge_rounds(g->spec);
    return g->round == K * (federation_is_async(g->f) ? (uint64_t)g->spec->run.iterations : g->row.iteration);
}

/* The cloud states the row that the models belong to. */
static hfsad_status take_root(gathering *g, const node *root, store *state, hfsad_error *err)
{
    run_share share;
    const int64_t round = root ? node_last_row(root) : -1;
    g->whole = round >= 0;
    if (!g->whole)
        return HFSAD_OK;
    g->round = (uint64_t)round;
    hfsad_status status = make_run(g, err);
    if (status || !g->whole)
        return status;
    status = store_get_rows(state, take_row, g, err);
    g->whole = !status && is_still(g) && node_get_share(root, g->round, g->w, &share);
    if (!g->whole)
        return status;
    g->run->seconds = g->row.seconds;
    put_share(g, 0, share);
    sim_put_ledger(g->run->sim, &(sim_ledger){.iteration = g->row.iteration,
                                              .bytes_up = g->row.bytes_up,
                                              .bytes_down = g->row.bytes_down,
                                              .stop = node_stop(root),
                                              .guard = node_guard(root)});
    return HFSAD_OK;
}

static void take_node(gathering *g, size_t number, const node *n)
{
    run_share share;
    uint64_t last;
    g->whole =
        n && node_get_share(n, g->round, g->w, &share) && node_repairs(n, &last) == sim_repairs(g->run->sim, &last);
    if (g->whole)
        put_share(g, number, share);
}

static hfsad_status take_nodes(gathering *g, const host *h, const hfsad_tree_process *p, store *state, hfsad_error *err)
{
    if (p->first == 0)
        return take_root(g, host_node(h, 0), state, err);
    for (size_t i = 0; i < p->count && g->whole; i++)
        take_node(g, p->first + i, host_node(h, i));
    return HFSAD_OK;
}

static hfsad_status take_process(gathering *g, const hfsad_tree_process *p, hfsad_error *err)
{
    store *state = NULL;
    host *h = NULL;
    if (access(p->folder, F_OK) != 0) { /* it has never begun; store_open would make one */
        miss(g, p->folder, " is gone");
        return HFSAD_OK;
    }
    hfsad_status status = store_open(&state, p->folder, federation_run(g->f), err);
    const host_settings settings = {.run = g->spec->federation.name,
                                    .run_id = federation_run(g->f),
                                    .state = state,
                                    .maker = g->f,
                                    .make = federation_make};
    if (!status)
        status = host_create(&h, &settings, err);
    for (size_t i = 0; i < p->count && !status; i++)
        status = federation_join(g->f, h, p->first + i, &(federation_files){0}, err);
    if (!status)
        status = host_recall(h, err);
    if (!status)
        status = take_nodes(g, h, p, state, err);
    if (!status && !g->whole && !g->why[0])
        miss(g, p->folder, " is not at the last row: it is an old copy, or its node was absent");
    host_free(h);
    store_discard(state);
    return status;
}

hfsad_status gather_states(const hfsad_spec *spec, const dataset *shape, const hfsad_tree_process *processes,
                           size_t count, const char *out, bool *whole, hfsad_error *err)
{
    gathering g = {.spec = spec, .out = out, .whole = true};
    *whole = true;
    if (!algorithm_of(spec)->links || spec_is_secure(spec) ||
        spec_has_noise(spec)) /* the latter two: clients keep their states */
        return HFSAD_OK;
    hfsad_status status = open_federation(&g, shape, err);
    for (size_t i = 0; i < count && !status && g.whole; i++)
        status = take_process(&g, &processes[i], err);
    if (!status && g.whole)
        status = report_write_state(g.report, err);
    *whole = g.whole;
    if (!status && !g.whole)
        (void)error_set(err, HFSAD_OK, "%s", g.why);
    report_free(g.report);
    hfsad_run_free(g.run);
    federation_free(g.f);
    free(g.w);
    return status;
}
