/* See fingerprint.h. */
#define _GNU_SOURCE /* nftw, FTW_PHYS */
#include "dash/fingerprint.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <ftw.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MOST = 1000000, BUFFER = 1 << 17, FOLDERS_OPEN = 16 };
static const uint64_t content_most = 1ULL << 30;

typedef struct {
    char **paths;
    size_t count, room;
    uint64_t bytes;
    bool failed;
} file_list;

static _Thread_local file_list *listing; /* nftw has no context */

static int take_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)where;
    if (kind != FTW_F || !S_ISREG(info->st_mode))
        return 0;
    if (listing->count == FILES_MOST ||
        !alloc_grow((void **)&listing->paths, &listing->room, listing->count + 1, sizeof *listing->paths) ||
        !(listing->paths[listing->count] = strdup(path))) {
        listing->failed = true;
        return 1;
    }
    listing->count++;
    listing->bytes += (uint64_t)info->st_size;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_content(EVP_MD_CTX *sum, const char *path, unsigned char *buffer)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && (n = read(fd, buffer, BUFFER)) > 0)
        EVP_DigestUpdate(sum, buffer, (size_t)n);
    if (fd >= 0)
        close(fd);
    return n == 0;
}

static bool add_stat(EVP_MD_CTX *sum, const char *path)
{
    struct stat info;
    char text[100];
    if (stat(path, &info) != 0)
        return false;
    const int n = snprintf(text, sizeof text, "%lld %lld.%09ld", (long long)info.st_size, (long long)info.st_mtime,
                           info.st_mtim.tv_nsec);
    EVP_DigestUpdate(sum, text, (size_t)n);
    return true;
}

static void print_digest(EVP_MD_CTX *sum, char *hash)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(sum, digest, &size);
    for (unsigned i = 0; i < size && i < 32; i++)
        sprintf(hash + (size_t)2 * i, "%02x", digest[i]);
}

static bool add_all(EVP_MD_CTX *sum, const file_list *all, size_t base, bool content)
{
    unsigned char *buffer = malloc(BUFFER);
    bool good = buffer != NULL;
    for (size_t i = 0; i < all->count && good; i++) {
        const char *name = strlen(all->paths[i]) > base ? all->paths[i] + base : "";
        EVP_DigestUpdate(sum, name, strlen(name) + 1);
        good = content ? add_content(sum, all->paths[i], buffer) : add_stat(sum, all->paths[i]);
    }
    free(buffer);
    return good;
}

void fingerprint_bytes(const void *bytes, size_t size, char hash[FINGERPRINT_SIZE])
{
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    hash[0] = 0;
    if (sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) && EVP_DigestUpdate(sum, bytes, size))
        print_digest(sum, hash);
    EVP_MD_CTX_free(sum);
}

bool fingerprint_path(const char *path, char hash[FINGERPRINT_SIZE])
{
    file_list all = {0};
    struct stat info;
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    bool good = sum && stat(path, &info) == 0 && EVP_DigestInit_ex(sum, EVP_sha256(), NULL);
    listing = &all;
    /* A link to the data is followed; links below a folder are not. */
    char *real = good ? realpath(path, NULL) : NULL;
    good = real && nftw(real, take_file, FOLDERS_OPEN, FTW_PHYS) == 0 && !all.failed;
    if (all.count)
        qsort(all.paths, all.count, sizeof *all.paths, by_name);
    const bool content = all.bytes <= content_most, folder = good && S_ISDIR(info.st_mode);
    hash[0] = 0;
    if (good && !folder && content) { /* the hash that sha256sum prints */
        unsigned char *buffer = malloc(BUFFER);
        good = buffer && add_content(sum, real, buffer);
        free(buffer);
    } else if (good) {
        good = add_all(sum, &all, strlen(real), content);
    }
    if (good)
        print_digest(sum, hash + sprintf(hash, "%s", content ? "" : "stat:"));
    for (size_t i = 0; i < all.count; i++)
        free(all.paths[i]);
    free(all.paths);
    free(real);
    EVP_MD_CTX_free(sum);
    return good;
}
