/* The folder of keys and the broker's configuration; see keys.h. */
#include "net/keys.h"

#include "base/error.h"
#include "net/certificate.h"
#include "net/keys_cluster.h"
#include "net/keys_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LIST "revoked.crl"
enum { OBSERVED_LEVELS = HFSAD_TIERS_MAX };

bool keys_node_files(const char *dir, const char *path, char certificate[KEYS_FILE_MAX], char key[KEYS_FILE_MAX])
{
    const int a = snprintf(certificate, KEYS_FILE_MAX, "%s/nodes/%s.crt", dir, path);
    const int b = snprintf(key, KEYS_FILE_MAX, "%s/nodes/%s.key", dir, path);
    return a > 0 && a < KEYS_FILE_MAX && b > 0 && b < KEYS_FILE_MAX;
}

/* ---- texts ---- */

/* One topic of `path`, to be read. */
static void put_read(FILE *f, const char *word, const char *path, topic_kind topic)
{
    fprintf(f, "%s read hfsad/+/%s/%s\n", word, path, topic_name(topic));
}

/* The topics on which a parent receives messages of its children. */
static void put_children(FILE *f, const char *word, const char *path)
{
    for (int i = 0; i < TOPICS; i++)
        if (!topic_to_children((topic_kind)i))
            put_read(f, word, path, (topic_kind)i);
}

/* %u is the name in the certificate. mosquitto cannot cut a node's parent out of it: these lines are per node. */
static void put_acl_head(FILE *f)
{
    fprintf(f, "# Written and extended by hfsad keys. mosquitto rereads it on SIGHUP.\n\n"
               "# A node writes its own topics, and reads its own status.\n");
    for (int i = 0; i < TOPICS; i++)
        fprintf(f, "pattern write hfsad/+/%%u/%s\n", topic_name((topic_kind)i));
    fprintf(f, "pattern read hfsad/+/%%u/status\n\n"
               "# A node reads its children; the children of the cloud have no path before their name.\n");
    put_children(f, "pattern", "%u/+");
    fprintf(f, "\nuser cloud\n");
    put_children(f, "topic", "+");
    fprintf(f, "\n# The observer reads the status of all nodes.\nuser " KEYS_OBSERVER "\n");
    char levels[2 * OBSERVED_LEVELS + 1] = "+";
    for (int i = 0; i < OBSERVED_LEVELS; i++, strcat(levels, i < OBSERVED_LEVELS ? "/+" : ""))
        put_read(f, "topic", levels, TOPIC_STATUS);
    fprintf(f, "\n# A node reads its parent.\n");
}

static void put_acl_node(FILE *f, const char *path)
{
    char parent[TOPIC_MAX];
    if (!topic_parent(path, parent))
        return;
    fprintf(f, "user %s\n", path);
    for (int i = 0; i < TOPICS; i++)
        if (topic_to_children((topic_kind)i))
            put_read(f, "topic", parent, (topic_kind)i);
    put_read(f, "topic", parent, TOPIC_STATUS);
    put_read(f, "topic", parent, TOPIC_HELLO);
}

static void put_configuration(FILE *f, const keys_authority *a, const char *dir)
{
    fprintf(
        f,
        "# Written by hfsad keys init. Start the broker with: mosquitto -c THIS_FILE\n"
        "# If started as root, it switches to the user mosquitto, which must be able to read the files named here.\n"
        "per_listener_settings false\n"
        "listener %d%s\n"
        "cafile %s/ca.crt\ncertfile %s/broker.crt\nkeyfile %s/broker.key\n"
        "tls_version tlsv1.2\n"
        "require_certificate true\nuse_identity_as_username true\nallow_anonymous false\n"
        "acl_file %s/acl\n"
        "# Revoked certificates (hfsad keys revoke). Reread on SIGHUP.\n"
        "crlfile %s/revoked.crl\n\n"
        "# Nodes retransmit lost messages, so the broker stores nothing on disk.\n"
        "persistence false\n"
        "set_tcp_nodelay true\n"
        "# Per node, for slow readers.\n"
        "max_queued_messages 10000\n"
        "# The largest frame with its topic. A larger message is an error; message_size_limit would drop it silently.\n"
        "max_packet_size %zu\n",
        a->port, a->n_hosts ? "" : " 127.0.0.1", dir, dir, dir, dir, dir,
        message_bytes_most(MESSAGE_COUNT_MAX) + KEYS_AROUND_FRAME);
}

/* ---- init ---- */

static hfsad_status add_pair(key_files *files, const char *dir, const char *name, certificate_pair *pair, bool force,
                             hfsad_error *err)
{
    char crt[KEYS_PATH_MAX + 20], key[KEYS_PATH_MAX + 20];
    snprintf(crt, sizeof crt, "%s.crt", name);
    snprintf(key, sizeof key, "%s.key", name);
    hfsad_status status = key_files_add(files, dir, key, pair->key, pair->key_length, true, force, err);
    pair->key = NULL;
    if (!status) {
        status = key_files_add(files, dir, crt, pair->certificate, pair->certificate_length, false, force, err);
        pair->certificate = NULL;
    }
    certificate_pair_free(pair);
    return status;
}

static hfsad_status add_certificates(key_files *files, const keys_authority *a, bool clustered, hfsad_error *err)
{
    certificate_authority *authority = NULL;
    certificate_pair pair;
    hfsad_status status = certificate_make_authority(&authority, a->days, &pair, err);
    if (!status)
        status = add_pair(files, a->dir, "ca", &pair, a->force, err);
    if (!status)
        status = certificate_make_broker(authority, a->hosts, a->n_hosts, clustered, a->days, &pair, err);
    if (!status)
        status = add_pair(files, a->dir, "broker", &pair, a->force, err);
    char *list = NULL;
    size_t length;
    if (!status)
        status = certificate_make_list(authority, NULL, NULL, 0, LIST, &list, &length, err);
    if (!status)
        status = key_files_add(files, a->dir, LIST, list, length, false, a->force, err);
    certificate_authority_free(authority);
    return status;
}

static hfsad_status add_configuration(key_files *files, const keys_authority *a, hfsad_error *err)
{
    char *acl = NULL, *configuration = NULL, *dir = realpath(a->dir, NULL);
    size_t acl_length = 0, length = 0;
    FILE *f = open_memstream(&acl, &acl_length), *g = open_memstream(&configuration, &length);
    if (f)
        put_acl_head(f);
    if (g && dir)
        put_configuration(g, a, dir);
    const bool good = f && g && dir && !ferror(f) && !ferror(g);
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    free(dir);
    if (!good) {
        free(acl);
        free(configuration);
        return error_memory(err, 0, "the broker's configuration");
    }
    hfsad_status status = key_files_add(files, a->dir, "acl", acl, acl_length, false, a->force, err);
    if (status)
        free(configuration);
    else
        status = key_files_add(files, a->dir, "mosquitto.conf", configuration, length, false, a->force, err);
    return status;
}

/* --force from a cluster to mosquitto. */
static hfsad_status forget_cluster(const keys_authority *a, hfsad_error *err)
{
    char name[KEYS_FILE_MAX];
    snprintf(name, sizeof name, "%s/" KEYS_CLUSTER, a->dir);
    if (!unlink(name) || errno == ENOENT)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_IO, "%.300s cannot be removed: %s", name, strerror(errno));
}

hfsad_status keys_init(const keys_authority *a, hfsad_error *err)
{
    key_files files = {0};
    const bool there = access(a->dir, F_OK) == 0;
    bool clustered;
    hfsad_status status = keys_cluster_known(a->kind, &clustered, err);
    if (!status && clustered)
        status = keys_cluster_add(&files, a, err);
    if (!status)
        status = add_certificates(&files, a, clustered, err);
    if (!status)
        status = key_folder_make(a->dir, "", err);
    if (!status)
        status = add_configuration(&files, a, err);
    if (!status)
        status = key_files_check(&files, err);
    if (!status && !clustered)
        status = forget_cluster(a, err);
    if (!status)
        status = key_files_write(&files, err);
    key_files_free(&files);
    if (status && !there)
        rmdir(a->dir);
    return status;
}

/* ---- issue ---- */

static hfsad_status check_path(const char *path, hfsad_error *err)
{
    const size_t length = strlen(path);
    if (length > KEYS_PATH_MAX)
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "'%.100s' has %zu bytes; the path of a node in a certificate has at most %d: use a shorter name", path,
            length, KEYS_PATH_MAX);
    if (!topic_path_valid(path) || path[0] == '.' || strstr(path, "/.") || path[0] == ' ' || path[length - 1] == ' ')
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "'%.100s' is not a valid path for a certificate; expected a path such as edge1 or edge1/client7, without "
            "+, #, control characters, empty levels, levels that begin with a dot, and outer spaces",
            path);
    return HFSAD_OK;
}

static bool acl_has(const char *acl, const char *path)
{
    char line[KEYS_PATH_MAX + 10];
    snprintf(line, sizeof line, "\nuser %s\n", path);
    return strstr(acl, line) != NULL;
}

/* The access list with these nodes, if it gets longer. */
static hfsad_status add_acl(key_files *files, const char *dir, const char *const *paths, size_t count, hfsad_error *err)
{
    char *old = key_file_read(dir, "acl", err), *text = NULL;
    if (!old)
        return HFSAD_ERROR_INPUT;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (f)
        fputs(old, f);
    for (size_t i = 0; f && i < count; i++)
        if (!acl_has(old, paths[i]))
            put_acl_node(f, paths[i]);
    const bool good = f && !ferror(f);
    if (f)
        fclose(f);
    const bool same = good && length == strlen(old);
    free(old);
    if (same || !good) {
        free(text);
        text = NULL;
    }
    return same ? HFSAD_OK : key_files_add(files, dir, "acl", text, length, false, true, err);
}

static hfsad_status read_authority(certificate_authority **a, const char *dir, hfsad_error *err)
{
    char *certificate = key_file_read(dir, "ca.crt", err), *key = NULL;
    *a = NULL;
    if (certificate)
        key = key_file_read(dir, "ca.key", err);
    const hfsad_status status = key ? certificate_authority_read(a, certificate, key, dir, err) : HFSAD_ERROR_INPUT;
    free(certificate);
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
    return status;
}

/* Two that add to the access list at once would lose one's lines. */
static int lock_folder(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

/* *list is replaced by a longer one of *length bytes, closed by a 0. */
static hfsad_status revoke_text(const certificate_authority *authority, const char *certificate, const char *name,
                                char **list, size_t *length, hfsad_error *err)
{
    char *longer;
    const hfsad_status status = certificate_make_list(authority, *list, &certificate, 1, name, &longer, length, err);
    if (status)
        return status;
    char *closed = realloc(longer, *length + 1);
    free(*list);
    *list = closed;
    if (!closed) {
        free(longer);
        return error_memory(err, *length, LIST);
    }
    closed[*length] = 0;
    return HFSAD_OK;
}

/* replaced: only existing certificates of this authority; those of another authority are invalid anyway. */
static hfsad_status revoke_one(const certificate_authority *authority, const char *dir, const char *path, bool replaced,
                               char **list, size_t *length, hfsad_error *err)
{
    char name[KEYS_PATH_MAX + 20], file[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    if (replaced && (!keys_node_files(dir, path, file, key) || access(file, F_OK) != 0))
        return HFSAD_OK;
    snprintf(name, sizeof name, "nodes/%s.crt", path);
    char *certificate = key_file_read(dir, name, err);
    hfsad_status status = certificate ? HFSAD_OK : HFSAD_ERROR_INPUT;
    if (certificate && (!replaced || certificate_is_of(authority, certificate)))
        status = revoke_text(authority, certificate, name, list, length, err);
    free(certificate);
    return status;
}

/* The list of revoked ones with those of these nodes, if it gets longer. */
static hfsad_status add_list(key_files *files, const certificate_authority *authority, const char *dir,
                             const char *const *paths, size_t count, bool replaced, hfsad_error *err)
{
    size_t length = 0;
    char *list = key_file_read(dir, LIST, err);
    hfsad_status status = list ? HFSAD_OK : HFSAD_ERROR_INPUT;
    for (size_t i = 0; i < count && !status; i++)
        status = revoke_one(authority, dir, paths[i], replaced, &list, &length, err);
    if (!status && length)
        return key_files_add(files, dir, LIST, list, length, false, true, err);
    free(list);
    return status;
}

/* Two files for each node; the others belong to the broker. */
static hfsad_status issue_all(const char *dir, const char *const *paths, size_t count, int days, bool force,
                              key_files *files, hfsad_error *err)
{
    certificate_authority *authority;
    hfsad_status status = read_authority(&authority, dir, err);
    if (!status && force) /* first: once a certificate is replaced it cannot be found any more */
        status = add_list(files, authority, dir, paths, count, true, err);
    for (size_t i = 0; !status && i < count; i++) {
        char name[KEYS_PATH_MAX + 10];
        certificate_pair pair;
        snprintf(name, sizeof name, "nodes/%s", paths[i]);
        status = certificate_make_node(authority, paths[i], days, &pair, err);
        if (!status)
            status = add_pair(files, dir, name, &pair, force, err);
    }
    certificate_authority_free(authority);
    if (!status)
        status = add_acl(files, dir, paths, count, err);
    if (!status)
        status = key_files_check(files, err);
    for (size_t i = 0; !status && i < count; i++) {
        char name[KEYS_PATH_MAX + 10];
        snprintf(name, sizeof name, "nodes/%s", paths[i]);
        status = key_folder_make(dir, name, err);
    }
    return status ? status : key_files_write(files, err);
}

static hfsad_status check_paths(const char *const *paths, size_t count, hfsad_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const hfsad_status status = check_path(paths[i], err);
        if (status)
            return status;
        for (size_t j = 0; j < i; j++)
            if (!strcmp(paths[i], paths[j]))
                return error_set(err, HFSAD_ERROR_INPUT, "%s is listed twice", paths[i]);
    }
    return HFSAD_OK;
}

hfsad_status keys_issue(const char *dir, const char *const *paths, size_t count, int days, bool force, bool *news,
                        hfsad_error *err)
{
    key_files files = {0};
    const hfsad_status wrong = check_paths(paths, count, err);
    if (wrong)
        return wrong;
    const int lock = lock_folder(dir);
    const hfsad_status status = issue_all(dir, paths, count, days, force, &files, err);
    if (news)
        *news = files.count > 2 * count;
    key_files_free(&files);
    if (lock >= 0)
        close(lock);
    return status;
}

/* ---- revoke ---- */

static hfsad_status revoke_all(const char *dir, const char *const *paths, size_t count, key_files *files,
                               hfsad_error *err)
{
    certificate_authority *authority;
    hfsad_status status = read_authority(&authority, dir, err);
    if (!status)
        status = add_list(files, authority, dir, paths, count, false, err);
    certificate_authority_free(authority);
    return status ? status : key_files_write(files, err);
}

hfsad_status keys_revoke(const char *dir, const char *const *paths, size_t count, hfsad_error *err)
{
    key_files files = {0};
    char certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    hfsad_status status = check_paths(paths, count, err);
    if (status)
        return status;
    const int lock = lock_folder(dir);
    status = revoke_all(dir, paths, count, &files, err);
    key_files_free(&files);
    for (size_t i = 0; i < count && !status; i++)
        if (keys_node_files(dir, paths[i], certificate, key)) {
            unlink(certificate);
            unlink(key);
        }
    if (lock >= 0)
        close(lock);
    return status;
}
