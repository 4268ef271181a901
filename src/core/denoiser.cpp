// Denoiser: create() checks and chooses; core/engine.cpp plans and runs.
#include "ungrain/denoiser.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/convert.h"
#include "core/device.h"
#include "core/device_choice.h"
#include "core/engine.h"
#include "core/noise_handling.h"
#include "core/noise_stages.h"
#include "core/registry.h"
#include "core/run_checks.h"
#include "core/ycbcr.h"
#include "device/backends.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

Pipeline build_pipeline(const Method& method, Device device, const void* params, const ImageSpec& spec) {
  Pipeline pipeline = build_for(method, device)(params, spec);
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    if (pipeline.stages[stage].reads.empty()) pipeline.stages[stage].reads = {static_cast<int>(stage)};
  }
  return pipeline;
}

// With what is done for all methods before and after.
Pipeline build_whole(const MethodParams& resolved, void* values, Device device, const ImageSpec& spec) {
  const Method& method = find_method(resolved.method());
  Pipeline pipeline =
      with_noise_stages(build_pipeline(method, device, values, spec),
                        noise_stages(method, values, resolved.noise(), spec), pointwise_stages(device.kind));
  for (Stage& stage : pipeline.stages) {
    if (stage.run_on_samples && stage.reads == std::vector{0}) stage.run = stage.run_on_samples;
  }
  return pipeline;
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
  if (options.images < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("images takes a whole number from 0 up, got {}", options.images));
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
  if (params.chroma() != nullptr) {
    for (Strength strength : strengths_of(*params.chroma(), spec)) {
      strength.name += " of chroma";
      list.push_back(std::move(strength));
    }
  }
  return list;
}

}  // namespace

struct Denoiser::Impl {
  Impl(const ImageSpec& image, Options wanted, const MethodParams& unresolved)
      : spec(image), options(std::move(wanted)), params(resolve_derived(unresolved, image)) {}

  static void check_resolved(const MethodParams& params);
  Pipeline make_pipeline(const MethodParams& resolved) const;
  Report complete(Report report) const;  // adds what the engine does not know
  // Whether the CPU can take over from the chosen GPU, which failed with this error.
  bool can_turn_to_cpu(const Error& error) const;
  void turn_to_cpu(const Error& error);

  ImageSpec spec;
  Options options;
  MethodParams params;

  Device device;
  std::string choice;  // why, where it was left to us
  std::unique_ptr<Engine> engine;
};

Denoiser::Denoiser(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Denoiser::Denoiser(Denoiser&&) noexcept = default;
Denoiser& Denoiser::operator=(Denoiser&&) noexcept = default;
Denoiser::~Denoiser() = default;

Denoiser Denoiser::create(const MethodParams& params, const ImageSpec& spec, const Options& options) {
  check_options(options);
  auto impl = std::make_unique<Impl>(spec, options, params);
  Impl::check_resolved(impl->params);
  const DeviceChoice choice =
      choose_by_time(find_method(params.method()), impl->params.values_.get(), spec, options);
  impl->device = choice.device;
  impl->choice = choice.reason;
  try {
    impl->engine = std::make_unique<Engine>(impl->make_pipeline(impl->params), spec, options,
                                            make_backend(impl->device, options));
  } catch (const Error& error) {
    if (!impl->can_turn_to_cpu(error)) throw;
    impl->turn_to_cpu(error);
  }
  return Denoiser(std::move(impl));
}

void Denoiser::set_params(const MethodParams& params) {
  MethodParams resolved = resolve_derived(params, impl_->spec);
  Impl::check_resolved(resolved);
  choose_device(find_method(resolved.method()), impl_->device);  // throws where the method does not run there
  if (!impl_->engine->take_over(impl_->make_pipeline(resolved))) {
    impl_->engine = std::make_unique<Engine>(impl_->make_pipeline(resolved), impl_->spec, impl_->options,
                                             make_backend(impl_->device, impl_->options));
  }
  impl_->params = std::move(resolved);
}

DeviceChoice choose_device(const MethodParams& params, const ImageSpec& spec, const Options& options) {
  check_options(options);
  return choose_by_time(find_method(params.method()), params.values_.get(), spec, options);
}

void start_device(Device device) noexcept {
  try {
    if (device.kind == Device::Kind::cuda) start_gpu(device);
  } catch (...) {  // NOLINT: whoever uses the device is told
  }
}

Denoiser Denoiser::clone() const {
  Options options = impl_->options;
  options.device = impl_->device;
  return create(impl_->params, impl_->spec, options);
}

Pipeline Denoiser::Impl::make_pipeline(const MethodParams& resolved) const {
  const auto build = [&](const MethodParams& part, const ImageSpec& part_spec) {
    return build_whole(part, part.values_.get(), device, part_spec);
  };
  if (!is_split(find_method(resolved.method()), spec)) return build(resolved, spec);
  return joined_pipeline(build(YcbcrParams::luma(resolved), luma_spec(spec)),
                         build(YcbcrParams::chroma(resolved), chroma_spec(spec)), spec,
                         pointwise_stages(device.kind));
}

// Throws where something is still to be measured on the image.
void Denoiser::Impl::check_resolved(const MethodParams& params) {
  if (!params.needs_image()) return;
  const Method& method = find_method(params.method());
  const char* left = needs_noise(method, params.values_.get(), params.noise())
                         ? "the noise's sigma is left to be measured; give it, or call"
                         : "whether noise was cut off at black and white is left to be looked for; call";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} resolve() with the image first", method.name, left));
}

Report Denoiser::Impl::complete(Report report) const {
  report.device = device;
  report.choice = choice;
  report.strengths = strengths_of(params, spec);
  return report;
}

bool Denoiser::Impl::can_turn_to_cpu(const Error& error) const {
  const bool gpu_failed = error.code() == ErrorCode::device || error.code() == ErrorCode::no_device ||
                          error.code() == ErrorCode::out_of_memory;
  return options.device.kind == Device::Kind::automatic && device.kind == Device::Kind::cuda && gpu_failed;
}

void Denoiser::Impl::turn_to_cpu(const Error& error) {
  device = {Device::Kind::cpu};
  choice = fmt::format("the GPU failed: {}", error.what());
  engine = std::make_unique<Engine>(make_pipeline(params), spec, options, make_backend(device, options));
}

Report Denoiser::run(const ConstImageView& in, const ImageView& out) {
  try {
    return impl_->complete(impl_->engine->run(in, out));
  } catch (const Error& error) {
    // In place, a part of the input may be gone.
    const auto on_host = [](const ConstImageView& view) { return view.space.memory == Space::Memory::host; };
    if (!impl_->can_turn_to_cpu(error) || !on_host(in) || !on_host(out) || runs_in_place(in, out)) throw;
    impl_->turn_to_cpu(error);
  }
  return impl_->complete(impl_->engine->run(in, out));
}

Report Denoiser::run(RowReader& in, RowWriter& out, const ImageSpec& out_spec) {
  return impl_->complete(impl_->engine->run(in, out, out_spec));
}

Report Denoiser::run(std::span<const ConstImageView> in, std::span<const ImageView> out) {
  return impl_->complete(impl_->engine->run(in, out));
}

Report Denoiser::run(std::span<const ConstImageView> window, int centre, const ImageView& out) {
  return impl_->complete(impl_->engine->run_centre(window, centre, out));
}

Report Denoiser::run(SliceReader& in, SliceWriter& out, const ImageSpec& out_spec) {
  return impl_->complete(impl_->engine->run(in, out, out_spec));
}

Report Denoiser::run(SliceReader& in, int slice, const ImageView& out) {
  return impl_->complete(impl_->engine->run_slice(in, slice, out));
}

void Denoiser::forget_slices() { impl_->engine->forget_slices(); }

void Denoiser::run_async(const ConstImageView& in, const ImageView& out, Stream stream) {
  impl_->engine->run_async(in, out, stream);
}

void Denoiser::wait() { impl_->engine->wait(); }

Denoiser::Reach Denoiser::reach() const {
  const ungrain::Reach reach = impl_->engine->reach();
  const int fill = is_float(impl_->spec.type) ? fill_radius : 0;
  const Subsampling step = impl_->spec.chroma;
  return {std::min(impl_->spec.width, reach.x + fill * step.x),
          std::min(impl_->spec.height, reach.y + fill * step.y), false, reach.before, reach.after};
}

const MethodParams& Denoiser::params() const { return impl_->params; }
const ImageSpec& Denoiser::spec() const { return impl_->spec; }
Device Denoiser::device() const { return impl_->device; }

}  // namespace ungrain
