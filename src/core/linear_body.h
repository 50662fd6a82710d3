/* Products and sums of plain vectors, for matrices that are larger than a model. kernels_body.h includes this file; the
 * order of summation is that of dense_facts (rows_body.h). */

VEC_FN double sum_of_four(vec a, vec b, vec c, vec d)
{
    return vec_sum(vec_add(vec_add(a, b), vec_add(c, d)));
}

static double linear_dot(size_t M, const double *a, const double *b)
{
    enum { V = VEC_LANES };
    vec s0 = vec_zero(), s1 = vec_zero(), s2 = vec_zero(), s3 = vec_zero();
    size_t m = 0;
    for (; m + 4 * V <= M; m += 4 * V) {
        s0 = vec_fma(vec_load(a + m), vec_load(b + m), s0);
        s1 = vec_fma(vec_load(a + m + V), vec_load(b + m + V), s1);
        s2 = vec_fma(vec_load(a + m + 2 * V), vec_load(b + m + 2 * V), s2);
        s3 = vec_fma(vec_load(a + m + 3 * V), vec_load(b + m + 3 * V), s3);
    }
    for (; m < M; m += V)
        s0 = vec_fma(row_load(a, m, M), row_load(b, m, M), s0);
    return sum_of_four(s0, s1, s2, s3);
}

/* Product of a with four vectors that are `stride` numbers apart. */
static void linear_dot4(size_t M, const double *a, const double *b, size_t stride, double *products)
{
    vec s0 = vec_zero(), s1 = vec_zero(), s2 = vec_zero(), s3 = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec at = row_load(a, m, M);
        s0 = vec_fma(at, row_load(b, m, M), s0);
        s1 = vec_fma(at, row_load(b + stride, m, M), s1);
        s2 = vec_fma(at, row_load(b + 2 * stride, m, M), s2);
        s3 = vec_fma(at, row_load(b + 3 * stride, m, M), s3);
    }
    products[0] = vec_sum(s0);
    products[1] = vec_sum(s1);
    products[2] = vec_sum(s2);
    products[3] = vec_sum(s3);
}

static void linear_add(size_t M, double factor, const double *x, double *y)
{
    const vec f = vec_set(factor);
    for (size_t m = 0; m < M; m += VEC_LANES)
        row_store(y, vec_fma(f, row_load(x, m, M), row_load(y, m, M)), m, M);
}

/* Not fused: the products are terms of their own, which others may have rounded before they are added. */
static void linear_add_terms(size_t M, size_t count, const double *factors, const double *const *x, double *y)
{
    if (count == 8) {
        vec f[8];
        for (size_t i = 0; i < 8; i++)
            f[i] = vec_set(factors[i]);
        for (size_t m = 0; m < M; m += VEC_LANES) {
            vec at = row_load(y, m, M);
            for (size_t i = 0; i < 8; i++)
                at = vec_add(at, vec_mul(f[i], row_load(x[i], m, M)));
            row_store(y, at, m, M);
        }
        return;
    }
    for (size_t m = 0; m < M; m += VEC_LANES) {
        vec at = row_load(y, m, M);
        for (size_t i = 0; i < count; i++)
            at = vec_add(at, vec_mul(vec_set(factors[i]), row_load(x[i], m, M)));
        row_store(y, at, m, M);
    }
}

/* y += the sum of factors[i] times four vectors that are `stride` numbers apart. */
static void linear_add4(size_t M, const double *factors, const double *x, size_t stride, double *y)
{
    const vec f0 = vec_set(factors[0]), f1 = vec_set(factors[1]), f2 = vec_set(factors[2]), f3 = vec_set(factors[3]);
    for (size_t m = 0; m < M; m += VEC_LANES) {
        vec at = row_load(y, m, M);
        at = vec_fma(f0, row_load(x, m, M), at);
        at = vec_fma(f1, row_load(x + stride, m, M), at);
        at = vec_fma(f2, row_load(x + 2 * stride, m, M), at);
        at = vec_fma(f3, row_load(x + 3 * stride, m, M), at);
        row_store(y, at, m, M);
    }
}
