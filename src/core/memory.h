// Free memory, and float buffers that free themselves.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ungrain {

// Bytes that this process may still take: what the machine has free, or what is left of the process' own
// limit.
std::size_t free_memory();

std::string bytes_text(std::size_t bytes);  // "1.5 GiB"

// Cache-line aligned and uninitialised. Throws Error(out_of_memory) that names the bytes.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count);
  T* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::span<T> span() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(T* memory) const;
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t size_ = 0;
};

extern template class Buffer<float>;
extern template class Buffer<std::byte>;

}  // namespace ungrain
