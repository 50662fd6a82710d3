#include "polish/chosen.h"

#include "base/alloc.h"
#include "polish/star_client.h"

#include <stdlib.h>
#include <string.h>

struct polish_chosen {
    size_t F;
    double x[]; /* F for every row */
};

size_t chosen_coordinates(const polish_chosen *c, size_t extra)
{
    return c ? c->F + extra : 0;
}

void chosen_make(const polish_client *o, const double *vector, double *answer)
{
    const size_t F = o->rows.F, count = o->rows.count;
    size_t kept = 0;
    for (size_t m = 0; m < F; m++)
        kept += vector[m] != 0;
    star_client_free(*o->star);
    *o->star = NULL;
    free(*o->chosen);
    polish_chosen *c = *o->chosen = alloc_zero(1, sizeof *c + kept * count * sizeof *c->x);
    double *row = alloc_zero(rows_level(&o->rows) + 1, sizeof *row);
    if (!c || !row) { /* the cloud then asks without a choice */
        free(c);
        free(row);
        *o->chosen = NULL;
        return;
    }
    c->F = kept;
    for (size_t r = 0; r < count; r++) {
        double *to = c->x + r * kept;
        row_spread(&o->rows, r, rows_level(&o->rows) + 1, row);
        for (size_t m = 0; m < F; m++)
            if (vector[m] != 0)
                *to++ = row[m];
    }
    free(row);
    *answer = 1;
}

polish_client chosen_client(const polish_client *o)
{
    polish_client c = *o;
    c.M = (*o->chosen)->F + o->M - o->rows.F;
    c.rows.F = (*o->chosen)->F;
    c.rows.x = (*o->chosen)->x;
    c.rows.start = NULL;
    c.rows.column = NULL;
    c.rows.pages = NULL;
    return c;
}
