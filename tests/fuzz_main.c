/*
 * Runs a fuzz target once on the empty input and once on every file given, or found in a folder given: the corpus
 * as an ordinary test, with any compiler.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t inputs;

static void fail(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail(path);
    uint8_t *data = NULL;
    size_t size = 0, capacity = 0, got = 0;
    do {
        if (size == capacity) {
            capacity = capacity == 0 ? 4096 : 2 * capacity;
            uint8_t *grown = realloc(data, capacity);
            if (grown == NULL)
                fail(path);
            data = grown;
        }
        got = fread(data + size, 1, capacity - size, file);
        size += got;
    } while (got > 0);
    if (ferror(file))
        fail(path);
    fclose(file);
    /* A block of exactly this size, so that the address sanitizer sees the first byte beyond it. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL)
        fail(path);
    memcpy(exact, data, size);
    free(data);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    inputs++;
}

static void replay(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        if (errno != ENOTDIR)
            fail(path);
        replay_file(path);
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        int length = snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof name) {
            errno = ENAMETOOLONG;
            fail(path);
        }
        replay_file(name);
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%zu inputs\n", inputs);
    return 0;
}
