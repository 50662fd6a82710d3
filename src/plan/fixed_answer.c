#include "plan/fixed_answer.h"

#include <math.h>
#include <string.h>

enum { PER_OCTAVE = 4, LOWEST_OCTAVE = -64 };
static const double ends[PER_OCTAVE] = {1, 0x1.306fe0a31b715p+0, 0x1.6a09e667f3bcdp+0, 0x1.ae89f995ad3adp+0};

/* The first bucket whose end is not below v, which is above 0; the last bucket has none. */
static size_t bucket_of(double v)
{
    const size_t last = FIXED_BUCKETS - 1;
    if (!(v < ldexp(1, LOWEST_OCTAVE + FIXED_BUCKETS / PER_OCTAVE - 1)))
        return last;
    const int octave = v > 0 ? ilogb(v) : LOWEST_OCTAVE;
    if (octave < LOWEST_OCTAVE)
        return 0;
    const double part = ldexp(v, -octave);
    size_t end = 0;
    while (end < PER_OCTAVE && part > ends[end])
        end++;
    return (size_t)(octave - LOWEST_OCTAVE) * PER_OCTAVE + end;
}

static double bucket_end(size_t bucket)
{
    if (bucket == FIXED_BUCKETS - 1)
        return INFINITY;
    return ldexp(ends[bucket % PER_OCTAVE], (int)(bucket / PER_OCTAVE) + LOWEST_OCTAVE);
}

static size_t maxima_numbers(const answer_layout *l)
{
    return l->maxima == MASK_APART ? 0 : l->most * (l->maxima == MASK_FLAGS ? 1 : FIXED_BUCKETS);
}

size_t fixed_answer_numbers(const answer_layout *l)
{
    return 1 + maxima_numbers(l) + l->sums;
}

static bool sums_are_finite(const answer_layout *l, const double *answer)
{
    for (size_t i = l->most; i < l->most + l->sums; i++)
        if (fixed_is_infinite(answer[i]))
            return false;
    return true;
}

bool fixed_answer_put(const answer_layout *l, const double *answer, uint64_t *words)
{
    const bool finite = sums_are_finite(l, answer);
    bool fits = true;
    memset(words, 0, fixed_answer_numbers(l) * FIXED_WORDS * sizeof *words);
    (void)fixed_put(!finite, words);
    words += FIXED_WORDS;
    for (size_t i = 0; i < l->most && l->maxima == MASK_FLAGS; i++)
        (void)fixed_put(answer[i] > 0, words + i * FIXED_WORDS);
    for (size_t i = 0; i < l->most && l->maxima == MASK_BUCKETS; i++)
        if (answer[i] > 0)
            (void)fixed_put(1, words + (i * FIXED_BUCKETS + bucket_of(answer[i])) * FIXED_WORDS);
    words += maxima_numbers(l) * FIXED_WORDS;
    for (size_t i = 0; i < l->sums && finite; i++)
        fits = fixed_put(answer[l->most + i], words + i * FIXED_WORDS) && fits;
    return fits;
}

void fixed_answer_get(const answer_layout *l, const uint64_t *words, double *answer)
{
    const bool finite = fixed_get(words) == 0;
    words += FIXED_WORDS;
    for (size_t i = 0; i < l->most; i++) {
        answer[i] = 0;
        if (l->maxima == MASK_FLAGS)
            answer[i] = fixed_get(words + i * FIXED_WORDS) > 0;
        for (size_t b = 0; b < FIXED_BUCKETS && l->maxima == MASK_BUCKETS; b++)
            if (fixed_get(words + (i * FIXED_BUCKETS + b) * FIXED_WORDS) > 0)
                answer[i] = bucket_end(b);
    }
    words += maxima_numbers(l) * FIXED_WORDS;
    for (size_t i = 0; i < l->sums; i++)
        answer[l->most + i] = finite ? fixed_get(words + i * FIXED_WORDS) : (double)INFINITY;
}

/* ---- tallies ---- */

size_t fixed_tally_numbers(size_t tiers)
{
    return tally_numbers(tiers) + tiers;
}

void fixed_tally_put(const tally *t, size_t tiers, uint64_t *words)
{
    tally safe = *t;
    double numbers[TALLY_MOST], unknown[HFSAD_TIERS_MAX];
    for (size_t i = 0; i < tiers; i++) {
        safe.tier[i].gap *= safe.tier[i].gap;
        unknown[i] = isnan(t->dual[i]);
        safe.dual[i] = unknown[i] > 0 ? 0 : t->dual[i];
    }
    const size_t count = tally_numbers(tiers);
    bool fits = true;
    tally_pack(&safe, tiers, numbers);
    for (size_t i = 0; i < count; i++)
        fits = fixed_put(numbers[i], words + i * FIXED_WORDS) && fits;
    for (size_t i = 0; i < tiers; i++)
        (void)fixed_put(unknown[i], words + (count + i) * FIXED_WORDS);
    if (fits)
        return;
    memset(words, 0, fixed_tally_numbers(tiers) * FIXED_WORDS * sizeof *words);
    safe = (tally){.clients = t->clients, .broken = 1};
    tally_pack(&safe, tiers, numbers);
    for (size_t i = 0; i < count; i++)
        (void)fixed_put(numbers[i], words + i * FIXED_WORDS);
}

void fixed_tally_get(tally *t, size_t tiers, const uint64_t *words)
{
    double numbers[TALLY_MOST];
    const size_t count = tally_numbers(tiers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = fixed_get(words + i * FIXED_WORDS);
    tally_unpack(t, tiers, numbers);
    for (size_t i = 0; i < tiers; i++) {
        t->tier[i].gap = sqrt(t->tier[i].gap);
        if (fixed_get(words + (count + i) * FIXED_WORDS) > 0)
            t->dual[i] = NAN;
    }
}
