/*
 * How the numbers of models are encoded between the nodes of a federation, and how this changes them. The simulator
 * rounds the vectors that its nodes would send in the same way, so that its numbers are those of the federation.
 */
#ifndef HFSAD_BASE_WIRE_H
#define HFSAD_BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>

/* `federation.wire` of a spec. */
typedef enum {
    WIRE_DOUBLE, /* exact */
    WIRE_FLOAT,  /* rounded */
    WIRE_DELTA,  /* exact: compressed difference to a value that both sides have; DOUBLE if that is not shorter */
    WIRE_FIXED,  /* UPs and answers as whole multiples of a power of two (base/fixed.h); DOWNs are DOUBLE */
    WIRE_ENCODINGS
} wire_encoding;

/* Rounds a vector as WIRE_FLOAT does: every number to the nearest float. False if a number does not fit: the whole
 * vector is then sent unrounded. */
bool wire_round(double *v, size_t count);

#endif
