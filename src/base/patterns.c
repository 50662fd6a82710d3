#include "base/patterns.h"

#include "base/alloc.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *left, const void *right)
{
    const pattern_entry *a = left, *b = right;
    const int order = strcmp(a->text, b->text);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static bool is_plain(const char *text)
{
    return !strpbrk(text, "*?[\\");
}

bool patterns_make(pattern_list *list, const char *const *texts, size_t count)
{
    *list = (pattern_list){.entries = alloc_zero(count, sizeof *list->entries), .count = count};
    if (!list->entries)
        return count == 0;
    for (size_t i = 0; i < count; i++)
        if (is_plain(texts[i]))
            list->entries[list->n_plain++] = (pattern_entry){texts[i], i};
    for (size_t i = 0, at = list->n_plain; i < count; i++)
        if (!is_plain(texts[i]))
            list->entries[at++] = (pattern_entry){texts[i], i};
    qsort(list->entries, list->n_plain, sizeof *list->entries, by_text);
    return true;
}

void patterns_free(pattern_list *list)
{
    free(list->entries);
    *list = (pattern_list){0};
}

pattern_walk patterns_find(const pattern_list *list, const char *name)
{
    size_t first = 0, last = list->n_plain;
    while (first < last) {
        const size_t middle = first + (last - first) / 2;
        if (strcmp(list->entries[middle].text, name) < 0)
            first = middle + 1;
        else
            last = middle;
    }
    return (pattern_walk){list, name, first, list->n_plain};
}

size_t patterns_next(pattern_walk *walk)
{
    const pattern_list *list = walk->list;
    const pattern_entry *plain = NULL, *pattern = NULL;
    if (walk->plain < list->n_plain && !strcmp(list->entries[walk->plain].text, walk->name))
        plain = &list->entries[walk->plain];
    for (; walk->pattern < list->count && !pattern; walk->pattern++) {
        const pattern_entry *e = &list->entries[walk->pattern];
        /* a plain name may contain characters that have a meaning in a pattern */
        if (!strcmp(e->text, walk->name) || fnmatch(e->text, walk->name, FNM_PATHNAME) == 0)
            pattern = e;
    }
    if (plain && (!pattern || plain->index < pattern->index)) {
        walk->pattern -= pattern != NULL; /* the pattern is compared again next time */
        walk->plain++;
        return plain->index;
    }
    return pattern ? pattern->index : SIZE_MAX;
}
