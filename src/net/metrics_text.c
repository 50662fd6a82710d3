/* The text of metrics.h, in the text format 0.0.4 of Prometheus. */
#define _POSIX_C_SOURCE 200809L
#include "net/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void put_metric_head(FILE *f, const char *name, const char *type, const char *help)
{
    fprintf(f, "# HELP hfsad_%s %s\n# TYPE hfsad_%s %s\n", name, help, name, type);
}

static void put_value(FILE *f, double value)
{
    if (isfinite(value))
        fprintf(f, " %.17g\n", value);
    else
        fprintf(f, " %s\n", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
}

static void put_one(FILE *f, const char *name, const char *type, const char *help, double value)
{
    put_metric_head(f, name, type, help);
    fprintf(f, "hfsad_%s", name);
    put_value(f, value);
}

/* In a label, between quotation marks. */
static void put_escaped(FILE *f, const char *path)
{
    for (; *path; path++) {
        if (*path == '"' || *path == '\\')
            fputc('\\', f);
        fputc(*path, f);
    }
}

/* name{node="path" */
static void put_node_label(FILE *f, const char *name, const char *path)
{
    fprintf(f, "hfsad_%s{node=\"", name);
    put_escaped(f, path);
    fputc('"', f);
}

static node_status status_of(const host *h, size_t i)
{
    const node *n = host_node(h, i);
    return n ? node_get_status(n) : (node_status){0};
}

/* ---- of nodes ---- */

static double get_phase(const host *h, size_t i)
{
    const node *n = host_node(h, i);
    return !n ? 0 : node_ended(n) == NODE_RUNNING ? 1 : 2;
}
static double get_round(const host *h, size_t i)
{
    return (double)status_of(h, i).round;
}
static double get_steps(const host *h, size_t i)
{
    return (double)status_of(h, i).k;
}
static double get_repeated(const host *h, size_t i)
{
    return (double)status_of(h, i).repeated;
}
static double get_connected(const host *h, size_t i)
{
    return host_get_links(h, i).connected;
}
static double get_children(const host *h, size_t i)
{
    return (double)host_get_links(h, i).children;
}
static double get_live(const host *h, size_t i)
{
    return (double)host_get_links(h, i).live;
}

static const struct {
    const char *name, *type, *help;
    double (*get)(const host *h, size_t i);
    bool of_parents; /* only of nodes with children */
} of_nodes[] = {
    {"phase", "gauge", "0: set-up, 1: training, 2: ended.", get_phase, false},
    {"round", "gauge", "Current round of the node, counted over the run.", get_round, false},
    {"steps_total", "counter", "Steps of the node: k; for the cloud its global iterations.", get_steps, false},
    {"messages_repeated_total", "counter", "Messages that the node has retransmitted.", get_repeated, false},
    {"connected", "gauge", "1: the node is connected to its brokers.", get_connected, false},
    {"children", "gauge", "Children of the node.", get_children, true},
    {"children_live", "gauge", "Children of the node that are live.", get_live, true},
};

static void write_nodes(FILE *f, const host *h)
{
    for (size_t m = 0; m < sizeof of_nodes / sizeof *of_nodes; m++) {
        bool headed = false;
        for (size_t i = 0; i < host_nodes(h); i++) {
            if (of_nodes[m].of_parents && host_get_links(h, i).children == 0)
                continue;
            if (!headed)
                put_metric_head(f, of_nodes[m].name, of_nodes[m].type, of_nodes[m].help);
            headed = true;
            put_node_label(f, of_nodes[m].name, host_path(h, i));
            fputc('}', f);
            put_value(f, of_nodes[m].get(h, i));
        }
    }
}

static void write_refused(FILE *f, const host *h)
{
    static const char name[] = "messages_refused_total", *const reasons[] = {
#define REASON(word, text) #word,
                                                             NODE_REFUSAL_LIST(REASON)
#undef REASON
                                                         };
    put_metric_head(f, name, "counter",
                    "Refused messages by reason: not a message, sender is not a neighbour, another run, and so on; old "
                    "messages are harmless.");
    for (size_t i = 0; i < host_nodes(h); i++) {
        const node_status status = status_of(h, i);
        const host_links links = host_get_links(h, i);
        for (size_t r = 0; r < NODE_REFUSALS; r++) {
            put_node_label(f, name, host_path(h, i));
            fputs(",reason=\"", f);
            for (const char *c = reasons[r]; *c; c++)
                fputc(tolower((unsigned char)*c), f);
            fprintf(f, "\"} %" PRIu64 "\n", status.refused[r]);
        }
        put_node_label(f, name, host_path(h, i));
        fprintf(f, ",reason=\"bytes\"} %" PRIu64 "\n", links.garbled);
        put_node_label(f, name, host_path(h, i));
        fprintf(f, ",reason=\"sender\"} %" PRIu64 "\n", links.strangers);
    }
}

static void write_waits(FILE *f, const host *h)
{
    static const char name[] = "waits_for_seconds";
    put_metric_head(f, name, "gauge", "Seconds for which the node has waited for this child.");
    for (size_t i = 0; i < host_nodes(h); i++) {
        const host_waits waits = host_get_waits(h, i);
        for (size_t c = waits.first; waits.count > 0 && c < host_get_links(h, i).children; c++) {
            if (!host_waits_for(h, i, c))
                continue;
            put_node_label(f, name, host_path(h, i));
            fputs(",child=\"", f);
            put_escaped(f, host_child(h, i, c));
            fputs("\"}", f);
            put_value(f, (double)waits.ms / 1000);
        }
    }
}

/* ---- of the process ---- */

static double resident_bytes(void)
{
    unsigned long long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    const bool read = f && fscanf(f, "%llu %llu", &total, &resident) == 2;
    if (f)
        fclose(f);
    return read ? (double)resident * (double)sysconf(_SC_PAGESIZE) : NAN;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void write_process(FILE *f, const host *h)
{
    const host_counts c = host_get_counts(h);
    const struct {
        const char *name, *type, *help;
        double value;
    } all[] = {
        {"messages_sent_total", "counter", "Messages handed to the broker.", (double)c.frames.frames_sent},
        {"messages_received_total", "counter", "Messages received.", (double)c.frames.frames_received},
        {"sent_bytes_total", "counter", "Bytes of sent messages, including topics, in MQTT encoding.",
         (double)c.frames.bytes_sent},
        {"received_bytes_total", "counter", "Bytes of received messages, including topics, in MQTT encoding.",
         (double)c.frames.bytes_received},
        {"messages_replaced_total", "counter", "Messages replaced by a newer one before they were sent.",
         (double)c.frames.replaced},
        {"messages_lost_total", "counter", "Messages lost because there was no connection.", (double)c.frames.lost},
        {"connects_total", "counter", "Connections opened to brokers.", (double)c.frames.connects},
        {"commits_total", "counter", "Commits of the nodes' states.", (double)c.commits},
        {"commit_failures_total", "counter", "Commits that failed, for example because of a full disk.",
         (double)c.commit_failures},
        {"commit_seconds_total", "counter", "Time spent in commits.", c.commit_seconds},
        {"resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes()},
        {"cpu_seconds_total", "counter", "Processor time of the process.", cpu_seconds()},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put_one(f, all[i].name, all[i].type, all[i].help, all[i].value);
}

static void write_figures(FILE *f, const hfsad_figures *row)
{
    const struct {
        const char *name, *help;
        double value;
    } all[] = {
        {"iteration", "Global iteration of the last row of the trace, the source of the figures below.",
         (double)row->iteration},
        {"objective", "The objective.", row->objective},
        {"consensus_objective", "The objective with all nodes at the cloud's model.", row->consensus_objective},
        {"primal_residual", "The primal residual.", row->primal_residual},
        {"dual_residual", "The dual residual.", row->dual_residual},
        {"consensus_gap", "The consensus gap.", row->consensus_gap},
        {"smoothing_gap", "The smoothing gap.", row->smoothing_gap},
        {"relative_error", "Error relative to the truth; NaN if the truth is not known.", row->relative_error},
        {"run_seconds", "Seconds of the run.", row->seconds},
        {"model_up_bytes", "Bytes of vectors up the tree, as in the trace.", (double)row->bytes_up},
        {"model_down_bytes", "Bytes of vectors down the tree, as in the trace.", (double)row->bytes_down},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put_one(f, all[i].name, "gauge", all[i].help, all[i].value);
}

void metrics_write(FILE *f, const host *h)
{
    write_nodes(f, h);
    write_refused(f, h);
    write_waits(f, h);
    write_process(f, h);
    const hfsad_figures *row = host_last_row(h);
    if (row)
        write_figures(f, row);
}
