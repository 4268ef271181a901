#include "cuda/hopper/whole_image.cuh"

namespace ungrain::cuda::hopper {

WholeImageKernel whole_image_bilateral(int channels, int numbers) {
  return whole_image_instances<SearchWeights::bilateral>(channels, numbers);
}

}  // namespace ungrain::cuda::hopper
