#define _GNU_SOURCE
#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *module_open(const char *file, char *why, size_t size)
{
    static const char *const places[] = {"", "../", "../lib/hfsad/", "../lib/x86_64-linux-gnu/hfsad/",
                                         "../lib/aarch64-linux-gnu/hfsad/"};
    char self[PATH_MAX], path[PATH_MAX + 100];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return NULL;
    self[length] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%s%s", self, places[i], file);
        if (access(path, F_OK) != 0)
            continue;
        void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!module)
            snprintf(why, size, "%s", dlerror());
        return module;
    }
    return NULL;
}
