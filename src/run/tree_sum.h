/* The sum over all clients of this process of the vectors that they answer a question with, added up as in
 * plan/survey.h: of a node the inner children's sums in their order, then its leaves'. */
#ifndef HFSAD_RUN_TREE_SUM_H
#define HFSAD_RUN_TREE_SUM_H

#include "base/pool.h"
#include "data/dataset.h"

typedef struct {
    const dataset *d;
    pool *threads;
    size_t longest;                                                              /* answer */
    void (*answer)(void *context, size_t leaf, unsigned thread, double *answer); /* of `length` numbers */
    /* Optional: adds the answer to the sum at once, with the bits that `answer` and an addition give; false: it cannot.
     */
    bool (*add)(void *context, size_t leaf, double *sum);
    /* Optional: the same for the leaves `first` to `end` - 1 together, by all threads. */
    bool (*add_many)(void *context, size_t first, size_t end, double *sum);
    void *context;
    size_t length;           /* of the question in hand */
    double *total, *answers; /* tree_sum_take's */
    uint64_t *words;         /* likewise, if the sums are in fixed point */
    size_t over;             /* 1 + the first node whose numbers did not fit; 0: all did */
    size_t wave, first;
} tree_sum;

/* Takes the room for questions of up to `longest` numbers; false: no memory. */
bool tree_sum_take(tree_sum *s);
void tree_sum_give_back(tree_sum *s);
/* false: a number did not fit, s->over. */
bool tree_sum_ask(tree_sum *s, size_t length, double *sum);

#endif
