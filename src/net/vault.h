/*
 * Random words for the noise of clients (plan/noise.h): AES-256 in counter mode. The key of a client is HMAC-SHA-256 of
 * its process's secret over the run and the client's path; the first counter of a step is the number of the step. A
 * client that was killed therefore draws the same noise for the same step again, and no other.
 */
#ifndef HFSAD_NET_VAULT_H
#define HFSAD_NET_VAULT_H

#include "base/gaussian.h"
#include "hfsad/hfsad.h"

typedef struct vault vault;
/* folder: of the process's state; the secret in it must outlast the process. begun: the folder has states, whose rounds
 * were said with that secret; other noise on the same rounds would cost the budget again. */
hfsad_status vault_create(vault **v, const char *folder, bool begun, uint64_t run, hfsad_error *err);
/* The words of a client; they last until vault_free. */
hfsad_status vault_words(vault *v, const char *path, word_source *words, hfsad_error *err);
void vault_free(vault *v);

#endif
