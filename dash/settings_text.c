/* See settings_text.h. */
#include "dash/settings_text.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Treats 1e-4 and 0.0001 as equal. */
static bool same_value(const char *a, const char *b)
{
    char *end_a, *end_b;
    const double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return !strcmp(a, b) || (end_a != a && end_b != b && !*end_a && !*end_b && x == y);
}

char *settings_text(const hfsad_spec *spec, bool all)
{
    cJSON *o = cJSON_CreateObject();
    hfsad_setting s = {.size = sizeof s};
    char value[1000];
    for (size_t i = 0; spec && hfsad_settings_at(i, &s); i++)
        if (!hfsad_spec_get(spec, s.key, value, sizeof value, NULL, NULL) && (all || !same_value(value, s.fallback)))
            cJSON_AddStringToObject(o, s.key, value);
    char *text = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    return text;
}

/* Adds the leaves below `from` by their dotted keys; null marks a setting that the run does not have. */
static void overlay(cJSON *to, const cJSON *from, const char *above)
{
    const cJSON *one;
    char key[200];
    cJSON_ArrayForEach(one, from)
    {
        snprintf(key, sizeof key, "%.90s%s%.90s", above, *above ? "." : "", one->string ? one->string : "");
        if (cJSON_IsObject(one))
            overlay(to, one, key);
        if (cJSON_IsObject(one) || cJSON_IsArray(one) || cJSON_IsNull(one) ||
            !cJSON_GetObjectItemCaseSensitive(to, key))
            continue;
        char *printed = cJSON_IsString(one) ? NULL : cJSON_PrintUnformatted(one);
        cJSON *text = cJSON_CreateString(printed ? printed : one->valuestring ? one->valuestring : "");
        cJSON_ReplaceItemInObjectCaseSensitive(to, key, text);
        cJSON_free(printed);
    }
}

char *settings_resolved(const char *all, const char *summary)
{
    cJSON *to = all ? cJSON_Parse(all) : NULL, *from = to && summary ? cJSON_Parse(summary) : NULL;
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(from, "settings");
    char *text = NULL;
    if (cJSON_IsObject(found)) {
        overlay(to, found, "");
        text = cJSON_PrintUnformatted(to);
    }
    cJSON_Delete(to);
    cJSON_Delete(from);
    return text;
}
