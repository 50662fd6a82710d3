/*
 * 17 digits of a double, as %.17g prints them.
 *
 * v = m 2^e with m below 2^53. With p the place of the first digit, the 17 digits are the nearest whole number to m 2^e
 * 10^k = m 5^k 2^(e+k), k = 16 - p. For k from 0 to 27 the product m 5^k is exact in 128 bits and the rest is a shift
 * and one rounding. This covers every number from about 1e-11 to 1e17 and is five times as fast as snprintf, which
 * writes all other numbers. The models of a million clients make this worthwhile.
 */
#include "base/format_number.h"

#include "base/bits.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 17 };

static const uint64_t ten_16 = UINT64_C(10000000000000000), ten_17 = UINT64_C(100000000000000000);

#if defined(__SIZEOF_INT128__)

__extension__ typedef unsigned __int128 wide;

enum { FIVES_MAX = 27 }; /* 5^27 < 2^63 */

/* clang-format off */
static const uint64_t fives[FIVES_MAX + 1] = {
    1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u, 48828125u, 244140625u, 1220703125u,
    6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u, 19073486328125u, 95367431640625u,
    476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u, 298023223876953125u,
    1490116119384765625u, 7450580596923828125u,
};
/* clang-format on */

/* m 5^k 2^(e+k) rounded to the nearest whole number, ties to even; *floored: rounded down. */
static uint64_t scaled(uint64_t m, int e, int k, uint64_t *floored)
{
    const wide product = (wide)m * fives[k];
    const int shift = -(e + k);
    if (shift <= 0)
        return *floored = (uint64_t)product << -shift;
    const wide rest = product & (((wide)1 << shift) - 1), half = (wide)1 << (shift - 1);
    *floored = (uint64_t)(product >> shift);
    return *floored + (rest > half || (rest == half && (*floored & 1)));
}

/* v > 0. The 17 digits as a whole number and the place of the first digit; false if the product would overflow. */
static bool find_digits(double v, uint64_t *digits, int *place)
{
    if (!(v >= 1e-11 && v < 1e17))
        return false;
    uint64_t floored;
    const uint64_t bits = bits_of(v);
    const int e = (int)(bits >> 52) - 1075;
    const uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1) << 52);
    /* 2^(e+52) <= v < 2^(e+53): floor((e + 52) log10(2)) is the place of the first digit, or one less. */
    int p = (int)floor((e + 52) * 0.30102999566398120);
    if (16 - p > FIVES_MAX)
        return false;
    uint64_t n = scaled(m, e, 16 - p, &floored);
    if (floored >= ten_17) {
        p++;
        if (p > 16)
            return false;
        n = scaled(m, e, 16 - p, &floored);
    }
    if (n == ten_17) {
        n = ten_16;
        p++;
    }
    *digits = n;
    *place = p;
    return true;
}

#else

static bool find_digits(double v, uint64_t *digits, int *place)
{
    (void)v, (void)digits, (void)place;
    return false;
}

#endif

/* Writes the DIGITS digits of n; returns their number without trailing zeros. */
static size_t spell(char *out, uint64_t n)
{
    uint32_t halves[2] = {(uint32_t)(n / 100000000), (uint32_t)(n % 100000000)}; /* 9 and 8 digits */
    char *end = out + DIGITS;
    for (int half = 1; half >= 0; half--) {
        for (int i = half ? 8 : 9; i > 0; i--) {
            *--end = (char)('0' + halves[half] % 10);
            halves[half] /= 10;
        }
    }
    size_t count = DIGITS;
    while (count > 1 && out[count - 1] == '0') /* cppcheck-suppress uninitvar; the loop above wrote all digits */
        count--;
    return count;
}

/* The layout of %g: plain from 1e-4 to 1e17, otherwise with an exponent, which has two digits here. */
static size_t lay_out(char *out, const char *digits, size_t count, int place)
{
    char *at = out;
    if (place >= 0) {
        const size_t whole = (size_t)place + 1, known = count < whole ? count : whole;
        memcpy(at, digits, known);
        memset(at + known, '0', whole - known);
        at += whole;
        if (count > whole) {
            *at++ = '.';
            memcpy(at, digits + whole, count - whole);
            at += count - whole;
        }
    } else if (place >= -4) {
        memcpy(at, "0.0000", 6);
        at += 1 - place; /* "0." and -place - 1 zeros */
        memcpy(at, digits, count);
        at += count;
    } else {
        *at++ = digits[0];
        if (count > 1) {
            *at++ = '.';
            memcpy(at, digits + 1, count - 1);
            at += count - 1;
        }
        *at++ = 'e';
        *at++ = '-';
        *at++ = (char)('0' - place / 10);
        *at++ = (char)('0' - place % 10);
    }
    return (size_t)(at - out);
}

size_t number_write(char *out, double v)
{
    uint64_t n;
    int place;
    const bool negative = signbit(v);
    if (find_digits(negative ? -v : v, &n, &place)) {
        char digits[DIGITS];
        const size_t count = spell(digits, n);
        out[0] = '-';
        return lay_out(out + negative, digits, count, place) + negative;
    }
    if (v == 0) {
        memcpy(out, "-0", 2);
        out[0] = negative ? '-' : '0';
        return 1 + (size_t)negative;
    }
    if (isnan(v)) { /* with either sign */
        memcpy(out, "nan", 3);
        return 3;
    }
    return (size_t)snprintf(out, NUMBER_SIZE, "%.17g", v);
}

size_t number_write_whole(char *out, uint64_t v)
{
    char digits[24];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}
