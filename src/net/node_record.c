/*
 * Copies of records. An asynchronous node that loses its state folder loses its record, and nothing else could repeat
 * what its parent has heard of it. So an inner node says its lines to its parent, before the UP, the figures and the
 * models that follow from them:
 *
 *     RECORD  k: bytes of this life said before;  numbers: six bytes of text each, lowest first; the rest of the last
 * is 0
 *
 * The parent puts every whole line into its own record, behind `+` and the slot of the child, and takes no UP and no
 * answer before it has the lines that led to it. The acknowledgement of an UP is that of the lines before it.
 */
#include "net/node_parts.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 6 /* of a number */, LINES_MOST = 64 /* bytes for a node in a line, far more than there are */ };

/* With cohorts and noise no node is readmitted. */
bool record_is_copied(const node *n)
{
    return n->s.async && !unit_calls(n) && !n->s.p->secure && !plan_has_noise(n->s.p);
}

static bool says_copies(const node *n)
{
    return record_is_copied(n) && n->s.inner && !is_root(n);
}

/* ---- the child ---- */

void record_add(node *n, const char *text)
{
    record_copy *copy = &n->async.copy;
    const size_t size = strlen(text);
    if (size == 0 || !says_copies(n) || !alloc_grow((void **)&copy->text, &copy->room, copy->size + size, 1))
        return; /* without memory: a record with a gap, which cannot be replayed */
    memcpy(copy->text + copy->size, text, size);
    copy->size += size;
}

void record_mark(node *n)
{
    n->async.copy.mark = n->async.copy.base + n->async.copy.size;
}

void record_acknowledged(node *n)
{
    record_copy *copy = &n->async.copy;
    const size_t had = (size_t)(copy->mark - copy->base);
    if (had == 0)
        return;
    memmove(copy->text, copy->text + had, copy->size - had);
    copy->size -= had;
    copy->base = copy->mark;
    n->changed = true;
}

void record_begin_anew(node *n)
{
    record_copy *copy = &n->async.copy;
    copy->size = 0;
    copy->base = copy->mark = copy->said = copy->told = copy->turn = 0;
}

uint64_t record_size(const node *n)
{
    return says_copies(n) ? n->async.copy.base + n->async.copy.size : 0;
}

void record_repeat(node *n)
{
    n->async.copy.said = 0;
    n->async.copy.again = false;
}

void record_connect(node *n)
{
    n->async.copy.told = 0;
}

/* The first byte of the next message. Pieces that were said before are said again one at a time, each in its turn: on a
 * slow link a frame takes the place of one that has not left, so that of many at once only the last might ever arrive.
 */
static uint64_t next_piece(record_copy *copy)
{
    const uint64_t from = copy->said > copy->base ? copy->said : copy->base;
    if (from >= copy->told)
        return from;
    if (copy->again)
        return copy->told;
    copy->again = true;
    return copy->turn > copy->base && copy->turn < copy->told ? copy->turn : copy->base;
}

bool record_next_letter(node *n, message *m)
{
    record_copy *copy = &n->async.copy;
    if (!says_copies(n))
        return false;
    const size_t numbers = n->s.part < NODE_RECORD_NUMBERS ? n->s.part : NODE_RECORD_NUMBERS;
    const uint64_t from = next_piece(copy), end = copy->base + copy->size;
    if (from >= end)
        return false;
    const size_t bytes = end - from < numbers * BYTES ? (size_t)(end - from) : numbers * BYTES;
    const unsigned char *text = (const unsigned char *)copy->text + (from - copy->base);
    if (!copy->numbers && !(copy->numbers = alloc_zero(NODE_RECORD_NUMBERS, sizeof *copy->numbers)))
        return false; /* its parent will not take what follows */
    *m = node_letter_of(n, MESSAGE_RECORD, NODE_PHASE_TRAIN, 0);
    m->k = from;
    m->values = copy->numbers;
    for (size_t at = 0; at < bytes; at += BYTES) {
        double v = 0;
        for (size_t i = bytes - at < BYTES ? bytes - at : BYTES; i > 0; i--)
            v = v * 256 + text[at + i - 1];
        m->values[m->count++] = v;
    }
    copy->said = from + bytes;
    copy->turn = from < copy->told ? copy->said : copy->turn;
    copy->told = copy->said > copy->told ? copy->said : copy->told;
    return true;
}

/* ---- the parent ---- */

bool record_has_steps(const node *n, size_t c, uint64_t k)
{
    const child_state *child = &n->inner.child[c];
    return !record_is_copied(n) || n->s.children[c].leaf || child->copied.before + k <= child->copied.steps;
}

bool record_has_bytes(const node *n, size_t c, double bytes)
{
    return !record_is_copied(n) || n->s.children[c].leaf || bytes <= (double)n->inner.child[c].copied.bytes;
}

void record_child_begins(node *n, size_t c)
{
    child_copy *copied = &n->inner.child[c].copied;
    copied->before = copied->steps;
    copied->bytes = 0;
    copied->n_tail = copied->unpaid = 0;
}

/* An unfinished line, which is held in memory, stays unpaid. */
void record_pay(node *n, size_t c)
{
    child_copy *copied = &n->inner.child[c].copied;
    copied->unpaid = copied->n_tail;
}

static bool is_of_line(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == ' ' || c == ':' || c == '-';
}

/* Every number but the last has all its bytes. */
static bool is_text(const message *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const double least = i + 1 < m->count ? 0x1p40 : 1;
        if (!(m->values[i] >= least && m->values[i] < 0x1p48))
            return false;
        for (uint64_t word = (uint64_t)m->values[i]; word; word >>= 8)
            if ((word & 255) != '\n' && !is_of_line((char)(word & 255)))
                return false;
    }
    return true;
}

/* Limit on the bytes that a child may send before its next UP or answer: a lying child must not fill the disk. */
static size_t most_unpaid(const node *n, size_t c)
{
    return (size_t)(n->K + 8) * (n->s.children[c].nodes + 2) * LINES_MOST;
}

/* A whole line, without its newline. */
static bool take_line(node *n, size_t c, char *line)
{
    child_copy *copied = &n->inner.child[c].copied;
    char head[32], *end;
    if (*line >= '0' && *line <= '9') {
        if (strtoull(line, &end, 10) != copied->steps + 1 || *end != ' ')
            return false;
        copied->steps++;
    }
    snprintf(head, sizeof head, "+%zu ", c);
    async_put_own(n, head);
    async_put_own(n, line);
    async_put_own(n, "\n");
    copied->bytes += strlen(line) + 1;
    n->changed = true;
    return true;
}

/* Checks one more byte of the child's lines; false: a line is not the next one. */
static bool take_byte(node *n, size_t c, char byte)
{
    child_copy *copied = &n->inner.child[c].copied;
    copied->tail[copied->n_tail] = byte == '\n' ? 0 : byte;
    if (byte != '\n') {
        copied->n_tail++;
        return true;
    }
    copied->n_tail = 0;
    return take_line(n, c, copied->tail);
}

bool record_take(node *n, size_t c, const message *m, node_refusal *why)
{
    child_copy *copied = &n->inner.child[c].copied;
    uint64_t at = m->k;
    const uint64_t had = copied->bytes + copied->n_tail;
    if (!record_is_copied(n) || n->s.children[c].leaf || m->count > NODE_RECORD_NUMBERS)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (at > had || at + m->count * BYTES <= had || copied->unpaid + m->count * BYTES > most_unpaid(n, c) ||
        !alloc_grow((void **)&copied->tail, &copied->room, copied->n_tail + m->count * BYTES + 1, 1))
        return node_refuse(n, why, NODE_REFUSED_OLD); /* it is sent again */
    if (!is_text(m))
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    for (size_t i = 0; i < m->count; i++)
        for (uint64_t word = (uint64_t)m->values[i]; word; word >>= 8, at++) {
            if (at < had)
                continue;
            copied->unpaid++;
            if (!take_byte(n, c, (char)(word & 255)))
                return node_refuse(n, why, NODE_REFUSED_VALUE);
        }
    return true;
}

/* ---- the state ---- */

void record_pass(const word_transfer *t, node *n)
{
    record_copy *copy = &n->async.copy;
    uint64_t size = copy->size;
    if (!says_copies(n))
        return;
    words_pass(t, &copy->base);
    words_pass(t, &copy->mark);
    words_pass(t, &size);
    if (t->in && (size / 8 > t->in->left || copy->mark < copy->base || copy->mark > copy->base + size ||
                  !alloc_grow((void **)&copy->text, &copy->room, (size_t)size, 1))) {
        t->in->bad = true;
        return;
    }
    copy->size = (size_t)size;
    for (size_t i = 0; i < copy->size; i += sizeof(uint64_t)) {
        const size_t bytes = copy->size - i < sizeof(uint64_t) ? copy->size - i : sizeof(uint64_t);
        uint64_t word = 0;
        memcpy(&word, copy->text + i, bytes);
        words_pass(t, &word);
        memcpy(copy->text + i, &word, bytes);
    }
}

void record_free(node *n)
{
    free(n->async.copy.text);
    free(n->async.copy.numbers);
    for (size_t c = 0; n->inner.child && c < n->s.n_children; c++)
        free(n->inner.child[c].copied.tail);
}
