// Arrays whose samples lie in another order than an image's, and how they are brought from one order into
// another without being held in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace ungrain::io {

// By axis: pages, rows, columns, channels.
using ArrayAxes = std::array<std::int64_t, 4>;

// Samples from one element to the next of each axis, for an array without gaps whose axes are, from the
// outermost to the innermost, those of `order`.
ArrayAxes packed_strides(const ArrayAxes& counts, const std::array<std::size_t, 4>& order);

using ReadAt = std::function<void(void* to, std::size_t size, std::uint64_t offset)>;
using WriteAt = std::function<void(const void* from, std::size_t size, std::uint64_t offset)>;

// All samples of an array without gaps, from strides to strides. Reads and writes each sample once, in runs
// as long as 32 MB of memory allow; offsets and sizes are bytes.
void reorder(const ArrayAxes& counts, std::size_t sample_bytes, const ArrayAxes& from_strides,
             const ReadAt& read, const ArrayAxes& to_strides, const WriteAt& write);

}  // namespace ungrain::io
