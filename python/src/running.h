// Runs on arrays, without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "arrays.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "values.h"

namespace ungrain::python {

// Calls Python between the bands of a run: the caller's callback gets the progress, and signals (Ctrl-C) are
// handled. Either may stop the run.
class Listener {
 public:
  void listen(nanobind::handle callback, std::size_t images);
  void forget();
  // The next run is on `count` images from this one on.
  void begin_images(std::size_t index, std::size_t count) {
    image_ = index;
    count_ = count;
  }
  void tell(double fraction);  // of the run; without the lock
  const CancelToken& token() const { return token_; }
  bool stopped() const { return token_.cancelled(); }
  void renew_token() { token_ = CancelToken(); }
  // Rethrows what the callback or a signal's handler raised, if that stopped the run.
  void rethrow();

 private:
  nanobind::object callback_ = nanobind::none();
  CancelToken token_;
  std::exception_ptr raised_;
  std::size_t images_ = 1;
  std::size_t image_ = 0;
  std::size_t count_ = 1;
};

// A method that looks along a stack, and a stack on a GPU: there images are put on the caller's stream one by
// one. In the host's memory it can be worked on, by the same device.
class StackOnGpu : public Error {
 public:
  StackOnGpu() : Error(ErrorCode::unsupported, "a method that looks along a stack takes it in host memory") {}
};

bool looks_along_stacks(const ungrain::Denoiser& denoiser);

Options options_of(const std::string& device, int threads, std::size_t memory, const std::string& nonfinite);

// One call: each image of the stack by itself, with the noise measured on it where that is left open. A
// method that looks along the stack takes the images of its last axis together, with what was measured on the
// first. `measured` is a copy of the images in the host's memory, where they lie on a GPU and the noise is to
// be measured. Returns the parameters that the last image was filtered with; none where there was no image.
std::optional<MethodParams> denoise(const InputImages& in, const OutputImages& out,
                                    const InputImages* measured, const HeldParams& params, Options options,
                                    nanobind::handle progress, Stream stream);

// The position of an array's first pixel in the whole image.
struct Place {
  int y = 0;
  int x = 0;
};

// Parameters with everything measured and derived, from the samples of an image of `spec` that the estimate
// of its noise looks at: `sampled` has only their rows and columns (NoiseEstimator::sampled_rows). One sigma
// for all levels: a noise model is measured on whole images.
MethodParams resolve_sampled(const HeldParams& params, const ImageSpec& spec, const ConstImageView& sampled);

// The same of a volume of `spec`, from some of its slices.
MethodParams resolve_slices(const HeldParams& params, const ImageSpec& spec, const ConstImageView& sampled,
                            const std::vector<int>& slices);

// A Denoiser that a Python object holds.
class HeldDenoiser {
 public:
  HeldDenoiser(const HeldParams& params, const ImageSpec& spec, const ConstImageView* measured,
               Options options);

  void run(const InputImages& in, const OutputImages& out, nanobind::handle progress, Stream stream);
  // Filters a part of the Denoiser's image; both arrays are placed in it.
  void run_region(const InputImages& in, Place in_at, const OutputImages& out, Place out_at, Stream stream);
  void wait();
  std::unique_ptr<HeldDenoiser> clone();

  const ungrain::Denoiser& denoiser() const { return *denoiser_; }
  const Report& report() const { return report_; }

 private:
  HeldDenoiser() = default;
  void make(const MethodParams& params, const ImageSpec& spec);

  std::vector<nanobind::object> held_;
  Options options_;
  std::unique_ptr<Listener> listener_ = std::make_unique<Listener>();
  std::optional<ungrain::Denoiser> denoiser_;
  Report report_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace ungrain::python
