// Squared distances of one patch to candidates that lie side by side: a lane each. Two operations and a load
// a pixel for every vector of candidates; a pixel of the reference serves up to four vectors.
#include "methods/bm3d/general_simd.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "methods/bm3d/general_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;

template <int vectors>
void SumOver(const float* reference, const int* parts, int count, const float* row, float* sums) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d);
  auto s1 = s0;
  auto s2 = s0;
  auto s3 = s0;
  for (int i = 0; i < count; ++i) {
    const float* values = row + parts[i];
    const auto pixel = hn::Set(d, reference[i]);
    const auto d0 = hn::Sub(pixel, hn::LoadU(d, values));
    s0 = hn::MulAdd(d0, d0, s0);
    if constexpr (vectors > 1) {
      const auto d1 = hn::Sub(pixel, hn::LoadU(d, values + lanes));
      s1 = hn::MulAdd(d1, d1, s1);
    }
    if constexpr (vectors > 2) {
      const auto d2 = hn::Sub(pixel, hn::LoadU(d, values + 2 * lanes));
      s2 = hn::MulAdd(d2, d2, s2);
    }
    if constexpr (vectors > 3) {
      const auto d3 = hn::Sub(pixel, hn::LoadU(d, values + 3 * lanes));
      s3 = hn::MulAdd(d3, d3, s3);
    }
  }
  hn::StoreU(s0, d, sums);
  if constexpr (vectors > 1) hn::StoreU(s1, d, sums + lanes);
  if constexpr (vectors > 2) hn::StoreU(s2, d, sums + 2 * lanes);
  if constexpr (vectors > 3) hn::StoreU(s3, d, sums + 3 * lanes);
}

void PatchDistances(const float* reference, const int* parts, int count, const float* row, int candidates,
                    float* sums) {
  const int lanes = static_cast<int>(hn::Lanes(D{}));
  for (int c = 0; c < candidates;) {
    const int vectors = std::min(4, (candidates - c + lanes - 1) / lanes);
    switch (vectors) {
      case 1:
        SumOver<1>(reference, parts, count, row + c, sums + c);
        break;
      case 2:
        SumOver<2>(reference, parts, count, row + c, sums + c);
        break;
      case 3:
        SumOver<3>(reference, parts, count, row + c, sums + c);
        break;
      default:
        SumOver<4>(reference, parts, count, row + c, sums + c);
    }
    c += vectors * lanes;
  }
}

constexpr int side = 8;  // of the matrices below

// product = left right. Two rows at a time, so that one's additions do not wait for the other's.
void Multiply(const float* left, const float* right, float* product) {
  const hn::CappedTag<float, side> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int x = 0; x < side; x += lanes) {
    for (int y = 0; y < side; y += 2) {
      const auto first = hn::LoadU(d, right + x);
      auto a = hn::Mul(hn::Set(d, left[y * side]), first);
      auto b = hn::Mul(hn::Set(d, left[(y + 1) * side]), first);
      for (int k = 1; k < side; ++k) {
        const auto row = hn::LoadU(d, right + k * side + x);
        a = hn::MulAdd(hn::Set(d, left[y * side + k]), row, a);
        b = hn::MulAdd(hn::Set(d, left[(y + 1) * side + k]), row, b);
      }
      hn::StoreU(a, d, product + y * side + x);
      hn::StoreU(b, d, product + (y + 1) * side + x);
    }
  }
}

void Transform8x8(const float* matrix, float* patches, int count) {
  const float* transpose = matrix + side * side;
  HWY_ALIGN float columns[side * side];
  for (int n = 0; n < count; ++n) {
    float* patch = patches + n * side * side;
    Multiply(matrix, patch, columns);
    Multiply(columns, transpose, patch);
  }
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(PatchDistances);
HWY_EXPORT(Transform8x8);

void patch_distances(const float* reference, const int* parts, int count, const float* row, int candidates,
                     float* sums) {
  HWY_DYNAMIC_DISPATCH(PatchDistances)(reference, parts, count, row, candidates, sums);
}

void transform_8x8(const float* matrix, float* patches, int count) {
  HWY_DYNAMIC_DISPATCH(Transform8x8)(matrix, patches, count);
}

}  // namespace ungrain
#endif  // HWY_ONCE
