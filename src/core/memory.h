// Buffers that free themselves.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ungrain/memory.h"

namespace ungrain {

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
