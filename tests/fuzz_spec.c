/*
 * Arbitrary bytes as a spec file, and as a setting of hfsad_spec_set if they have the form key=value: a valid spec, or
 * one line that says what is wrong.
 */
#include "spec/settings.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "fuzz_spec: %s\n", what);
        abort();
    }
}

static void check_outcome(hfsad_status status, const hfsad_error *err)
{
    expect(status == HFSAD_OK || status == HFSAD_ERROR_INPUT, "unexpected status");
    if (status) {
        expect(err->status == status, "the error's status is not the one returned");
        expect(err->message[0] && !strchr(err->message, '\n'), "the message is not one line");
        expect(!strncmp(err->message, "fuzz.yaml", 9) || strchr(err->message, '='), "it names no place");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hfsad_spec *spec = NULL;
    hfsad_error err = {0};
    hfsad_status status = spec_load_text(&spec, "fuzz.yaml", size ? (const char *)data : "", size, &err);
    expect((status == HFSAD_OK) == (spec != NULL), "a spec and an error, or neither");
    if (!status)
        status = hfsad_spec_check(spec, &err);
    check_outcome(status, &err);
    if (!spec)
        expect(spec_create(&spec, "fuzz.yaml", &err) == HFSAD_OK, "no defaults");

    char *text = malloc(size + 1);
    expect(text != NULL, "no memory");
    memcpy(text, size ? (const char *)data : "", size);
    text[size] = 0;
    char *equals = strchr(text, '=');
    if (equals) {
        *equals = 0;
        status = hfsad_spec_set(spec, text, equals + 1, &err);
        if (!status)
            status = hfsad_spec_check(spec, &err);
        check_outcome(status, &err);
    }
    free(text);
    hfsad_spec_free(spec);
    return 0;
}
