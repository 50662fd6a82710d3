/* A spec as words, for the checkpoint, and what tells two specs apart. Everything walks the table of settings. */
#ifndef HFSAD_SPEC_PACK_H
#define HFSAD_SPEC_PACK_H

#include "base/words.h"
#include "spec/settings.h"

hfsad_status spec_copy(hfsad_spec **copy, const hfsad_spec *spec, hfsad_error *err);

/* All settings with their keys, the overrides, the spec's path, folder and base. */
void spec_pack(word_writer *w, const hfsad_spec *spec);
/* Restores the spec and checks the range of every value; `name` is the source in messages. */
hfsad_status spec_unpack(hfsad_spec **spec, word_reader *r, const char *name, hfsad_error *err);

/* A number below 2^52 for every setting and one for the overrides, spec_prints_count of them: two specs that agree have
 * the same. 0: `passed` lets the key pass. */
size_t spec_prints_count(void);
void spec_prints(const hfsad_spec *spec, bool (*passed)(const char *key), double *prints);
/* Appends the keys of the prints that differ; returns how many there are. */
size_t spec_prints_differ(const double *a, const double *b, char *keys, size_t size);

/* Appends the keys whose values differ, such as "run.seed, overrides", to keys of the given size, without those that
 * `passed` accepts; returns their number. */
size_t spec_differences(const hfsad_spec *a, const hfsad_spec *b, bool (*passed)(const char *key), char *keys,
                        size_t size);

#endif
