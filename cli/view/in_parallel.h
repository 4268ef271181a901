// Rows of a picture on all processors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

namespace ungrain::cli::view {

// Calls work(first, end) for parts of the rows, on as many threads as so many pixels are worth.
template <class Work>
void in_parallel(int rows, int width, Work work) {
  constexpr std::int64_t pixels_for_thread = 1 << 17;
  const std::int64_t pixels = std::int64_t{width} * rows;
  const auto threads = static_cast<int>(std::clamp<std::int64_t>(
      pixels / pixels_for_thread, 1, std::max(1U, std::thread::hardware_concurrency())));
  const auto row_of = [&](int part) { return static_cast<int>(std::int64_t{rows} * part / threads); };
  std::vector<std::future<void>> parts;
  for (int part = 1; part < threads; ++part) {
    parts.push_back(std::async(std::launch::async, [&, part] { work(row_of(part), row_of(part + 1)); }));
  }
  work(0, row_of(1));
  for (std::future<void>& part : parts) part.get();
}

}  // namespace ungrain::cli::view
