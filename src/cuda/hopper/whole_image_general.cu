#include "cuda/hopper/whole_image.cuh"

namespace ungrain::cuda::hopper {

WholeImageKernel whole_image_general(int channels, int numbers) {
  return whole_image_instances<SearchWeights::general>(channels, numbers);
}

}  // namespace ungrain::cuda::hopper
