#include "out/checkpoint.h"

#include "base/error.h"
#include "base/read_file.h"
#include "run/save.h"
#include "spec/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, HEAD_WORDS = 3 };

#define START_ANEW "start the run again"

static void to_file(void *to, const void *bytes, size_t count)
{
    whole_file_put(to, bytes, count);
}

static uint64_t mark(void)
{
    word_reader r = {(const unsigned char *)CHECKPOINT_MARK, 1, false};
    return words_get(&r);
}

static void put_all(word_writer *w, const hfsad_run *run, const char *trace, size_t trace_length, uint64_t total)
{
    word_writer state = {0};
    words_put(w, mark());
    words_put(w, FORMAT);
    words_put(w, total);
    words_put_text(w, hfsad_version(), strlen(hfsad_version()));
    spec_pack(w, run->spec);
    words_put(w, run->data_print);
    words_put(w, run->truth_print);
    words_put_text(w, run->start_kind, strlen(run->start_kind));
    words_put_real(w, run->seconds);
    words_put_text(w, trace, trace_length);
    sim_pack(&state, run->sim);
    words_put(w, state.count);
    sim_pack(w, run->sim);
    words_put(w, w->sum);
}

void checkpoint_write(whole_file *f, const hfsad_run *run, const char *trace, size_t trace_length)
{
    word_writer counted = {0}, w = {.put = to_file, .to = f};
    hfsad_run printed = *run;
    if (!printed.data_print)
        run_take_prints(&printed);
    put_all(&counted, &printed, trace, trace_length, 0);
    put_all(&w, &printed, trace, trace_length, counted.count);
}

static hfsad_status refuse_checkpoint(const checkpoint *c, hfsad_error *err, const char *why)
{
    error_set(err, HFSAD_ERROR_INPUT, "%.300s %s", c->name, why);
    return HFSAD_ERROR_INPUT; /* a constant here, so that a checker of this file alone knows that the status is not 0 */
}

/* Checks mark, version, length and checksum; *r then reads the words between them. */
static hfsad_status open_words(const checkpoint *c, const unsigned char *bytes, size_t size, word_reader *r,
                               hfsad_error *err)
{
    const size_t words = size / WORD_BYTES;
    *r = (word_reader){bytes, words, false};
    if (words <= HEAD_WORDS || words_get(r) != mark())
        return refuse_checkpoint(c, err, "is not an hfsad checkpoint; give the output folder of a run");
    const uint64_t format = words_get(r), total = words_get(r);
    if (size % WORD_BYTES || total != words)
        return refuse_checkpoint(c, err, "is cut short or damaged: its length does not match its header; " START_ANEW);
    r->left--;
    word_reader last = {bytes + (words - 1) * WORD_BYTES, 1, false};
    if (words_get(&last) != words_sum(bytes, words - 1))
        return refuse_checkpoint(c, err, "is damaged: its checksum does not match; " START_ANEW);
    size_t length;
    const char *version = words_get_text(r, &length);
    if (format != FORMAT || !version || length != strlen(hfsad_version()) ||
        memcmp(version, hfsad_version(), length) != 0)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s was written by hfsad %.*s, and this is %s; resume with that version", c->name,
                         version ? (int)(length < 30 ? length : 30) : 1, version ? version : "?", hfsad_version());
    return HFSAD_OK;
}

hfsad_status checkpoint_parse(checkpoint *c, const void *bytes, size_t size, const char *name, hfsad_error *err)
{
    word_reader r;
    hfsad_spec *spec = NULL;
    *c = (checkpoint){.name = strdup(name)};
    if (!c->name) {
        error_memory(err, strlen(name), "a file name");
        return HFSAD_ERROR_MEMORY;
    }
    hfsad_status status = open_words(c, bytes, size, &r, err);
    if (!status)
        status = spec_unpack(&spec, &r, name, err);
    c->spec = spec;
    if (!status) {
        c->data_print = words_get(&r);
        c->truth_print = words_get(&r);
        c->start_kind = words_get_text(&r, &c->start_length);
        c->seconds = words_get_real(&r);
        c->trace = words_get_text(&r, &c->trace_length);
        c->state = r;
        const uint64_t words = words_get(&c->state);
        word_reader first = c->state;
        c->iteration = words_get(&first);
        if (words != c->state.left || first.bad || r.bad || !c->start_kind || !(c->seconds >= 0))
            status = refuse_checkpoint(c, err, "is inconsistent; " START_ANEW);
    }
    if (status)
        checkpoint_close(c);
    return status;
}

hfsad_status checkpoint_open(checkpoint *c, const char *path, hfsad_error *err)
{
    void *mapping;
    size_t size;
    *c = (checkpoint){0};
    const int reason = file_map(path, &mapping, &size);
    if (reason > 0)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s cannot be opened: %s; give the output folder of a run with output.checkpoint: true",
                         path, strerror(reason));
    if (!mapping)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s is empty or not a file; " START_ANEW, path);
    const hfsad_status status = checkpoint_parse(c, mapping, size, path, err);
    if (status) {
        file_unmap(mapping, size);
        return status;
    }
    c->mapping = mapping;
    c->mapped = size;
    return HFSAD_OK;
}

void checkpoint_close(checkpoint *c)
{
    file_unmap(c->mapping, c->mapped);
    hfsad_spec_free(c->spec);
    free(c->name);
    *c = (checkpoint){0};
}

/* output.clients is not listed: if w is not kept, z is measured in its place. run.trace_every is not listed, because
 * the stop rule looks at the rows of the trace. */
static bool may_differ(const char *key)
{
    static const char *const keys[] = {"data",
                                       "truth",
                                       "personal",
                                       "groups.most",
                                       "run.iterations",
                                       "run.polish",
                                       "run.stop.absolute",
                                       "output.state",
                                       "output.every_seconds",
                                       "output.checkpoint",
                                       "run.stop.relative",
                                       "run.stop.gap",
                                       "run.stop.time"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i]))
            return true;
    return false;
}

hfsad_status checkpoint_check_spec(const checkpoint *c, const hfsad_spec *spec, hfsad_error *err)
{
    char keys[500] = "";
    const size_t count = spec_differences(c->spec, spec, may_differ, keys, sizeof keys);
    if (!count && spec_has_noise(spec) && spec->run.iterations != c->spec->run.iterations)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.200s was made with run.iterations %lld, over which the privacy budget was divided; keep it",
                         c->name, (long long)c->spec->run.iterations);
    if (!count)
        return HFSAD_OK;
    return error_set(
        err, HFSAD_ERROR_INPUT,
        "%.200s was made with %s for %s; only run.iterations, run.stop, run.polish, personal, groups, output.state, "
        "output.every_seconds and output.checkpoint may change",
        c->name, count > 1 ? "other values" : "another value", keys);
}

hfsad_status checkpoint_check_run(const checkpoint *c, hfsad_run *run, hfsad_error *err)
{
    assert(c->spec && c->start_kind);
    const hfsad_status status = checkpoint_check_spec(c, run->spec, err);
    if (status)
        return status;
    if (!run->data_print)
        run_take_prints(run);
    if (c->data_print != run->data_print || c->truth_print != run->truth_print)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.200s was made with another %s than %.300s is now: numbers or names differ; restore it or "
                         "start the run again",
                         c->name, c->data_print != run->data_print ? "data set" : "truth",
                         c->data_print != run->data_print ? run->spec->top.data ? run->spec->top.data : "data"
                         : run->spec->top.truth           ? run->spec->top.truth
                                                          : "the spec");
    return HFSAD_OK;
}

hfsad_status checkpoint_restore(const checkpoint *c, hfsad_run *run, hfsad_error *err)
{
    const hfsad_status status = checkpoint_check_run(c, run, err);
    if (status)
        return status;
    char *kind = strndup(c->start_kind, c->start_length);
    if (!kind)
        return error_memory(err, c->start_length, "the start's name");
    word_reader state = c->state;
    if (!sim_unpack(run->sim, &state)) {
        free(kind);
        return refuse_checkpoint(c, err, "has a state whose sizes do not match this run; " START_ANEW);
    }
    if (c->spec->stop.absolute != run->spec->stop.absolute || c->spec->stop.relative != run->spec->stop.relative)
        sim_forget_tolerances(run->sim);
    free(run->start_kind);
    run->start_kind = kind;
    run->seconds = c->seconds;
    return HFSAD_OK;
}
