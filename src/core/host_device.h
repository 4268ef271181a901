// Marks functions that run on the host and on a GPU.
#pragma once

#ifdef __CUDACC__
#define UNGRAIN_HOST_DEVICE __host__ __device__
#else
#define UNGRAIN_HOST_DEVICE
#endif
