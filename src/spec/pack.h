/* A spec as words, for the checkpoint, and the comparison of two specs. Every function walks the table of settings. */
#ifndef HFSAD_SPEC_PACK_H
#define HFSAD_SPEC_PACK_H

#include "base/words.h"
#include "spec/settings.h"

hfsad_status spec_copy(hfsad_spec **copy, const hfsad_spec *spec, hfsad_error *err);

/* Writes all settings with their keys, the overrides, and the spec's path, folder and base. */
void spec_pack(word_writer *w, const hfsad_spec *spec);
/* Restores the spec and checks the range of every value; `name` is the source in messages. */
hfsad_status spec_unpack(hfsad_spec **spec, word_reader *r, const char *name, hfsad_error *err);

/* A hash below 2^52 for every setting and one for the overrides, spec_prints_count in all; equal for equal specs. 0:
 * `passed` accepts the key. */
size_t spec_prints_count(void);
void spec_prints(const hfsad_spec *spec, bool (*passed)(const char *key), double *prints);
/* Appends the keys whose hashes differ; returns their number. */
size_t spec_prints_differ(const double *a, const double *b, char *keys, size_t size);

/* Appends the keys whose values differ, such as "run.seed, overrides", to keys of the given size, without those that
 * `passed` accepts; returns their number. */
size_t spec_differences(const hfsad_spec *a, const hfsad_spec *b, bool (*passed)(const char *key), char *keys,
                        size_t size);

#endif
