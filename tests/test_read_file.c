/* Paths joined, and whole files read, mapped and written: ordinary ones, none, folders, FIFOs, too large ones. */
#include "tools.h"

#include "base/read_file.h"
#include "base/whole_file.h"

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

static void put_whole(const char *text, mode_t mode, hfsad_status (*end)(whole_file *, hfsad_error *),
                      hfsad_status wanted)
{
    hfsad_error err;
    whole_file f;
    ok(whole_file_open(&f, in_folder("key"), mode, &err), &err);
    whole_file_put(&f, text, strlen(text));
    if (end != whole_file_end)
        ok(whole_file_close(&f, &err), &err);
    assert_int_equal(end(&f, &err), wanted);
}

/* A file of its owner's alone, one that is not replaced, and nothing else is left in the folder. */
static void files_written_whole(void **state)
{
    (void)state;
    struct stat info;
    char *text;
    size_t size;
    put_whole("one", 0600, whole_file_place, HFSAD_OK);
    assert_int_equal(stat(in_folder("key"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    put_whole("two", 0600, whole_file_place, HFSAD_ERROR_IO);
    assert_int_equal(file_read(in_folder("key"), 100, &text, &size), 0);
    assert_string_equal(text, "one");
    free(text);
    put_whole("three", 0644, whole_file_end, HFSAD_OK);
    assert_int_equal(file_read(in_folder("key"), 100, &text, &size), 0);
    assert_string_equal(text, "three");
    free(text);
    assert_int_equal(unlink(in_folder("key")), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_are_empty_are_left_out),
        cmocka_unit_test(whole_files),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(files_written_whole),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
