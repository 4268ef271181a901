// Asynchronous copies from global to shared memory that bypass the registers.
#pragma once

namespace ungrain::cuda {

// 16 bytes; both addresses aligned to 16.
__device__ inline void copy_async(void* to, const void* from) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// One float; writes zero where `there` is false.
__device__ inline void copy_async(float* to, const float* from, bool there) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const unsigned bytes = there ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes)
               : "memory");
}

// Makes the copies since the last call one group.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `Pending` groups of the thread's copies are under way.
template <int Pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Waits for all copies, in a group or not.
__device__ inline void wait_for_all_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace ungrain::cuda
