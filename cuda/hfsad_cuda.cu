/*
 * The rounds of HFSAD on a GPU (run/device.h), in one translation unit. Clients: wide.cuh with one row of many features,
 * narrow.cuh of few, general.cuh with any settings, rows.cuh with many rows; inner.cuh: the nodes above; figures.cuh: the
 * figures of a row of the trace. The host's side: memory.cuh and rounds.cuh.
 */
#define HFSAD_VEC_CUDA 1
#include "core/link_vec.h"
#include "core/measure_vec.h"
#include "math/losses.h"
#include "core/draw.h"
#include "run/device.h"
#include "made/draws.h"

#define BOX_FN static __device__
#define box_loss loss_value
#include "math/box_body.h"

#include <cstdio>
#include <cstdlib>

#if !defined(HFSAD_DEVICE_EMULATED) /* by tests/device_emulator.h */
#include <cuda_pipeline.h>

#define LAUNCH(kernel, blocks, threads, shared, ...) (kernel)<<<(unsigned)(blocks), threads, shared>>>(__VA_ARGS__)
#define SHARED_ROOM(name) extern __shared__ double name[]
#endif

#include "common.cuh"
#include "wide.cuh"
#include "members.cuh"
#include "narrow.cuh"
#include "general.cuh"
#include "rows.cuh"
#include "inner.cuh"
#include "figures.cuh"
#include "drawn.cuh"
#include "memory.cuh"
#include "rounds.cuh"

extern "C" __attribute__((visibility("default"))) const device_table hfsad_device = {
    open_device, close_device, put, put_cloud, play, step_roots, measure, heard, fetch, copy_rate};
