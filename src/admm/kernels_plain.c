/* The kernels in plain C, for any machine. */
#define KERNELS kernels_plain
#define KERNELS_NAME "plain"
#include "admm/kernels_body.h"
