/* NPY, NPZ and LIBSVM in memory: the messages about bytes that are invalid, cut short or changed. */
#include "formats.h"

#include "data/csv.h"
#include "data/npy.h"
#include "data/npz.h"
#include "data/svm.h"

#include <math.h>

typedef hfsad_status (*taker)(intake *, file_bytes *, const char *);

/* own: the file is edge e's client c's. */
static hfsad_status taken(taker take, const char *bytes, size_t size, bool own, dataset **d, hfsad_error *err)
{
    char *exact = malloc(size ? size : 1); /* the sanitizer sees what reads beyond it */
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    file_bytes from = {.bytes = exact, .size = size};
    intake in = {.err = err};
    if (own) {
        in.path = (slice){"e", 1};
        in.client = (slice){"c", 1};
    }
    const hfsad_status status = intake_finish(&in, take(&in, &from, "file"), false, d);
    free(exact);
    return status;
}

static void refused(taker take, blob b, bool own, const char *first, const char *second)
{
    dataset *d;
    hfsad_error err = {0};
    if (taken(take, b.bytes, b.size, own, &d, &err) != HFSAD_ERROR_INPUT)
        fail_msg("accepted, expected \"%s\"", first);
    assert_null(d);
    expect(err.message, first);
    expect(err.message, second);
}

static void test_bad_svm(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says[2];
        bool any; /* who owns the file does not matter */
    } bad[] = {
        {"1 0:2 # e/c\n", {"file:1: column 3: index 0", "counted from 1"}, true},
        {"1 3:2 2:1 # e/c\n", {"file:1: column 7: index 2 after index 3", "increasing"}, true},
        {"1 3:2 3:1 # e/c\n", {"file:1: column 7: index 3 after index 3", "increasing"}, true},
        {"1 1:1 # e/c\n1 4294967295:2 # e/c\n", {"file:2: column 3: the index 4294967295", "at most 4294967294"}, true},
        {"1 99999999999999999999999:2 # e/c\n",
         {"file:1: column 3: the index 99999999999999999999999", "at most"},
         true},
        {"1 3: # e/c\n", {"file:1: column 3: index 3 without a value", "index:value"}, true},
        {"1 3:\n", {"file:1: column 3: index 3 without a value", "index:value"}, true},
        {"1 3:", {"file:1: column 3: index 3 without a value", "index:value"}, true},
        {"1 3", {"file:1: column 3: \"3\" is not a pair", "index:value"}, true},
        {"1 a:3", {"file:1: column 3: \"a:3\" is not a pair", "index:value"}, true},
        {"1 -3:3", {"file:1: column 3: \"-3:3\" is not a pair", "index:value"}, true},
        {"1 3 :3", {"file:1: column 3: \"3\" is not a pair", "index:value"}, true},
        {"1 3:nan # e/c\n", {"file:1: column 5: the value \"nan\" is not finite", "finite"}, true},
        {"1 3:-inf # e/c\n", {"file:1: column 5: the value \"-inf\" is not finite", "finite"}, true},
        {"1 3:1e999 # e/c\n", {"file:1: column 5: the value \"1e999\" is too large", "finite"}, true},
        {"1 3:1x # e/c\n", {"file:1: column 5: the value \"1x\" is not a number", "such as"}, true},
        {"nan 3:1 # e/c\n", {"file:1: column 1: the label \"nan\" is not finite", "finite"}, true},
        {"yes 3:1 # e/c\n", {"file:1: column 1: the label \"yes\" is not a number", "such as"}, true},
        {"\t3:1 # e/c\n", {"file:1: column 2: the label \"3:1\" is not a number", "such as"}, true},
        {"1,2 3:1 # e/c\n", {"file:1: column 1: the label \"1,2\" is not a number", "such as"}, true},
        {"1 qid:3 1:2 # e/c\n", {"file:1: column 3: \"qid:3\"", "ranking"}, true},
        {"1e151 1:2 # e/c\n", {"file:1: column 1 (y): y of c is 1e+151", "scale y down"}, true},
        {"1 7:1e200 # e/c\n", {"file:1: the squares of the features of c", "scale them down"}, true},
        {"", {"file: the file is empty", "LIBSVM"}, true},
        {"\n \n# e/c\n", {"file: no row", "every client"}, true},
        {"1 1:2\n", {"file:1: column 6: no client at the end of the row", "# edge1/client7"}, false},
        {"1 1:2 #\n", {"file:1: column 8: no client at the end of the row", "a folder with a file"}, false},
        {"1 1:2 # e/c\n1 1:2 # \n", {"file:2: column 9: no client", "# edge1/client7"}, false},
        {"1 1:2 # /c\n", {"file:1: column 9: an empty name before the slash", "client7"}, false},
        {"1 1:2 # e//c\n", {"file:1: column 9 (edge): \"e/\" has an empty name", "edge1"}, false},
        {"1 1:2 # e/\n", {"file:1: column 11 (client): empty field", "name"}, false},
        {"1 1:2 # e\n1 1:2 # e/c\n", {"e is a client (line 1) and an edge (line 2)", "rename"}, false},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const blob b = {(char *)(uintptr_t)bad[i].text, strlen(bad[i].text)};
        refused(svm_take, b, false, bad[i].says[0], bad[i].says[1]);
        if (bad[i].any)
            refused(svm_take, b, true, bad[i].says[0], bad[i].says[1]);
    }
}

/* The largest index is the number of features; what that asks of memory is refused where it cannot be counted. */
static void test_svm_limits(void **state)
{
    (void)state;
    dataset *d;
    hfsad_error err;
    const char *text = "\xef\xbb\xbf+1 4294967294:2#e/c\n-1#c\n.5 1:0 # f/c";
    ok(taken(svm_take, text, strlen(text), false, &d, &err), &err);
    assert_int_equal(d->M, 4294967294);
    assert_int_equal(d->n_leaves, 3);
    assert_int_equal(d->rows.start[3], 1);
    assert_int_equal(d->rows.column[0], 4294967293);
    dataset_free(d);
}

static void test_bad_npy(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6};
    static const struct {
        const char *dictionary, *says[2];
    } bad[] = {
        {"{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }", {"big-endian", "a.astype('<f8')"}},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }", {"whole numbers", "a.astype('<f8')"}},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", {"whole numbers", "a.astype('<f8')"}},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }", {"type <f2", "a.astype('<f8')"}},
        {"{'descr': '<c16', 'fortran_order': False, 'shape': (2, 3), }", {"type <c16", "a.astype('<f8')"}},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", {"type |O", "a.astype('<f8')"}},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2, 3), }", {"type [('a'", "a.astype('<f8')"}},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", {"Fortran order", "numpy.ascontiguousarray(a)"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }", {"shape (6,)", "column 0 being y"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (6, 1), }", {"shape (6, 1)", "column 0 being y"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }", {"0 dimensions", "expected 2"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3), }", {"3 dimensions", "expected 2"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }", {"cut short: 48 bytes", "expected 64"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }", {"24 bytes after the numbers", "none"}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", {"24 bytes after the numbers", "none"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         {"do not fit into", "damaged"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551616, 1), }",
         {"not a dictionary", "shape"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3), }", {"not a dictionary", "shape"}},
        {"{'descr': '<f8', 'fortran_order': False, }", {"not a dictionary", "shape"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", {"not a dictionary", "shape"}},
        {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}", {"not a dictionary", "shape"}},
        {"{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 3)}", {"not a dictionary", "shape"}},
        {"{'descr': '<f8' 'fortran_order': False, 'shape': (2, 3)}", {"not a dictionary", "shape"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)} x", {"not a dictionary", "shape"}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3", {"not a dictionary", "shape"}},
        {"['<f8', False, (2, 3)]", {"not a dictionary", "shape"}},
        {"", {"not a dictionary", "shape"}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int version = 1; version <= 3; version++) {
            const blob b = array_blob(version, bad[i].dictionary, x, sizeof x);
            refused(npy_take, b, true, bad[i].says[0], bad[i].says[1]);
            free(b.bytes);
        }
    const blob none = array_blob(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", x, 0);
    refused(npy_take, none, true, "file: no rows", "every client");
    free(none.bytes);
}

/* Cut after every byte, a byte more, other magics and versions, numbers that are not finite. */
static void test_damaged_npy(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6};
    dataset *d;
    hfsad_error err;
    blob b = number_blob(2, 8, 2, 3, x);
    ok(taken(npy_take, b.bytes, b.size, true, &d, &err), &err);
    assert_true(d->n_rows == 2 && d->M == 2 && d->rows.y[1] == 4 && d->rows.x[3] == 6);
    dataset_free(d);
    for (size_t size = 0; size < b.size; size++)
        refused(npy_take, (blob){b.bytes, size}, true, "file: cut short", "");
    b.bytes[b.size] = 0; /* array_blob leaves room for one */
    refused(npy_take, (blob){b.bytes, b.size + 1}, true, "file: 1 bytes after the numbers", "none");
    b.bytes[0] = 'P';
    refused(npy_take, b, true, "does not begin like a NumPy array", "numpy.save");
    b.bytes[0] = (char)0x93;
    b.bytes[6] = 4;
    refused(npy_take, b, true, "format 4.0", "1.0, 2.0 or 3.0");
    b.bytes[6] = 2;
    b.bytes[10] = 1;
    refused(npy_take, b, true, "a header of", "at most");
    free(b.bytes);
    x[5] = NAN;
    b = number_blob(1, 4, 2, 3, x);
    refused(npy_take, b, true, "file: row 2: feature 2 of c is nan", "finite");
    free(b.bytes);
    x[5] = 1;
    x[0] = -INFINITY;
    b = number_blob(1, 8, 2, 3, x);
    refused(npy_take, b, true, "file: row 1: y of c is -inf", "finite");
    free(b.bytes);
}

/* ---- archives ---- */

static const char *const XYW[] = {"X.npy", "y.npy", "weight.npy"};

static void refused_zip(size_t count, const char *const *names, blob *entries, const char *first, const char *second)
{
    for (int deflate = 0; deflate < 2; deflate++) {
        blob copies[4];
        for (size_t i = 0; i < count; i++) {
            copies[i] = (blob){malloc(entries[i].size), entries[i].size};
            assert_non_null(copies[i].bytes);
            memcpy(copies[i].bytes, entries[i].bytes, entries[i].size);
        }
        const blob b = zip_blob(count, names, copies, deflate);
        refused(npz_take, b, true, first, second);
        free(b.bytes);
    }
    for (size_t i = 0; i < count; i++)
        free(entries[i].bytes);
}

static void test_bad_npz(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 2, 3}, zero[] = {1, 0}, hole[] = {1, NAN};
    static const char *const other[] = {"X.npy", "y.npy", "weights.npy"}, *const no_y[] = {"X.npy", "weight.npy"};
    refused_zip(3, other, (blob[]){number_blob(1, 8, 2, 3, x), number_blob(1, 8, 2, 0, y), number_blob(1, 8, 2, 0, y)},
                "file: holds \"weights.npy\"", "no others");
    refused_zip(2, no_y, (blob[]){number_blob(1, 8, 2, 3, x), number_blob(1, 8, 2, 0, y)}, "file: no array y", "X, y");
    refused_zip(1, XYW + 1, (blob[]){number_blob(1, 8, 2, 0, y)}, "file: no array X", "X, y");
    refused_zip(2, XYW, (blob[]){number_blob(1, 8, 2, 3, x), number_blob(1, 8, 3, 0, y)},
                "file: 2 rows in X but 3 numbers in y", "equal numbers");
    refused_zip(2, XYW, (blob[]){number_blob(1, 8, 2, 3, x), number_blob(1, 8, 2, 1, y)}, "file: array y: shape (2, 1)",
                "y.ravel()");
    refused_zip(2, XYW, (blob[]){number_blob(1, 8, 6, 0, x), number_blob(1, 8, 2, 0, y)},
                "file: array X: ", "(rows, features)");
    refused_zip(2, XYW, (blob[]){number_blob(1, 8, 0, 3, x), number_blob(1, 8, 0, 0, y)}, "file: no rows", "every");
    refused_zip(3, XYW, (blob[]){number_blob(1, 8, 2, 3, x), number_blob(1, 8, 2, 0, y), number_blob(1, 8, 2, 0, zero)},
                "file: row 2: the weight of a row of c is 0", "above 0");
    refused_zip(2, XYW, (blob[]){number_blob(1, 8, 2, 3, x), number_blob(1, 8, 2, 0, hole)},
                "file: row 2: y of c is nan", "finite");
    const char *whole = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
    refused_zip(2, XYW, (blob[]){number_blob(1, 8, 2, 3, x), array_blob(1, whole, x, 16)},
                "file: array y: whole numbers", "astype");
    /* What the shape promises and the entry has not. */
    const char *bomb = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3), }";
    refused_zip(2, XYW, (blob[]){array_blob(1, bomb, x, sizeof x), number_blob(1, 8, 2, 0, y)},
                "file: array X: cut short: 48 bytes of numbers", "expected 24000000000000");
}

static void put32(blob b, size_t offset, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        b.bytes[offset + (size_t)i] = (char)(value >> 8 * i & 0xff);
}

static size_t find(blob b, const char *signature)
{
    for (size_t i = 0; i + 4 <= b.size; i++)
        if (memcmp(b.bytes + i, signature, 4) == 0)
            return i;
    fail_msg("no %s", signature);
    return 0;
}

/* A size that the packed bytes cannot make; numbers that are not those packed; every truncation. */
static void test_damaged_npz(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 2};
    for (int deflate = 0; deflate < 2; deflate++) {
        blob b = zip_blob(2, XYW, (blob[]){number_blob(1, 8, 2, 3, x), number_blob(1, 8, 2, 0, y)}, deflate);
        dataset *d;
        hfsad_error err;
        ok(taken(npz_take, b.bytes, b.size, true, &d, &err), &err);
        assert_true(d->n_rows == 2 && d->M == 3 && d->rows.x[5] == 6 && d->rows.y[1] == 2);
        dataset_free(d);
        for (size_t size = 0; size < b.size; size++)
            refused(npz_take, (blob){b.bytes, size}, true, "file: ", "");
        for (size_t i = 0; i < b.size; i++) { /* every byte in turn: refused, or a byte that says nothing */
            b.bytes[i] = (char)(b.bytes[i] ^ 0x55);
            if (taken(npz_take, b.bytes, b.size, true, &d, &err) == HFSAD_OK) {
                assert_true(d->n_rows == 2 && d->M == 3);
                assert_memory_equal(d->rows.x, x, sizeof x);
                assert_memory_equal(d->rows.y, y, sizeof y);
            }
            dataset_free(d);
            b.bytes[i] = (char)(b.bytes[i] ^ 0x55);
        }
        put32(b, find(b, "PK\3\4") + 22, 0x7ffffff0); /* the size in the local header and in the directory */
        put32(b, find(b, "PK\1\2") + 24, 0x7ffffff0);
        refused(npz_take, b, true, "file: the array X claims 2147483632 bytes", "too many");
        free(b.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_svm),     cmocka_unit_test(test_svm_limits), cmocka_unit_test(test_bad_npy),
        cmocka_unit_test(test_damaged_npy), cmocka_unit_test(test_bad_npz),    cmocka_unit_test(test_damaged_npz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
