// The noise of one image, measured once for many settings: for programs that let a user try them.
#pragma once

#include <memory>

#include "ungrain/denoiser.h"
#include "ungrain/export.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"
#include "ungrain/parameters.h"

UNGRAIN_API_BEGIN
namespace ungrain {

class MeasuredNoise {
 public:
  // Images and volumes in host memory. They need not outlive this object.
  explicit MeasuredNoise(const ConstImageView& image, const NoiseModelOptions& options = {});
  ~MeasuredNoise();
  MeasuredNoise(MeasuredNoise&&) noexcept;
  MeasuredNoise& operator=(MeasuredNoise&&) noexcept;

  // resolve_with_noise() of that image, without looking at it again. One thread at a time.
  Resolved resolve(const MethodParams& params);

 private:
  struct UNGRAIN_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
UNGRAIN_API_END
