/* Rows whose squares are added to a triangle together, so that it is read and written once for all of them. */
#ifndef HFSAD_POLISH_SQUARES_H
#define HFSAD_POLISH_SQUARES_H

#include "polish/answers.h"

enum { SQUARES_ROWS = 8 };

typedef struct {
    size_t M, count;
    const double *x[SQUARES_ROWS];
    double factor[SQUARES_ROWS];
} square_rows;

/* Whether the rows can be: all their numbers are there, one after the other. */
static inline bool squares_suit(const client_rows *rows)
{
    return !rows->start && rows->constant == 0;
}

/* Lines from `first` to `end` - 1 of the triangle += factor x x', row after row, with the bits of polish_add_square;
 * then there are no rows. */
void squares_add(square_rows *s, size_t first, size_t end, double *triangle);
/* The same with the sum of these rows' squares, as a client with several rows answers it. line: room for M numbers. */
void squares_add_sum(square_rows *s, size_t first, size_t end, double *line, double *triangle);

/* What the rows' squares are multiplied by in the answer to POLISH_HESSIAN or POLISH_SQUARES. */
double squares_factor(const polish_client *client, const polish_question *question, size_t r);
/* A client's answer, which is 0 before. */
void answer_squares(const polish_client *client, const polish_question *question, double *answer);

#endif
