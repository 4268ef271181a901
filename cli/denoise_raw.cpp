#include "denoise_raw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "io/dng_output.h"
#include "io/failure.h"
#include "ungrain/error.h"
#include "ungrain/stabilizer.h"

namespace ungrain::cli {
namespace {

constexpr int channels_of_mosaic = 4;

// Orthonormal, so that noise of equal strength in all four channels stays equal and independent. Patches are
// matched by the first row, the mean of the channels.
constexpr double half = 0.5;
constexpr double root = 0.70710678118654752;
constexpr std::array<std::array<double, 4>, 4> decorrelation = {
    {{half, half, half, half}, {root, 0, 0, -root}, {half, -half, -half, half}, {0, root, -root, 0}}};
// bm3d's opponent space of rgb images: luminance and two colour differences.
const std::array<std::array<double, 3>, 3>& opponent() {
  static const double third = 1 / std::sqrt(3.0);
  static const double sixth = 1 / std::sqrt(6.0);
  static const std::array<std::array<double, 3>, 3> matrix = {
      {{third, third, third}, {root, 0, -root}, {sixth, -2 * sixth, sixth}}};
  return matrix;
}

std::size_t pixels_of(const ImageSpec& spec) { return static_cast<std::size_t>(spec.width) * spec.height; }

// Stabilises the noise of samples in place, and transforms them back.
class ChannelStabilizers {
 public:
  explicit ChannelStabilizers(const std::vector<PoissonGaussian>& noise) {
    for (const PoissonGaussian& channel : noise) stabilizers_.emplace_back(channel);
  }

  // The largest transformed value up to the white level.
  double white(const ImageSpec& spec) const {
    double largest = 0;
    for (const Stabilizer& one : stabilizers_) largest = std::max(largest, one.forward(spec.white()));
    return largest;
  }

  void forward(Image& image) const {
    each(image, [](const Stabilizer& one, double value) { return one.forward(value); });
  }
  void inverse(Image& image) const {
    each(image, [](const Stabilizer& one, double value) { return one.inverse(value); });
  }

 private:
  template <class Change>
  void each(Image& image, Change change) const {
    float* sample = image.samples<float>();
    for (std::size_t i = 0; i < pixels_of(image.spec()); ++i) {
      for (const Stabilizer& one : stabilizers_) {
        *sample = static_cast<float>(change(one, *sample));
        ++sample;
      }
    }
  }

  std::vector<Stabilizer> stabilizers_;
};

// One run over one file's samples.
class RawRun {
 public:
  RawRun(io::RawFile& file, const MethodParams& params, const Options& options, Outcome& outcome)
      : file_(file),
        params_(params),
        resolved_(params),
        options_(options),
        outcome_(outcome),
        samples_(file.info().spec) {
    file.read_rows(0, samples_.view());
  }

  // Resolved, if anything was filtered.
  const MethodParams& params() const { return resolved_; }

  Image filtered() {
    if (params_.needs_image()) {
      filter_evened();
    } else {
      filter_as_told();
    }
    return std::move(samples_);
  }

 private:
  // Filters with the noise that the file gives, or else measured.
  void filter_evened() {
    const bool told = !file_.raw().noise.empty();
    std::vector<PoissonGaussian> noise = told ? file_.raw().noise : fit_poisson_gaussian(samples_.view());
    const bool limited = !told && limit_by_iso(noise);
    outcome_.noise_found = std::all_of(noise.begin(), noise.end(), [&](const PoissonGaussian& channel) {
      return channel.variance(samples_.spec().white()) > of_rounding;
    });
    note_noise(noise, told      ? "as the file says"
                      : limited ? "measured, limited by its ISO speed"
                                : "measured");
    params_.set("sigma", 1.0);
    if (!outcome_.noise_found) return;
    const ChannelStabilizers stabilized(noise);
    const double white = stabilized.white(samples_.spec());
    stabilized.forward(samples_);
    if (has_common_groups()) {
      filter_with_common_groups(white);
    } else {
      ImageSpec spec = samples_.spec();
      spec.range = white;
      Image out(spec);
      run(ConstImageView(samples_.samples<float>(), spec), out.view());
      std::copy_n(out.samples<float>(), pixels_of(spec) * spec.channels, samples_.samples<float>());
    }
    stabilized.inverse(samples_);
    outcome_.report.strengths.clear();  // of the stabilised samples, which nobody sees
  }

  void filter_as_told() {
    Image out(samples_.spec());
    run(samples_.view(), out.view());
    samples_ = std::move(out);
  }

  bool has_common_groups() const {
    return params_.method() == "bm3d" && samples_.spec().channels == channels_of_mosaic &&
           params_.get_text("colour") == "opponent";
  }

  // bm3d groups patches of an rgb image by its luminance. The first image has the mean of the mosaic's
  // channels as luminance and two of their differences as colour differences: the mean gives the groups. A
  // second image has the mean again, which gives the same groups, and the third difference.
  void filter_with_common_groups(double white) {
    ImageSpec spec = samples_.spec();
    spec.channels = 3;
    spec.colour = Colour::rgb;
    // The mean's largest value is 2 white; luminance's is sqrt 3 times the range.
    spec.range = 2 * white / std::sqrt(3.0);
    runs_ = 2;
    Image in(spec);
    Image first(spec);
    Image second(spec);
    compose({0, 1, 2}, in);
    run(in.view(), first.view());
    compose({0, 3, 3}, in);
    run(in.view(), second.view());
    decompose(first, second);
  }

  // The image whose luminance and colour differences are these decorrelated channels.
  void compose(const std::array<int, 3>& planes, Image& image) const {
    const float* from = samples_.samples<float>();
    float* to = image.samples<float>();
    for (std::size_t i = 0; i < pixels_of(image.spec()); ++i, from += channels_of_mosaic, to += 3) {
      std::array<double, 3> values{};
      for (int plane = 0; plane < 3; ++plane) {
        for (int c = 0; c < channels_of_mosaic; ++c)
          values[plane] += decorrelation[planes[plane]][c] * from[c];
      }
      for (int c = 0; c < 3; ++c) {
        to[c] = static_cast<float>(opponent()[0][c] * values[0] + opponent()[1][c] * values[1] +
                                   opponent()[2][c] * values[2]);
      }
    }
  }

  void decompose(const Image& first, const Image& second) {
    const float* a = first.samples<float>();
    const float* b = second.samples<float>();
    float* to = samples_.samples<float>();
    const auto plane = [](const float* rgb, int row) {
      return opponent()[row][0] * rgb[0] + opponent()[row][1] * rgb[1] + opponent()[row][2] * rgb[2];
    };
    for (std::size_t i = 0; i < pixels_of(first.spec()); ++i, a += 3, b += 3, to += channels_of_mosaic) {
      // Both colour differences of the second image are the same channel and were filtered alike.
      const std::array<double, 4> values = {plane(a, 0), plane(a, 1), plane(a, 2),
                                            (plane(b, 1) + plane(b, 2)) / 2};
      for (int c = 0; c < channels_of_mosaic; ++c) {
        double sample = 0;
        for (int p = 0; p < channels_of_mosaic; ++p) sample += decorrelation[p][c] * values[p];
        to[c] = static_cast<float>(sample);
      }
    }
  }

  void run(const ConstImageView& in, const ImageView& out) {
    Options options = options_;
    options.progress = [this](double fraction) {
      if (options_.progress) options_.progress((done_ + fraction) / runs_);
    };
    Denoiser denoiser = Denoiser::create(params_, in.spec, options);
    Report report = denoiser.run(in, out);
    report.ms += outcome_.report.ms;
    outcome_.report = std::move(report);
    resolved_ = denoiser.params();
    ++done_;
  }

  // Photosites of cameras hold 8000 electrons or more at ISO 100, in inverse proportion to the ISO speed. A
  // picture without flat areas appears to have fewer, because its texture counts as noise.
  bool limit_by_iso(std::vector<PoissonGaussian>& noise) const {
    constexpr double fewest_electrons = 8000 * 100;
    if (file_.raw().iso <= 0) return false;
    const double most = samples_.spec().white() * file_.raw().iso / fewest_electrons;
    bool limited = false;
    for (PoissonGaussian& channel : noise) {
      if (channel.a <= most) continue;
      channel.b *= most / channel.a;
      channel.a = most;
      limited = true;
    }
    return limited;
  }

  void note_noise(const std::vector<PoissonGaussian>& noise, std::string_view source) {
    const PoissonGaussian& one = noise[noise.size() / 2];  // a green channel of a mosaic
    outcome_.in.note += fmt::format("{}noise of variance {:.4g} level + {:.4g}, {}",
                                    outcome_.in.note.empty() ? "" : "; ", one.a, one.b, source);
  }

  static constexpr double of_rounding = 1.0 / 12;

  io::RawFile& file_;
  MethodParams params_;
  MethodParams resolved_;
  Options options_;
  Outcome& outcome_;
  Image samples_;
  int runs_ = 1;
  int done_ = 0;
};

// The type of the output; throws where the format cannot hold a photograph, or what was asked for.
PixelType type_of_output(const fs::path& path, const Settings& settings) {
  if (io::is_format(path, "DNG")) {
    if (settings.depth && *settings.depth != PixelType::u16) {
      io::fail(path, fmt::format("DNG files hold u16 samples here, not {}", name(*settings.depth)));
    }
    return PixelType::u16;
  }
  const ImageSpec photograph{.channels = 3, .type = PixelType::u16, .colour = Colour::rgb};
  const PixelType type = settings.depth.value_or(io::writable_type(path, photograph));
  if (is_float(type)) {
    io::fail(path, fmt::format("a photograph is developed in u8 or u16 samples, not {}: write .dng or .tif",
                               name(type)));
  }
  return type;
}

// Writes a denoised DNG, which has no profile of the noise that is left.
void write_dng(const io::RawFile& file, const Image& samples, const fs::path& path, Outcome& outcome) {
  io::RawInfo raw = file.raw();
  raw.noise.clear();
  io::FileInfo info;
  info.spec = samples.spec();
  info.access = file.access();
  const std::unique_ptr<io::OutputFile> output = io::create_dng(path, info, raw, file.metadata());
  output->write_rows(0, samples.view());
  output->commit();
  outcome.out.spec.type = PixelType::u16;
}

void write_photograph(io::RawFile& file, const Image& samples, const fs::path& path, PixelType type,
                      const Settings& settings, Outcome& outcome) {
  const Image photograph = file.develop(samples.view(), type);
  outcome.out.spec = photograph.spec();
  outcome.out.format.clear();
  const std::unique_ptr<io::OutputFile> output =
      io::OutputFile::create(path, outcome.out, &file, settings.save);
  output->write_rows(0, photograph.view());
  output->commit();
}

}  // namespace

MethodParams params_for_mosaic(const MethodParams& params, const Settings& settings,
                               const std::string& file) {
  if (settings.range || settings.channels != "auto") {
    throw Error(ErrorCode::io,
                fmt::format("{}: a camera raw file tells its white level and its channels: {} is not for it",
                            file, settings.range ? "--range" : "--channels"));
  }
  if (params.noise().clipping == Clipping::everywhere)
    throw Error(ErrorCode::io, fmt::format("{}: --clipping undo is not for camera raw files", file));
  MethodParams of_mosaic = params;
  NoiseHandling handling = params.noise();
  handling.clipping = Clipping::keep;  // the mosaic's noise is stabilised as a whole
  of_mosaic.set_noise(std::move(handling));
  return of_mosaic;
}

Image filter_mosaic(io::RawFile& file, const MethodParams& params, const Options& options, Outcome& outcome) {
  RawRun run(file, params, options, outcome);
  Image samples = run.filtered();
  outcome.method = run.params().method();
  for (const ParamInfo& info : method_info(outcome.method).params)
    outcome.params.emplace_back(info.name, run.params().get_text(info.name));
  return samples;
}

void denoise_raw(io::RawFile& file, const fs::path& output, const MethodParams& params,
                 const Options& options, const Settings& settings, Outcome& outcome) {
  const PixelType type = type_of_output(output, settings);
  const Image samples = filter_mosaic(file, params, options, outcome);
  file.check_unchanged();
  outcome.out = outcome.in;
  outcome.not_kept = io::metadata_not_kept(output, outcome.out, file);
  if (io::is_format(output, "DNG")) {
    write_dng(file, samples, output, outcome);
  } else {
    write_photograph(file, samples, output, type, settings, outcome);
  }
}

}  // namespace ungrain::cli
