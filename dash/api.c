/* See api.h. */
#include "dash/api.h"

#include "base/error.h"
#include "dash/assets.h"

#include <stdlib.h>
#include <string.h>

/* Upper limits on the rows of an answer. */
enum { POINTS_MOST = 2000, RUNS_MOST = 500, EVENTS_MOST = 500, NODES_MOST = 1000 };

const asset *asset_find(const char *path)
{
    for (const asset *a = assets; a->path[0]; a++)
        if (!strcmp(a->path, path))
            return a;
    return NULL;
}

typedef struct {
    history *h;
    api_argument argument;
    void *request;
    int64_t id, run;
    hfsad_error err;
} call;

static int64_t whole(const call *c, const char *name, int64_t otherwise, int64_t most)
{
    const char *text = c->argument(c->request, name);
    char *end;
    if (!text || !*text)
        return otherwise;
    const long long v = strtoll(text, &end, 10);
    return *end ? otherwise : v > most ? most : v;
}

static const char *word(const call *c, const char *name)
{
    const char *text = c->argument(c->request, name);
    return text && *text ? text : NULL;
}

/* ---- answers ---- */

static cJSON *get_about(call *c)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "version", hfsad_version());
    cJSON_AddStringToObject(o, "history", c->h->path);
    cJSON_AddBoolToObject(o, "charts", asset_find("/uplot.js") != NULL);
    if (c->run)
        cJSON_AddNumberToObject(o, "run", (double)c->run);
    return o;
}

static cJSON *get_runs(call *c)
{
    const int64_t limit = whole(c, "limit", 100, RUNS_MOST);
    const history_filter f = {.status = word(c, "status"),
                              .kind = word(c, "kind"),
                              .tag = word(c, "tag"),
                              .text = word(c, "text"),
                              .sort = word(c, "sort"),
                              .rising = whole(c, "rising", 0, 1) == 1,
                              .limit = limit < 1 ? 1 : limit,
                              .offset = whole(c, "offset", 0, INT32_MAX)};
    return history_runs(c->h, &f, &c->err);
}

static cJSON *get_run(call *c)
{
    return history_run(c->h, c->id, &c->err);
}

static cJSON *get_trace(call *c)
{
    const int64_t most = whole(c, "points", POINTS_MOST, POINTS_MOST);
    return history_trace(c->h, c->id, whole(c, "after", -1, INT64_MAX), most, &c->err);
}

static cJSON *get_models(call *c)
{
    return history_models(c->h, c->id, &c->err);
}

static cJSON *get_log(call *c)
{
    return history_events(c->h, c->id, whole(c, "after", 0, INT64_MAX), EVENTS_MOST, &c->err);
}

static cJSON *get_nodes(call *c)
{
    const int64_t most = whole(c, "most", 200, NODES_MOST), offset = whole(c, "offset", 0, INT32_MAX);
    return history_nodes(c->h, c->id, whole(c, "under", 0, INT32_MAX), offset < 0 ? 0 : offset, most < 1 ? 1 : most,
                         &c->err);
}

/* The settings and their defaults. */
static cJSON *get_settings(call *c)
{
    cJSON *all = cJSON_CreateArray();
    hfsad_setting s = {.size = sizeof s};
    (void)c;
    for (size_t i = 0; hfsad_settings_at(i, &s); i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "key", s.key);
        cJSON_AddStringToObject(one, "fallback", s.fallback);
        cJSON_AddStringToObject(one, "help", s.help);
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

static const struct {
    const char *name; /* ends in / if a number follows */
    cJSON *(*get)(call *c);
} table[] = {{"/about", get_about},    {"/runs", get_runs}, {"/run/", get_run},     {"/trace/", get_trace},
             {"/models/", get_models}, {"/log/", get_log},  {"/nodes/", get_nodes}, {"/settings", get_settings}};

static bool fits(const char *name, const char *path, int64_t *id)
{
    const size_t n = strlen(name);
    char *end;
    if (name[n - 1] != '/')
        return !strcmp(name, path);
    if (strncmp(name, path, n) != 0 || strlen(path + n) > 18 || strspn(path + n, "0123456789") != strlen(path + n))
        return false;
    *id = strtoll(path + n, &end, 10);
    return end != path + n;
}

cJSON *api_answer(history *h, const char *path, api_argument argument, void *request, int64_t run, unsigned *status)
{
    call c = {.h = h, .argument = argument, .request = request, .run = run};
    cJSON *o = NULL;
    error_set(&c.err, HFSAD_ERROR_INPUT, "no such thing; see /api/runs");
    for (size_t i = 0; i < sizeof table / sizeof *table && !o; i++)
        if (fits(table[i].name, path, &c.id)) {
            o = table[i].get(&c);
            break;
        }
    if (o)
        return o;
    *status = c.err.status == HFSAD_ERROR_INPUT ? 404 : 500;
    o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "error", c.err.message);
    return o;
}
