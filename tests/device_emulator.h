/*
 * A device of which every thread is a fiber of this processor, so that tests run the kernels of cuda/ where there is no
 * GPU: `g++ -x c++ -include tests/device_emulator.h cuda/hfsad_cuda.cu`. Blocks run one after the other; the threads of
 * a block take turns at its barriers and at the exchanges of a warp, so that a kernel whose threads do not all reach a
 * barrier stops with a message. Memory of the device is memory of the heap, filled with NaN when it is taken.
 */
#ifndef HFSAD_TESTS_DEVICE_EMULATOR_H
#define HFSAD_TESTS_DEVICE_EMULATOR_H

#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define HFSAD_DEVICE_EMULATED 1
#define __CUDACC__ 1
#define __device__
#define __host__
#define __global__ static
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

using std::isfinite;

/* ---- fibers ---- */

struct emulated_place {
    unsigned x;
};
static emulated_place threadIdx, blockIdx, blockDim, gridDim;

struct emulated_fiber {
    ucontext_t first;
    jmp_buf at;
    std::vector<char> stack;
    bool begun, done;
    unsigned turn; /* exchanges of its warp so far */
    unsigned waits_block, waits_warp;
};

struct emulated_warp {
    unsigned alive, arrived, passed;
    double exchanged[2][32];
};

static std::vector<emulated_fiber> emulated_fibers;
static std::vector<emulated_warp> emulated_warps;
static ucontext_t emulated_main;
static jmp_buf emulated_scheduler;
static unsigned emulated_alive, emulated_arrived, emulated_passed;
static std::function<void()> emulated_body;
static std::vector<double> emulated_shared;

static void emulated_yield()
{
    emulated_fiber &f = emulated_fibers[threadIdx.x];
    const unsigned self = threadIdx.x;
    if (!_setjmp(f.at))
        _longjmp(emulated_scheduler, 1);
    threadIdx.x = self;
}

static void emulated_release()
{
    emulated_warp &w = emulated_warps[threadIdx.x / 32];
    if (w.arrived && w.arrived == w.alive) {
        w.arrived = 0;
        w.passed++;
    }
    if (emulated_arrived && emulated_arrived == emulated_alive) {
        emulated_arrived = 0;
        emulated_passed++;
    }
}

static void emulated_begin()
{
    emulated_body();
    emulated_fibers[threadIdx.x].done = true;
    emulated_alive--;
    emulated_warps[threadIdx.x / 32].alive--;
    emulated_release();
    _longjmp(emulated_scheduler, 1);
}

static void __syncwarp()
{
    emulated_warp &w = emulated_warps[threadIdx.x / 32];
    const unsigned before = w.passed;
    w.arrived++;
    emulated_release();
    while (w.passed == before)
        emulated_yield();
}

static void __syncthreads()
{
    const unsigned before = emulated_passed;
    emulated_arrived++;
    emulated_release();
    while (emulated_passed == before)
        emulated_yield();
}

/* Two rooms in turns: no thread comes two exchanges ahead of another. */
static double emulated_exchange(double value, unsigned from)
{
    emulated_warp &w = emulated_warps[threadIdx.x / 32];
    double *room = w.exchanged[emulated_fibers[threadIdx.x].turn++ % 2];
    room[threadIdx.x % 32] = value;
    __syncwarp();
    return room[from % 32];
}

static inline double __shfl_sync(unsigned, double value, unsigned from)
{
    return emulated_exchange(value, from);
}
static inline double __shfl_xor_sync(unsigned, double value, unsigned mask)
{
    return emulated_exchange(value, threadIdx.x % 32 ^ mask);
}
static inline double __shfl_down_sync(unsigned, double value, unsigned by, unsigned width)
{
    const unsigned lane = threadIdx.x % 32;
    return emulated_exchange(value, lane % width + by < width ? lane + by : lane);
}

/* Runs every thread of the block until all have ended. */
static void emulated_block(unsigned threads)
{
    enum { STACK = 64 << 10 };
    if (emulated_fibers.size() < threads)
        emulated_fibers.resize(threads);
    emulated_warps.assign((threads + 31) / 32, emulated_warp());
    emulated_alive = threads;
    emulated_arrived = emulated_passed = 0;
    for (unsigned t = 0; t < threads; t++) {
        emulated_fiber &f = emulated_fibers[t];
        f.stack.resize(STACK);
        f.begun = f.done = false;
        f.turn = 0;
        emulated_warps[t / 32].alive++;
    }
    for (unsigned idle = 0; emulated_alive;) {
        const unsigned before = emulated_alive + emulated_passed;
        static unsigned t, passed; /* survive the jumps */
        passed = 0;
        for (const emulated_warp &w : emulated_warps)
            passed += w.passed;
        for (t = 0; t < threads; t++) {
            emulated_fiber &f = emulated_fibers[t];
            if (f.done || _setjmp(emulated_scheduler))
                continue;
            threadIdx.x = t;
            if (f.begun)
                _longjmp(f.at, 1);
            f.begun = true;
            getcontext(&f.first);
            f.first.uc_stack.ss_sp = f.stack.data();
            f.first.uc_stack.ss_size = STACK;
            f.first.uc_link = NULL;
            makecontext(&f.first, emulated_begin, 0);
            swapcontext(&emulated_main, &f.first);
        }
        for (const emulated_warp &w : emulated_warps)
            passed -= w.passed;
        idle = before == emulated_alive + emulated_passed && passed == 0 ? idle + 1 : 0;
        if (idle > 2) {
            fprintf(stderr, "device emulator: block %u: %u threads wait for others that never come\n", blockIdx.x,
                    emulated_alive);
            abort();
        }
    }
}

template <typename F> static void emulated_launch(size_t blocks, unsigned threads, size_t shared, F body)
{
    const size_t need = shared / sizeof(double) + 1;
    if (threads > 1024 || shared > 227 << 10) {
        fprintf(stderr, "device emulator: %u threads with %zu bytes of shared memory\n", threads, shared);
        abort();
    }
    emulated_body = body;
    blockDim.x = threads;
    gridDim.x = (unsigned)blocks;
    for (size_t b = 0; b < blocks; b++) {
        emulated_shared.assign(need, NAN);
        blockIdx.x = (unsigned)b;
        emulated_block(threads);
    }
}

#define LAUNCH(kernel, blocks, threads, shared, ...)                                                                   \
    emulated_launch(blocks, threads, shared, [&]() { (kernel)(__VA_ARGS__); })
#define SHARED_ROOM(name) double *name = emulated_shared.data()

/* ---- operations ---- */

static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dsub_rn(double a, double b)
{
    return a - b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline double __fma_rn(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
static inline double __dsqrt_rn(double a)
{
    return std::sqrt(a);
}
template <typename T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldlu(const T *p)
{
    return *p;
}
template <typename T> static inline void __stcs(T *p, T a)
{
    *p = a;
}
static inline void __pipeline_memcpy_async(void *to, const void *from, size_t size)
{
    if ((size_t)to % size || (size_t)from % size) {
        fprintf(stderr, "device emulator: a copy of %zu bytes is not aligned\n", size);
        abort();
    }
    memcpy(to, from, size);
}
static inline void __pipeline_commit()
{
}
static inline void __pipeline_wait_prior(int)
{
}
template <typename T> static inline void atomicAdd(T *p, T a)
{
    *p += a;
}

/* ---- the runtime ---- */

typedef int cudaError_t;
typedef struct {
    int unused;
} * cudaEvent_t;
enum { cudaSuccess, cudaErrorMemoryAllocation };
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaLimitMallocHeapSize, cudaFuncAttributeMaxDynamicSharedMemorySize };

static cudaError_t cudaMalloc(void **memory, size_t size)
{
    *memory = malloc(size);
    if (*memory)
        memset(*memory, 0xff, size);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
static cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}
static cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int)
{
    memcpy(to, from, size);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int)
{
    memcpy(to, from, size);
    return cudaSuccess;
}
template <typename T>
static cudaError_t cudaMemcpyToSymbolAsync(T &symbol, const void *from, size_t size, size_t offset, int)
{
    memcpy((char *)&symbol + offset, from, size);
    return cudaSuccess;
}
static cudaError_t cudaMemset(void *memory, int value, size_t size)
{
    memset(memory, value, size);
    return cudaSuccess;
}
static cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    const char *limit = getenv("HFSAD_EMULATED_BYTES"); /* for tests of too little memory */
    *left = *all = limit ? (size_t)strtod(limit, NULL) : (size_t)4 << 30;
    return cudaSuccess;
}
static cudaError_t cudaGetDeviceCount(int *count)
{
    const char *text = getenv("HFSAD_EMULATED_DEVICES");
    *count = text ? atoi(text) : 1;
    return cudaSuccess;
}
static int emulated_device;
static inline cudaError_t cudaSetDevice(int device)
{
    emulated_device = device;
    return cudaSuccess;
}
static cudaError_t cudaDeviceSetLimit(int, size_t)
{
    return cudaSuccess;
}
static cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
static const char *cudaGetErrorString(cudaError_t error)
{
    return error ? "out of memory" : "no error";
}
template <typename F> static cudaError_t cudaFuncSetAttribute(F, int, int)
{
    return cudaSuccess;
}
static cudaError_t cudaEventCreate(cudaEvent_t *)
{
    return cudaSuccess;
}
static cudaError_t cudaEventRecord(cudaEvent_t)
{
    return cudaSuccess;
}
static cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
static cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 1e9f;
    return cudaSuccess;
}

#endif
