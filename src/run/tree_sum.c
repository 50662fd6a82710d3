/* See tree_sum.h. */
#include "run/tree_sum.h"

#include "base/alloc.h"
#include "base/fixed.h"
#include "data/shares.h"

#include <stdlib.h>
#include <string.h>

enum { WAVE_DOUBLES = 1 << 20, WAVE_LEAST = 64 }; /* answers that are held at once */
enum { WORTH_A_THREAD = 8192 };                   /* numbers of rows */

bool tree_sum_take(tree_sum *s)
{
    const size_t wave = WAVE_DOUBLES / s->longest > WAVE_LEAST ? WAVE_DOUBLES / s->longest : WAVE_LEAST;
    s->wave = wave < s->d->n_leaves ? wave : s->d->n_leaves;
    s->total = alloc_zero((s->d->depth + 1) * s->longest, sizeof(double));
    s->answers = alloc_zero(s->wave * s->longest, sizeof(double));
    if (s->d->fixed)
        s->words = alloc_zero((s->d->depth + 1) * s->longest * FIXED_WORDS, sizeof *s->words);
    return s->total && s->answers && (s->words || !s->d->fixed);
}

void tree_sum_give_back(tree_sum *s)
{
    free(s->total);
    free(s->answers);
    free(s->words);
}

static void answer_one(void *context, size_t item, unsigned thread)
{
    const tree_sum *s = context;
    s->answer(s->context, s->first + item, thread, s->answers + item * s->length);
}

static void answer_leaves(tree_sum *s, size_t count)
{
    const size_t *first = s->d->rows.first;
    const size_t rows = first ? first[s->first + count] - first[s->first] : count;
    if (rows * s->d->M >= WORTH_A_THREAD)
        pool_run(s->threads, count, answer_one, s);
    else
        for (size_t i = 0; i < count; i++)
            answer_one(s, i, 0);
}

static void add(tree_sum *s, child_sum *sum, size_t child, const double *part)
{
    if (!child_sum_add(sum, part) && !s->over)
        s->over = child + 1;
}

static bool has_left(const tree_sum *s, size_t leaf)
{
    return s->d->left && s->d->left[leaf];
}

/* By one thread, without waves of answers that no cache holds. */
static void add_each(tree_sum *s, size_t first, size_t end, child_sum *sum)
{
    for (size_t leaf = first; leaf < end; leaf++) {
        if (!has_left(s, leaf) && s->add(s->context, leaf, sum->sum))
            continue;
        s->answer(s->context, leaf, 0, s->answers);
        if (!has_left(s, leaf))
            add(s, sum, s->d->n_inner + leaf, s->answers);
    }
}

static bool all_are_there(const tree_sum *s, size_t first, size_t end)
{
    for (size_t leaf = first; leaf < end; leaf++)
        if (has_left(s, leaf))
            return false;
    return true;
}

static void add_leaves(tree_sum *s, size_t first, size_t end, child_sum *sum)
{
    if (s->add_many && !s->words && all_are_there(s, first, end) && s->add_many(s->context, first, end, sum->sum))
        return;
    if (s->add && !s->words && pool_threads(s->threads) == 1) {
        add_each(s, first, end, sum);
        return;
    }
    for (size_t done = first; done < end; done += s->wave) {
        const size_t left = end - done, count = left < s->wave ? left : s->wave;
        s->first = done;
        answer_leaves(s, count);
        for (size_t i = 0; i < count; i++)
            if (!has_left(s, s->first + i))
                add(s, sum, s->d->n_inner + s->first + i, s->answers + i * s->length);
    }
}

/* A tree has at most HFSAD_TIERS_MAX levels. */
static void sum_node(tree_sum *s, const inner_node *node, double *sum)
{
    double *below = sum + s->length;
    uint64_t *words = s->words ? s->words + node->depth * s->length * FIXED_WORDS : NULL;
    child_sum all = child_sum_begin(s->length, sum, words);
    for (uint32_t c = 0; c < node->n_inner; c++) {
        sum_node(s, &s->d->inner[node->first_inner + c], below);
        add(s, &all, node->first_inner + c, below);
    }
    add_leaves(s, node->first_leaf, node->first_leaf + node->n_leaves, &all);
    child_sum_end(&all);
}

/* Of the cloud, if several ranks work (data/shares.h). */
typedef struct {
    tree_sum *s;
    child_sum all;
    double *sums; /* of this rank's inner children, made before its turn comes */
} cloud_sum;

static void add_own(void *context, bool inner, const share_children *own)
{
    cloud_sum *c = context;
    const inner_node *cloud = &c->s->d->inner[0];
    if (!inner) {
        add_leaves(c->s, cloud->first_leaf + own->slot, cloud->first_leaf + own->slot_end, &c->all);
        return;
    }
    for (size_t i = own->inner; i < own->inner_end; i++)
        add(c->s, &c->all, cloud->first_inner + i, c->sums + (i - own->inner) * c->s->length);
}

static void sum_cloud(tree_sum *s, double *sum)
{
    const rank_group *group = ranks();
    const share_children own = share_of_rank(s->d, group->rank);
    const size_t length = s->length;
    cloud_sum c = {s, child_sum_begin(length, sum, NULL),
                   alloc_raw((own.inner_end - own.inner) * length + 1, sizeof *c.sums)};
    if (!c.sums)
        group->end(group->context, 1);
    for (size_t i = own.inner; i < own.inner_end; i++) {
        sum_node(s, &s->d->inner[s->d->inner[0].first_inner + i], sum + length);
        memcpy(c.sums + (i - own.inner) * length, sum + length, length * sizeof *sum);
    }
    share_add(s->d, sum, length * sizeof *sum, &c, add_own);
    free(c.sums);
    child_sum_end(&c.all);
}

bool tree_sum_ask(tree_sum *s, size_t length, double *sum)
{
    s->length = length;
    if (ranks()->count > 1 && !s->words) /* fixed point: every rank alike */
        sum_cloud(s, s->total);
    else
        sum_node(s, &s->d->inner[0], s->total);
    memcpy(sum, s->total, length * sizeof *sum);
    return !s->over;
}
