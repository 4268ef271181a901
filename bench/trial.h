// One case on one image, made ready to be run and timed; its result is held against the reference first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/common.h"
#include "ungrain/denoiser.h"

namespace ungrain::bench {

// The scene with noise of 25 of 255; the same for the same spec. What lies beyond 1024 pixels repeats what
// lies before, so that large images are made quickly.
std::shared_ptr<const Image> noisy_picture(const ImageSpec& spec);
// The same without noise, in floats with the same white level.
Image clean_picture(const ImageSpec& spec);

struct Setup {
  Size size;
  int threads = 0;         // 0: one for each processor
  std::string simd = {};   // a set of vector instructions; empty: the best
  bool reference = false;  // the reference instead of the CPU version
  bool cpu_time = false;   // times are the processor's, not the clock's
};

class Trial {
 public:
  Trial(const Case& what, const Setup& setup);

  // Runs once and compares three places of the result (two corners and the middle) with the reference.
  void check();
  // After check(): how long that run took, and the largest difference (the root of its mean square where the
  // case says so), as a share of the range in floats and in steps in integers.
  double first_ms() const { return first_ms_; }
  double error() const { return error_; }
  bool right() const;
  // Of the whole result of the last run against the picture without noise, in dB.
  double psnr() const;

  double run_once();                            // ms
  std::vector<double> run_for(double seconds);  // ms of each run, at least one

  const Case& what() const { return case_; }
  const ImageSpec& spec() const { return in_->spec(); }
  const Image& input() const { return *in_; }
  const Image& output() const { return out_; }
  int threads() const { return threads_; }

 private:
  void check_at(Denoiser& reference, int x, int y, int side);

  Case case_;
  Setup setup_;
  std::shared_ptr<const Image> in_;
  Image out_;
  Denoiser denoiser_;
  int threads_ = 1;
  double first_ms_ = 0;
  double error_ = -1;
};

}  // namespace ungrain::bench
