/* Finds which spec an output folder belongs to, from its summary.json. */
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "out/json.h"
#include "out/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* If the spec is no longer at the path in the summary, it may have moved: its file name then decides. */
static bool is_same_spec(const char *before, const char *now)
{
    struct stat a, b;
    if (!strcmp(before, now))
        return true;
    if (stat(before, &a) == 0 && stat(now, &b) == 0)
        return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    return !strcmp(last_part(before), last_part(now));
}

hfsad_status report_check_owner(const char *folder, const char *spec_path, hfsad_error *err)
{
    char *path = path_join(folder, "summary.json");
    if (!path)
        return error_memory(err, strlen(folder), "a file name");
    void *mapping = NULL;
    size_t size = 0;
    const int reason = file_map(path, &mapping, &size);
    free(path);
    cJSON *root = reason || !mapping ? NULL : cJSON_ParseWithLength(mapping, size);
    if (!reason)
        file_unmap(mapping, size);
    const cJSON *spec = json_at(root, "spec");
    hfsad_status status = HFSAD_OK;
    if (cJSON_IsString(spec) && json_at(root, "settings") && !is_same_spec(spec->valuestring, spec_path))
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%.300s has the results of another spec, %.300s; give another folder",
                      folder, spec->valuestring);
    cJSON_Delete(root);
    return status;
}
