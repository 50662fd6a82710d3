#include "polish/triangle.h"

#include "math/dot.h"

#include <math.h>

void triangle_factorise(size_t M, double *h)
{
    for (size_t i = 0; i < M; i++) {
        double *line = h + i * (i + 1) / 2;
        const double whole = line[i];
        for (size_t j = 0; j <= i; j++) {
            const double *other = h + j * (j + 1) / 2;
            const double rest = line[j] - dot8(j, line, other);
            line[j] = j < i ? rest / other[j] : sqrt(fmax(rest, 1e-15 * whole));
        }
    }
}

void triangle_forward(size_t M, const double *l, double *v)
{
    for (size_t i = 0; i < M; i++) {
        const double *line = l + i * (i + 1) / 2;
        v[i] = (v[i] - dot8(i, line, v)) / line[i];
    }
}

void triangle_solve(size_t M, const double *l, double *v)
{
    triangle_forward(M, l, v);
    for (size_t i = M; i-- > 0;) {
        const double *line = l + i * (i + 1) / 2;
        v[i] /= line[i];
        for (size_t j = 0; j < i; j++)
            v[j] -= v[i] * line[j];
    }
}

void triangle_product(size_t M, const double *h, const double *v, double *product)
{
    for (size_t i = 0; i < M; i++) {
        const double *line = h + i * (i + 1) / 2;
        product[i] = dot8(i + 1, line, v);
        for (size_t j = 0; j < i; j++)
            product[j] += line[j] * v[i];
    }
}
