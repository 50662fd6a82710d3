/* The errors of all trials have the same bits whatever the number of threads. */
#include "lab/experiment.h"
#include "tools.h"

static void same_bits(void **state)
{
    (void)state;
    enum { TRIALS = 13, METHODS = 4 };
    const paper_method methods[METHODS] = {{.edge_rounds = 2, .participation = 0.6},
                                           {.central = true, .rule = {STEP_GEOMETRIC, 0.3, 0.9}},
                                           {.edge_rounds = 5, .participation = 1},
                                           {.tuned = true, .edge_rounds = 3, .participation = 1}};
    paper_settings s = {
        .data = {.edges = 2, .clients = 10, .features = 9, .snr_db = -20, .keep_x = 0.8, .keep_w = 0.3, .seed = 77},
        .trials = TRIALS,
        .iterations = 8,
        .start = "normal",
        .threads = 1};
    hfsad_error err;
    paper_result *one, *many;
    ok(paper_run(&one, &s, methods, METHODS, NULL, &err), &err);
    for (unsigned threads = 2; threads <= 7; threads += 5) {
        s.threads = threads;
        ok(paper_run(&many, &s, methods, METHODS, NULL, &err), &err);
        assert_memory_equal(one->error, many->error, METHODS * one->points * TRIALS * sizeof(double));
        paper_result_free(many);
    }
    paper_result_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
