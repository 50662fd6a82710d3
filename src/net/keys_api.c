/* The keys as hfsad/net.h offers them. */
#define _POSIX_C_SOURCE 200809L
#include "base/error.h"
#include "data/nodes.h"
#include "hfsad/net.h"
#include "net/keys.h"
#include "net/member.h"
#include "net/veil.h"

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

hfsad_status hfsad_keys_cohort(const char *folder, const hfsad_spec *spec, const char *client, char **proof,
                               hfsad_error *err)
{
    dataset *shape;
    federation *f = NULL;
    char text[VEIL_PROOF], file[KEYS_FILE_MAX];
    *proof = NULL;
    hfsad_status status = spec_cohort(spec) && spec->federation.mode == MODE_ASYNC
                              ? member_shape(&shape, spec, NULL, NULL, err)
                              : error_set(err, HFSAD_ERROR_INPUT,
                                          "only members of a cohort in an asynchronous run can be signed off: "
                                          "federation.mode async and privacy.cohort");
    if (!status)
        status = federation_create(&f, spec, shape, err);
    const size_t number = status ? 0 : nodes_find(federation_shape(f), client);
    if (!status && (number == SIZE_MAX || number < federation_shape(f)->n_inner))
        status = error_set(err, HFSAD_ERROR_INPUT, "%.200s: no such client; `hfsad nodes` lists the nodes", client);
    snprintf(file, sizeof file, "%.4000s/ca.key", folder);
    if (!status)
        status = veil_prove_gone(file, federation_run(f), client, text, err);
    if (!status && !(*proof = strdup(text)))
        status = error_memory(err, sizeof text, "a signature");
    federation_free(f);
    return status;
}

bool hfsad_keys_files(const char *folder, const char *path, char *certificate, char *key, size_t size)
{
    char first[KEYS_FILE_MAX], second[KEYS_FILE_MAX];
    if (!keys_node_files(folder, path, first, second) || strlen(first) >= size || strlen(second) >= size)
        return false;
    snprintf(certificate, size, "%s", first);
    snprintf(key, size, "%s", second);
    return true;
}
