// Asynchronous copies from global to shared memory that bypass the registers. Before compute capability 8.0
// they are plain copies, which are done when they return.
#pragma once

#include <cuda_runtime.h>

namespace ungrain::cuda {

// 16 bytes; both addresses aligned to 16.
__device__ inline void copy_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#endif
}

// One float; writes zero where `there` is false.
__device__ inline void copy_async(float* to, const float* from, bool there) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const unsigned bytes = there ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes)
               : "memory");
#else
  *to = there ? *from : 0.0F;
#endif
}

// Makes the copies since the last call one group.
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `Pending` groups of the thread's copies are under way.
template <int Pending>
__device__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

// Waits for all copies, in a group or not.
__device__ inline void wait_for_all_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace ungrain::cuda
