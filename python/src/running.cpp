#include "running.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ungrain/error.h"
#include "ungrain/estimate.h"

namespace nb = nanobind;

namespace ungrain::python {
namespace {

bool on_gpu(const ConstImageView& view) { return view.space.memory == Space::Memory::cuda; }

void check_fit(const InputImages& in, const OutputImages& out) {
  if (in.shape != out.shape) throw Error(ErrorCode::invalid_argument, "out has another shape than the image");
  if (in.first.space != out.first.space)
    throw Error(ErrorCode::invalid_argument,
                "out lies elsewhere than the image: both on the host, or on one GPU");
}

// An output of another type has that type's own white level.
ImageView output_at(const OutputImages& out, std::size_t index, PixelType in_type) {
  ImageView view = out.at(index);
  if (view.spec.type != in_type) view.spec.range = 0;
  return view;
}

Report run_one(ungrain::Denoiser& denoiser, const ConstImageView& in, const ImageView& out, Stream stream) {
  // With another device, run() reports that the image lies on a GPU.
  if (!on_gpu(in) || denoiser.device().kind != Device::Kind::cuda) return denoiser.run(in, out);
  denoiser.run_async(in, out, stream);
  Report report;
  report.device = denoiser.device();
  return report;
}

// How many images, from one that starts a sequence on, are one run's.
std::size_t images_together(const ungrain::Denoiser& denoiser, const InputImages& in) {
  return looks_along_stacks(denoiser) ? in.sequence : 1;
}

Report run_images(ungrain::Denoiser& denoiser, const InputImages& in, const OutputImages& out,
                  std::size_t first, std::size_t count, Stream stream) {
  const PixelType type = in.first.spec.type;
  if (count == 1) return run_one(denoiser, in.at(first), output_at(out, first, type), stream);
  if (on_gpu(in.first) && denoiser.device().kind == Device::Kind::cuda) throw StackOnGpu();
  std::vector<ConstImageView> images;
  std::vector<ImageView> results;
  for (std::size_t index = first; index < first + count; ++index) {
    images.push_back(in.at(index));
    results.push_back(output_at(out, index, type));
  }
  return denoiser.run(images, results);
}

// An image of which only the sampled rows and columns are there.
class SampledRows : public RowReader {
 public:
  SampledRows(const ConstImageView& sampled, std::vector<int> rows, std::vector<int> columns)
      : sampled_(sampled), rows_(std::move(rows)), columns_(std::move(columns)) {}

  void read_rows(int first, const ImageView& rows) override {
    const auto begin = std::lower_bound(rows_.begin(), rows_.end(), first);
    for (auto row = begin; row != rows_.end() && *row < first + rows.spec.height; ++row) {
      for (int channel = 0; channel < rows.spec.channels; ++channel)
        copy(static_cast<int>(row - rows_.begin()), channel, rows.rows(*row - first, 1));
    }
  }

 private:
  void copy(int sampled_row, int channel, const ImageView& row) const {
    const int sample = bytes_per_sample(row.spec.type);
    const auto* from = static_cast<const std::byte*>(sampled_.data) + sampled_row * sampled_.strides.y +
                       channel * sampled_.strides.channel;
    auto* to = static_cast<std::byte*>(row.data) + channel * row.strides.channel;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      std::memcpy(to + columns_[i] * row.strides.x,
                  from + static_cast<std::ptrdiff_t>(i) * sampled_.strides.x,
                  static_cast<std::size_t>(sample));
    }
  }

  ConstImageView sampled_;
  std::vector<int> rows_;
  std::vector<int> columns_;
};

// A volume of which only some slices are there.
class SampledSlices : public RowReader {
 public:
  SampledSlices(const ConstImageView& sampled, const std::vector<int>& slices)
      : sampled_(sampled), slices_(slices) {}

  void read_rows(int first, const ImageView& rows) override {
    for (int z = 0; z < rows.spec.height; ++z) {
      const auto found = std::find(slices_.begin(), slices_.end(), first + z);
      if (found == slices_.end())
        throw Error(ErrorCode::internal, "a slice that is measured is not among the sampled ones");
      copy(sampled_.rows(static_cast<int>(found - slices_.begin()), 1), rows.rows(z, 1));
    }
  }

 private:
  static void copy(const ConstImageView& from, const ImageView& to) {
    const auto bytes = static_cast<std::size_t>(bytes_per_sample(to.spec.type));
    for (int x = 0; x < to.spec.width; ++x) {
      for (int c = 0; c < to.spec.channels; ++c) {
        std::memcpy(static_cast<std::byte*>(to.data) + x * to.strides.x + c * to.strides.channel,
                    static_cast<const std::byte*>(from.data) + x * from.strides.x + c * from.strides.channel,
                    bytes);
      }
    }
  }

  const ConstImageView& sampled_;
  const std::vector<int>& slices_;
};

// Allows only one run at a time.
class RunLock {
 public:
  explicit RunLock(std::atomic_flag& flag) : flag_(flag) {
    if (flag_.test_and_set()) {
      throw Error(ErrorCode::invalid_argument,
                  "this Denoiser is at work in another thread: each thread takes its own, by clone()");
    }
  }
  ~RunLock() { flag_.clear(); }
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

// Python's or NumPy's False; None and anything else that a function may return let the work go on.
bool says_stop(nb::handle answer) {
  if (answer.is(Py_False)) return true;
  const nb::str module(answer.type().attr("__module__"));
  const nb::str name(answer.type().attr("__qualname__"));
  const std::string_view type = name.c_str();
  return std::string_view(module.c_str()) == "numpy" && (type == "bool" || type == "bool_") &&
         PyObject_IsTrue(answer.ptr()) == 0;
}

// For an unset sigma: the measured level without a noise model, which would need every pixel.
MethodParams with_level(MethodParams params, const NoiseEstimate& noise) {
  for (const ParamInfo& info : method_info(params.method()).params) {
    const ParamValue value = params.get(info.name);
    if (info.fallback != Fallback::automatic || !std::holds_alternative<std::monostate>(value)) continue;
    if (info.name == "correlation") {
      params.set(info.name, noise.correlation);
    } else if (info.kind == ParamKind::per_channel) {
      params.set(info.name, noise.channels);
    } else {
      params.set(info.name, noise.sigma);
    }
  }
  return params;
}

}  // namespace

void Listener::listen(nb::handle callback, std::size_t images) {
  callback_ = nb::borrow(callback);
  images_ = images;
  begin_images(0, 1);
  raised_ = nullptr;
}

void Listener::forget() {
  callback_ = nb::none();
  raised_ = nullptr;
}

void Listener::tell(double fraction) {
  if (stopped()) return;
  const nb::gil_scoped_acquire lock;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (callback_.is_none()) return;
    const double images = static_cast<double>(image_) + fraction * static_cast<double>(count_);
    const double done = images / static_cast<double>(images_);
    if (says_stop(callback_(done))) token_.cancel();
  } catch (...) {
    raised_ = std::current_exception();
    token_.cancel();
  }
}

void Listener::rethrow() {
  if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
}

bool looks_along_stacks(const ungrain::Denoiser& denoiser) { return denoiser.reach().slices() > 1; }

Options options_of(const std::string& device, int threads, std::size_t memory, const std::string& nonfinite) {
  Options options;
  options.device = parse_device(device);
  options.threads = threads;
  options.memory = memory;
  if (nonfinite == "fill") {
    options.nonfinite = NonFinite::fill;
  } else if (nonfinite == "keep") {
    options.nonfinite = NonFinite::keep;
  } else if (nonfinite == "error") {
    options.nonfinite = NonFinite::error;
  } else {
    throw Error(ErrorCode::invalid_argument,
                "nonfinite takes one of fill, keep, error, got '" + nonfinite + "'");
  }
  return options;
}

std::optional<MethodParams> denoise(const InputImages& in, const OutputImages& out,
                                    const InputImages* measured, const HeldParams& params, Options options,
                                    nb::handle progress, Stream stream) {
  check_fit(in, out);
  Listener listener;
  listener.listen(progress, in.offsets.size());
  options.cancel = listener.token();
  options.progress = [&listener](double fraction) { listener.tell(fraction); };
  options.images = static_cast<int>(in.offsets.size());
  std::optional<MethodParams> used;
  try {
    const nb::gil_scoped_release unlocked;
    const bool each_by_itself = params.params.needs_image();
    std::optional<ungrain::Denoiser> denoiser;
    for (std::size_t index = 0, count = 1; index < in.offsets.size(); index += count) {
      const ConstImageView image = in.at(index);
      if (!denoiser || each_by_itself) {
        const MethodParams resolved =
            resolve(params.params, measured != nullptr ? measured->at(index) : image);
        if (denoiser) {
          denoiser->set_params(resolved);
        } else {
          denoiser = ungrain::Denoiser::create(resolved, image.spec, options);
        }
        used = denoiser->params();
      }
      count = images_together(*denoiser, in);
      listener.begin_images(index, count);
      run_images(*denoiser, in, out, index, count, stream);
      if (on_gpu(image)) {
        // Other parameters take the working memory over, and it is freed with the denoiser: the GPU must be
        // done.
        if (each_by_itself || index + 1 == in.offsets.size()) denoiser->wait();
        listener.tell(1);
        if (listener.stopped()) throw Error(ErrorCode::cancelled, "cancelled");
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) listener.rethrow();
    throw;
  }
  listener.rethrow();  // raised in the last call of the callback, when the work was done
  return used;
}

MethodParams resolve_sampled(const HeldParams& params, const ImageSpec& spec, const ConstImageView& sampled) {
  const NoiseEstimator estimator(spec);
  std::vector<int> rows = estimator.sampled_rows();
  std::vector<int> columns = estimator.sampled_columns();
  ImageSpec expected = spec;
  expected.height = static_cast<int>(rows.size());
  expected.width = static_cast<int>(columns.size());
  if (sampled.spec != expected)
    throw Error(ErrorCode::invalid_argument, "the sampled rows and columns are not those of the image");
  SampledRows reader(sampled, std::move(rows), std::move(columns));
  const nb::gil_scoped_release unlocked;
  if (params.params.noise().clipping == Clipping::everywhere) {
    throw Error(ErrorCode::invalid_argument,
                "clipping='undo' needs a whole image at once, and this one comes in parts");
  }
  if (!params.params.needs_image()) return resolve_derived(params.params, spec);
  return resolve_derived(with_level(params.params, estimate_noise(reader, spec)), spec);
}

MethodParams resolve_slices(const HeldParams& params, const ImageSpec& spec, const ConstImageView& sampled,
                            const std::vector<int>& slices) {
  SampledSlices reader(sampled, slices);
  const nb::gil_scoped_release unlocked;
  return resolve(params.params, reader, spec);
}

HeldDenoiser::HeldDenoiser(const HeldParams& params, const ImageSpec& spec, const ConstImageView* measured,
                           Options options)
    : held_(params.held), options_(std::move(options)) {
  const nb::gil_scoped_release unlocked;
  make(measured != nullptr ? resolve(params.params, *measured) : params.params, spec);
}

void HeldDenoiser::make(const MethodParams& params, const ImageSpec& spec) {
  options_.cancel = listener_->token();
  options_.progress = [listener = listener_.get()](double fraction) { listener->tell(fraction); };
  denoiser_ = ungrain::Denoiser::create(params, spec, options_);
}

void HeldDenoiser::run(const InputImages& in, const OutputImages& out, nb::handle progress, Stream stream) {
  check_fit(in, out);
  const RunLock busy(busy_);
  listener_->listen(progress, in.offsets.size());
  try {
    const nb::gil_scoped_release unlocked;
    const std::size_t count = images_together(*denoiser_, in);
    for (std::size_t index = 0; index < in.offsets.size(); index += count) {
      listener_->begin_images(index, count);
      report_ = run_images(*denoiser_, in, out, index, count, stream);
      if (!on_gpu(in.first)) continue;
      if (options_.nonfinite == NonFinite::error) denoiser_->wait();
      listener_->tell(1);
      if (listener_->stopped()) throw Error(ErrorCode::cancelled, "cancelled");
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) throw;
    // A token stays set: the next run needs a new one, and a denoiser that uses it.
    listener_->renew_token();
    make(MethodParams(denoiser_->params()), ImageSpec(denoiser_->spec()));
    listener_->rethrow();
    throw;
  }
  if (listener_->stopped()) {  // in the last call of the callback, when the work was done
    listener_->renew_token();
    make(MethodParams(denoiser_->params()), ImageSpec(denoiser_->spec()));
  }
  listener_->rethrow();
  listener_->forget();
}

void HeldDenoiser::run_region(const InputImages& in, Place in_at, const OutputImages& out, Place out_at,
                              Stream stream) {
  const RunLock busy(busy_);
  listener_->listen(nb::none(), 1);
  const nb::gil_scoped_release unlocked;
  const ImageSpec& whole = denoiser_->spec();
  ConstImageView from = in.at(0);
  from.region = {in_at.x, in_at.y, whole.width, whole.height};
  ImageView to = output_at(out, 0, from.spec.type);
  to.region = {out_at.x, out_at.y, whole.width, whole.height};
  report_ = run_one(*denoiser_, from, to, stream);
  if (on_gpu(from)) denoiser_->wait();
}

void HeldDenoiser::wait() {
  const RunLock busy(busy_);
  const nb::gil_scoped_release unlocked;
  denoiser_->wait();
}

std::unique_ptr<HeldDenoiser> HeldDenoiser::clone() {
  std::unique_ptr<HeldDenoiser> other(new HeldDenoiser());
  other->held_ = held_;
  other->options_ = options_;
  const nb::gil_scoped_release unlocked;
  other->make(denoiser_->params(), denoiser_->spec());
  return other;
}

}  // namespace ungrain::python
