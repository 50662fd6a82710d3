/*
 * The groups that clients keep (net/kept_groups.h): they outlast the process, another run's are not taken, a damaged
 * file is refused. Which questions about groups a client answers (net/warden.h).
 */
#include "tools.h"

#include "net/kept_groups.h"
#include "net/warden.h"
#include "personal/mixture.h"

enum { COUNT = 5, RUN = 77 };

static void fill(double *v, double first)
{
    for (size_t i = 0; i < COUNT; i++)
        v[i] = first / (double)(i + 3);
}

static void outlasts_the_process(void **state)
{
    (void)state;
    double v[COUNT], other[COUNT];
    hfsad_error err;
    kept_groups k = {0}, again = {0};
    fill(v, 1);
    fill(other, -5);
    ok(kept_groups_get(&again, folder, RUN, COUNT, &err), &err); /* nothing is there */
    assert_int_equal(again.count, 0);
    ok(kept_groups_put(&k, folder, RUN, v, COUNT, &err), &err);
    ok(kept_groups_put(&k, folder, RUN, other, COUNT, &err), &err); /* the last one counts */
    ok(kept_groups_get(&again, folder, RUN, COUNT, &err), &err);
    assert_int_equal(again.count, COUNT);
    assert_memory_equal(again.numbers, other, sizeof other);
    kept_groups_free(&again);
    ok(kept_groups_get(&again, folder, RUN + 1, COUNT, &err), &err);
    assert_int_equal(again.count, 0);
    assert_int_equal(kept_groups_get(&again, folder, RUN, COUNT - 1, &err), HFSAD_ERROR_INPUT); /* too long */
    kept_groups_free(&k);
    ok(kept_groups_put(&k, NULL, RUN, v, COUNT, &err), &err);
    assert_memory_equal(k.numbers, v, sizeof v);
    kept_groups_free(&k);
}

/* Every bit, and every length. */
static void damage_is_refused(void **state)
{
    (void)state;
    enum { SIZE = 16 + 8 * COUNT + 4 };
    unsigned char bytes[SIZE];
    double v[COUNT];
    hfsad_error err;
    kept_groups k = {0};
    fill(v, 2);
    ok(kept_groups_put(&k, folder, RUN, v, COUNT, &err), &err);
    kept_groups_free(&k);
    const char *path = in_folder(KEPT_GROUPS_NAME);
    FILE *f = fopen(path, "r");
    assert_int_equal(fread(bytes, 1, SIZE, f), SIZE);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    for (size_t i = 0; i < 8 * SIZE + SIZE; i++) {
        const size_t length = i < 8 * SIZE ? SIZE : i - 8 * SIZE;
        if (i < 8 * SIZE)
            bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        f = fopen(path, "w");
        assert_int_equal(fwrite(bytes, 1, length, f), length);
        fclose(f);
        if (i < 8 * SIZE)
            bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_int_equal(kept_groups_get(&k, folder, RUN, COUNT, &err), HFSAD_ERROR_INPUT);
        assert_int_equal(k.count, 0);
    }
}

/* In a sum over a cohort the weights of one client would stand alone. */
static void weights_of_one_client_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool members, sizes;
    } cases[] = {
        {"personal: groups\n", true, true},
        {"personal: groups\noutput: {clients: false}\n", false, true},
        {"personal: groups\nprivacy: {aggregation: secure}\n", false, true},
        {"personal: none\n", false, false},
    };
    enum { M = 3, GROUPS = 2 };
    const double share[GROUPS] = {0.5, 0.5}, w0[GROUPS * M] = {0};
    const mixture_question asked = {.count = 1, .now = {.K = GROUPS, .T = 1, .share = share, .w = w0}};
    double numbers[40];
    assert_true(mixture_count(&asked, M) <= sizeof numbers / sizeof *numbers);
    mixture_pack(&asked, M, numbers);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsad_spec *spec;
        hfsad_error err;
        char whole[200];
        warden *w = calloc(1, sizeof *w);
        snprintf(whole, sizeof whole, "data: x\nloss: {kind: squared}\n%s", cases[i].text);
        ok(spec_load_text(&spec, "spec.yaml", whole, strlen(whole), &err), &err);
        inquiry_question q = {.sums = 2, .values = numbers, .count = mixture_count(&asked, M)};
        q.round = 1;
        q.kind = INQUIRY_GROUPS + MIXTURE_MEMBERS;
        assert_int_equal(!warden_judge(w, spec, &q, M, true), cases[i].members);
        q.round = 2;
        q.kind = INQUIRY_GROUPS + MIXTURE_SIZES;
        assert_int_equal(!warden_judge(w, spec, &q, M, true), cases[i].sizes);
        q.round = 3;
        q.kind = INQUIRY_GROUPS + MIXTURE_KINDS;
        assert_non_null(warden_judge(w, spec, &q, M, true));
        hfsad_spec_free(spec);
        warden_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outlasts_the_process),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(weights_of_one_client_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
