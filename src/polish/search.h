/*
 * Phase retrieval has many valleys, and the stages of the polish lead to the bottom of the nearest. The search looks
 * for a lower one: from POLISH_LANES points around the bottom it descends by sub-gradient steps of falling length,
 *
 *     w - t D^2 g/|D g|,        D: the inverse sizes of the coordinates (polish_state.scale),
 *
 * all lanes in one question. The point with the least F of all lanes is where the stages go on, if it is lower.
 */
#ifndef HFSAD_POLISH_SEARCH_H
#define HFSAD_POLISH_SEARCH_H

#include "polish/inner.h"

/* Vectors of M that polish_state.lanes has room for: the lanes, the best point and D. */
enum { POLISH_SEARCH_ROOM = POLISH_LANES + 2 };

/* w: a stationary point of value result->after, which both become those of the lower point. false: none was found.
 * number: of the search, for its random draws. */
bool polish_search(polish_state *s, uint64_t number, double *w);

#endif
