#include "study/harness.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "study/library_rung.h"
#include "study/study_picture.h"
#include "ungrain/denoiser.h"

namespace ungrain::study {
namespace {

// No multiple of any block's side: blocks that stick out are checked too.
constexpr Size check_size{203, 157};
// A rung is run until this much time has gone by, at least a few times.
constexpr double enough_ms = 300;
constexpr int fewest_runs = 3;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double run_once(const Prepared& prepared, const cuda::Event& start, const cuda::Event& end) {
  if (prepared.timed) return prepared.timed();
  start.record(nullptr);
  prepared.enqueue();
  end.record(nullptr);
  end.wait();
  return end.ms_since(start);
}

double median_time(const Prepared& prepared, int runs) {
  const cuda::Event start;
  const cuda::Event end;
  const double first = run_once(prepared, start, end);
  if (first > enough_ms) return first;  // far above what a warm-up changes
  std::vector<double> times;
  double total = 0;
  for (int run = 0; run < runs; ++run) {
    if (run >= fewest_runs && total > enough_ms) break;
    times.push_back(run_once(prepared, start, end));
    total += times.back();
  }
  return median(times);
}

std::vector<Shape> shapes_of(const Rung& rung, const Plan& plan) {
  if (rung.shapes == Shapes::none) return {Shape{}};
  std::vector<Shape> shapes;
  for (const int side : plan.sides) {
    if (rung.shapes == Shapes::sides) {
      shapes.push_back({side, 1});
      continue;
    }
    for (const int tiling : plan.tilings) shapes.push_back({side, tiling});
  }
  return shapes;
}

double largest_error(const std::vector<float>& result, const Image& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double error = std::abs(static_cast<double>(result[i]) - expected.samples<float>()[i]);
    if (!(error <= largest)) largest = error;  // keeps a NaN: a pixel that was never written
    if (std::isnan(largest)) break;
  }
  return largest;
}

// The largest error over all shapes; nothing where none can be launched.
std::optional<double> check(const Rung& rung, const Plan& plan, StudyPicture& picture, const Image& expected,
                            const Strengths& strengths) {
  std::optional<double> largest;
  for (const Shape& shape : shapes_of(rung, plan)) {
    picture.forget_result();
    const std::optional<Prepared> prepared = rung.prepare(picture.call(strengths, shape, true));
    if (!prepared) continue;
    if (prepared->timed) {
      prepared->timed();
    } else {
      prepared->enqueue();
    }
    const double error = largest_error(picture.result(prepared->result_on_host), expected);
    if (!largest || !(error <= *largest)) largest = error;
    if (std::isnan(error)) break;
  }
  return largest;
}

std::vector<Timing> time_shapes(const Rung& rung, const Plan& plan, const StudyPicture& picture,
                                const Strengths& strengths) {
  std::vector<Timing> all;
  for (const Shape& shape : shapes_of(rung, plan)) {
    const std::optional<Prepared> prepared = rung.prepare(picture.call(strengths, shape, false));
    if (prepared) all.push_back({shape, prepared->use, median_time(*prepared, plan.runs)});
  }
  return all;
}

}  // namespace

const Timing& Measured::best() const {
  return *std::min_element(all.begin(), all.end(),
                           [](const Timing& a, const Timing& b) { return a.ms < b.ms; });
}

void run_reference(const Ladder& ladder, const Strengths& strengths, const ConstImageView& in,
                   const ImageView& out) {
  Denoiser::create(library_params(ladder.name, strengths), in.spec, {.device = {Device::Kind::reference}})
      .run(in, out);
}

std::vector<Measured> measure(const Ladder& ladder, const Plan& plan, std::FILE* progress) {
  std::vector<const Rung*> rungs;
  for (const Rung& rung : ladder.rungs) {
    if (rung.name.find(plan.only) != std::string::npos) rungs.push_back(&rung);
  }
  // errors[radius][rung]
  std::vector<std::vector<std::optional<double>>> errors;
  StudyPicture small(check_size.width, check_size.height);
  for (const int radius : plan.radii) {
    const Strengths strengths{.radius = radius};
    Image expected(small.spec());
    run_reference(ladder, strengths, small.call(strengths, {}, true).host_view, expected.view());
    std::vector<std::optional<double>>& of_radius = errors.emplace_back();
    for (const Rung* rung : rungs) of_radius.push_back(check(*rung, plan, small, expected, strengths));
    fmt::print(progress, "checked radius {}\n", radius);
  }
  std::vector<Measured> results;
  for (const Size& size : plan.sizes) {
    const StudyPicture picture(size.width, size.height);
    for (std::size_t i = 0; i < plan.radii.size(); ++i) {
      for (std::size_t k = 0; k < rungs.size(); ++k) {
        if (!errors[i][k]) continue;
        Measured measured{.rung = rungs[k]->name,
                          .size = size,
                          .radius = plan.radii[i],
                          .error = *errors[i][k],
                          .all = time_shapes(*rungs[k], plan, picture, {.radius = plan.radii[i]})};
        if (!measured.all.empty()) results.push_back(std::move(measured));
      }
      fmt::print(progress, "timed {} x {}, radius {}\n", size.width, size.height, plan.radii[i]);
    }
  }
  return results;
}

}  // namespace ungrain::study
