#include "out/json.h"

#include "base/format_number.h"
#include "data/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void json_add_item(json *j, cJSON *object, const char *key, cJSON *item)
{
    if (item && object && cJSON_AddItemToObject(object, key, item))
        return;
    cJSON_Delete(item);
    j->ok = false;
}

cJSON *json_add_object(json *j, cJSON *object, const char *key)
{
    cJSON *child = cJSON_CreateObject();
    json_add_item(j, object, key, child);
    return j->ok ? child : NULL;
}

cJSON *json_real(double v)
{
    char text[NUMBER_SIZE + 1];
    if (!isfinite(v))
        return cJSON_CreateNull();
    text[number_write(text, v)] = 0;
    return cJSON_CreateRaw(text);
}

cJSON *json_text(const char *v)
{
    char *copy = strdup(v);
    if (!copy)
        return NULL;
    for (size_t i = 0, bytes, length = strlen(copy); i < length; i += bytes) {
        bytes = utf8_length(copy + i, length - i);
        if (!bytes) {
            copy[i] = '?';
            bytes = 1;
        }
    }
    cJSON *item = cJSON_CreateString(copy);
    free(copy);
    return item;
}

void json_append(json *j, cJSON *list, cJSON *item)
{
    if (list && item && cJSON_AddItemToArray(list, item))
        return;
    cJSON_Delete(item);
    j->ok = false;
}

void json_add_real(json *j, cJSON *object, const char *key, double v)
{
    json_add_item(j, object, key, json_real(v));
}

void json_add_whole(json *j, cJSON *object, const char *key, uint64_t v)
{
    char text[NUMBER_SIZE + 1];
    text[number_write_whole(text, v)] = 0;
    json_add_item(j, object, key, cJSON_CreateRaw(text));
}

void json_add_flag(json *j, cJSON *object, const char *key, bool v)
{
    json_add_item(j, object, key, cJSON_CreateBool(v));
}

void json_add_text(json *j, cJSON *object, const char *key, const char *v)
{
    json_add_item(j, object, key, v ? json_text(v) : cJSON_CreateNull());
}

const cJSON *json_at(const cJSON *object, const char *key)
{
    char part[100];
    while (*key && object) {
        const size_t length = strcspn(key, ".");
        if (length >= sizeof part)
            return NULL;
        memcpy(part, key, length);
        part[length] = 0;
        object = cJSON_GetObjectItemCaseSensitive(object, part);
        key += length + (key[length] == '.');
    }
    return object;
}
