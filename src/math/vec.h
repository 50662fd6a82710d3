/*
 * Eight doubles with the same operations on each: AVX-512 if the including file defines HFSAD_VEC_AVX512, AVX2 with FMA
 * if it defines HFSAD_VEC_AVX2, otherwise plain C. Every operation is an IEEE 754 operation, correctly rounded, and
 * only vec_fma fuses a multiply-add, so that all three give the same bits. Kernels are written once over these
 * operations and compiled three times.
 */
#ifndef HFSAD_MATH_VEC_H
#define HFSAD_MATH_VEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VEC_LANES = 8 };

/* Always inline; otherwise the coefficients of a kernel would pass through memory. Not in plain C, where they pass
 * through memory anyway, and not under a sanitizer, where the inlined code would take minutes to compile. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VEC_IS_CHECKED 1
#endif
#endif
#if defined(HFSAD_VEC_CUDA)
#define VEC_FN static __device__ __forceinline__
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(VEC_IS_CHECKED) ||                      \
    !(defined(HFSAD_VEC_AVX512) || defined(HFSAD_VEC_AVX2))
#define VEC_FN static inline __attribute__((unused))
#else
#define VEC_FN static inline __attribute__((always_inline, unused))
#endif

#if defined(HFSAD_VEC_CUDA)

/* One lane per thread. A decision for all eight lanes depends only on numbers that all lanes share. */
typedef double vec;
typedef struct {
    bool on;
} vmask;

VEC_FN vec vec_set(double a)
{
    return a;
}
VEC_FN vec vec_load(const double *p)
{
    return *p;
}
VEC_FN void vec_store(double *p, vec a)
{
    *p = a;
}
VEC_FN vec vec_add(vec a, vec b)
{
    return __dadd_rn(a, b);
}
VEC_FN vec vec_sub(vec a, vec b)
{
    return __dsub_rn(a, b);
}
VEC_FN vec vec_mul(vec a, vec b)
{
    return __dmul_rn(a, b);
}
VEC_FN vec vec_fma(vec a, vec b, vec c)
{
    return __fma_rn(a, b, c);
}
VEC_FN vec vec_fnma(vec a, vec b, vec c)
{
    return __fma_rn(-a, b, c);
}
VEC_FN vec vec_div(vec a, vec b)
{
    return __ddiv_rn(a, b);
}
VEC_FN vec vec_sqrt(vec a)
{
    return __dsqrt_rn(a);
}
VEC_FN vec vec_min(vec a, vec b)
{
    return a < b ? a : b;
}
VEC_FN vec vec_max(vec a, vec b)
{
    return a > b ? a : b;
}
VEC_FN vec vec_abs(vec a)
{
    return fabs(a);
}
VEC_FN vec vec_copysign(vec size, vec sign)
{
    return copysign(size, sign);
}
VEC_FN vmask vec_less(vec a, vec b)
{
    return vmask{a < b};
}
VEC_FN vec vec_select(vmask m, vec yes, vec no)
{
    return m.on ? yes : no;
}
VEC_FN vmask vec_mask(unsigned bits)
{
    return vmask{(bits & 0xff) != 0};
}
VEC_FN unsigned vec_bits(vmask m)
{
    return m.on ? 0xff : 0;
}

#elif defined(HFSAD_VEC_AVX512)

#include <immintrin.h>

typedef __m512d vec;
typedef __mmask8 vmask;

VEC_FN vec vec_set(double a)
{
    return _mm512_set1_pd(a);
}
VEC_FN vec vec_load(const double *p)
{
    return _mm512_loadu_pd(p);
}
VEC_FN vec vec_load_part(const double *p, size_t n)
{
    return _mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
}
VEC_FN void vec_store(double *p, vec a)
{
    _mm512_storeu_pd(p, a);
}
VEC_FN void vec_store_part(double *p, vec a, size_t n)
{
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), a);
}
VEC_FN vec vec_add(vec a, vec b)
{
    return _mm512_add_pd(a, b);
}
VEC_FN vec vec_sub(vec a, vec b)
{
    return _mm512_sub_pd(a, b);
}
VEC_FN vec vec_mul(vec a, vec b)
{
    return _mm512_mul_pd(a, b);
}
/* a b + c, c - a b, rounded once */
VEC_FN vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_pd(a, b, c);
}
VEC_FN vec vec_fnma(vec a, vec b, vec c)
{
    return _mm512_fnmadd_pd(a, b, c);
}
VEC_FN vec vec_div(vec a, vec b)
{
    return _mm512_div_pd(a, b);
}
VEC_FN vec vec_sqrt(vec a)
{
    return _mm512_sqrt_pd(a);
}
/* a < b ? a : b; this gives b if a is not a number */
VEC_FN vec vec_min(vec a, vec b)
{
    return _mm512_min_pd(a, b);
}
VEC_FN vec vec_max(vec a, vec b)
{
    return _mm512_max_pd(a, b);
}
VEC_FN vec vec_abs(vec a)
{
    return _mm512_abs_pd(a);
}
VEC_FN vec vec_copysign(vec size, vec sign)
{
    const __m512d bit = _mm512_set1_pd(-0.0);
    return _mm512_or_pd(_mm512_andnot_pd(bit, size), _mm512_and_pd(bit, sign));
}
VEC_FN vmask vec_less(vec a, vec b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ);
}
VEC_FN vec vec_select(vmask m, vec yes, vec no)
{
    return _mm512_mask_blend_pd(m, no, yes);
}
VEC_FN vmask vec_mask(unsigned bits)
{
    return (vmask)bits;
}
VEC_FN unsigned vec_bits(vmask m)
{
    return m;
}
/* Eight counters below 2^31. */
VEC_FN vec vec_load_counters(const uint32_t *k)
{
    return _mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)k));
}
VEC_FN void vec_store_counters(uint32_t *k, vec a)
{
    _mm256_storeu_si256((__m256i *)k, _mm512_cvttpd_epi32(a));
}
VEC_FN __m256d vec_halves(vec a)
{
    return _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
}

#elif defined(HFSAD_VEC_AVX2)

#include <immintrin.h>

typedef struct {
    __m256d a, b;
} vec;
typedef vec vmask;

#define VEC_BOTH(expression_a, expression_b) ((vec){(expression_a), (expression_b)})

VEC_FN vec vec_set(double a)
{
    return VEC_BOTH(_mm256_set1_pd(a), _mm256_set1_pd(a));
}
VEC_FN vec vec_load(const double *p)
{
    return VEC_BOTH(_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4));
}
VEC_FN void vec_store(double *p, vec x)
{
    _mm256_storeu_pd(p, x.a);
    _mm256_storeu_pd(p + 4, x.b);
}
/* Mask of the lanes i with from + i < n. */
VEC_FN __m256i vec_below(size_t n, long long from)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), _mm256_set_epi64x(from + 3, from + 2, from + 1, from));
}
VEC_FN vec vec_load_part(const double *p, size_t n)
{
    return VEC_BOTH(_mm256_maskload_pd(p, vec_below(n, 0)), _mm256_maskload_pd(p + 4, vec_below(n, 4)));
}
VEC_FN void vec_store_part(double *p, vec x, size_t n)
{
    _mm256_maskstore_pd(p, vec_below(n, 0), x.a);
    _mm256_maskstore_pd(p + 4, vec_below(n, 4), x.b);
}
VEC_FN vec vec_add(vec x, vec y)
{
    return VEC_BOTH(_mm256_add_pd(x.a, y.a), _mm256_add_pd(x.b, y.b));
}
VEC_FN vec vec_sub(vec x, vec y)
{
    return VEC_BOTH(_mm256_sub_pd(x.a, y.a), _mm256_sub_pd(x.b, y.b));
}
VEC_FN vec vec_mul(vec x, vec y)
{
    return VEC_BOTH(_mm256_mul_pd(x.a, y.a), _mm256_mul_pd(x.b, y.b));
}
VEC_FN vec vec_fma(vec x, vec y, vec c)
{
    return VEC_BOTH(_mm256_fmadd_pd(x.a, y.a, c.a), _mm256_fmadd_pd(x.b, y.b, c.b));
}
VEC_FN vec vec_fnma(vec x, vec y, vec c)
{
    return VEC_BOTH(_mm256_fnmadd_pd(x.a, y.a, c.a), _mm256_fnmadd_pd(x.b, y.b, c.b));
}
VEC_FN vec vec_div(vec x, vec y)
{
    return VEC_BOTH(_mm256_div_pd(x.a, y.a), _mm256_div_pd(x.b, y.b));
}
VEC_FN vec vec_sqrt(vec x)
{
    return VEC_BOTH(_mm256_sqrt_pd(x.a), _mm256_sqrt_pd(x.b));
}
VEC_FN vec vec_min(vec x, vec y)
{
    return VEC_BOTH(_mm256_min_pd(x.a, y.a), _mm256_min_pd(x.b, y.b));
}
VEC_FN vec vec_max(vec x, vec y)
{
    return VEC_BOTH(_mm256_max_pd(x.a, y.a), _mm256_max_pd(x.b, y.b));
}
VEC_FN vec vec_abs(vec x)
{
    const __m256d bit = _mm256_set1_pd(-0.0);
    return VEC_BOTH(_mm256_andnot_pd(bit, x.a), _mm256_andnot_pd(bit, x.b));
}
VEC_FN vec vec_copysign(vec size, vec sign)
{
    const __m256d bit = _mm256_set1_pd(-0.0);
    return VEC_BOTH(_mm256_or_pd(_mm256_andnot_pd(bit, size.a), _mm256_and_pd(bit, sign.a)),
                    _mm256_or_pd(_mm256_andnot_pd(bit, size.b), _mm256_and_pd(bit, sign.b)));
}
VEC_FN vmask vec_less(vec x, vec y)
{
    return VEC_BOTH(_mm256_cmp_pd(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_pd(x.b, y.b, _CMP_LT_OQ));
}
VEC_FN vec vec_select(vmask m, vec yes, vec no)
{
    return VEC_BOTH(_mm256_blendv_pd(no.a, yes.a, m.a), _mm256_blendv_pd(no.b, yes.b, m.b));
}
VEC_FN vmask vec_mask(unsigned bits)
{
    const __m256i spread = _mm256_set1_epi64x((long long)bits);
    const __m256i low = _mm256_set_epi64x(8, 4, 2, 1), high = _mm256_set_epi64x(128, 64, 32, 16);
    return VEC_BOTH(_mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(spread, low), low)),
                    _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(spread, high), high)));
}
VEC_FN unsigned vec_bits(vmask m)
{
    return (unsigned)_mm256_movemask_pd(m.a) | (unsigned)_mm256_movemask_pd(m.b) << 4;
}
VEC_FN vec vec_load_counters(const uint32_t *k)
{
    const __m128i *p = (const __m128i *)k;
    return VEC_BOTH(_mm256_cvtepi32_pd(_mm_loadu_si128(p)), _mm256_cvtepi32_pd(_mm_loadu_si128(p + 1)));
}
VEC_FN void vec_store_counters(uint32_t *k, vec x)
{
    __m128i *p = (__m128i *)k;
    _mm_storeu_si128(p, _mm256_cvttpd_epi32(x.a));
    _mm_storeu_si128(p + 1, _mm256_cvttpd_epi32(x.b));
}
VEC_FN __m256d vec_halves(vec x)
{
    return _mm256_add_pd(x.a, x.b);
}

#else

typedef struct {
    double v[VEC_LANES];
} vec;
typedef struct {
    unsigned bits;
} vmask;

#define VEC_EACH(result, expression)                                                                                   \
    vec result;                                                                                                        \
    for (int i = 0; i < VEC_LANES; i++)                                                                                \
        result.v[i] = (expression);                                                                                    \
    return result

VEC_FN vec vec_set(double a)
{
    VEC_EACH(r, a);
}
VEC_FN vec vec_load(const double *p)
{
    VEC_EACH(r, p[i]);
}
VEC_FN void vec_store(double *p, vec a)
{
    memcpy(p, a.v, sizeof a.v);
}
VEC_FN vec vec_load_part(const double *p, size_t n)
{
    double t[VEC_LANES] = {0};
    memcpy(t, p, n * sizeof *t);
    return vec_load(t);
}
VEC_FN void vec_store_part(double *p, vec a, size_t n)
{
    double t[VEC_LANES];
    vec_store(t, a);
    memcpy(p, t, n * sizeof *t);
}
VEC_FN vec vec_add(vec a, vec b)
{
    VEC_EACH(r, a.v[i] + b.v[i]);
}
VEC_FN vec vec_sub(vec a, vec b)
{
    VEC_EACH(r, a.v[i] - b.v[i]);
}
VEC_FN vec vec_mul(vec a, vec b)
{
    VEC_EACH(r, a.v[i] * b.v[i]);
}
VEC_FN vec vec_fma(vec a, vec b, vec c)
{
    VEC_EACH(r, fma(a.v[i], b.v[i], c.v[i]));
}
VEC_FN vec vec_fnma(vec a, vec b, vec c)
{
    VEC_EACH(r, fma(-a.v[i], b.v[i], c.v[i]));
}
VEC_FN vec vec_div(vec a, vec b)
{
    VEC_EACH(r, a.v[i] / b.v[i]);
}
VEC_FN vec vec_sqrt(vec a)
{
    VEC_EACH(r, sqrt(a.v[i]));
}
VEC_FN vec vec_min(vec a, vec b)
{
    VEC_EACH(r, a.v[i] < b.v[i] ? a.v[i] : b.v[i]);
}
VEC_FN vec vec_max(vec a, vec b)
{
    VEC_EACH(r, a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
VEC_FN vec vec_abs(vec a)
{
    VEC_EACH(r, fabs(a.v[i]));
}
VEC_FN vec vec_copysign(vec size, vec sign)
{
    VEC_EACH(r, copysign(size.v[i], sign.v[i]));
}
VEC_FN vmask vec_less(vec a, vec b)
{
    vmask m = {0};
    for (unsigned i = 0; i < VEC_LANES; i++)
        m.bits |= (unsigned)(a.v[i] < b.v[i]) << i;
    return m;
}
VEC_FN vec vec_select(vmask m, vec yes, vec no)
{
    VEC_EACH(r, (m.bits >> i & 1) ? yes.v[i] : no.v[i]);
}
VEC_FN vmask vec_mask(unsigned bits)
{
    return (vmask){bits};
}
VEC_FN unsigned vec_bits(vmask m)
{
    return m.bits;
}
VEC_FN vec vec_load_counters(const uint32_t *k)
{
    VEC_EACH(r, k[i]);
}
VEC_FN void vec_store_counters(uint32_t *k, vec a)
{
    for (int i = 0; i < VEC_LANES; i++)
        k[i] = (uint32_t)a.v[i];
}

#endif

VEC_FN vec vec_zero(void)
{
    return vec_set(0);
}
VEC_FN vec vec_clip(vec a, vec low, vec high)
{
    return vec_min(vec_max(a, low), high);
}

/* a clipped to [-1, 1]; a is not NaN. AVX-512 has one instruction: the smaller magnitude with the sign of a. */
VEC_FN vec vec_unit(vec a)
{
#if defined(HFSAD_VEC_AVX512)
    return _mm512_range_pd(a, _mm512_set1_pd(1), 2);
#else
    return vec_clip(a, vec_set(-1), vec_set(1));
#endif
}

/* The order in which eight partial sums are added, everywhere (also in dot.h and fold.c). */
VEC_FN vec vec_sum_of(const vec p[VEC_LANES])
{
    return vec_add(vec_add(vec_add(p[0], p[4]), vec_add(p[2], p[6])),
                   vec_add(vec_add(p[1], p[5]), vec_add(p[3], p[7])));
}

#if !defined(HFSAD_VEC_CUDA)
VEC_FN double vec_sum(vec a)
{
#if defined(HFSAD_VEC_AVX512) || defined(HFSAD_VEC_AVX2)
    const __m256d four = vec_halves(a);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#else
    const double *p = a.v;
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
#endif
}

VEC_FN double vec_first(vec a)
{
    double p[VEC_LANES];
    vec_store(p, a);
    return p[0];
}

VEC_FN double vec_largest(vec a)
{
    double p[VEC_LANES], most;
    vec_store(p, a);
    most = p[0];
    for (int i = 1; i < VEC_LANES; i++)
        most = p[i] > most ? p[i] : most;
    return most;
}

#endif

#endif
