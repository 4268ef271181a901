// The pictures that the benchmark filters, and the check of what was made of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/memory.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain::bench {

struct Size {
  const char* name;
  int width;
  int height;
};
inline constexpr Size large{"20 Mpx", 5522, 3651};
inline constexpr Size middle{"1080p", 1920, 1080};
inline constexpr Size sizes[] = {{"512", 512, 512}, middle, large};

ImageSpec spec_of(const Size& size, PixelType type, bool rgb = false);
std::size_t bytes_of(const ImageSpec& spec);   // interleaved
std::string type_name(const ImageSpec& spec);  // "u8 rgb"

// An image in the GPU's memory, uninitialised.
class GpuImage {
 public:
  explicit GpuImage(const ImageSpec& spec) : spec_(spec), memory_(bytes_of(spec)) {}
  ImageView view() const {
    return {memory_.data(), spec_, interleaved_strides(spec_), {Space::Memory::cuda, 0}};
  }

 private:
  ImageSpec spec_;
  cuda::DeviceBuffer memory_;
};

// Mid-gray with a ramp and noise of 25 of 255, on the host and on the GPU. Making the noise takes longer than
// any filter: one for each kind of image.
struct Source {
  Image host;
  GpuImage device;
};
const Source& source_for(const ImageSpec& spec);

// Parts of the picture as the CPU version filters them: the corners, the middles of the edges and of the
// picture. What a GPU made of it is compared there.
class Sample {
 public:
  Sample(const MethodParams& params, const ImageSpec& spec);
  // The largest difference, of the white level. `made` is the whole image, in GPU memory.
  double difference(const GpuImage& made) const;

 private:
  struct Part {
    int x;
    int y;
    Image expected;
  };
  std::vector<Part> parts_;
};

// What ours may differ: rounding, and one step of integers.
double tolerance_for(const ImageSpec& spec);

}  // namespace ungrain::bench
