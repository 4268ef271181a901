#include "cuda/hopper/whole_image.cuh"

namespace ungrain::cuda::hopper {

WholeImageKernel whole_image_plain(int channels, int numbers) {
  return whole_image_instances<SearchWeights::plain>(channels, numbers);
}

}  // namespace ungrain::cuda::hopper
