/*
 * The decoder of checkpoints, on arbitrary bytes, and on a valid checkpoint in which the input changes words and the
 * checksum is recomputed, so that the code after the checksum is reached. A run is restored, or refused with one line
 * and left unchanged.
 */
#include "out/checkpoint.h"
#include "run/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void make_data(const char *path)
{
    FILE *f = fopen(path, "w");
    check(f != NULL);
    fputs("edge,client,y,x1,x2\ne,a,1,1,2\ne,a,2,0,1\nf,b,1,3,1\n", f);
    check(fclose(f) == 0);
}

/* Made once: a small run, and its checkpoint. */
static struct {
    hfsad_run *run;
    unsigned char *bytes;
    size_t size;
} good;

static void make_good(void)
{
    static const char text[] = "data: data.csv\nloss: {kind: quantile}\nrun: {participation: {client: 0.5}}\n"
                               "overrides: [{node: f, participation: 0.5}]\n";
    char folder[] = "/tmp/hfsad-fuzz-XXXXXX", path[100];
    hfsad_spec *spec;
    check(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/data.csv", folder);
    make_data(path);
    char spec_path[100];
    snprintf(spec_path, sizeof spec_path, "%s/spec.yaml", folder);
    check(!spec_load_text(&spec, spec_path, text, sizeof text - 1, NULL));
    check(!hfsad_run_create(&good.run, spec, 1, NULL));
    hfsad_spec_free(spec);
    unlink(path);
    hfsad_run_iterate(good.run);
    snprintf(path, sizeof path, "%s/c.bin", folder);
    check(!hfsad_run_save(good.run, path, NULL));
    FILE *f = fopen(path, "rb");
    good.bytes = malloc(1 << 16);
    check(f && good.bytes);
    good.size = fread(good.bytes, 1, 1 << 16, f);
    fclose(f);
    unlink(path);
    rmdir(folder);
}

static void try_bytes(const unsigned char *bytes, size_t size)
{
    hfsad_error err = {0};
    hfsad_figures figures;
    checkpoint c;
    hfsad_status status = checkpoint_parse(&c, bytes, size, "fuzz.bin", &err);
    if (!status)
        status = checkpoint_restore(&c, good.run, &err);
    checkpoint_close(&c);
    if (status) {
        check(status == HFSAD_ERROR_INPUT && err.status == status && strchr(err.message, '\n') == NULL);
        check(strncmp(err.message, "fuzz.bin ", 9) == 0);
        return;
    }
    run_measure(good.run, &figures, NULL);
    check(figures.iteration == sim_iteration(good.run->sim));
}

static void seal(unsigned char *bytes, size_t size)
{
    const uint64_t sum = words_sum(bytes, size / WORD_BYTES - 1);
    for (int i = 0; i < WORD_BYTES; i++)
        bytes[size - WORD_BYTES + (size_t)i] = (unsigned char)(sum >> (8 * i));
}

/* The input is a list of changes, four bytes each: a place in 16 bits, an operation, an operand. */
static void change(unsigned char *bytes, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i += 4) {
        const size_t at = (data[i] + 256U * data[i + 1]) % (good.size - WORD_BYTES);
        switch (data[i + 2] % 4) {
        case 0:
            bytes[at] = data[i + 3];
            break;
        case 1:
            bytes[at] ^= data[i + 3];
            break;
        case 2: /* a word from elsewhere: keys, counts and texts change places */
            memmove(bytes + at / WORD_BYTES * WORD_BYTES,
                    bytes + (data[i + 3] * 64U) % (good.size - WORD_BYTES) / WORD_BYTES * WORD_BYTES, WORD_BYTES);
            break;
        case 3:
            memset(bytes + at / WORD_BYTES * WORD_BYTES, data[i + 3] % 2 ? 0xff : 0, WORD_BYTES);
            break;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!good.run)
        make_good();
    try_bytes(data, size);
    unsigned char *bytes = malloc(good.size);
    check(bytes != NULL);
    memcpy(bytes, good.bytes, good.size);
    try_bytes(bytes, good.size);
    change(bytes, data, size);
    seal(bytes, good.size);
    try_bytes(bytes, good.size);
    free(bytes);
    return 0;
}
