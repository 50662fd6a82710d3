/* What the header says about threads: runs side by side are runs in turn, bit for bit, on shared data; a run is
 * cancelled from another thread and from a signal handler; results are read by many at once. */
#include "sample.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

static const char *const TEXTS[] = {
    "loss: {kind: quantile, tau: 0.3}\nrun: {iterations: 40, trace_every: 4}\n",
    "loss: {kind: squared}\nfeatures: {intercept: edge, standardize: true}\nrun: {iterations: 40, polish: true}\n",
    "loss: {kind: huber}\nlink: {client: {penalty: mcp, weight: 1, lambda: 0.5}}\nrun: {iterations: 30}\n",
};
enum { RUNS = sizeof TEXTS / sizeof *TEXTS };

typedef struct {
    const char *text;
    hfsad_data *data;
    unsigned threads;
    hfsad_result *result;
    double prediction[SAMPLE_ROWS];
    bool failed; /* assertions belong to the main thread */
} job;

static void *work(void *context)
{
    job *j = context;
    hfsad_error err;
    hfsad_spec *spec = NULL;
    hfsad_run *run = NULL;
    j->failed = hfsad_spec_parse(&spec, j->text, strlen(j->text), &err) ||
                hfsad_run_create_on(&run, spec, j->data, j->threads, &err) ||
                hfsad_run_train(run, NULL, NULL, &j->result, &err) ||
                hfsad_result_predict(j->result, j->data, HFSAD_WITH_AUTO, j->prediction, &err);
    hfsad_run_free(run);
    hfsad_spec_free(spec);
    return NULL;
}

static void test_side_by_side(void **state)
{
    (void)state;
    static sample s;
    static job alone[RUNS], together[2 * RUNS];
    pthread_t thread[2 * RUNS];
    sample_draw(&s, 1, true, false);
    hfsad_data *d = sample_data(&s, HFSAD_BORROW);
    for (size_t i = 0; i < RUNS; i++) {
        alone[i] = (job){.text = TEXTS[i], .data = d, .threads = 1};
        work(&alone[i]);
        assert_false(alone[i].failed);
    }
    for (size_t i = 0; i < 2 * RUNS; i++) {
        together[i] = (job){.text = TEXTS[i % RUNS], .data = d, .threads = 1 + (unsigned)i % 2};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &together[i]), 0);
    }
    for (size_t i = 0; i < 2 * RUNS; i++) {
        const job *a = &alone[i % RUNS], *b = &together[i];
        pthread_join(thread[i], NULL);
        assert_false(b->failed);
        assert_memory_equal(hfsad_result_models(a->result), hfsad_result_models(b->result),
                            hfsad_result_nodes(a->result) * hfsad_result_width(a->result) * sizeof(double));
        assert_memory_equal(hfsad_result_trace(a->result, "objective"), hfsad_result_trace(b->result, "objective"),
                            hfsad_result_trace_rows(a->result) * sizeof(double));
        assert_memory_equal(a->prediction, b->prediction, sizeof a->prediction);
        hfsad_result_free(b->result);
    }
    for (size_t i = 0; i < RUNS; i++)
        hfsad_result_free(alone[i].result);
    hfsad_data_free(d);
}

static sem_t seen; /* a row was */
static hfsad_run *cancelled;

static bool report_row(void *context, const hfsad_progress *p)
{
    atomic_size_t *rows = context;
    if (p->figures->iteration == 30)
        sem_post(&seen);
    (*rows)++;
    return true;
}

static void *cancel(void *context)
{
    (void)context;
    while (sem_wait(&seen)) {
    }
    hfsad_run_cancel(cancelled);
    return NULL;
}

/* Long enough never to end by itself, as the star would, before a row of the trace is due. */
#define ENDLESS "algorithm: hfsad\nloss: {kind: squared}\nrun: {iterations: 1000000, trace_every: 10}\n"

static void test_cancel(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_result *result;
    pthread_t thread;
    atomic_size_t rows = 0;
    sample_draw(&s, 2, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    cancelled = run_from(ENDLESS, d, 2);
    assert_int_equal(sem_init(&seen, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, cancel, NULL), 0);
    ok(hfsad_run_train(cancelled, report_row, &rows, &result, &err), &err);
    pthread_join(thread, NULL);
    const size_t found = hfsad_result_trace_rows(result);
    const double last = hfsad_result_trace(result, "iteration")[found - 1];
    assert_true(last >= 30 && last < 1000000);
    assert_int_equal(found, rows);
    hfsad_result_free(result);
    hfsad_run_free(cancelled);
    hfsad_data_free(d);
    sem_destroy(&seen);
}

static void on_signal(int number)
{
    (void)number;
    hfsad_run_cancel(cancelled);
}

static bool raise_at(void *context, const hfsad_progress *p)
{
    (void)context;
    if (p->figures->iteration == 20)
        raise(SIGUSR1);
    return true;
}

static void test_signal(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_result *result;
    struct sigaction action = {.sa_handler = on_signal}, old;
    sample_draw(&s, 3, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    cancelled = run_from(ENDLESS, d, 1);
    sigaction(SIGUSR1, &action, &old);
    ok(hfsad_run_train(cancelled, raise_at, NULL, &result, &err), &err);
    sigaction(SIGUSR1, &old, NULL);
    assert_true(hfsad_result_trace(result, "iteration")[hfsad_result_trace_rows(result) - 1] == 20);
    hfsad_result_free(result);
    hfsad_run_free(cancelled);
    hfsad_data_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
