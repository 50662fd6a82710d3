/* Groups of clients, listed by name; see client_groups.h. */
#include "out/client_groups.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SHOWN = 300 };

hfsad_status client_groups_label(client_groups *g, const char *label, uint32_t *group, hfsad_error *err)
{
    if (!alloc_grow((void **)&g->labels, &g->label_room, g->count + 1, sizeof *g->labels))
        return error_memory(err, (g->count + 1) * sizeof *g->labels, "the groups");
    snprintf(g->labels[g->count], sizeof *g->labels, "%s", label);
    *group = (uint32_t)g->count++;
    return HFSAD_OK;
}

hfsad_status client_groups_add(client_groups *g, const char *name, uint32_t group, hfsad_error *err)
{
    char *copy = strdup(name);
    if (!copy || !alloc_grow((void **)&g->clients, &g->client_room, g->n_clients + 1, sizeof *g->clients)) {
        free(copy);
        return error_memory(err, (g->n_clients + 1) * sizeof *g->clients, "the groups");
    }
    g->clients[g->n_clients++] = (grouped_client){copy, group};
    /* cppcheck-suppress memleak; g owns it */
    return HFSAD_OK;
}

static int by_name(const void *left, const void *right)
{
    const grouped_client *a = left, *b = right;
    return strcmp(a->name, b->name);
}

void client_groups_sort(client_groups *g)
{
    if (g->n_clients)
        qsort(g->clients, g->n_clients, sizeof *g->clients, by_name);
}

static const grouped_client *find_name(const client_groups *g, const char *name)
{
    const grouped_client wanted = {.name = (char *)(uintptr_t)name};
    return g->n_clients ? bsearch(&wanted, g->clients, g->n_clients, sizeof *g->clients, by_name) : NULL;
}

uint32_t client_groups_find(const client_groups *g, const char *client)
{
    const char *slash = strrchr(client, '/');
    const grouped_client *found = find_name(g, client);
    if (!found && slash)
        found = find_name(g, slash + 1);
    return found ? found->group : g->others;
}

void client_groups_free(client_groups *g)
{
    for (size_t i = 0; i < g->n_clients; i++)
        free(g->clients[i].name);
    free(g->clients);
    free(g->labels);
    *g = (client_groups){0};
}

/* ---- the file ---- */

typedef struct {
    const char *path;
    FILE *file;
    char *text; /* buffer of getline */
    size_t size, line;
} reader;

/* False at the end of the file. The line has no line end and no spaces around it. */
static bool next_line(reader *r)
{
    const ssize_t length = getline(&r->text, &r->size, r->file);
    if (length < 0)
        return false;
    r->line++;
    size_t n = (size_t)length;
    while (n > 0 && strchr(" \t\r\n", r->text[n - 1]))
        n--;
    r->text[n] = 0;
    return true;
}

static hfsad_status group_of_label(client_groups *g, const reader *r, const char *label, uint32_t *group,
                                   hfsad_error *err)
{
    for (*group = 0; *group < g->count; ++*group)
        if (!strcmp(g->labels[*group], label))
            return HFSAD_OK;
    if (g->count == CLIENT_GROUPS_MOST)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s:%zu: more than %d groups", PATH_SHOWN, r->path, r->line,
                         CLIENT_GROUPS_MOST);
    return client_groups_label(g, label, group, err);
}

static hfsad_status add_line(client_groups *g, const reader *r, hfsad_error *err)
{
    char shown[EXCERPT_SIZE];
    char *comma = strchr(r->text, ',');
    if (!comma || comma == r->text || !comma[1] || strchr(comma + 1, ',') || strlen(comma + 1) >= GROUP_LABEL_SIZE)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.*s:%zu: \"%s\" is not of the form client,group; give one client and one group per line",
                         PATH_SHOWN, r->path, r->line, excerpt(shown, (slice){r->text, strlen(r->text)}));
    *comma = 0;
    uint32_t group;
    const hfsad_status status = group_of_label(g, r, comma + 1, &group, err);
    return status ? status : client_groups_add(g, r->text, group, err);
}

static hfsad_status read_lines(client_groups *g, reader *r, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    const bool header = next_line(r) && !strcmp(r->text, "client,group");
    if (!header && !ferror(r->file)) /* a folder can be opened but not read */
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s:1: the header must be client,group", PATH_SHOWN, r->path);
    while (!status && header && next_line(r))
        if (*r->text)
            status = add_line(g, r, err);
    if (!status && ferror(r->file))
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s cannot be read: %s", PATH_SHOWN, r->path, strerror(errno));
    if (!status && g->count == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s lists no clients; give a line for each client", PATH_SHOWN,
                         r->path);
    if (status)
        return status;
    client_groups_sort(g);
    for (size_t i = 1; i < g->n_clients; i++)
        if (!strcmp(g->clients[i - 1].name, g->clients[i].name))
            return error_set(err, HFSAD_ERROR_INPUT, "%.*s lists %.100s twice; remove one line", PATH_SHOWN, r->path,
                             g->clients[i].name);
    return HFSAD_OK;
}

hfsad_status client_groups_read(client_groups *g, const char *path, hfsad_error *err)
{
    *g = (client_groups){.others = GROUP_NONE};
    reader r = {.path = path, .file = fopen(path, "re")};
    if (!r.file)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s cannot be read: %s", PATH_SHOWN, path, strerror(errno));
    const hfsad_status status = read_lines(g, &r, err);
    if (status)
        client_groups_free(g);
    free(r.text);
    fclose(r.file);
    return status;
}
