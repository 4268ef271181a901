#include "denoise_file.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "arguments.h"
#include "clipping.h"
#include "denoise_raw.h"
#include "io/failure.h"
#include "opened_file.h"
#include "page_rows.h"
#include "page_slices.h"
#include "platform/processes.h"
#include "signals.h"
#include "streams.h"
#include "ungrain/error.h"
#include "ungrain/memory.h"
#include "ungrain/version.h"
#include "ungrain/volume.h"
#include "volume_file.h"
#include "volume_parts.h"

namespace ungrain::cli {
namespace {

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
    opened_.emplace(files.input, method, settings, limit);
    outcome_.in = opened_->info();
    outcome_.range_from = opened_->range_from();
    along_pages_ = order() && !spec().is_volume() && outcome_.in.pages > 1;
    progress.set_pixels(static_cast<double>(spec().width) * spec().height * outcome_.in.pages);
    options_ = settings.options;
    options_.progress = [this, told = settings.options.progress](double fraction) {
      const double done = (page_ + fraction * (along_pages_ ? pages_of_sequence() : 1)) / outcome_.in.pages;
      progress_.update(done);
      if (told) told(done);
    };
    options_.images *= outcome_.in.pages;
    choice_ = gpu.choose(opened_->params(), spec(), options_);
    const std::uint64_t page_bytes = static_cast<std::uint64_t>(spec().width) * spec().height *
                                     spec().channels * bytes_per_sample(spec().type);
    const std::uint64_t decoding = input().decoding_bytes();
    hold_ = opened_->params().needs_image() &&
            page_bytes <= (limit - std::min<std::uint64_t>(limit, decoding)) / 4;
    if (options_.memory > 0) {
      const std::uint64_t taken = decoding + (hold_ ? page_bytes : 0);
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
    if (auto* raw = dynamic_cast<io::RawFile*>(&input())) return run_raw(*raw, result);
    outcome_.out = output_info(outcome_.in, result.path(), settings_);
    if (order() && !outcome_.out.volume) {
      const auto spacing = voxel_spacing(outcome_.in).value_or(std::array{1.0, 1.0, 1.0});
      outcome_.out.volume = {.depth = order()->depth, .spacing = spacing};
    }
    outcome_.not_kept = io::metadata_not_kept(result.path(), info_of_pages(outcome_.out), opened_->file());
    prepare_page();
    if ((!outcome_.noise_found || outcome_.noise_too_weak) && can_copy(result.path())) {
      io::copy_file(files_.input, opened_->file(), result.path());
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
  io::InputFile& input() { return opened_->input(); }
  const std::optional<io::PageOrder>& order() const { return opened_->order(); }

  // Pages that a method along slices takes for one sequence.
  int pages_of_sequence() const { return order() ? order()->depth : outcome_.in.pages; }

  // An output's description where pages became slices of volumes.
  static io::FileInfo info_of_pages(const io::FileInfo& info) {
    return info.spec.is_volume() ? info_of_slices(info) : info;
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
    const MethodParams params = params_for_mosaic(opened_->params(), settings_, shown_input(files_.input));
    take_chosen_device();
    outcome_.parts.start("filter");
    denoise_raw(file, result.path(), params, options_, settings_, outcome_);
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

  // The page's rows and a denoiser for them: every page has noise of its own, except where the method looks
  // along the pages.
  void prepare_page() {
    if (options_.cancel.cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    outcome_.parts.start("decode");
    rows_ = std::make_unique<PageRows>(input(), hold_);
    outcome_.parts.start("measure");
    if (page_ > 0 && !opened_->pages_differ()) return;
    const MeasuredPage measured = opened_->measure(*rows_, page_);
    if (page_ == 0) outcome_.noise = measured.text;
    outcome_.noise_found = outcome_.noise_found && measured.line_found;
    const bool first_of_several = page_ == 0 && outcome_.in.pages > 1 && !order();
    if (first_of_several) {  // only a denoiser tells whether it looks along them
      make_denoiser(measured.params);
      along_pages_ = denoiser_->reach().slices() > 1;
    }
    if (is_left(measured)) {
      make_denoiser(without_effect(measured.params));
      return;
    }
    const NoiseHandling& noise = measured.params.noise();
    outcome_.undone_at_black = outcome_.undone_at_black || noise.cut_at_black;
    outcome_.undone_at_white = outcome_.undone_at_white || noise.cut_at_white;
    if (!first_of_several) make_denoiser(measured.params);
  }

  // Whether the noise found on this page, or in this volume, is too weak to filter it. Other pages of the
  // file may be filtered.
  bool is_left(const MeasuredPage& measured) {
    if (!measured.noise) return false;
    if (along_pages_ && !order()) return false;  // the pages behind the first may have more noise
    const Visibility noise = opened_->visibility(*measured.noise, outcome_.out.spec);
    const bool found = noise != Visibility::none;
    const bool weak = noise == Visibility::too_weak;
    outcome_.noise_found = found || (page_ > 0 && outcome_.noise_found);
    outcome_.noise_too_weak = weak && (page_ == 0 || outcome_.noise_too_weak);
    return !found || weak;
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
           io::can_write(output, nullptr) && outcome_.in.gzip == io::is_gzip_name(output);
  }

  void filter(const fs::path& path) {
    io::SaveOptions save = settings_.save;
    if (!settings_.open.pages.all()) save.pages = input().selected_pages();
    std::unique_ptr<io::OutputFile> output =
        io::OutputFile::create(path, info_of_pages(outcome_.out), &opened_->file(), save);
    const bool by_volume = io::is_format(path, "NIfTI");  // its own order
    if (order() && !by_volume) {
      output = from_order_of_volumes(std::move(output), *order(), info_of_pages(outcome_.out), path);
    }
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
    input().check_unchanged();
    output->commit();
  }

  void filter_each_page(io::OutputFile& output, RowWriter& writer, const ImageSpec& written_spec) {
    for (; page_ < outcome_.in.pages; ++page_) {
      if (page_ > 0) {
        input().select_page(page_);
        output.next_page();
        prepare_page();
      }
      outcome_.parts.start("filter");
      Report report = in_parts_ ? denoise_in_parts(*in_parts_, spec(), options_,
                                                   dynamic_cast<VolumeInput&>(input()), writer, written_spec)
                                : denoiser_->run(*rows_, writer, written_spec);
      outcome_.report = added_up(std::move(report), outcome_.report);
    }
  }

  // Each volume is a sequence with noise of its own; pages that are no slices are one sequence.
  void filter_along_pages(io::OutputFile& output, RowWriter& writer, const ImageSpec& written_spec) {
    PageWriter results(output, writer, outcome_.in, [this](double fraction) { progress_.update(fraction); });
    for (; page_ < outcome_.in.pages; page_ += pages_of_sequence()) {
      if (page_ > 0) {
        input().select_page(page_);
        prepare_page();
      }
      rows_.reset();  // the page that may have been held to measure its noise
      PageReader pages(input(), page_, pages_of_sequence());
      results.begin_sequence(page_);
      outcome_.parts.start("filter");
      Report report = denoiser_->run(pages, results, written_spec);
      outcome_.report = added_up(std::move(report), outcome_.report);
    }
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
  std::optional<OpenedFile> opened_;
  bool hold_ = false;
  int page_ = 0;
  bool along_pages_ = false;  // the method looks at the pages before and after, or may: pages_of_sequence()
  std::unique_ptr<PageRows> rows_;
  DenoiserPool::Loan denoiser_;
  std::optional<MethodParams> in_parts_;  // instead of the denoiser: slices do not fit the memory
};

}  // namespace

void prepare_gpu_start(std::size_t files) {
  // CUDA makes 8 queues when it starts and frees them when it ends, which is most of that time. The work of
  // one file is as fast with one, that of several files with two (docs/speed.md).
  platform::set_default_environment("CUDA_DEVICE_MAX_CONNECTIONS", files == 1 ? "1" : "2");
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
  if (!settings.open.series.empty()) text += fmt::format(" series={}", settings.open.series);
  if (settings.channels != "auto") text += fmt::format(" channels={}", settings.channels);
  if (settings.volume) text += " volume";
  if (settings.slices) text += fmt::format(" slices={}", *settings.slices);
  if (settings.spacing)
    text += fmt::format(" spacing={},{},{}", (*settings.spacing)[0], (*settings.spacing)[1],
                        (*settings.spacing)[2]);
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
