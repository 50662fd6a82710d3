/*
 * Names and patterns of nodes (`overrides`), searched by a node's name: plain names by bisection, so that thousands of
 * names cost a few comparisons per node; patterns one after the other.
 */
#ifndef HFSAD_BASE_PATTERNS_H
#define HFSAD_BASE_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *text;
    size_t index; /* place in the caller's order */
} pattern_entry;

typedef struct {
    pattern_entry *entries; /* plain names, sorted; then the patterns, in order */
    size_t n_plain, count;
} pattern_list;

/* The caller owns the texts, which must outlive the list. False: no memory. */
bool patterns_make(pattern_list *list, const char *const *texts, size_t count);
void patterns_free(pattern_list *list);

typedef struct {
    const pattern_list *list;
    const char *name;
    size_t plain, pattern; /* next to compare */
} pattern_walk;

/* The indices of the entries that match a name, in increasing order; SIZE_MAX after the last. */
pattern_walk patterns_find(const pattern_list *list, const char *name);
size_t patterns_next(pattern_walk *walk);

#endif
