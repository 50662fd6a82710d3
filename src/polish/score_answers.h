/* A client's answers if rows have a score for each level or class, each with a loss of its own (core/scores.h). */
#ifndef HFSAD_POLISH_SCORE_ANSWERS_H
#define HFSAD_POLISH_SCORE_ANSWERS_H

#include "polish/answers.h"

/* As polish_answer; answer is 0 so far. */
void scores_answer(const polish_client *client, const polish_question *question, double *answer);
/* As star_client_resume; answer is 0 so far. */
void scores_resume(const polish_client *client, const double *w, double sigma, double *answer);

#endif
