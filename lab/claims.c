/* The paper's claims against the figures; see claims.h. */
#include "lab/claims.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

checkpoints checkpoints_of(uint32_t iterations)
{
    checkpoints c = {0};
    const uint32_t usual[] = {50, 100, 200}, sixths[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        const uint32_t at = iterations > 200 ? usual[i] : (uint32_t)((uint64_t)iterations * sixths[i] / 6);
        if (at > 0 && at < iterations && (c.count == 0 || at > c.at[c.count - 1]))
            c.at[c.count++] = at;
    }
    c.at[c.count++] = iterations;
    return c;
}

series_summary series_summarize(const paper_result *r, size_t method, const checkpoints *c, double *room)
{
    series_summary s = {0};
    for (size_t i = 0; i < c->count; i++) {
        const spread at = spread_of(r->trials, paper_errors(r, method, c->at[i]), room);
        s.mean[i] = at.mean;
        s.median[i] = at.median;
    }
    const double *end = paper_errors(r, method, c->at[c->count - 1]);
    for (size_t t = 0; t < r->trials; t++)
        s.lost += end[t] <= LOST_ABOVE ? 0 : 1;
    return s;
}

error_text error_text_of(double error)
{
    error_text t;
    snprintf(t.text, sizeof t.text, "%.1e", error);
    char *e = strchr(t.text, 'e');
    if (e && (e[1] == '-' || e[1] == '+')) { /* 3.7e-02 to 3.7e-2, 1.0e+00 to 1.0e0 */
        char *digits = e + 2, *to = e[1] == '-' ? e + 2 : e + 1;
        while (digits[0] == '0' && digits[1])
            digits++;
        memmove(to, digits, strlen(digits) + 1);
    }
    return t;
}

#define TEXT(error) (error_text_of(error).text)

__attribute__((format(printf, 2, 3))) static void say(finding *f, const char *format, ...)
{
    const size_t used = strlen(f->sentence);
    va_list args;
    va_start(args, format);
    vsnprintf(f->sentence + used, sizeof f->sentence - used, format, args);
    va_end(args);
}

static const char *const VERDICT_WORDS[] = {[VERDICT_NO] = "no", [VERDICT_PARTLY] = "partly", [VERDICT_YES] = "yes"};

__attribute__((format(printf, 3, 4))) static void decide(finding *f, verdict v, const char *format, ...)
{
    f->verdict = v;
    const int used = snprintf(f->cell, sizeof f->cell, "%s: ", VERDICT_WORDS[v]);
    va_list args;
    va_start(args, format);
    vsnprintf(f->cell + used, sizeof f->cell - (size_t)used, format, args);
    va_end(args);
}

static verdict verdict_of(size_t hits, size_t of)
{
    return hits == of ? VERDICT_YES : hits == 0 ? VERDICT_NO : VERDICT_PARTLY;
}

/* The points at which speed is judged: every table point before the end, or only the end if there is no other. */
static size_t speed_points(const checkpoints *c)
{
    return c->count > 1 ? c->count - 1 : 1;
}

/* Index of the least mean at a checkpoint, the first of equals. */
static size_t lowest(const series_summary *s, size_t first, size_t behind, size_t point)
{
    size_t best = first;
    for (size_t i = first + 1; i < behind; i++)
        if (s[i].mean[point] < s[best].mean[point])
            best = i;
    return best;
}

/* "sub-gradient geometric": the word that tells a series from its neighbours. */
static const char *short_name(size_t scenario, size_t series)
{
    const char *name = paper_scenarios[scenario].series[series].name, *space = strrchr(name, ' ');
    return space ? space + 1 : name;
}

/* The series of scenario 1: HFSAD with the paper's constants, the sub-gradient rules, HFSAD with the tuned preset. */
enum { FIRST_RULE = 1, BEHIND_RULES = FIRST_RULE + STEP_KINDS, TUNED = BEHIND_RULES };

static size_t best_rule(const series_summary *s, const checkpoints *c)
{
    return lowest(s, FIRST_RULE, BEHIND_RULES, c->count - 1);
}

/* One series against the rule that ends lowest, at the first `points` checkpoints. */
static finding against_best(const series_summary *s, size_t one, const char *name, const checkpoints *c, size_t points)
{
    finding f = {0};
    const size_t best = best_rule(s, c);
    size_t ahead = 0, ahead_median = 0;
    for (size_t i = 0; i < points; i++) {
        ahead += s[one].mean[i] < s[best].mean[i];
        ahead_median += s[one].median[i] < s[best].median[i];
    }
    decide(&f, verdict_of(ahead, points), "ahead at %zu of %zu", ahead, points);
    say(&f, "Against the sub-gradient rule that ends lowest (%s) the mean error of %s is", short_name(0, best), name);
    for (size_t i = 0; i < points; i++)
        say(&f, "%s %s against %s after %u", i ? "," : "", TEXT(s[one].mean[i]), TEXT(s[best].mean[i]), c->at[i]);
    say(&f, " iterations; by the median it is ahead at %zu of %zu.", ahead_median, points);
    return f;
}

static finding judge_faster(const series_summary *s, const checkpoints *c)
{
    return against_best(s, 0, "HFSAD", c, speed_points(c));
}

finding tuned_judge(const series_summary *s, const checkpoints *c)
{
    return against_best(s, TUNED, paper_scenarios[0].series[TUNED].name, c, c->count);
}

static finding judge_lower(const series_summary *s, const checkpoints *c)
{
    finding f = {0};
    const size_t end = c->count - 1, best = best_rule(s, c);
    size_t beaten = 0;
    for (size_t i = FIRST_RULE; i < BEHIND_RULES; i++)
        beaten += s[0].mean[end] < s[i].mean[end];
    decide(&f, verdict_of(beaten, STEP_KINDS), "%s vs %s", TEXT(s[0].mean[end]), TEXT(s[best].mean[end]));
    say(&f, "After %u iterations the mean error of HFSAD is %s (median %s), that of the best sub-gradient rule (%s) ",
        c->at[end], TEXT(s[0].mean[end]), TEXT(s[0].median[end]), short_name(0, best));
    say(&f, "%s (median %s); HFSAD ends below %zu of the %zu rules", TEXT(s[best].mean[end]), TEXT(s[best].median[end]),
        beaten, (size_t)STEP_KINDS);
    for (size_t i = FIRST_RULE, k = 0; i < BEHIND_RULES; i++)
        if (s[0].mean[end] < s[i].mean[end])
            say(&f, "%s%s", k++ ? ", " : ": ", short_name(0, i));
    say(&f, ".");
    return f;
}

static finding judge_rounds(const series_summary *s, const checkpoints *c)
{
    finding f = {0};
    const size_t n = paper_scenarios[1].n_series, points = speed_points(c);
    size_t hits = 0;
    for (size_t i = 0; i < points; i++)
        hits += lowest(s, 0, n, i) == n - 1;
    decide(&f, verdict_of(hits, points), "lowest at %zu of %zu", hits, points);
    say(&f, "The lowest mean error has");
    for (size_t i = 0; i < points; i++) {
        const size_t best = lowest(s, 0, n, i);
        say(&f, "%s %s after %u iterations (%s", i ? "," : "", short_name(1, best), c->at[i], TEXT(s[best].mean[i]));
        if (best != n - 1)
            say(&f, ", %s has %s", short_name(1, n - 1), TEXT(s[n - 1].mean[i]));
        say(&f, ")");
    }
    say(&f, ".");
    return f;
}

static double ratio_of_means(const series_summary *s, size_t n, size_t point)
{
    double least = s[0].mean[point], most = least;
    for (size_t i = 1; i < n; i++) {
        least = fmin(least, s[i].mean[point]);
        most = fmax(most, s[i].mean[point]);
    }
    return most == least ? 1 : most / least;
}

static finding judge_participation(const series_summary *s, const checkpoints *c)
{
    finding f = {0};
    const size_t n = paper_scenarios[2].n_series, end = c->count - 1;
    size_t hits = 0;
    double worst = 0;
    for (size_t i = 0; i < c->count; i++) {
        const double ratio = ratio_of_means(s, n, i);
        hits += ratio <= COMPARABLE_FACTOR;
        worst = fmax(worst, ratio);
    }
    decide(&f, verdict_of(hits, c->count), "a factor of %.2g", worst);
    say(&f, "The largest mean error over p_c is");
    for (size_t i = 0; i < c->count; i++)
        say(&f, "%s %.3g times the least after %u", i ? "," : "", ratio_of_means(s, n, i), c->at[i]);
    say(&f, " iterations; at the end %s has %s and %s has %s, with %zu and %zu trials above %g.", short_name(2, 0),
        TEXT(s[0].mean[end]), short_name(2, n - 1), TEXT(s[n - 1].mean[end]), s[0].lost, s[n - 1].lost, LOST_ABOVE);
    return f;
}

const paper_claim paper_claims[PAPER_CLAIMS] = {
    {0, "faster than the sub-gradient method",
     "the mean of HFSAD, K_m = 10, is below that of the sub-gradient rule that ends lowest, at every table point "
     "before the end",
     judge_faster},
    {0, "ends lower than the sub-gradient method", "its mean at the end is below that of every sub-gradient rule",
     judge_lower},
    {1, "fastest with K_m = 20", "it has the lowest mean at every table point before the end", judge_rounds},
    {2, "comparable for p_c from 0.3 to 1",
     "the largest mean over p_c is at most twice the least, at every table point", judge_participation},
};
