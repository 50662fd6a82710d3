/* Objects of cJSON made and read. Numbers go in as text of our own: cJSON takes 15 digits for good enough. */
#ifndef HFSAD_OUT_JSON_H
#define HFSAD_OUT_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* ok turns false at the first lack of memory; what is added after that is dropped. */
typedef struct {
    bool ok;
} json;

/* NULL on lack of memory; those below take it for an object and add nothing. */
cJSON *json_add_object(json *j, cJSON *object, const char *key);
/* Takes the item over, also on failure; NULL: there was no memory for it. */
void json_add_item(json *j, cJSON *object, const char *key, cJSON *item);
/* The same for a list. */
void json_append(json *j, cJSON *list, cJSON *item);
/* null for what is not finite. */
void json_add_real(json *j, cJSON *object, const char *key, double v);
void json_add_whole(json *j, cJSON *object, const char *key, uint64_t v);
void json_add_flag(json *j, cJSON *object, const char *key, bool v);
/* A file may have any name, and JSON is UTF-8: other bytes become "?". NULL is null. */
void json_add_text(json *j, cJSON *object, const char *key, const char *v);

/* The items that the functions above add; NULL on lack of memory. */
cJSON *json_real(double v);
cJSON *json_text(const char *v);

/* The item at a key such as "settings.loss.kind", or NULL. */
const cJSON *json_at(const cJSON *object, const char *key);

#endif
