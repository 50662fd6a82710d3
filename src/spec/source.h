/* Parses YAML text to a checked document of libyaml, and makes messages that state the place of an error. */
#ifndef HFSAD_SPEC_SOURCE_H
#define HFSAD_SPEC_SOURCE_H

#include "hfsad/hfsad.h"

#include <yaml.h>

enum { SOURCE_MAX_BYTES = 1 << 20 };

typedef struct {
    const char *path;        /* path of the file; NULL: the text is a value of hfsad_spec_set */
    const char *key, *value; /* arguments of hfsad_spec_set */
    hfsad_error *err;
    yaml_document_t document;
} source;

/* Fills s->err: "spec.yaml:3: ..." (without the line if it is 0) or "key=value: ...". */
__attribute__((format(printf, 3, 4))) hfsad_status source_fail(source *s, size_t line, const char *format, ...);

/* The file's bytes; the caller frees them. */
hfsad_status source_read(source *s, char **text, size_t *size);
/* Parses one document without tags and without aliases that contain themselves; call source_end afterwards. */
hfsad_status source_parse(source *s, const char *text, size_t size);
void source_end(source *s);

/* Refuses a dotted key that no setting and no mapping has; the message names the nearest key. */
hfsad_status source_find_key(source *s, const char *key);

#endif
