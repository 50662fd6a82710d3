/*
 * exp, log, log1p and the cosine by additions, multiplications and divisions, in this order and without fused steps:
 * the bits are the same on every processor and on a device, and do not depend on a library. tests/test_exp_log.c bounds
 * their errors. The losses with an exponential use them, and so do the draws of normal numbers.
 */
#ifndef HFSAD_BASE_EXP_LOG_H
#define HFSAD_BASE_EXP_LOG_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define SAME_FN static inline __host__ __device__
#else
#define SAME_FN static inline __attribute__((unused))
#endif

SAME_FN double double_of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

SAME_FN uint64_t bits_of_double(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* x = (64 n + j) log(2)/64 + r, |r| <= log(2)/128, and exp(x) = 2^n 2^(j/64) exp(r) with a polynomial for exp(r) - 1.
 */
SAME_FN double same_exp(double x)
{
    static const double power[64] = {
        0x1.0000000000000p+0, 0x1.02c9a3e778061p+0, 0x1.059b0d3158574p+0, 0x1.0874518759bc8p+0, 0x1.0b5586cf9890fp+0,
        0x1.0e3ec32d3d1a2p+0, 0x1.11301d0125b51p+0, 0x1.1429aaea92de0p+0, 0x1.172b83c7d517bp+0, 0x1.1a35beb6fcb75p+0,
        0x1.1d4873168b9aap+0, 0x1.2063b88628cd6p+0, 0x1.2387a6e756238p+0, 0x1.26b4565e27cddp+0, 0x1.29e9df51fdee1p+0,
        0x1.2d285a6e4030bp+0, 0x1.306fe0a31b715p+0, 0x1.33c08b26416ffp+0, 0x1.371a7373aa9cbp+0, 0x1.3a7db34e59ff7p+0,
        0x1.3dea64c123422p+0, 0x1.4160a21f72e2ap+0, 0x1.44e086061892dp+0, 0x1.486a2b5c13cd0p+0, 0x1.4bfdad5362a27p+0,
        0x1.4f9b2769d2ca7p+0, 0x1.5342b569d4f82p+0, 0x1.56f4736b527dap+0, 0x1.5ab07dd485429p+0, 0x1.5e76f15ad2148p+0,
        0x1.6247eb03a5585p+0, 0x1.6623882552225p+0, 0x1.6a09e667f3bcdp+0, 0x1.6dfb23c651a2fp+0, 0x1.71f75e8ec5f74p+0,
        0x1.75feb564267c9p+0, 0x1.7a11473eb0187p+0, 0x1.7e2f336cf4e62p+0, 0x1.82589994cce13p+0, 0x1.868d99b4492edp+0,
        0x1.8ace5422aa0dbp+0, 0x1.8f1ae99157736p+0, 0x1.93737b0cdc5e5p+0, 0x1.97d829fde4e50p+0, 0x1.9c49182a3f090p+0,
        0x1.a0c667b5de565p+0, 0x1.a5503b23e255dp+0, 0x1.a9e6b5579fdbfp+0, 0x1.ae89f995ad3adp+0, 0x1.b33a2b84f15fbp+0,
        0x1.b7f76f2fb5e47p+0, 0x1.bcc1e904bc1d2p+0, 0x1.c199bdd85529cp+0, 0x1.c67f12e57d14bp+0, 0x1.cb720dcef9069p+0,
        0x1.d072d4a07897cp+0, 0x1.d5818dcfba487p+0, 0x1.da9e603db3285p+0, 0x1.dfc97337b9b5fp+0, 0x1.e502ee78b3ff6p+0,
        0x1.ea4afa2a490dap+0, 0x1.efa1bee615a27p+0, 0x1.f50765b6e4540p+0, 0x1.fa7c1819e90d8p+0,
    };
    if (!(x < 709.7827128933841))
        return x > 0 ? INFINITY : x;
    if (x < -745.1332191019412)
        return 0;
    const double whole = 0x1.8p52, turns = x * 0x1.71547652b82fep+6 + whole, k = turns - whole;
    const double r = (x - k * 0x1.62e42fee00000p-7) - k * 0x1.a39ef35793c76p-39, r2 = r * r;
    const double tail =
        r + (r2 * (0.5 + r * (1.0 / 6)) + (r2 * r2) * ((1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720)));
    const double base = power[bits_of_double(turns) & 63], value = base + base * tail;
    const int64_t n = (int64_t)k >> 6;
    if (n > -1022 && n < 1023)
        return value * double_of_bits((uint64_t)(1023 + n) << 52);
    return n > 0 ? value * 2 * double_of_bits((uint64_t)(1022 + n) << 52)
                 : value * double_of_bits((uint64_t)(1223 + n) << 52) * 0x1p-200;
}

/* x = 2^e m, m from sqrt(1/2) to sqrt(2), and log m = 2 (f + f^3/3 + f^5/5 + ...), f = (m - 1)/(m + 1). */
SAME_FN double same_log(double x)
{
    if (!(x > 0) || !(x < INFINITY))
        return x == 0 ? -INFINITY : x > 0 ? x : NAN;
    const bool small = x < 0x1p-1000;
    const uint64_t bits = bits_of_double(small ? x * 0x1p200 : x), root = 0x3fe6a09e667f3bcd;
    const int64_t e = (int64_t)(bits - root) >> 52; /* rounds down */
    const double m = double_of_bits(bits - ((uint64_t)e << 52)), turns = (double)(small ? e - 200 : e);
    const double d = m - 1, f = d / (m + 1), s = f * f, s5 = (s * s) * (s * s) * s;
    const double low = 1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11))));
    const double high = 1.0 / 13 + s * (1.0 / 15 + s * (1.0 / 17 + s * (1.0 / 19 + s * (1.0 / 21))));
    const double rest = f * (2 * s * (low + s5 * high) - d); /* 2 f = d - f d, where d is exact */
    return turns * 0x1.62e42fefa3000p-1 + (d + (rest + turns * 0x1.3de6af278ece6p-42));
}

/* log(1 + x) for x > -1: log(u) x / (u - 1) with u the rounded 1 + x, whose error the quotient takes out. */
SAME_FN double same_log1p(double x)
{
    const double u = 1 + x;
    return u == 1 || !(u < INFINITY) ? x : same_log(u) * (x / (u - 1));
}

/* cos(2 pi u) for u from 0 to 1: u less the nearest quarter, which is exact, and the series of cos or sin. */
SAME_FN double same_cos_turns(double u)
{
    const int quarter = (int)(4 * u + 0.5);
    const double x = (u - 0.25 * quarter) * 6.283185307179586476925, s = x * x;
    if (quarter % 2 == 0) {
        const double rest =
            1.0 / 24 -
            s * (1.0 / 720 -
                 s * (1.0 / 40320 - s * (1.0 / 3628800 - s * (1.0 / 479001600 -
                                                              s * (1.0 / 87178291200 - s * (1.0 / 20922789888000))))));
        const double value = 1 - (0.5 * s - (s * s) * rest);
        return quarter == 2 ? -value : value;
    }
    const double rest =
        1.0 / 6 -
        s * (1.0 / 120 -
             s * (1.0 / 5040 - s * (1.0 / 362880 - s * (1.0 / 39916800 -
                                                        s * (1.0 / 6227020800 - s * (1.0 / 1307674368000 -
                                                                                     s * (1.0 / 355687428096000)))))));
    const double value = x - x * s * rest;
    return quarter == 1 ? -value : value;
}

#endif
