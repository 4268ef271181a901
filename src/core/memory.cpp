#include "core/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "ungrain/error.h"

namespace ungrain {
namespace {

constexpr std::align_val_t cache_line{64};
constexpr std::size_t kib = 1024;
constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

std::size_t machine_free() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::size_t value = 0;
  std::string rest;
  while (meminfo >> key >> value && std::getline(meminfo, rest)) {
    if (key == "MemAvailable:") return value * kib;
  }
  return unknown;
}

std::size_t number_in(const char* path) {
  std::ifstream file(path);
  std::size_t value = unknown;  // "max" leaves it so
  return file >> value ? value : unknown;
}

// What is left of a container's memory limit.
std::size_t group_free() {
  const std::size_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::size_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit == unknown || used == unknown) return unknown;
  return limit > used ? limit - used : 0;
}

std::size_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unknown;
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace

std::size_t free_memory() {
  const std::size_t least = std::min({machine_free(), group_free(), address_space_limit()});
  return least == unknown ? kib * kib * kib : least;
}

std::string bytes_text(std::size_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < kib) return fmt::format("{} bytes", bytes);
  if (bytes < kib * kib) return fmt::format("{:.1f} KiB", value / 1024);
  if (bytes < kib * kib * kib) return fmt::format("{:.1f} MiB", value / (1024 * 1024));
  return fmt::format("{:.1f} GiB", value / (1024.0 * 1024 * 1024));
}

template <class T>
Buffer<T>::Buffer(std::size_t count) : size_(count) {
  if (count == 0) return;
  void* memory = ::operator new(count * sizeof(T), cache_line, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("out of memory: a buffer of {} could not be had", bytes_text(count * sizeof(T))));
  }
  memory_.reset(static_cast<T*>(memory));
}

template <class T>
void Buffer<T>::Free::operator()(T* memory) const {
  ::operator delete(memory, cache_line);
}

template class Buffer<float>;
template class Buffer<std::byte>;

}  // namespace ungrain
