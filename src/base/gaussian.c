#include "base/gaussian.h"

#include "base/rng.h"

#include <assert.h>
#include <stdbool.h>

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

/* ---- the law ---- */

/* 0 … n-1, by rejection of words of as many binary digits as n - 1 has. */
static wide below(const word_source *words, wide n)
{
    wide mask = n - 1;
    if (n == 1)
        return 0;
    for (unsigned by = 1; by < 128; by *= 2)
        mask |= mask >> by;
    for (;;) {
        wide v = words->next(words->context);
        if (mask >> 64)
            v |= (wide)words->next(words->context) << 64;
        if ((v &= mask) < n)
            return v;
    }
}

/* A coin of probability exp(-a/b), a <= b: the number of successes before the first failure of coins of probability
 * a/b, a/(2b), a/(3b), … is even with this probability. */
static bool coin_below_one(const word_source *words, wide a, wide b)
{
    wide k = 1;
    while (below(words, b * k) < a)
        k++;
    return k % 2 == 1;
}

static bool coin(const word_source *words, wide a, wide b)
{
    for (; a > b; a -= b)
        if (!coin_below_one(words, 1, 1))
            return false;
    return coin_below_one(words, a, b);
}

/* P(x) proportional to exp(-|x|/t). */
static int64_t draw_laplace(const word_source *words, uint64_t t)
{
    for (;;) {
        const uint64_t rest = (uint64_t)below(words, t);
        if (!coin(words, rest, t))
            continue;
        uint64_t times = 0;
        while (coin_below_one(words, 1, 1))
            times++;
        const int64_t size = (int64_t)(rest + t * times);
        const bool negative = words->next(words->context) & 1;
        if (!negative || size)
            return negative ? -size : size;
    }
}

static uint64_t root_of(uint64_t v)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= v)
            root |= bit;
    return root;
}

int64_t gaussian_draw(const word_source *words, uint64_t variance)
{
    assert(variance >= 1 && variance <= GAUSSIAN_VARIANCE_MOST);
    const uint64_t t = root_of(variance) + 1;
    for (;;) {
        const int64_t y = draw_laplace(words, t);
        /* accepted by exp(-(|y| - variance/t)^2 / (2 variance)), with both sides multiplied by t^2 */
        const wide far = (wide)(uint64_t)(y < 0 ? -y : y) * t, away = far > variance ? far - variance : variance - far;
        if (coin(words, away * away, (wide)2 * variance * t * t))
            return y;
    }
}
