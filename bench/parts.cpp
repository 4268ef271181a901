#include "bench/parts.h"

#include <utility>

#include "bench/common.h"
#include "bench/trial.h"
#include "core/engine.h"
#include "cpu/cpu_backend.h"
#include "ungrain/error.h"
#include "ungrain/metrics.h"

namespace ungrain::bench {
namespace {

constexpr double samples = 64;  // of a patch
constexpr double sample_bytes = sizeof(float);

constexpr const char* part_names[bm3d_parts] = {"copies", "integers", "matching", "columns",
                                                "groups", "sums",     "division"};
constexpr const char* step_names[2] = {"1", "2"};

struct RunTimes {
  double all = 0;
  double parts[2][bm3d_parts] = {};
};

// A trial's case on its picture, as a Denoiser runs it but with clocks in it, in one band.
class TimedRun {
 public:
  TimedRun(const Trial& trial, const Bm3dParams& params)
      : trial_(trial),
        out_(trial.spec()),
        engine_(pipeline(params), trial.spec(), {.band_rows = trial.spec().height},
                make_cpu_backend(trial.threads())) {}

  RunTimes once() {
    RunTimes found;
    for (const int step : {0, 1}) {
      for (int part = 0; part < bm3d_parts; ++part) found.parts[step][part] = -time(step, part);
    }
    const double start = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    engine_.run(trial_.input().view(), out_.view());
    found.all = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    for (const int step : {0, 1}) {
      for (int part = 0; part < bm3d_parts; ++part) found.parts[step][part] += time(step, part);
    }
    return found;
  }
  bool right() const { return max_abs(std::as_const(out_).view(), trial_.output().view()) == 0; }

 private:
  Pipeline pipeline(const Bm3dParams& params) {
    const Bm3dSettings settings = bm3d_settings(params, trial_.spec());
    if (!bm3d_fast_takes(settings, trial_.spec()))
      throw Error(ErrorCode::unsupported, "the parts of bm3d: this processor has no fast version");
    return bm3d_fast(settings, trial_.spec(), &times_);
  }
  double time(int step, int part) const {
    return static_cast<double>(times_.of(step, static_cast<Bm3dPart>(part)));
  }

  const Trial& trial_;
  Image out_;
  Bm3dTimes times_;
  Engine engine_;
};

}  // namespace

// For every reference: distances from dot products (a multiply-add for four pixels of 8 bits), each once; a
// group's rows transformed (Arai, Agui and Nakajima: 34 operations for eight coefficients; bior1.5 14 and
// what its second and third level take) both ways once for each of its patches, columns once for each pixel;
// the Haar transform both ways, the threshold (a comparison and a multiplication) or the Wiener factor
// (seven, once a coefficient), and adding up. Bytes: what is read and what is written, each once a pixel, or
// once for each patch of a group; of columns, which share nothing, eight coefficients a pixel.
PartWork bm3d_work(const Bm3dParams& p, int channels, int step, Bm3dPart part) {
  const bool wiener = step == 1;
  const double spacing = wiener ? *p.wiener_spacing : *p.spacing;
  const double search = wiener ? *p.wiener_search : *p.search;
  const double group = wiener ? *p.wiener_group : *p.group;
  const double images = wiener ? 2 : 1;
  const double references = 1 / (spacing * spacing);  // a pixel
  const double column = wiener ? 34 : 14;
  const double rows = wiener ? 8 * 34 : 8 * 14 + 22;
  switch (part) {
    case Bm3dPart::copies:
      return {channels > 1 ? 3.0 * channels : 0,
              sample_bytes * channels * (images + (wiener ? 1 + channels : channels))};
    case Bm3dPart::integers:
      return {0, 3 * sample_bytes};
    case Bm3dPart::matching:
      return {references * search * search * samples / 4,
              2 * sample_bytes + references * group * sample_bytes};
    case Bm3dPart::columns:
      return {channels * images * column, channels * images * (1 + 8) * sample_bytes};
    case Bm3dPart::groups: {
      const double haar = 2 * (images + 1);
      const double shrinking = wiener ? 7 + 1 : 2;
      return {references * channels * group * ((images + 1) * rows + samples * (haar + shrinking + 2)),
              references * channels * group * samples * (images + 2) * sample_bytes};
    }
    case Bm3dPart::sums:
      return {channels * (column + 8 + 2 * 8), channels * (8 + 2 + 2) * sample_bytes};
    case Bm3dPart::division:
      return {channels * (channels > 1 ? 4.0 : 1.0), channels * 3 * sample_bytes};
  }
  return {};
}

std::vector<PartTime> measure_parts(Trial& trial, const PartRates& rates) {
  const MethodParams params = Denoiser::create(trial.what().params_for(trial.spec()), trial.spec()).params();
  trial.run_once();
  TimedRun timed(trial, params.as<Bm3dParams>());
  RunTimes best = timed.once();
  if (!timed.right())
    throw Error(ErrorCode::internal, "the parts of bm3d: the timed run has other pixels than the trial");
  for (int run = 0; run < 4; ++run) {
    const RunTimes other = timed.once();
    if (other.all < best.all) best = other;
  }

  const double pixels = static_cast<double>(trial.spec().width) * trial.spec().height;
  std::vector<PartTime> list;
  double rest = best.all;
  for (const int step : {0, 1}) {
    for (int part = 0; part < bm3d_parts; ++part) {
      const PartWork work =
          bm3d_work(params.as<Bm3dParams>(), trial.what().channels(), step, static_cast<Bm3dPart>(part));
      list.push_back({step_names[step], part_names[part], best.parts[step][part] / pixels,
                      work.operations / rates.multiply_adds, work.bytes / rates.copy_bytes});
      rest -= best.parts[step][part];
    }
  }
  list.push_back({"", "the rest", rest / pixels, 0, 0});
  return list;
}

}  // namespace ungrain::bench
