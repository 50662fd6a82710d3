/* Masks of secure aggregation. */
#ifndef HFSAD_NET_VEIL_H
#define HFSAD_NET_VEIL_H

#include <stddef.h>
#include <stdint.h>

/* SHA-256 of the numbers of a message. */
void veil_digest(const double *values, size_t count, uint64_t digest[4]);

#endif
