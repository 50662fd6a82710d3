/* The pool: every item once, by any number of threads, job after job. */
#include "tools.h"

#include "base/pool.h"

#include <stdatomic.h>

enum { ITEMS = 1000 };

typedef struct {
    atomic_uint done[ITEMS];
    atomic_uint by[64];
} tally;

static void count(void *context, size_t item, unsigned thread)
{
    tally *t = context;
    atomic_fetch_add(&t->done[item], 1);
    atomic_fetch_add(&t->by[thread], 1);
}

static void every_item_once(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 7; threads += 2) {
        hfsad_error err;
        pool *p;
        ok(pool_create(&p, threads, &err), &err);
        assert_int_equal(pool_threads(p), threads);
        for (unsigned job = 0; job < 300; job++) {
            tally t = {0};
            const size_t items = job % 3 ? job % 7 : ITEMS;
            pool_run(p, items, count, &t);
            unsigned sum = 0;
            for (size_t i = 0; i < ITEMS; i++)
                assert_int_equal(t.done[i], i < items);
            for (unsigned i = 0; i < 64; i++)
                sum += t.by[i];
            assert_int_equal(sum, items);
        }
        pool_free(p);
    }
}

static void plain_memory(void *context, size_t item, unsigned thread)
{
    (void)thread;
    ((size_t *)context)[item] += item;
}

/* Plain memory written by a job is seen by the caller and by the next job, whichever threads take the items. */
static void jobs_see_each_others_writes(void **state)
{
    (void)state;
    hfsad_error err;
    pool *p;
    size_t sums[64] = {0};
    ok(pool_create(&p, 4, &err), &err);
    for (size_t job = 1; job <= 2000; job++) {
        pool_run(p, 64, plain_memory, sums);
        assert_int_equal(sums[63], 63 * job);
    }
    pool_free(p);
}

static void too_many_threads(void **state)
{
    (void)state;
    hfsad_error err;
    pool *p;
    assert_int_equal(pool_create(&p, 1000000, &err), HFSAD_ERROR_INPUT);
    assert_null(p);
    ok(pool_create(&p, 0, &err), &err);
    assert_int_equal(pool_threads(p), pool_cores());
    pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),
        cmocka_unit_test(jobs_see_each_others_writes),
        cmocka_unit_test(too_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
