// GPUs that are the host's own memory, with queues that do nothing until somebody waits for them: what the
// engine must not rely on (work done before it is waited for) never happens, and memory is as scarce as a
// test wants it.
#pragma once

#include <memory>
#include <vector>

#include "device/backend.h"

namespace ungrain::testing {

class MadeUpGpus {
 public:
  MadeUpGpus(int count, std::size_t bytes_each);

  // `queues` names the GPU of each queue.
  std::unique_ptr<Backend> backend(std::vector<int> queues);

  std::size_t bytes_in_use(int gpu) const;
  int allocations(int gpu) const;        // of its memory and of page-locked memory, so far
  int work_done(int gpu) const;          // conversions and stages
  int uploads(int gpu) const;            // of rows
  int loads(int gpu) const;              // conversions to planes
  int gpu_of(const void* memory) const;  // -1: no GPU's
  // Every stage seems to take so many times as long as it did, as where queues share a GPU.
  void stretch_time(double factor);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace ungrain::testing
