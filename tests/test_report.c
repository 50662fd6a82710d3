/* Output files: their digits, their shape, and that they are replaced whole or not at all. */
#include "tools.h"

#include "base/format_number.h"
#include "base/whole_file.h"
#include "out/report.h"
#include "out/trace.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The whole file, to be freed; NULL where there is none. */
static char *get(const char *name)
{
    FILE *f = fopen(in_folder(name), "r");
    if (!f)
        return NULL;
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    const size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_true(n < (1 << 20) - 1);
    fclose(f);
    return text;
}

static void assert_content(const char *name, const char *text)
{
    char *found = get(name);
    assert_non_null(found);
    assert_string_equal(found, text);
    free(found);
}

static int count_entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

/* ---- numbers ---- */

static void check_number(double v)
{
    char ours[NUMBER_SIZE + 1], libc[64];
    const size_t n = number_write(ours, v);
    assert_in_range(n, 1, NUMBER_LONGEST);
    ours[n] = 0;
    snprintf(libc, sizeof libc, "%.17g", v);
    if (strcmp(ours, libc) != 0)
        fail_msg("%a: wrote %s, should be %s", v, ours, libc);
}

static void numbers_are_those_of_printf(void **state)
{
    (void)state;
    const uint64_t seed = 7;
    rng r = {rng_key(seed, 0), 0};
    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = rng_u64(r.key, r.counter++);
        double any;
        memcpy(&any, &bits, sizeof any);
        if (!isnan(any))
            check_number(any);
        check_number(ldexp(rng_next_normal(&r), (int)rng_next_below(&r, 120) - 60));
        check_number(rng_next_normal(&r));
        check_number((double)(bits >> bits % 64)); /* whole numbers of every length */
        /* few binary digits: exact ties at the 17th decimal place are among them */
        check_number(ldexp((double)(bits >> 44), -(int)(bits % 80)));
        /* few decimal digits: zeros to drop */
        check_number((double)rng_next_below(&r, 100000) / pow(10, (double)rng_next_below(&r, 12)));
    }
    for (int p = -330; p < 309; p++) {
        double up = pow(10, p), down = up;
        for (int i = 0; i < 20; i++) {
            check_number(up);
            check_number(-down);
            up = nextafter(up, INFINITY);
            down = nextafter(down, 0);
        }
    }
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, 5e-324, 1.7976931348623157e308};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        check_number(special[i]);
    char text[NUMBER_SIZE];
    assert_int_equal(number_write(text, -NAN), 3);
    assert_memory_equal(text, "nan", 3);
}

static void whole_numbers(void **state)
{
    (void)state;
    const uint64_t values[] = {0, 9, 10, 1234567890, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char ours[NUMBER_SIZE + 1], libc[40];
        ours[number_write_whole(ours, values[i])] = 0;
        snprintf(libc, sizeof libc, "%llu", (unsigned long long)values[i]);
        assert_string_equal(ours, libc);
    }
}

/* ---- files ---- */

static void file_is_replaced(void **state)
{
    (void)state;
    hfsad_error err = {0};
    put("a.csv", "old");
    assert_int_equal(whole_file_write(folder, "a.csv", "new text", 8, &err), HFSAD_OK);
    assert_content("a.csv", "new text");
    assert_int_equal(whole_file_write(folder, "b.csv", "", 0, &err), HFSAD_OK);
    assert_content("b.csv", "");
    assert_int_equal(count_entries(folder), 2);
    struct stat info;
    assert_int_equal(stat(in_folder("a.csv"), &info), 0);
    const mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

static void dropped_file_leaves_nothing(void **state)
{
    (void)state;
    hfsad_error err = {0};
    whole_file f;
    put("a.csv", "old");
    assert_int_equal(whole_file_begin(&f, folder, "a.csv", &err), HFSAD_OK);
    fputs("half of it", f.stream);
    fflush(f.stream);
    assert_content("a.csv", "old");
    whole_file_drop(&f);
    assert_content("a.csv", "old");
    assert_int_equal(count_entries(folder), 1);
    whole_file_drop(&f); /* harmless */
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Through whole_file_put and through the stream alone, with an error in the middle and one at the last flush only. */
static void full_disk_keeps_the_old_file(void **state)
{
    (void)state;
    const size_t sizes[] = {1 << 20, 1500};
    put("a.csv", "old");
    for (int way = 0; way < 4; way++) {
        hfsad_error err = {0};
        whole_file f;
        char *bytes = calloc(1, sizes[way / 2]);
        assert_non_null(bytes);
        limit_file_size(1000);
        const hfsad_status begun = whole_file_begin(&f, folder, "a.csv", &err);
        if (way % 2)
            whole_file_put(&f, bytes, sizes[way / 2]);
        else
            for (size_t i = 0; i < sizes[way / 2]; i += 100)
                fwrite(bytes, 1, 100, f.stream);
        const hfsad_status ended = whole_file_end(&f, &err);
        limit_file_size(RLIM_INFINITY);
        free(bytes);
        assert_int_equal(begun, HFSAD_OK);
        assert_int_equal(ended, HFSAD_ERROR_IO);
        assert_non_null(strstr(err.message, "a.csv"));
        assert_non_null(strstr(err.message, "File too large"));
        assert_content("a.csv", "old");
        assert_int_equal(count_entries(folder), 1);
    }
}

static void unwritable_place_is_an_error(void **state)
{
    (void)state;
    hfsad_error err = {0};
    put("file", "x");
    assert_int_equal(whole_file_write(in_folder("missing"), "a.csv", "x", 1, &err), HFSAD_ERROR_IO);
    assert_non_null(strstr(err.message, "missing/a.csv"));
    assert_int_equal(mkdir(in_folder("a.csv"), 0777), 0);
    assert_int_equal(whole_file_write(folder, "a.csv", "x", 1, &err), HFSAD_ERROR_IO);
    assert_int_equal(count_entries(folder), 2);
}

static void folders(void **state)
{
    (void)state;
    hfsad_error err = {0};
    put("file", "x");
    const char *good[] = {"", "a", "b/c/d", "e//f/", "a/g", "b/../h", "b/c/d"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char path[600];
        strcpy(path, in_folder(good[i]));
        struct stat info;
        const bool there = stat(path, &info) == 0;
        const int before = count_entries(folder);
        assert_int_equal(folder_check(path, &err), HFSAD_OK);
        assert_int_equal(count_entries(folder), before);
        assert_int_equal(stat(path, &info) == 0, there);
        assert_int_equal(folder_make(path, &err), HFSAD_OK);
        assert_int_equal(stat(path, &info), 0);
        assert_true(S_ISDIR(info.st_mode));
    }
    char long_name[400] = "new/";
    memset(long_name + 4, 'x', 300);
    const char *bad[] = {"file", "file/a", "file/a/b", long_name};
    const int before = count_entries(folder);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[600];
        strcpy(path, in_folder(bad[i]));
        assert_int_equal(folder_make(path, &err), HFSAD_ERROR_INPUT);
        assert_non_null(strstr(err.message, bad[i]));
        assert_non_null(strstr(err.message, "give another output folder"));
        if (bad[i] != long_name)
            assert_int_equal(folder_check(path, &err), HFSAD_ERROR_INPUT);
        assert_int_equal(count_entries(folder), before);
    }
}

/* What was made goes again as far as it is empty, what was there stays. */
static void made_folders_go_again(void **state)
{
    (void)state;
    hfsad_error err = {0};
    struct stat info;
    size_t made;
    assert_int_equal(mkdir(in_folder("old"), 0777), 0);
    assert_int_equal(folder_make_new(in_folder("old/a//b/"), &made, &err), HFSAD_OK);
    assert_int_equal(stat(in_folder("old/a/b"), &info), 0);
    folder_unmake(in_folder("old/a//b/"), made);
    assert_int_not_equal(stat(in_folder("old/a"), &info), 0);
    assert_int_equal(stat(in_folder("old"), &info), 0);
    assert_int_equal(folder_make_new(in_folder("old"), &made, &err), HFSAD_OK);
    folder_unmake(in_folder("old"), made);
    assert_int_equal(stat(in_folder("old"), &info), 0);
    assert_int_equal(folder_make_new(in_folder("new/c"), &made, &err), HFSAD_OK);
    put("new/file", "x");
    folder_unmake(in_folder("new/c"), made);
    assert_int_not_equal(stat(in_folder("new/c"), &info), 0);
    assert_content("new/file", "x");
}

/* Only what a process that is no more left of our files. */
static void temporaries_of_the_dead_are_swept(void **state)
{
    (void)state;
    const pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    const pid_t unasked = fork(); /* dead as well, but it keeps its number until we wait for it */
    if (unasked == 0)
        _exit(0);
    siginfo_t ended;
    assert_int_equal(waitid(P_PID, (id_t)unasked, &ended, WEXITED | WNOWAIT), 0);
    char gone[100], alive[100], other[100], zombie[100];
    snprintf(zombie, sizeof zombie, ".a.csv.%ld.tmp", (long)unasked);
    snprintf(gone, sizeof gone, ".a.csv.%ld.tmp", (long)dead);
    snprintf(alive, sizeof alive, ".a.csv.%ld.tmp", (long)getpid());
    snprintf(other, sizeof other, ".b.csv.%ld.tmp", (long)dead);
    const char *const stay[] = {alive,  other, ".a.csv.tmp", ".a.csv..tmp", ".a.csv.0.tmp", ".a.csv.99999999999.tmp",
                                "a.csv"};
    enum { N_STAY = sizeof stay / sizeof *stay };
    for (size_t i = 0; i < N_STAY; i++)
        put(stay[i], "x");
    put(gone, "x");
    put(zombie, "x");
    const char *const names[] = {"c.csv", "a.csv"};
    folder_sweep(folder, names, 2);
    assert_int_equal(count_entries(folder), N_STAY);
    assert_int_not_equal(access(in_folder(gone), F_OK), 0);
    assert_int_not_equal(access(in_folder(zombie), F_OK), 0);
    folder_sweep(in_folder("missing"), names, 2);
    assert_int_equal(waitpid(unasked, NULL, 0), unasked);
}

/* ---- trace ---- */

static void trace_holds_what_it_was_made_for(void **state)
{
    (void)state;
    hfsad_error err = {0};
    trace t;
    hfsad_figures f = {.iteration = UINT64_MAX, .bytes_up = UINT64_MAX, .bytes_down = UINT64_MAX, .tiers = 16};
    double *reals[] = {&f.objective,     &f.consensus_objective, &f.primal_residual, &f.dual_residual,
                       &f.consensus_gap, &f.smoothing_gap,       &f.relative_error,  &f.seconds};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        *reals[i] = -1.7976931348623157e308;
    for (size_t i = 0; i < HFSAD_TIERS_MAX; i++)
        f.primal_tier[i] = f.dual_tier[i] = -2.2250738585072014e-308;
    assert_int_equal(trace_create(&t, 3, HFSAD_TIERS_MAX, true, &err), HFSAD_OK);
    for (int i = 0; i < 3; i++)
        trace_append(&t, &f);
    size_t lines = 0, commas = 0;
    for (size_t i = 0; i < t.length; i++) {
        lines += t.text[i] == '\n';
        commas += t.text[i] == ',';
    }
    assert_int_equal(lines, 4);
    assert_int_equal(commas, 4 * (11 + 32));
    trace_free(&t);
}

static void trace_columns(void **state)
{
    (void)state;
    hfsad_error err = {0};
    trace t;
    const hfsad_figures f = {.iteration = 3,
                             .objective = 0.1,
                             .consensus_objective = 2,
                             .primal_residual = 3,
                             .dual_residual = 4,
                             .consensus_gap = 5,
                             .smoothing_gap = 6,
                             .relative_error = 7,
                             .seconds = 8,
                             .bytes_up = 9,
                             .bytes_down = 10,
                             .tiers = 1,
                             .primal_tier = {11},
                             .dual_tier = {12},
                             .gap_bound = 13};
    const char *expected[] = {
        "iteration,objective,consensus_objective,primal_residual,dual_residual,consensus_gap,smoothing_gap,seconds,"
        "bytes_up,bytes_down,primal_residual_tier1,dual_residual_tier1,gap_bound\n"
        "3,0.10000000000000001,2,3,4,5,6,8,9,10,11,12,13\n",
        "iteration,objective,consensus_objective,primal_residual,dual_residual,consensus_gap,smoothing_gap,seconds,"
        "bytes_up,bytes_down,relative_error,primal_residual_tier1,dual_residual_tier1,gap_bound\n"
        "3,0.10000000000000001,2,3,4,5,6,8,9,10,7,11,12,13\n"};
    for (int truth = 0; truth < 2; truth++) {
        assert_int_equal(trace_create(&t, 1, 1, truth, &err), HFSAD_OK);
        trace_append(&t, &f);
        t.text[t.length] = 0; /* there is room for another row's slack */
        assert_string_equal(t.text, expected[truth]);
        trace_free(&t);
    }
}

static void too_long_a_trace_names_the_remedy(void **state)
{
    (void)state;
    hfsad_error err = {0};
    trace t;
    assert_int_equal(trace_create(&t, UINT64_MAX / 100, 2, false, &err), HFSAD_ERROR_MEMORY);
    assert_non_null(strstr(err.message, "trace_every"));
    trace_free(&t);
}

/* ---- the folder of a run ---- */

static const char data[] = "edge,client,y,x1,x2\n"
                           "e1,a,1,1,0.5\ne1,b,2,0.25,1\ne2,c,0.5,1,1\ne2,d,0.75,-1,2\ne2,f,1,0.5,0.5\n";

typedef struct {
    hfsad_spec *spec;
    hfsad_run *run;
    report *report;
    hfsad_figures figures;
    char out[600];
} fixture;

static void start_run(fixture *x, const char *settings)
{
    hfsad_error err = {0};
    char spec[600];
    put("data.csv", data);
    snprintf(spec, sizeof spec, "data: data.csv\n%s%s",
             !strncmp(settings, "loss:", 5) ? "" : "loss: {kind: quantile, tau: 0.3}\n", settings);
    put("spec.yaml", spec);
    strcpy(x->out, in_folder("out"));
    if (hfsad_spec_load(&x->spec, in_folder("spec.yaml"), &err) || hfsad_spec_check(x->spec, &err) ||
        hfsad_run_create(&x->run, x->spec, 1, &err) || report_create(&x->report, x->run, x->spec, x->out, &err) ||
        folder_make(x->out, &err) || run_measure(x->run, &x->figures, &err))
        fail_msg("%s", err.message);
    report_row(x->report, &x->figures);
}

static void end_run(fixture *x)
{
    report_free(x->report);
    hfsad_run_free(x->run);
    hfsad_spec_free(x->spec);
}

/* The count of lines; every line has the same number of commas. */
static int check_table(const char *name, int columns)
{
    int lines = 0, commas = 0;
    char *text = get(name);
    assert_non_null(text);
    for (const char *p = text; *p; p++) {
        commas += *p == ',';
        if (*p == '\n') {
            assert_int_equal(commas, columns - 1);
            commas = 0;
            lines++;
        }
    }
    free(text);
    return lines;
}

static const cJSON *at(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item)
        fail_msg("summary.json has no %s", key);
    return item;
}

static void files_of_a_run(void **state)
{
    (void)state;
    fixture x = {0};
    hfsad_error err = {0};
    start_run(&x, "run: {iterations: 2}\nlink: {client: {penalty: tv, weight: 3.3}}");
    for (int i = 0; i < 2; i++) {
        hfsad_run_iterate(x.run);
        assert_int_equal(run_measure(x.run, &x.figures, &err), HFSAD_OK);
        report_row(x.report, &x.figures);
        assert_int_equal(report_write(x.report, &x.figures, i ? STOP_ITERATIONS : STOP_RUNNING, &err), HFSAD_OK);
        assert_int_equal(count_entries(x.out), 6);
        assert_int_equal(check_table("out/trace.csv", 15), 3 + i);
        assert_int_equal(check_table("out/model.csv", 3), 1 + 3 + 5);
        assert_int_equal(check_table("out/state.csv", 7), 1 + 2 + 5);
    }
    char *text = get("out/summary.json");
    cJSON *summary = cJSON_Parse(text);
    assert_non_null(summary);
    assert_string_equal(at(summary, "stopped")->valuestring, "iterations");
    assert_int_equal(at(summary, "iterations")->valueint, 2);
    assert_true(at(at(summary, "figures"), "objective")->valuedouble == x.figures.objective);
    assert_int_equal(at(at(summary, "data"), "clients")->valueint, 5);
    assert_int_equal(at(at(at(summary, "data"), "clients_per_edge"), "most")->valueint, 3);
    const cJSON *settings = at(summary, "settings");
    assert_true(at(at(settings, "loss"), "tau")->valuedouble == 0.3);
    assert_true(cJSON_IsNull(at(at(settings, "loss"), "box")));
    assert_null(cJSON_GetObjectItem(at(settings, "loss"), "delta"));
    const cJSON *link = at(at(settings, "link"), "client");
    assert_string_equal(at(link, "penalty")->valuestring, "tv");
    assert_true(at(link, "weight")->valuedouble == 3.3);
    assert_true(at(at(at(settings, "schedule"), "edge"), "alpha")->valuedouble > 0);
    at(at(summary, "theorem_1"), "holds");
    cJSON_Delete(summary);
    free(text);
    end_run(&x);
}

/* The disk fills up at each of the files in turn: the folder stays as the last update left it. */
static void full_disk_keeps_the_old_folder(void **state)
{
    (void)state;
    enum { FILES = 6 };
    static const char *const names[FILES] = {"out/checkpoint.bin", "out/coefficients.csv", "out/model.csv",
                                             "out/state.csv",      "out/trace.csv",        "out/summary.json"};
    fixture x = {0};
    hfsad_error err = {0};
    start_run(&x, "run: {iterations: 50}");
    assert_int_equal(report_write(x.report, &x.figures, STOP_RUNNING, &err), HFSAD_OK);
    char *old[FILES];
    for (int i = 0; i < FILES; i++)
        old[i] = get(names[i]);
    hfsad_run_iterate(x.run);
    for (int i = 0; i < 40; i++)
        report_row(x.report, &x.figures);
    int failures = 0;
    for (rlim_t limit = 100; limit < 20000; limit += limit / 4) {
        limit_file_size(limit);
        const hfsad_status status = report_write(x.report, &x.figures, STOP_RUNNING, &err);
        limit_file_size(RLIM_INFINITY);
        if (!status)
            break;
        failures++;
        assert_int_equal(status, HFSAD_ERROR_IO);
        assert_int_equal(count_entries(x.out), FILES);
        for (int i = 0; i < FILES; i++)
            assert_content(names[i], old[i]);
    }
    assert_in_range(failures, 5, 20);
    for (int i = 0; i < FILES; i++)
        free(old[i]);
    end_run(&x);
}

static void files_that_are_not_wanted(void **state)
{
    (void)state;
    fixture x = {0};
    hfsad_error err = {0};
    start_run(&x, "output: {clients: false, state: false, checkpoint: false}");
    put("out/state.csv", "node,k,last,z1,q1\n");
    put("out/checkpoint.bin", CHECKPOINT_MARK " of an earlier run");
    assert_int_equal(report_write(x.report, &x.figures, STOP_ITERATIONS, &err), HFSAD_OK);
    assert_int_equal(count_entries(x.out), 4);
    put("out/checkpoint.bin", "check\n");
    put("out/state.csv", "state,capital\n"); /* not ours */
    assert_int_equal(report_write(x.report, &x.figures, STOP_ITERATIONS, &err), HFSAD_OK);
    assert_content("out/state.csv", "state,capital\n");
    assert_content("out/checkpoint.bin", "check\n");
    assert_int_equal(check_table("out/model.csv", 3), 1 + 3);
    end_run(&x);
}

static void inputs_are_not_outputs(void **state)
{
    (void)state;
    hfsad_error err = {0};
    static const char *const names[] = {"model.csv", "state.csv", "trace.csv", "summary.json"};
    static const char *const labels[] = {"the spec", "data"};
    char out[600], input[600];
    strcpy(out, in_folder("out"));
    strcpy(input, in_folder("input"));
    const char *const inputs[] = {NULL, input};
    assert_int_equal(report_check_inputs(out, labels, inputs, 2, &err), HFSAD_OK); /* neither exists */
    assert_int_equal(mkdir(out, 0777), 0);
    put("input", "x");
    for (int i = 0; i < 4; i++) {
        char output[600];
        snprintf(output, sizeof output, "%s/out/%s", folder, names[i]);
        put("out/other", "x");
        assert_int_equal(rename(in_folder("out/other"), output), 0);
        assert_int_equal(report_check_inputs(out, labels, inputs, 2, &err), HFSAD_OK);
        for (int hard = 0; hard < 2; hard++) {
            assert_int_equal(unlink(input), 0);
            assert_int_equal(hard ? link(output, input) : symlink(output, input), 0);
            assert_int_equal(report_check_inputs(out, labels, inputs, 2, &err), HFSAD_ERROR_INPUT);
            assert_non_null(strstr(err.message, names[i]));
            assert_non_null(strstr(err.message, " is data and would be replaced"));
            assert_non_null(strstr(err.message, "give another output folder"));
        }
        assert_int_equal(unlink(input), 0);
        put("input", "x");
    }
}

/* Overrides are listed as they were given, and a file of any name leaves the summary UTF-8. */
static void summary_of_odd_specs(void **state)
{
    (void)state;
    fixture x = {0};
    hfsad_error err = {0};
    start_run(&x, "loss: {kind: quantile, tau: 0.3, box: 2}\noverrides:\n"
                  "  - {node: e2, prior: {penalty: mcp, gamma: 3}, participation: 0.5}\n"
                  "  - {node: \"e1/*\", loss: {box: none}, local_steps: 4, link: {weight: auto}}\n");
    free(x.spec->path);
    x.spec->path = strdup("\xff"
                          "a\xe2\x82.\xc3\xa9\xed\xa0\x80.yaml\xc3");
    char *text = summary_text(x.run, x.spec, report_theorem(x.report), &x.figures, STOP_RUNNING);
    cJSON *summary = cJSON_Parse(text);
    assert_non_null(summary);
    assert_string_equal(at(summary, "spec")->valuestring, "?a??.\xc3\xa9???.yaml?");
    char *list = cJSON_PrintUnformatted(at(at(summary, "settings"), "overrides"));
    assert_string_equal(list, "[{\"node\":\"e2\",\"participation\":0.5,\"prior\":{\"penalty\":\"mcp\",\"gamma\":3}},"
                              "{\"node\":\"e1/*\",\"local_steps\":4,\"loss\":{\"box\":\"none\"}}]");
    cJSON_free(list);
    cJSON_Delete(summary);
    free(text);
    assert_int_equal(err.status, HFSAD_OK);
    end_run(&x);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_printf),
        cmocka_unit_test(whole_numbers),
        IN_FOLDER(file_is_replaced),
        IN_FOLDER(dropped_file_leaves_nothing),
        IN_FOLDER(full_disk_keeps_the_old_file),
        IN_FOLDER(unwritable_place_is_an_error),
        IN_FOLDER(folders),
        IN_FOLDER(made_folders_go_again),
        IN_FOLDER(temporaries_of_the_dead_are_swept),
        cmocka_unit_test(trace_holds_what_it_was_made_for),
        cmocka_unit_test(trace_columns),
        cmocka_unit_test(too_long_a_trace_names_the_remedy),
        IN_FOLDER(files_of_a_run),
        IN_FOLDER(full_disk_keeps_the_old_folder),
        IN_FOLDER(files_that_are_not_wanted),
        IN_FOLDER(inputs_are_not_outputs),
        IN_FOLDER(summary_of_odd_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
