#include "denoise_file.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "clipping.h"
#include "core/convert.h"
#include "core/memory.h"
#include "denoise_raw.h"
#include "io/exif_iso.h"
#include "io/failure.h"
#include "noise/stabilize.h"
#include "noise_text.h"
#include "page_rows.h"
#include "page_slices.h"
#include "signals.h"
#include "streams.h"
#include "ungrain/error.h"
#include "ungrain/version.h"
#include "ungrain/volume.h"
#include "volume_file.h"
#include "volume_parts.h"
#include "white_level.h"

namespace ungrain::cli {
namespace {

// The output's type and white level. A type that was asked for is never replaced; otherwise the format may
// replace it.
io::FileInfo output_info(const io::FileInfo& in, const fs::path& path, const Settings& settings) {
  io::FileInfo out = in;
  out.spec.type = settings.depth.value_or(io::writable_type(path, in.spec));
  // Another type has its own white level. Floats have none.
  const bool both_float = is_float(out.spec.type) && is_float(in.spec.type);
  if (out.spec.type != in.spec.type && !both_float) out.spec.range = 0;
  // Viewers of photographs take the type's white for white.
  if (!is_float(out.spec.type) && !io::keeps_white_level(path)) out.spec.range = 0;
  return out;
}

// The report of a page, with the times of the pages before it.
Report added_up(Report page, const Report& before) {
  page.nonfinite_pixels += before.nonfinite_pixels;
  page.ms += before.ms;
  for (const StageTime& earlier : before.stages) {  // a page with other noise may lack some of these stages
    const auto same = std::find_if(page.stages.begin(), page.stages.end(),
                                   [&](const StageTime& stage) { return stage.name == earlier.name; });
    if (same != page.stages.end()) {
      same->ms += earlier.ms;
    } else {
      page.stages.push_back(earlier);
    }
  }
  return page;
}

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
        at_any_level = std::max(at_any_level, ChannelDeviation(found.model, spec, c).at(level));
    }
  }
  return largest_deviation(found) < step / 2 && at_any_level < step;
}

// Parameters that leave the image as it is.
MethodParams without_effect(MethodParams params) {
  NoiseHandling handling = params.noise();
  handling.keep_grain = 1;
  params.set_noise(std::move(handling));
  return params;
}

// One run over one file.
class FileRun {
 public:
  FileRun(const FilePair& files, const MethodOptions& method, const Settings& settings,
          ProgressBar::File& progress, DenoiserPool& pool, GpuStart& gpu)
      : files_(files),
        settings_(settings),
        progress_(progress),
        pool_(pool),
        start_(std::chrono::steady_clock::now()) {
    outcome_.parts.start("open");
    const std::size_t limit = memory_limit();
    io::OpenOptions open = settings.open;
    open.memory = limit;
    input_ = open_input(files.input, open);
    if (settings.volume) depth_ = volume_depth(input_->info(), settings.slices, shown_input(files.input));
    const bool solid = settings.volume && !looks_along_slices(method.words().method);
    if (solid) input_ = std::make_unique<VolumeInput>(std::move(input_), depth_);
    describe();
    progress.set_pixels(static_cast<double>(spec().width) * spec().height * outcome_.in.pages);
    params_ = method.for_image(spec());
    if (settings.volume) set_depth(method);
    params_->set_noise(settings.noise.for_image(spec()));
    options_ = settings.options;
    options_.cancel = interrupted();
    options_.progress = [this](double fraction) {
      progress_.update(along_pages_ ? fraction : (page_ + fraction) / outcome_.in.pages);
    };
    options_.images *= outcome_.in.pages;
    choice_ = gpu.choose(*params_, spec(), options_);
    const std::uint64_t page_bytes = static_cast<std::uint64_t>(spec().width) * spec().height *
                                     spec().channels * bytes_per_sample(spec().type);
    hold_ = params_->needs_image() &&
            page_bytes <= (limit - std::min<std::uint64_t>(limit, input_->decoding_bytes())) / 4;
    if (options_.memory > 0) {
      const std::uint64_t taken = input_->decoding_bytes() + (hold_ ? page_bytes : 0);
      options_.memory -= std::min<std::uint64_t>(options_.memory - 1, taken);
    }
  }

  Outcome run() {
    try {
      return run_on_device();
    } catch (const Error& error) {
      const bool chosen = settings_.options.device.kind == Device::Kind::automatic &&
                          options_.device.kind == Device::Kind::cuda;
      const bool failed = error.code() == ErrorCode::device || error.code() == ErrorCode::no_device ||
                          error.code() == ErrorCode::out_of_memory;
      if (chosen && failed) throw ChosenGpuFailed(error);
      throw;
    }
  }

 private:
  Outcome run_on_device() {
    const ResultFile result(files_.output, outcome_.in.format, settings_.format);
    if (auto* raw = dynamic_cast<io::RawFile*>(input_.get())) return run_raw(*raw, result);
    outcome_.out = output_info(outcome_.in, result.path(), settings_);
    outcome_.not_kept = io::metadata_not_kept(result.path(), info_of_pages(outcome_.out), file_of_pages());
    prepare_page();
    if ((!outcome_.noise_found || outcome_.noise_too_weak) && can_copy(result.path())) {
      io::copy_file(files_.input, file_of_pages(), result.path());
      outcome_.copied = true;
      outcome_.not_kept = "";
    } else {
      filter(result.path());
    }
    outcome_.parts.start("finish");
    result.deliver();
    const MethodParams& used = in_parts_ ? *in_parts_ : denoiser_->params();
    outcome_.method = used.method();
    for (const ParamInfo& info : method_info(outcome_.method).params)
      outcome_.params.emplace_back(info.name, used.get_text(info.name));
    if (denoiser_) denoiser_.give_back();
    outcome_.parts.stop();
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return outcome_;
  }

  const ImageSpec& spec() const { return outcome_.in.spec; }

  // The file as it is, and an output's description for it, where pages became slices of volumes.
  io::InputFile& file_of_pages() {
    auto* const volumes = dynamic_cast<VolumeInput*>(input_.get());
    return volumes != nullptr ? volumes->slices() : *input_;
  }
  static io::FileInfo info_of_pages(const io::FileInfo& info) {
    return info.spec.is_volume() ? info_of_slices(info) : info;
  }

  // What of the parameters follows the voxels' shape and was not given: methods of volumes look as far along
  // z as along x.
  void set_depth(const MethodOptions& method) {
    std::array<double, 3> spacing = {1, 1, 1};
    if (outcome_.in.volume) spacing = outcome_.in.volume->spacing;
    const double aspect = voxel_aspect(settings_.spacing.value_or(spacing));
    const auto set = [&](const char* name, const char* from, double most) {
      if (!method.given(name).empty()) return;
      const double value = std::get<double>(params_->get(from)) / aspect;
      params_->set(name, std::min(most, most > 16.5 ? value : std::round(value)));
    };
    const std::string& chosen = method.words().method;
    if (chosen == "box") set("radius_z", "radius", 16);
    if (chosen == "gaussian") set("sigma_z", "sigma", 21);
    if (chosen == "median" || chosen == "bilateral") set("radius_t", "radius", 16);
    if (!looks_along_slices(chosen) && method.given("aspect").empty()) params_->set("aspect", aspect);
  }

  // What GpuStart has chosen. Called before the options are first used for filtering.
  void take_chosen_device() {
    if (!choice_.valid()) return;
    const DeviceChoice choice = choice_.get();
    if (options_.device.kind != Device::Kind::automatic) return;
    options_.device = choice.device;
    outcome_.choice = choice.reason;
  }

  Outcome run_raw(io::RawFile& file, const ResultFile& result) {
    if (settings_.range || settings_.channels != "auto") {
      throw Error(ErrorCode::io,
                  fmt::format("{}: a camera raw file tells its white level and its channels: {} is "
                              "not for it",
                              shown_input(files_.input), settings_.range ? "--range" : "--channels"));
    }
    if (params_->noise().clipping == Clipping::everywhere) {
      throw Error(ErrorCode::io,
                  fmt::format("{}: --clipping undo is not for camera raw files", shown_input(files_.input)));
    }
    NoiseHandling handling = params_->noise();
    handling.clipping = Clipping::keep;  // the mosaic's noise is stabilised as a whole
    params_->set_noise(std::move(handling));
    take_chosen_device();
    outcome_.parts.start("filter");
    denoise_raw(file, result.path(), *params_, options_, settings_, outcome_);
    outcome_.parts.start("finish");
    result.deliver();
    outcome_.parts.stop();
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return outcome_;
  }

  std::size_t memory_limit() const {
    return settings_.options.memory > 0 ? settings_.options.memory
                                        : std::max<std::size_t>(1, free_memory() / 2);
  }

  void describe() {
    outcome_.in = input_->info();
    if (settings_.open.alpha) set_alpha(files_.input, outcome_.in, *settings_.open.alpha, outcome_.in.spec);
    set_channels(files_.input, settings_.channels, outcome_.in.spec);
    const WhiteLevel white =
        settings_.range ? WhiteLevel{*settings_.range, "--range"} : find_white_level(*input_, outcome_.in);
    outcome_.in.spec.range = white.range;
    outcome_.range_from = white.from;
  }

  // The page's rows and a denoiser for them: every page has noise of its own, except where the method looks
  // along the pages.
  void prepare_page() {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    outcome_.parts.start("decode");
    rows_ = std::make_unique<PageRows>(*input_, hold_);
    outcome_.parts.start("measure");
    const bool measures_line = settings_.noise.measures_line();
    if (page_ > 0 && !params_->needs_image() && !measures_line && !settings_.noise.measures_rician()) return;
    if (measures_line) set_measured_line();
    if (settings_.noise.measures_rician()) set_measured_rician();
    const std::optional<double> iso = io::iso_speed(input_->metadata());
    const Resolved resolved = resolve_page(
        {.iso = iso, .threads = settings_.options.threads, .jpeg_steps = input_->metadata().jpeg_steps});
    const bool first_of_several = page_ == 0 && outcome_.in.pages > 1;
    if (first_of_several && !spec().is_volume()) {  // only a denoiser tells whether it looks along them
      make_denoiser(resolved.params);
      along_pages_ = denoiser_->reach().slices() > 1;
    }
    if (resolved.noise && is_left(*resolved.noise, iso)) {
      make_denoiser(without_effect(resolved.params));
      return;
    }
    const NoiseHandling& noise = resolved.params.noise();
    outcome_.undone_at_black = outcome_.undone_at_black || noise.cut_at_black;
    outcome_.undone_at_white = outcome_.undone_at_white || noise.cut_at_white;
    if (!first_of_several || spec().is_volume()) make_denoiser(resolved.params);
  }

  // A page in memory is measured where it lies, all of it at once.
  Resolved resolve_page(const NoiseModelOptions& options) {
    if (depth_ > 0 && !spec().is_volume()) {  // the first slice of a volume may be empty: all are looked at
      VolumeInput volume(open_input(files_.input, settings_.open), depth_);
      return resolve_with_noise(*params_, volume, volume_spec(spec(), depth_), options);
    }
    if (rows_->held().bytes() == 0) return resolve_with_noise(*params_, *rows_, spec(), options);
    ConstImageView view = rows_->held().view();
    view.spec = spec();  // with the given white level and channels
    return resolve_with_noise(*params_, view, options);
  }

  // Whether the noise found on this page is too weak to filter it. Other pages of the file may be filtered.
  bool is_left(const NoiseModelEstimate& measured, std::optional<double> iso) {
    if (page_ == 0) outcome_.noise = noise_text(measured, spec(), iso);
    if (along_pages_) return false;  // the pages behind the first may have more noise
    const NoiseHandling& asked = params_->noise();
    const bool more = asked.strength > 1 || asked.luminance > 1 || asked.chroma > 1;
    const bool found = is_noise(measured, spec());
    const bool weak = found && !more && is_too_weak(measured, spec(), outcome_.out.spec);
    outcome_.noise_found = found || (page_ > 0 && outcome_.noise_found);
    outcome_.noise_too_weak = weak && (page_ == 0 || outcome_.noise_too_weak);
    return !found || weak;
  }

  // --noise poisson-gaussian: a line through the variances of this page.
  void set_measured_line() {
    const Image pixels = rows_->all();
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
    outcome_.noise_found = outcome_.noise_found &&
                           std::any_of(lines.begin(), lines.end(),
                                       [](const PoissonGaussian& line) { return line.a > 0 || line.b > 0; });
    if (page_ == 0)
      outcome_.noise = fmt::format("gain {:.3g}, read noise {:.3g} of 255 (poisson-gaussian, measured)",
                                   lines[0].a * scale, std::sqrt(lines[0].b) * scale);
  }

  // --noise rician: its sigma in this volume, or page.
  void set_measured_rician() {
    const ImageSpec slice = spec().is_volume() ? slice_spec(spec()) : spec();
    RicianEstimator estimator(settings_.noise.coils());
    std::vector<float> samples(static_cast<std::size_t>(slice.width) * slice.height);
    ImageSpec lines = spec();
    lines.height = spec().is_volume() ? 1 : slice.height;
    Image held(lines);
    for (int z = 0; z < spec().height; z += lines.height) {
      rows_->read_rows(z, held.view());
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
      throw Error(ErrorCode::io,
                  fmt::format("{}: --noise rician: no noise could be measured; --sigma tells it",
                              shown_input(files_.input)));
    }
    NoiseHandling handling = settings_.noise.for_image(spec());
    handling.rician = Rician{found.sigma, settings_.noise.coils()};
    params_->set_noise(std::move(handling));
    if (page_ == 0) {
      outcome_.noise = fmt::format("{:.3g} of 255 (rician, measured in the {})",
                                   found.sigma * 255 / spec().white(), name(found.source));
    }
  }

  void make_denoiser(const MethodParams& resolved) {
    outcome_.parts.start("prepare");
    take_chosen_device();
    try {
      pool_.lend(denoiser_, resolved, spec(), options_);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::out_of_memory && spec().is_volume()) {
        in_parts_ = resolved;
        return;
      }
      const std::size_t taken = settings_.options.memory - options_.memory;
      const bool halves = resolved.method() == "bm3d" && resolved.get_text("scales") == "2";
      if (error.code() != ErrorCode::out_of_memory || (taken == 0 && !halves)) throw;
      std::string message = error.what();
      if (taken > 0) {
        message += fmt::format(": {} of --memory {} are the decoder's and the page's", bytes_text(taken),
                               bytes_text(settings_.options.memory));
      }
      if (halves) message += "; --scales 1 needs less";
      throw Error(error.code(), message);
    }
  }

  // Whether the input's bytes are the result: nothing was to be done and nothing else was asked for.
  bool can_copy(const fs::path& output) const {
    const bool same_type = outcome_.out.spec.type == spec().type;
    const bool plain = !settings_.save.compression && !settings_.quality_given &&
                       settings_.open.pages.all() && settings_.channels == "auto" && !settings_.open.alpha;
    // Floats may contain a NaN, which --nonfinite handles.
    return outcome_.in.pages == 1 && same_type && plain && !is_float(spec().type) && !outcome_.in.turned &&
           files_.input != stream_name && io::is_format(output, outcome_.in.format) &&
           outcome_.in.gzip == io::is_gzip_name(output);
  }

  void filter(const fs::path& path) {
    io::SaveOptions save = settings_.save;
    if (!settings_.open.pages.all()) save.pages = input_->selected_pages();
    std::unique_ptr<io::OutputFile> output =
        io::OutputFile::create(path, info_of_pages(outcome_.out), &file_of_pages(), save);
    if (spec().is_volume()) output = std::make_unique<VolumeOutput>(std::move(output));
    const bool watched = is_float(spec().type) && !is_float(outcome_.out.spec.type) && !settings_.range;
    ImageSpec watched_spec = spec();
    watched_spec.type = PixelType::f32;
    ClippingWriter clipping(*output, watched_spec, outcome_.out.spec);
    RowWriter& writer = watched ? static_cast<RowWriter&>(clipping) : *output;
    const ImageSpec& written_spec = watched ? watched_spec : outcome_.out.spec;
    if (along_pages_) {
      filter_along_pages(*output, writer, written_spec);
    } else {
      filter_each_page(*output, writer, written_spec);
    }
    outcome_.parts.start("finish");
    check_clipping(clipping);
    input_->check_unchanged();
    output->commit();
  }

  void filter_each_page(io::OutputFile& output, RowWriter& writer, const ImageSpec& written_spec) {
    for (; page_ < outcome_.in.pages; ++page_) {
      if (page_ > 0) {
        input_->select_page(page_);
        output.next_page();
        prepare_page();
      }
      outcome_.parts.start("filter");
      Report report = in_parts_ ? denoise_in_parts(*in_parts_, spec(), options_,
                                                   dynamic_cast<VolumeInput&>(*input_), writer, written_spec)
                                : denoiser_->run(*rows_, writer, written_spec);
      outcome_.report = added_up(std::move(report), outcome_.report);
    }
  }

  void filter_along_pages(io::OutputFile& output, RowWriter& writer, const ImageSpec& written_spec) {
    rows_.reset();  // the page that may have been held to measure its noise
    PageReader pages(*input_, depth_);
    PageWriter results(output, writer, outcome_.in, [this](double fraction) { progress_.update(fraction); });
    outcome_.parts.start("filter");
    outcome_.report = denoiser_->run(pages, results, written_spec);
  }

  void check_clipping(const ClippingWriter& clipping) const {
    constexpr double most = 0.01;
    const double below = clipping.below_black();
    const double above = clipping.above_white();
    if (below + above <= most) return;
    const auto part = [](double share, const std::string& where) {
      return share > 0 ? fmt::format("{:.0f} % of its samples lie {}", std::max(1.0, 100 * share), where)
                       : "";
    };
    const std::string dark = part(below, "below 0");
    const std::string bright = part(above, fmt::format("above white ({:g})", spec().white()));
    throw Error(
        ErrorCode::io,
        fmt::format("{}: {}{}{}, which {} samples cannot hold: --range tells white and lets them be cut off, "
                    "--depth f32 keeps them in a format that has floats",
                    shown_input(files_.input), dark, dark.empty() || bright.empty() ? "" : " and ", bright,
                    name(outcome_.out.spec.type)));
  }

  const FilePair& files_;
  const Settings& settings_;
  ProgressBar::File& progress_;
  DenoiserPool& pool_;
  std::chrono::steady_clock::time_point start_;
  Outcome outcome_;
  Options options_;
  std::future<DeviceChoice> choice_;
  std::unique_ptr<io::InputFile> input_;
  std::optional<MethodParams> params_;
  bool hold_ = false;
  int depth_ = 0;  // slices of a volume; 0: pages are no slices
  int page_ = 0;
  bool along_pages_ = false;  // the method looks at the pages before and after: all are one sequence
  std::unique_ptr<PageRows> rows_;
  DenoiserPool::Loan denoiser_;
  std::optional<MethodParams> in_parts_;  // instead of the denoiser: slices do not fit the memory
};

}  // namespace

void prepare_gpu_start(std::size_t files) {
  // CUDA makes 8 queues when it starts and frees them when it ends, which is most of that time. The work of
  // one file is as fast with one, that of several files with two (docs/speed.md).
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", files == 1 ? "1" : "2", 0);
}

GpuStart::~GpuStart() {
  if (thread_.joinable()) thread_.join();
}

std::future<DeviceChoice> GpuStart::choose(const MethodParams& params, const ImageSpec& spec,
                                           const Options& options) {
  const auto find = [params, spec, options] {
    check_device(options.device);
    return choose_device(params, spec, options);
  };
  if (begun_.exchange(true)) return std::async(std::launch::deferred, find);
  std::promise<DeviceChoice> promise;
  std::future<DeviceChoice> choice = promise.get_future();
  thread_ = std::thread([find, promise = std::move(promise)]() mutable {
    try {
      const DeviceChoice found = find();
      promise.set_value(found);
      start_device(found.device);
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  });
  return choice;
}

void PartTimes::start(const char* part) {
  stop();
  since_ = std::chrono::steady_clock::now();
  const auto same =
      std::find_if(ms_.begin(), ms_.end(), [&](const auto& item) { return item.first == part; });
  running_ = static_cast<std::size_t>(same - ms_.begin());
  if (same == ms_.end()) ms_.emplace_back(part, 0.0);
}

void PartTimes::stop() {
  if (!since_) return;
  const auto now = std::chrono::steady_clock::now();
  ms_[running_].second += std::chrono::duration<double, std::milli>(now - *since_).count();
  since_.reset();
}

std::string settings_text(const Settings& settings, const MethodOptions& method) {
  const MethodParams params = method.read();
  std::string text = fmt::format("ungrain {} {}", UNGRAIN_VERSION, params.method());
  for (const ParamInfo& info : method_info(params.method()).params) {
    text += fmt::format(" {}={}", info.name, params.get_text(info.name));
  }
  text += method.images_text();
  text += settings.noise.text();
  text += fmt::format(" device={}", name(settings.options.device));
  text += fmt::format(" range={} depth={} nonfinite={}", settings.range.value_or(0),
                      settings.depth ? name(*settings.depth) : "same",
                      static_cast<int>(settings.options.nonfinite));
  if (settings.open.axis) text += fmt::format(" axis={}", *settings.open.axis);
  if (!settings.open.dataset.empty()) text += fmt::format(" dataset={}", settings.open.dataset);
  if (settings.open.alpha) text += fmt::format(" alpha={}", *settings.open.alpha);
  if (!settings.open.pages.all()) text += fmt::format(" pages={}", settings.open.pages.text());
  if (settings.channels != "auto") text += fmt::format(" channels={}", settings.channels);
  if (settings.quality_given) text += fmt::format(" quality={}", settings.save.quality);
  if (settings.save.compression)
    text += fmt::format(" compression={}", static_cast<int>(*settings.save.compression));
  return text;
}

Outcome denoise_file(const FilePair& files, const MethodOptions& method, const Settings& settings,
                     ProgressBar::File& progress, DenoiserPool& pool, GpuStart& gpu) {
  return FileRun(files, method, settings, progress, pool, gpu).run();
}

}  // namespace ungrain::cli
