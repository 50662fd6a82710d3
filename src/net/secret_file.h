/* The secret of a process: random bytes in its state folder, drawn when it first opens it. */
#ifndef HFSAD_NET_SECRET_FILE_H
#define HFSAD_NET_SECRET_FILE_H

#include "hfsad/hfsad.h"

#include <stdbool.h>

enum { SECRET_SIZE = 32 };
/* folder may be NULL: the secret lasts as long as the process. drawn: the run has already used the secret, so a missing
 * file is an error. */
hfsad_status secret_take(const char *folder, const char *name, bool drawn, unsigned char secret[SECRET_SIZE],
                         hfsad_error *err);

#endif
