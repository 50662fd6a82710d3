/* The kernels for AVX2, compiled with that instruction set; called only if the machine supports it. */
#if defined(__x86_64__)
#define HFSAD_VEC_AVX2
#define KERNELS kernels_avx2
#define KERNELS_NAME "avx2"
#include "core/kernels_body.h"
#else
typedef int kernels_avx2_not_here;
#endif
