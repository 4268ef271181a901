// Functions that run on both sides of a GPU build.
#pragma once

#ifdef __CUDACC__
#define UNGRAIN_HOST_DEVICE __host__ __device__
#else
#define UNGRAIN_HOST_DEVICE
#endif
