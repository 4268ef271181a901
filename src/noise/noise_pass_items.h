// The arithmetic of a NoisePass, item by item, for devices that look at many items at once. Sums have the
// order of block_batch_simd.cpp, window_sums_simd.cpp and cut_noise.cpp, and the code must be compiled
// without fused multiply-adds: the same bits on every device.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/host_device.h"
#include "noise/noise_pass.h"

namespace ungrain::pass_items {

inline constexpr int side = 8;
inline constexpr int samples = side * side;

// ---- the white estimate's blocks

// Eight values `stride` floats apart, as Cosines() of block_batch_simd.cpp.
UNGRAIN_HOST_DEVICE inline void cosines(float* values, int stride) {
  constexpr float cos1 = 0.49039264020161522F;
  constexpr float cos2 = 0.46193976625564337F;
  constexpr float cos3 = 0.41573480615127262F;
  constexpr float cos4 = 0.35355339059327376F;
  constexpr float cos5 = 0.27778511650980114F;
  constexpr float cos6 = 0.19134171618254492F;
  constexpr float cos7 = 0.09754516100806412F;
  const float s0 = values[0] + values[7 * stride];
  const float s1 = values[stride] + values[6 * stride];
  const float s2 = values[2 * stride] + values[5 * stride];
  const float s3 = values[3 * stride] + values[4 * stride];
  const float d0 = values[0] - values[7 * stride];
  const float d1 = values[stride] - values[6 * stride];
  const float d2 = values[2 * stride] - values[5 * stride];
  const float d3 = values[3 * stride] - values[4 * stride];
  const float outer = s0 + s3;
  const float inner = s1 + s2;
  const float outer_difference = s0 - s3;
  const float inner_difference = s1 - s2;
  values[0] = (outer + inner) * cos4;
  values[stride] = (d0 * cos1 + d1 * cos3) + (d2 * cos5 + d3 * cos7);
  values[2 * stride] = outer_difference * cos2 + inner_difference * cos6;
  values[3 * stride] = (d0 * cos3 + d1 * -cos7) + (d2 * -cos1 + d3 * -cos5);
  values[4 * stride] = (outer - inner) * cos4;
  values[5 * stride] = (d0 * cos5 + d1 * -cos1) + (d2 * cos7 + d3 * cos3);
  values[6 * stride] = outer_difference * cos6 - inner_difference * cos2;
  values[7 * stride] = (d0 * cos7 + d1 * -cos5) + (d2 * cos3 + d3 * -cos1);
}

UNGRAIN_HOST_DEVICE inline void transform(const float* block, float* coefficients) {
  const float level = block[0];
  for (int i = 0; i < samples; ++i) coefficients[i] = block[i] - level;
  for (int y = 0; y < side; ++y) cosines(coefficients + y * side, 1);
  for (int x = 0; x < side; ++x) cosines(coefficients + x, side);
}

UNGRAIN_HOST_DEVICE inline void set_energies(const float* coefficients, float level, int lane,
                                             BatchStatistics& look) {
  const auto square = [&](int k) { return coefficients[k] * coefficients[k]; };
  look.mean[lane] = level + coefficients[0] * (1.0F / side);
  const float shading = square(1) + square(side) + square(side + 1);
  float energy[2][5] = {};
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      if (i <= 1 && j <= 1) continue;
      const int band = (i + j) / 2 - 1;
      energy[(i + j) % 2][band < 4 ? band : 4] += square(j * side + i);
    }
  }
  for (int set = 0; set < 2; ++set) {
    float busyness = shading;
    for (int band = 0; band < 5; ++band) {
      look.energy[set][band][lane] = energy[set][band];
      if (band <= 2) busyness += energy[set][band];
    }
    look.busyness[1 - set][lane] = busyness;
  }
}

UNGRAIN_HOST_DEVICE inline void set_limits(const float* block, float white_level, int lane,
                                           BatchStatistics& look) {
  float smallest = block[0];
  float largest = block[0];
  float black = 0;
  float white = 0;
  for (int i = 0; i < samples; ++i) {
    smallest = block[i] < smallest ? block[i] : smallest;
    largest = block[i] > largest ? block[i] : largest;
    black += block[i] == 0 ? 1.0F : 0.0F;
    white += block[i] == white_level ? 1.0F : 0.0F;
  }
  look.smallest[lane] = smallest;
  look.largest[lane] = largest;
  look.black[lane] = black;
  look.white[lane] = white;
}

struct Pairs {
  int equal = 0;
  float least = std::numeric_limits<float>::infinity();  // square that is not 0

  UNGRAIN_HOST_DEVICE void add(float before, float value, float& sum) {
    const float difference = value - before;
    const float square = difference * difference;
    sum += square;
    if (difference == 0) {
      ++equal;
    } else {
      least = square < least ? square : least;
    }
  }
};

UNGRAIN_HOST_DEVICE inline void set_neighbours(const float* block, int lane, BatchStatistics& look) {
  Pairs pairs;
  float across = 0;
  float down = 0;
  for (int i = 0; i < side; ++i) {
    for (int k = 1; k < side; ++k) {
      pairs.add(block[i * side + k - 1], block[i * side + k], across);
      pairs.add(block[(k - 1) * side + i], block[k * side + i], down);
    }
  }
  look.equal[lane] = static_cast<float>(pairs.equal);
  look.difference[lane] = across + down;
  look.least_square[lane] = pairs.least;
}

// Plane `plane` of the block whose first pixel is (x, y); read(x, y, channel) is a sample as float.
template <class Read>
UNGRAIN_HOST_DEVICE void look_at_white_block(const Read& read, const WhiteBlocks& of, int x, int y, int plane,
                                             int lane, BatchStatistics& look) {
  const bool combined = of.rgb && plane >= 3;
  const bool is_mean = plane == 3;
  float block[samples];
  float coefficients[samples];
  const auto load = [&](int channel, float* to) {
    for (int i = 0; i < samples; ++i) to[i] = of.scale * read(x + i % side, y + i / side, channel);
  };
  load(combined ? 0 : plane, block);
  transform(block, coefficients);
  for (int channel = 1; combined && channel < 3; ++channel) {
    float other[samples];
    float of_other[samples];
    load(channel, other);
    transform(other, of_other);
    const bool twice = channel == 1 && !is_mean;  // red - 2 green + blue
    for (int i = 0; i < samples; ++i) {
      block[i] = twice ? block[i] - 2.0F * other[i] : block[i] + other[i];
      coefficients[i] = twice ? coefficients[i] - 2.0F * of_other[i] : coefficients[i] + of_other[i];
    }
  }
  for (int i = 0; combined && is_mean && i < samples; ++i) {
    block[i] = block[i] / 3.0F;
    coefficients[i] = coefficients[i] * (1.0F / 3);
  }
  set_energies(coefficients, block[0], lane, look);
  set_limits(block, of.white, lane, look);
  set_neighbours(block, lane, look);
}

// ---- flat windows

// A cell of 4 x 4 pixels whose first is (x, y): as QuadSums and cell_sums().
template <class Read>
UNGRAIN_HOST_DEVICE float cell_sum(const Read& read, const WindowLattice& of, int x, int y) {
  const auto quad = [&](int left, int top) {
    float sum = 0;
    for (int c = of.first_channel; c < of.first_channel + of.channels; ++c) {
      const float first = read(left, top, c) + read(left, top + 1, c);
      const float of_channel = first + (read(left + 1, top, c) + read(left + 1, top + 1, c));
      sum = c == of.first_channel ? of_channel : sum + of_channel;
    }
    return sum;
  };
  return (quad(x, y) + quad(x, y + 2)) + (quad(x + 2, y) + quad(x + 2, y + 2));
}

struct WindowLook {
  double texture = 0;  // WindowStatistics's
  double ring = 0;
  int level = 0;
};

// `cells` is the window's first cell; its others are `apart` cells away, in rows of `row` cells.
UNGRAIN_HOST_DEVICE inline WindowLook look_at_window(const float* cells, std::ptrdiff_t row, int apart,
                                                     double level_scale) {
  double sums[4];
  double squares[4];
  double inners[4];
  double inner_squares[4];
  for (int k = 0; k < 4; ++k) {
    const float* column = cells + static_cast<std::ptrdiff_t>(k) * apart;
    const double c0 = column[0];
    const double c1 = column[apart * row];
    const double c2 = column[2 * apart * row];
    const double c3 = column[3 * apart * row];
    inners[k] = c1 + c2;
    inner_squares[k] = c1 * c1 + c2 * c2;
    sums[k] = inners[k] + (c0 + c3);
    squares[k] = inner_squares[k] + (c0 * c0 + c3 * c3);
  }
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  const double all_squares = (squares[0] + squares[1]) + (squares[2] + squares[3]);
  const double outer = sum - (inners[1] + inners[2]);
  const double outer_squares = all_squares - (inner_squares[1] + inner_squares[2]);
  const double square = sum * level_scale;
  const float place = std::sqrt(static_cast<float>(square > 0 ? square : 0.0));
  constexpr float last = WindowLattice::level_count - 1;
  return {16.0 * all_squares - sum * sum, 12.0 * outer_squares - outer * outer,
          static_cast<int>(place < last ? place : last)};
}

// Whether a block's samples are all equal in each channel of the windows.
template <class Read>
UNGRAIN_HOST_DEVICE bool is_constant(const Read& read, const WindowLattice& of, int x, int y) {
  for (int c = of.first_channel; c < of.first_channel + of.channels; ++c) {
    const float first = read(x, y, c);
    for (int i = 1; i < samples; ++i) {
      if (read(x + i % side, y + i / side, c) != first) return false;
    }
  }
  return true;
}

// ---- cut blocks

template <class Value>
struct Sums {
  using Square = std::conditional_t<std::is_integral_v<Value>, std::int64_t, double>;
  Value sum = 0;
  Square squares = 0;
  UNGRAIN_HOST_DEVICE void add(Value value) {
    sum += value;
    squares += static_cast<Square>(value) * static_cast<Square>(value);
  }
};

// As CutDetector::look_at_block(). `Value` is int32_t for whole numbers, else double.
template <class Value, class Read>
UNGRAIN_HOST_DEVICE CutBlock look_at_cut_block(const Read& read, double white_level, int x, int y,
                                               int channel) {
  CutBlock block{};
  const auto white = static_cast<Value>(white_level);
  const auto at = [&](int i) { return static_cast<Value>(read(x + i % side, y + i / side, channel)); };
  Sums<Value> all;
  Value least = at(0);
  Value most = least;
  for (int i = 0; i < samples; ++i) {
    const Value value = at(i);
    all.add(value);
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  const auto sum = static_cast<double>(all.sum);
  if (!std::isfinite(sum) || least == most) return block;
  block.below_black = least < 0;
  block.above_white = most > white;
  const bool dark = sum / samples < white_level / 2;
  block.limit = dark ? CutLimit::black : CutLimit::white;
  Sums<Value> distances;
  int at_limit = 0;
  int changes = 0;
  bool before = false;
  for (int i = 0; i < samples; ++i) {
    const Value value = dark ? at(i) : white - at(i);
    distances.add(value);
    const bool limited = value <= 0;
    at_limit += limited ? 1 : 0;
    changes += i % side > 0 && limited != before ? 1 : 0;
    before = limited;
  }
  const auto distance = static_cast<double>(distances.sum);
  block.mean = distance / samples;
  block.variance = (static_cast<double>(distances.squares) - distance * block.mean) / (samples - 1);
  block.at_limit = static_cast<std::uint8_t>(at_limit);
  block.changes = static_cast<std::uint8_t>(changes);
  return block;
}

}  // namespace ungrain::pass_items
