/* Modules that the program loads on demand, so that it does not depend on their libraries. */
#ifndef HFSAD_BASE_MODULE_H
#define HFSAD_BASE_MODULE_H

#include <stddef.h>

/* Loads the module beside the program or in the program's library folder; the result is for dlsym. NULL: the module is
 * missing, and `why` does not change; or it could not be loaded, and `why` states the reason. */
void *module_open(const char *file, char *why, size_t size);

#endif
