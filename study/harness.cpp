#include "study/harness.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "study/library_rung.h"
#include "study/sequential.h"
#include "study/study_picture.h"
#include "ungrain/denoiser.h"

namespace ungrain::study {
namespace {

// A rung is run until Plan::enough_ms have gone by, at least a few times.
constexpr int fewest_runs = 3;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double run_once(const Prepared& prepared) {
  if (prepared.timed) return prepared.timed();
#if UNGRAIN_HAVE_CUDA
  const cuda::Event start;
  const cuda::Event end;
  start.record(nullptr);
  prepared.enqueue();
  end.record(nullptr);
  end.wait();
  return end.ms_since(start);
#else
  throw std::logic_error("a kernel in a build without CUDA");
#endif
}

double median_time(const Prepared& prepared, const Plan& plan) {
  const double first = run_once(prepared);
  if (first > plan.enough_ms) return first;  // far above what a warm-up changes
  std::vector<double> times;
  double total = 0;
  for (int run = 0; run < plan.runs; ++run) {
    if (run >= fewest_runs && total > plan.enough_ms) break;
    times.push_back(run_once(prepared));
    total += times.back();
  }
  return median(times);
}

std::vector<Shape> shapes_of(const Rung& rung, const Plan& plan) {
  if (rung.shapes == Shapes::none) return {Shape{}};
  std::vector<Shape> shapes;
  if (rung.shapes == Shapes::grids) {
    for (const int threads : plan.sweep.threads) {
      for (const int blocks : plan.sweep.blocks) shapes.push_back({.threads = threads, .blocks = blocks});
    }
    return shapes;
  }
  for (const int side : plan.sides) {
    if (rung.shapes == Shapes::sides) {
      shapes.push_back({.side = side});
      continue;
    }
    for (const int tiling : plan.sweep.tilings) shapes.push_back({.side = side, .tiling = tiling});
  }
  return shapes;
}

double largest_error(const std::vector<float>& result, const float* expected) {
  double largest = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double error = std::abs(static_cast<double>(result[i]) - expected[i]);
    if (!(error <= largest)) largest = error;  // keeps a NaN: a pixel that was never written
    if (std::isnan(largest)) break;
  }
  return largest;
}

// "4 padded shared" -> "4-padded-shared".
std::string file_name(const std::string& rung) {
  std::string name;
  for (const char letter : rung) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      name += letter;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name;
}

// The largest error over all shapes; nothing where none can be launched.
std::optional<double> check(const Rung& rung, const Plan& plan, StudyPicture& picture, const Image& expected,
                            const Strengths& strengths) {
  std::optional<double> largest;
  std::vector<float> result;
  for (const Shape& shape : shapes_of(rung, plan)) {
    picture.forget_result();
    const std::optional<Prepared> prepared = rung.prepare(picture.call(strengths, shape, true));
    if (!prepared) continue;
    if (prepared->timed) {
      prepared->timed();
    } else {
      prepared->enqueue();
    }
    result = picture.result(prepared->result_on_host);
    const double error = largest_error(result, expected.samples<float>());
    if (!largest || !(error <= *largest)) largest = error;
    if (std::isnan(error)) break;
  }
  if (largest && !plan.pgm_folder.empty()) {
    const std::string name = fmt::format("r{:02}-{}.pgm", strengths.radius, file_name(rung.name));
    write_pgm(plan.pgm_folder + "/" + name, result.data(), picture.size());
  }
  return largest;
}

// What the product makes of a picture that is too large for the reference: the rungs were held against that
// on a small one, and are held against each other on this one.
std::vector<float> product_rows(const Ladder& ladder, StudyPicture& picture, const Strengths& strengths) {
  product_rung(ladder.name).prepare(picture.call(strengths, {}, true))->timed();
  return picture.sampled_rows();
}

// Adds to `measured` the times of all shapes, and the error of what was timed.
void time_shapes(const Rung& rung, const Plan& plan, StudyPicture& picture, const Strengths& strengths,
                 const std::vector<float>& expected, Measured& measured) {
  for (const Shape& shape : shapes_of(rung, plan)) {
    const std::optional<Prepared> prepared = rung.prepare(picture.call(strengths, shape, false));
    if (!prepared) continue;
    picture.forget_device_result();
    const double share = prepared->share;
    measured.all.push_back({shape, prepared->use, median_time(*prepared, plan) / share, share});
    if (prepared->result_on_host || share < 1) continue;
    const double error = largest_error(picture.sampled_rows(), expected.data());
    if (!std::isnan(measured.error) && !(error <= measured.error)) measured.error = error;
  }
}

}  // namespace

double Ladder::tolerance_of(const std::string& rung) const {
  for (const Rung& one : rungs) {
    if (one.name == rung && one.tolerance > 0) return one.tolerance;
  }
  return tolerance;
}

void write_pgm(const std::string& path, const float* pixels, const Size& size) {
  std::string bytes = fmt::format("P5\n{} {}\n255\n", size.width, size.height);
  for (int i = 0; i < size.width * size.height; ++i) {
    const float value = std::isfinite(pixels[i]) ? std::clamp(pixels[i], 0.0F, 255.0F) : 0.0F;
    bytes += static_cast<char>(static_cast<unsigned char>(std::lround(value)));
  }
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<std::string> gpu_rungs(const Ladder& ladder) {
  std::vector<std::string> names;
  for (const Rung& rung : ladder.rungs) {
    if (rung.gpu) names.push_back(rung.name);
  }
  return names;
}

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
  const auto start = std::chrono::steady_clock::now();
  std::vector<const Rung*> rungs;
  for (const Rung& rung : ladder.rungs) {
    if (rung.name.find(plan.only) != std::string::npos && (plan.gpu || !rung.gpu)) rungs.push_back(&rung);
  }
  // errors[radius][rung]
  std::vector<std::vector<std::optional<double>>> errors;
  StudyPicture small(plan.source, ladder.check_size, plan.gpu);
  if (!plan.pgm_folder.empty()) {
    std::filesystem::create_directories(plan.pgm_folder);
    const ConstImageView noisy = small.call({}, {}, true).host_view;
    write_pgm(plan.pgm_folder + "/noisy.pgm", static_cast<const float*>(noisy.data), small.size());
  }
  for (const int radius : plan.sweep.radii) {
    const Strengths strengths{.radius = radius};
    Image expected(small.spec());
    run_reference(ladder, strengths, small.call(strengths, {}, true).host_view, expected.view());
    if (!plan.pgm_folder.empty()) {
      write_pgm(fmt::format("{}/r{:02}-reference.pgm", plan.pgm_folder, radius), expected.samples<float>(),
                small.size());
    }
    std::vector<std::optional<double>>& of_radius = errors.emplace_back();
    for (const Rung* rung : rungs) of_radius.push_back(check(*rung, plan, small, expected, strengths));
    fmt::print(progress, "{}: checked radius {}\n", ladder.name, radius);
  }
  std::vector<Measured> results;
  for (const Size& size : plan.sweep.sizes) {
    StudyPicture picture(plan.source, size, plan.gpu);
    for (std::size_t i = 0; i < plan.sweep.radii.size(); ++i) {
      const int radius = plan.sweep.radii[i];
      const Strengths strengths{.radius = radius};
      const std::vector<float> expected =
          plan.gpu ? product_rows(ladder, picture, strengths) : std::vector<float>{};
      for (std::size_t k = 0; k < rungs.size(); ++k) {
        if (!errors[i][k]) continue;
        Measured measured{
            .rung = rungs[k]->name, .size = size, .radius = radius, .error = *errors[i][k], .all = {}};
        time_shapes(*rungs[k], plan, picture, strengths, expected, measured);
        if (!measured.all.empty()) results.push_back(std::move(measured));
      }
      fmt::print(progress, "{}: timed {} x {}, radius {}, {:.0f} s\n", ladder.name, size.width, size.height,
                 radius, seconds_since(start));
    }
  }
  return results;
}

std::vector<CumulativeTime> cumulative_times(const Ladder& ladder, const Plan& plan, std::FILE* progress) {
  constexpr int pictures = 3;  // draws of noise; the filters' times do not depend on pixels
  constexpr int executions = 5;
  const Strengths strengths{.radius = ladder.usual.radii.front()};
  std::vector<CumulativeTime> results;
  for (const Size& size : ladder.cat_sizes) {
    if (!plan.source.has(size)) continue;
    for (int seed = 1; seed <= pictures; ++seed) {
      const StudyPicture picture(plan.source, size, plan.gpu, seed);
      std::size_t which = results.size() - (seed > 1 ? ladder.rungs.size() : 0);
      for (const Rung& rung : ladder.rungs) {
        if (seed == 1) results.push_back({.rung = rung.name, .size = size});
        CumulativeTime& result = results[which++];
        if (rung.shapes != Shapes::none || (rung.gpu && !plan.gpu)) continue;
        const std::optional<Prepared> prepared = rung.prepare(picture.call(strengths, {}, false));
        if (!prepared) continue;
        if (rung.gpu) run_once(*prepared);  // the first run of a kernel loads it
        result.share = prepared->share;
        ++result.pictures;
        for (int i = 0; i < executions; ++i) {
          double copies = 0;
          if (rung.gpu) copies += seconds_of([&] { picture.upload_plain(); });
          const double filter = seconds_of([&] { run_once(*prepared); });
          if (rung.gpu) copies += seconds_of([&] { static_cast<void>(picture.result(false)); });
          result.ms += 1000 * (copies + filter / prepared->share);
          ++result.executions;
        }
      }
    }
    fmt::print(progress, "{}: cumulative average time of {} x {}\n", ladder.name, size.width, size.height);
  }
  std::erase_if(results, [](const CumulativeTime& result) { return result.pictures == 0; });
  for (CumulativeTime& result : results) {
    result.ms /= result.executions;
    result.executions /= result.pictures;
  }
  return results;
}

}  // namespace ungrain::study
