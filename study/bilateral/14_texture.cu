// From the papers' discussion: version 2 with the image read through the texture units and their cache.
#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__constant__ float spatial_weights[most_spatial_entries];

__global__ void texture_kernel(Picture picture, cudaTextureObject_t texture, int radius, float range_factor) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  // The texture begins with the margin; half a pixel on is the middle of one.
  const float middle_x = static_cast<float>(x + margin) + 0.5F;
  const float middle_y = static_cast<float>(y + margin) + 0.5F;
  const int side = 2 * radius + 1;
  const float centre = tex2D<float>(texture, middle_x, middle_y);
  WeightedMean mean;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      const float value =
          tex2D<float>(texture, middle_x + static_cast<float>(dx), middle_y + static_cast<float>(dy));
      const float spatial = spatial_weights[(dy + radius) * side + dx + radius];
      mean.add(spatial * gaussian(value - centre, range_factor), value);
    }
  }
  picture.out[y * picture.width + x] = mean.value();
}

struct Texture {
  explicit Texture(const Picture& picture) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = const_cast<float*>(picture.pixels - margin * picture.stride - margin);
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = static_cast<std::size_t>(picture.width + 2 * margin);
    resource.res.pitch2D.height = static_cast<std::size_t>(picture.height + 2 * margin);
    resource.res.pitch2D.pitchInBytes = static_cast<std::size_t>(picture.stride) * sizeof(float);
    cudaTextureDesc texture{};
    texture.addressMode[0] = cudaAddressModeClamp;
    texture.addressMode[1] = cudaAddressModeClamp;
    texture.filterMode = cudaFilterModePoint;
    texture.readMode = cudaReadModeElementType;
    cuda::check(cudaCreateTextureObject(&object, &resource, &texture, nullptr), "making a texture");
  }
  ~Texture() { cudaDestroyTextureObject(object); }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  cudaTextureObject_t object = 0;
};

}  // namespace

Rung bilateral_texture() {
  return {.name = "texture memory",
          .paper = "discussion",
          .idea = "version 2 with the image read through the texture units",
          .prepare = [](const RungCall& call) {
            upload_constant(spatial_weights, spatial_table(call.strengths));
            const auto texture = std::make_shared<const Texture>(call.device);
            return one_launch(texture_kernel, call, 0, {texture}, texture->object, call.strengths.radius,
                              gaussian_factor(call.strengths.sigma_range));
          }};
}

}  // namespace ungrain::study
