/* Reads the input that a spec's `data` names: one file of the whole federation, or a folder with a file for every
 * client. */
#define _DEFAULT_SOURCE /* stat */
#include "base/alloc.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/read_file.h"
#include "data/folder.h"
#include "data/generated.h"
#include "data/part.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static hfsad_status take_file(intake *in, const data_format *format, const char *path)
{
    if (in->scanning && !format->text)
        return HFSAD_OK; /* numbers without names have no categories and no missing values */
    file_bytes f;
    hfsad_status status = bytes_open(&f, path, format->text, format->expected, in->err);
    if (!status)
        format = format_settle(format, &f);
    if (!status && (!in->scanning || format->columns))
        status = format->take(in, &f, path);
    in->bytes_before += f.size;
    bytes_close(&f);
    return status;
}

static hfsad_status take_client(intake *in, const folder_tree *t, const tree_file *f, const char *top)
{
    const char *path = t->folders[f->folder].path;
    char *full = path_join(top, path, f->name);
    if (!full)
        return error_memory(in->err, strlen(top), "a path");
    in->path = (slice){path, strlen(path)};
    in->client = (slice){f->name, f->stem};
    in->bytes_after -= in->scanning ? 0 : f->bytes;
    const hfsad_status status = take_file(in, f->format, full);
    free(full);
    return status;
}

/* Skips a file that another rank reads. */
static hfsad_status skip_client(intake *in, const folder_tree *t, const tree_file *f)
{
    const char *path = t->folders[f->folder].path;
    in->bytes_after -= f->bytes;
    return builder_begin(in->builder, (slice){path, strlen(path)}, (slice){f->name, f->stem}, f->name, in->err);
}

static hfsad_status take_tree(intake *in, const folder_tree *t, const char *top)
{
    const char **paths = alloc_raw(t->n_folders, sizeof *paths);
    if (!paths)
        return error_memory(in->err, t->n_folders * sizeof *paths, "the list of folders");
    for (size_t i = 0; i < t->n_folders; i++)
        paths[i] = t->folders[i].path;
    in->folders = paths;
    in->n_folders = t->n_folders;
    for (size_t i = 0; i < t->n_files && !in->scanning; i++)
        in->bytes_after += t->files[i].bytes;
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < t->n_files && !status; i++)
        status = part_reads_file(in, t, i) ? take_client(in, t, &t->files[i], top) : skip_client(in, t, &t->files[i]);
    assert(status || in->scanning || in->builder); /* a folder without files and folders is refused */
    free(paths);
    return status;
}

static hfsad_status take_folder(intake *in, const char *top)
{
    folder_tree t;
    hfsad_status status = folder_scan(&t, top, in->err);
    if (!status)
        status = take_tree(in, &t, top);
    folder_free(&t);
    return status;
}

static hfsad_status take_any(intake *in, const char *path)
{
    struct stat info;
    size_t stem;
    const data_format *format = format_or_csv(path, &stem);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return take_folder(in, path);
    if (format->clients == CLIENTS_NONE)
        return error_set(in->err, HFSAD_ERROR_INPUT,
                         "%.*s: an array has the rows of one client; expected a folder with such a file for every "
                         "client, data/<edge>/<client>%s",
                         NAME_SHOWN, path, path + stem);
    return take_file(in, format, path);
}

hfsad_status dataset_read_part(dataset **d, const char *path, const table_settings *table, bool as_rows,
                               const part_model *model, hfsad_error *err)
{
    hfsad_error refused = {0};
    intake in = {.err = &refused};
    *d = NULL;
    if (!part_begin(&in, path, table, model))
        return HFSAD_OK;
    hfsad_status status = intake_open(&in, table);
    if (!status)
        status = columns_need_scan(&in.memory, &in.table) ? HFSAD_ERROR_INPUT : take_any(&in, path);
    const bool whole_file = status || !in.n_folders;
    if (ranks_any(status != HFSAD_OK || builder_is_sparse(in.builder))) /* reading all data reports the error */
        status = HFSAD_ERROR_INPUT;
    else
        status = part_join(&in, whole_file);
    status = intake_finish(&in, status, as_rows, d);
    if (ranks_any(status != HFSAD_OK)) {
        dataset_free(*d);
        *d = NULL;
    }
    (void)err;
    return HFSAD_OK;
}

static hfsad_status scan_and_take(intake *in, const char *path)
{
    hfsad_status status = HFSAD_OK;
    if (columns_need_scan(&in->memory, &in->table)) {
        in->scanning = true;
        status = take_any(in, path);
        if (!status)
            status = intake_scanned(in);
    }
    return status ? status : take_any(in, path);
}

/* Each column of text is found once; from then on it is a category. */
static hfsad_status read_all(intake in, dataset **d, const char *path, const table_settings *table, bool as_rows)
{
    hfsad_status status = intake_open(&in, table);
    in.guesses = !in.y_optional;
    if (!status)
        status = scan_and_take(&in, path);
    while (status && in.again) {
        intake_restart(&in);
        status = scan_and_take(&in, path);
    }
    return intake_finish(&in, status, as_rows, d);
}

hfsad_status dataset_read_table(dataset **d, const char *path, const table_settings *table, bool as_rows,
                                hfsad_error *err)
{
    if (is_command(path))
        return generated_read(d, path, table, as_rows, err);
    return read_all((intake){.err = err}, d, path, table, as_rows);
}

hfsad_status dataset_read(dataset **d, const char *path, bool as_rows, hfsad_error *err)
{
    return dataset_read_table(d, path, NULL, as_rows, err);
}

hfsad_status dataset_read_inputs(dataset **d, const char *path, const table_settings *table, hfsad_error *err)
{
    if (is_command(path))
        return generated_read(d, path, NULL, true, err);
    return read_all((intake){.err = err, .y_optional = true}, d, path, table, true);
}

/* The rows of one client do not show what the other clients' rows contain. */
static hfsad_status check_alone(const intake *in)
{
    if (in->table.missing == MISSING_MEAN && !in->table.means)
        return error_set(in->err, HFSAD_ERROR_INPUT,
                         "data.missing: a client with a file of its own does not know the mean over all clients; fill "
                         "the missing values first");
    for (size_t i = 0; i < in->memory.n_categories; i++)
        if (!in->memory.categories[i].given)
            return error_set(
                in->err, HFSAD_ERROR_INPUT,
                "data.categorical: a client with a file of its own does not know all levels of %.*s; write "
                "them in the spec, %.*s=level|level",
                (int)in->memory.categories[i].name.length, in->memory.categories[i].name.text,
                (int)in->memory.categories[i].name.length, in->memory.categories[i].name.text);
    return HFSAD_OK;
}

hfsad_status dataset_read_client(dataset **d, const char *file, const table_settings *table, const char *path,
                                 const char *name, const char *scratch, hfsad_error *err)
{
    if (!name && is_command(file))
        return generated_read(d, file, table, true, err);
    if (!name)
        return read_all((intake){.err = err, .scratch = scratch}, d, file, table, true);
    size_t stem;
    intake in = {.err = err, .path = {path, strlen(path)}, .client = {name, strlen(name)}, .scratch = scratch};
    hfsad_status status = intake_open(&in, table);
    if (!status)
        status = check_alone(&in);
    if (!status)
        status = take_file(&in, format_or_csv(file, &stem), file);
    return intake_finish(&in, status, true, d);
}
