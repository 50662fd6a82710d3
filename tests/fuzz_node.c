/*
 * What a parent takes from a child that lies: any messages, with the counters of the run made to fit, to the cloud of
 * an asynchronous run with edges (which keeps copies of their records) and of one in lock step. A message is refused or
 * taken; lines of the record are lines; the state that follows is one that the node can begin again with.
 */
#define _POSIX_C_SOURCE 200809L
#include "federation.h"
#include "weather.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 40, HEAD = 8 };

static const problem small[2] = {
    {"lock step", 3, two, two_clients, 3, 5, 0, false,
     "loss: {kind: absolute}\nalgorithm: hfsad\nrun: {iterations: 6, edge_rounds: 2, polish: false}\n"},
    {"asynchronous", 3, two, two_clients, 3, 5, 0, false,
     "loss: {kind: absolute}\nalgorithm: hfsad\nrun: {iterations: 6, edge_rounds: 2, polish: false}\nfederation: "
     "{mode: async}\n"},
};
static prepared made[2];
static tree trees[2];

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Each message is a head of eight bytes and as many bytes more as the head says. */
static message next_message(const uint8_t **at, size_t *left, double *values)
{
    static const message_kind kinds[] = {MESSAGE_UP, MESSAGE_ANSWER, MESSAGE_MODEL, MESSAGE_RECORD, MESSAGE_ACK};
    const uint8_t *head = *at;
    message m = {.kind = kinds[head[0] % 5],
                 .run = 77,
                 .phase = head[1] % 8,
                 .round = head[2] % 16,
                 .k = head[3] % 32,
                 .sigma = ldexp(head[4], head[5] - 128),
                 .values = values};
    *at += HEAD;
    *left -= HEAD;
    if (m.kind == MESSAGE_RECORD) { /* six bytes of text in a number */
        for (; m.count < head[6] % MOST && *left; m.count++) {
            values[m.count] = 0;
            const size_t bytes = *left < 6 ? *left : 6;
            for (size_t i = bytes; i > 0; i--)
                values[m.count] = values[m.count] * 256 + (*at)[i - 1];
            *at += bytes;
            *left -= bytes;
        }
        return m;
    }
    for (; m.count < head[6] % MOST && *left >= sizeof *values;
         m.count++, *at += sizeof *values, *left -= sizeof *values) {
        memcpy(&values[m.count], *at, sizeof *values);
        if (!isfinite(values[m.count])) /* the decoder lets no others through */
            values[m.count] = 0;
    }
    return m;
}

static void check_lines(char *lines)
{
    const size_t size = lines ? strlen(lines) : 0;
    check(!size || lines[size - 1] == '\n');
    for (size_t i = 0; i < size; i++)
        check(lines[i] == '\n' || (lines[i] >= ' ' && lines[i] < 127));
    free(lines);
}

static void check_state(node *n, const tree *t)
{
    hfsad_error err;
    node *again;
    blob state = {0};
    word_writer writer = {.put = blob_append, .to = &state};
    node_pack(n, &writer);
    word_reader reader = {state.bytes, state.size / WORD_BYTES, false};
    check(!tree_node(&again, t, 0, &err));
    check(node_unpack(again, &reader));
    node_free(again);
    free(state.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double values[MOST];
    hfsad_error err;
    hfsad_figures row;
    node *n;
    node_letter letter;
    if (size == 0)
        return 0;
    const size_t which = data[0] % 2;
    if (!made[which].d) {
        made[which] = prepare(&small[which], 1);
        made[which].p->async = which;
        trees[which] = tree_of(&made[which], &small[which], 77, (node_patience){20, 1000});
        trees[which].async = which;
        trees[which].pace = (node_pace){0.5, 500, false, 500, 3, 1000000};
    }
    check(!tree_node(&n, &trees[which], 0, &err));
    uint64_t now = 1;
    const uint8_t *at = data + 1;
    for (size_t left = size - 1; left >= HEAD; now += at[-1]) {
        const size_t from = at[7] % 3;
        const message m = next_message(&at, &left, values);
        node_tick(n, now);
        (void)node_handle(n, from, &m, NULL);
        (void)node_take_figures(n, &row);
        check_lines(node_take_lines(n));
        while (node_next_letter(n, &letter))
            ;
    }
    check_state(n, &trees[which]);
    node_free(n);
    return 0;
}
