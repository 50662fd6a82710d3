/* hfsad keys: an authority, certificates for broker and nodes, and the broker's configuration. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "cmd_member.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DAYS = 36500, FILE_MAX = 4096, NODE_MAX = 64 /* bytes of a name in a certificate */ };

static const char about[] =
    "init creates a folder with a certificate authority, the broker's certificate, and a configuration\n"
    "and access list for mosquitto. issue creates a certificate for each NODE: cloud, edge1,\n"
    "edge1/client7. The name 'observer' is for hfsad status, which can only read.\n\n"
    "The access list allows a node to write only below its own path, and to read only messages of its\n"
    "parent and its children. A running mosquitto reads new nodes on SIGHUP; issue prints a notice if\n"
    "that is necessary.\n\n"
    "revoke revokes the certificates of nodes and removes their files here. The broker rejects them\n"
    "after SIGHUP; a broker on another machine also needs the new revoked.crl. A connected node stays\n"
    "connected until the broker restarts; a restart loses nothing. Then issue creates a new\n"
    "certificate. issue --force does both.\n\n"
    "broker writes the folder of a broker for one federation: copies of ca.crt, broker.crt, broker.key\n"
    "and revoked.crl, an access list with the exact topics of every node, and a configuration whose\n"
    "limits for memory, connections and packets follow from the spec's tree and features. Give this\n"
    "folder, and no other, to the broker's user. Run the command again after issue --force and revoke.\n"
    "After init --for nats or rabbitmq it has a configuration for each node of the cluster, nats-1.conf or\n"
    "rabbitmq-1.conf and so on.\n\n"
    "cohort signs that clients of an asynchronous run with privacy.cohort are lost for good, and prints a\n"
    "line for each; hfsad retire --cohort passes it to the others of their cohorts.\n\n"
    "A node needs ca.crt and its own files below nodes/. Keep ca.key secret: anyone who holds it can\n"
    "impersonate any node.";

static const char usage[] = "keys init [--dir DIR] [--host NAME]... [--port N] [--for BROKER] [--days N] [--force]\n"
                            "hfsad keys issue NODE... [--dir DIR] [--days N] [--force]\n"
                            "hfsad keys issue --nodes FILE [--dir DIR] [--days N] [--force]\n"
                            "hfsad keys revoke NODE... [--dir DIR]\n"
                            "hfsad keys broker SPEC.yaml --out DIR [--at PATH] [--dir DIR]\n"
                            "hfsad keys cohort SPEC.yaml CLIENT... [--dir DIR] [--set KEY=VALUE]...";

static int init(const hfsad_keys *a)
{
    hfsad_error err = {0};
    if (hfsad_keys_init(a, &err))
        return cli_fail(&err);
    if (hfsad_keys_clustered(a->folder))
        printf("authority in %s; after issue, hfsad keys broker writes the files of the cluster's nodes\n", a->folder);
    else
        printf("authority and broker in %s; start it with: mosquitto -c %s/mosquitto.conf\n", a->folder, a->folder);
    return cli_finish_stdout(CLI_DONE);
}

static int issue(const char *dir, const char *const *paths, size_t count, int days, bool force)
{
    hfsad_error err = {0};
    bool news;
    if (hfsad_keys_issue(dir, paths, count, days, force, &news, &err))
        return cli_fail(&err);
    for (size_t i = 0; i < count; i++) {
        char certificate[FILE_MAX], key[FILE_MAX];
        if (hfsad_keys_files(dir, paths[i], certificate, key, sizeof key))
            printf("%s %s\n", certificate, key);
    }
    if (news)
        fprintf(stderr, "hfsad: the broker's files in %s have changed: send SIGHUP to a mosquitto that uses them\n",
                dir);
    return cli_finish_stdout(CLI_DONE);
}

/* ---- a list of nodes ---- */

typedef struct {
    char **list;
    size_t count, room;
} node_list;

static bool add_node(node_list *l, const char *text, size_t length)
{
    if (l->count == l->room) {
        const size_t room = 2 * l->room + 64;
        char **list = realloc(l->list, room * sizeof *list);
        if (!list)
            return false;
        l->list = list;
        l->room = room;
    }
    return (l->list[l->count++] = strndup(text, length)) != NULL;
}

static bool has_node(const node_list *l, const char *text, size_t length)
{
    for (size_t i = l->count; i-- > 0;)
        if (strlen(l->list[i]) == length && !memcmp(l->list[i], text, length))
            return true;
    return false;
}

/* A line of `hfsad nodes`: a client, or an inner node, which ends with a slash. Inner nodes above it are taken too. */
static bool take_line(node_list *inner, node_list *clients, const char *line)
{
    const size_t length = strlen(line);
    for (size_t i = 1; i < length; i++)
        if (line[i] == '/' && !has_node(inner, line, i) && !add_node(inner, line, i))
            return false;
    return line[length - 1] == '/' || add_node(clients, line, length);
}

static bool is_issued(const char *dir, const char *path)
{
    char certificate[FILE_MAX], key[FILE_MAX];
    return hfsad_keys_files(dir, path, certificate, key, sizeof key) && access(certificate, F_OK) == 0;
}

static bool read_nodes(const char *file, node_list *inner, node_list *clients, int *reason)
{
    static const char later[] = "later "; /* a client that joined during the run */
    char *line = NULL;
    size_t size = 0;
    bool good = add_node(inner, "cloud", 5);
    FILE *f = fopen(file, "r");
    *reason = f ? 0 : errno;
    while (f && good && getline(&line, &size, f) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line && *line != '#' && strncmp(line, "features ", 9) != 0 && strncmp(line, "feature ", 8) != 0)
            good = take_line(inner, clients, strncmp(line, later, sizeof later - 1) ? line : line + sizeof later - 1);
    }
    free(line);
    if (f)
        fclose(f);
    return f && good;
}

/* Cloud, edges and clients of a list; without --force only nodes without a certificate. */
static int issue_all(const char *dir, const char *file, int days, bool force)
{
    node_list inner = {0}, clients = {0};
    int reason, status = CLI_DONE;
    bool good = read_nodes(file, &inner, &clients, &reason);
    for (size_t i = 0; i < clients.count && good; i++)
        good = add_node(&inner, clients.list[i], strlen(clients.list[i]));
    size_t wanted = 0;
    const char **paths = calloc(inner.count + 1, sizeof *paths);
    for (size_t i = 0; i < inner.count && paths; i++)
        if (force || !is_issued(dir, inner.list[i]))
            paths[wanted++] = inner.list[i];
    if (reason) {
        fprintf(stderr, "hfsad: %s cannot be read: %s\n", file, strerror(reason));
        status = CLI_WRONG;
    } else if (!good || !paths) {
        fputs("hfsad keys: not enough memory\n", stderr);
        status = CLI_FAILED;
    } else if (!clients.count) {
        status = cli_wrong("keys", "--nodes %s: no client in it; expected a list as `hfsad nodes` prints it", file);
    } else if (wanted) {
        status = issue(dir, paths, wanted, days, force);
    } else {
        printf("all %zu nodes have a certificate\n", inner.count);
        status = cli_finish_stdout(CLI_DONE);
    }
    for (size_t i = 0; i < inner.count; i++)
        free(inner.list[i]);
    for (size_t i = 0; i < clients.count; i++)
        free(clients.list[i]);
    free(inner.list);
    free(clients.list);
    free(paths);
    return status;
}

/* ---- names that have a certificate ---- */

typedef struct {
    const char **list; /* ends with NULL */
    size_t count;
} names;

static names found;
static size_t found_root; /* bytes of "DIR/nodes/" */

static int note_name(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    const size_t length = strlen(path);
    (void)info;
    (void)at;
    if (kind != FTW_F || length < found_root + 5 || strcmp(path + length - 4, ".crt") != 0)
        return 0;
    const char **longer = realloc(found.list, (found.count + 2) * sizeof *longer);
    char *name = strndup(path + found_root, length - found_root - 4);
    if (longer)
        found.list = longer;
    if (!longer || !name) {
        free(name);
        return 1;
    }
    found.list[found.count++] = name;
    found.list[found.count] = NULL;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int no_certificate(const char *dir, const char *path)
{
    enum { SHOWN = 8, DESCRIPTORS = 16 };
    char folder[FILE_MAX], shown[CLI_SHOWN_SIZE], list[SHOWN * (NODE_MAX + 4) + 40] = "";
    found_root = (size_t)snprintf(folder, sizeof folder, "%s/nodes", dir) + 1;
    (void)nftw(folder, note_name, DESCRIPTORS, FTW_PHYS);
    if (found.count)
        qsort(found.list, found.count, sizeof *found.list, by_name);
    const char *nearest = found.count ? cli_nearest(path, found.list) : NULL;
    cli_shown(shown, path);
    size_t at = 0;
    for (size_t i = 0; i < found.count && i < SHOWN; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%.64s", i ? ", " : "", found.list[i]);
    if (found.count > SHOWN)
        snprintf(list + at, sizeof list - at, " and %zu more", found.count - SHOWN);
    const int status = nearest
                           ? cli_wrong("keys", "there is no %.300s/nodes/%s.crt; did you mean %s?", dir, shown, nearest)
                           : cli_wrong("keys", "there is no %.300s/nodes/%s.crt; there are: %s", dir, shown,
                                       found.count ? list : "none");
    for (size_t i = 0; i < found.count; i++)
        free((char *)found.list[i]);
    free(found.list);
    found = (names){0};
    return status;
}

static int revoke(const char *dir, const char *const *paths, size_t count)
{
    hfsad_error err = {0};
    char certificate[FILE_MAX], key[FILE_MAX];
    for (size_t i = 0; i < count; i++)
        if (access(dir, F_OK) == 0 && hfsad_keys_files(dir, paths[i], certificate, key, sizeof key) &&
            access(certificate, F_OK) != 0)
            return no_certificate(dir, paths[i]);
    if (hfsad_keys_revoke(dir, paths, count, &err))
        return cli_fail(&err);
    printf("%s/revoked.crl has %zu more; send SIGHUP to the broker, or restart it to disconnect revoked nodes\n", dir,
           count);
    return cli_finish_stdout(CLI_DONE);
}

/* ---- the broker's folder ---- */

static int make_broker(const char *keys, const char *spec_path, const char *out, const char *place)
{
    hfsad_error err = {0};
    hfsad_spec *spec = NULL;
    hfsad_tree *tree = NULL;
    const cli_texts none = {0};
    int status = member_load(&spec, spec_path, &none, "keys");
    if (status == CLI_GO && (hfsad_tree_create(&tree, spec, &err) || hfsad_keys_broker(keys, tree, out, place, &err)))
        status = cli_fail(&err);
    hfsad_tree_free(tree);
    hfsad_spec_free(spec);
    if (status != CLI_GO)
        return status;
    const char *kind = hfsad_keys_cluster(keys), *at = place ? place : out;
    printf("the broker's folder is %s; give it to the broker's user and start%s: ", out,
           kind ? ", on the first node" : "");
    if (kind && !strcmp(kind, "rabbitmq"))
        printf("RABBITMQ_CONF_ENV_FILE=%s/rabbitmq-1.env rabbitmq-server\n", at);
    else
        printf("%s -c %s/%s.conf\n", kind ? "nats-server" : "mosquitto", at, kind ? "nats-1" : "mosquitto");
    return cli_finish_stdout(CLI_DONE);
}

/* One line for each client: its path, a tab, the proof. */
static int cohort(const char *keys, const char *const *words, size_t count, const cli_texts *sets)
{
    hfsad_error err = {0};
    hfsad_spec *spec = NULL;
    int status = member_load(&spec, words[0], sets, "keys");
    for (size_t i = 1; i < count && status == CLI_GO; i++) {
        char *proof;
        if (hfsad_keys_cohort(keys, spec, words[i], &proof, &err))
            status = cli_fail(&err);
        else
            printf("%s\t%s\n", words[i], proof);
        free(proof);
    }
    hfsad_spec_free(spec);
    return status == CLI_GO ? cli_finish_stdout(CLI_DONE) : status;
}

static int unknown_action(const char *action)
{
    static const char *const known[] = {"init", "issue", "revoke", "broker", "cohort", NULL};
    char shown[CLI_SHOWN_SIZE];
    const char *nearest = cli_nearest(action, known);
    cli_shown(shown, action);
    if (nearest)
        return cli_wrong("keys", "unknown action '%s'; did you mean %s?", shown, nearest);
    return cli_wrong("keys", "unknown action '%s'; known: init, issue, revoke, broker, cohort", shown);
}

typedef struct {
    const char *out, *place, *nodes; /* nodes: a list of nodes to issue certificates for */
    cli_texts sets;
} broker_place;

/* words: the action and its count - 1 nodes. port and days are 0 if they were not given. */
static int act(const char *const *words, size_t count, hfsad_keys *a, const broker_place *b, int64_t port, int64_t days)
{
    if (!strcmp(words[0], "init")) {
        if (count > 1)
            return cli_wrong("keys", "init takes no further argument; give hosts with --host");
        a->port = (int)port;
        a->days = (int)days;
        return init(a);
    }
    if (!strcmp(words[0], "broker")) {
        if (count != 2 || !b->out)
            return cli_wrong("keys", "broker needs a spec and --out");
        if (a->broker)
            return cli_wrong("keys", "--for belongs to init");
        return make_broker(a->folder, words[1], b->out, b->place);
    }
    if (!strcmp(words[0], "cohort"))
        return count < 3 ? cli_wrong("keys", "cohort needs a spec and the path of a client, such as edge1/client7")
                         : cohort(a->folder, words + 1, count - 1, &b->sets);
    const bool takes_back = strcmp(words[0], "revoke") == 0;
    if (strcmp(words[0], "issue") != 0 && !takes_back)
        return unknown_action(words[0]);
    if (a->n_hosts || port || a->broker)
        return cli_wrong("keys", "--host, --port and --for belong to init");
    if (b->nodes && (takes_back || count > 1))
        return cli_wrong("keys", "--nodes belongs to issue, in place of nodes");
    if (b->nodes)
        return issue_all(a->folder, b->nodes, (int)days, a->force);
    if (count < 2)
        return cli_wrong("keys", "%s needs the path of a node, such as edge1/client7", words[0]);
    if (takes_back && (days || a->force))
        return cli_wrong("keys", "--days and --force belong to init and issue");
    if (takes_back)
        return revoke(a->folder, words + 1, count - 1);
    return issue(a->folder, words + 1, count - 1, (int)days, a->force);
}

int cmd_keys(int argc, char **argv)
{
    hfsad_keys a = {.size = sizeof a, .folder = "keys"};
    broker_place b = {0};
    int64_t port = 0, days = 0;
    const size_t room = (size_t)argc + 1;
    const char **words = calloc(room, sizeof *words);
    cli_texts hosts = {.room = calloc(room, sizeof *hosts.room)};
    b.sets.room = calloc(room, sizeof *b.sets.room);
    const cli_option options[] = {
        {"dir", CLI_TEXT, &a.folder, 0, 0, NULL, "DIR", "folder of the keys (keys)"},
        {"host", CLI_TEXTS, &hosts, 0, 0, NULL, "NAME",
         "init: a name or address at which nodes reach the broker; may be\n"
         "repeated; without it the broker accepts only this machine"},
        {"port", CLI_WHOLE, &port, 1, 65535, NULL, "N", "init: port of the broker (8883)"},
        {"for", CLI_TEXT, &a.broker, 0, 0, NULL, "BROKER",
         "init: mosquitto (the default), nats or rabbitmq: a cluster with a node\n"
         "at every --host, or three nodes on this machine"},
        {"days", CLI_WHOLE, &days, 1, MOST_DAYS, NULL, "N",
         "validity of the certificates in days (init: 3650, issue: 365)"},
        {"nodes", CLI_TEXT, &b.nodes, 0, 0, NULL, "FILE",
         "issue: the nodes of a list as `hfsad nodes` prints it, with the cloud;\n"
         "without --force those that have no certificate yet"},
        {"out", CLI_TEXT, &b.out, 0, 0, NULL, "DIR", "broker: the folder to write"},
        {"at", CLI_TEXT, &b.place, 0, 0, NULL, "PATH",
         "broker: path of that folder on the broker's machine, if it differs"},
        {"set", CLI_TEXTS, &b.sets, 0, 0, NULL, "KEY=VALUE", "cohort: a setting"},
        {"force", CLI_FLAG, &a.force, 0, 0, NULL, NULL,
         "replace existing files; after init --force every node needs a new\n"
         "certificate; issue --force revokes the one that it replaces"},
    };
    const cli_syntax syntax = {
        .usage = usage,
        .about = about,
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = room - 1,
        .words = "init, issue, revoke, broker or cohort",
    };
    int status = CLI_FAILED;
    if (!words || !hosts.room || !b.sets.room)
        fputs("hfsad keys: not enough memory\n", stderr);
    else
        status = cli_parse(&syntax, argc, argv, words);
    a.hosts = hosts.room;
    a.n_hosts = hosts.count;
    if (status == CLI_GO && words && words[0]) {
        size_t count = 1;
        while (words[count])
            count++;
        status = act(words, count, &a, &b, port, days);
    }
    free(words);
    free(b.sets.room);
    free(hosts.room);
    return status;
}
