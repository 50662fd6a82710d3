/*
 * The files of a cluster of RabbitMQ with its MQTT plugin. What differs from mosquitto:
 *
 * - Users, permissions and limits are definitions, which a node of the cluster loads when it starts. They are added to
 *   those that the cluster has; nothing is removed. A user is the common name of a certificate.
 * - Topics a/b/c are routing keys a.b.c, with * for a level of a subscription, and are allowed by regular expressions.
 *   A client that publishes what it may not is disconnected, so a node may write all topics below its own path: after a
 *   start it clears each of them.
 * - A session's queue has the session's name, which begins with that of the node: a node can use its own queues only.
 * - Nodes of the cluster talk Erlang's protocol, whose users may do everything: by TLS with the broker's certificate,
 *   and by a cookie, because every node of the federation has a certificate of the same authority.
 */
#include "net/keys_cluster.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <string.h>

enum { LONG_NAMES = '.' };

/* Erlang compares the host in a node's name with the names in its certificate, and takes no address for one. */
static const char *name_of(const cluster_place *p)
{
    return cluster_is_here(p) ? "localhost" : p->host;
}

/* Either all names have a dot or none. */
static hfsad_status check(const keys_authority *a, hfsad_error *err)
{
    size_t dotted = 0;
    for (size_t i = 0; i < a->n_hosts; i++) {
        unsigned char address[sizeof(struct in6_addr)];
        if (inet_pton(AF_INET, a->hosts[i], address) == 1 || inet_pton(AF_INET6, a->hosts[i], address) == 1)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "the host %.200s is an address; nodes of RabbitMQ have names, as b1 or b1.example.org",
                             a->hosts[i]);
        dotted += strchr(a->hosts[i], LONG_NAMES) != NULL;
    }
    if (dotted == 0 || dotted == a->n_hosts)
        return HFSAD_OK;
    return error_set(
        err, HFSAD_ERROR_INPUT,
        "%zu of %zu hosts have a dot in their name; nodes of RabbitMQ have all long names (b1.example.org) "
        "or all short ones (b1)",
        dotted, a->n_hosts);
}

/* ---- definitions ---- */

typedef struct {
    FILE *f;
    const char *run;
    bool first;
} list;

static void put_path(FILE *f, const char *path)
{
    for (const char *p = path; *p; p++)
        *p == '/' ? fputs("\\\\.", f) : putc(*p, f);
}

static void put_key(void *context, const char *path, bool children, topic_kind topic)
{
    list *l = context;
    fprintf(l->f, "%shfsad\\\\.%s\\\\.", l->first ? "^(" : "|", l->run);
    put_path(l->f, path);
    fprintf(l->f, "%s%s\\\\.%s", *path && children ? "\\\\." : "", children ? "\\\\*" : "", topic_name(topic));
    l->first = false;
}

static void put_topics(FILE *f, const keys_broker *b, const char *path)
{
    fprintf(f, "  {\"user\": \"%s\", \"vhost\": \"/\", \"exchange\": \"amq.topic\", \"write\": \"^hfsad\\\\.%s\\\\.",
            path, b->run);
    put_path(f, path);
    for (int i = 0; i < TOPICS; i++)
        fprintf(f, "%s%s", i ? "|" : "\\\\.(", topic_name((topic_kind)i));
    fprintf(f, ")$\", \"read\": \"");
    cluster_reads(b, path, put_key, &(list){f, b->run, true});
    fprintf(f, ")$\"}");
}

static void put_observer(FILE *f, const keys_broker *b)
{
    fprintf(f,
            "  {\"user\": \"" KEYS_OBSERVER "\", \"vhost\": \"/\", \"exchange\": \"amq.topic\", \"write\": \"^$\", "
            "\"read\": \"^hfsad\\\\.%s(\\\\.\\\\*){1,%d}\\\\.status$\"}",
            b->run, HFSAD_TIERS_MAX);
}

/* transport_mqtt.c cuts the name of a session after this number of bytes. */
enum { SESSION_NAME = 70 };

static void put_permission(FILE *f, const char *path, bool writes)
{
    char queue[SESSION_NAME + 40];
    snprintf(queue, sizeof queue, "mqtt-subscription-%.*s@[0-9a-f]{16}qos[01]", SESSION_NAME, path);
    fprintf(f,
            "  {\"user\": \"%s\", \"vhost\": \"/\", \"configure\": \"^%s$\", \"write\": \"^(%s%s)$\", \"read\": "
            "\"^(amq\\\\.topic|%s)$\"}",
            path, queue, writes ? "amq\\\\.topic|" : "", queue, queue);
}

static void put_user(FILE *f, const char *path)
{
    fprintf(f,
            "  {\"name\": \"%s\", \"password_hash\": \"\", \"hashing_algorithm\": \"rabbit_password_hashing_sha256\", "
            "\"tags\": \"\", \"limits\": {\"max-connections\": %d}}",
            path, CLUSTER_CONNECTIONS_OF_NODE);
}

typedef enum { USERS, PERMISSIONS, TOPIC_PERMISSIONS } section;

static void put_section(FILE *f, const keys_broker *b, section which)
{
    static const char *const names[] = {"users", "permissions", "topic_permissions"};
    fprintf(f, " \"%s\": [\n", names[which]);
    if (which == USERS)
        put_user(f, KEYS_OBSERVER);
    else if (which == PERMISSIONS)
        put_permission(f, KEYS_OBSERVER, false);
    else
        put_observer(f, b);
    for (size_t i = 0; i < b->n_nodes; i++) {
        if (!cluster_lets_in(b, b->nodes[i]))
            continue;
        fputs(",\n", f);
        if (which == USERS)
            put_user(f, b->nodes[i]);
        else if (which == PERMISSIONS)
            put_permission(f, b->nodes[i], true);
        else
            put_topics(f, b, b->nodes[i]);
    }
    fputs("\n ],\n", f);
}

static void put_definitions(FILE *f, const cluster *c, size_t node)
{
    (void)node;
    fprintf(f, "{\n \"vhosts\": [{\"name\": \"/\"}],\n");
    for (section s = USERS; s <= TOPIC_PERMISSIONS; s++)
        put_section(f, c->b, s);
    fprintf(
        f,
        " \"parameters\": [{\"vhost\": \"/\", \"component\": \"vhost-limits\", \"name\": \"limits\", \"value\": "
        "{\"max-connections\": %zu}}],\n"
        " \"policies\": [{\"vhost\": \"/\", \"name\": \"hfsad\", \"pattern\": \"^mqtt-subscription-\", \"apply-to\": "
        "\"queues\", \"priority\": 0, \"definition\": {\"max-length-bytes\": %zu, \"overflow\": \"drop-head\"}}]\n}\n",
        c->connections, 64 * c->payload);
}

static void put_plugins(FILE *f, const cluster *c, size_t node)
{
    (void)c, (void)node;
    fputs("[rabbitmq_mqtt].\n", f);
}

/* ---- a node of the cluster ---- */

static void put_configuration(FILE *f, const cluster *c, size_t number)
{
    const cluster_place *at = &c->nodes[number];
    const char *place = c->b->place;
    fprintf(f,
            "# Written by hfsad keys broker, for node %zu of %zu.\n"
            "listeners.tcp = none\nmqtt.listeners.tcp = none\nmqtt.listeners.ssl.1 = %s:%d\n"
            "mqtt.allow_anonymous = false\nmqtt.ssl_cert_login = true\nssl_cert_login_from = common_name\n"
            "ssl_options.cacertfile = %s/ca.crt\nssl_options.certfile = %s/broker.crt\nssl_options.keyfile = "
            "%s/broker.key\n"
            "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\nssl_options.depth = 1\n"
            "load_definitions = %s/definitions.json\n"
            "# Nodes retransmit lost messages, so a queue that lags is cut, and a cut-off part of the cluster stops.\n"
            "max_message_size = %zu\ncluster_partition_handling = pause_minority\n"
            "log.console = true\nlog.console.level = warning\nlog.file = false\n",
            number + 1, c->count, cluster_is_here(at) ? at->host : "0.0.0.0", at->port, place, place, place, place,
            c->payload);
    for (size_t i = 0; i < c->count && c->count > 1; i++)
        fprintf(f, "%scluster_formation.classic_config.nodes.%zu = hfsad-%zu@%s\n",
                i ? "" : "cluster_formation.peer_discovery_backend = classic_config\n", i + 1, i + 1,
                name_of(&c->nodes[i]));
}

/* Read by the shell scripts that start the node or talk to it. */
static void put_environment(FILE *f, const cluster *c, size_t number)
{
    const cluster_place *at = &c->nodes[number];
    const char *place = c->b->place;
    fprintf(f,
            "# Written by hfsad keys broker, for node %zu of %zu. Start: RABBITMQ_CONF_ENV_FILE=THIS_FILE "
            "rabbitmq-server\n"
            "NODENAME=hfsad-%zu@%s\nUSE_LONGNAME=%s\n"
            "CONFIG_FILE='%s/rabbitmq-%zu.conf'\nENABLED_PLUGINS_FILE='%s/enabled_plugins'\n"
            "MNESIA_BASE='%s/store-%zu'\nLOG_BASE='%s/store-%zu'\nDIST_PORT=%d\nERLANG_COOKIE=%s\n",
            number + 1, c->count, number + 1, name_of(at), strchr(name_of(at), LONG_NAMES) ? "true" : "false", place,
            number + 1, place, place, number + 1, place, number + 1, at->port + 1, c->password);
    fprintf(f,
            "tls=\"-pa $(erl -noinput -eval 'io:format(\"~s\", [filename:dirname(code:which(inet_tls_dist))])' -s init "
            "stop) -proto_dist inet_tls -ssl_dist_optfile %s/inter_node_tls.config\"\n"
            "SERVER_ADDITIONAL_ERL_ARGS=\"$tls%s\"\nCTL_ERL_ARGS=\"$tls\"\n",
            place, cluster_is_here(at) ? " -kernel inet_dist_use_interface {127,0,0,1}" : "");
}

static void put_between(FILE *f, const cluster *c, size_t node)
{
    static const char *const sides[] = {"server", "client"};
    (void)node;
    for (int i = 0; i < 2; i++)
        fprintf(f,
                "%s{%s, [{cacertfile, \"%s/ca.crt\"}, {certfile, \"%s/broker.crt\"}, {keyfile, \"%s/broker.key\"}, "
                "{verify, verify_peer}%s]}%s\n",
                i ? " " : "[", sides[i], c->b->place, c->b->place, c->b->place,
                i ? "" : ", {fail_if_no_peer_cert, true}", i ? "]." : ",");
}

static const cluster_file files[] = {{"rabbitmq-%zu.conf", put_configuration}, {"rabbitmq-%zu.env", put_environment},
                                     {"definitions.json", put_definitions},    {"enabled_plugins", put_plugins},
                                     {"inter_node_tls.config", put_between},   {NULL, NULL}};

const cluster_kind cluster_rabbitmq = {
    .name = "rabbitmq", .title = "RabbitMQ", .never = " '\"\\#\n\r", .check = check, .files = files};
