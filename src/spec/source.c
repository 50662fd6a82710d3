#include "spec/source.h"

#include "base/error.h"
#include "base/read_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 60, PATH_SHOWN_MAX = 300, SOURCE_MAX_DEPTH = 32, SOURCE_MAX_ANCHORS = 1000 };

hfsad_status source_fail(source *s, size_t line, const char *format, ...)
{
    char what[900], where[24] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!s->path)
        return error_set(s->err, HFSAD_ERROR_INPUT, "%.*s%s=%.*s%s: %s", SHOWN_MAX, s->key,
                         strlen(s->key) > SHOWN_MAX ? "..." : "", SHOWN_MAX, s->value,
                         strlen(s->value) > SHOWN_MAX ? "..." : "", what);
    if (line > 0)
        snprintf(where, sizeof where, ":%zu", line);
    const size_t length = strlen(s->path); /* the end of a long path is the most informative part */
    return error_set(s->err, HFSAD_ERROR_INPUT, "%s%s: %s",
                     s->path + (length > PATH_SHOWN_MAX ? length - PATH_SHOWN_MAX : 0), where, what);
}

hfsad_status source_read(source *s, char **text, size_t *size)
{
    const int reason = file_read(s->path, SOURCE_MAX_BYTES, text, size);
    if (reason == EISDIR)
        return source_fail(s, 0, "is a folder; give the YAML file itself");
    if (reason == EFBIG)
        return source_fail(s, 0, "is larger than %d bytes, the limit for a spec; is it a spec?", SOURCE_MAX_BYTES);
    if (reason == ENOMEM)
        return error_memory(s->err, SOURCE_MAX_BYTES, "the spec");
    return reason ? source_fail(s, 0, "cannot be opened: %s; give the path of a YAML file", strerror(reason))
                  : HFSAD_OK;
}

/* Converts a byte offset to a line number, for errors that libyaml finds before it counts lines. */
static size_t line_at(const char *text, size_t size, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < size && i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static bool indented_by_tab(const char *text, size_t size, size_t line)
{
    const char *p = text, *end = text + size;
    for (size_t i = 1; i < line && p; i++) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    while (p && p < end && *p == ' ')
        p++;
    return p && p < end && *p == '\t';
}

static hfsad_status fail_syntax(source *s, const yaml_parser_t *parser, const char *text, size_t size)
{
    const char *problem = parser->problem ? parser->problem : "unknown problem";
    if (parser->error == YAML_MEMORY_ERROR)
        return error_memory(s->err, size, "the spec's YAML");
    if (parser->error == YAML_READER_ERROR) {
        const size_t line = line_at(text, size, parser->problem_offset);
        if (!strncmp(problem, "control", 7))
            return source_fail(s, line, "a control character (byte %d); remove it", parser->problem_value);
        return source_fail(s, line, "not UTF-8 text (%s); save the file as UTF-8", problem);
    }
    const size_t line = parser->problem_mark.line + 1;
    if (indented_by_tab(text, size, line))
        return source_fail(s, line, "a tab in the indentation; indent YAML with spaces");
    return source_fail(s, line, "not valid YAML, %s%s%s; check indentation, colons, brackets and quotes", problem,
                       parser->context ? " " : "", parser->context ? parser->context : "");
}

/* A pass over the events of the text, before libyaml builds a document. */
typedef struct {
    yaml_event_t open[SOURCE_MAX_DEPTH]; /* starts of the lists and mappings that have not ended */
    size_t depth, documents, anchors;
} scan;

static hfsad_status scan_alias(source *s, const scan *sc, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    for (size_t i = 0; i < sc->depth; i++) {
        const yaml_event_t *open = &sc->open[i];
        const yaml_char_t *anchor =
            open->type == YAML_MAPPING_START_EVENT ? open->data.mapping_start.anchor : open->data.sequence_start.anchor;
        if (anchor && !strcmp((const char *)anchor, name))
            return source_fail(s, event->start_mark.line + 1,
                               "the alias '*%.60s' is inside its own anchor; write the value itself", name);
    }
    return HFSAD_OK;
}

static hfsad_status scan_node(source *s, scan *sc, const yaml_event_t *event, const yaml_char_t *anchor,
                              const yaml_char_t *tag)
{
    const size_t line = event->start_mark.line + 1;
    if (tag)
        return source_fail(s, line, "the tag '%.60s' has no meaning here; remove it", tag);
    if (anchor && ++sc->anchors > SOURCE_MAX_ANCHORS)
        return source_fail(s, line, "more than %d anchors, the limit for a spec", SOURCE_MAX_ANCHORS);
    if (event->type != YAML_SCALAR_EVENT && sc->depth == SOURCE_MAX_DEPTH)
        return source_fail(s, line, "nested deeper than %d levels; a spec needs 4", SOURCE_MAX_DEPTH);
    return HFSAD_OK;
}

/* Takes ownership of the event: keeps it if it opens a list or mapping, otherwise deletes it. */
static hfsad_status scan_event(source *s, scan *sc, yaml_event_t *event)
{
    hfsad_status status = HFSAD_OK;
    bool opens = false;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++sc->documents > 1)
            status = source_fail(s, event->start_mark.line + 1,
                                 "a second document starts here; a spec has one, so "
                                 "remove the '---'");
        break;
    case YAML_ALIAS_EVENT:
        status = scan_alias(s, sc, event);
        break;
    case YAML_SCALAR_EVENT:
        status = scan_node(s, sc, event, event->data.scalar.anchor, event->data.scalar.tag);
        break;
    case YAML_SEQUENCE_START_EVENT:
        status = scan_node(s, sc, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        opens = !status;
        break;
    case YAML_MAPPING_START_EVENT:
        status = scan_node(s, sc, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        opens = !status;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        yaml_event_delete(&sc->open[--sc->depth]);
        break;
    default:
        break;
    }
    if (opens)
        sc->open[sc->depth++] = *event;
    else
        yaml_event_delete(event);
    return status;
}

/*
 * The time of libyaml grows with the square of the nesting and of the anchors, and it lets an alias contain itself.
 * Such texts are refused before libyaml builds a document.
 */
static hfsad_status scan_text(source *s, const char *text, size_t size)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return error_memory(s->err, sizeof parser, "the YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    scan sc = {0};
    hfsad_status status = HFSAD_OK;
    for (bool ended = false; !ended && !status;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            status = fail_syntax(s, &parser, text, size);
        } else {
            ended = event.type == YAML_STREAM_END_EVENT;
            status = scan_event(s, &sc, &event);
        }
    }
    while (sc.depth > 0)
        yaml_event_delete(&sc.open[--sc.depth]);
    yaml_parser_delete(&parser);
    return status;
}

hfsad_status source_parse(source *s, const char *text, size_t size)
{
    yaml_parser_t parser;
    hfsad_status status = scan_text(s, text, size);
    if (status)
        return status;
    if (!yaml_parser_initialize(&parser))
        return error_memory(s->err, sizeof parser, "the YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    if (!yaml_parser_load(&parser, &s->document))
        status = fail_syntax(s, &parser, text, size);
    yaml_parser_delete(&parser);
    return status;
}

void source_end(source *s)
{
    yaml_document_delete(&s->document);
}
