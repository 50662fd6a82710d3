#define _POSIX_C_SOURCE 200809L /* stpcpy */
#include "out/tables.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/format_number.h"
#include "data/features.h"
#include "math/normal.h"
#include "run/handle.h"

#include <stdlib.h>
#include <string.h>

hfsad_status row_room_create(row_room *room, const hfsad_run *run, hfsad_error *err)
{
    const size_t M = hfsad_run_features(run), nodes = hfsad_run_nodes(run);
    size_t longest = 0;
    for (size_t i = 0; i < nodes; i++) {
        const size_t length = hfsad_run_node_name(run, i, NULL, 0);
        longest = length > longest ? length : longest;
    }
    const size_t columns = 2 * M + 3;
    const size_t text =
        columns * (NUMBER_LONGEST + 1) + NUMBER_SIZE + 2 * longest + 4; /* a quoted name may grow twofold */
    *room = (row_room){
        .name_size = longest + 1,
        .z = alloc_raw(M, sizeof(double)),
        .q = alloc_raw(M, sizeof(double)),
        .name = alloc_raw(longest + 1, 1),
        .text = alloc_raw(text, 1),
    };
    if (room->z && room->q && room->name && room->text)
        return HFSAD_OK;
    row_room_free(room);
    return error_memory(err, text + 2 * M * sizeof(double), "a row of the output");
}

void row_room_free(row_room *room)
{
    free(room->z);
    free(room->q);
    free(room->name);
    free(room->text);
    *room = (row_room){0};
}

/* A name with a comma, a quote or a line break is quoted, as in CSV. */
static char *write_name(char *at, const char *name)
{
    if (!name[strcspn(name, ",\"\r\n")]) {
        const size_t length = strlen(name);
        memcpy(at, name, length);
        return at + length;
    }
    *at++ = '"';
    for (; *name; name++) {
        if (*name == '"')
            *at++ = '"';
        *at++ = *name;
    }
    *at++ = '"';
    return at;
}

static char *write_vector(char *at, size_t M, const double *v)
{
    for (size_t m = 0; m < M; m++) {
        *at++ = ',';
        at += number_write(at, v[m]);
    }
    return at;
}

static char *write_columns(char *at, char letter, size_t M)
{
    for (size_t m = 1; m <= M; m++) {
        *at++ = ',';
        *at++ = letter;
        at += number_write_whole(at, m);
    }
    return at;
}

/* Writes the names of the features for the head of a table. NULL, and the names are w1,…,wM: the data have no names,
 * have x1,…,xM, or have a name that a reader could take for another column. */
static const char *table_names(const hfsad_run *run)
{
    const char *name = run->data->feature_names;
    bool plain = true;
    char usual[NUMBER_SIZE + 1] = "x";
    for (size_t m = 1; name && m <= features_count(run->data); m++, name += strlen(name) + 1) {
        if (!*name || !strcmp(name, "intercept") || !strcmp(name, "w1"))
            return NULL;
        usual[1 + number_write_whole(usual + 1, m)] = 0;
        plain = plain && !strcmp(name, usual);
    }
    return plain ? NULL : run->data->feature_names;
}

enum { SUFFIX_SIZE = 32 };

/* ":0.9", the level of score k, or ":2", its class. */
static void score_suffix(const hfsad_run *run, size_t k, char text[SUFFIX_SIZE])
{
    const score_losses *s = plan_scores(run->plan);
    if (s && !s->labels)
        snprintf(text, SUFFIX_SIZE, ":%.15g", s->levels[k]);
    else
        snprintf(text, SUFFIX_SIZE, ":%zu", k);
}

static void finish_row(whole_file *f, row_room *room, char *at)
{
    *at++ = '\n';
    whole_file_put(f, room->text, (size_t)(at - room->text));
}

void model_head(whole_file *f, const hfsad_run *run, const char *more)
{
    const size_t F = run->data->classes ? run->data->M : features_count(run->data);
    const char *name = table_names(run);
    char number[1 + NUMBER_SIZE] = "w";
    const size_t K = run->data->classes ? run->data->classes : 1;
    char suffix[SUFFIX_SIZE] = "";
    for (size_t m = 1; m <= F; m++) {
        whole_file_put(f, ",", 1);
        if (name) {
            const bool intercept = (m - 1) / K == features_count(run->data);
            if (run->data->classes)
                score_suffix(run, (m - 1) % K, suffix);
            whole_file_put_field(f, intercept ? "intercept" : name, suffix);
            name += m % K == 0 && !intercept ? strlen(name) + 1 : 0;
        } else {
            whole_file_put(f, number, 1 + number_write_whole(number + 1, m));
        }
    }
    if (hfsad_run_intercept(run))
        whole_file_put(f, ",intercept", 10);
    whole_file_put(f, more, strlen(more));
    whole_file_put(f, "\n", 1);
}

void model_table(whole_file *f, const hfsad_run *run, bool clients, row_room *room)
{
    const size_t M = hfsad_run_features(run);
    const size_t rows = clients ? hfsad_run_nodes(run) : run->data->n_inner;
    whole_file_put(f, "node", 4);
    model_head(f, run, "");
    for (size_t i = 0; i < rows; i++) {
        if (run->engine->knows && !run->engine->knows(run, i))
            continue;
        hfsad_run_node_name(run, i, room->name, room->name_size);
        hfsad_run_node_model(run, i, room->z);
        finish_row(f, room, write_vector(write_name(room->text, room->name), M, room->z));
    }
}

/* Writes "w3" or "intercept" and a comma; returns the end. */
static char *write_coefficient(char *at, size_t m, bool intercept)
{
    if (!intercept)
        *at++ = 'w';
    at = intercept ? stpcpy(at, "intercept") : at + number_write_whole(at, m + 1);
    *at++ = ',';
    return at;
}

/* Writes estimate, standard error and interval, in units of the columns' standard deviations. */
static char *write_estimate(char *at, const hfsad_run *run, size_t m, size_t feature, double w)
{
    const dataset *d = run->data;
    w += 0.0; /* turns -0 into 0 */
    at = write_vector(at, 1, &w);
    *at++ = ',';
    if (feature < features_count(d) && d->scale)
        at += number_write(at, column_is_constant(d, feature) ? 0 : w * d->scale[feature]);
    if (run->errors) {
        const double error = run->errors[m], away = error * normal_quantile(0.5 + run->spec->output.confidence / 2);
        at = write_vector(at, 3, (double[]){error, w - away, w + away});
    }
    return at;
}

void coefficient_table(whole_file *f, const hfsad_run *run, row_room *room)
{
    const size_t M = hfsad_run_features(run), K = run->data->classes ? run->data->classes : 1;
    const size_t F = features_count(run->data);
    const char *name = run->data->feature_names;
    static const char head[] = "coefficient,feature,estimate,standardized", more[] = ",standard_error,lower,upper";
    hfsad_run_node_model(run, 0, room->z);
    whole_file_put(f, head, sizeof head - 1);
    whole_file_put(f, more, run->errors ? sizeof more - 1 : 0);
    whole_file_put(f, "\n", 1);
    for (size_t m = 0; m < M; m++) {
        char *at = write_coefficient(room->text, m, m / K == F && K == 1);
        whole_file_put(f, room->text, (size_t)(at - room->text));
        char suffix[SUFFIX_SIZE] = "";
        if (run->data->classes)
            score_suffix(run, m % K, suffix);
        whole_file_put_field(f, m / K == F ? "intercept" : name ? name : "", suffix);
        finish_row(f, room, write_estimate(room->text, run, m, m / K, room->z[m]));
        if (name && m / K < F && m % K == K - 1)
            name += strlen(name) + 1;
    }
}

void state_table(whole_file *f, const hfsad_run *run, row_room *room)
{
    const size_t M = hfsad_run_features(run), nodes = hfsad_run_nodes(run), inner = run->data->n_inner;
    const size_t head = sizeof STATE_HEAD - 1;
    memcpy(room->text, STATE_HEAD, head);
    finish_row(f, room, write_columns(write_columns(room->text + head, 'z', M), 'q', M));
    for (size_t i = 1; i < nodes; i++) {
        const link_counters counters = i < inner ? sim_inner_link(run->sim, i, room->z, room->q)
                                                 : sim_leaf_link(run->sim, i - inner, room->z, room->q);
        hfsad_run_node_name(run, i, room->name, room->name_size);
        char *at = write_name(room->text, room->name);
        *at++ = ',';
        at += number_write_whole(at, counters.k);
        *at++ = ',';
        at += number_write_whole(at, counters.last);
        finish_row(f, room, write_vector(write_vector(at, M, room->z), M, room->q));
    }
}
