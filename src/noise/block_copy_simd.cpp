// Copies of blocks. Bound by cache misses where the blocks lie all over an image.
#include "noise/block_copy_simd.h"

#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "noise/block_copy_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int side = 8;

#if HWY_TARGET != HWY_SCALAR
template <class V>
HWY_ATTR void StoreAsFloats(V samples, float* to) {  // eight of 16 bits
  const hn::CappedTag<std::uint16_t, 4> half;
  const hn::CappedTag<std::int32_t, 4> wide;
  const hn::CappedTag<float, 4> floats;
  hn::StoreU(hn::ConvertTo(floats, hn::PromoteTo(wide, hn::LowerHalf(half, samples))), floats, to);
  hn::StoreU(hn::ConvertTo(floats, hn::PromoteTo(wide, hn::UpperHalf(half, samples))), floats, to + 4);
}
template <class D>
HWY_ATTR void StoreSamples(D /*d*/, hn::Vec<D> samples, float* to) {
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    StoreAsFloats(hn::PromoteTo(hn::Rebind<std::uint16_t, D>(), samples), to);
  } else {
    StoreAsFloats(samples, to);
  }
}
#endif

template <class T>
void CopyRow(const T* pixels, int channels, float* to) {
  constexpr std::ptrdiff_t block = side * side;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<T, side> d;
  if (hn::Lanes(d) == side) {
    auto v0 = hn::Zero(d);
    auto v1 = v0;
    auto v2 = v0;
    auto v3 = v0;
    if (channels == 1) {
      v0 = hn::LoadU(d, pixels);
    } else if (channels == 3) {
      hn::LoadInterleaved3(d, pixels, v0, v1, v2);
    } else {
      hn::LoadInterleaved4(d, pixels, v0, v1, v2, v3);
    }
    StoreSamples(d, v0, to);
    if (channels == 1) return;
    StoreSamples(d, v1, to + block);
    StoreSamples(d, v2, to + 2 * block);
    return;
  }
#endif
  for (int c = 0; c < (channels == 1 ? 1 : 3); ++c) {
    for (int x = 0; x < side; ++x) to[c * block + x] = static_cast<float>(pixels[x * channels + c]);
  }
}

template <class T>
void CopyBlock(const void* const* rows, int channels, float* to) {
  for (int y = 0; y < side; ++y) CopyRow(static_cast<const T*>(rows[y]), channels, to + y * side);
}

void CopyPackedBlock(PixelType type, const void* const* rows, int channels, float* to) {
  if (type == PixelType::u8) {
    CopyBlock<std::uint8_t>(rows, channels, to);
  } else {
    CopyBlock<std::uint16_t>(rows, channels, to);
  }
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(CopyPackedBlock);

}  // namespace

void copy_packed_block(PixelType type, const void* const* rows, int pixel_channels, float* to) {
  HWY_DYNAMIC_DISPATCH(CopyPackedBlock)(type, rows, pixel_channels, to);
}

}  // namespace ungrain

#endif
