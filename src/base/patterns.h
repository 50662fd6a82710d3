/*
 * Names and patterns of nodes (`overrides`), found by a node's name: plain names by bisection, so that thousands of
 * them cost a node only a few comparisons; patterns in sequence.
 */
#ifndef HFSAD_BASE_PATTERNS_H
#define HFSAD_BASE_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *text;
    size_t index; /* in the caller's order */
} pattern_entry;

typedef struct {
    pattern_entry *entries; /* plain names, sorted; behind them the patterns, in order */
    size_t n_plain, count;
} pattern_list;

/* The texts stay the caller's and must outlive the list. False: no memory. */
bool patterns_make(pattern_list *list, const char *const *texts, size_t count);
void patterns_free(pattern_list *list);

typedef struct {
    const pattern_list *list;
    const char *name;
    size_t plain, pattern; /* next to compare */
} pattern_walk;

/* The indices of what matches a name, rising; SIZE_MAX behind the last. */
pattern_walk patterns_find(const pattern_list *list, const char *name);
size_t patterns_next(pattern_walk *walk);

#endif
