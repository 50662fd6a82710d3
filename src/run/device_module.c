/* Loads the module hfsad-cuda.so, which has the functions of device.h. */
#include "base/module.h"
#include "run/device_parts.h"

#include <dlfcn.h>
#include <stdio.h>

const device_table *device_table_of(const char *name, char *why, size_t size)
{
    char file[64];
    snprintf(file, sizeof file, "hfsad-%s.so", name);
    snprintf(why, size, "its module %s is missing; build with nvcc of CUDA", file);
    void *module = module_open(file, why, size);
    return module ? dlsym(module, DEVICE_TABLE) : NULL;
}
