/* A mosquitto for a test: its own folder, a socket or a port of loopback, ended with the test whatever happens to it.
 */
#ifndef HFSAD_TESTS_BROKER_H
#define HFSAD_TESTS_BROKER_H

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BROKER static inline __attribute__((unused))

typedef struct {
    char url[200], config[160], socket[108];
    uint16_t port; /* 0: the socket */
    pid_t pid;     /* 0: not running */
} test_broker;

BROKER int64_t broker_now_ms(void)
{
    return (int64_t)clock_ms();
}

BROKER bool broker_accepts(const test_broker *b)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    const struct sockaddr_in port = {
        .sin_family = AF_INET, .sin_port = htons(b->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    snprintf(local.sun_path, sizeof local.sun_path, "%s", b->socket);
    const int fd = socket(b->port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *at = b->port ? (const struct sockaddr *)&port : (const struct sockaddr *)&local;
    const bool good = fd >= 0 && connect(fd, at, b->port ? sizeof port : sizeof local) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* One that was free a moment ago; 0: none. */
BROKER uint16_t broker_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = fd >= 0 && bind(fd, (const struct sockaddr *)&at, size) == 0 &&
                      getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    if (fd >= 0)
        close(fd);
    return good ? ntohs(at.sin_port) : 0;
}

/* Starts it, again or for the first time, and returns when it accepts. False: it did not within 10 s. */
BROKER bool broker_start(test_broker *b)
{
    const pid_t parent = getpid();
    unlink(b->socket);
    b->pid = fork();
    if (b->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        const int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        dup2(null, STDOUT_FILENO);
        execlp("mosquitto", "mosquitto", "-c", b->config, (char *)NULL);
        execl("/usr/sbin/mosquitto", "mosquitto", "-c", b->config, (char *)NULL);
        _exit(127);
    }
    for (const int64_t end = broker_now_ms() + 10000; broker_now_ms() < end; poll(NULL, 0, 2)) {
        int status;
        if (broker_accepts(b))
            return true;
        if (waitpid(b->pid, &status, WNOHANG) == b->pid)
            break;
    }
    b->pid = 0;
    return false;
}

BROKER void broker_kill(test_broker *b)
{
    if (b->pid <= 0)
        return;
    kill(b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    b->pid = 0;
}

/* In a folder of the test's. keys: a folder of hfsad keys, for TLS with certificates on both sides and no access list,
 * on 127.0.0.1 and on 127.0.0.2, for which the broker has no certificate; NULL: a plain socket. more: further lines. */
BROKER bool broker_create(test_broker *b, const char *where, const char *keys, const char *more)
{
    *b = (test_broker){0};
    snprintf(b->socket, sizeof b->socket, "%.90s/broker", where);
    snprintf(b->url, sizeof b->url, "unix://%s", b->socket);
    snprintf(b->config, sizeof b->config, "%.128s/broker.conf", where);
    b->port = keys ? broker_free_port() : 0;
    FILE *f = fopen(b->config, "w");
    if (!f)
        return false;
    if (keys)
        snprintf(b->url, sizeof b->url, "mqtts://localhost:%u", b->port);
    else
        fprintf(f, "listener 0 %s\n", b->socket);
    for (int i = 1; keys && i <= 2; i++)
        fprintf(f,
                "listener %u 127.0.0.%d\ncafile %s/ca.crt\ncertfile %s/broker.crt\nkeyfile %s/broker.key\n"
                "require_certificate true\nuse_identity_as_username true\n",
                b->port, i, keys, keys, keys);
    fprintf(f, "allow_anonymous %s\npersistence false\nmax_queued_messages 0\nlog_type none\n%s",
            keys ? "false" : "true", more);
    if (geteuid() == 0) /* it would otherwise drop to a user that cannot use our folder */
        fprintf(f, "user root\n");
    return fclose(f) == 0 && broker_start(b);
}

BROKER void broker_free(test_broker *b)
{
    broker_kill(b);
    unlink(b->socket);
    unlink(b->config);
}

#endif
