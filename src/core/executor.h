// What runs a pipeline over an image: core/execution.h on the CPU, cuda/execution.h on a GPU.
#pragma once

#include "core/method.h"
#include "ungrain/denoiser.h"

namespace ungrain {

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Report run(const ConstImageView& in, const ImageView& out) = 0;
  virtual Report run(RowReader& in, RowWriter& out, const ImageSpec& out_spec) = 0;
  virtual void run_async(const ConstImageView& in, const ImageView& out, Stream stream) = 0;
  virtual void wait() = 0;
  virtual int band_rows() const = 0;
  virtual Reach reach() const = 0;  // of the pipeline
};

}  // namespace ungrain
