/* The line of progress: its rate is that of the last seconds, whatever was before. */
#include "base/clock.h"
#include "tools.h"

#include <unistd.h>

static double here;
static double clock_here(void)
{
    return here;
}
#define clock_seconds clock_here
#include "../cli/progress.c"

/* 100 iterations a second for a minute, then 1: the lines of the second half minute after that must say so. */
static void test_rate_of_the_last_seconds(void **state)
{
    (void)state;
    FILE *shown = tmpfile();
    const int before = dup(STDERR_FILENO);
    assert_non_null(shown);
    assert_true(before >= 0);
    fflush(stderr);
    assert_true(dup2(fileno(shown), STDERR_FILENO) >= 0);
    progress p;
    progress_start(&p, "iteration", 0, 10000, false);
    double done = 0;
    for (here = 0; here < 120; here += 0.5) {
        done += here < 60 ? 50 : 0.5;
        progress_draw(&p, (uint64_t)done, "");
    }
    progress_end(&p);
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(shown);
    char line[200] = "";
    unsigned long at = 0;
    double rate = 0, fast = 0;
    int lines = 0;
    for (; fgets(line, sizeof line, shown); lines++) {
        assert_int_equal(sscanf(line, "iteration %lu/10000 %*f%% %lf/s", &at, &rate), 2);
        fast = at < 5000 ? rate : fast;
    }
    fclose(shown);
    assert_true(lines > 5);
    assert_true(fast > 90 && fast < 110);
    assert_true(rate > 0.9 && rate < 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rate_of_the_last_seconds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
