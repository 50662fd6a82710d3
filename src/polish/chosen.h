/* A client's rows with the columns that the cloud has chosen (choice.h): a dense copy, behind which the client keeps
 * its intercepts as they are. The multipliers of the rows are the same for all choices. */
#ifndef HFSAD_POLISH_CHOSEN_H
#define HFSAD_POLISH_CHOSEN_H

#include "polish/answers.h"

/* vector: 1 for every chosen feature, otherwise 0; the numbers of the intercepts are not looked at. The star, which has
 * other coordinates, is dropped. answer: 1, or 0 for lack of memory. */
void chosen_make(const polish_client *o, const double *vector, double *answer);
/* The client with these columns; its M is that of the questions. Only after chosen_make. */
polish_client chosen_client(const polish_client *o);
/* Its coordinates; 0: nothing was chosen. extra: coordinates beside the features. */
size_t chosen_coordinates(const polish_chosen *c, size_t extra);

#endif
