/* The keys as hfsad/net.h offers them. */
#include "base/error.h"
#include "hfsad/net.h"
#include "net/keys.h"

#include <stdio.h>
#include <string.h>

enum { PORT = 8883, AUTHORITY_DAYS = 3650, NODE_DAYS = 365, DAYS_MOST = 36500 };

static hfsad_status check_days(int days, hfsad_error *err)
{
    if (days >= 0 && days <= DAYS_MOST)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "days = %d; expected 1 to %d, or 0 for the default", days, DAYS_MOST);
}

hfsad_status hfsad_keys_init(const hfsad_keys *keys, hfsad_error *err)
{
    hfsad_keys k = {0};
    memcpy(&k, keys, keys->size < sizeof k ? keys->size : sizeof k);
    if (!k.folder)
        return error_set(err, HFSAD_ERROR_INPUT, "folder: NULL; expected the folder of the keys");
    if (k.port < 0 || k.port > 65535)
        return error_set(err, HFSAD_ERROR_INPUT, "port = %d; expected 1 to 65535, or 0 for %d", k.port, PORT);
    const hfsad_status status = check_days(k.days, err);
    const keys_authority a = {
        .dir = k.folder,
        .hosts = k.hosts,
        .n_hosts = k.n_hosts,
        .port = k.port ? k.port : PORT,
        .days = k.days ? k.days : AUTHORITY_DAYS,
        .force = k.force,
        .kind = k.broker,
    };
    return status ? status : keys_init(&a, err);
}

hfsad_status hfsad_keys_issue(const char *folder, const char *const *nodes, size_t count, int days, bool force,
                              bool *changed, hfsad_error *err)
{
    const hfsad_status status = check_days(days, err);
    return status ? status : keys_issue(folder, nodes, count, days ? days : NODE_DAYS, force, changed, err);
}

hfsad_status hfsad_keys_revoke(const char *folder, const char *const *nodes, size_t count, hfsad_error *err)
{
    return keys_revoke(folder, nodes, count, err);
}

bool hfsad_keys_files(const char *folder, const char *node, char *certificate, char *key, size_t size)
{
    char first[KEYS_FILE_MAX], second[KEYS_FILE_MAX];
    if (!keys_node_files(folder, node, first, second) || strlen(first) >= size || strlen(second) >= size)
        return false;
    snprintf(certificate, size, "%s", first);
    snprintf(key, size, "%s", second);
    return true;
}
