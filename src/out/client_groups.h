/*
 * Which clients belong together, by their names: as a file states, or as a run found (summary.json).
 */
#ifndef HFSAD_OUT_CLIENT_GROUPS_H
#define HFSAD_OUT_CLIENT_GROUPS_H

#include "hfsad/hfsad.h"

enum { GROUP_NONE = 0xffffffff, GROUP_LABEL_SIZE = 64, CLIENT_GROUPS_MOST = 1000 };

typedef struct {
    char *name; /* "edge1/client7", or "client7" for every client of that name */
    uint32_t group;
} grouped_client;

typedef struct {
    size_t count; /* number of groups; 0: unknown */
    char (*labels)[GROUP_LABEL_SIZE];
    size_t n_clients;
    grouped_client *clients; /* sorted by name after client_groups_sort */
    size_t label_room, client_room;
    uint32_t others; /* group of clients that are not listed; GROUP_NONE: no group */
} client_groups;

/* Reads a CSV file with the header client,group and a line per client. Groups are numbered in the order of their first
 * appearance. */
hfsad_status client_groups_read(client_groups *g, const char *path, hfsad_error *err);

/* Adds a group and sets *group to its number; adds a client to a group. */
hfsad_status client_groups_label(client_groups *g, const char *label, uint32_t *group, hfsad_error *err);
hfsad_status client_groups_add(client_groups *g, const char *name, uint32_t group, hfsad_error *err);
void client_groups_sort(client_groups *g);

/* The group of a client: by its full name, otherwise by the last part of its name, otherwise `others`. */
uint32_t client_groups_find(const client_groups *g, const char *client);
void client_groups_free(client_groups *g);

#endif
