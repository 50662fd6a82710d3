#include "out/tables.h"

#include "base/alloc.h"
#include "base/error.h"
#include "out/format_number.h"
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

static void put_row(whole_file *f, row_room *room, char *at)
{
    *at++ = '\n';
    whole_file_put(f, room->text, (size_t)(at - room->text));
}

void model_table(whole_file *f, const hfsad_run *run, bool clients, row_room *room)
{
    const size_t M = hfsad_run_features(run);
    const size_t rows = clients ? hfsad_run_nodes(run) : run->data->n_inner;
    const bool intercept = hfsad_run_intercept(run);
    memcpy(room->text, "node", 4);
    char *end = write_columns(room->text + 4, 'w', intercept ? M - 1 : M);
    if (intercept) {
        memcpy(end, ",intercept", 10);
        end += 10;
    }
    put_row(f, room, end);
    for (size_t i = 0; i < rows; i++) {
        if (run->engine->knows && !run->engine->knows(run, i))
            continue;
        hfsad_run_node_name(run, i, room->name, room->name_size);
        hfsad_run_node_model(run, i, room->z);
        put_row(f, room, write_vector(write_name(room->text, room->name), M, room->z));
    }
}

void state_table(whole_file *f, const hfsad_run *run, row_room *room)
{
    const size_t M = hfsad_run_features(run), nodes = hfsad_run_nodes(run), inner = run->data->n_inner;
    const size_t head = sizeof STATE_HEAD - 1;
    memcpy(room->text, STATE_HEAD, head);
    put_row(f, room, write_columns(write_columns(room->text + head, 'z', M), 'q', M));
    for (size_t i = 1; i < nodes; i++) {
        const link_counters counters = i < inner ? sim_inner_link(run->sim, i, room->z, room->q)
                                                 : sim_leaf_link(run->sim, i - inner, room->z, room->q);
        hfsad_run_node_name(run, i, room->name, room->name_size);
        char *at = write_name(room->text, room->name);
        *at++ = ',';
        at += number_write_whole(at, counters.k);
        *at++ = ',';
        at += number_write_whole(at, counters.last);
        put_row(f, room, write_vector(write_vector(at, M, room->z), M, room->q));
    }
}
