/* Checkpoints: a resumed run has the bits of an uninterrupted one; a damaged checkpoint, or one of another run, is
 * refused. */
#include "tools.h"

#include "out/checkpoint.h"
#include "run/save.h"
#include "spec/pack.h"
#include "spec/table.h"

#include <unistd.h>

static const uint64_t SEED = 20260807;

/* data.csv with so many rows per client, and truth.csv. change: 0, or the row of which a number, a name or a y is
 * another. */
typedef struct {
    size_t clients, rows, M;
    int change;
    double scale; /* of every x */
} shape;

enum { SAME, OTHER_X, OTHER_Y, OTHER_NAME, OTHER_EDGE };

static void make_data(shape s)
{
    rng r = {rng_key(SEED, s.rows), 0};
    FILE *f = fopen(in_folder("data.csv"), "w");
    assert_non_null(f);
    fputs("edge,client,y", f);
    for (size_t m = 1; m <= s.M; m++)
        fprintf(f, ",x%zu", m);
    const size_t n = s.clients * s.rows;
    for (size_t i = 0; i < n; i++) {
        const size_t client = i % s.clients;
        const bool here = i == n - 1;
        fprintf(f, "\nedge%zu,%s%zu,%.17g", here && s.change == OTHER_EDGE ? 9 : client % 3,
                here && s.change == OTHER_NAME ? "d" : "c", client,
                exponential(&r) + (here && s.change == OTHER_Y ? 1e-9 : 0));
        for (size_t m = 0; m < s.M; m++)
            fprintf(f, ",%.17g", s.scale * rng_next_normal(&r) + (here && m == 0 && s.change == OTHER_X ? 1e-9 : 0));
    }
    fputc('\n', f);
    assert_int_equal(fclose(f), 0);
}

static void make_truth(size_t M, double first)
{
    FILE *f = fopen(in_folder("truth.csv"), "w");
    assert_non_null(f);
    for (size_t m = 0; m < M; m++)
        fprintf(f, "%g\n", m ? 1.0 : first);
    assert_int_equal(fclose(f), 0);
}

static hfsad_spec *spec_of(const char *text)
{
    char whole[2000];
    hfsad_error err = {0};
    hfsad_spec *spec;
    const int n = snprintf(whole, sizeof whole, "data: data.csv\n%s\n", text);
    ok(spec_load_text(&spec, in_folder("spec.yaml"), whole, (size_t)n, &err), &err);
    return spec;
}

static hfsad_run *run_of(const char *text, unsigned threads)
{
    hfsad_error err = {0};
    hfsad_run *run;
    hfsad_spec *spec = spec_of(text);
    ok(hfsad_run_create(&run, spec, threads, &err), &err);
    hfsad_spec_free(spec);
    return run;
}

static unsigned char *bytes_of(const char *path, size_t *size)
{
    unsigned char *bytes = malloc(1 << 20);
    FILE *f = fopen(path, "rb");
    assert_non_null(bytes);
    assert_non_null(f);
    *size = fread(bytes, 1, 1 << 20, f);
    assert_true(*size < 1 << 20);
    fclose(f);
    return bytes;
}

/* A checkpoint of a run after so many iterations. */
static unsigned char *saved(const char *text, int iterations, size_t *size)
{
    hfsad_error err = {0};
    hfsad_run *run = run_of(text, 1);
    for (int i = 0; i < iterations; i++)
        hfsad_run_iterate(run);
    ok(hfsad_run_save(run, in_folder("c.bin"), &err), &err);
    hfsad_run_free(run);
    return bytes_of(in_folder("c.bin"), size);
}

static void keep(unsigned char **all, const void *bytes, size_t count, size_t *used)
{
    assert_true(*used + count <= 1 << 20);
    memcpy(*all + *used, bytes, count);
    *used += count;
}

static void append(void *to, const void *bytes, size_t count)
{
    unsigned char **next = to;
    memcpy(*next, bytes, count);
    *next += count;
}

static void words_come_back(void **state)
{
    (void)state;
    rng r = {rng_key(SEED, 1), 0};
    for (int turn = 0; turn < 300; turn++) {
        unsigned char bytes[4000], *next = bytes;
        unsigned char direct[4000];
        const size_t room = below(&r, 40);
        memset(direct, 0x5a, sizeof direct);
        word_writer w = {.put = append, .to = &next}, counted = {0}, written = {.memory = direct, .room = room};
        const uint64_t word = rng_u64(r.key, r.counter++);
        const size_t length = below(&r, 40), reals = below(&r, 20);
        double v[20], got[20];
        for (size_t i = 0; i < 20; i++)
            v[i] = i == 3 ? NAN : i == 4 ? -0.0 : log_uniform(&r, 1e-300, 1e300);
        for (word_writer *one = &w; one; one = one == &w ? &counted : one == &counted ? &written : NULL) {
            words_put(one, word);
            words_put_text(one, "A text of forty bytes, or a part of it..", length);
            words_put_text(one, NULL, 0);
            words_put_reals(one, v, reals);
        }
        assert_int_equal(w.count * WORD_BYTES, next - bytes);
        assert_true(counted.count == w.count && written.count == w.count);
        if (w.count <= room) /* otherwise the caller takes more memory and begins again */
            assert_memory_equal(direct, bytes, w.count * WORD_BYTES);
        for (size_t i = room * WORD_BYTES; i < sizeof direct; i++)
            assert_int_equal(direct[i], 0x5a);
        assert_true(words_sum(bytes, w.count) == w.sum);
        word_reader in = {bytes, w.count, false};
        size_t found;
        assert_true(words_get(&in) == word);
        const char *text = words_get_text(&in, &found);
        assert_int_equal(found, length);
        assert_memory_equal(text, "A text of forty bytes, or a part of it..", length);
        assert_null(words_get_text(&in, &found));
        words_get_reals(&in, got, reals);
        assert_memory_equal(got, v, reals * sizeof *v);
        assert_true(!in.bad && !in.left);
        words_get(&in);
        assert_true(in.bad);
        for (size_t bit = 0; bit < (size_t)(next - bytes) * 8; bit += 1 + below(&r, 50)) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (words_sum(bytes, w.count) == w.sum)
                fail_msg("seed %llu turn %d: bit %zu is not in the sum", (unsigned long long)SEED, turn, bit);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

static bool none_passes(const char *key)
{
    (void)key;
    return false;
}

/* Every setting at a value of its own comes back through words, and is the one difference to the rest. */
static void specs_come_back(void **state)
{
    (void)state;
    static const char *const values[] = {"0.7",  "3",     "true",   "false", "scad", "quantile", "paper",
                                         "mean", "exact", "client", "tv",    "l1",   "some text"};
    hfsad_error err = {0};
    setting_at at;
    size_t changed = 0;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            hfsad_spec *plain = spec_of("loss: {kind: squared}\noverrides: [{node: edge1, link: {weight: 2}}]");
            hfsad_spec *spec, *back;
            ok(spec_copy(&spec, plain, &err), &err);
            char keys[200] = "";
            assert_int_equal(spec_differences(plain, spec, none_passes, keys, sizeof keys), 0);
            if (!hfsad_spec_set(spec, at.key, values[v], &err) &&
                spec_differences(plain, spec, none_passes, keys, sizeof keys)) {
                assert_string_equal(keys, at.key);
                unsigned char *bytes = malloc(1 << 16), *next = bytes;
                word_writer w = {.put = append, .to = &next};
                spec_pack(&w, spec);
                word_reader in = {bytes, w.count, false};
                ok(spec_unpack(&back, &in, "words", &err), &err);
                *keys = 0;
                assert_int_equal(spec_differences(back, spec, none_passes, keys, sizeof keys), 0);
                assert_string_equal(back->path, spec->path);
                assert_string_equal(back->folder, spec->folder);
                assert_int_equal(in.left, 0);
                hfsad_spec_free(back);
                free(bytes);
                changed++;
            }
            hfsad_spec_free(plain);
            hfsad_spec_free(spec);
        }
    assert_in_range(changed, 40, 400); /* hardly any key takes none of the values */
    hfsad_spec *a = spec_of("loss: {kind: squared}\noverrides: [{node: edge1, link: {weight: 2}}]");
    hfsad_spec *b = spec_of("loss: {kind: squared}\noverrides: [{node: edge1, link: {weight: 3}}]");
    char keys[200] = "";
    assert_int_equal(spec_differences(a, b, none_passes, keys, sizeof keys), 1);
    assert_string_equal(keys, "overrides");
    hfsad_spec_free(a);
    hfsad_spec_free(b);
}

/* Everything that one can see of a run, but the seconds. */
static unsigned char *seen(hfsad_run *run, size_t *size)
{
    unsigned char *all = malloc(1 << 20);
    hfsad_figures f;
    hfsad_error err = {0};
    size_t count, used = 0;
    assert_non_null(all);
    memset(&f, 0, sizeof f);
    ok(run_measure(run, &f, &err), &err);
    f.seconds = 0;
    double *numbers = whole_state(run->sim, run->data, &count);
    keep(&all, numbers, count * sizeof *numbers, &used);
    keep(&all, &f, sizeof f, &used);
    const bool converged = hfsad_run_converged(run);
    keep(&all, &converged, sizeof converged, &used);
    free(numbers);
    *size = used;
    return all;
}

static const struct {
    const char *text;
    size_t rows;
} kinds[] = {
    {"loss: {kind: phase-retrieval, box: 5}\npreset: paper\ntruth: truth.csv", 1},
    {"loss: {kind: phase-retrieval}\nrun: {edge_rounds: 3, local_steps: 2}\noutput: {clients: false}", 1},
    {"loss: {kind: quantile, tau: 0.3}\nprior: {cloud: {penalty: l1, lambda: 0.1}}", 4},
    {"loss: {kind: quantile, tau: 0.3, solver: linearized}\nrun: {edge_rounds: 2}", 4},
    {"loss: {kind: phase-retrieval}\nrun: {edge_rounds: 2}", 3},
    {"loss: {kind: squared}\nrun: {edge_rounds: 2}", 5},
    {"loss: {kind: absolute}\n"
     "run: {participation: {client: 0.5, edge: 0.6, at_least_every: 3}, edge_rounds: 2, trace_every: 2,"
     " stop: {absolute: 5}}",
     1},
    {"loss: {kind: huber}\nrun: {participation: {client: 0.5}}", 4},
    {"loss: {kind: squared}\noverrides: [{node: edge1, prior: {penalty: mcp, lambda: 0.2, gamma: 3}}, "
     "{node: 'edge0/*', loss: {kind: absolute}, local_steps: 2}, {node: edge2/c2, participation: 0.5}]",
     1},
};

static void resumed_runs_have_the_same_bits(void **state)
{
    (void)state;
    rng r = {rng_key(SEED, 2), 0};
    enum { ITERATIONS = 12 };
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        hfsad_error err = {0};
        size_t size, other;
        make_data((shape){11, kinds[kind].rows, 4, SAME, 1});
        make_truth(4, 2);
        hfsad_run *run = run_of(kinds[kind].text, 1);
        for (int i = 0; i < ITERATIONS; i++)
            hfsad_run_iterate(run);
        unsigned char *whole = seen(run, &size);
        hfsad_run_free(run);
        run = run_of(kinds[kind].text, 2);
        unsigned cuts = 0;
        for (int i = 0; i < ITERATIONS; i++) {
            hfsad_run_iterate(run);
            if (below(&r, 3))
                continue;
            hfsad_figures f;
            ok(run_measure(run, &f, &err), &err);
            ok(hfsad_run_save(run, in_folder("c.bin"), &err), &err);
            hfsad_run_free(run);
            run = run_of(kinds[kind].text, ++cuts % 2 + 1U);
            ok(hfsad_run_resume(run, in_folder("c.bin"), &err), &err);
        }
        unsigned char *parts = seen(run, &other);
        assert_int_equal(size, other);
        if (memcmp(whole, parts, size) != 0)
            fail_msg("seed %llu: kind %zu has other bits where it was resumed", (unsigned long long)SEED, kind);
        free(whole);
        free(parts);
        hfsad_run_free(run);
    }
}

static const char *const small = "loss: {kind: quantile}\nrun: {seed: 3}";

static void every_bit_counts(void **state)
{
    (void)state;
    hfsad_error err = {0};
    size_t size, before_size, after_size;
    make_data((shape){3, 1, 1, SAME, 1});
    unsigned char *bytes = saved(small, 3, &size);
    hfsad_run *run = run_of(small, 1);
    unsigned char *before = seen(run, &before_size);
    checkpoint c;
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (checkpoint_parse(&c, bytes, size, "c.bin", &err) != HFSAD_ERROR_INPUT || strncmp(err.message, "c.bin ", 6))
            fail_msg("bit %zu of %zu: %s", bit, size * 8, err.message);
        checkpoint_close(&c);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *part = malloc(cut ? cut : 1); /* so that the address sanitizer sees the byte behind it */
        assert_non_null(part);
        memcpy(part, bytes, cut);
        assert_int_equal(checkpoint_parse(&c, part, cut, "c.bin", &err), HFSAD_ERROR_INPUT);
        checkpoint_close(&c);
        free(part);
    }
    FILE *f = fopen(in_folder("c.bin"), "wb");
    assert_non_null(f);
    fwrite(bytes, 1, size - 1, f);
    fclose(f);
    assert_int_equal(hfsad_run_resume(run, in_folder("c.bin"), &err), HFSAD_ERROR_INPUT);
    assert_int_equal(hfsad_run_resume(run, in_folder("missing.bin"), &err), HFSAD_ERROR_INPUT);
    assert_int_equal(hfsad_run_resume(run, folder, &err), HFSAD_ERROR_INPUT);
    unsigned char *after = seen(run, &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, after_size);
    ok(checkpoint_parse(&c, bytes, size, "c.bin", &err), &err);
    ok(checkpoint_restore(&c, run, &err), &err);
    checkpoint_close(&c);
    assert_int_equal(sim_iteration(run->sim), 3);
    hfsad_run_free(run);
    free(before);
    free(after);
    free(bytes);
}

static void refused(const char *text, const char *word)
{
    hfsad_error err = {0};
    hfsad_run *run = run_of(text, 1);
    const hfsad_status status = hfsad_run_resume(run, in_folder("c.bin"), &err);
    if (status != HFSAD_ERROR_INPUT || !strstr(err.message, word) || strchr(err.message, '\n'))
        fail_msg("'%s' is missing in: %s", word, err.message);
    assert_int_equal(sim_iteration(run->sim), 0);
    hfsad_run_free(run);
}

static void other_runs_are_refused(void **state)
{
    (void)state;
    size_t size;
    hfsad_error err = {0};
    const shape s = {6, 2, 2, SAME, 1};
    make_data(s);
    make_truth(2, 2);
    free(saved("loss: {kind: quantile}\ntruth: truth.csv", 2, &size));
    refused("loss: {kind: absolute}\ntruth: truth.csv", " for loss.kind;");
    refused("loss: {kind: quantile}\ntruth: truth.csv\nrun: {seed: 2, trace_every: 5}",
            "other values for run.seed, run.trace_every;");
    refused("loss: {kind: quantile}\ntruth: truth.csv\noutput: {clients: false}", "output.clients");
    refused("loss: {kind: quantile}\ntruth: truth.csv\noverrides: [{node: edge1, participation: 0.5}]", "overrides");
    refused("loss: {kind: quantile}", "truth");
    hfsad_run *run = run_of("loss: {kind: quantile}\ntruth: truth.csv\nrun: {iterations: 7, stop: {relative: 1e-3}}\n"
                            "output: {state: false, every_seconds: 3, checkpoint: false}",
                            1);
    ok(hfsad_run_resume(run, in_folder("c.bin"), &err), &err);
    hfsad_run_free(run);
    make_truth(2, 3);
    refused("loss: {kind: quantile}\ntruth: truth.csv", "truth");
    make_truth(2, 2);
    for (int change = OTHER_X; change <= OTHER_NAME; change++) {
        make_data((shape){s.clients, s.rows, s.M, change, 1});
        refused("loss: {kind: quantile}\ntruth: truth.csv", "data");
    }
    make_data((shape){6, 1, 2, SAME, 1});
    free(saved("loss: {kind: quantile}\ntruth: truth.csv", 2, &size));
    for (int change = OTHER_X; change <= OTHER_EDGE; change++) {
        make_data((shape){6, 1, 2, change, 1});
        refused("loss: {kind: quantile}\ntruth: truth.csv", "data");
    }
}

/* Data in other units look the same once they are standardised, but their models do not. */
static void other_units_are_refused(void **state)
{
    (void)state;
    static const char *const text = "loss: {kind: quantile}\nfeatures: {standardize: true}";
    size_t size;
    make_data((shape){6, 2, 2, SAME, 1});
    free(saved(text, 2, &size));
    make_data((shape){6, 2, 2, SAME, 2});
    refused(text, "data");
}

/* A write of the folder between two rows of the trace measures, when the clock says so; the stop must not notice, nor
 * that the run was resumed since its tolerances were first met. */
static void nothing_moves_the_stop(void **state)
{
    (void)state;
    static const char *const text = "loss: {kind: absolute}\nrun: {iterations: 1000, trace_every: 3, edge_rounds: 2, "
                                    "participation: {client: 0.5, at_least_every: 4}, stop: {absolute: 0.02}}";
    rng r = {rng_key(SEED, 3), 0};
    make_data((shape){8, 1, 2, SAME, 1});
    uint64_t ends[4];
    for (int turn = 0; turn < 4; turn++) {
        hfsad_error err = {0};
        hfsad_figures f;
        hfsad_run *run = run_of(text, 1);
        uint64_t i = 0;
        bool stopped = false;
        while (!stopped && ++i < 1000) {
            hfsad_run_iterate(run);
            if (i % 3 == 0 || (turn && below(&r, 2)))
                ok(run_measure(run, &f, &err), &err);
            stopped = i % 3 == 0 && hfsad_run_converged(run);
            if (turn < 2 || stopped)
                continue;
            ok(hfsad_run_save(run, in_folder("c.bin"), &err), &err);
            hfsad_run_free(run);
            run = run_of(text, 1);
            ok(hfsad_run_resume(run, in_folder("c.bin"), &err), &err);
        }
        ends[turn] = i;
        hfsad_run_free(run);
        assert_in_range(i, 8, 999);
        if (ends[turn] != ends[0])
            fail_msg("seed %llu: stopped at %llu instead of %llu", (unsigned long long)SEED,
                     (unsigned long long)ends[turn], (unsigned long long)ends[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_come_back),
        cmocka_unit_test(specs_come_back),
        cmocka_unit_test(resumed_runs_have_the_same_bits),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(other_runs_are_refused),
        cmocka_unit_test(other_units_are_refused),
        cmocka_unit_test(nothing_moves_the_stop),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
