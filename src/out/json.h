/* Making and reading cJSON objects. Numbers are added as our own text, because cJSON writes only 15 digits if they look
 * sufficient. */
#ifndef HFSAD_OUT_JSON_H
#define HFSAD_OUT_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* ok becomes false at the first failed allocation; later additions are ignored. */
typedef struct {
    bool ok;
} json;

/* NULL if there is no memory. The functions below accept NULL as an object and add nothing. */
cJSON *json_add_object(json *j, cJSON *object, const char *key);
/* Takes ownership of the item, also on failure. item may be NULL: it could not be allocated. */
void json_add_item(json *j, cJSON *object, const char *key, cJSON *item);
/* The same for a list. */
void json_append(json *j, cJSON *list, cJSON *item);
/* null for a number that is not finite. */
void json_add_real(json *j, cJSON *object, const char *key, double v);
void json_add_whole(json *j, cJSON *object, const char *key, uint64_t v);
void json_add_flag(json *j, cJSON *object, const char *key, bool v);
/* A file name may hold any bytes, and JSON is UTF-8: other bytes become "?". NULL becomes null. */
void json_add_text(json *j, cJSON *object, const char *key, const char *v);

/* The items that the functions above add; NULL: no memory. */
cJSON *json_real(double v);
cJSON *json_text(const char *v);

/* The item at a key such as "settings.loss.kind", or NULL. */
const cJSON *json_at(const cJSON *object, const char *key);

#endif
