/* Public functions on state folders: whether they are sound, and their content as lines of JSON. */
#include "base/error.h"
#include "base/read_file.h"
#include "hfsad/net.h"
#include "net/store.h"
#include "out/json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool hfsad_state_exists(const char *folder)
{
    static const char *const names[] = {"state", "mark", "state.db"};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = path_join(folder, names[i]);
        any = any || (path && access(path, F_OK) == 0);
        free(path);
    }
    return any;
}

void hfsad_state_remove(const char *folder)
{
    store_remove(folder);
}

typedef struct {
    store *s;
    void (*put)(void *context, const char *line);
    void *context;
    hfsad_error *err;
    hfsad_status status;
} exporting;

/* The line of an object, which is freed. */
static void put_line(exporting *e, cJSON *object, json *j)
{
    char *text = j->ok ? cJSON_PrintUnformatted(object) : NULL;
    if (text)
        e->put(e->context, text);
    else if (!e->status)
        e->status = error_memory(e->err, 0, "a line");
    cJSON_free(text);
    cJSON_Delete(object);
}

static void add_bytes(json *j, cJSON *object, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    char *hex = malloc(2 * size + 1);
    j->ok = j->ok && hex;
    for (size_t i = 0; hex && i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", b[i]);
    if (hex)
        hex[2 * size] = 0;
    json_add_whole(j, object, "bytes", size);
    json_add_text(j, object, "hex", hex);
    free(hex);
}

static void put_state(void *context, const char *path)
{
    exporting *e = context;
    json j = {true};
    void *bytes;
    size_t size;
    if (e->status || (e->status = store_get_state(e->s, path, &bytes, &size, e->err)))
        return;
    cJSON *object = cJSON_CreateObject();
    json_add_text(&j, object, "state", path);
    add_bytes(&j, object, bytes, size);
    put_line(e, object, &j);
    free(bytes);
}

static hfsad_status put_message(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                                hfsad_error *err)
{
    exporting *e = context;
    json j = {true};
    (void)err;
    cJSON *object = cJSON_CreateObject(), *heard = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++)
        json_append(&j, heard, json_text(names[i]));
    json_add_item(&j, object, "heard_by", heard);
    add_bytes(&j, object, frame, size);
    put_line(e, object, &j);
    return e->status;
}

static void put_trace_row(void *context, const hfsad_figures *f)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {
        {"row", (double)f->iteration},
        {"objective", f->objective},
        {"consensus_objective", f->consensus_objective},
        {"primal_residual", f->primal_residual},
        {"dual_residual", f->dual_residual},
        {"consensus_gap", f->consensus_gap},
        {"smoothing_gap", f->smoothing_gap},
        {"relative_error", f->relative_error},
        {"seconds", f->seconds},
        {"bytes_up", (double)f->bytes_up},
        {"bytes_down", (double)f->bytes_down},
    };
    json j = {true};
    cJSON *object = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_add_real(&j, object, fields[i].name, fields[i].value);
    put_line(context, object, &j);
}

static void put_record(void *context, const char *text)
{
    json j = {true};
    cJSON *object = cJSON_CreateObject();
    json_add_text(&j, object, "line", text);
    put_line(context, object, &j);
}

static hfsad_status put_all(exporting *e, const char *folder, const store_facts *f)
{
    char run[20];
    json j = {true};
    snprintf(run, sizeof run, "%016" PRIx64, f->run);
    cJSON *object = cJSON_CreateObject();
    json_add_text(&j, object, "folder", folder);
    json_add_text(&j, object, "run", run);
    json_add_whole(&j, object, "commits", f->commits);
    put_line(e, object, &j);
    store_get_names(e->s, put_state, e);
    if (!e->status)
        e->status = store_get_heard(e->s, put_message, e, e->err);
    if (!e->status)
        e->status = store_get_rows(e->s, put_trace_row, e, e->err);
    if (!e->status)
        e->status = store_get_record(e->s, put_record, e, e->err);
    return e->status;
}

hfsad_status hfsad_state_check(const char *folder, hfsad_state_facts *facts,
                               void (*put)(void *context, const char *line), void *context, hfsad_error *err)
{
    store *s;
    store_facts f;
    hfsad_status status = store_open_as(&s, folder, NULL, err);
    if (status)
        return status;
    status = store_check(s, &f, err);
    if (!status && facts) {
        const hfsad_state_facts all = {
            facts->size, f.run, f.commits, f.snapshot, f.log, f.unfinished, f.states, f.heard, f.rows, f.lines,
        };
        memcpy(facts, &all, facts->size < sizeof all ? facts->size : sizeof all);
    }
    if (!status && put)
        status = put_all(&(exporting){.s = s, .put = put, .context = context, .err = err}, folder, &f);
    store_close(s);
    return status;
}
