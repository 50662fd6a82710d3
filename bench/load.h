/* The arguments of the two ping-pongs, pingpong.c and transport.c. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOAD_CLIENTS_MOST = 5000 };

typedef struct {
    int port;
    size_t clients, features, processes; /* processes: of the clients */
    double seconds;
    bool retain;
    size_t sync, sync_edge; /* bytes that a process of clients, and the edge, write and sync in a round; 0: none */
    const char *keys;       /* folder of `hfsad keys`; NULL: no TLS */
} load;

/* Exits with 2 where they are wrong. */
static inline load load_read(int argc, char **argv)
{
    static const struct option options[] = {{"port", 1, NULL, 'p'},      {"clients", 1, NULL, 'c'},
                                            {"features", 1, NULL, 'f'},  {"processes", 1, NULL, 'n'},
                                            {"seconds", 1, NULL, 's'},   {"retain", 0, NULL, 'r'},
                                            {"keys", 1, NULL, 'k'},      {"sync", 1, NULL, 'y'},
                                            {"sync-edge", 1, NULL, 'e'}, {0}};
    load set = {.clients = 50, .features = 25, .processes = 1, .seconds = 2};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        const double v = optarg && o != 'k' ? strtod(optarg, NULL) : 1;
        if (o == '?' || !(v > 0 && v < 1e9))
            exit(2);
        if (o == 'p')
            set.port = (int)v;
        if (o == 'c')
            set.clients = (size_t)v;
        if (o == 'f')
            set.features = (size_t)v;
        if (o == 'n')
            set.processes = (size_t)v;
        if (o == 's')
            set.seconds = v;
        if (o == 'r')
            set.retain = true;
        if (o == 'y')
            set.sync = (size_t)v;
        if (o == 'e')
            set.sync_edge = (size_t)v;
        if (o == 'k')
            set.keys = optarg;
    }
    if (!set.port || set.clients > LOAD_CLIENTS_MOST || set.processes > set.clients) {
        fprintf(stderr, "--port is needed, at most %d clients, no more processes than clients\n", LOAD_CLIENTS_MOST);
        exit(2);
    }
    return set;
}

#endif
