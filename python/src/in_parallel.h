// Parallel loops for what compat computes itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace ungrain::python {

// Calls body(begin, end) for parts of [0, count), of `worth_a_thread` or more each.
template <class Body>
void in_parallel(std::size_t count, std::size_t worth_a_thread, const Body& body) {
  const std::size_t most = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  const std::size_t parts = std::clamp<std::size_t>(count / worth_a_thread, 1, most);
  std::vector<std::thread> threads;
  const auto part = [&](std::size_t index) { body(count * index / parts, count * (index + 1) / parts); };
  for (std::size_t index = 1; index < parts; ++index) threads.emplace_back(part, index);
  part(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ungrain::python
