/* Modules that the program loads only if they are wanted, so that it does not need what they need. */
#ifndef HFSAD_BASE_MODULE_H
#define HFSAD_BASE_MODULE_H

#include <stddef.h>

/* The file, beside the program or in the folder of libraries that belongs to it; for dlsym. NULL: it is not there, and
 * why is as it was; or it could not be loaded, and why says so. */
void *module_open(const char *file, char *why, size_t size);

#endif
