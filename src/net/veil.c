#include "net/veil.h"

#include <openssl/evp.h>

void veil_digest(const double *values, size_t count, uint64_t digest[4])
{
    unsigned size;
    (void)EVP_Digest(values, count * sizeof *values, (unsigned char *)digest, &size, EVP_sha256(), NULL);
}
