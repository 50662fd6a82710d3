#include "base/gaussian.h"

#include "base/rng.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

typedef unsigned __int128 wide;

/* ---- words of a simulation ---- */

static void begin_seeded(void *context, uint64_t step)
{
    seeded_words *w = context;
    w->step = rng_u64(w->key, step);
    w->counter = 0;
}

static uint64_t next_seeded(void *context)
{
    seeded_words *w = context;
    return rng_u64(w->step, w->counter++);
}

word_source seeded_words_source(seeded_words *w)
{
    return (word_source){w, begin_seeded, next_seeded};
}

/* ---- the strips ---- */

/* Strips from LAST on are drawn together: E of strip LAST + j is that of LAST, divided by 2^j, which is enough because
 * exp(-2 LAST/512) < 1/2. Cells of the table have 2^CELL_BITS; what no strip has is rejected. */
enum { LAST = 192, CELLS = 256, REJECTED = 255, CELL_BITS = 55, SHARP = 64, SCALE_BITS = 63 };
/* C: 2^63 divided by somewhat more than the sum of exp(-i^2/512), which is 20.553. */
#define SCALE ((UINT64_C(1) << SCALE_BITS) / 2056 * 100)

static uint64_t upper[LAST + 1];   /* E */
static uint64_t least[CELLS];      /* words of a cell below this are of its own strip, ... */
static unsigned char other[CELLS]; /* ... the others of this one */
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* exp(-a/512) as a part of 2^64, or somewhat more. */
static uint64_t root_above(unsigned a)
{
    enum { DIGITS = 120, TERMS = 30, SLACK = 64 };
    wide term = (wide)1 << DIGITS, sum = 0;
    for (unsigned n = 1; n <= TERMS; n++) {
        sum += n % 2 ? term : -term;
        term = term * a / (512 * n);
    }
    return (uint64_t)((sum + SLACK) >> (DIGITS - 64)) + 1;
}

static uint64_t times_above(uint64_t v, uint64_t part)
{
    return (uint64_t)(((wide)v * part) >> 64) + 1;
}

/* Alias tables (Walker): strips with less than a cell are filled up by strips with more. */
static void make_cells(uint64_t *weight)
{
    const uint64_t cell = UINT64_C(1) << CELL_BITS;
    bool done[CELLS] = {false};
    for (size_t left = CELLS; left > 0; left--) {
        size_t low = CELLS, high = CELLS;
        for (size_t i = 0; i < CELLS; i++) {
            if (!done[i] && weight[i] <= cell && low == CELLS)
                low = i;
            if (!done[i] && weight[i] > cell && high == CELLS)
                high = i;
        }
        done[low] = true; /* there is one: the weights that are left have a cell each in the mean */
        least[low] = weight[low];
        other[low] = (unsigned char)(high < CELLS ? high : low);
        if (high < CELLS)
            weight[high] -= cell - weight[low];
    }
}

static void make_table(void)
{
    uint64_t weight[CELLS] = {0}, rest = UINT64_C(1) << SCALE_BITS, ratio = root_above(1);
    const uint64_t fall = root_above(2);
    upper[0] = SCALE;
    for (size_t i = 0; i < LAST; i++) {
        upper[i + 1] = times_above(upper[i], ratio);
        ratio = times_above(ratio, fall);
    }
    for (size_t i = 0; i <= LAST; i++) {
        weight[i] = i < LAST ? upper[i] : 2 * upper[LAST];
        rest -= weight[i];
    }
    weight[REJECTED] = rest;
    make_cells(weight);
}

gaussian gaussian_of(uint64_t variance)
{
    uint64_t width = 1;
    assert(variance >= 1 && variance <= GAUSSIAN_VARIANCE_MOST);
    (void)pthread_once(&made, make_table);
    for (uint64_t bit = UINT64_C(1) << 17; bit; bit >>= 1)
        if ((width + bit - 1) * (width + bit - 1) * 256 < variance)
            width += bit;
    const uint64_t line = 512 * variance;
    const unsigned shift = 63 + 63 - (unsigned)__builtin_clzll(line);
    return (gaussian){variance, width, (uint64_t)(((wide)1 << shift) / line), shift};
}

/* ---- whether a size is accepted ---- */

/* x^2/(2 variance) - strip^2/512 as whole numbers: numerator and denominator. */
static wide beyond(const gaussian *g, uint64_t strip, uint64_t x)
{
    return (wide)256 * x * x - (wide)strip * strip * g->variance;
}

static wide below_line(const gaussian *g)
{
    return (wide)512 * g->variance;
}

/*
 * u/2^64 against exp(-f) E', f the numerator above divided by the denominator, below 1, and E' in [1 - 2^-38, 1], which
 * is so for strips below SHARP. Sums of the alternating series are bounds from above and below in turn. All of it is in
 * parts of 2^62; SLACK covers E', and the rounding of f and of the terms, below 2^-40.
 */
static int by_bounds(const gaussian *g, uint64_t strip, wide numerator, uint64_t u)
{
    enum { ONE = 62, TERMS = 24, SLACK_BITS = 26 };
    const uint64_t slack = UINT64_C(1) << SLACK_BITS, at = u >> 2;
    if (strip >= SHARP || numerator >> 64)
        return -1;
    const uint64_t f = (uint64_t)(((wide)(uint64_t)numerator * g->inverse) >> (g->shift - ONE));
    uint64_t term = UINT64_C(1) << ONE, sum = term;
    for (unsigned n = 1; n <= TERMS; n++) {
        term = (uint64_t)(((wide)term * f) >> ONE) / n;
        if (n % 2) {
            sum -= term;
            if (at + slack < sum)
                return 1;
        } else {
            sum += term;
            if (at > sum + slack)
                return 0;
        }
    }
    return -1;
}

/* Whole numbers of any length, lowest limb first. */
enum { LIMBS = 32, WORDS_MOST = 4 };
typedef struct {
    uint32_t limb[LIMBS];
} large;

static void large_times(large *v, uint64_t factor)
{
    wide carry = 0;
    for (size_t i = 0; i < LIMBS; i++) {
        carry += (wide)v->limb[i] * factor;
        v->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void large_part(large *v, uint64_t divisor)
{
    wide rest = 0;
    for (size_t i = LIMBS; i-- > 0;) {
        rest = rest << 32 | v->limb[i];
        v->limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
}

/* to += v 2^(32 by), by below 0: divided. */
static void large_add(large *to, const large *v, int by)
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        const int from = i - by;
        carry += (uint64_t)to->limb[i] + (from >= 0 && from < LIMBS ? v->limb[from] : 0);
        to->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static bool large_is_zero(const large *v)
{
    for (size_t i = 0; i < LIMBS; i++)
        if (v->limb[i])
            return false;
    return true;
}

static bool large_is_less(const large *a, const large *b)
{
    for (size_t i = LIMBS; i-- > 0;)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i];
    return false;
}

/* v exp(a/b), or less: every term is rounded down, and loses at most two units and what the one before has lost. */
static large large_exp(const large *v, uint64_t a, uint64_t b)
{
    large term = *v, sum = *v;
    for (uint64_t n = 1; !large_is_zero(&term); n++) {
        large_times(&term, a);
        large_part(&term, b);
        large_part(&term, n);
        large_add(&sum, &term, 0);
    }
    return sum;
}

/*
 * Accepted if u E exp(p) < C 2^(64 words + halvings), p = x^2/(2 variance) less whole numbers, u of `words` words. The
 * products have 2 (words + 1) = guard more limbs below, so that what 2^9 terms lose by rounding is less than 2^-(32
 * guard - 10) of the sum for u + 1, which is increased by 2^-(32 guard - 32) of itself. Between the sums for u and u +
 * 1 another word is drawn.
 */
static int by_sums(uint64_t scaled, uint64_t line, uint64_t strip, const uint64_t *u, size_t words)
{
    const size_t guard = 2 * (words + 1), tail = strip > LAST ? (size_t)(strip - LAST) : 0;
    large low = {{0}}, one = {{0}}, target = {{0}};
    for (size_t i = 0; i < words; i++) { /* the first word is the highest */
        low.limb[guard + 2 * (words - 1 - i)] = (uint32_t)u[i];
        low.limb[guard + 2 * (words - 1 - i) + 1] = (uint32_t)(u[i] >> 32);
    }
    one.limb[guard] = 1;
    target.limb[guard + 2 * words] = (uint32_t)SCALE;
    target.limb[guard + 2 * words + 1] = (uint32_t)(SCALE >> 32);
    for (size_t i = 0; i < tail; i++)
        large_times(&target, 2);
    large high = low;
    large_add(&high, &one, 0);
    large_times(&low, upper[tail ? LAST : strip]);
    large_times(&high, upper[tail ? LAST : strip]);
    low = large_exp(&low, scaled, line);
    high = large_exp(&high, scaled, line);
    const large sum = high;
    large_add(&high, &sum, -(int)(guard - 1));
    return !large_is_less(&low, &target) ? 0 : large_is_less(&high, &target) ? 1 : -1;
}

int gaussian_decide(const gaussian *g, uint64_t strip, uint64_t x, uint64_t u, gaussian_method method)
{
    const wide numerator = beyond(g, strip, x), line = below_line(g);
    if (method == GAUSSIAN_BY_BOUNDS)
        return by_bounds(g, strip, numerator, u);
    return by_sums((uint64_t)(numerator + (wide)strip * strip * g->variance), (uint64_t)line, strip, &u, 1);
}

/* 0 … n-1. */
static uint64_t below(const word_source *words, uint64_t n)
{
    uint64_t mask = n - 1;
    for (unsigned by = 1; by < 64; by *= 2)
        mask |= mask >> by;
    for (;;) {
        const uint64_t v = words->next(words->context) & mask;
        if (v < n)
            return v;
    }
}

/* A coin of probability 1/e: the number of successes before the first failure of coins of probability 1, 1/2, 1/3, …
 * is odd with this probability. */
static bool coin(const word_source *words)
{
    uint64_t k = 2; /* the first coin always succeeds */
    while (below(words, k) < 1)
        k++;
    return k % 2 == 1;
}

static bool is_accepted(const gaussian *g, uint64_t strip, uint64_t x, uint64_t u, const word_source *words)
{
    const wide line = below_line(g);
    wide numerator = beyond(g, strip, x);
    for (; numerator >= line; numerator -= line)
        if (!coin(words))
            return false;
    int known = by_bounds(g, strip, numerator, u);
    uint64_t more[WORDS_MOST] = {u};
    for (size_t n = 1; known < 0 && n <= WORDS_MOST; n++) {
        known = by_sums((uint64_t)(numerator + (wide)strip * strip * g->variance), (uint64_t)line, strip, more, n);
        if (known < 0 && n < WORDS_MOST)
            more[n] = words->next(words->context);
    }
    return known == 1;
}

/* ---- a draw ---- */

/* 0 … width - 1 from 32 digits (Lemire): products with a low half below 2^32 mod width would be too many. */
static uint64_t place_in(uint64_t width, uint64_t digits, const word_source *words)
{
    uint64_t product = digits * width;
    if ((uint32_t)product < width) {
        const uint64_t spare = (UINT64_C(1) << 32) % width;
        while ((uint32_t)product < spare)
            product = (words->next(words->context) >> 32) * width;
    }
    return product >> 32;
}

int64_t gaussian_draw(const gaussian *g, const word_source *words)
{
    const uint64_t in_cell = (UINT64_C(1) << CELL_BITS) - 1;
    for (;;) {
        const uint64_t first = words->next(words->context), cell = first >> (CELL_BITS + 1);
        uint64_t strip = (first & in_cell) < least[cell] ? cell : other[cell];
        const bool negative = first >> CELL_BITS & 1;
        if (strip == REJECTED)
            continue;
        while (strip >= LAST && words->next(words->context) & 1)
            strip++;
        const uint64_t second = words->next(words->context);
        const uint64_t x = strip * g->width + place_in(g->width, second >> 32, words);
        /* all but the lowest 32 digits of u, unless they are needed */
        const wide numerator = beyond(g, strip, x);
        const uint64_t high = (uint32_t)second, far = UINT64_C(0xfffffffe);
        const uint64_t f =
            numerator >> 64 ? UINT32_MAX : (uint64_t)(((wide)(uint64_t)numerator * g->inverse) >> (g->shift - 32));
        const bool quick = strip < SHARP && high + f < far;
        if ((quick || is_accepted(g, strip, x, high << 32 | words->next(words->context) >> 32, words)) &&
            (!negative || x))
            return negative ? -(int64_t)x : (int64_t)x;
    }
}
