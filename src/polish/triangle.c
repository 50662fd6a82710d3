#include "polish/triangle.h"

#include "core/kernels.h"
#include "math/dot.h"

#include <math.h>
#include <string.h>

static void factorise(size_t M, double *h, double (*dot)(size_t M, const double *a, const double *b))
{
    for (size_t i = 0; i < M; i++) {
        double *line = h + i * (i + 1) / 2;
        const double whole = line[i];
        for (size_t j = 0; j <= i; j++) {
            const double *other = h + j * (j + 1) / 2;
            const double rest = line[j] - dot(j, line, other);
            line[j] = j < i ? rest / other[j] : sqrt(fmax(rest, 1e-15 * whole));
        }
    }
}

static double plain_dot(size_t M, const double *a, const double *b)
{
    return dot8(M, a, b);
}

void triangle_factorise(size_t M, double *h)
{
    factorise(M, h, plain_dot);
}

void triangle_factorise_fast(size_t M, double *h)
{
    factorise(M, h, kernels()->dot);
}

void triangle_solve(size_t M, const double *l, double *v)
{
    for (size_t i = 0; i < M; i++) {
        const double *line = l + i * (i + 1) / 2;
        v[i] = (v[i] - dot8(i, line, v)) / line[i];
    }
    for (size_t i = M; i-- > 0;) {
        const double *line = l + i * (i + 1) / 2;
        v[i] /= line[i];
        for (size_t j = 0; j < i; j++)
            v[j] -= v[i] * line[j];
    }
}

void triangle_forward(size_t M, const double *l, double *v)
{
    for (size_t i = 0; i < M; i++) {
        const double *line = l + i * (i + 1) / 2;
        v[i] = (v[i] - dot8(i, line, v)) / line[i];
    }
}

void triangle_forward_many(size_t M, const double *l, size_t count, double *v)
{
    size_t done = 0;
    for (; done + 4 <= count; done += 4) {
        double *four = v + done * M, products[4];
        for (size_t i = 0; i < M; i++) {
            const double *line = l + i * (i + 1) / 2, pivot = 1 / line[i];
            kernels()->dot4(i, line, four, M, products);
            for (size_t k = 0; k < 4; k++)
                four[k * M + i] = (four[k * M + i] - products[k]) * pivot;
        }
    }
    for (; done < count; done++)
        triangle_forward(M, l, v + done * M);
}

void triangle_product(size_t M, const double *h, const double *v, double *product)
{
    for (size_t i = 0; i < M; i++) {
        const double *line = h + i * (i + 1) / 2;
        product[i] = kernels()->dot(i + 1, line, v);
        kernels()->add_scaled(i, v[i], line, product);
    }
}

void triangle_spread(size_t M, double *l)
{
    for (size_t i = M; i-- > 1;) {
        memmove(l + i * M, l + i * (i + 1) / 2, (i + 1) * sizeof *l);
        memset(l + i * M + i + 1, 0, (M - i - 1) * sizeof *l);
    }
    memset(l + 1, 0, (M - 1) * sizeof *l);
}

void square_lower(size_t M, const double *l, const double *v, double *product)
{
    size_t i = 0;
    for (; i + 4 <= M; i += 4)
        kernels()->dot4(i + 4, v, l + i * M, M, product + i);
    for (; i < M; i++)
        product[i] = kernels()->dot(i + 1, l + i * M, v);
}

void square_upper(size_t M, const double *l, const double *v, double *product)
{
    size_t i = 0;
    memset(product, 0, M * sizeof *product);
    for (; i + 4 <= M; i += 4)
        kernels()->add4(i + 4, v + i, l + i * M, M, product);
    for (; i < M; i++)
        kernels()->add_scaled(i + 1, v[i], l + i * M, product);
}
