/* See part.h. */
#define _DEFAULT_SOURCE /* stat, and its nanoseconds */
#include "data/part.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/builder_parts.h"
#include "data/format.h"
#include "data/shares.h"
#include "math/dot.h"

#include <stdlib.h>
#include <sys/stat.h>

/* ---- whether the data can be read in parts ---- */

/* A hash that is equal on ranks that see the same files; 0: the files cannot be read in parts. */
static uint64_t folder_sign(const char *path)
{
    folder_tree t;
    hfsad_error err;
    uint64_t sign = folder_scan(&t, path, &err) ? 0 : 1;
    for (size_t i = 0; i < t.n_files && sign; i++) {
        const tree_file *f = &t.files[i];
        const uint64_t name = rng_stream(f->name) ^ rng_mix(rng_stream(t.folders[f->folder].path));
        sign = f->format == &svm_format ? 0 : rng_mix(sign + rng_mix(name + rng_mix(f->stamp))) | 1;
    }
    folder_free(&t);
    return sign;
}

static uint64_t sign_of(const char *path)
{
    struct stat info;
    size_t stem;
    if (stat(path, &info) != 0)
        return 0;
    if (S_ISDIR(info.st_mode))
        return folder_sign(path);
    return S_ISREG(info.st_mode) && format_or_csv(path, &stem) == &csv_format ? file_stamp(&info) | 1 : 0;
}

bool part_begin(intake *in, const char *path, const table_settings *table, const part_model *model)
{
    const rank_group *group = ranks();
    const bool possible = model->possible && !table->clients && !table->by && !table->edges && !table->categorical &&
                          table->missing != MISSING_MEAN;
    const uint64_t sign = possible ? sign_of(path) : 0;
    if (!ranks_same(&sign, sizeof sign) || sign == 0)
        return false;
    in->part.rank = group->rank;
    in->part.count = group->count;
    in->part.constants = model->intercept;
    in->part.scores = model->scores ? model->scores : 1;
    return true;
}

static size_t slots_of(const intake *in)
{
    return run_slots((builder_features(in->builder) + in->part.constants) * in->part.scores);
}

bool part_reads_file(const intake *in, const folder_tree *t, size_t i)
{
    if (i == 0 || in->part.count < 2)
        return true;
    const size_t slots = slots_of(in), direct = t->folders[0].files;
    size_t top = 0, at = t->files[i].folder;
    while (top + 1 < t->n_folders && t->folders[top + 1].depth == 1)
        top++;
    while (t->folders[at].depth > 1)
        at = t->folders[at].parent;
    const size_t unit = at ? at - 1 : top + i / slots; /* the cloud's own files come first */
    return share_rank(top + (direct + slots - 1) / slots, unit) == in->part.rank;
}

/* ---- one tree ---- */

/* The first message of a rank. */
typedef struct {
    size_t bytes, rows, clients;
    bool weights;
} part_head;

/* Sets the rank of every client. */
static hfsad_status find_owners(const intake *in, unsigned *owner)
{
    const dataset_builder *b = in->builder;
    const size_t slots = slots_of(in);
    size_t *unit = alloc_zero(b->n_branches, sizeof *unit), top = 0, slot = 0;
    if (!unit)
        return error_memory(in->err, b->n_branches * sizeof *unit, "the parts of the ranks");
    for (uint32_t child = b->branches[0].first_child; child; child = b->branches[child].sibling)
        unit[child] = top++;
    for (size_t i = 1; i < b->n_branches; i++) /* parents come first */
        if (b->branches[i].depth > 1)
            unit[i] = unit[b->branches[i].parent];
    const size_t units = top + (b->branches[0].n_leaves + slots - 1) / slots;
    for (size_t c = 0; c < b->n_clients; c++) {
        const uint32_t parent = b->clients[c].parent;
        owner[c] = share_rank(units, parent ? unit[parent] : top + slot++ / slots);
    }
    free(unit);
    return HFSAD_OK;
}

typedef struct {
    char *bytes;
    size_t size, capacity;
} part_text;

static bool put_bytes(part_text *t, const void *bytes, size_t size)
{
    if (!alloc_grow((void **)&t->bytes, &t->capacity, t->size + size, 1))
        return false;
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    return true;
}

/* Writes the names of the inner nodes down to this one, with slashes. */
static bool put_path(part_text *t, const dataset_builder *b, uint32_t at)
{
    uint32_t up[HFSAD_TIERS_MAX] = {0};
    size_t levels = 0;
    bool done = true;
    for (; at; at = b->branches[at].parent)
        up[levels++] = at;
    while (levels-- > 0 && done) {
        const char *name = b->segments.text + b->branches[up[levels]].name;
        done = put_bytes(t, name, strlen(name)) && (!levels || put_bytes(t, "/", 1));
    }
    return done && put_bytes(t, "", 1);
}

/* The clients in order of first appearance: the number of rows, whether the path differs from the previous client's,
 * the path if it does, the name. */
static bool put_clients(part_text *t, const dataset_builder *b)
{
    bool done = true;
    for (size_t c = 0; c < b->n_clients && done; c++) {
        const leaf_note *n = &b->clients[c];
        const char *name = b->names.text + n->name;
        const bool other = c == 0 || n->parent != n[-1].parent;
        done = put_bytes(t, &n->n_rows, sizeof n->n_rows) && put_bytes(t, other ? "1" : "0", 1) &&
               (!other || put_path(t, b, n->parent)) && put_bytes(t, name, strlen(name) + 1);
    }
    return done;
}

/* Adds the clients that a rank has found; number: receives their indices, if this process is that rank. */
static hfsad_status meet_clients(dataset_builder *g, const char *at, const part_head *head, uint32_t *number,
                                 hfsad_error *err)
{
    const char *path = "";
    hfsad_status status = HFSAD_OK;
    for (size_t c = 0; c < head->clients && !status; c++) {
        uint32_t rows, index = 0;
        memcpy(&rows, at, sizeof rows);
        at += sizeof rows;
        if (*at++ == '1') {
            path = at;
            at += strlen(at) + 1;
        }
        const slice name = {at, strlen(at)};
        at += name.length + 1;
        status = builder_meet(g, (slice){path, strlen(path)}, name, &index, err);
        if (!status)
            g->clients[index].n_rows += rows;
        if (number)
            number[c] = index;
    }
    return status;
}

static void gather_heads(part_head *heads, const part_head *own)
{
    const rank_group *group = ranks();
    size_t sizes[RANKS_MOST];
    for (unsigned r = 0; r < group->count; r++)
        sizes[r] = sizeof *own;
    group->gather(group->context, own, sizes, heads);
}

/* Merges the clients of all ranks, in the order in which a rank that reads all lines would find them. number: indices
 * of the clients that this rank has found. */
static hfsad_status join_trees(const intake *in, const part_head *heads, const part_text *own, dataset_builder *g,
                               uint32_t *number)
{
    const rank_group *group = ranks();
    size_t sizes[RANKS_MOST], all = 0;
    for (unsigned r = 0; r < group->count; r++)
        all += sizes[r] = heads[r].bytes;
    char *texts = alloc_raw(all + 1, 1);
    if (!texts)
        group->end(group->context, 1);
    group->gather(group->context, own->size ? own->bytes : "", sizes, texts);
    hfsad_status status = HFSAD_OK;
    size_t at = 0;
    for (unsigned r = 0; r < group->count && !status; at += sizes[r++])
        status = meet_clients(g, texts + at, &heads[r], r == group->rank ? number : NULL, in->err);
    free(texts);
    return status;
}

/* ---- rows to their ranks ---- */

typedef struct {
    const dataset_builder *from;
    dataset_builder *to;
    const uint32_t *number; /* for the clients of `from` */
    const unsigned *owner;  /* for the clients of `to` */
    size_t width;           /* numbers of a row in transit: client, y, weight, x */
    double *sent, *heard;
    size_t out[RANKS_MOST], in[RANKS_MOST], none[RANKS_MOST];
} row_mover;

static void append(row_mover *m, uint32_t client, double y, double weight, const double *x)
{
    dataset_builder *b = m->to;
    double *to = builder_next_row(b);
    memcpy(to, x, b->M * sizeof *x);
    if (b->clients[client].line == 0) {
        b->clients[client].line = 1; /* no longer a line number: marks that the client has a row */
        b->clients[client].n = dot8(b->M, x, x);
    }
    b->client_of[b->n_rows] = client;
    if (b->weight)
        b->weight[b->n_rows] = weight;
    b->y[b->n_rows++] = y;
}

static void pack(row_mover *m, size_t first, size_t count)
{
    const dataset_builder *b = m->from;
    const rank_group *group = ranks();
    size_t at = 0;
    for (unsigned r = 0; r < group->count; r++) {
        const size_t before = at;
        for (size_t row = first; row < first + count && r != group->rank; row++) {
            const uint32_t client = m->number[b->client_of[row]];
            if (m->owner[client] != r)
                continue;
            double *to = m->sent + at++ * m->width;
            to[0] = client;
            to[1] = b->y[row];
            to[2] = b->weight ? b->weight[row] : 1;
            memcpy(to + 3, b->rows + row * b->M, b->M * sizeof *to);
        }
        m->out[r] = (at - before) * m->width * sizeof *m->sent;
    }
}

/* Sends the rows of rank s from `first` on to their ranks. */
static void move_some(row_mover *m, unsigned s, size_t first, size_t count)
{
    const rank_group *group = ranks();
    const dataset_builder *b = m->from;
    if (s == group->rank) {
        pack(m, first, count);
        for (size_t row = first; row < first + count; row++) {
            const uint32_t client = m->number[b->client_of[row]];
            if (m->owner[client] == s)
                append(m, client, b->y[row], b->weight ? b->weight[row] : 1, b->rows + row * b->M);
        }
    }
    group->share(group->context, s, m->out, group->count * sizeof *m->out);
    m->in[s] = m->out[group->rank];
    group->deliver(group->context, m->sent, s == group->rank ? m->out : m->none, m->heard, m->in);
    for (size_t i = 0; i < m->in[s] / (m->width * sizeof *m->heard); i++) {
        const double *row = m->heard + i * m->width;
        append(m, (uint32_t)row[0], row[1], row[2], row + 3);
    }
    m->in[s] = 0;
}

/* The ranks send one after the other, so that a client's rows arrive in the order of the file. */
static hfsad_status move_rows(row_mover *m, const part_head *heads, hfsad_error *err)
{
    enum { WAVE_BYTES = 1 << 28 };
    m->width = m->from->M + 3;
    const size_t bytes = m->width * sizeof(double), wave = WAVE_BYTES > bytes ? WAVE_BYTES / bytes : 1;
    size_t most = 0;
    for (unsigned r = 0; r < ranks()->count; r++)
        most = heads[r].rows > most ? heads[r].rows : most;
    most = most < wave ? most : wave;
    m->sent = alloc_raw(most * m->width + 1, sizeof *m->sent);
    m->heard = alloc_raw(most * m->width + 1, sizeof *m->heard);
    const bool room = m->sent && m->heard;
    if (!ranks_any(!room))
        for (unsigned s = 0; s < ranks()->count; s++)
            for (size_t first = 0; first < heads[s].rows; first += wave)
                move_some(m, s, first, heads[s].rows - first < wave ? heads[s].rows - first : wave);
    free(m->sent);
    free(m->heard);
    return room ? HFSAD_OK : error_memory(err, most * bytes, "rows of other ranks");
}

static hfsad_status room_for_rows(dataset_builder *g, const unsigned *owner, const part_head *heads, hfsad_error *err)
{
    const rank_group *group = ranks();
    size_t rows = 0;
    bool weights = false;
    for (unsigned r = 0; r < group->count; r++)
        weights = weights || heads[r].weights;
    for (size_t c = 0; c < g->n_clients; c++) {
        g->clients[c].line = 0;
        rows += owner[c] == group->rank ? g->clients[c].n_rows : 0;
    }
    hfsad_status status = dataset_builder_reserve(g, rows, err);
    if (!status && weights && !(g->weight = alloc_raw(rows, sizeof *g->weight)))
        status = error_memory(err, rows * sizeof *g->weight, "the rows' weights");
    g->weighted = weights;
    return status;
}

static hfsad_status note_held(dataset_builder *b, const unsigned *owner, hfsad_error *err)
{
    b->held = alloc_zero(b->n_clients, 1);
    for (size_t c = 0; b->held && c < b->n_clients; c++)
        b->held[c] = owner[c] == ranks()->rank;
    return b->held ? HFSAD_OK : error_memory(err, b->n_clients, "the parts of the ranks");
}

static hfsad_status join_lines(intake *in, const part_head *heads, const part_text *text)
{
    dataset_builder *from = in->builder, *g = NULL;
    row_mover *m = alloc_zero(1, sizeof *m);
    uint32_t *number = alloc_zero(from->n_clients + 1, sizeof *number);
    unsigned *owner = NULL;
    hfsad_status status = m && number ? HFSAD_OK : error_memory(in->err, from->n_clients * 4, "the parts of the ranks");
    if (!status)
        status = dataset_builder_create(&g, from->M, in->err);
    if (ranks_any(status != HFSAD_OK) || (status = join_trees(in, heads, text, g, number)))
        goto over; /* the tree is the same on all ranks, and so is its error */
    owner = alloc_zero(g->n_clients + 1, sizeof *owner);
    in->builder = g;
    status = owner ? find_owners(in, owner) : error_memory(in->err, g->n_clients * 4, "the parts of the ranks");
    in->builder = from;
    if (!status)
        status = room_for_rows(g, owner, heads, in->err);
    if (!status)
        status = note_held(g, owner, in->err);
    if (ranks_any(status != HFSAD_OK))
        goto over;
    m->from = from;
    m->to = g;
    m->number = number;
    m->owner = owner;
    status = move_rows(m, heads, in->err);
    dataset_builder_free(from);
    in->builder = g;
    g = NULL;
over:
    if (!status && g)
        status = HFSAD_ERROR_INPUT;
    dataset_builder_free(g);
    free(m);
    free(number);
    free(owner);
    return status;
}

/* Every rank has begun all clients in the same order; only the rank that read a client's rows knows their number. */
static hfsad_status join_files(intake *in, const part_head *heads)
{
    const rank_group *group = ranks();
    dataset_builder *b = in->builder;
    unsigned *owner = alloc_zero(b->n_clients + 1, sizeof *owner);
    uint32_t *own = alloc_zero(b->n_clients + 1, sizeof *own), *all = alloc_zero(b->n_clients + 1, sizeof *all);
    size_t sizes[RANKS_MOST] = {0}, n = 0;
    hfsad_status status = owner && own && all ? find_owners(in, owner)
                                              : error_memory(in->err, b->n_clients * 12, "the parts of the ranks");
    if (!status)
        status = note_held(b, owner, in->err);
    if (!ranks_any(status != HFSAD_OK)) {
        for (size_t c = 0; c < b->n_clients; c++) {
            sizes[owner[c]] += sizeof *own;
            if (owner[c] == group->rank)
                own[n++] = b->clients[c].n_rows;
        }
        group->gather(group->context, own, sizes, all);
        size_t at[RANKS_MOST] = {0};
        for (unsigned r = 1; r < group->count; r++)
            at[r] = at[r - 1] + sizes[r - 1] / sizeof *own;
        for (size_t c = 0; c < b->n_clients; c++)
            b->clients[c].n_rows = all[at[owner[c]]++];
    }
    for (unsigned r = 0; r < group->count; r++)
        b->weighted = b->weighted || heads[r].weights;
    free(owner);
    free(own);
    free(all);
    return status;
}

hfsad_status part_join(intake *in, bool lines)
{
    const dataset_builder *b = in->builder;
    part_text text = {0};
    part_head *heads = alloc_zero(ranks()->count, sizeof *heads);
    bool done = heads && (!lines || put_clients(&text, b));
    hfsad_status status = HFSAD_ERROR_INPUT;
    if (!ranks_any(!done)) {
        const part_head own = {text.size, b->n_rows, b->n_clients, b->weight != NULL};
        gather_heads(heads, &own);
        status = lines ? join_lines(in, heads, &text) : join_files(in, heads);
    }
    free(text.bytes);
    free(heads);
    return status;
}
