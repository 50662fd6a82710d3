/* The lines of a record (replay.h). */
#include "run/replay_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "data/nodes.h"
#include "polish/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

hfsad_status replay_bad_line(const replay *r, size_t number, const char *what)
{
    return error_set(r->err, HFSAD_ERROR_INPUT,
                     "%s, line %zu: %s; a replay needs the whole record of the same spec and data", r->path, number,
                     what);
}

static bool find_inner(const replay *r, const char *name, size_t length, size_t *i)
{
    for (*i = 0; *i < r->s->d->n_inner; ++*i)
        if (strlen(r->s->d->inner[*i].name) == length && memcmp(r->s->d->inner[*i].name, name, length) == 0)
            return true;
    return false;
}

/* Reads an integer and moves *at past it; false: there is none. */
static bool read_number(const char **at, uint64_t *v)
{
    if (**at < '0' || **at > '9')
        return false;
    char *end;
    errno = 0;
    *v = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0;
}

static bool read_entry(const char **at, entry *e)
{
    uint64_t slot;
    if (!read_number(at, &slot) || *(*at)++ != ':' || !read_number(at, &e->version) || *(*at)++ != ':' ||
        !read_number(at, &e->k) || slot > UINT32_MAX)
        return false;
    e->slot = (uint32_t)slot;
    return true;
}

/* The child of inner node i in a slot, counted as rows count nodes; SIZE_MAX: none. */
static size_t child_in(const replay *r, size_t i, uint64_t slot)
{
    const inner_node *node = &r->s->d->inner[i];
    if (slot < node->n_inner)
        return node->first_inner + (size_t)slot;
    return slot - node->n_inner < node->n_leaves ? r->s->d->n_inner + node->first_leaf + (size_t)(slot - node->n_inner)
                                                 : SIZE_MAX;
}

/* Reads `slot:-`, and moves *at past it; SIZE_MAX: there is something else. */
static size_t read_absent(const replay *r, const char **at, size_t i)
{
    const char *from = *at;
    uint64_t slot;
    if (!read_number(&from, &slot) || from[0] != ':' || from[1] != '-')
        return SIZE_MAX;
    *at = from + 2;
    return child_in(r, i, slot);
}

/* Of the end and the models: children that are missing. */
static bool read_gone(replay *r, const char **at, size_t i, bool end)
{
    const size_t node = read_absent(r, at, i);
    if (node == SIZE_MAX)
        return false;
    r->lent[node] = r->lent[node] ? r->lent[node] : ABSENCE_SILENT;
    r->n_lent++;
    r->gone[node] = r->gone[node] || end;
    r->n_gone += end;
    return true;
}

static hfsad_status read_entries(replay *r, const char *at, size_t i, line *l)
{
    l->first = r->n_entries;
    while (*at == ' ') {
        at++;
        entry e;
        if (l->end && read_gone(r, &at, i, true))
            continue;
        if (!read_entry(&at, &e))
            return replay_bad_line(r, l->number, "expected slot:version:k");
        if (!alloc_grow((void **)&r->entries, &r->room, r->n_entries + 1, sizeof *r->entries))
            return error_memory(r->err, r->n_entries * sizeof *r->entries, "the record");
        r->entries[r->n_entries++] = e;
    }
    l->count = r->n_entries - l->first;
    return *at ? replay_bad_line(r, l->number, "text after its last number") : HFSAD_OK;
}

row *replay_row(replay *r, uint64_t round)
{
    size_t i = r->n_rows;
    while (i > 0 && r->rows[i - 1].round > round)
        i--;
    if (i > 0 && r->rows[i - 1].round == round)
        return &r->rows[i - 1];
    const size_t nodes = nodes_of(r->s);
    uint64_t *at = alloc_zero(nodes, sizeof *at), *version = alloc_zero(r->s->d->n_leaves, sizeof *version);
    if (!at || !version || !alloc_grow((void **)&r->rows, &r->rows_room, r->n_rows + 1, sizeof *r->rows)) {
        free(at);
        free(version);
        return NULL;
    }
    for (size_t n = 0; n < nodes; n++)
        at[n] = NO_LINE;
    memmove(r->rows + i + 1, r->rows + i, (r->n_rows++ - i) * sizeof *r->rows);
    r->rows[i] = (row){.round = round, .at = at, .version = version};
    return &r->rows[i];
}

/* Behind "row". */
static hfsad_status read_row(replay *r, const char *at, size_t i, size_t number)
{
    const inner_node *node = &r->s->d->inner[i];
    uint64_t round, step, slot, k, version = 0;
    if (*at++ != ' ' || !read_number(&at, &round) || *at++ != ' ' || !read_number(&at, &step))
        return replay_bad_line(r, number, "expected a round and a step after row");
    row *found = replay_row(r, round);
    if (!found)
        return error_memory(r->err, nodes_of(r->s) * sizeof *found->at, "the record");
    if (found->at[i] != NO_LINE && found->at[i] != ABSENT && found->at[i] >> 32 >= r->inner[i].read_life)
        return replay_bad_line(r, number, "its node already has this row");
    found->at[i] =
        found->at[i] == ABSENT ? ABSENT : (r->inner[i].read_life << 32) + step; /* its answer came too late */
    while (*at == ' ') {
        at++;
        const size_t absent = read_absent(r, &at, i);
        if (absent != SIZE_MAX) {
            found->at[absent] = ABSENT;
            continue;
        }
        if (!read_number(&at, &slot) || *at++ != ':' || !read_number(&at, &k) || slot < node->n_inner ||
            slot - node->n_inner >= node->n_leaves)
            return replay_bad_line(r, number, "expected slot:k of a client");
        const size_t leaf = node->first_leaf + (size_t)slot - node->n_inner;
        if (*at == ':' && (at++, !read_number(&at, &version)))
            return replay_bad_line(r, number, "expected slot:k:version of a client");
        found->version[leaf] = version;
        found->at[r->s->d->n_inner + leaf] = k;
    }
    return *at ? replay_bad_line(r, number, "text after its last number") : HFSAD_OK;
}

/* Behind "models" and "aside". */
static hfsad_status read_missing(replay *r, const char *at, size_t i, bool aside, size_t number)
{
    while (*at == ' ') {
        const char *from = ++at;
        const size_t node = read_absent(r, &from, i);
        if (!read_gone(r, &at, i, false))
            return replay_bad_line(r, number, "expected slot:-");
        r->lent[node] = aside ? ABSENCE_ASIDE : r->lent[node];
    }
    return *at ? replay_bad_line(r, number, "text after its last number") : HFSAD_OK;
}

/* The text after the name of a node. */
static bool begins_line(const char *text)
{
    return (*text >= '0' && *text <= '9') || strncmp(text, "row ", 4) == 0 || strncmp(text, "end ", 4) == 0 ||
           strncmp(text, "models ", 7) == 0 || strncmp(text, "aside ", 6) == 0 || strncmp(text, "heard ", 6) == 0 ||
           strncmp(text, "anew ", 5) == 0 || strncmp(text, "over ", 5) == 0 || *text == '+';
}

/* Behind "unpolished". */
static hfsad_status read_unpolished(replay *r, const char *at, size_t number)
{
    uint64_t ended;
    if (!read_number(&at, &ended) || *at || ended > POLISH_ABSENT || !polish_failure((int)ended))
        return replay_bad_line(r, number, "expected how the polish failed");
    r->unpolished = (int)ended;
    return HFSAD_OK;
}

/* Of a life that counts no more: children that its end went without. */
static void forget_gone(replay *r, size_t i)
{
    const inner_node *at = &r->s->d->inner[i];
    for (size_t slot = 0; slot < (size_t)at->n_inner + at->n_leaves; slot++) {
        const size_t node = child_in(r, i, slot);
        r->n_gone -= r->gone[node];
        r->n_lent -= r->lent[node] != 0;
        r->gone[node] = 0;
        r->lent[node] = ABSENCE_NONE;
    }
}

static hfsad_status add_line(replay *r, size_t i, const line *l)
{
    inner_record *of = &r->inner[i];
    if (!alloc_grow((void **)&of->lines, &of->room, of->n_lines + 1, sizeof *of->lines))
        return error_memory(r->err, of->n_lines * sizeof *of->lines, "the record");
    of->lines[of->n_lines++] = *l;
    return HFSAD_OK;
}

/* After "anew": the link of the node restarts after a number of steps. Later steps, which its parent has not received,
 * are void; so is an end. */
static hfsad_status read_anew(replay *r, const char *at, size_t i, size_t number)
{
    inner_record *of = &r->inner[i];
    line l = {.number = number};
    if (*at++ != ' ' || !read_number(&at, &l.life) || *at++ != ' ' || !read_number(&at, &l.step) || *at ||
        l.life <= of->read_life || l.life >> 16 || l.step > of->read_steps)
        return replay_bad_line(r, number, "expected a life and a step after anew");
    if (of->n_lines && of->lines[of->n_lines - 1].end) {
        of->lines[of->n_lines - 1].end = false;
        of->lines[of->n_lines - 1].heard = true;
        forget_gone(r, i);
    }
    size_t kept = of->n_lines;
    for (size_t n = of->n_lines; n > 0 && !of->lines[n - 1].life; n--)
        if (!of->lines[n - 1].heard && of->lines[n - 1].step > l.step)
            kept = n - 1;
    of->n_lines = kept;
    of->read_life = l.life;
    of->read_steps = l.step;
    return add_line(r, i, &l);
}

/* A step, the end, or what was heard before a row. */
static hfsad_status read_step(replay *r, const char *at, size_t i, size_t number)
{
    inner_record *of = &r->inner[i];
    line l = {.number = number, .end = strncmp(at, "end ", 4) == 0, .heard = strncmp(at, "heard ", 6) == 0};
    if (l.end)
        at += 3;
    else if (l.heard)
        at += 5;
    else if (!read_number(&at, &l.step))
        return replay_bad_line(r, number, "expected a step after the name");
    if (!l.heard && (*at++ != ' ' || !read_number(&at, &l.version)))
        return replay_bad_line(r, number, "expected a version after the step");
    const hfsad_status status = read_entries(r, at, i, &l);
    if (status)
        return status;
    if ((of->n_lines && of->lines[of->n_lines - 1].end) || (!l.end && !l.heard && l.step != of->read_steps + 1))
        return replay_bad_line(r, number, "the lines of its node are not consecutive");
    of->read_steps += !l.end && !l.heard;
    return add_line(r, i, &l);
}

/* The text after the name of a node. */
static hfsad_status read_line_of(replay *r, const char *at, size_t i, size_t number)
{
    if (r->inner[i].over)
        return HFSAD_OK;
    if (strcmp(at + strlen(at) - 2, " -") == 0)
        return replay_bad_line(r, number, "an earlier version did not record which nodes are missing");
    if (strncmp(at, "over ", 5) == 0) {
        r->inner[i].over = true;
        return HFSAD_OK;
    }
    if (strncmp(at, "anew ", 5) == 0)
        return read_anew(r, at + 4, i, number);
    if (strncmp(at, "row ", 4) == 0)
        return read_row(r, at + 3, i, number);
    if (strncmp(at, "models ", 7) == 0 || strncmp(at, "aside ", 6) == 0)
        return read_missing(r, strchr(at, ' '), i, *at == 'a', number);
    return read_step(r, at, i, number);
}

/* The life that a line begins; 0: none. */
static uint64_t life_begun(const char *at)
{
    uint64_t life = 0;
    if (strncmp(at, "anew ", 5) == 0 || strncmp(at, "over ", 5) == 0) {
        at += 5;
        (void)read_number(&at, &life);
    }
    return life;
}

/* A record is read three times: which lines of a node are its own, the copies of those that it has lost, its own. */
typedef enum { READ_OWNERS, READ_COPIES, READ_OWN, READS } reading;

/* Behind the slot of a copy. A node has lost what comes before its own first line. */
static hfsad_status read_copy(replay *r, const char *at, size_t i, size_t number)
{
    uint64_t slot;
    const size_t child = read_number(&at, &slot) ? child_in(r, i, slot) : SIZE_MAX;
    if (*at++ != ' ' || child >= r->s->d->n_inner)
        return replay_bad_line(r, number, "expected an inner child and its line");
    inner_record *of = &r->inner[child];
    of->copied = of->copied || (of->owned && (of->owned_from == 0 || life_begun(at) == of->owned_from));
    if (of->copied)
        return HFSAD_OK;
    return begins_line(at) ? read_line_of(r, at, child, number)
                           : replay_bad_line(r, number, "the copied line is not a line of a record");
}

/* text ends with a 0 */
static hfsad_status read_line(replay *r, const char *text, size_t number, reading pass)
{
    const char *at = strchr(text, ' ');
    size_t i;
    while (at && !(find_inner(r, text, (size_t)(at - text), &i) && begins_line(at + 1))) /* names may have spaces */
        at = strchr(at + 1, ' ');
    if (!at && (strncmp(text, "cloud admitted ", 15) == 0 || strncmp(text, "cloud without ", 14) == 0 ||
                strncmp(text, "cloud later ", 12) == 0 || strncmp(text, "cloud begins ", 13) == 0))
        return HFSAD_OK; /* of trace and summary (anew.h), and of the set-up */
    if (!at && strncmp(text, "cloud unpolished ", 17) == 0)
        return read_unpolished(r, text + 17, number);
    if (!at)
        return replay_bad_line(r, number, "it names no edge of this tree");
    at++;
    if (*at == '+')
        return pass == READ_COPIES ? read_copy(r, at + 1, i, number) : HFSAD_OK;
    if (pass == READ_OWNERS && !r->inner[i].owned) {
        r->inner[i].owned = true;
        r->inner[i].owned_from = life_begun(at);
    }
    return pass == READ_OWN ? read_line_of(r, at, i, number) : HFSAD_OK;
}

static hfsad_status read_once(replay *r, char *copy, size_t size, reading pass)
{
    hfsad_status status = HFSAD_OK;
    size_t number = 0;
    for (char *at = copy; at < copy + size && !status;) {
        char *end = memchr(at, '\n', (size_t)(copy + size - at));
        if (!end)
            return replay_bad_line(r, number + 1, "it is cut off");
        *end = 0;
        status = read_line(r, at, ++number, pass);
        *end = '\n';
        at = end + 1;
    }
    return status;
}

hfsad_status replay_read(replay *r, const char *text, size_t size)
{
    hfsad_status status = HFSAD_OK;
    char *copy = alloc_zero(size + 1, 1);
    if (!copy)
        return error_memory(r->err, size, "the record");
    memcpy(copy, text, size);
    for (reading pass = READ_OWNERS; pass < READS && !status; pass++)
        status = read_once(r, copy, size, pass);
    free(copy);
    return status;
}

hfsad_status replay_find_absent(dataset *d, const char *path, hfsad_error *err)
{
    static const char without[] = "cloud without ", later[] = "cloud later ";
    char *text;
    size_t size;
    hfsad_status status = HFSAD_OK;
    if (file_read(path, SIZE_MAX, &text, &size) != 0)
        return HFSAD_OK; /* run_replay says so */
    for (char *from = text, *end; !status && (end = strchr(from, '\n')); from = end + 1) {
        *end = 0;
        const bool came = strncmp(from, later, sizeof later - 1) == 0;
        if (!came && strncmp(from, without, sizeof without - 1) != 0)
            continue;
        const char *name = from + (came ? sizeof later : sizeof without) - 1;
        const size_t node = nodes_find(d, name);
        if (!d->absent)
            d->absent = alloc_zero(d->n_leaves, sizeof *d->absent);
        if (!d->absent)
            status = error_memory(err, d->n_leaves, "the record");
        else if (node == SIZE_MAX || node < d->n_inner)
            status = error_set(err, HFSAD_ERROR_INPUT, "%s: no client %s; a replay needs the same spec and data", path,
                               name);
        else if (came && !dataset_make_later(d, node - d->n_inner))
            status = error_memory(err, d->n_leaves, "the record");
        else
            d->absent[node - d->n_inner] = 1;
    }
    free(text);
    return status;
}
