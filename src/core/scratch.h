#pragma once

#include <cstddef>

namespace ungrain {

// Hands out pieces of one allocation in order, each at a multiple of `alignment` bytes from its start.
// Without memory it only counts: the same code computes the size and the layout.
class ScratchPieces {
 public:
  static constexpr std::size_t cache_line = 64;

  explicit ScratchPieces(float* start, std::size_t alignment = cache_line)
      : start_(reinterpret_cast<std::byte*>(start)), alignment_(alignment) {}

  // Null where there is no memory.
  template <class T>
  T* take(std::size_t count) {
    std::byte* const piece = start_ == nullptr ? nullptr : start_ + taken_;
    taken_ += (count * sizeof(T) + alignment_ - 1) / alignment_ * alignment_;
    return reinterpret_cast<T*>(piece);
  }
  std::size_t floats() const { return taken_ / sizeof(float); }

 private:
  std::byte* start_;
  std::size_t alignment_;
  std::size_t taken_ = 0;
};

}  // namespace ungrain
