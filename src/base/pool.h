/*
 * A pool of threads that runs one function over the items 0 … n-1 and returns when all are done. The assignment of
 * items to threads varies. Callers make results independent of it by giving every item its own place to write to. With
 * one thread, no thread is started and the loop is plain.
 */
#ifndef HFSAD_BASE_POOL_H
#define HFSAD_BASE_POOL_H

#include "hfsad/hfsad.h"

typedef struct pool pool;

/* threads = 0: one per core that this process may use. */
hfsad_status pool_create(pool **p, unsigned threads, hfsad_error *err);
void pool_free(pool *p);
unsigned pool_threads(const pool *p);
unsigned pool_cores(void);

/* Calls work(context, item, thread) for every item; 0 <= thread < pool_threads. Allocates nothing. */
void pool_run(pool *p, size_t items, void (*work)(void *context, size_t item, unsigned thread), void *context);

#endif
