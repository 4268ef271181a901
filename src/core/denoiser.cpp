// Denoiser: create() checks, chooses and plans; core/execution.cpp runs.
#include "ungrain/denoiser.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/bands.h"
#include "core/convert.h"
#include "core/device.h"
#include "core/execution.h"
#include "core/memory.h"
#include "core/noise_handling.h"
#include "core/noise_stages.h"
#include "core/registry.h"
#include "cuda/execution.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

// This many pixels keep every thread busy for many tiles; larger bands would leave reading, filtering and
// writing less to overlap.
constexpr int band_pixels = 1 << 20;
// Bands of full tiles where they are high enough.
constexpr int tile_rows = 64;
// So many times the rows that are worked on again in every band: some 4 % of bm3d's time.
constexpr int rows_for_repeated = 12;

Pipeline build_pipeline(const Method& method, Device device, const void* params, const ImageSpec& spec) {
  Pipeline pipeline = build_for(method, device)(params, spec);
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    if (pipeline.stages[stage].reads.empty()) pipeline.stages[stage].reads = {static_cast<int>(stage)};
  }
  return pipeline;
}

int planned_rows(const Pipeline& pipeline, const ImageSpec& spec, const Options& options, int threads) {
  const std::size_t limit = options.memory > 0 ? options.memory : free_memory() / 2;
  const auto bytes = [&](int rows) { return BufferPlan(pipeline, spec, options, rows, threads).bytes(); };
  if (options.band_rows > 0) return std::min(options.band_rows, spec.height);
  int repeated = 0;
  for (const Stage& stage : pipeline.stages) repeated = std::max(repeated, stage.repeated_rows);
  int rows = std::clamp(std::max(band_pixels / spec.width, rows_for_repeated * repeated), 1, spec.height);
  if (rows > tile_rows && rows < spec.height) rows = rows / tile_rows * tile_rows;
  // What each pixel and each other one have in common is found once where both are in one band.
  if (total_reach(pipeline, {spec.width, spec.height}).whole) rows = spec.height;
  while (rows > 1 && bytes(rows) > limit) rows -= (rows + 3) / 4;
  if (const std::size_t least = bytes(rows); least > limit) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("an image of {} x {} needs at least {} of working memory, the limit is {}",
                            spec.width, spec.height, bytes_text(least), bytes_text(limit)));
  }
  return rows;
}

void check_options(const Options& options) {
  if (options.threads < 0 || options.threads > max_threads) {
    throw Error(ErrorCode::invalid_argument, fmt::format("threads takes a whole number from 0 to {}, got {}",
                                                         max_threads, options.threads));
  }
  if (options.band_rows < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("band_rows takes a whole number from 0 up, got {}", options.band_rows));
  }
}

std::vector<Strength> strengths_of(const MethodParams& params, const ImageSpec& spec) {
  std::vector<Strength> list;
  for (const ParamInfo& info : method_info(params.method()).params) {
    const ParamValue value = params.get(info.name);
    if (params.unit(info.name) != Unit::intensity) continue;
    const auto add = [&](const std::string& name, double number) {
      list.push_back({name, number, number * 255 / spec.white()});
    };
    if (const double* number = std::get_if<double>(&value)) add(info.name, *number);
    if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
      for (std::size_t c = 0; c < numbers->size(); ++c)
        add(numbers->size() == 1 ? info.name : fmt::format("{}[{}]", info.name, c), (*numbers)[c]);
    }
  }
  return list;
}

}  // namespace

struct Denoiser::Impl {
  Impl(MethodParams resolved, const ImageSpec& image, Options wanted)
      : params(std::move(resolved)), spec(image), options(std::move(wanted)) {}

  MethodParams params;
  ImageSpec spec;
  Options options;
  Device device;
  std::unique_ptr<Executor> execution;
};

Denoiser::Denoiser(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Denoiser::Denoiser(Denoiser&&) noexcept = default;
Denoiser& Denoiser::operator=(Denoiser&&) noexcept = default;
Denoiser::~Denoiser() = default;

Denoiser Denoiser::create(const MethodParams& params, const ImageSpec& spec, const Options& options) {
  check_options(options);
  const Method& method = find_method(params.method());
  auto impl = std::make_unique<Impl>(resolve_derived(params, spec), spec, options);
  void* values = impl->params.values_.get();
  const NoiseHandling& noise = impl->params.noise();
  if (impl->params.needs_image()) {
    const char* left = needs_noise(method, values, noise)
                           ? "the noise's sigma is left to be measured; give it, or call"
                           : "whether noise was cut off at black and white is left to be looked for; call";
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} resolve() with the image first", method.name, left));
  }
  impl->device = choose_device(method, options.device);
  Pipeline pipeline = with_noise_stages(build_pipeline(method, impl->device, values, spec),
                                        noise_stages(method, values, noise, spec), impl->device.kind);
  if (impl->device.kind == Device::Kind::cuda) {
    impl->execution = cuda::make_execution(std::move(pipeline), spec, impl->options, gpus_of(impl->device));
    return Denoiser(std::move(impl));
  }
  Workers workers(impl->device.kind == Device::Kind::reference ? 1 : options.threads);
  const int rows = planned_rows(pipeline, spec, options, workers.count());
  impl->execution =
      std::make_unique<Execution>(std::move(pipeline), spec, impl->options, rows, std::move(workers));
  return Denoiser(std::move(impl));
}

Denoiser Denoiser::clone() const {
  Options options = impl_->options;
  options.device = impl_->device;
  options.band_rows = impl_->execution->band_rows();
  return create(impl_->params, impl_->spec, options);
}

Report Denoiser::run(const ConstImageView& in, const ImageView& out) {
  Report report = impl_->execution->run(in, out);
  report.device = impl_->device;
  report.strengths = strengths_of(impl_->params, impl_->spec);
  return report;
}

Report Denoiser::run(RowReader& in, RowWriter& out, const ImageSpec& out_spec) {
  Report report = impl_->execution->run(in, out, out_spec);
  report.device = impl_->device;
  report.strengths = strengths_of(impl_->params, impl_->spec);
  return report;
}

void Denoiser::run_async(const ConstImageView& in, const ImageView& out, Stream stream) {
  impl_->execution->run_async(in, out, stream);
}

void Denoiser::wait() { impl_->execution->wait(); }

Denoiser::Reach Denoiser::reach() const {
  const ungrain::Reach reach = impl_->execution->reach();
  const int fill = is_float(impl_->spec.type) ? fill_radius : 0;
  return {std::min(impl_->spec.width, reach.x + fill), std::min(impl_->spec.height, reach.y + fill)};
}

const MethodParams& Denoiser::params() const { return impl_->params; }
const ImageSpec& Denoiser::spec() const { return impl_->spec; }
Device Denoiser::device() const { return impl_->device; }

}  // namespace ungrain
