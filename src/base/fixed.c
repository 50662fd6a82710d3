#include "base/fixed.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void negate(uint64_t w[FIXED_WORDS])
{
    uint64_t carry = 1;
    for (size_t i = 0; i < FIXED_WORDS; i++) {
        w[i] = ~w[i] + carry;
        carry = carry && w[i] == 0;
    }
}

bool fixed_put(double v, uint64_t to[FIXED_WORDS])
{
    enum { DIGITS = 53, WORD = 64 };
    int exponent;
    memset(to, 0, FIXED_WORDS * sizeof *to);
    if (!(fabs(v) < ldexp(1, FIXED_MOST_BIT)))
        return false;
    const double digits = frexp(fabs(v), &exponent);
    const int shift = exponent - DIGITS + FIXED_FRACTION;
    if (shift <= 0) {
        to[0] = (uint64_t)nearbyint(ldexp(fabs(v), FIXED_FRACTION));
    } else {
        const uint64_t whole = (uint64_t)ldexp(digits, DIGITS);
        const unsigned at = (unsigned)shift / WORD, by = (unsigned)shift % WORD;
        to[at] = whole << by;
        if (by && at + 1 < FIXED_WORDS)
            to[at + 1] = whole >> (WORD - by);
    }
    if (v < 0)
        negate(to);
    return true;
}

double fixed_get(const uint64_t from[FIXED_WORDS])
{
    uint64_t w[FIXED_WORDS];
    memcpy(w, from, sizeof w);
    const bool below = w[FIXED_WORDS - 1] >> 63;
    if (below)
        negate(w);
    size_t top = FIXED_WORDS;
    while (top > 0 && w[top - 1] == 0)
        top--;
    if (top == 0)
        return 0;
    /* The highest 64 binary digits; the lowest of them also stands for all lower digits, so that the conversion rounds
     * once. */
    const int by = __builtin_clzll(w[top - 1]);
    uint64_t head = w[top - 1] << by, rest = 0;
    if (top > 1) {
        head |= by ? w[top - 2] >> (64 - by) : 0;
        rest = w[top - 2] << by;
    }
    if (top > 2)
        rest |= w[top - 3];
    const double size = ldexp((double)(head | (rest != 0)), (int)(top - 1) * 64 - by - FIXED_FRACTION);
    return below ? -size : size;
}

void fixed_negate(uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        negate(numbers + i * FIXED_WORDS);
}

void fixed_add(uint64_t *sum, const uint64_t *part, size_t count)
{
    for (size_t i = 0; i < count; i++, sum += FIXED_WORDS, part += FIXED_WORDS) {
        uint64_t carry = 0;
        for (size_t w = 0; w < FIXED_WORDS; w++) {
            const uint64_t with = part[w] + carry;
            carry = with < carry;
            sum[w] += with;
            carry += sum[w] < with;
        }
    }
}

bool fixed_is_infinite(double v)
{
    return !(fabs(v) < DBL_MAX);
}

child_sum child_sum_begin(size_t count, double *sum, uint64_t *words)
{
    memset(sum, 0, count * sizeof *sum);
    if (words)
        memset(words, 0, count * FIXED_WORDS * sizeof *words);
    return (child_sum){count, sum, words, false};
}

bool child_sum_add(child_sum *s, const double *part)
{
    bool fits = true;
    for (size_t i = 0; i < s->count && !s->words; i++)
        s->sum[i] += part[i];
    if (!s->words)
        return true;
    for (size_t i = 0; i < s->count; i++)
        s->infinite = s->infinite || fixed_is_infinite(part[i]);
    for (size_t i = 0; i < s->count && !s->infinite; i++) {
        uint64_t w[FIXED_WORDS];
        fits = fixed_put(part[i], w) && fits;
        fixed_add(s->words + i * FIXED_WORDS, w, 1);
    }
    s->infinite = s->infinite || !fits;
    return fits;
}

void child_sum_end(child_sum *s)
{
    for (size_t i = 0; i < s->count && s->words; i++)
        s->sum[i] = s->infinite ? (double)INFINITY : fixed_get(s->words + i * FIXED_WORDS);
}

bool grid_put(const double *v, size_t count, double factor, size_t members, int64_t *to, size_t *at)
{
    const double most = ldexp(1, GRID_BITS) / (double)(members ? members : 1);
    for (size_t i = 0; i < count; i++) {
        const double whole = nearbyint(v[i] * factor);
        if (!(fabs(whole) < most)) {
            *at = i;
            return false;
        }
        to[i] = (int64_t)whole;
    }
    return true;
}
