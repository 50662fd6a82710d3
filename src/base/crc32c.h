/*
 * CRC-32C (Castagnoli; polynomial 0x1edc6f41, reflected, start and end inverted): what guards a frame on the wire. The
 * sum of "123456789" is 0xe3069283.
 */
#ifndef HFSAD_BASE_CRC32C_H
#define HFSAD_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of what `sum` is the sum of, followed by these bytes; 0 is the sum of nothing. */
uint32_t crc32c(uint32_t sum, const void *bytes, size_t count);
/* The same by tables, as machines without the instruction have it: for tests. */
uint32_t crc32c_plain(uint32_t sum, const void *bytes, size_t count);

#endif
