/* See ranks.h: which processes were started together, and the module by which they talk. */
#define _GNU_SOURCE
#include "base/ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open MPI; MPICH and Intel MPI; Slurm, which sets its own for programs without MPI too. 1 is as good as none. */
static bool is_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *size = getenv(names[i]);
        if (size && atoi(size) > 1 && (i < 2 || getenv("PMIX_RANK") || getenv("PMI_RANK")))
            return true;
    }
    return false;
}

static void *open_module(char *why, size_t size)
{
    static const char *const places[] = {"", "../lib/hfsad/", "../lib/x86_64-linux-gnu/hfsad/",
                                         "../lib/aarch64-linux-gnu/hfsad/"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    snprintf(why, size,
             "mpirun started this program, but its module hfsad-mpi.so is missing; build with Open MPI (Debian: "
             "libopenmpi-dev), or run one process");
    if (length <= 0)
        return NULL;
    self[length] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%shfsad-mpi.so", self, places[i]);
        if (access(path, F_OK) != 0)
            continue;
        void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!module)
            snprintf(why, size, "%s", dlerror());
        return module;
    }
    return NULL;
}

bool ranks_launch(char *why, size_t size)
{
    static rank_group group;
    if (!is_launched())
        return true;
    void *module = open_module(why, size);
    ranks_opener *opener = NULL;
    if (module)
        *(void **)&opener = dlsym(module, RANKS_OPEN);
    if (!opener || !opener(&group, why, size))
        return false;
    ranks_join(&group);
    return true;
}
