/*
 * Phase retrieval has many valleys. The search looks for a low one: from POLISH_LANES points, some of them the model
 * itself and others around it or anywhere, it descends by sub-gradient steps of falling length,
 *
 *     w - t D^2 g/|D g|,        D: the inverse sizes of the coordinates (polish_state.scale),
 *
 * all lanes in one question. The point with the least F of all lanes is where the next search, or the stages, go on.
 * Far from a minimum this is also the cheapest way down.
 */
#ifndef HFSAD_POLISH_SEARCH_H
#define HFSAD_POLISH_SEARCH_H

#include "polish/inner.h"

/* Number of M-vectors in polish_state.lanes: the lanes, the best point and D. */
enum { POLISH_SEARCH_ROOM = POLISH_LANES + 2 };

/* w: a point of value result->after and loss s->loss, which all become those of the lowest point that was seen. number:
 * of the search, for its random draws. Returns whether another search may find a lower valley: this one did, and its
 * loss is not that of noise alone. */
bool polish_search(polish_state *s, uint64_t number, double *w);

#endif
