// ungrain._core: the part of the library that Python uses. Arrays are read and written in place; the Python
// package allocates results and converts types.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <map>
#include <optional>

#include "arrays.h"
#include "clip.h"
#include "cluster_options.h"
#include "errors.h"
#include "method_options.h"
#include "opencv_lab.h"
#include "running.h"
#include "ungrain/error.h"
#include "ungrain/estimate.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"
#include "ungrain/rician.h"
#include "ungrain/version.h"
#include "ungrain/volume.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ungrain::python {
namespace {

Stream stream_of(std::uintptr_t handle) { return {reinterpret_cast<void*>(handle)}; }

// Returns the noise level in pixel values that the last image was filtered with; 0 where there is none.
// Nothing: nothing was done, the stack lies on a GPU and must come in host memory (StackOnGpu).
std::optional<double> denoise_call(nb::handle image, nb::handle out, const std::string& method,
                                   nb::handle preset, const nb::dict& given, const std::vector<int>& axis,
                                   int channel_axis, const std::string& channels, double range,
                                   const std::string& device, int threads, std::size_t memory,
                                   const std::string& nonfinite, nb::handle progress, nb::handle measured,
                                   std::uintptr_t stream) try {
  const Layout layout{axis, channel_axis, channels, range};
  const InputImages in = input_images(image, layout, "image");
  const OutputImages to = output_images(out, layout, "out");
  std::optional<InputImages> host;
  if (!measured.is_none()) host = input_images(measured, layout, "image");
  const std::optional<MethodParams> used =
      denoise(in, to, host ? &*host : nullptr, read_params(method, preset, given, in.first.spec.white()),
              options_of(device, threads, memory, nonfinite), progress, stream_of(stream));
  return used ? noise_level(*used) : 0;
} catch (const StackOnGpu&) {
  return std::nullopt;
}

double aspect_of(const std::vector<double>& spacing) {
  if (spacing.size() != 3)
    throw Error(ErrorCode::invalid_argument,
                "spacing takes three numbers, the sizes of a voxel along z, y and x");
  return voxel_aspect({spacing[2], spacing[1], spacing[0]});
}

// As denoise_call(), of a volume. `slices` names the axis of its slices where the method looks along them;
// empty: it filters the volume as a solid. The noise is that of the whole volume: `measured` has it in host
// memory where it is to be measured and the volume does not lie there as a solid.
std::optional<double> denoise_volume_call(nb::handle volume, nb::handle out, const std::string& method,
                                          nb::handle preset, const nb::dict& given,
                                          const std::vector<double>& spacing, const std::vector<int>& slices,
                                          int channel_axis, const std::string& channels, double range,
                                          const std::string& device, int threads, std::size_t memory,
                                          const std::string& nonfinite, nb::handle progress,
                                          nb::handle measured, std::uintptr_t stream) try {
  const Layout solid{{}, channel_axis, channels, range, true};
  const Layout layout = slices.empty() ? solid : Layout{slices, channel_axis, channels, range};
  const InputImages in = input_images(volume, layout, "volume");
  const OutputImages to = output_images(out, layout, "out");
  HeldParams params = read_params(method, preset, given, in.first.spec.white());
  follow_aspect(params.params, given, aspect_of(spacing));
  if (params.params.needs_image()) {
    const InputImages samples = input_images(measured.is_none() ? volume : measured, solid, "volume");
    const nb::gil_scoped_release unlocked;
    params.params = resolve(params.params, samples.first);
  }
  const std::optional<MethodParams> used = denoise(
      in, to, nullptr, params, options_of(device, threads, memory, nonfinite), progress, stream_of(stream));
  return used ? noise_level(*used) : 0;
} catch (const StackOnGpu&) {
  return std::nullopt;
}

// A volume's parameters with everything measured and derived. `sampled` has its slices `slices`, where the
// noise is to be measured.
nb::dict resolve_volume_call(const std::string& method, nb::handle preset, const nb::dict& given,
                             const std::vector<double>& spacing, const std::vector<std::size_t>& shape,
                             const std::string& dtype, int channel_axis, const std::string& channels,
                             double range, nb::handle sampled, const std::vector<int>& slices) {
  const Layout layout{{}, channel_axis, channels, range, true};
  const ImageSpec spec = image_spec(shape, pixel_type(dtype), layout);
  HeldParams params = read_params(method, preset, given, spec.white());
  follow_aspect(params.params, given, aspect_of(spacing));
  if (sampled.is_none()) return to_dict(resolve_derived(params.params, spec));
  return to_dict(resolve_slices(params, spec, input_images(sampled, layout, "volume").first, slices));
}

// The slices before and after that a slice needs.
int volume_reach(const std::string& method, const nb::dict& given, const std::vector<std::size_t>& shape,
                 const std::string& dtype, int channel_axis, const std::string& channels, double range) {
  const Layout layout{{}, channel_axis, channels, range, true};
  const ImageSpec spec = image_spec(shape, pixel_type(dtype), layout);
  Options options;
  options.device = {Device::Kind::cpu};
  return Denoiser::create(read_params(method, nb::none(), given, spec.white()).params, spec, options)
      .reach()
      .y;
}

// The slices of `out`, from out_z on, of a part of a volume. Its first voxel lies at `at` of the volume,
// whose size is `whole`: both along z, y and x. The part has what lies around the slices as far as the method
// reaches; within the slices what lies nearer to a cut edge is not final.
void denoise_volume_part(nb::handle part, nb::handle out, const std::string& method, const nb::dict& given,
                         const std::vector<int>& whole, const std::vector<int>& at, int out_z,
                         int channel_axis, const std::string& channels, double range,
                         const std::string& device, int threads, std::size_t memory,
                         const std::string& nonfinite, std::uintptr_t stream) {
  if (whole.size() != 3 || at.size() != 3) throw Error(ErrorCode::internal, "three sides of a volume");
  const Layout layout{{}, channel_axis, channels, range, true};
  InputImages in = input_images(part, layout, "volume");
  OutputImages to = output_images(out, layout, "out");
  for (SliceShape* slice : {&in.first.spec.slice, &to.first.spec.slice})
    *slice = {slice->width, slice->height, at[2], at[1], whole[2], whole[1]};
  ImageSpec spec = in.first.spec;
  spec.height = whole[0];
  HeldDenoiser denoiser(read_params(method, nb::none(), given, spec.white()), spec, nullptr,
                        options_of(device, threads, memory, nonfinite));
  denoiser.run_region(in, {at[0], 0}, to, {out_z, 0}, stream_of(stream));
}

bool needs_image(const std::string& method, nb::handle preset, const nb::dict& given) {
  return read_params(method, preset, given, 1).params.needs_image();
}

int clip_radius_t(const std::string& method, nb::handle preset, const nb::dict& given) {
  return read_params(method, preset, given, 1).params.clip_radius_t();
}

void make_denoiser(HeldDenoiser* self, const std::string& method, nb::handle preset, const nb::dict& given,
                   const std::vector<std::size_t>& shape, const std::string& dtype, int channel_axis,
                   const std::string& channels, double range, const std::string& device, int threads,
                   std::size_t memory, const std::string& nonfinite, nb::handle measured) {
  const Layout layout{{}, channel_axis, channels, range};
  const ImageSpec spec = image_spec(shape, pixel_type(dtype), layout);
  std::optional<InputImages> host;
  if (!measured.is_none()) host = input_images(measured, layout, "like");
  new (self) HeldDenoiser(read_params(method, preset, given, spec.white()), spec,
                          host ? &host->first : nullptr, options_of(device, threads, memory, nonfinite));
}

void run_denoiser(HeldDenoiser& self, nb::handle image, nb::handle out, const std::vector<int>& axis,
                  int channel_axis, const std::string& channels, nb::handle progress, std::uintptr_t stream) {
  const Layout layout{axis, channel_axis, channels, self.denoiser().spec().range};
  self.run(input_images(image, layout, "image"), output_images(out, layout, "out"), progress,
           stream_of(stream));
}

void run_region(HeldDenoiser& self, nb::handle image, int y, int x, nb::handle out, int out_y, int out_x,
                int channel_axis, const std::string& channels, std::uintptr_t stream) {
  const Layout layout{{}, channel_axis, channels, self.denoiser().spec().range};
  self.run_region(input_images(image, layout, "image"), {y, x}, output_images(out, layout, "out"),
                  {out_y, out_x}, stream_of(stream));
}

void make_clip(HeldClip* self, const std::string& method, nb::handle preset, const nb::dict& given,
               const std::vector<std::size_t>& shape, const std::string& dtype, int channel_axis,
               const std::string& channels, double range, const std::string& device, int threads,
               std::size_t memory, const std::string& nonfinite, bool find_cuts) {
  const ImageSpec spec = image_spec(shape, pixel_type(dtype), Layout{{}, channel_axis, channels, range});
  new (self) HeldClip(read_params(method, preset, given, spec.white()), spec,
                      options_of(device, threads, memory, nonfinite), find_cuts);
}

const char* wait_for_clip(HeldClip& self, bool gives) {
  const HeldClip::Next next = self.wait(gives);
  return next == HeldClip::Next::result ? "result" : next == HeldClip::Next::room ? "room" : "end";
}

void give_frame(HeldClip& self, nb::handle frame, int channel_axis, const std::string& channels) {
  self.give(input_images(frame, Layout{{}, channel_axis, channels, self.spec().range}, "a frame").first);
}

void take_frame(HeldClip& self, nb::handle frame, int channel_axis, const std::string& channels) {
  self.take(output_images(frame, Layout{{}, channel_axis, channels, self.spec().range}, "a frame").first);
}

nb::tuple sampled_call(const std::vector<std::size_t>& shape, const std::string& dtype, int channel_axis,
                       const std::string& channels) {
  const NoiseEstimator estimator(image_spec(shape, pixel_type(dtype), Layout{{}, channel_axis, channels, 0}));
  return nb::make_tuple(estimator.sampled_rows(), estimator.sampled_columns());
}

// Without `sampled`, resolves only what needs no image.
nb::dict resolve_call(const std::string& method, nb::handle preset, const nb::dict& given,
                      const std::vector<std::size_t>& shape, const std::string& dtype, int channel_axis,
                      const std::string& channels, double range, nb::handle sampled) {
  const Layout layout{{}, channel_axis, channels, range};
  const ImageSpec spec = image_spec(shape, pixel_type(dtype), layout);
  const HeldParams params = read_params(method, preset, given, spec.white());
  if (sampled.is_none()) return to_dict(resolve_derived(params.params, spec));
  return to_dict(resolve_sampled(params, spec, input_images(sampled, layout, "image").first));
}

// Reads parameters like the program's options: words, with strengths on the 0-255 scale.
nb::dict read_words(const std::string& method, const std::optional<std::string>& preset,
                    const std::map<std::string, std::string>& words, double white) {
  const cli::MethodOptions options(nullptr, {method, preset.value_or(""), words});
  return to_dict(options.for_white(white));
}

// The words of ungrain-cluster, read like the program's: JSON. Only "help" where help is to be printed.
nb::bytes cluster_options_call(const std::vector<nb::bytes>& words) {
  cli::Arguments arguments;
  for (const nb::bytes& word : words) arguments.emplace_back(word.c_str(), word.size());
  std::string help;
  const auto read = [&](cli::OptionTable& table, const cli::Arguments& all) {
    const bool go_on = table.read(all);
    if (!go_on) help = table.help();
    return go_on;
  };
  std::string options = cli::cluster_options(arguments, read);
  if (options.empty()) options = "{\"help\":" + cli::json_string(help) + "}";
  return nb::bytes(options.data(), options.size());
}

// Called between the images of a stack, so that Ctrl-C ends the work.
void check_signals() {
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

nb::list estimate_call(nb::handle image, const std::vector<int>& axis, int channel_axis,
                       const std::string& channels, double range) {
  const InputImages in = input_images(image, {axis, channel_axis, channels, range}, "image");
  std::vector<NoiseEstimate> found;
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t index = 0; index < in.offsets.size(); ++index) {
      found.push_back(estimate_noise(in.at(index)));
      check_signals();
    }
  }
  nb::list list;
  for (const NoiseEstimate& estimate : found)
    list.append(nb::make_tuple(estimate.sigma, estimate.channels, estimate.correlation));
  return list;
}

nb::list estimate_model_call(nb::handle image, const std::vector<int>& axis, int channel_axis,
                             const std::string& channels, double range, nb::handle iso, int threads) {
  const InputImages in = input_images(image, {axis, channel_axis, channels, range}, "image");
  NoiseModelOptions options;
  options.threads = threads;
  if (!iso.is_none()) options.iso = nb::cast<double>(iso);
  std::vector<NoiseModelEstimate> found;
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t index = 0; index < in.offsets.size(); ++index) {
      found.push_back(estimate_noise_model(in.at(index), options));
      check_signals();
    }
  }
  nb::list list;
  for (const NoiseModelEstimate& estimate : found) list.append(to_dict(estimate));
  return list;
}

// [row][column]
using SliceSamples = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void add_slice(RicianEstimator& self, const SliceSamples& slice) {
  constexpr std::size_t most = 1 << 30;
  if (slice.shape(0) > most || slice.shape(1) > most)
    throw Error(ErrorCode::invalid_argument, "the array is too large");
  const auto width = static_cast<int>(slice.shape(1));
  const nb::gil_scoped_release unlocked;
  self.add_slice(slice.data(), width, static_cast<int>(slice.shape(0)), width);
  check_signals();
}

NoiseKind noise_kind(const std::string& wanted) {
  std::string known;
  for (const NoiseInfo& info : noise_models()) {
    if (info.amount.name == wanted) return info.kind;
    known += (known.empty() ? "" : ", ") + info.amount.name;
  }
  throw Error(ErrorCode::invalid_argument, "kind takes one of " + known + ", got '" + wanted + "'");
}

void add_noise_call(nb::handle image, nb::handle out, const std::string& kind, double amount,
                    std::uint64_t seed, const std::vector<int>& axis, int channel_axis,
                    const std::string& channels, double range) {
  const Layout layout{axis, channel_axis, channels, range};
  const InputImages in = input_images(image, layout, "image");
  const OutputImages to = output_images(out, layout, "out");
  if (in.shape != to.shape) throw Error(ErrorCode::invalid_argument, "out has another shape than the image");
  Noise noise{noise_kind(kind), amount, seed};
  const nb::gil_scoped_release unlocked;
  for (std::size_t index = 0; index < in.offsets.size(); ++index, ++noise.seed) {
    ImageView view = to.at(index);
    if (view.spec.type != in.first.spec.type) view.spec.range = 0;
    add_noise(in.at(index), view, noise);
    check_signals();
  }
}

nb::list compare_call(nb::handle truth, nb::handle image, const std::vector<int>& axis, int channel_axis,
                      const std::string& channels, double range, bool ssim, bool fsim) {
  const Layout layout{axis, channel_axis, channels, range};
  const InputImages first = input_images(truth, layout, "truth");
  const InputImages second = input_images(image, layout, "image");
  if (first.shape != second.shape)
    throw Error(ErrorCode::invalid_argument, "the image has another shape than the truth");
  std::vector<Metrics> found;
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t index = 0; index < first.offsets.size(); ++index) {
      found.push_back(compare(first.at(index), second.at(index), {ssim, fsim}));
      check_signals();
    }
  }
  const auto optional = [](const std::optional<double>& value) {
    return value ? nb::cast(*value) : nb::none();
  };
  nb::list list;
  for (const Metrics& metrics : found) {
    nb::dict dict;
    dict["mse"] = metrics.mse;
    dict["psnr"] = metrics.psnr;
    dict["max_abs"] = metrics.max_abs;
    dict["ssim"] = optional(metrics.ssim);
    dict["fsim"] = optional(metrics.fsim);
    dict["fsimc"] = optional(metrics.fsimc);
    list.append(dict);
  }
  return list;
}

nb::list methods_call() {
  nb::list list;
  for (const MethodInfo& info : methods()) list.append(to_dict(info));
  return list;
}

nb::list methods_along_slices_call() {
  nb::list list;
  for (const MethodInfo& info : methods_along_slices()) list.append(info.name);
  return list;
}

nb::list volume_methods_call() {
  nb::list list;
  for (const MethodInfo& info : volume_methods()) list.append(to_dict(info));
  return list;
}

nb::list devices_call() {
  nb::list list;
  for (const DeviceInfo& info : devices()) list.append(to_dict(info));
  return list;
}

nb::list noise_kinds_call() {
  nb::list list;
  for (const NoiseInfo& info : noise_models())
    list.append(nb::make_tuple(info.amount.name, info.amount.help));
  return list;
}

// 8-bit pixels of three samples, packed; the result replaces them.
using PackedPixels = nb::ndarray<std::uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;

void to_lab(const PackedPixels& image) {
  const nb::gil_scoped_release unlocked;
  bgr_to_lab(image.data(), image.data(), image.shape(0) * image.shape(1));
}

void from_lab(const PackedPixels& image) {
  const nb::gil_scoped_release unlocked;
  lab_to_bgr(image.data(), image.data(), image.shape(0) * image.shape(1));
}

// [row][column][channel]
using Samples = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Rows of pixels with one channel, or with as many as the image has.
ConstImageView samples_view(const Samples& samples) {
  constexpr std::size_t most = 1 << 20;
  if (samples.shape(0) > most || samples.shape(1) > most || samples.shape(2) > max_channels)
    throw Error(ErrorCode::invalid_argument, "the array is too large");
  const auto channels = static_cast<int>(samples.shape(2));
  const ImageSpec spec{.width = static_cast<int>(samples.shape(1)),
                       .height = static_cast<int>(samples.shape(0)),
                       .channels = channels,
                       .type = PixelType::f32,
                       .colour = channels == 1 ? Colour::gray : Colour::multi};
  return {samples.data(), spec};
}

ImageSpec spec_of_channels(int channels) {
  return {.width = 64,
          .height = 64,
          .channels = channels,
          .type = PixelType::f32,
          .colour = channels == 1   ? Colour::gray
                    : channels == 3 ? Colour::rgb
                                    : Colour::multi};
}

nb::dict psd_model_call(const Samples& psd, int channels) {
  return to_dict(noise_model_of_psd(spec_of_channels(channels), samples_view(psd)));
}

nb::dict kernel_model_call(const Samples& kernel, double sigma, int channels) {
  return to_dict(noise_model_of_kernel(spec_of_channels(channels), samples_view(kernel), sigma));
}

void raise(const nb::object& error) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "What the package is made over; not for direct use.";
  module.attr("version") = UNGRAIN_VERSION;
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const int code = static_cast<int>(error.code());
      raise(nb::module_::import_("ungrain._errors").attr("from_code")(code, std::string(error.what())));
    } catch (const cli::UsageError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const InvalidType& error) {
      raise(nb::module_::import_("ungrain._errors").attr("InvalidType")(std::string(error.what())));
    }
  });

  module.def("denoise", &denoise_call, "image"_a, "out"_a, "method"_a, "preset"_a.none(), "given"_a, "axis"_a,
             "channel_axis"_a, "channels"_a, "range"_a, "device"_a, "threads"_a, "memory"_a, "nonfinite"_a,
             "progress"_a.none(), "measured"_a.none(), "stream"_a);
  module.def("denoise_volume", &denoise_volume_call, "volume"_a, "out"_a, "method"_a, "preset"_a.none(),
             "given"_a, "spacing"_a, "slices"_a, "channel_axis"_a, "channels"_a, "range"_a, "device"_a,
             "threads"_a, "memory"_a, "nonfinite"_a, "progress"_a.none(), "measured"_a.none(), "stream"_a);
  module.def("resolve_volume", &resolve_volume_call, "method"_a, "preset"_a.none(), "given"_a, "spacing"_a,
             "shape"_a, "dtype"_a, "channel_axis"_a, "channels"_a, "range"_a, "sampled"_a.none(), "slices"_a);
  module.def("volume_reach", &volume_reach, "method"_a, "given"_a, "shape"_a, "dtype"_a, "channel_axis"_a,
             "channels"_a, "range"_a);
  module.def("denoise_volume_part", &denoise_volume_part, "part"_a, "out"_a, "method"_a, "given"_a, "whole"_a,
             "at"_a, "out_z"_a, "channel_axis"_a, "channels"_a, "range"_a, "device"_a, "threads"_a,
             "memory"_a, "nonfinite"_a, "stream"_a);
  module.def("psd_model", &psd_model_call, "psd"_a, "channels"_a);
  module.def("kernel_model", &kernel_model_call, "kernel"_a, "sigma"_a, "channels"_a);
  module.def("clip_radius_t", &clip_radius_t, "method"_a, "preset"_a.none(), "given"_a);
  module.def("needs_image", &needs_image, "method"_a, "preset"_a.none(), "given"_a);
  module.def("sampled", &sampled_call, "shape"_a, "dtype"_a, "channel_axis"_a, "channels"_a);
  module.def("resolve", &resolve_call, "method"_a, "preset"_a.none(), "given"_a, "shape"_a, "dtype"_a,
             "channel_axis"_a, "channels"_a, "range"_a, "sampled"_a.none());
  module.def("cluster_options", &cluster_options_call, "words"_a);
  module.def("read_words", &read_words, "method"_a, "preset"_a.none(), "words"_a, "white"_a);
  module.def("estimate", &estimate_call, "image"_a, "axis"_a, "channel_axis"_a, "channels"_a, "range"_a);
  module.def("estimate_model", &estimate_model_call, "image"_a, "axis"_a, "channel_axis"_a, "channels"_a,
             "range"_a, "iso"_a.none(), "threads"_a);
  module.def("add_noise", &add_noise_call, "image"_a, "out"_a, "kind"_a, "amount"_a, "seed"_a, "axis"_a,
             "channel_axis"_a, "channels"_a, "range"_a);
  module.def("compare", &compare_call, "truth"_a, "image"_a, "axis"_a, "channel_axis"_a, "channels"_a,
             "range"_a, "ssim"_a, "fsim"_a);
  module.def("methods", &methods_call);
  module.def("volume_methods", &volume_methods_call);
  module.def("methods_along_slices", &methods_along_slices_call);
  module.def("devices", &devices_call);
  module.def("noise_kinds", &noise_kinds_call);
  module.def("bgr_to_lab", &to_lab, "image"_a.noconvert());
  module.def("lab_to_bgr", &from_lab, "image"_a.noconvert());
  module.def(
      "address",
      [](nb::handle array) {
        nb::ndarray<nb::ro> read;
        if (!nb::try_cast(array, read, false)) throw InvalidType("no array that can be read");
        return reinterpret_cast<std::uintptr_t>(read.data());
      },
      "array"_a, "Where the library finds the first sample: tells a view from a copy.");

  nb::class_<HeldDenoiser>(module, "Denoiser")
      .def("__init__", &make_denoiser, "method"_a, "preset"_a.none(), "given"_a, "shape"_a, "dtype"_a,
           "channel_axis"_a, "channels"_a, "range"_a, "device"_a, "threads"_a, "memory"_a, "nonfinite"_a,
           "measured"_a.none())
      .def("run", &run_denoiser, "image"_a, "out"_a, "axis"_a, "channel_axis"_a, "channels"_a,
           "progress"_a.none(), "stream"_a)
      .def("run_region", &run_region, "image"_a, "y"_a, "x"_a, "out"_a, "out_y"_a, "out_x"_a,
           "channel_axis"_a, "channels"_a, "stream"_a)
      .def("wait", &HeldDenoiser::wait)
      .def("clone", &HeldDenoiser::clone)
      .def("report", [](const HeldDenoiser& self) { return to_dict(self.report()); })
      .def("params", [](const HeldDenoiser& self) { return to_dict(self.denoiser().params()); })
      .def("noise_level", [](const HeldDenoiser& self) { return noise_level(self.denoiser().params()); })
      .def("device", [](const HeldDenoiser& self) { return name(self.denoiser().device()); })
      .def("looks_along_stacks", [](const HeldDenoiser& self) { return looks_along_stacks(self.denoiser()); })
      .def("reach", [](const HeldDenoiser& self) {
        const ungrain::Denoiser::Reach reach = self.denoiser().reach();
        return nb::make_tuple(reach.y, reach.x);
      });

  nb::class_<RicianEstimator>(module, "RicianEstimator")
      .def(nb::init<int>(), "coils"_a)
      .def("add_slice", &add_slice, "slice"_a)
      .def("finish", [](const RicianEstimator& self) { return to_dict(self.finish()); });

  nb::class_<HeldClip>(module, "Clip")
      .def("__init__", &make_clip, "method"_a, "preset"_a.none(), "given"_a, "shape"_a, "dtype"_a,
           "channel_axis"_a, "channels"_a, "range"_a, "device"_a, "threads"_a, "memory"_a, "nonfinite"_a,
           "find_cuts"_a)
      .def("wait", &wait_for_clip, "gives"_a)
      .def("give", &give_frame, "frame"_a, "channel_axis"_a, "channels"_a)
      .def("take", &take_frame, "frame"_a, "channel_axis"_a, "channels"_a)
      .def("finish", &HeldClip::finish)
      .def("stop", &HeldClip::stop)
      .def("noise_level", &HeldClip::noise_level);
}

}  // namespace ungrain::python
