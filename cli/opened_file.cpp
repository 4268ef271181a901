#include "opened_file.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "io/exif_iso.h"
#include "noise_text.h"
#include "streams.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"
#include "ungrain/volume.h"
#include "volume_file.h"
#include "white_level.h"

namespace ungrain::cli {
namespace {

namespace fs = std::filesystem;

// Formats that do not distinguish alpha from other channels follow --alpha here.
void set_alpha(const fs::path& file, const io::FileInfo& info, bool alpha, ImageSpec& spec) {
  if (info.model != io::ColourModel::usual || spec.alpha == alpha) return;
  if (spec.channels != 2 && spec.channels != 4) {
    if (!alpha) return;
    throw Error(ErrorCode::io, fmt::format("{}: --alpha yes: none of its {} channels can be alpha",
                                           shown_input(file), spec.channels));
  }
  spec.alpha = alpha;
  spec.colour = !alpha ? Colour::multi : spec.colour_channels() == 1 ? Colour::gray : Colour::rgb;
}

// Throws where --channels does not fit the file's channels.
void set_channels(const fs::path& file, const std::string& kind, ImageSpec& spec) {
  if (kind == "auto") return;
  const int wanted = kind == "gray"         ? 1
                     : kind == "gray-alpha" ? 2
                     : kind == "rgb"        ? 3
                     : kind == "rgba"       ? 4
                                            : 0;
  if (wanted != 0 && wanted != spec.channels) {
    throw Error(ErrorCode::io, fmt::format("{}: --channels {} means {} channels, the file has {}",
                                           shown_input(file), kind, wanted, spec.channels));
  }
  spec.alpha = kind == "gray-alpha" || kind == "rgba";
  spec.colour = kind == "multi" ? Colour::multi : spec.colour_channels() == 1 ? Colour::gray : Colour::rgb;
}

double largest_deviation(const NoiseModelEstimate& found) {
  return *std::max_element(found.deviations.begin(), found.deviations.end());
}

// Deviations that rounding to integers causes (0.29), or that floats hardly resolve, do not count as noise.
bool is_noise(const NoiseModelEstimate& found, const ImageSpec& spec) {
  return largest_deviation(found) >= (is_float(spec.type) ? 1e-6 * spec.white() : 0.3);
}

// Whether the noise is too weak to be visible in the output's integers: below half a step over all levels,
// which is as much as rounding changes a sample, and below a whole step at each level. Floats resolve
// everything.
bool is_too_weak(const NoiseModelEstimate& found, const ImageSpec& spec, const ImageSpec& output) {
  if (is_float(output.type)) return false;
  const double step = spec.white() / output.white();
  double at_any_level = 0;
  for (const NoiseModel::Channel& channel : found.model.channels) {
    for (double level : channel.levels) {
      level = std::clamp(level, found.darkest, found.brightest);
      for (int c = 0; c < spec.colour_channels(); ++c)
        at_any_level = std::max(at_any_level, channel_deviation(found.model, spec, c, level));
    }
  }
  return largest_deviation(found) < step / 2 && at_any_level < step;
}

}  // namespace

io::FileInfo output_info(const io::FileInfo& in, const std::filesystem::path& path,
                         const Settings& settings) {
  io::FileInfo out = in;
  out.spec.type = settings.depth.value_or(io::writable_type(path, in.spec));
  // Another type has its own white level. Floats have none.
  const bool both_float = is_float(out.spec.type) && is_float(in.spec.type);
  if (out.spec.type != in.spec.type && !both_float) out.spec.range = 0;
  // Viewers of photographs take the type's white for white.
  if (!is_float(out.spec.type) && !io::keeps_white_level(path)) out.spec.range = 0;
  return out;
}

MethodParams without_effect(MethodParams params) {
  NoiseHandling handling = params.noise();
  handling.keep_grain = 1;
  params.set_noise(std::move(handling));
  return params;
}

OpenedFile::OpenedFile(const std::filesystem::path& path, const MethodOptions& method,
                       const Settings& settings, std::size_t memory)
    : path_(path), settings_(settings) {
  io::OpenOptions open = settings.open;
  open.memory = memory;
  input_ = open_input(path, open);
  file_ = input_.get();
  if (settings.volume) {
    order_ = volume_order(file_->info(), settings.slices, shown_input(path));
    input_ = in_order_of_volumes(std::move(input_), *order_);
    const bool solid = !looks_along_slices(method.words().method);
    if (solid) input_ = std::make_unique<VolumeInput>(std::move(input_), order_->depth);
  }
  describe();
  params_ = method.for_image(spec());
  if (settings.volume) follow_voxel_sizes(method);
  params_->set_noise(settings.noise.for_image(spec()));
}

void OpenedFile::describe() {
  info_ = input_->info();
  if (order_ && !settings_.slices && info_.stack && !info_.stack->note.empty()) {
    info_.note += (info_.note.empty() ? "" : "; ") + info_.stack->note;
  }
  if (settings_.open.alpha) set_alpha(path_, info_, *settings_.open.alpha, info_.spec);
  set_channels(path_, settings_.channels, info_.spec);
  const WhiteLevel white =
      settings_.range ? WhiteLevel{*settings_.range, "--range"} : find_white_level(*input_, info_);
  info_.spec.range = white.range;
  range_from_ = white.from;
}

// What of the parameters follows the voxels' shape and was not given: methods of volumes look as far along z
// as along x.
void OpenedFile::follow_voxel_sizes(const MethodOptions& method) {
  const std::array<double, 3> told = voxel_spacing(info_).value_or(std::array{1.0, 1.0, 1.0});
  const double aspect = voxel_aspect(settings_.spacing.value_or(told));
  follow_voxels(*params_, aspect, [&](const std::string& name) { return !method.given(name).empty(); });
}

bool OpenedFile::pages_differ() const {
  return params_->needs_image() || settings_.noise.measures_line() || settings_.noise.measures_rician();
}

MeasuredPage OpenedFile::measure(PageRows& rows, int page, MeasuredNoise* known) {
  MeasuredPage measured{*params_, {}, {}};
  if (settings_.noise.measures_line()) measure_line(rows, measured);
  if (settings_.noise.measures_rician()) measure_rician(rows, measured);
  const std::optional<double> iso = io::iso_speed(input_->metadata());
  Resolved resolved = known != nullptr ? known->resolve(*params_)
                                       : resolve_page(rows, page,
                                                      {.iso = iso,
                                                       .threads = settings_.options.threads,
                                                       .jpeg_steps = input_->metadata().jpeg_steps});
  measured.params = std::move(resolved.params);
  measured.noise = std::move(resolved.noise);
  if (measured.noise) measured.text = noise_text(*measured.noise, spec(), iso);
  return measured;
}

// A page in memory is measured where it lies, all of it at once.
Resolved OpenedFile::resolve_page(PageRows& rows, int page, const NoiseModelOptions& options) {
  if (order_ && !spec().is_volume()) {  // the first slice of a volume may be empty: all are looked at
    VolumeInput volumes(in_order_of_volumes(open_input(path_, settings_.open), *order_), order_->depth);
    volumes.select_page(page / order_->depth);
    return resolve_with_noise(*params_, volumes, volume_spec(spec(), order_->depth), options);
  }
  if (rows.held().bytes() == 0) return resolve_with_noise(*params_, rows, spec(), options);
  ConstImageView view = rows.held().view();
  view.spec = spec();  // with the given white level and channels
  return resolve_with_noise(*params_, view, options);
}

Visibility OpenedFile::visibility(const NoiseModelEstimate& noise, const ImageSpec& written) const {
  if (!is_noise(noise, spec())) return Visibility::none;
  const NoiseHandling& asked = params_->noise();
  const bool more = asked.strength > 1 || asked.luminance > 1 || asked.chroma > 1;
  return !more && is_too_weak(noise, spec(), written) ? Visibility::too_weak : Visibility::visible;
}

// --noise poisson-gaussian: a line through the variances of this page.
void OpenedFile::measure_line(PageRows& rows, MeasuredPage& measured) {
  const Image pixels = rows.all();
  ConstImageView view = pixels.view();
  view.spec = spec();        // with the given white level and channels
  if (spec().is_volume()) {  // its slices, one below the other
    view.spec = slice_spec(spec());
    view.spec.height *= spec().height;
    view.strides = interleaved_strides(view.spec);
  }
  // The estimate's own lines are fitted to more levels, but it has them only where it is certain of them.
  std::vector<PoissonGaussian> lines =
      estimate_noise_model(view, {.threads = settings_.options.threads}).lines;
  if (lines.empty()) lines = fit_poisson_gaussian(view);
  NoiseHandling handling = settings_.noise.for_image(spec());
  handling.model = std::make_shared<const NoiseModel>(poisson_gaussian_model(spec(), lines));
  params_->set_noise(std::move(handling));
  const double scale = 255 / spec().white();
  measured.line_found = std::any_of(lines.begin(), lines.end(),
                                    [](const PoissonGaussian& line) { return line.a > 0 || line.b > 0; });
  measured.text = fmt::format("gain {:.3g}, read noise {:.3g} of 255 (poisson-gaussian, measured)",
                              lines[0].a * scale, std::sqrt(lines[0].b) * scale);
}

// --noise rician: its sigma in this volume, or page.
void OpenedFile::measure_rician(PageRows& rows, MeasuredPage& measured) {
  const ImageSpec slice = spec().is_volume() ? slice_spec(spec()) : spec();
  RicianEstimator estimator(settings_.noise.coils());
  std::vector<float> samples(static_cast<std::size_t>(slice.width) * slice.height);
  ImageSpec lines = spec();
  lines.height = spec().is_volume() ? 1 : slice.height;
  Image held(lines);
  for (int z = 0; z < spec().height; z += lines.height) {
    rows.read_rows(z, held.view());
    ConstImageView view = held.view();
    view.spec = slice;
    view.strides = interleaved_strides(slice);
    for (int channel = 0; channel < slice.colour_channels(); ++channel) {
      for (int y = 0; y < slice.height; ++y)
        load_row(view, y, channel, samples.data() + static_cast<std::ptrdiff_t>(y) * slice.width);
      estimator.add_slice(samples.data(), slice.width, slice.height, slice.width);
    }
  }
  const RicianEstimate found = estimator.finish();
  if (!(found.sigma > 0)) {
    throw Error(ErrorCode::io, fmt::format("{}: --noise rician: no noise could be measured; --sigma tells it",
                                           shown_input(path_)));
  }
  NoiseHandling handling = settings_.noise.for_image(spec());
  handling.rician = Rician{found.sigma, settings_.noise.coils()};
  params_->set_noise(std::move(handling));
  measured.text = fmt::format("{:.3g} of 255 (rician, measured in the {})",
                              found.sigma * 255 / spec().white(), name(found.source));
}

}  // namespace ungrain::cli
