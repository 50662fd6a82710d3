/* See ranks.h. Finds out whether processes were started together, and loads the module by which they communicate. */
#define _GNU_SOURCE
#include "base/module.h"
#include "base/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Variables of Open MPI; MPICH and Intel MPI; Slurm, which sets its variable for programs without MPI too. A size of 1
 * counts as one process. */
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

bool ranks_launch(char *why, size_t size)
{
    static rank_group group;
    if (!is_launched())
        return true;
    snprintf(why, size,
             "mpirun started this program, but its module hfsad-mpi.so is missing; build with Open MPI (Debian: "
             "libopenmpi-dev), or run one process");
    void *module = module_open("hfsad-mpi.so", why, size);
    ranks_opener *opener = NULL;
    if (module)
        *(void **)&opener = dlsym(module, RANKS_OPEN);
    if (!opener || !opener(&group, why, size))
        return false;
    ranks_join(&group);
    return true;
}
