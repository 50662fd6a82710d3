#include "net/vault.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "net/secret_file.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_NAME "noise.key"
enum { FEW_WORDS = 64, WORDS = 512 };

/* A client's key. */
typedef struct client_words {
    struct vault *v;
    struct client_words *next;
    unsigned char key[SECRET_SIZE];
} client_words;

struct vault {
    uint64_t run;
    unsigned char secret[SECRET_SIZE];
    client_words *clients;
    EVP_CIPHER_CTX *cipher; /* of the step in hand; a process has one thread */
    unsigned char words[WORDS * sizeof(uint64_t)];
    size_t used, made; /* made: a few at first, because models may be short */
};

hfsad_status vault_create(vault **out, const char *folder, bool begun, uint64_t run, hfsad_error *err)
{
    vault *v = alloc_zero(1, sizeof *v);
    *out = NULL;
    if (v)
        v->cipher = EVP_CIPHER_CTX_new();
    if (!v || !v->cipher || EVP_EncryptInit_ex(v->cipher, EVP_aes_256_ctr(), NULL, NULL, NULL) != 1) {
        vault_free(v);
        return error_memory(err, sizeof *v, "the random numbers of the noise");
    }
    v->run = run;
    const hfsad_status status = secret_take(folder, SECRET_NAME, begun, v->secret, err);
    if (status)
        vault_free(v);
    else
        *out = v;
    return status;
}

void vault_free(vault *v)
{
    if (!v)
        return;
    while (v->clients) {
        client_words *c = v->clients;
        v->clients = c->next;
        OPENSSL_cleanse(c->key, sizeof c->key);
        free(c);
    }
    EVP_CIPHER_CTX_free(v->cipher);
    OPENSSL_cleanse(v->secret, sizeof v->secret);
    OPENSSL_cleanse(v->words, sizeof v->words);
    free(v);
}

/* A client that would speak without its noise must not speak. */
static void insist(int done)
{
    if (done != 1)
        abort();
}

static void begin_step(void *context, uint64_t step)
{
    client_words *c = context;
    unsigned char counter[16] = {0};
    put64(counter, step);
    insist(EVP_EncryptInit_ex(c->v->cipher, NULL, NULL, c->key, counter));
    c->v->used = c->v->made = 0;
}

static uint64_t next(void *context)
{
    static const unsigned char zeros[WORDS * sizeof(uint64_t)];
    vault *v = ((client_words *)context)->v;
    int made;
    if (v->used == v->made) {
        v->made = v->made ? WORDS : FEW_WORDS;
        insist(EVP_EncryptUpdate(v->cipher, v->words, &made, zeros, (int)(v->made * sizeof(uint64_t))));
        v->used = 0;
    }
    return get64(v->words + 8 * v->used++);
}

hfsad_status vault_words(vault *v, const char *path, word_source *words, hfsad_error *err)
{
    static const char label[] = "hfsad noise 1";
    const size_t length = strlen(path), size = sizeof label + 8 + length;
    client_words *c = alloc_zero(1, sizeof *c);
    unsigned char *text = alloc_raw(size, 1);
    unsigned made = 0;
    bool done = c && text;
    if (done) {
        memcpy(text, label, sizeof label);
        put64(text + sizeof label, v->run);
        memcpy(text + sizeof label + 8, path, length);
        done = HMAC(EVP_sha256(), v->secret, sizeof v->secret, text, size, c->key, &made) && made == SECRET_SIZE;
    }
    free(text);
    if (!done) {
        free(c);
        return error_memory(err, size, "the random numbers of the noise");
    }
    c->v = v;
    c->next = v->clients;
    v->clients = c;
    *words = (word_source){c, begin_step, next};
    return HFSAD_OK;
}
