/*
 * checkpoint.bin: everything that a run needs to continue to the same bits. It is self-contained: the other files of
 * the folder, older or newer, are rewritten from it.
 *
 * A sequence of words (base/words.h): a mark, the version of the format, the number of words, the program's version,
 * the settings (spec/pack.h), fingerprints of data and truth, the name of the start, seconds, the trace, the state
 * (run/save.h), and the checksum of all these. An addition to the state increases the version of the format.
 */
#ifndef HFSAD_OUT_CHECKPOINT_H
#define HFSAD_OUT_CHECKPOINT_H

#include "base/whole_file.h"
#include "base/words.h"
#include "run/handle.h"

#define CHECKPOINT_NAME "checkpoint.bin"
/* What the file starts with. */
#define CHECKPOINT_MARK "hfsadchk"

/* Where there is none to write. */
#define CHECKPOINT_NO_STATE "algorithm: a baseline has no state to go on from; only hfsad can be saved and resumed"

/* trace: the rows that an uninterrupted run would have, NULL for none. The end of f checks. */
void checkpoint_write(whole_file *f, const hfsad_run *run, const char *trace, size_t trace_length);

/* A checkpoint that was read; all zero: none. */
typedef struct {
    char *name; /* of the file, for messages */
    void *mapping;
    size_t mapped;
    hfsad_spec *spec; /* with which the run was made */
    uint64_t data_print, truth_print;
    const char *start_kind, *trace; /* not closed by a 0; NULL: none */
    size_t start_length, trace_length;
    double seconds;
    uint64_t iteration;
    word_reader state;
} checkpoint;

/* Error if the file is not a checkpoint, has another version, or is cut or changed in any bit. */
hfsad_status checkpoint_open(checkpoint *c, const char *path, hfsad_error *err);
/* The same for bytes in memory, which must outlive c. */
hfsad_status checkpoint_parse(checkpoint *c, const void *bytes, size_t size, const char *name, hfsad_error *err);
void checkpoint_close(checkpoint *c);

/* Refuses a spec that would give other iterates or another trace, naming the keys. Other numbers in data and truth are
 * found by checkpoint_restore, whatever their files are called. */
hfsad_status checkpoint_check_spec(const checkpoint *c, const hfsad_spec *spec, hfsad_error *err);
/* The same of a run, with its data and truth. */
hfsad_status checkpoint_check_run(const checkpoint *c, hfsad_run *run, hfsad_error *err);
/* Puts a run of such a spec into the state; on failure it is as it was. */
hfsad_status checkpoint_restore(const checkpoint *c, hfsad_run *run, hfsad_error *err);

#endif
