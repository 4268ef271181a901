// Arrays whose samples have another order than an image's, and their conversion from one order to another
// without holding the array in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace ungrain::io {

// By axis: pages, rows, columns, channels.
using ArrayAxes = std::array<std::int64_t, 4>;

// Distances in samples between neighbouring elements of each axis, for an array without gaps. `order` lists
// the axes from the outermost to the innermost.
ArrayAxes packed_strides(const ArrayAxes& counts, const std::array<std::size_t, 4>& order);

using ReadAt = std::function<void(void* to, std::size_t size, std::uint64_t offset)>;
using WriteAt = std::function<void(const void* from, std::size_t size, std::uint64_t offset)>;

// Copies all samples of an array without gaps from one set of strides to another. Each sample is read and
// written once, in runs as long as 32 MB of memory allow. Offsets and sizes are bytes.
void reorder(const ArrayAxes& counts, std::size_t sample_bytes, const ArrayAxes& from_strides,
             const ReadAt& read, const ArrayAxes& to_strides, const WriteAt& write);

}  // namespace ungrain::io
