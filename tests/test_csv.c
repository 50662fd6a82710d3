/* Numbers compared with strtod, data sets compared with the written rows, and the messages about invalid files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "data/csv.h"
#include "data/parse_number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- numbers ---- */

static const uint64_t SEED = 20240607;

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* The bits that strtod finds, and the same end. */
static void check_number(const char *text)
{
    double ours = 99, theirs;
    char *end;
    theirs = strtod(text, &end);
    const char *stop = number_parse(text, text + strlen(text), &ours);
    if (stop != end || bits_of(ours) != bits_of(theirs))
        fail_msg("%s: %.17g, strtod %.17g; seed %llu", text, ours, theirs, (unsigned long long)SEED);
}

static double random_bits(rng *r)
{
    for (;;) {
        const uint64_t bits = rng_u64(r->key, r->counter++);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v))
            return v;
    }
}

static void test_printed_doubles(void **state)
{
    (void)state;
    rng r = {.key = rng_key(SEED, 1)};
    char text[64];
    for (int i = 0; i < 600000; i++) {
        const double normal = rng_next_normal(&r), any = random_bits(&r);
        snprintf(text, sizeof text, "%.17g", normal);
        check_number(text);
        snprintf(text, sizeof text, "%.*g", (int)rng_next_below(&r, 25) + 1, normal * pow(10, i % 60 - 30));
        check_number(text);
        snprintf(text, sizeof text, "%.17g", any);
        check_number(text);
        double back;
        assert_non_null(number_parse(text, text + strlen(text), &back));
        assert_true(bits_of(back) == bits_of(any));
    }
}

/* Digits of every length with a point anywhere and exponents around the edges of the quick way. */
static void test_random_strings(void **state)
{
    (void)state;
    rng r = {.key = rng_key(SEED, 2)};
    for (int i = 0; i < 1500000; i++) {
        char text[80];
        size_t n = 0, digits = rng_next_below(&r, 24), point = rng_next_below(&r, 26);
        const uint64_t sign = rng_next_below(&r, 4), zeros = rng_next_below(&r, 8) == 0;
        if (sign < 2)
            text[n++] = sign ? '-' : '+';
        for (size_t k = 0; k <= digits; k++) {
            if (k == point)
                text[n++] = '.';
            text[n++] = zeros && rng_next_below(&r, 4) ? '0' : (char)('0' + rng_next_below(&r, 10));
        }
        if (rng_next_below(&r, 2))
            n += (size_t)snprintf(text + n, 20, "%c%d", i % 2 ? 'e' : 'E',
                                  (int)rng_next_below(&r, i % 5 ? 80 : 700) - (i % 5 ? 40 : 350));
        text[n] = '\0';
        check_number(text);
    }
}

static void check_integer(uint64_t m, int exponent)
{
    char text[64];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)m, exponent);
    check_number(text);
    snprintf(text, sizeof text, "%llu.0e%d", (unsigned long long)m, exponent);
    check_number(text);
    snprintf(text, sizeof text, "%llu.000000000000000000001e%d", (unsigned long long)m, exponent);
    check_number(text);
}

/* Exactly between two doubles, and a little to either side, in as many digits as it takes. */
static void test_halfway(void **state)
{
    (void)state;
    rng r = {.key = rng_key(SEED, 3)};
    char text[1200];
    for (int i = 0; i < 100000; i++) {
        /* 53 bits and a half are an odd number of 54 bits: an integer, over 2^j, and as a multiple of 5^j times 2^t. */
        const uint64_t odd = (UINT64_C(1) << 53 | rng_u64(r.key, r.counter++) >> 11) | 1;
        uint64_t five = 1;
        const int j = (int)rng_next_below(&r, 4), p = (int)rng_next_below(&r, 21);
        for (int k = 0; k < j; k++)
            five *= 5;
        check_integer(odd << j, 0);
        check_integer(odd * five, -j);
        check_integer(odd * five + 1, -j);
        check_integer(odd * five - 1, -j);
        five = 1;
        for (int k = 0; k < p; k++)
            five *= 5;
        const uint64_t least = (UINT64_C(1) << 53) / five, m = (least + 1 + rng_next_below(&r, least - 1)) | 1;
        const uint64_t shifted = m << rng_next_below(&r, (uint64_t)__builtin_clzll(m));
        check_integer(shifted, p);
        check_integer(shifted + 1, p);
        check_integer(shifted - 1, p);
    }
    for (int i = 0; i < 4000; i++) {
        const double v = fabs(random_bits(&r)), next = nextafter(v, DBL_MAX);
        const int shift = next < 1e300 ? 0 : -1;
        /* Where the middle is a long double, printing it gives all of its digits. */
        const long double middle = ((long double)v + (long double)next) / 2;
        snprintf(text, sizeof text, "%.*Le", LDBL_MANT_DIG > 53 ? 1100 : 17, ldexpl(middle, shift));
        check_number(text);
        char *e = strchr(text, 'e');
        e[-1] = '1';
        check_number(text);
    }
}

static void test_edges_of_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0e5",
        "00000000000000000000000000001.5",
        "0.000000000000000000000000000000000000001",
        "1e27",
        "1e28",
        "1e-27",
        "1e-28",
        "9999999999999999999e27",
        "9999999999999999999e-27",
        "18446744073709551615",
        "18446744073709551616",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "5e-324",
        "1.",
        ".5",
        "-.5e1",
        "1e",
        "1e+",
        "2.5x",
        "12345678",
        "1234567812345678",
        "123456781234567:",
        "12345678.12345678/",
        "9007199254740993",
        "9007199254740992.99999999999999999999999999999999999999999999",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_number(texts[i]);
    static const char *const none[] = {"", "-", "+", ".", "-.", "e5", "nan", "inf", "x1", " 1", "--1", ".e1"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        double v;
        assert_null(number_parse(none[i], none[i] + strlen(none[i]), &v));
    }
    double v; /* hexadecimal is the number 0 and a text */
    const char *hexadecimal = "0x10";
    assert_ptr_equal(number_parse(hexadecimal, hexadecimal + 4, &v), hexadecimal + 1);
}

/* Many digits and zeros that an exponent makes up for. */
static void test_long_numbers(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    char *text = malloc(LONG + 64);
    assert_non_null(text);
    memset(text, '0', LONG);
    text[1] = '.';
    snprintf(text + LONG, 64, "15e%d", LONG - 1);
    check_number(text);
    memset(text, '0', LONG);
    text[0] = '7';
    snprintf(text + LONG, 64, "e-%d", LONG);
    check_number(text);
    memset(text, '3', LONG);
    text[1] = '.';
    snprintf(text + LONG, 64, "1e-310");
    check_number(text);
    /* the last of many digits decides */
    memset(text, '0', LONG);
    memcpy(text, "9007199254740993.", 17);
    snprintf(text + LONG, 64, "0");
    check_number(text);
    snprintf(text + LONG, 64, "1");
    check_number(text);
    free(text);
}

/* The end is a wall: nothing beyond it is read as part of the number. */
static void test_number_ends(void **state)
{
    (void)state;
    const char *text = "-12345678.12345678e123";
    for (size_t size = 0; size <= strlen(text); size++) {
        char *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, text, size);
        exact[size] = '\0';
        char *end;
        const double theirs = strtod(exact, &end);
        char *wall = malloc(size ? size : 1); /* no closing 0: a reader beyond the end is caught by the sanitizer */
        assert_non_null(wall);
        memcpy(wall, text, size);
        double v;
        const char *stop = number_parse(wall, wall + size, &v);
        if (end == exact) {
            assert_null(stop);
        } else {
            assert_int_equal(stop - wall, end - exact);
            assert_true(v == theirs);
        }
        free(wall);
        free(exact);
    }
}

/* ---- good files ---- */

static dataset *parsed_bytes(const char *bytes, size_t size)
{
    dataset *d;
    hfsad_error err = {0};
    if (csv_parse(bytes, size, "data.csv", NULL, false, &d, &err))
        fail_msg("refused: %s", err.message);
    return d;
}

static dataset *parsed(const char *text)
{
    return parsed_bytes(text, strlen(text));
}

static void check_small(dataset *d)
{
    char name[64];
    double row[2];
    assert_int_equal(d->M, 2);
    assert_int_equal(d->n_leaves, 2);
    dataset_leaf_name(d, 0, name, sizeof name);
    assert_string_equal(name, "edge 1/anna");
    dataset_leaf_name(d, 1, name, sizeof name);
    assert_string_equal(name, "edge 1/bob");
    dataset_gather(d, d->x, 1, row);
    assert_true(row[0] == -2.5 && row[1] == 3e-4);
    assert_true(d->y[0] == 1 && d->y[1] == 0.5);
    dataset_free(d);
}

/* The same two clients in many ways. */
static void test_ways_to_write(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "edge,client,y,x1,x2\nedge 1,anna,1,2,3\nedge 1,bob,0.5,-2.5,3e-4\n",
        "edge,client,y,x1,x2\nedge 1,anna,1,2,3\nedge 1,bob,0.5,-2.5,3e-4",
        "edge,client,y,x1,x2\r\nedge 1,anna,1,2,3\r\nedge 1,bob,0.5,-2.5,3e-4\r\n",
        "edge,client,y,x1,x2\r\nedge 1,anna,1,2,3\r\nedge 1,bob,0.5,-2.5,3e-4\r",
        "\357\273\277edge,client,y,x1,x2\nedge 1,anna,1,2,3\nedge 1,bob,0.5,-2.5,3e-4\n",
        "edge,client,y,x1,x2\nedge 1,anna,1,2,3\nedge 1,bob,0.5,-2.5,3e-4\n\n\r\n  \n\t",
        "\"edge\",\"client\",y,x1,\"x2\"\n\"edge 1\",\"anna\",1,\"2\",3\n\"edge 1\",bob,\".5\",-2.5,\"3e-4\"\n",
        "edge, client, y, x1, x2\nedge 1, anna, 1 , 2 ,3 \nedge 1 ,\tbob , 0.5, \"-2.5\" ,\" 3e-4 \" \n",
        "x1,client,x2,edge,y\n2,anna,3,edge 1,1\n-2.5,bob,3e-4,edge 1,0.5\n",
        "x1,y,x2,client,edge\n2,1,3,anna,edge 1\n-2.5,.5,0.0003,bob,edge 1\n",
        "y,the answer,client,other,edge\r\n+1,2,anna,3,edge 1\r\n5e-1,-2.50,bob,+3E-04,edge 1",
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        check_small(parsed(ways[i]));
}

static void test_depths(void **state)
{
    (void)state;
    dataset *d = parsed("client,y,x\na,1,1\nb,2,2\n");
    assert_int_equal(d->n_inner, 1);
    assert_int_equal(d->depth, 1);
    assert_int_equal(d->inner[0].n_leaves, 2);
    dataset_free(d);
    d = parsed("edge,client,y,x\nr/e,a,1,1\n,b,2,2\nf,c,3,3\nr,d,4,4\n");
    assert_int_equal(d->n_inner, 4);
    assert_int_equal(d->depth, 3);
    static const char *const names[] = {"b", "r/d", "f/c", "r/e/a"};
    for (size_t i = 0; i < 4; i++) {
        char name[16];
        dataset_leaf_name(d, i, name, sizeof name);
        assert_string_equal(name, names[i]);
    }
    dataset_free(d);
}

/* A client's rows in order of arrival, wherever they stand; weights behind y. */
static void test_several_rows(void **state)
{
    (void)state;
    dataset *d = parsed("edge,client,y,weight,x\ne,a,1,1,10\nf,b,2,0.5,20\ne,a,3,2,30\ne,c,4,1,40\ne,a,5,4,50\n");
    assert_true(d->rows.first && d->rows.weight && !d->x);
    assert_int_equal(d->M, 1);
    assert_int_equal(d->n_leaves, 3);
    assert_int_equal(d->n_rows, 5);
    static const double y[] = {1, 3, 5, 4, 2}, weight[] = {1, 2, 4, 1, 0.5};
    static const size_t first[] = {0, 3, 4, 5};
    for (size_t i = 0; i < 5; i++)
        assert_true(d->rows.y[i] == y[i] && d->rows.x[i] == 10 * y[i] && d->rows.weight[i] == weight[i]);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(d->rows.first[i], first[i]);
    dataset_free(d);
    /* Elsewhere a weight is a feature; and weights of 1 are none. */
    d = parsed("edge,client,y,x,weight\ne,a,1,2,3\ne,a,1,2,4\n");
    assert_int_equal(d->M, 2);
    assert_true(d->rows.first && !d->rows.weight && d->rows.x[3] == 4);
    dataset_free(d);
    d = parsed("y,weight,client,x\n1,1,a,2\n1,1.0,b,2\n");
    assert_int_equal(d->M, 1);
    assert_true(!d->rows.first && d->x);
    dataset_free(d);
    hfsad_error err;
    const char *one = "client,y,x\na,1,2\n";
    assert_int_equal(csv_parse(one, strlen(one), "data.csv", NULL, true, &d, &err), HFSAD_OK);
    assert_true(d->rows.first && d->rows.y[0] == 1 && d->rows.x[0] == 2);
    dataset_free(d);
}

static void in_folder(char path[256], const char *name)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, 256, "%.150s/test_csv_%ld_%s", folder ? folder : "/tmp", (long)getpid(), name);
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Every client in a random edge, 17 digits, through a file; large enough that parts of the mapping are given back. */
static void test_round_trip(void **state)
{
    (void)state;
    enum { ROWS = 30000, M = 21, EDGES = 40 };
    char path[256];
    in_folder(path, "round_trip.csv");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    rng r = {.key = rng_key(SEED, 4)};
    fputs("y,client,x1", file);
    for (int m = 2; m <= M; m++)
        fprintf(file, ",x%d", m);
    fputs(",edge\n", file);
    for (int row = 0; row < ROWS; row++) {
        fprintf(file, "%d,%d", row, row);
        for (int m = 0; m < M; m++)
            fprintf(file, ",%.17g", rng_next_normal(&r));
        fprintf(file, ",edge%d\n", (int)rng_next_below(&r, EDGES));
    }
    assert_int_equal(fclose(file), 0);
    dataset *d;
    hfsad_error err;
    assert_int_equal(dataset_read(&d, path, false, &err), HFSAD_OK);
    unlink(path);
    assert_int_equal(d->n_leaves, ROWS);
    assert_int_equal(d->n_inner, 1 + EDGES);
    size_t *leaf_of = malloc(ROWS * sizeof *leaf_of);
    assert_non_null(leaf_of);
    for (size_t leaf = 0; leaf < ROWS; leaf++)
        leaf_of[(size_t)d->y[leaf]] = leaf;
    r.counter = 0;
    for (size_t row = 0; row < ROWS; row++) {
        double x[M];
        char name[32], expected[32];
        dataset_gather(d, d->x, leaf_of[row], x);
        for (int m = 0; m < M; m++)
            assert_true(x[m] == rng_next_normal(&r));
        snprintf(expected, sizeof expected, "edge%d/%zu", (int)rng_next_below(&r, EDGES), row);
        dataset_leaf_name(d, leaf_of[row], name, sizeof name);
        assert_string_equal(name, expected);
    }
    free(leaf_of);
    dataset_free(d);
}

/* ---- bad files ---- */

typedef struct {
    const char *text;
    const char *says[4];
} bad_file;

static void expect(const char *message, const char *part)
{
    if (!strstr(message, part))
        fail_msg("\"%s\" does not say \"%s\"", message, part);
}

static void check_refused(const char *bytes, size_t size, const char *const *says)
{
    dataset *d = (dataset *)&d;
    hfsad_error err = {0};
    /* a block of exactly this size: the sanitizer sees what reads beyond it */
    char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    const hfsad_status status = csv_parse(exact, size, "data.csv", NULL, false, &d, &err);
    free(exact);
    if (status != HFSAD_ERROR_INPUT)
        fail_msg("status %d for %s", (int)status, bytes);
    assert_null(d);
    assert_int_equal(err.status, HFSAD_ERROR_INPUT);
    for (size_t i = 0; i < 4 && says[i]; i++)
        expect(err.message, says[i]);
}

static const bad_file bad_headers[] = {
    {"", {"data.csv: ", "empty", "edge,client,y,x1"}},
    {"\xef\xbb\xbf", {"data.csv: ", "empty"}},
    {"\xef\xbb\xbfz", {"data.csv:1: ", "no column"}},
    {"\n\n", {"data.csv:1: ", "blank", "edge,client,y,x1"}},
    {"  \r\nedge,client,y,x1\n", {"data.csv:1: ", "blank"}},
    {"edge,client,y,x1\n", {"data.csv:2: ", "no row", "at least one for every client"}},
    {"edge,client,y,x1", {"data.csv:2: ", "no row"}},
    {"edge,client,y,x1\n\n\n", {"data.csv:2: ", "no row"}},
    {"edge,y,x1\ne,1,2\n", {"data.csv:1: ", "no column \"client\"", "\"edge,y,x1\"", "expected edge,client,y,x1"}},
    {"edge,client,x1\ne,c,2\n", {"data.csv:1: ", "no column \"y\"", "expected edge,client,y,x1"}},
    {"1.5,2,3\n", {"data.csv:1: ", "no column \"client\"", "\"1.5,2,3\""}},
    {"edge;y;x1\ne;1;2\n", {"data.csv:1: ", "no column \"client\"", "\"edge;y;x1\""}},
    {"edge,Client,y,x1\ne,c,1,2\n", {"data.csv:1: column 2 (Client): ", "\"client\"", "lower case"}},
    {"Edge,client,y,x1\n1,c,1,2\n", {"data.csv:1: column 1 (Edge): ", "\"edge\"", "lower case"}},
    {"edge,client,y\ne,c,1\n", {"data.csv:1: ", "feature", "edge,client,y,x1"}},
    {"edge,client,y,weight\ne,c,1,1\n", {"data.csv:1: ", "feature", "edge,client,y,x1"}},
    {"edge,client,y,x1,x2,x1\n", {"data.csv:1: column 6 (x1): ", "duplicate", "column 4", "rename or remove"}},
    {"edge,client,y,x1,client\n", {"data.csv:1: column 5 (client): ", "duplicate", "column 2"}},
    {"edge,client,y,x1,\"x1\"\n", {"data.csv:1: column 5 (x1): ", "duplicate", "column 4"}},
    {"edge,client,y,,x1\n", {"data.csv:1: column 4 (): ", "empty name", "a name for every column"}},
    {"edge,client,y,x1,\n", {"data.csv:1: column 5 (): ", "empty name"}},
    {"edge,client,y,\"x1\n", {"data.csv:1: column 4: ", "quote", "not closed"}},
    {"edge,client,y,x\"1\n", {"data.csv:1: column 4: ", "quote inside"}},
    {"edge,client,y,\"x1\"a\n", {"data.csv:1: column 4: ", "after the closing quote", "expected a comma"}},
    {"\xff\xfe"
     "e",
     {"data.csv:1: ", "UTF-16", "UTF-8"}},
    {"edge,client,y,x1\re,a,1,2\re,b,1,2\r", {"data.csv:1: ", "end in CR alone", "LF"}},
};

#define HEAD "edge,client,y,x1,x2\ne,a,1,2,3\n"

static const bad_file bad_rows[] = {
    {HEAD "e,b,1,2\n", {"data.csv:3: ", "4 fields, expected 5", "column 5 (x2) is missing"}},
    {HEAD "e\n", {"data.csv:3: ", "1 fields, expected 5", "column 2 (client) is missing"}},
    {HEAD "e,b,1,2", {"data.csv:3: ", "4 fields, expected 5"}},
    {HEAD "e,b,1,2,3,4\n", {"data.csv:3: ", "6 fields, expected 5", "column 6 (\"4\")"}},
    {HEAD "e,b,1,2,3,\n", {"data.csv:3: ", "6 fields, expected 5", "column 6 (\"\")"}},
    {HEAD "e,b,1,2,3,4,\"5,6\",7\n", {"data.csv:3: ", "8 fields, expected 5"}},
    {HEAD "e,b,1,two,3\n", {"data.csv:3: column 4 (x1): ", "\"two\" is not a number", "expected a number such as"}},
    {HEAD "e,b,yes,2,3\n", {"data.csv:3: column 3 (y): ", "\"yes\" is not a number"}},
    {HEAD "e,b,1,2,3x\n", {"data.csv:3: column 5 (x2): ", "\"3x\" is not a number"}},
    {HEAD "e,b,1,2 3,4\n", {"data.csv:3: column 4 (x1): ", "\"2 3\" is not a number"}},
    {HEAD "e,b,1,0x10,4\n", {"data.csv:3: column 4 (x1): ", "\"0x10\" is not a number"}},
    {HEAD "e,b,1,\"2,5\",4\n", {"data.csv:3: column 4 (x1): ", "\"2,5\" is not a number"}},
    {HEAD "e,b,1,2e,4\n", {"data.csv:3: column 4 (x1): ", "\"2e\" is not a number"}},
    {HEAD "e,b,1,,4\n", {"data.csv:3: column 4 (x1): ", "empty field (a hole)", "expected a number"}},
    {HEAD "e,b,1,2,\n", {"data.csv:3: column 5 (x2): ", "empty field"}},
    {HEAD "e,b,1,2,", {"data.csv:3: column 5 (x2): ", "empty field"}},
    {HEAD "e,b,, 2,3\n", {"data.csv:3: column 3 (y): ", "empty field"}},
    {HEAD "e,b,1,\" \",3\n", {"data.csv:3: column 4 (x1): ", "empty field"}},
    {HEAD "e,b,1,nan,3\n", {"data.csv:3: column 4 (x1): ", "\"nan\" is not finite", "expected a finite number"}},
    {HEAD "e,b,-Inf,2,3\n", {"data.csv:3: column 3 (y): ", "\"-Inf\" is not finite"}},
    {HEAD "e,b,1,2,NaN\n", {"data.csv:3: column 5 (x2): ", "\"NaN\" is not finite"}},
    {HEAD "e,b,1,1e999,3\n", {"data.csv:3: column 4 (x1): ", "\"1e999\" is too large", "expected a finite number"}},
    {HEAD "e,b,1,2,-1e309\n", {"data.csv:3: column 5 (x2): ", "\"-1e309\" is too large"}},
    {HEAD "e,b,1,1e200,3\n", {"data.csv:3: ", "features of b", "scale them down"}},
    {HEAD "\ne,b,1,2,3\n", {"data.csv:3: ", "blank line", "remove it"}},
    {HEAD "e,b,1,2,3\n  \r\n\ne,c,1,2,3\n", {"data.csv:4: ", "blank line"}},
    {HEAD "e,\"b,1,2,3\n", {"data.csv:3: column 2 (client): ", "quote", "not closed on its line"}},
    {HEAD "e,\"b\nc\",1,2,3\n", {"data.csv:3: column 2 (client): ", "not closed on its line"}},
    {HEAD "e,\"b\"c,1,2,3\n", {"data.csv:3: column 2 (client): ", "after the closing quote"}},
    {HEAD "e,b\"c,1,2,3\n", {"data.csv:3: column 2 (client): ", "quote inside a field"}},
    {HEAD "e,b\rc,1,2,3\n", {"data.csv:3: column 2 (client): ", "b\\x0dc", "control character"}},
    {HEAD "e,b\xff,1,2,3\n", {"data.csv:3: column 2 (client): ", "b\\xff", "is not UTF-8"}},
    {HEAD "\xc3,b,1,2,3\n", {"data.csv:3: column 1 (edge): ", "is not UTF-8"}},
    {HEAD "e,b,1e200,2,3\n", {"data.csv:3: column 3 (y): y of b is 1e+200", "scale y down"}},
    {HEAD "e,b,-1.1e150,2,3\n", {"data.csv:3: column 3 (y): y of b is -1.1e+150"}},
    {HEAD "e,,1,2,3\n", {"data.csv:3: column 2 (client): ", "empty field", "the client's name"}},
    {HEAD "e,\"b,c\",1,2,3\n", {"data.csv:3: column 2 (client): ", "\"b,c\" holds a comma"}},
    {HEAD "e,\"b\"\"c\",1,2,3\n", {"data.csv:3: column 2 (client): ", "holds a quote"}},
    {HEAD "e,b/c,1,2,3\n", {"data.csv:3: column 2 (client): ", "holds a slash"}},
    {HEAD "e,cloud,1,2,3\n", {"data.csv:3: column 2 (client): ", "root's name"}},
    {HEAD "cloud,b,1,2,3\n", {"data.csv:3: column 1 (edge): ", "root's name"}},
    {HEAD "e//f,b,1,2,3\n", {"data.csv:3: column 1 (edge): ", "\"e//f\" has an empty name"}},
    {"client,y,weight,x\na,1,1,2\na,1,0,2\n",
     {"data.csv:3: column 3 (weight): ", "a is 0", "above 0", "remove the row"}},
    {"client,y,weight,x\na,1,-1,2\n", {"data.csv:2: column 3 (weight): ", "a is -1"}},
    {"client,y,weight,x\na,1,inf,2\n", {"data.csv:2: column 3 (weight): ", "\"inf\" is not finite"}},
    {HEAD ",e,1,2,3\n", {"data.csv:3: e is a client (line 3) and an edge (line 2)", "rename"}},
    {HEAD "e,b,1,2345678901234567890123456789012345678901234567890x,3\n",
     {"(x1): \"2345678901234567890123456789012345678901...\" is not"}},
};

static void test_bad_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++)
        check_refused(bad_headers[i].text, strlen(bad_headers[i].text), bad_headers[i].says);
}

static void test_bad_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_rows / sizeof *bad_rows; i++)
        check_refused(bad_rows[i].text, strlen(bad_rows[i].text), bad_rows[i].says);
}

static void test_nul_bytes(void **state)
{
    (void)state;
    static const char number[] = HEAD "e,b,1,2\0,3\n", name[] = HEAD "e,b\0,1,2,3\n", head[] = "edge,cl\0,y,x\n";
    static const char *const in_number[] = {"data.csv:3: column 4 (x1): ", "\"2\\x00\" is not a number", NULL};
    static const char *const in_name[] = {"data.csv:3: column 2 (client): ", "\"b\\x00\"", "control", NULL};
    static const char *const in_head[] = {"data.csv:1: column 2 (cl\\x00): ", "NUL", NULL};
    check_refused(number, sizeof number - 1, in_number);
    check_refused(name, sizeof name - 1, in_name);
    check_refused(head, sizeof head - 1, in_head);
}

/* A message is one line however much is wrong, and no error need be asked for. */
static void test_long_messages(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    char *text = malloc(3 * LONG), *name = malloc(LONG + 1);
    assert_true(text && name);
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    const int size = snprintf(text, 3 * LONG, "edge,client,y,%s\n%s,c,1,2\n", name, name);
    dataset *d;
    hfsad_error err;
    assert_int_equal(csv_parse(text, (size_t)size, name, NULL, false, &d, &err), HFSAD_ERROR_INPUT);
    expect(err.message, ":2: column 1 (edge): ");
    expect(err.message, "is too long");
    expect(err.message, "not \"cloud\"");
    assert_int_equal(csv_parse(text, (size_t)size, name, NULL, false, &d, NULL), HFSAD_ERROR_INPUT);
    free(text);
    free(name);
}

static void test_files(void **state)
{
    (void)state;
    dataset *d;
    hfsad_error err;
    char path[256], folder[256];
    in_folder(path, "file.csv");
    assert_int_equal(dataset_read(&d, path, false, &err), HFSAD_ERROR_INPUT);
    expect(err.message, path);
    expect(err.message, "No such file");
    expect(err.message, "edge,client,y,x1");
    in_folder(folder, "folder");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(dataset_read(&d, folder, false, &err), HFSAD_ERROR_INPUT);
    expect(err.message, "an empty folder; expected clients' files (.csv, ");
    rmdir(folder);
    write_bytes(path, "", 0);
    assert_int_equal(dataset_read(&d, path, false, &err), HFSAD_ERROR_INPUT);
    expect(err.message, "the file is empty");
    write_bytes(path, HEAD, strlen(HEAD));
    if (geteuid() != 0) {
        assert_int_equal(chmod(path, 0), 0);
        assert_int_equal(dataset_read(&d, path, false, &err), HFSAD_ERROR_INPUT);
        expect(err.message, "Permission denied");
        assert_int_equal(chmod(path, 0600), 0);
    }
    assert_int_equal(dataset_read(&d, path, false, &err), HFSAD_OK);
    assert_int_equal(d->n_leaves, 1);
    dataset_free(d);
    unlink(path);
    /* bytes without end: refused at the first block with a NUL */
    assert_int_equal(dataset_read(&d, "/dev/zero", false, &err), HFSAD_ERROR_INPUT);
    expect(err.message, "NUL");
}

static void test_pipe(void **state)
{
    (void)state;
    char path[256];
    in_folder(path, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE *file = fopen(path, "wb");
        int bad = !file || fputs("edge,client,y,x1\n", file) < 0;
        for (int row = 0; row < 100000 && !bad; row++)
            bad = fprintf(file, "e,c%d,%d,0.5\n", row, row) < 0;
        _exit(bad || fclose(file) != 0);
    }
    dataset *d;
    hfsad_error err;
    const hfsad_status status = dataset_read(&d, path, false, &err);
    int code;
    waitpid(child, &code, 0);
    unlink(path);
    assert_int_equal(status, HFSAD_OK);
    assert_int_equal(code, 0);
    assert_int_equal(d->n_leaves, 100000);
    dataset_free(d);
}

/* ---- files of numbers ---- */

static void check_vector(const char *text, const char *const *says)
{
    double values[3] = {0};
    hfsad_error err = {0};
    const hfsad_status status = vector_parse(values, 3, text, strlen(text), "truth.csv", "truth", &err);
    if (says) {
        assert_int_equal(status, HFSAD_ERROR_INPUT);
        for (size_t i = 0; i < 4 && says[i]; i++)
            expect(err.message, says[i]);
    } else {
        assert_int_equal(status, HFSAD_OK);
        assert_true(values[0] == 1 && values[1] == -0.25 && values[2] == 3e4);
    }
}

static void test_vectors(void **state)
{
    (void)state;
    static const char *const good[] = {"1\n-0.25\n3e4\n", "1\r\n-.25\r\n3e4",
                                       "\xef\xbb\xbf 1 \n\t-0.25\n\"3e4\"\n\n \n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        check_vector(good[i], NULL);
    static const bad_file bad[] = {
        {"", {"truth.csv: ", "empty", "one number per line"}},
        {"1\n2\n", {"truth.csv: ", "2 numbers for truth, expected 3"}},
        {"1\n2\n3\n4\n5\n", {"truth.csv: ", "5 numbers for truth, expected 3"}},
        {"1\r2\r3\r", {"truth.csv:1: ", "end in CR alone"}},
        {"\n", {"truth.csv: ", "0 numbers for truth, expected 3"}},
        {"1\n\n2\n3\n", {"truth.csv:2: ", "blank line"}},
        {"w\n1\n2\n3\n", {"truth.csv:1: column 1 (truth): ", "\"w\" is not a number", "expected a number"}},
        {"1\n2\nnan\n", {"truth.csv:3: column 1 (truth): ", "\"nan\" is not finite"}},
        {"1\n2\n1e400\n", {"truth.csv:3: column 1 (truth): ", "\"1e400\" is too large"}},
        {"1,2,3\n", {"truth.csv:1: ", "3 fields, expected 1"}},
        {"1\n2\n3\nfour\n", {"truth.csv:4: column 1 (truth): ", "\"four\""}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_vector(bad[i].text, bad[i].says);
}

static void test_vector_files(void **state)
{
    (void)state;
    char path[256];
    double values[2];
    hfsad_error err;
    in_folder(path, "truth.csv");
    assert_int_equal(vector_read(values, 2, path, "truth", &err), HFSAD_ERROR_INPUT);
    expect(err.message, path);
    expect(err.message, "No such file");
    expect(err.message, "the numbers of truth, one per line");
    write_bytes(path, "0.1\n0.2\n", 8);
    assert_int_equal(vector_read(values, 2, path, "truth", &err), HFSAD_OK);
    assert_true(values[0] == 0.1 && values[1] == 0.2);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printed_doubles), cmocka_unit_test(test_random_strings),
        cmocka_unit_test(test_halfway),         cmocka_unit_test(test_edges_of_numbers),
        cmocka_unit_test(test_long_numbers),    cmocka_unit_test(test_number_ends),
        cmocka_unit_test(test_ways_to_write),   cmocka_unit_test(test_depths),
        cmocka_unit_test(test_several_rows),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bad_headers),     cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_nul_bytes),       cmocka_unit_test(test_long_messages),
        cmocka_unit_test(test_files),           cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_vectors),         cmocka_unit_test(test_vector_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
