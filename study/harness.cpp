#include "study/harness.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
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

// Where the time of one run goes, part by part; those that come again and again are added up.
std::vector<PartTime> part_times(const Prepared& prepared) {
  if (!prepared.enqueue_parts) return {};
#if UNGRAIN_HAVE_CUDA
  std::vector<std::string> names;
  std::list<cuda::Event> begins;  // one more than names: the end
  prepared.enqueue_parts([&](const char* part) {
    names.emplace_back(part);
    begins.emplace_back().record(nullptr);
  });
  begins.emplace_back().record(nullptr);
  begins.back().wait();
  std::vector<PartTime> times;
  auto begin = begins.begin();
  for (const std::string& name : names) {
    const cuda::Event& started = *begin++;
    auto time =
        std::find_if(times.begin(), times.end(), [&](const PartTime& one) { return one.part == name; });
    if (time == times.end()) time = times.insert(times.end(), {.part = name});
    time->ms += begin->ms_since(started);
  }
  return times;
#else
  return {};
#endif
}

std::vector<Shape> shapes_of(const Rung& rung, const Plan& plan) {
  if (rung.shapes == Shapes::none) return {Shape{}};
  std::vector<Shape> shapes;
  if (rung.shapes == Shapes::batches) {
    for (const Size& batch : plan.sweep.batches) shapes.push_back({.batch = batch});
    return shapes;
  }
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

// NaN: a pixel was never written.
struct Difference {
  double largest = 0;
  double rms = 0;

  double that_counts(const Ladder& ladder) const {
    return ladder.agreement == Agreement::rms ? rms : largest;
  }
  // The larger ones of both.
  void add(const Difference& other) {
    if (!(other.largest <= largest)) largest = other.largest;
    if (!(other.rms <= rms)) rms = other.rms;
  }
};

Difference difference(const std::vector<float>& result, const float* expected) {
  double largest = 0;
  double squares = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double error = std::abs(static_cast<double>(result[i]) - expected[i]);
    if (!(error <= largest)) largest = error;
    if (std::isnan(largest)) return {largest, largest};
    squares += error * error;
  }
  return {largest, std::sqrt(squares / static_cast<double>(result.size()))};
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

// The largest difference over all shapes; nothing where none can be launched.
std::optional<Difference> check(const Rung& rung, const Plan& plan, StudyPicture& picture,
                                const Image& expected, const Strengths& strengths) {
  std::optional<Difference> largest;
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
    if (!largest) largest = Difference{};
    largest->add(difference(result, expected.samples<float>()));
    if (std::isnan(largest->largest)) break;
  }
  if (largest && !plan.pgm_folder.empty()) {
    const std::string name = fmt::format("r{:02}-{}.pgm", strengths.radius, file_name(rung.name));
    write_pgm(plan.pgm_folder + "/" + name, result.data(), picture.size());
  }
  return largest;
}

// What the product makes of a picture that is too large for the reference: the rungs were held against that
// on a small one, and are held against each other on this one.
std::vector<float> product_rows(const Ladder& ladder, const std::string& computes, StudyPicture& picture,
                                const Strengths& strengths) {
  product_rung(ladder.name, computes).prepare(picture.call(strengths, {}, true))->timed();
  return picture.sampled_rows();
}

// The times of all shapes, and the difference of what was timed besides what the check found.
Measured time_shapes(const Ladder& ladder, const Rung& rung, const Plan& plan, StudyPicture& picture,
                     const Strengths& strengths, const std::vector<float>& expected, Difference checked) {
  Measured measured{.rung = rung.name, .size = picture.size(), .radius = strengths.radius, .all = {}};
  for (const Shape& shape : shapes_of(rung, plan)) {
    const std::optional<Prepared> prepared = rung.prepare(picture.call(strengths, shape, false));
    if (!prepared) continue;
    picture.forget_device_result();
    const double share = prepared->share;
    measured.all.push_back({shape, prepared->use, median_time(*prepared, plan) / share, share});
    if (share < 1) continue;
    measured.all.back().parts = part_times(*prepared);
    if (ladder.quality && !measured.psnr)
      measured.psnr = picture.psnr(picture.result(prepared->result_on_host));
    if (!prepared->result_on_host && !std::isnan(checked.largest))
      checked.add(difference(picture.sampled_rows(), expected.data()));
  }
  measured.error = checked.that_counts(ladder);
  measured.largest = checked.largest;
  return measured;
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
#if !UNGRAIN_HAVE_CUDA
  names.emplace_back("every kernel of the papers, which this build does not have");
#endif
  return names;
}

const Timing& Measured::best() const {
  return *std::min_element(all.begin(), all.end(),
                           [](const Timing& a, const Timing& b) { return a.ms < b.ms; });
}

void run_reference(const Ladder& ladder, const std::string& computes, const Strengths& strengths,
                   const ConstImageView& in, const ImageView& out) {
  Denoiser::create(library_params(ladder.name, strengths, Precision::single, computes), in.spec,
                   {.device = {Device::Kind::reference}})
      .run(in, out);
}

std::vector<Measured> measure(const Ladder& ladder, const Plan& plan, std::FILE* progress) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<const Rung*> rungs;
  for (const Rung& rung : ladder.rungs) {
    if (rung.name.find(plan.only) != std::string::npos && (plan.gpu || !rung.gpu)) rungs.push_back(&rung);
  }
  // differences[radius][rung]
  std::vector<std::vector<std::optional<Difference>>> differences;
  StudyPicture small(plan.source, ladder.check_size, plan.gpu);
  if (!plan.pgm_folder.empty()) {
    std::filesystem::create_directories(plan.pgm_folder);
    const ConstImageView noisy = small.call({}, {}, true).host_view;
    write_pgm(plan.pgm_folder + "/noisy.pgm", static_cast<const float*>(noisy.data), small.size());
  }
  for (const int radius : plan.sweep.radii) {
    const Strengths strengths{.radius = radius};
    std::map<std::string, Image> references;  // by what is computed
    const auto reference_of = [&](const std::string& computes) -> const Image& {
      const auto found = references.find(computes);
      if (found != references.end()) return found->second;
      Image& expected = references.emplace(computes, Image(small.spec())).first->second;
      run_reference(ladder, computes, strengths, small.call(strengths, {}, true).host_view, expected.view());
      if (!plan.pgm_folder.empty()) {
        const std::string name =
            fmt::format("r{:02}-reference{}{}.pgm", radius, computes.empty() ? "" : "-", computes);
        write_pgm(plan.pgm_folder + "/" + name, expected.samples<float>(), small.size());
      }
      return expected;
    };
    std::vector<std::optional<Difference>>& of_radius = differences.emplace_back();
    for (const Rung* rung : rungs)
      of_radius.push_back(check(*rung, plan, small, reference_of(rung->computes), strengths));
    fmt::print(progress, "{}: checked radius {}\n", ladder.name, radius);
  }
  std::vector<Measured> results;
  for (const Size& size : plan.sweep.sizes) {
    StudyPicture picture(plan.source, size, plan.gpu);
    for (std::size_t i = 0; i < plan.sweep.radii.size(); ++i) {
      const int radius = plan.sweep.radii[i];
      const Strengths strengths{.radius = radius};
      std::map<std::string, std::vector<float>> expected;  // by what is computed
      for (std::size_t k = 0; k < rungs.size(); ++k) {
        if (!differences[i][k]) continue;
        const std::string& computes = rungs[k]->computes;
        if (!expected.contains(computes)) {
          expected.emplace(
              computes, plan.gpu ? product_rows(ladder, computes, picture, strengths) : std::vector<float>{});
        }
        Measured measured = time_shapes(ladder, *rungs[k], plan, picture, strengths, expected.at(computes),
                                        *differences[i][k]);
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
