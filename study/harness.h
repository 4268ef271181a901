// Checks every rung of a ladder against the library's reference, then times it: one way for all ladders.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "study/picture_source.h"
#include "study/rung.h"

namespace ungrain::study {

struct Plan {
  Sweep sweep;
  std::vector<int> sides;
  int runs = 5;
  double enough_ms = 300;  // Ladder::enough_ms
  std::string only;        // rungs whose name holds it; empty: all
  std::string pgm_folder;  // for what each rung makes of the picture it is checked on; empty: nowhere
  bool gpu = true;         // false: rungs that need one are left out
  PictureSource source = {};
};

struct PartTime {
  std::string part;
  double ms = 0;
};

struct Timing {
  Shape shape;
  std::optional<KernelUse> use;
  double ms = 0;                     // the median, of the whole picture
  double share = 1;                  // of it that was filtered; the time is scaled
  std::vector<PartTime> parts = {};  // of one run
};

// One rung on one picture.
struct Measured {
  std::string rung;
  Size size;
  int radius = 0;
  double error =
      0;  // the largest of all shapes, of 255: against the reference, and on this picture against the product
  double largest = 0;  // of any pixel, where error is not that already
  std::optional<double> psnr = {};
  std::vector<Timing> all;

  const Timing& best() const;
};

// The library's reference for what a rung of a ladder computes, on a picture in host memory.
void run_reference(const Ladder& ladder, const std::string& computes, const Strengths& strengths,
                   const ConstImageView& in, const ImageView& out);

// Gray values as they are, rounded to bytes.
void write_pgm(const std::string& path, const float* pixels, const Size& size);

// The names of the rungs that need a GPU.
std::vector<std::string> gpu_rungs(const Ladder& ladder);

// Says on `progress` what it does. A rung that no shape fits is not among the results.
std::vector<Measured> measure(const Ladder& ladder, const Plan& plan, std::FILE* progress);

// [004]'s cumulative average time: T of m pictures, n executions each, their mean; T from the picture on the
// host to the result on the host, copies to the GPU and back included.
struct CumulativeTime {
  std::string rung;
  Size size;
  int pictures = 0;
  int executions = 0;
  double ms = 0;
  double share = 1;  // of the picture that was filtered; the filter's time is scaled
};

// Of the ladder's rungs that have no shape to choose, over its cat_sizes.
std::vector<CumulativeTime> cumulative_times(const Ladder& ladder, const Plan& plan, std::FILE* progress);

}  // namespace ungrain::study
