/* A mosquitto for a test: its own folder and socket, ended with the test whatever happens to it. */
#ifndef HFSAD_TESTS_BROKER_H
#define HFSAD_TESTS_BROKER_H

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
#include <time.h>
#include <unistd.h>

#define BROKER static inline __attribute__((unused))

typedef struct {
    char folder[64], url[128], config[128], socket[108];
    pid_t pid; /* 0: not running */
} test_broker;

BROKER int64_t broker_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

BROKER bool broker_accepts(const test_broker *b)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", b->socket);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return good;
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

BROKER bool broker_create(test_broker *b)
{
    *b = (test_broker){0};
    snprintf(b->folder, sizeof b->folder, "/tmp/hfsad-broker-XXXXXX");
    if (!mkdtemp(b->folder))
        return false;
    snprintf(b->socket, sizeof b->socket, "%s/s", b->folder);
    snprintf(b->url, sizeof b->url, "unix://%s", b->socket);
    snprintf(b->config, sizeof b->config, "%s/conf", b->folder);
    FILE *f = fopen(b->config, "w");
    if (!f)
        return false;
    fprintf(f, "listener 0 %s\nallow_anonymous true\npersistence false\nmax_queued_messages 0\nlog_type none\n",
            b->socket);
    if (geteuid() == 0) /* it would otherwise drop to a user that cannot write to our folder */
        fprintf(f, "user root\n");
    return fclose(f) == 0 && broker_start(b);
}

BROKER void broker_free(test_broker *b)
{
    broker_kill(b);
    unlink(b->socket);
    unlink(b->config);
    rmdir(b->folder);
}

#endif
