/*
 * CRC-32C (Castagnoli; polynomial 0x1edc6f41, reflected, start and end inverted): the checksum of a frame on the wire.
 * The checksum of "123456789" is 0xe3069283.
 */
#ifndef HFSAD_BASE_CRC32C_H
#define HFSAD_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extends the checksum `sum` by these bytes; 0 is the checksum of no bytes. */
uint32_t crc32c(uint32_t sum, const void *bytes, size_t count);
/* The same by tables, for machines without the instruction; exported for tests. */
uint32_t crc32c_plain(uint32_t sum, const void *bytes, size_t count);

#endif
