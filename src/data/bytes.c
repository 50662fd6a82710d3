/*
 * A regular file is mapped. Parts that have been read are unmapped on the way, so that the file does not count as
 * memory in use. As with every mapping, the process ends (SIGBUS) if another process shortens the file while it is
 * read.
 */
#define _GNU_SOURCE /* madvise, pipe2, environ */
#include "data/bytes.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RELEASE_BYTES = 1 << 20, /* bytes that are unmapped at a time */
    READ_BYTES = 1 << 20,
};

/* Input that cannot be mapped is kept in memory; this is the upper limit on its size. */
static const size_t STREAM_MOST = (size_t)4 << 30;

void bytes_close(file_bytes *f)
{
    free(f->block);
    if (!f->mapping)
        return;
    if (f->gone > 0)
        munmap(f->mapping, f->gone);
    if (f->kept < f->size)
        munmap(f->mapping + f->kept, f->size - f->kept);
}

static hfsad_status read_stream(int file, file_bytes *f, const char *path, bool text, hfsad_error *err)
{
    for (;;) {
        if (f->size > STREAM_MOST)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.*s: more than %zu bytes from something other than a regular file; save it as a file",
                             NAME_SHOWN, path, STREAM_MOST);
        if (!alloc_grow((void **)&f->block, &f->block_capacity, f->size + READ_BYTES, 1))
            return error_memory(err, f->size + READ_BYTES, path);
        f->bytes = f->block;
        const ssize_t got = read(file, f->block + f->size, READ_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, HFSAD_ERROR_INPUT, "%.*s: cannot be read: %s", NAME_SHOWN, path, strerror(errno));
        f->size += (size_t)got;
        if (got == 0 || (text && memchr(f->block + f->size - got, '\0', (size_t)got)))
            return HFSAD_OK;
    }
}

/* The program that writes the contents of a compressed file to its standard output; NULL: the file is not compressed.
 * As in tar, the library needs no decoder of its own. */
static const char *decoder_of(int file)
{
    static const struct {
        const char *program, *magic;
        size_t length;
    } kinds[] = {{"gzip", "\x1f\x8b", 2}, {"zstd", "\x28\xb5\x2f\xfd", 4}};
    char head[4];
    const ssize_t got = pread(file, head, sizeof head, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (got >= (ssize_t)kinds[i].length && memcmp(head, kinds[i].magic, kinds[i].length) == 0)
            return kinds[i].program;
    return NULL;
}

static int start_decoder(const char *program, int file, int to, pid_t *child)
{
    char *const arguments[] = {(char *)(uintptr_t)program, "-dcq", NULL};
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    if (!(failed = posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO)) &&
        !(failed = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO)) &&
        !(failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)))
        failed = posix_spawnp(child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static hfsad_status decode(const char *program, int file, file_bytes *f, const char *path, bool text, hfsad_error *err)
{
    int ends[2], result = 0;
    pid_t child;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(err, HFSAD_ERROR_IO, "%.*s: cannot be read: %s", NAME_SHOWN, path, strerror(errno));
    const int failed = start_decoder(program, file, ends[1], &child);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "%.*s: is compressed, and the program %s does not start: %s; install it, or decompress the file",
            NAME_SHOWN, path, program, strerror(failed));
    }
    const hfsad_status status = read_stream(ends[0], f, path, text, err);
    close(ends[0]);
    while (waitpid(child, &result, 0) < 0 && errno == EINTR)
        ;
    if (!status && result != 0 && !(WIFSIGNALED(result) && WTERMSIG(result) == SIGPIPE))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.*s: %s cannot decompress it: the file is damaged or cut short; copy it again", NAME_SHOWN,
                         path, program);
    return status;
}

static hfsad_status load(int file, file_bytes *f, const char *path, bool text, const char *expected, hfsad_error *err)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: cannot be read: %s", NAME_SHOWN, path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: is a folder; expected %s", NAME_SHOWN, path, expected);
    const char *decoder = S_ISREG(info.st_mode) ? decoder_of(file) : NULL;
    if (decoder)
        return decode(decoder, file, f, path, text, err);
    if (!S_ISREG(info.st_mode) || info.st_size <= 0 || (uintmax_t)info.st_size > SIZE_MAX / 2)
        return read_stream(file, f, path, text, err); /* files in /proc have the size 0 */
    const size_t size = (size_t)info.st_size;
    void *mapping = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapping == MAP_FAILED)
        return read_stream(file, f, path, text, err);
    posix_madvise(mapping, size, POSIX_MADV_SEQUENTIAL);
    *f = (file_bytes){.bytes = mapping, .size = size, .mapping = mapping};
    return HFSAD_OK;
}

hfsad_status bytes_open(file_bytes *f, const char *path, bool text, const char *expected, hfsad_error *err)
{
    *f = (file_bytes){.bytes = ""};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: cannot be opened: %s; expected %s", NAME_SHOWN, path,
                         strerror(errno), expected);
    const hfsad_status status = load(file, f, path, text, expected, err);
    close(file);
    return status;
}

void bytes_release(file_bytes *f, const char *body, const char *at)
{
    const size_t read = (size_t)(at - f->bytes);
    if (!f->mapping || read < f->kept + RELEASE_BYTES)
        return;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (f->gone == 0) /* done once: the first page stays, so that f->gone is never 0 afterwards */
        f->gone = f->kept = ((size_t)(body - f->bytes) / page + 1) * page;
    const size_t keep = read / page * page;
    if (keep > f->kept && munmap(f->mapping + f->kept, keep - f->kept) == 0)
        f->kept = keep;
}

void bytes_forget(const file_bytes *f)
{
    if (f->mapping && f->gone == 0)
        (void)madvise(f->mapping, f->size, MADV_DONTNEED); /* posix_madvise has no effect here */
}

/* Names of binary formats that users of pandas and Excel often try; NULL: none of these. */
static const char *binary_table(const char *text, size_t size)
{
    static const struct {
        const char *begin, *kind;
    } known[] = {{"PAR1", "a Parquet file"}, {"ARROW1", "a Feather file"}, {"PK\x03\x04", "an Excel or zip file"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size >= strlen(known[i].begin) && memcmp(text, known[i].begin, strlen(known[i].begin)) == 0)
            return known[i].kind;
    return NULL;
}

hfsad_status text_begin(const char **at, const char *end, const char *name, const char *expected, hfsad_error *err)
{
    if (end - *at >= 3 && memcmp(*at, "\xef\xbb\xbf", 3) == 0)
        *at += 3;
    const size_t size = (size_t)(end - *at);
    if (size == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: the file is empty; expected %s", NAME_SHOWN, name, expected);
    if (size >= 2 && (memcmp(*at, "\xff\xfe", 2) == 0 || memcmp(*at, "\xfe\xff", 2) == 0))
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s:1: text in UTF-16; save it as UTF-8", NAME_SHOWN, name);
    const char *kind = binary_table(*at, size);
    if (kind)
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "%.*s: %s, not text; save it as CSV, such as in Python by pandas' read_parquet, read_feather or "
            "read_excel and to_csv",
            NAME_SHOWN, name, kind);
    /* Looks at the first line only, if there is one. */
    const char *cr = memchr(*at, '\n', size) ? NULL : memchr(*at, '\r', size);
    if (cr && end - cr > 1)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.*s:1: the lines end in CR alone; save the file with LF or CRLF line ends", NAME_SHOWN,
                         name);
    return HFSAD_OK;
}
