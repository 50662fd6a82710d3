#include "net/secret_file.h"

#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hfsad_status write_secret(const unsigned char secret[SECRET_SIZE], const char *path, hfsad_error *err)
{
    whole_file f = {0};
    hfsad_status status = whole_file_open(&f, path, 0600, err);
    if (status)
        return status;
    (void)setvbuf(f.stream, NULL, _IONBF, 0); /* a buffer would keep a copy in freed memory */
    whole_file_put(&f, secret, SECRET_SIZE);
    return whole_file_end(&f, err);
}

hfsad_status secret_take(const char *folder, const char *name, bool drawn, unsigned char secret[SECRET_SIZE],
                         hfsad_error *err)
{
    char *path = folder ? path_join(folder, name) : NULL, *text = NULL;
    size_t size = 0;
    hfsad_status status = HFSAD_OK;
    if (folder && !path)
        return error_memory(err, 0, "a file name");
    const int reason = path ? file_read(path, SECRET_SIZE, &text, &size) : ENOENT;
    if (!reason && size == SECRET_SIZE)
        memcpy(secret, text, size);
    else if (reason != ENOENT)
        status = error_set(err, HFSAD_ERROR_INPUT, "%.300s is not a key of this program; use a new state folder", path);
    else if (drawn)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.300s is missing, and the state beside it depends on it; restore the file, or start a new "
                           "run with new state folders for all nodes",
                           path);
    else if (RAND_bytes(secret, SECRET_SIZE) != 1)
        status = error_set(err, HFSAD_ERROR_IO, "no random numbers for a key");
    else if (path)
        status = write_secret(secret, path, err);
    if (text)
        OPENSSL_cleanse(text, size);
    free(text);
    free(path);
    return status;
}
