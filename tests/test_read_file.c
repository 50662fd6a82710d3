/* Paths joined, and whole files read and mapped: ordinary ones, none, folders, FIFOs, too large ones. */
#include "tools.h"

#include "base/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_join(char *joined, const char *wanted)
{
    assert_string_equal(joined, wanted);
    free(joined);
}

static void parts_that_are_empty_are_left_out(void **state)
{
    (void)state;
    check_join(path_join("a", "b"), "a/b");
    check_join(path_join("a", "", "b"), "a/b");
    check_join(path_join("", "b"), "b");
    check_join(path_join("a", ""), "a");
    check_join(path_join("", ""), "");
    check_join(path_join("/", "b"), "//b");
    check_join(path_join("a/b", "c", "d"), "a/b/c/d");
}

/* A file of `size` bytes that differ. */
static void write_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < size; i++)
        fputc((int)(i * 7 + i / 251) & 0xff, f);
    assert_int_equal(fclose(f), 0);
}

static void check_bytes(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        assert_int_equal((unsigned char)bytes[i], (i * 7 + i / 251) & 0xff);
}

static void whole_files(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 65534, 65535, 65536, 65537, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *text;
        void *mapping;
        size_t size;
        write_file(in_folder("file"), sizes[i]);
        assert_int_equal(file_read(in_folder("file"), sizes[i], &text, &size), 0);
        assert_int_equal(size, sizes[i]);
        check_bytes(text, size);
        assert_int_equal(text[size], 0);
        free(text);
        assert_int_equal(file_map(in_folder("file"), &mapping, &size), 0);
        assert_int_equal(size, sizes[i]);
        assert_true((mapping == NULL) == (size == 0));
        check_bytes(mapping, size);
        file_unmap(mapping, size);
        if (sizes[i]) {
            assert_int_equal(file_read(in_folder("file"), sizes[i] - 1, &text, &size), EFBIG);
            assert_null(text);
        }
    }
    unlink(in_folder("file"));
}

static void what_is_no_file(void **state)
{
    (void)state;
    char *text;
    void *mapping;
    size_t size;
    assert_int_equal(file_read(in_folder("none"), 100, &text, &size), ENOENT);
    assert_null(text);
    assert_int_equal(file_map(in_folder("none"), &mapping, &size), ENOENT);
    assert_int_equal(file_read(in_folder("."), 100, &text, &size), EISDIR);
    assert_null(text);
    assert_int_equal(file_map(in_folder("."), &mapping, &size), FILE_NOT_REGULAR);
    assert_null(mapping);
    /* a FIFO without a writer: mapping does not wait for one; with one it can be read */
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(file_map(in_folder("fifo"), &mapping, &size), FILE_NOT_REGULAR);
    const int end = open(in_folder("fifo"), O_RDWR);
    assert_true(end >= 0);
    assert_int_equal(write(end, "abc", 3), 3);
    assert_int_equal(file_read(in_folder("fifo"), 2, &text, &size), EFBIG);
    close(end);
    unlink(in_folder("fifo"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_are_empty_are_left_out),
        cmocka_unit_test(whole_files),
        cmocka_unit_test(what_is_no_file),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
