#include "spec/pack.h"

#include "base/error.h"
#include "spec/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OVERRIDES_MOST = 1 << 20 };

static bool copy_struct(const settings_schema *schema, void *to, const void *from)
{
    setting_at at;
    for (size_t i = 0; settings_at(schema, i, &at); i++)
        if (!setting_store(&at, to, setting_load(&at, from)))
            return false;
    return true;
}

/* Allocates the entries, all unset; hfsad_spec_free frees them. */
static bool take_overrides(hfsad_spec *spec, size_t count)
{
    spec->overrides = count ? calloc(count, sizeof *spec->overrides) : NULL;
    spec->n_overrides = spec->overrides ? count : 0;
    for (size_t i = 0; i < spec->n_overrides; i++)
        if (!settings_fill(&override_schema, &spec->overrides[i]))
            return false;
    return spec->n_overrides == count;
}

static bool copy_parts(hfsad_spec *to, const hfsad_spec *from)
{
    char *folder = strdup(from->folder);
    free(to->folder);
    to->folder = folder;
    to->base = from->base ? strdup(from->base) : NULL;
    to->own = from->own;
    to->own_elsewhere = from->own_elsewhere;
    to->some_clients = from->some_clients;
    memcpy(to->lines, from->lines, settings_count(&spec_schema) * sizeof *to->lines);
    if (!folder || (from->base && !to->base) || !copy_struct(&spec_schema, to, from) ||
        !take_overrides(to, from->n_overrides))
        return false;
    for (size_t i = 0; i < from->n_overrides; i++) {
        to->overrides[i].line = from->overrides[i].line;
        if (!copy_struct(&override_schema, &to->overrides[i], &from->overrides[i]))
            return false;
    }
    return true;
}

hfsad_status spec_copy(hfsad_spec **copy, const hfsad_spec *spec, hfsad_error *err)
{
    *copy = NULL;
    hfsad_spec *made;
    const hfsad_status status = spec_create(&made, spec->path, err);
    if (status)
        return status;
    if (!copy_parts(made, spec)) {
        hfsad_spec_free(made);
        return error_memory(err, sizeof *made, "the spec");
    }
    *copy = made;
    return HFSAD_OK;
}

static void put_packed_text(word_writer *w, const char *text)
{
    words_put_text(w, text, text ? strlen(text) : 0);
}

static void pack_setting(word_writer *w, const setting_at *at, const void *base)
{
    const setting_value value = setting_load(at, base);
    put_packed_text(w, at->key);
    switch (at->row->type) {
    case SETTING_REAL:
        words_put_real(w, value.real);
        break;
    case SETTING_WHOLE:
        words_put(w, (uint64_t)value.whole);
        break;
    case SETTING_FLAG:
    case SETTING_CHOICE:
        words_put(w, (uint64_t)(int64_t)value.index);
        break;
    case SETTING_TEXT:
        put_packed_text(w, value.text);
        break;
    }
}

static void pack_struct(word_writer *w, const settings_schema *schema, const void *base)
{
    setting_at at;
    words_put(w, settings_count(schema));
    for (size_t i = 0; settings_at(schema, i, &at); i++)
        pack_setting(w, &at, base);
}

void spec_pack(word_writer *w, const hfsad_spec *spec)
{
    put_packed_text(w, spec->path);
    put_packed_text(w, spec->folder);
    put_packed_text(w, spec->base);
    pack_struct(w, &spec_schema, spec);
    words_put(w, spec->n_overrides);
    for (size_t i = 0; i < spec->n_overrides; i++)
        pack_struct(w, &override_schema, &spec->overrides[i]);
}

/* Frees *text and replaces it by the reader's next text. */
static bool get_text(word_reader *r, char **text)
{
    size_t length;
    const char *bytes = words_get_text(r, &length);
    free(*text);
    *text = bytes ? strndup(bytes, length) : NULL;
    return *text || (!bytes && !r->bad);
}

static setting_value get_value(word_reader *r, const setting_at *at, char **text)
{
    const setting_value unset = setting_unset(at->row);
    int64_t whole;
    switch (at->row->type) {
    case SETTING_REAL:
        return (setting_value){.real = words_get_real(r)};
    case SETTING_WHOLE:
        return (setting_value){.whole = (int64_t)words_get(r)};
    case SETTING_FLAG:
    case SETTING_CHOICE:
        whole = (int64_t)words_get(r);
        r->bad = r->bad || whole < -1 || whole > SETTING_TEXT_MAX;
        return r->bad ? unset : (setting_value){.index = (int)whole};
    case SETTING_TEXT:
        r->bad = !get_text(r, text) || r->bad;
        return (setting_value){.text = *text};
    }
    return unset;
}

/* Reads the same settings in the same order. Other versions of the program have other settings; the version is checked
 * first. */
static bool unpack_struct(word_reader *r, const settings_schema *schema, void *base)
{
    setting_at at;
    bool good = words_get(r) == settings_count(schema);
    for (size_t i = 0; good && settings_at(schema, i, &at); i++) {
        char *key = NULL, *text = NULL;
        good = get_text(r, &key) && key && !strcmp(key, at.key);
        if (good) {
            const setting_value value = get_value(r, &at, &text);
            good = !r->bad && setting_allows(&at, value) && setting_store(&at, base, value);
        }
        free(key);
        free(text);
    }
    return good;
}

static bool unpack_overrides(word_reader *r, hfsad_spec *spec)
{
    const uint64_t count = words_get(r);
    if (r->bad || count > r->left || count > OVERRIDES_MOST || !take_overrides(spec, (size_t)count))
        return false;
    for (size_t i = 0; i < spec->n_overrides; i++)
        if (!unpack_struct(r, &override_schema, &spec->overrides[i]) || !spec->overrides[i].node)
            return false;
    return true;
}

/* In the folder where the run was started, file names stay as they were; in another folder, the names get that folder
 * as prefix. */
static void drop_base(hfsad_spec *spec)
{
    char *current = getcwd(NULL, 0);
    if (current && spec->base && !strcmp(current, spec->base)) {
        free(spec->base);
        spec->base = NULL;
    }
    free(current);
}

hfsad_status spec_unpack(hfsad_spec **spec, word_reader *r, const char *name, hfsad_error *err)
{
    *spec = NULL;
    char *path = NULL;
    hfsad_spec *made = NULL;
    hfsad_status status = HFSAD_OK;
    if (get_text(r, &path) && path)
        status = spec_create(&made, path, err);
    free(path);
    if (status)
        return status;
    if (!made || !get_text(r, &made->folder) || !made->folder || !get_text(r, &made->base) ||
        !unpack_struct(r, &spec_schema, made) || !unpack_overrides(r, made)) {
        hfsad_spec_free(made);
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "%s holds the settings of another version of hfsad; resume with that version, or start a new run", name);
    }
    drop_base(made);
    *spec = made;
    return HFSAD_OK;
}

static bool same_value(const setting_at *at, const void *a, const void *b)
{
    const setting_value v = setting_load(at, a), w = setting_load(at, b);
    switch (at->row->type) {
    case SETTING_REAL:
        return v.real == w.real || (isnan(v.real) && isnan(w.real));
    case SETTING_WHOLE:
        return v.whole == w.whole;
    case SETTING_FLAG:
    case SETTING_CHOICE:
        return v.index == w.index;
    case SETTING_TEXT:
        break;
    }
    return v.text && w.text ? !strcmp(v.text, w.text) : v.text == w.text;
}

static bool same_overrides(const hfsad_spec *a, const hfsad_spec *b)
{
    setting_at at;
    if (a->n_overrides != b->n_overrides)
        return false;
    for (size_t i = 0; i < a->n_overrides; i++)
        for (size_t n = 0; settings_at(&override_schema, n, &at); n++)
            if (!same_value(&at, &a->overrides[i], &b->overrides[i]))
                return false;
    return true;
}

static void add_key(char *keys, size_t size, const char *key)
{
    const size_t used = strlen(keys);
    snprintf(keys + used, size - used, "%s%s", used ? ", " : "", key);
}

size_t spec_differences(const hfsad_spec *a, const hfsad_spec *b, bool (*passed)(const char *key), char *keys,
                        size_t size)
{
    setting_at at;
    size_t count = 0;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++)
        if (!same_value(&at, a, b) && !passed(at.key)) {
            add_key(keys, size, at.key);
            count++;
        }
    if (!same_overrides(a, b)) {
        add_key(keys, size, spec_schema.list);
        count++;
    }
    return count;
}

static void drop(void *to, const void *bytes, size_t count)
{
    (void)to;
    (void)bytes;
    (void)count;
}

static double print_of(const word_writer *w)
{
    return (double)(w->sum >> 12);
}

size_t spec_prints_count(void)
{
    return settings_count(&spec_schema) + 1;
}

void spec_prints(const hfsad_spec *spec, bool (*passed)(const char *key), double *prints)
{
    setting_at at;
    size_t i = 0;
    for (; settings_at(&spec_schema, i, &at); i++) {
        word_writer w = {.put = drop};
        pack_setting(&w, &at, spec);
        prints[i] = passed(at.key) ? 0 : print_of(&w);
    }
    word_writer w = {.put = drop};
    for (size_t n = 0; n < spec->n_overrides; n++)
        pack_struct(&w, &override_schema, &spec->overrides[n]);
    prints[i] = print_of(&w);
}

size_t spec_prints_differ(const double *a, const double *b, char *keys, size_t size)
{
    setting_at at;
    size_t count = 0, i = 0;
    for (; settings_at(&spec_schema, i, &at); i++)
        if (a[i] != b[i]) {
            add_key(keys, size, at.key);
            count++;
        }
    if (a[i] != b[i]) {
        add_key(keys, size, spec_schema.list);
        count++;
    }
    return count;
}
