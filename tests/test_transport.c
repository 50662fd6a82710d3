/*
 * What transport.h promises, for every transport: the same tests run on `local`, and on `mqtt` through a real
 * mosquitto, plain and with TLS. Behind them what only a broker can do: die, come back, refuse.
 */
#include "broker.h"
#include "net/broker_url.h"
#include "net/keys.h"
#include "net/transport.h"
#include "tools.h"
#include "transport_local.h"

#include <sys/stat.h>

enum { MEMBERS_MOST = 300, PATIENCE_MS = 20000, BIG = 9 << 20 };

typedef struct {
    char topic[64];
    size_t member, size, times;
    uint32_t first; /* the first four bytes as a number */
    bool sound;     /* the bytes are those of fill() */
} seen;

typedef struct {
    transport *t;
    test_broker *broker; /* NULL: local */
    seen list[4 * MEMBERS_MOST];
    size_t n_seen;
    size_t ups[MEMBERS_MOST], downs[MEMBERS_MOST], refusals[MEMBERS_MOST];
    char why[300];
    size_t echo_from; /* what arrives there is sent back on "echo"; SIZE_MAX: nothing is */
} fixture;

/* Bytes that depend on number, place and size. */
static void fill(unsigned char *bytes, size_t size, uint32_t number)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i < 4 ? number >> (8 * i) : (i * 31 + number) & 0xff);
}

static void on_receive(void *context, size_t member, const char *topic, const void *bytes, size_t size)
{
    fixture *f = context;
    seen *s = NULL;
    for (size_t i = 0; i < f->n_seen && !s; i++)
        if (f->list[i].member == member && !strcmp(f->list[i].topic, topic))
            s = &f->list[i];
    if (!s) {
        assert_true(f->n_seen < sizeof f->list / sizeof *f->list);
        s = &f->list[f->n_seen++];
        *s = (seen){.member = member};
        snprintf(s->topic, sizeof s->topic, "%s", topic);
    }
    unsigned char *wanted = malloc(size ? size : 1);
    assert_true(size >= 4);
    memcpy(&s->first, bytes, 4);
    fill(wanted, size, s->first);
    s->sound = memcmp(wanted, bytes, size) == 0;
    s->size = size;
    s->times++;
    free(wanted);
    if (member == f->echo_from)
        ok(transport_send(f->t, member, "echo", bytes, size, false, NULL), &(hfsad_error){0});
}

static void on_event(void *context, size_t member, transport_event event, const char *why)
{
    fixture *f = context;
    f->ups[member] += event == TRANSPORT_UP;
    f->downs[member] += event == TRANSPORT_DOWN;
    f->refusals[member] += event == TRANSPORT_REFUSED;
    assert_true((event == TRANSPORT_UP) == !*why && !strchr(why, '\n'));
    if (event != TRANSPORT_UP)
        snprintf(f->why, sizeof f->why, "%s", why);
}

/* Folders of keys: the broker's, and one of another authority. */
static char own[200], foreign[200];

static void begin_as(fixture *f, test_broker *broker, const char *url, const char *ca, const char *keys)
{
    hfsad_error err;
    char ca_file[300], certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    *f = (fixture){.broker = broker, .echo_from = SIZE_MAX};
    snprintf(ca_file, sizeof ca_file, "%s/ca.crt", ca ? ca : "");
    assert_true(keys_node_files(keys ? keys : "", "edge1", certificate, key));
    const transport_handler handler = {f, on_receive, on_event};
    const transport_broker at = {.url = url,
                                 .ca = ca ? ca_file : NULL,
                                 .certificate = keys ? certificate : NULL,
                                 .key = keys ? key : NULL,
                                 .backoff_least_ms = 5,
                                 .backoff_most_ms = 50};
    if (url)
        ok(transport_mqtt_create(&f->t, &at, &handler, &err), &err);
    else
        ok(transport_local_create(&f->t, &handler, &err), &err);
}

static fixture *make(test_broker *broker)
{
    fixture *f = malloc(sizeof *f);
    assert_non_null(f);
    const bool tls = broker && broker->port;
    begin_as(f, broker, broker ? broker->url : NULL, tls ? own : NULL, tls ? own : NULL);
    return f;
}

static void end(fixture *f)
{
    transport_free(f->t);
    free(f);
}

static const seen *find(const fixture *f, size_t member, const char *topic)
{
    for (size_t i = 0; i < f->n_seen; i++)
        if (f->list[i].member == member && !strcmp(f->list[i].topic, topic))
            return &f->list[i];
    return NULL;
}

/* Drives the transport until the condition holds. */
#define UNTIL(f, condition)                                                                                            \
    do {                                                                                                               \
        hfsad_error until_err;                                                                                         \
        const int64_t until_end = broker_now_ms() + PATIENCE_MS;                                                       \
        while (!(condition)) {                                                                                         \
            if (broker_now_ms() > until_end)                                                                           \
                fail_msg("line %d: not within %d s: %s", __LINE__, PATIENCE_MS / 1000, #condition);                    \
            ok(transport_wait((f)->t, (f)->broker ? 50 : 0, &until_err), &until_err);                                  \
        }                                                                                                              \
    } while (0)

static bool newest(const fixture *f, size_t member, const char *topic, uint32_t number)
{
    const seen *s = find(f, member, topic);
    return s && s->first == number && s->sound;
}

static size_t join_with_will(fixture *f, const char *name, const char *filter, const char *will_topic)
{
    hfsad_error err;
    unsigned char will[10];
    size_t number;
    fill(will, sizeof will, 99);
    const transport_member m = {.name = name,
                                .filters = &filter,
                                .n_filters = filter != NULL,
                                .will_topic = will_topic,
                                .will = will,
                                .will_size = sizeof will};
    ok(transport_join(f->t, &m, &number, &err), &err);
    return number;
}

static size_t join(fixture *f, const char *name, const char *filter)
{
    const size_t number = join_with_will(f, name, filter, NULL);
    UNTIL(f, f->ups[number] > 0);
    return number;
}

static void send_sized(fixture *f, size_t member, const char *topic, uint32_t number, size_t size, bool retain)
{
    hfsad_error err;
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    fill(bytes, size, number);
    ok(transport_send(f->t, member, topic, bytes, size, retain, &err), &err);
    free(bytes);
}

static void send_number(fixture *f, size_t member, const char *topic, uint32_t number, bool retain)
{
    send_sized(f, member, topic, number, 16, retain);
}

/* ---- what every transport does ---- */

static void values_reach_who_listens(void **state)
{
    fixture *f = make(*state);
    const size_t a = join(f, "a", "t/+/x"), b = join(f, "b", "t/b/#"), c = join(f, "c", "echo");
    f->echo_from = a;
    send_number(f, c, "t/b/x", 7, false);
    UNTIL(f, newest(f, a, "t/b/x", 7) && newest(f, b, "t/b/x", 7) && newest(f, c, "echo", 7));
    assert_null(find(f, c, "t/b/x"));
    send_number(f, c, "t/c/x", 8, false);
    UNTIL(f, newest(f, a, "t/c/x", 8) && newest(f, c, "echo", 8));
    send_number(f, a, "t/b/y/z", 9, false);
    UNTIL(f, newest(f, b, "t/b/y/z", 9));
    assert_null(find(f, b, "t/c/x"));
    assert_null(find(f, a, "t/b/y/z"));
    assert_true(f->t->counts.frames_sent == 5 && f->t->counts.frames_received == 6 && f->t->counts.lost == 0);
    end(f);
}

/* Waits for both until the newest value of a topic has come to a member of one. */
static void await_both(fixture *f, fixture *g, const fixture *of, size_t member, const char *topic, uint32_t number)
{
    hfsad_error err;
    const int64_t end_ms = broker_now_ms() + PATIENCE_MS;
    while (!newest(of, member, topic, number)) {
        if (broker_now_ms() > end_ms)
            fail_msg("%s %u has not come", topic, number);
        ok(transport_wait_both(f->t, g->t, f->broker ? 1000 : 0, &err), &err);
    }
}

static void two_are_waited_for_at_once(void **state)
{
    fixture *f = make(*state), *g = make(*state);
    const size_t a = join(f, "a", "f"), b = join(g, "b", "g");
    for (uint32_t i = 1; i <= 40; i++) {
        send_number(f, a, "f", i, false);
        await_both(f, g, f, a, "f", i);
        send_number(g, b, "g", i, false);
        await_both(f, g, g, b, "g", i);
    }
    end(g);
    end(f);
}

static void retained_values_wait_for_who_comes_late(void **state)
{
    fixture *f = make(*state);
    const size_t a = join(f, "a", "done");
    send_number(f, a, "keep", 1, true);
    send_number(f, a, "keep", 2, true);
    send_number(f, a, "gone", 3, true);
    send_number(f, a, "passing", 4, false);
    hfsad_error err;
    ok(transport_send(f->t, a, "gone", NULL, 0, true, &err), &err);
    send_number(f, a, "done", 5, false);
    UNTIL(f, newest(f, a, "done", 5)); /* the broker has all of it */
    const size_t b = join(f, "b", "#");
    send_number(f, a, "done", 6, false);
    UNTIL(f, newest(f, b, "keep", 2) && newest(f, b, "done", 6));
    assert_int_equal(find(f, b, "keep")->times, 1);
    assert_true(!find(f, b, "gone") && !find(f, b, "passing"));
    ok(transport_send(f->t, a, "keep", NULL, 0, true, &err), &err);
    end(f);
}

static void large_frames_come_whole(void **state)
{
    fixture *f = make(*state);
    const size_t a = join(f, "a", NULL), b = join(f, "b", "big");
    for (uint32_t i = 1; i <= 3; i++) {
        send_sized(f, a, "big", i, BIG + i, false);
        UNTIL(f, newest(f, b, "big", i) && find(f, b, "big")->size == BIG + i);
    }
    end(f);
}

/* Faster than the line takes it: older values give way, the newest arrives, nothing comes out of order. */
static void the_newest_value_wins(void **state)
{
    enum { VALUES = 400, SIZE = 100000 };
    fixture *f = make(*state);
    const size_t a = join(f, "a", NULL), b = join(f, "b", "fast/+");
    if (f->broker) /* it takes nothing for a while */
        kill(f->broker->pid, SIGSTOP);
    for (uint32_t i = 1; i <= VALUES; i++) {
        send_sized(f, a, "fast/1", i, SIZE, false);
        send_sized(f, a, "fast/2", 1000 + i, SIZE, false);
    }
    if (f->broker)
        kill(f->broker->pid, SIGCONT);
    UNTIL(f, newest(f, b, "fast/1", VALUES) && newest(f, b, "fast/2", 1000 + VALUES));
    assert_true(f->t->counts.replaced > 0);
    assert_true(f->t->counts.frames_received + f->t->counts.replaced == 2 * VALUES);
    end(f);
}

static void wills(void **state)
{
    fixture *f = make(*state);
    const size_t watch = join(f, "watch", "life/+");
    const size_t killed = join_with_will(f, "killed", NULL, "life/killed");
    const size_t left = join_with_will(f, "left", NULL, "life/left");
    UNTIL(f, f->ups[killed] && f->ups[left]);
    transport_leave(f->t, left, false);
    transport_leave(f->t, killed, true);
    UNTIL(f, newest(f, watch, "life/killed", 99));
    send_number(f, watch, "life/watch", 1, false);
    UNTIL(f, newest(f, watch, "life/watch", 1));
    assert_null(find(f, watch, "life/left"));
    const size_t late = join(f, "late", "life/killed"); /* wills are retained */
    UNTIL(f, newest(f, late, "life/killed", 99));
    hfsad_error err;
    ok(transport_send(f->t, watch, "life/killed", NULL, 0, true, &err), &err);
    /* of who is gone nothing goes out, to who is gone nothing goes in */
    send_number(f, killed, "life/x", 1, false);
    send_number(f, watch, "life/watch", 2, false);
    UNTIL(f, newest(f, watch, "life/watch", 2));
    assert_null(find(f, watch, "life/x"));
    end(f);
}

/* It leaves with values unread, while others are on their way: its will is not published even so. */
static void leaving_in_a_flood(void **state)
{
    enum { TIMES = 20, VALUES = 60, SIZE = 20000 };
    fixture *f = make(*state), *g = make(*state);
    const size_t watch = join(g, "watch", "flood/life/+"), source = join(g, "source", NULL);
    hfsad_error err;
    char topic[40];
    for (uint32_t i = 1; i <= TIMES; i++) {
        const size_t left = join_with_will(f, "left", "flood/value/+", "flood/life/left");
        UNTIL(f, f->ups[left]);
        for (uint32_t v = 0; v < VALUES; v++) {
            snprintf(topic, sizeof topic, "flood/value/%u", (unsigned)v);
            send_sized(g, source, topic, i, SIZE, false);
        }
        for (int turn = 0; turn < 5; turn++)
            ok(transport_wait(g->t, 1, &err), &err);
        transport_leave(f->t, left, false);
        send_number(g, source, "flood/life/source", i, false);
        UNTIL(g, newest(g, watch, "flood/life/source", i));
        assert_null(find(g, watch, "flood/life/left"));
    }
    end(g);
    end(f);
}

/* An edge and its clients, some rounds in lock step. */
static void many_members(void **state)
{
    enum { CLIENTS = MEMBERS_MOST - 1, ROUNDS = 4 };
    fixture *f = make(*state);
    char name[40];
    const size_t edge = join_with_will(f, "edge", "many/up/+", NULL);
    for (size_t i = 1; i <= CLIENTS; i++) {
        snprintf(name, sizeof name, "client%zu", i);
        assert_int_equal(join_with_will(f, name, "many/down", NULL), i);
    }
    for (size_t i = 0; i <= CLIENTS; i++)
        UNTIL(f, f->ups[i]);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        send_number(f, edge, "many/down", round, false);
        for (size_t i = 1; i <= CLIENTS; i++) {
            UNTIL(f, newest(f, i, "many/down", round));
            snprintf(name, sizeof name, "many/up/%zu", i);
            send_number(f, i, name, 1000 * round + (uint32_t)i, false);
        }
        for (size_t i = 1; i <= CLIENTS; i++) {
            snprintf(name, sizeof name, "many/up/%zu", i);
            UNTIL(f, newest(f, edge, name, 1000 * round + (uint32_t)i));
        }
    }
    end(f);
}

/* ---- what a broker does ---- */

static void the_broker_dies_and_comes_back(void **state)
{
    test_broker *broker = *state;
    fixture *f = make(broker);
    const size_t a = join(f, "a", NULL), b = join(f, "b", "v");
    send_number(f, a, "v", 1, true);
    UNTIL(f, newest(f, b, "v", 1));
    for (uint32_t i = 2; i < 6; i++) {
        const size_t ups = f->ups[a] + f->ups[b], downs = f->downs[a] + f->downs[b];
        const uint64_t lost = f->t->counts.lost;
        broker_kill(broker);
        UNTIL(f, f->downs[a] + f->downs[b] == downs + 2);
        send_number(f, a, "v", 100 + i, true);
        assert_true(f->t->counts.lost == lost + 1);
        assert_true(broker_start(broker));
        UNTIL(f, f->ups[a] + f->ups[b] == ups + 2);
        send_number(f, a, "v", i, true); /* as a node does when it hears that it is connected again */
        UNTIL(f, newest(f, b, "v", i));
    }
    assert_true(f->refusals[a] + f->refusals[b] == 0 && strstr(f->why, "broker"));
    end(f);
}

static void nobody_there(void **state)
{
    static const struct {
        const char *url;
        bool refused;
    } places[] = {
        {"mqtt://127.0.0.1:1", false}, {"unix:///no/such/socket", false}, {"mqtt://no-such-host.invalid", true}};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        fixture *f = malloc(sizeof *f);
        assert_non_null(f);
        begin_as(f, NULL, places[i].url, NULL, NULL);
        const size_t a = join_with_will(f, "a", NULL, NULL);
        const int64_t until = broker_now_ms() + PATIENCE_MS;
        while (f->downs[a] + f->refusals[a] == 0 && broker_now_ms() < until)
            ok(transport_wait(f->t, 50, &(hfsad_error){0}), &(hfsad_error){0});
        /* a machine without name service says "try again", which is no refusal */
        if (!(f->downs[a] && !places[i].refused) && !(places[i].refused && f->downs[a] + f->refusals[a]))
            fail_msg("%s: %s", places[i].url, f->why);
        send_number(f, a, "x", 1, false);
        assert_true(f->t->counts.lost == 1);
        end(f);
    }
}

/* Two processes by mistake: neither throws the other out, so each can see the other's status. */
static void two_of_a_name(void **state)
{
    fixture *first = make(*state), *second = make(*state);
    const size_t a = join(first, "same", "v"), b = join(second, "same", "v");
    for (uint32_t i = 1; i < 5; i++) {
        send_number(first, a, "v", i, false);
        UNTIL(second, newest(second, b, "v", i));
        send_number(second, b, "v", 100 + i, false);
        UNTIL(first, newest(first, a, "v", 100 + i));
    }
    assert_true(first->downs[a] + second->downs[b] == 0);
    end(first);
    end(second);
}

/* A broker's limit is said in words, not found out by waiting. */
static void too_large(void **state)
{
    test_broker small;
    hfsad_error err = {0};
    const unsigned char bytes[2000] = {0};
    char where[200];
    snprintf(where, sizeof where, "%s", in_folder("small"));
    (void)state;
    assert_true(mkdir(where, 0700) == 0 && broker_create(&small, where, NULL, "max_packet_size 1000\n"));
    fixture *f = make(&small);
    const size_t a = join(f, "a", "v");
    send_sized(f, a, "v", 1, 900, false);
    UNTIL(f, newest(f, a, "v", 1));
    ok(transport_send(f->t, a, "v", bytes, sizeof bytes, false, &err), &err);
    assert_int_equal(transport_wait(f->t, 0, &err), HFSAD_ERROR_INPUT);
    assert_true(strstr(err.message, "2000 bytes") && strstr(err.message, "max_packet_size"));
    send_sized(f, a, "v", 2, 900, false);
    UNTIL(f, newest(f, a, "v", 2));
    end(f);
    broker_free(&small);
}

static void addresses(void **state)
{
    static const struct {
        const char *url, *host;
        int port;
        bool tls;
    } good[] = {
        {"mqtt://h", "h", 1883, false},
        {"mqtts://h", "h", 8883, true},
        {"mqtt://10.0.0.1:77/", "10.0.0.1", 77, false},
        {"mqtts://[::1]:9", "::1", 9, true},
        {"unix:///a/b", "/a/b", 0, false},
    };
    static const char *const bad[] = {"",          "h",          "http://h",       "mqtt://",       "mqtt://:1",
                                      "mqtt://h:", "mqtt://h:0", "mqtt://h:65536", "mqtt://h:1x",   "mqtt://h/x",
                                      "mqtt://[a", "unix://rel", "mqtt://h:1/x",   "mqtts://[::1]x"};
    broker_url b;
    hfsad_error err;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ok(broker_url_read(&b, good[i].url, &err), &err);
        if (strcmp(b.host, good[i].host) != 0 || b.port != good[i].port || b.tls != good[i].tls)
            fail_msg("%s: %s %d", good[i].url, b.host, b.port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (broker_url_read(&b, bad[i], &err) != HFSAD_ERROR_INPUT || !strstr(err.message, "mqtts://host:port"))
            fail_msg("'%s' is taken", bad[i]);
    }
    broker_urls all;
    ok(broker_urls_read(&all, "mqtts://a,mqtts://b:7,mqtts://[::1]", &err), &err);
    assert_true(all.count == 3 && all.tls && all.list[1].port == 7 && !strcmp(all.list[2].host, "::1"));
    ok(broker_urls_read(&all, "unix:///a,b", &err), &err);
    assert_true(all.count == 1 && !strcmp(all.list[0].host, "/a,b"));
    static const char *const wrong[] = {"mqtt://a,", ",mqtt://a", "mqtt://a,mqtts://b", "mqtt://a,unix:///b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (broker_urls_read(&all, wrong[i], &err) != HFSAD_ERROR_INPUT)
            fail_msg("'%s' is taken", wrong[i]);
    transport *t;
    const transport_handler handler = {0};
    const transport_broker bare = {.url = "mqtts://h"}, missing = {.url = "mqtts://h", .ca = "/no/ca.crt"};
    assert_int_equal(transport_mqtt_create(&t, &bare, &handler, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "hfsad keys"));
    assert_int_equal(transport_mqtt_create(&t, &missing, &handler, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "/no/ca.crt"));
}

/* Each is told in words what is wrong. */
static void strangers(void **state)
{
    const test_broker *broker = *state;
    char plain[100], elsewhere[100];
    snprintf(plain, sizeof plain, "mqtt://127.0.0.1:%u", broker->port);
    snprintf(elsewhere, sizeof elsewhere, "mqtts://127.0.0.2:%u", broker->port);
    const struct {
        const char *url, *ca, *keys, *says;
        bool refused;
    } who[] = {
        {broker->url, own, foreign, "unknown ca", true},
        {broker->url, foreign, own, "verify failed", true},
        {broker->url, own, NULL, "certificate required", true},
        {elsewhere, own, own, "host name", true},
        {"mqtts://127.0.0.1:1", own, own, "Connection refused", false}, /* nobody is there */
        {plain, NULL, NULL, "", false}, /* a broker that closes at once may be one that is about to end */
    };
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        fixture *f = malloc(sizeof *f);
        assert_non_null(f);
        begin_as(f, *state, who[i].url, who[i].ca, who[i].keys);
        const size_t a = join_with_will(f, "a", NULL, NULL);
        UNTIL(f, (who[i].refused ? f->refusals[a] : f->downs[a]) > 0);
        if (f->ups[a] || (f->refusals[a] > 0) != who[i].refused || !strstr(f->why, who[i].says))
            fail_msg("stranger %zu: %s", i, f->why);
        end(f);
    }
}

static int start(void **state)
{
    static test_broker broker;
    signal(SIGPIPE, SIG_IGN);
    *state = &broker;
    return enter_folder(state) == 0 && broker_create(&broker, folder, NULL, "") ? 0 : -1;
}

static int stop(void **state)
{
    broker_free(*state);
    return leave_folder(state);
}

static bool make_keys(char keys[200], const char *name)
{
    const char *const nodes[] = {"edge1"};
    const keys_authority a = {.dir = keys, .port = 8883, .days = 2};
    snprintf(keys, 200, "%s", in_folder(name));
    return !keys_init(&a, NULL) && !keys_issue(keys, nodes, 1, 2, false, NULL, NULL);
}

static int start_tls(void **state)
{
    static test_broker broker;
    *state = &broker;
    if (enter_folder(state) || !make_keys(own, "own") || !make_keys(foreign, "foreign"))
        return -1;
    for (int i = 0; i < 3; i++) { /* another may have taken the port meanwhile */
        if (broker_create(&broker, folder, own, ""))
            return 0;
        broker_free(&broker);
    }
    return -1;
}

int main(void)
{
#define CONFORMANCE                                                                                                    \
    cmocka_unit_test(values_reach_who_listens), cmocka_unit_test(two_are_waited_for_at_once),                          \
        cmocka_unit_test(retained_values_wait_for_who_comes_late), cmocka_unit_test(large_frames_come_whole),          \
        cmocka_unit_test(the_newest_value_wins), cmocka_unit_test(wills), cmocka_unit_test(many_members)
#define BROKEN                                                                                                         \
    cmocka_unit_test(leaving_in_a_flood), cmocka_unit_test(the_broker_dies_and_comes_back),                            \
        cmocka_unit_test(two_of_a_name)
    const struct CMUnitTest local[] = {CONFORMANCE};
    const struct CMUnitTest mqtt[] = {CONFORMANCE, BROKEN, cmocka_unit_test(nobody_there), cmocka_unit_test(too_large),
                                      cmocka_unit_test(addresses)};
    const struct CMUnitTest mqtts[] = {CONFORMANCE, BROKEN, cmocka_unit_test(strangers)};
    return cmocka_run_group_tests_name("local", local, NULL, NULL) +
           cmocka_run_group_tests_name("mqtt", mqtt, start, stop) +
           cmocka_run_group_tests_name("mqtts", mqtts, start_tls, stop);
}
