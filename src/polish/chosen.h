/* A client's rows with the columns that the cloud has chosen (choice.h): a dense copy, followed by the client's
 * intercepts unchanged. All choices share the multipliers of the rows. */
#ifndef HFSAD_POLISH_CHOSEN_H
#define HFSAD_POLISH_CHOSEN_H

#include "polish/answers.h"

/* vector: 1 for every chosen feature, otherwise 0; its numbers for intercepts are ignored. Drops the star, whose
 * coordinates differ. answer: 1, or 0 without memory. */
void chosen_make(const polish_client *o, const double *vector, double *answer);
/* The client with these columns; its M is that of the questions. Called only after chosen_make. */
polish_client chosen_client(const polish_client *o);
/* Number of its coordinates; 0: nothing was chosen. extra: coordinates besides the features. */
size_t chosen_coordinates(const polish_chosen *c, size_t extra);

#endif
