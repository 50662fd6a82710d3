/*
 * checkpoint.bin: everything that a run needs to continue to the same bits. It is self-contained: the other files of
 * the folder, older or newer, are rewritten from it.
 *
 * A sequence of words (base/words.h): a mark, the version of the format, the number of words, the program's version,
 * the settings (spec/pack.h), fingerprints of data and truth, the name of the start, seconds, the trace, the state
 * (run/save.h), and the checksum of all these. Every addition to the state increases the version of the format.
 */
#ifndef HFSAD_OUT_CHECKPOINT_H
#define HFSAD_OUT_CHECKPOINT_H

#include "base/whole_file.h"
#include "base/words.h"
#include "run/handle.h"

#define CHECKPOINT_NAME "checkpoint.bin"
/* First bytes of the file. */
#define CHECKPOINT_MARK "hfsadchk"

/* Message for an algorithm without a state that could be saved. */
#define CHECKPOINT_NO_STATE "algorithm: a baseline has no state to go on from; only hfsad can be saved and resumed"

/* trace: the rows that an uninterrupted run would have; NULL: none. Errors show when f is closed. */
void checkpoint_write(whole_file *f, const hfsad_run *run, const char *trace, size_t trace_length);

/* A checkpoint that was read; all members 0: none. */
typedef struct {
    char *name; /* name of the file, for messages */
    void *mapping;
    size_t mapped;
    hfsad_spec *spec; /* settings of the run that wrote the checkpoint */
    uint64_t data_print, truth_print;
    const char *start_kind, *trace; /* without a terminating 0; NULL: none */
    size_t start_length, trace_length;
    double seconds;
    uint64_t iteration;
    word_reader state;
} checkpoint;

/* An error if the file is not a checkpoint, has another version, is cut short or has a changed bit. */
hfsad_status checkpoint_open(checkpoint *c, const char *path, hfsad_error *err);
/* The same for bytes in memory, which must outlive c. */
hfsad_status checkpoint_parse(checkpoint *c, const void *bytes, size_t size, const char *name, hfsad_error *err);
void checkpoint_close(checkpoint *c);

/* Refuses a spec that would give other iterates or another trace; the message names the keys. checkpoint_restore finds
 * other numbers in data and truth, whatever their files are called. */
hfsad_status checkpoint_check_spec(const checkpoint *c, const hfsad_spec *spec, hfsad_error *err);
/* The same for a run, with its data and truth. */
hfsad_status checkpoint_check_run(const checkpoint *c, hfsad_run *run, hfsad_error *err);
/* Puts a run with a spec that checkpoint_check_spec accepts into the saved state. On failure the run does not change.
 */
hfsad_status checkpoint_restore(const checkpoint *c, hfsad_run *run, hfsad_error *err);

#endif
