/* The kernels for AVX-512, compiled with that instruction set; called only if the machine supports it. */
#if defined(__x86_64__)
#define HFSAD_VEC_AVX512
#define KERNELS kernels_avx512
#define KERNELS_NAME "avx512"
#include "core/kernels_body.h"
#else
typedef int kernels_avx512_not_here;
#endif
