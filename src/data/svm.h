/* Reader of LIBSVM text, over bytes in memory. */
#ifndef HFSAD_DATA_SVM_H
#define HFSAD_DATA_SVM_H

#include "data/intake.h"

#define EXPECTED_SVM "LIBSVM text: lines such as 1.5 3:0.2 17:1 # edge1/client7"

/* Reads the rows of a client's own file, or of a file whose comments name the clients. */
hfsad_status svm_take(intake *in, file_bytes *from, const char *name);

#endif
