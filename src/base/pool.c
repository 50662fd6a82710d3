/*
 * The thread pool. A generation number publishes a job; threads take items by an atomic counter. Rounds of the
 * algorithm follow each other within microseconds, so a worker spins for a while before it sleeps.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/pool.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 4000, THREADS_MAX = 1024 };

typedef struct {
    pool *owner;
    unsigned index;
    pthread_t handle;
} worker;

struct pool {
    unsigned threads; /* thread 0 is the caller */
    worker *workers;  /* threads - 1 */
    unsigned started;
    void (*work)(void *, size_t, unsigned);
    void *context;
    size_t items;
    atomic_size_t next;
    atomic_uint generation, busy;
    atomic_bool quit;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

unsigned pool_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    return 1;
}

unsigned pool_threads(const pool *p)
{
    return p->threads;
}

/* Threads take items in batches, so that many small items need few atomic operations. */
static void take_items(pool *p, unsigned thread)
{
    const size_t batch = 1 + p->items / (32 * (size_t)p->threads);
    for (;;) {
        const size_t first = atomic_fetch_add_explicit(&p->next, batch, memory_order_relaxed);
        if (first >= p->items)
            return;
        const size_t end = p->items - first < batch ? p->items : first + batch;
        for (size_t item = first; item < end; item++)
            p->work(p->context, item, thread);
    }
}

static void pause_a_little(unsigned spin)
{
    if (spin % 64 == 63)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

/* Waits until the generation differs from `seen`; returns the new generation. */
static unsigned wait_for_job(pool *p, unsigned seen)
{
    for (unsigned spin = 0; spin < SPINS; spin++) {
        const unsigned now = atomic_load_explicit(&p->generation, memory_order_acquire);
        if (now != seen)
            return now;
        pause_a_little(spin);
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load_explicit(&p->generation, memory_order_acquire) == seen)
        pthread_cond_wait(&p->wake, &p->lock);
    const unsigned now = atomic_load_explicit(&p->generation, memory_order_acquire);
    pthread_mutex_unlock(&p->lock);
    return now;
}

static void *worker_main(void *argument)
{
    worker *w = argument;
    pool *p = w->owner;
    for (unsigned seen = 0;;) {
        seen = wait_for_job(p, seen);
        if (atomic_load_explicit(&p->quit, memory_order_acquire))
            return NULL;
        take_items(p, w->index);
        atomic_fetch_sub_explicit(&p->busy, 1, memory_order_release);
    }
}

static void publish(pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add_explicit(&p->generation, 1, memory_order_release);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void pool_run(pool *p, size_t items, void (*work)(void *context, size_t item, unsigned thread), void *context)
{
    if (p->threads == 1 || items < 2) {
        for (size_t item = 0; item < items; item++)
            work(context, item, 0);
        return;
    }
    p->work = work;
    p->context = context;
    p->items = items;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_store_explicit(&p->busy, p->threads - 1, memory_order_relaxed);
    publish(p);
    take_items(p, 0);
    for (unsigned spin = 0; atomic_load_explicit(&p->busy, memory_order_acquire); spin++)
        pause_a_little(spin);
}

hfsad_status pool_create(pool **out, unsigned threads, hfsad_error *err)
{
    *out = NULL;
    if (threads == 0)
        threads = pool_cores();
    if (threads > THREADS_MAX)
        return error_set(err, HFSAD_ERROR_INPUT, "%u threads; the limit is %d", threads, THREADS_MAX);
    pool *p = alloc_zero(1, sizeof *p);
    worker *workers = alloc_zero(threads, sizeof *workers);
    if (!p || !workers) {
        free(p);
        free(workers);
        return error_memory(err, sizeof *p + threads * sizeof *workers, "threads");
    }
    p->threads = threads;
    p->workers = workers;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (unsigned i = 0; i + 1 < threads; i++) {
        workers[i] = (worker){p, i + 1, 0};
        const int failed = pthread_create(&workers[i].handle, NULL, worker_main, &workers[i]);
        if (failed) {
            p->threads = p->started + 1;
            pool_free(p);
            return error_set(err, HFSAD_ERROR_MEMORY, "thread %u of %u could not be started: %s", i + 2, threads,
                             strerror(failed));
        }
        p->started++;
    }
    *out = p;
    return HFSAD_OK;
}

void pool_free(pool *p)
{
    if (!p)
        return;
    atomic_store_explicit(&p->quit, true, memory_order_release);
    publish(p);
    for (unsigned i = 0; i < p->started; i++)
        pthread_join(p->workers[i].handle, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p->workers);
    free(p);
}
