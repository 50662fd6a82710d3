/* A client's answers for the multinomial loss (core/softmax.h), whose rows have a score for each class. */
#ifndef HFSAD_POLISH_SOFTMAX_ANSWERS_H
#define HFSAD_POLISH_SOFTMAX_ANSWERS_H

#include "polish/answers.h"

/* Answers all questions except those of the star's rounds. answer: all 0 on entry. client->bend: K numbers for each
 * row. */
void softmax_answer(const polish_client *client, const polish_question *question, double *answer);

#endif
