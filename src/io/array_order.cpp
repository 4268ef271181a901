#include "io/array_order.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace ungrain::io {
namespace {

constexpr std::size_t axes = 4;
using AxisOrder = std::array<std::size_t, axes>;

// Axes from the innermost to the outermost. An axis of one element goes last, where it splits no run.
AxisOrder innermost_first(const ArrayAxes& counts, const ArrayAxes& strides) {
  AxisOrder order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if ((counts[a] == 1) != (counts[b] == 1)) return counts[b] == 1;
    return strides[a] < strides[b];
  });
  return order;
}

// A part of the array, and the lengths of its contiguous runs.
struct Box {
  ArrayAxes start = {};
  ArrayAxes extent = {};
};

struct Run {
  std::int64_t length = 1;
  std::size_t inside = 0;  // axes that the run covers, from the innermost
};

Run run_of(const ArrayAxes& counts, const ArrayAxes& extent, const AxisOrder& order) {
  Run run;
  while (run.inside < axes) {
    const std::size_t axis = order[run.inside++];
    run.length *= extent[axis];
    if (extent[axis] != counts[axis]) break;
  }
  return run;
}

// Grows the box along the axis that lengthens the shorter of both runs, until the memory is used up.
ArrayAxes box_extent(const ArrayAxes& counts, std::int64_t most_samples, const AxisOrder& from,
                     const AxisOrder& to) {
  ArrayAxes extent = {1, 1, 1, 1};
  for (;;) {
    const bool grow_from = run_of(counts, extent, from).length <= run_of(counts, extent, to).length;
    const AxisOrder& order = grow_from ? from : to;
    const auto* const axis =
        std::find_if(order.begin(), order.end(), [&](std::size_t a) { return extent[a] < counts[a]; });
    if (axis == order.end()) return extent;
    ArrayAxes larger = extent;
    larger[*axis] = std::min(2 * extent[*axis], counts[*axis]);
    if (larger[0] * larger[1] * larger[2] * larger[3] > most_samples) return extent;
    extent = larger;
  }
}

// Calls visit(start of the run in the array, start in the packed box, length), all in samples.
template <class Visit>
void for_each_run(const ArrayAxes& counts, const ArrayAxes& strides, const AxisOrder& order, const Box& box,
                  Visit visit) {
  const Run run = run_of(counts, box.extent, order);
  ArrayAxes index = {};
  std::int64_t packed = 0;
  for (;;) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) at += (box.start[axis] + index[axis]) * strides[axis];
    visit(at, packed, run.length);
    packed += run.length;
    std::size_t level = run.inside;
    while (level < axes && ++index[order[level]] == box.extent[order[level]]) index[order[level++]] = 0;
    if (level == axes) return;
  }
}

ArrayAxes packed_in(const ArrayAxes& extent, const AxisOrder& order) {
  ArrayAxes strides{};
  std::int64_t stride = 1;
  for (const std::size_t axis : order) {
    strides[axis] = stride;
    stride *= extent[axis];
  }
  return strides;
}

template <class Sample>
void permute(const ArrayAxes& extent, const AxisOrder& from_order, const std::byte* from,
             const AxisOrder& to_order, std::byte* to) {
  const ArrayAxes strides = packed_in(extent, from_order);
  const auto& [a, b, c, d] = to_order;
  for (std::int64_t i = 0; i < extent[d]; ++i) {
    for (std::int64_t j = 0; j < extent[c]; ++j) {
      for (std::int64_t k = 0; k < extent[b]; ++k) {
        const std::byte* sample = from + (i * strides[d] + j * strides[c] + k * strides[b]) *
                                             static_cast<std::int64_t>(sizeof(Sample));
        const std::int64_t step = strides[a] * static_cast<std::int64_t>(sizeof(Sample));
        for (std::int64_t l = 0; l < extent[a]; ++l, sample += step, to += sizeof(Sample)) {
          std::memcpy(to, sample, sizeof(Sample));
        }
      }
    }
  }
}

}  // namespace

ArrayAxes packed_strides(const ArrayAxes& counts, const std::array<std::size_t, 4>& order) {
  AxisOrder reversed = order;
  std::reverse(reversed.begin(), reversed.end());
  return packed_in(counts, reversed);
}

void reorder(const ArrayAxes& counts, std::size_t sample_bytes, const ArrayAxes& from_strides,
             const ReadAt& read, const ArrayAxes& to_strides, const WriteAt& write) {
  constexpr std::size_t buffer_bytes = std::size_t{16} << 20U;  // each of two
  const AxisOrder from = innermost_first(counts, from_strides);
  const AxisOrder to = innermost_first(counts, to_strides);
  const ArrayAxes step = box_extent(counts, static_cast<std::int64_t>(buffer_bytes / sample_bytes), from, to);
  const auto samples = static_cast<std::size_t>(step[0] * step[1] * step[2] * step[3]);
  std::vector<std::byte> read_box(samples * sample_bytes);
  std::vector<std::byte> written_box(samples * sample_bytes);
  const auto bytes = [&](std::int64_t count) { return static_cast<std::size_t>(count) * sample_bytes; };

  Box box;
  for (;;) {
    for (std::size_t axis = 0; axis < axes; ++axis) {
      box.extent[axis] = std::min(step[axis], counts[axis] - box.start[axis]);
    }
    for_each_run(counts, from_strides, from, box,
                 [&](std::int64_t at, std::int64_t packed, std::int64_t length) {
                   read(read_box.data() + bytes(packed), bytes(length), bytes(at));
                 });
    switch (sample_bytes) {
      case 1:
        permute<std::uint8_t>(box.extent, from, read_box.data(), to, written_box.data());
        break;
      case 2:
        permute<std::uint16_t>(box.extent, from, read_box.data(), to, written_box.data());
        break;
      case 4:
        permute<std::uint32_t>(box.extent, from, read_box.data(), to, written_box.data());
        break;
      default:
        permute<std::uint64_t>(box.extent, from, read_box.data(), to, written_box.data());
        break;
    }
    for_each_run(counts, to_strides, to, box, [&](std::int64_t at, std::int64_t packed, std::int64_t length) {
      write(written_box.data() + bytes(packed), bytes(length), bytes(at));
    });
    // Boxes follow the order of the source, so that the disk's read-ahead is used.
    std::size_t level = 0;
    for (; level < axes; ++level) {
      const std::size_t axis = from[level];
      box.start[axis] += step[axis];
      if (box.start[axis] < counts[axis]) break;
      box.start[axis] = 0;
    }
    if (level == axes) return;
  }
}

}  // namespace ungrain::io
