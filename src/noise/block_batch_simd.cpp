// The blocks of the white noise estimate. Bound by arithmetic: 925 NEON instructions a block and plane,
// counted on a noisy photograph of 768 x 512 pixels.
#include "noise/block_batch_simd.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "noise/block_batch_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int side = 8;
constexpr int samples = batch_samples;

// Half of cos(k pi / 16), and of sqrt(1 / 2): the factors of the orthonormal transform.
constexpr float cos1 = 0.49039264020161522F;
constexpr float cos2 = 0.46193976625564337F;
constexpr float cos3 = 0.41573480615127262F;
constexpr float cos4 = 0.35355339059327376F;
constexpr float cos5 = 0.27778511650980114F;
constexpr float cos6 = 0.19134171618254492F;
constexpr float cos7 = 0.09754516100806412F;

// ---- the cosine transform

template <class D, class V>
HWY_ATTR V Times(D d, V value, float factor) {
  return hn::Mul(value, hn::Set(d, factor));
}

// A sum of four products, added in pairs.
template <class D, class V>
HWY_ATTR V Products(D d, V a, float fa, V b, float fb, V c, float fc, V e, float fe) {
  return hn::Add(hn::Add(Times(d, a, fa), Times(d, b, fb)), hn::Add(Times(d, c, fc), Times(d, e, fe)));
}

// Eight values `stride` floats apart. Even frequencies come from the sums of mirrored samples, odd ones from
// their differences.
template <class D>
HWY_ATTR void Cosines(D d, const float* in, float* out, int stride) {
  const auto x0 = hn::LoadU(d, in);
  const auto x1 = hn::LoadU(d, in + stride);
  const auto x2 = hn::LoadU(d, in + 2 * stride);
  const auto x3 = hn::LoadU(d, in + 3 * stride);
  const auto x4 = hn::LoadU(d, in + 4 * stride);
  const auto x5 = hn::LoadU(d, in + 5 * stride);
  const auto x6 = hn::LoadU(d, in + 6 * stride);
  const auto x7 = hn::LoadU(d, in + 7 * stride);
  const auto s0 = hn::Add(x0, x7);
  const auto s1 = hn::Add(x1, x6);
  const auto s2 = hn::Add(x2, x5);
  const auto s3 = hn::Add(x3, x4);
  const auto d0 = hn::Sub(x0, x7);
  const auto d1 = hn::Sub(x1, x6);
  const auto d2 = hn::Sub(x2, x5);
  const auto d3 = hn::Sub(x3, x4);
  const auto outer = hn::Add(s0, s3);
  const auto inner = hn::Add(s1, s2);
  const auto outer_difference = hn::Sub(s0, s3);
  const auto inner_difference = hn::Sub(s1, s2);
  hn::StoreU(Times(d, hn::Add(outer, inner), cos4), d, out);
  hn::StoreU(Products(d, d0, cos1, d1, cos3, d2, cos5, d3, cos7), d, out + stride);
  hn::StoreU(hn::Add(Times(d, outer_difference, cos2), Times(d, inner_difference, cos6)), d,
             out + 2 * stride);
  hn::StoreU(Products(d, d0, cos3, d1, -cos7, d2, -cos1, d3, -cos5), d, out + 3 * stride);
  hn::StoreU(Times(d, hn::Sub(outer, inner), cos4), d, out + 4 * stride);
  hn::StoreU(Products(d, d0, cos5, d1, -cos1, d2, cos7, d3, cos3), d, out + 5 * stride);
  hn::StoreU(hn::Sub(Times(d, outer_difference, cos6), Times(d, inner_difference, cos2)), d,
             out + 6 * stride);
  hn::StoreU(Products(d, d0, cos7, d1, -cos5, d2, cos3, d3, -cos1), d, out + 7 * stride);
}

// Transforms the samples' differences from the first one, so that rounding does not depend on the level.
template <class D>
HWY_ATTR void Transform(D d, const float* block, float* coefficients) {
  const auto level = hn::LoadU(d, block);
  for (int i = 0; i < samples; ++i) {
    hn::StoreU(hn::Sub(hn::LoadU(d, block + i * batch_blocks), level), d, coefficients + i * batch_blocks);
  }
  for (int y = 0; y < side; ++y) {
    float* row = coefficients + y * side * batch_blocks;
    Cosines(d, row, row, batch_blocks);
  }
  for (int x = 0; x < side; ++x) {
    float* column = coefficients + x * batch_blocks;
    Cosines(d, column, column, side * batch_blocks);
  }
}

// ---- energies

// The coefficients [j * 8 + i] of each set's bands, one band after the other; BlockTransform's.
struct Bands {
  int first[2][6] = {};
  int coefficients[2][32] = {};
};
constexpr int shading = -1;
constexpr int BandOf(int i, int j) {
  if (i <= 1 && j <= 1) return shading;
  const int band = (i + j) / 2 - 1;
  return band < 4 ? band : 4;
}
constexpr Bands SortedBands() {
  Bands bands;
  for (int set = 0; set < 2; ++set) {
    int count = 0;
    for (int band = 0; band < 5; ++band) {
      bands.first[set][band] = count;
      for (int k = 0; k < samples; ++k) {
        const int i = k % side;
        const int j = k / side;
        if ((i + j) % 2 == set && BandOf(i, j) == band) bands.coefficients[set][count++] = k;
      }
    }
    bands.first[set][5] = count;
  }
  return bands;
}

template <class D>
HWY_ATTR auto Square(D d, const float* coefficients, int k) {
  const auto value = hn::LoadU(d, coefficients + k * batch_blocks);
  return hn::Mul(value, value);
}

template <class D>
HWY_ATTR void Energies(D d, const float* coefficients, const float* level, int lane, BatchStatistics& look) {
  static constexpr Bands bands = SortedBands();
  const auto mean = hn::Mul(hn::LoadU(d, coefficients), hn::Set(d, 1.0F / side));
  hn::StoreU(hn::Add(hn::LoadU(d, level), mean), d, look.mean + lane);
  auto in_shading = hn::Add(Square(d, coefficients, 1), Square(d, coefficients, side));
  in_shading = hn::Add(in_shading, Square(d, coefficients, side + 1));
  for (int set = 0; set < 2; ++set) {
    auto busyness = in_shading;
    for (int band = 0; band < 5; ++band) {
      auto sum = hn::Zero(d);
      for (int n = bands.first[set][band]; n < bands.first[set][band + 1]; ++n) {
        sum = hn::Add(sum, Square(d, coefficients, bands.coefficients[set][n]));
      }
      hn::StoreU(sum, d, look.energy[set][band] + lane);
      if (band <= 2) busyness = hn::Add(busyness, sum);
    }
    hn::StoreU(busyness, d, look.busyness[1 - set] + lane);
  }
}

// ---- samples

template <class D>
HWY_ATTR auto CountOf(D d, const float* block, float value) {
  const auto one = hn::Set(d, 1.0F);
  auto count = hn::Zero(d);
  for (int i = 0; i < samples; ++i) {
    const auto is_value = hn::Eq(hn::LoadU(d, block + i * batch_blocks), hn::Set(d, value));
    count = hn::Add(count, hn::IfThenElseZero(is_value, one));
  }
  return count;
}

template <class D>
HWY_ATTR void Limits(D d, const float* block, float white, int lane, BatchStatistics& look) {
  auto smallest = hn::LoadU(d, block);
  auto largest = smallest;
  for (int i = 1; i < samples; ++i) {
    const auto value = hn::LoadU(d, block + i * batch_blocks);
    smallest = hn::Min(smallest, value);
    largest = hn::Max(largest, value);
  }
  hn::StoreU(smallest, d, look.smallest + lane);
  hn::StoreU(largest, d, look.largest + lane);
  const auto none = hn::Zero(d);
  const bool above_black = hn::AllTrue(d, hn::Gt(smallest, none));
  const bool below_white = hn::AllTrue(d, hn::Lt(largest, hn::Set(d, white)));
  hn::StoreU(above_black ? none : CountOf(d, block, 0), d, look.black + lane);
  hn::StoreU(below_white ? none : CountOf(d, block, white), d, look.white + lane);
}

// Adds the pairs of a line of samples, `step` samples apart, to the count of equal ones, the sum of the
// squares and the least square.
template <class D, class VI, class V>
HWY_ATTR void AddPairs(D d, const float* line, int step, VI& equal, V& sum, V& least) {
  const hn::RebindToSigned<D> di;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  auto before = hn::LoadU(d, line);
  for (int i = 1; i < side; ++i) {
    const auto value = hn::LoadU(d, line + i * step * batch_blocks);
    const auto difference = hn::Sub(value, before);
    const auto square = hn::Mul(difference, difference);
    const auto none = hn::Eq(difference, hn::Zero(d));
    equal = hn::Sub(equal, hn::BitCast(di, hn::VecFromMask(d, none)));
    sum = hn::Add(sum, square);
    least = hn::Min(least, hn::IfThenElse(none, infinity, square));
    before = value;
  }
}

template <class D>
HWY_ATTR void Neighbours(D d, const float* block, int lane, BatchStatistics& look) {
  auto equal = hn::Zero(hn::RebindToSigned<D>());
  auto across = hn::Zero(d);
  auto down = hn::Zero(d);
  auto least = hn::Set(d, std::numeric_limits<float>::infinity());
  for (int i = 0; i < side; ++i) {
    AddPairs(d, block + i * side * batch_blocks, 1, equal, across, least);
    AddPairs(d, block + i * batch_blocks, side, equal, down, least);
  }
  hn::StoreU(hn::ConvertTo(d, equal), d, look.equal + lane);
  hn::StoreU(hn::Add(across, down), d, look.difference + lane);
  hn::StoreU(least, d, look.least_square + lane);
}

// ---- channels

template <class D, class V>
HWY_ATTR V DifferenceOf(D d, V red, V green, V blue) {
  return hn::Add(hn::Sub(red, hn::Mul(hn::Set(d, 2.0F), green)), blue);
}

struct Coefficients {
  alignas(64) float values[5][samples * batch_blocks];
};

// The mean and the difference of the three channels' samples. The mean divides by 3, so that three whites
// give exactly white.
template <class D>
HWY_ATTR void CombineSamples(D d, BatchChannel* batch, int i, int lane) {
  const auto r = hn::LoadU(d, batch[0].samples[i] + lane);
  const auto g = hn::LoadU(d, batch[1].samples[i] + lane);
  const auto b = hn::LoadU(d, batch[2].samples[i] + lane);
  hn::StoreU(hn::Div(hn::Add(hn::Add(r, g), b), hn::Set(d, 3.0F)), d, batch[3].samples[i] + lane);
  hn::StoreU(DifferenceOf(d, r, g, b), d, batch[4].samples[i] + lane);
}

// The coefficients of mean and difference, from the channels' coefficients: the transform is linear.
template <class D>
HWY_ATTR void CombineCoefficients(D d, Coefficients& coefficients, int at) {
  const auto r = hn::LoadU(d, coefficients.values[0] + at);
  const auto g = hn::LoadU(d, coefficients.values[1] + at);
  const auto b = hn::LoadU(d, coefficients.values[2] + at);
  hn::StoreU(Times(d, hn::Add(hn::Add(r, g), b), 1.0F / 3), d, coefficients.values[3] + at);
  hn::StoreU(DifferenceOf(d, r, g, b), d, coefficients.values[4] + at);
}

void LookAtBatch(BatchChannel* batch, int channels, bool rgb, float white, BatchStatistics* looks) {
  const hn::CappedTag<float, batch_blocks> d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const int planes = rgb ? 5 : channels;
  Coefficients coefficients;
  for (int lane = 0; lane < batch_blocks; lane += lanes) {
    for (int c = 0; c < channels; ++c)
      Transform(d, batch[c].samples[0] + lane, coefficients.values[c] + lane);
    for (int i = 0; rgb && i < samples; ++i) {
      CombineSamples(d, batch, i, lane);
      CombineCoefficients(d, coefficients, i * batch_blocks + lane);
    }
    for (int plane = 0; plane < planes; ++plane) {
      const float* block = batch[plane].samples[0] + lane;
      Energies(d, coefficients.values[plane] + lane, block, lane, looks[plane]);
      Limits(d, block, white, lane, looks[plane]);
      Neighbours(d, block, lane, looks[plane]);
    }
  }
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(LookAtBatch);

}  // namespace

void measure_batch(BatchChannel* batch, int channels, bool rgb, float white, BatchStatistics* looks) {
  HWY_DYNAMIC_DISPATCH(LookAtBatch)(batch, channels, rgb, white, looks);
}

}  // namespace ungrain

#endif
