/*
 * Decimal text to the nearest double.
 *
 * A number is m * 10^e. For m of at most 19 digits and |e| <= 27 both m and 5^|e| fit in 64 bits, so that m * 5^e is
 * exact in 128 bits and m / 5^|e| is 64 bits of quotient and a remainder: the 53 bits of the result and the bits below
 * them are exact, and the only rounding is the conversion to double. This needs no long double, whose 64 bits valgrind
 * and other processors do not have. Other numbers (more digits, larger exponents) go to strtod as digits and an
 * exponent: without a decimal point that call does not depend on the locale.
 */
#include "data/parse_number.h"

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 19, /* digits of m: 10^19 < 2^64 */
    FIVES_MAX = 27,  /* 5^27 < 2^63 */
    /* The midpoint of two doubles has up to 767 digits; of further digits it only matters whether they are all 0. */
    SLOW_DIGITS = 780,
};

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

#if defined(__SIZEOF_INT128__)

__extension__ typedef unsigned __int128 wide;

/* clang-format off */
static const uint64_t FIVES[FIVES_MAX + 1] = {
    1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u, 48828125u, 244140625u, 1220703125u,
    6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u, 19073486328125u, 95367431640625u,
    476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u, 298023223876953125u,
    1490116119384765625u, 7450580596923828125u,
};

/* 2^127 over 5^e shifted up to its 64th bit, rounded down. */
static const uint64_t INVERSES[FIVES_MAX + 1] = {
    0, 0xccccccccccccccccu, 0xa3d70a3d70a3d70au, 0x83126e978d4fdf3bu, 0xd1b71758e219652bu, 0xa7c5ac471b478423u,
    0x8637bd05af6c69b5u, 0xd6bf94d5e57a42bcu, 0xabcc77118461cefcu, 0x89705f4136b4a597u, 0xdbe6fecebdedd5beu,
    0xafebff0bcb24aafeu, 0x8cbccc096f5088cbu, 0xe12e13424bb40e13u, 0xb424dc35095cd80fu, 0x901d7cf73ab0acd9u,
    0xe69594bec44de15bu, 0xb877aa3236a4b449u, 0x9392ee8e921d5d07u, 0xec1e4a7db69561a5u, 0xbce5086492111aeau,
    0x971da05074da7beeu, 0xf1c90080baf72cb1u, 0xc16d9a0095928a27u, 0x9abe14cd44753b52u, 0xf79687aed3eec551u,
    0xc612062576589ddau, 0x9e74d1b791e07e48u,
};
/* clang-format on */

/* q * 2^e, for results far from the limits of double; bit 0 of q stands for all lower bits. */
static inline double binary_value(uint64_t q, int e)
{
    return (double)q * double_of((uint64_t)(e + 1023) << 52);
}

static inline double times_power(uint64_t m, int e)
{
    const wide product = (wide)m * FIVES[e];
    const uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if (high == 0)
        return binary_value(low, e);
    const int shift = __builtin_clzll(high);
    const wide top = product << shift;
    return binary_value((uint64_t)(top >> 64) | ((uint64_t)top != 0), e + 64 - shift);
}

/* m / 10^e with both operands shifted up to their 64th bit; the quotient then has 64 bits. m > 0, e > 0.
 * A product with the inverse is at most 3 below the quotient. The conversion rounds 11 bits off: only if these are at
 * or just below one half does the rounding need the quotient itself. */
static inline double over_power(uint64_t m, int e)
{
    const int up_m = __builtin_clzll(m), up_five = __builtin_clzll(FIVES[e]);
    const uint64_t dividend = m << up_m, divisor = FIVES[e] << up_five;
    const int places = dividend < divisor ? 64 : 63;
    const uint64_t close = (uint64_t)((wide)dividend * INVERSES[e] >> (127 - places));
    if ((close & 0x7ff) - 0x3fc > 4)
        return binary_value(close, up_five - up_m - places - e);
    const wide shifted = (wide)dividend << places;
    const uint64_t quotient = (uint64_t)(shifted / divisor);
    const bool rest = (uint64_t)shifted != quotient * divisor; /* the remainder is below 2^64 */
    return binary_value(quotient | rest, up_five - up_m - places - e);
}

static inline bool small_value(uint64_t m, int64_t e, double *value)
{
    if (e < -FIVES_MAX || e > FIVES_MAX)
        return false;
    if (m == 0)
        *value = 0;
    else
        *value = e < 0 ? over_power(m, (int)-e) : times_power(m, (int)e);
    return true;
}

#else

static inline bool small_value(uint64_t m, int64_t e, double *value)
{
    (void)m, (void)e, (void)value;
    return false;
}

#endif

/* The digits in [p, end), times 10^exponent; a decimal point among the digits is skipped. */
static double slow_value(const char *p, const char *end, int64_t exponent)
{
    char text[SLOW_DIGITS + 32];
    size_t n = 0;
    bool rest = false;
    for (; p < end; p++) {
        if (*p == '.' || (n == 0 && *p == '0'))
            continue;
        if (n < SLOW_DIGITS) {
            text[n++] = *p;
        } else {
            rest |= *p != '0';
            exponent++;
        }
    }
    if (n == 0)
        return 0;
    if (rest) { /* any non-zero digit in the next place means "slightly more" */
        text[n++] = '1';
        exponent--;
    }
    snprintf(text + n, sizeof text - n, "e%lld", (long long)exponent);
    return strtod(text, NULL);
}

static inline const char *read_digits(const char *p, const char *end, uint64_t *m)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* Up to eight digits at once: counted, moved up so that zeros stand before them, then joined to pairs, fours and
     * eight by multiplications. */
    static const uint32_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        v ^= UINT64_C(0x3030303030303030);
        /* Bit 7 of a byte that is no digit; a carry reaches only the bytes behind the first of these. */
        const uint64_t others = ((v + UINT64_C(0x7676767676767676)) | v) & UINT64_C(0x8080808080808080);
        const unsigned digits = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
        if (digits == 0)
            return p;
        v <<= 64 - 8 * digits;
        v = v * 10 + (v >> 8);
        const uint64_t pair = UINT64_C(0x000000ff000000ff);
        const uint64_t low = (v & pair) * UINT64_C(0x000f424000000064);
        v = (low + ((v >> 16) & pair) * UINT64_C(0x0000271000000001)) >> 32;
        *m = *m * tens[digits] + (uint32_t)v;
        p += digits;
        if (digits < 8)
            return p;
    }
#endif
    for (; p < end && is_digit(*p); p++)
        *m = *m * 10 + (uint64_t)(*p - '0');
    return p;
}

/* The end of the exponent at p, or p itself if there is none ("2e" is the number 2 and the text e). */
static const char *read_exponent(const char *p, const char *end, int64_t *exponent)
{
    const char *q = p + 1;
    const bool negative = q < end && *q == '-';
    if (q < end && (*q == '-' || *q == '+'))
        q++;
    if (q == end || !is_digit(*q))
        return p;
    int64_t e = 0;
    for (; q < end && is_digit(*q); q++)
        if (e < INT64_C(100000000000000000)) /* more digits could not compensate a larger exponent */
            e = e * 10 + (*q - '0');
    *exponent += negative ? -e : e;
    return q;
}

/* Number of digits of m without leading zeros; more than DIGITS_MAX: m has overflowed. */
static int64_t significant(const char *p, const char *end, int64_t digits)
{
    for (; p < end && (*p == '0' || *p == '.'); p++)
        digits -= *p == '0';
    return digits;
}

const char *number_parse(const char *p, const char *end, double *value)
{
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    const char *const first = p;
    uint64_t m = 0;
    if (end - p > 1 && is_digit(p[0]) && p[1] == '.') /* most numbers of tables */
        m = (uint64_t)(*p++ - '0');
    else
        p = read_digits(p, end, &m);
    int64_t digits = p - first, exponent = 0;
    if (p < end && *p == '.') {
        const char *const point = p;
        p = read_digits(p + 1, end, &m);
        exponent = point + 1 - p;
        digits -= exponent;
    }
    if (digits == 0)
        return NULL;
    const char *const last = p;
    if (p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(p, end, &exponent);
    double magnitude;
    if ((digits > DIGITS_MAX && significant(first, last, digits) > DIGITS_MAX) || !small_value(m, exponent, &magnitude))
        magnitude = slow_value(first, last, exponent);
    *value = negative ? -magnitude : magnitude;
    return p;
}
