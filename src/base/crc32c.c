/* CRC-32C by the processor's instruction if it has one, otherwise by eight tables; see crc32c.h. */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

enum { TABLES = 8, BYTES = 256 };
static uint32_t table[TABLES][BYTES];
static pthread_once_t table_made = PTHREAD_ONCE_INIT;

/* table[t][b]: the contribution of byte b to the checksum if t zero bytes follow it. */
static void make_table(void)
{
    const uint32_t polynomial = 0x82f63b78;
    for (uint32_t b = 0; b < BYTES; b++) {
        uint32_t sum = b;
        for (int bit = 0; bit < 8; bit++)
            sum = (sum >> 1) ^ (sum & 1 ? polynomial : 0);
        table[0][b] = sum;
    }
    for (int t = 1; t < TABLES; t++)
        for (uint32_t b = 0; b < BYTES; b++)
            table[t][b] = (table[t - 1][b] >> 8) ^ table[0][table[t - 1][b] & 0xff];
}

static uint32_t take_byte(uint32_t sum, unsigned char byte)
{
    return (sum >> 8) ^ table[0][(sum ^ byte) & 0xff];
}

uint32_t crc32c_plain(uint32_t sum, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    pthread_once(&table_made, make_table);
    sum = ~sum;
    for (; count >= 8; count -= 8, p += 8) {
        const uint32_t low = sum ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        sum = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
              table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; count > 0; count--)
        sum = take_byte(sum, *p++);
    return ~sum;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t sum, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    uint64_t s = (uint32_t)~sum;
    for (; count >= 8; count -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        s = __builtin_ia32_crc32di(s, word);
    }
    uint32_t rest = (uint32_t)s;
    for (; count > 0; count--)
        rest = __builtin_ia32_crc32qi(rest, *p++);
    return ~rest;
}

uint32_t crc32c(uint32_t sum, const void *bytes, size_t count)
{
    if (__builtin_cpu_supports("sse4.2"))
        return by_instruction(sum, bytes, count);
    return crc32c_plain(sum, bytes, count);
}

#else

uint32_t crc32c(uint32_t sum, const void *bytes, size_t count)
{
    return crc32c_plain(sum, bytes, count);
}

#endif
