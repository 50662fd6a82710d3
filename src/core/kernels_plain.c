/* The kernels in plain C, for any machine. */
#define KERNELS kernels_plain
#define KERNELS_NAME "plain"
#include "core/kernels_body.h"
