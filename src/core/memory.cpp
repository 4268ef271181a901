#include "core/memory.h"

#include <new>

#include <fmt/format.h>

#include "platform/machine.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

constexpr std::align_val_t cache_line{64};
constexpr std::size_t kib = 1024;

}  // namespace

std::size_t free_memory() {
  const std::size_t available = platform::available_memory();
  return available == platform::unknown_memory ? kib * kib * kib : available;
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
