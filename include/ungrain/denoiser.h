// The library's entry point: create a Denoiser once, run it on many images.
//
//   ungrain::Denoiser d = ungrain::Denoiser::create(ungrain::BilateralParams{.sigma = 10}, spec);
//   d.run(noisy.view(), clean.view());
//
// or, with the noise's level measured on the image:
//
//   ungrain::MethodParams params = ungrain::resolve(ungrain::BilateralParams{}, noisy.view());
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ungrain/export.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"
#include "ungrain/parameters.h"
#include "ungrain/sequence.h"

UNGRAIN_API_BEGIN
namespace ungrain {

struct Device {
  enum class Kind : std::uint8_t {
    automatic,  // whichever is done sooner, by a prediction (choose_device() below)
    reference,  // the readable definition: one thread, double sums, slow
    cpu,
    cuda,
  };
  static constexpr int all_gpus = -1;
  Kind kind = Kind::automatic;
  int index = 0;  // which GPU, or all_gpus
  friend bool operator==(const Device&, const Device&) = default;
};

std::string name(Device device);             // "cpu", "cuda:1", "cuda:all"
Device parse_device(std::string_view text);  // "auto", "reference", "cpu", "cuda", "cuda:1", "cuda:all"

// A queue of work on a GPU: a cudaStream_t, as it is. Null: the default stream.
struct Stream {
  void* handle = nullptr;
};

struct DeviceInfo {
  Device device;
  std::string description;  // the processor's or GPU's name and size
  bool usable = true;
  std::string reason;  // why it is not usable
  double speed = 1;    // of a GPU, relative to an H200: a guess by its multiprocessors and clock
};

std::vector<DeviceInfo> devices();

// The devices of a device's queues: every usable GPU for cuda:all (two queues where there is one GPU), the
// device itself otherwise. Throws Error(no_device) where cuda:all finds none.
std::vector<Device> queues(Device device);

// Copies share one flag; setting it (from any thread or a signal handler) makes run() throw Error(cancelled)
// soon.
class CancelToken {
 public:
  void cancel() noexcept { flag_->store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
};

// What to do with NaN and infinity; no method ever sees one.
enum class NonFinite : std::uint8_t {
  fill,   // replaced by the mean of the finite pixels nearby before filtering
  keep,   // the same, and the original value put back in the output
  error,  // Error(bad_pixels) that says where the first one is
};

inline constexpr int max_threads = 1024;

struct Options {
  Device device = {};
  int threads = 0;         // up to max_threads; 0: one for each processor
  std::size_t memory = 0;  // bytes for working buffers; 0: half of what is free
  NonFinite nonfinite = NonFinite::fill;
  int band_rows = 0;  // rows of a band; 0: planned from `memory`. Changes the time, never the pixels
  // How many images will be run, for the choice of an automatic device: a GPU that has not been used in this
  // process takes some tenths of a second to start, which a single small image does not repay. 0: many.
  int images = 0;
  std::function<void(double fraction)> progress = {};  // called on the thread that called run(), 0 to 1
  CancelToken cancel = {};
};

struct StageTime {
  std::string name;
  double ms = 0;
};

// One strength in two units: the image's own pixel units and the 0-255 scale.
struct Strength {
  std::string name;
  double value = 0;
  double on_255 = 0;
};

struct Report {
  Device device;
  int threads = 1;
  int bands = 0;
  int gpus = 0;    // that took part
  int queues = 0;  // of bands, over all GPUs
  double ms = 0;
  // They add up to `ms` at most; the rest is copies, conversions and waiting. Where stages of several queues
  // run at the same time, each has its share of `ms`, in proportion to the time it took on its queue.
  std::vector<StageTime> stages;
  std::size_t buffer_bytes = 0;
  std::int64_t nonfinite_pixels = 0;
  std::vector<Strength> strengths;
  std::string choice;  // why an automatic device became this one; empty where the device was given
};

// Rows of an image that is too large to hold, or that is still being decoded. Rows are read and written while
// others are filtered, on threads of the run's own: one call of each kind at a time, none after run() returns
// or throws.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // Fills `rows` with the image's rows [first, first + rows.spec.height). Each row is asked for once and in
  // order, except that a `wrap` border asks for the last rows first and starts again at row 0.
  virtual void read_rows(int first, const ImageView& rows) = 0;
};

class RowWriter {
 public:
  virtual ~RowWriter() = default;
  virtual void write_rows(int first, const ConstImageView& rows) = 0;  // once each, in order
};

// Replaces parameters that depend on the image ("auto" or derived) by numbers, once for the whole image.
// Where the noise differs by level or frequency, the result has a noise model (MethodParams::noise()) instead
// of one sigma, provided that the method's other parameters allow one. Luma and chroma of a ycbcr image are
// measured apart (MethodParams::chroma()).
MethodParams resolve(const MethodParams& params, const ConstImageView& image);
// The same from a stream of rows, which is read once, and only where params.needs_image().
MethodParams resolve(const MethodParams& params, RowReader& image, const ImageSpec& spec);
// The same, with the measured noise: empty where the method's parameters need no measurement.
struct Resolved {
  MethodParams params;
  std::optional<NoiseModelEstimate> noise;
};
Resolved resolve_with_noise(const MethodParams& params, const ConstImageView& image,
                            const NoiseModelOptions& options = {});
Resolved resolve_with_noise(const MethodParams& params, RowReader& image, const ImageSpec& spec,
                            const NoiseModelOptions& options = {});
// The part of resolve() that needs only the image's spec. Parameters that follow the noise's level stay unset
// until that level is set.
MethodParams resolve_derived(const MethodParams& params, const ImageSpec& spec);

// The device that create() would choose, and why. `params` need not be resolved.
struct DeviceChoice {
  Device device;
  std::string reason;  // empty where the device was given
};
DeviceChoice choose_device(const MethodParams& params, const ImageSpec& spec, const Options& options = {});

// Starts a device, so that work which follows need not wait for it: for a thread that has nothing else to do
// while an image is being read. Does nothing where the device is started or needs no start. Throws nothing:
// what is wrong with a device, its use will tell.
void start_device(Device device) noexcept;

// create() checks, chooses, plans and allocates everything; run() only executes. A Denoiser serves one thread
// at a time: clone() it for others.
class Denoiser {
 public:
  // `spec` describes the whole image.
  static Denoiser create(const MethodParams& params, const ImageSpec& spec, const Options& options = {});

  Denoiser(Denoiser&&) noexcept;
  Denoiser& operator=(Denoiser&&) noexcept;
  ~Denoiser();
  Denoiser clone() const;
  // Other parameters, perhaps of another method, for images of the same spec on the same device. Memory that
  // fits them is kept: with the noise of each image measured anew, images share one Denoiser. Where it
  // throws, the parameters are as before.
  void set_params(const MethodParams& params);

  // `in` and `out` have the spec's channels, colour and alpha; `out` may have another type or range (values
  // are scaled from white level to white level). They may be the same memory, if they are laid out the same.
  // Where `out` is a region of the image, `in` must cover it and reach() pixels around, as far as the image
  // goes. Where an automatic device became a GPU that fails, and the images lie apart in host memory, the CPU
  // takes over, for later runs too: Report::choice says so. Other kinds of run throw Error(device).
  Report run(const ConstImageView& in, const ImageView& out);
  // Row by row in bounded memory. `out_spec` is the spec with the type and range that the writer wants.
  Report run(RowReader& in, RowWriter& out, const ImageSpec& out_spec);

  // Sequences (ungrain/sequence.h). Every image has the spec, and so has every result, with one type and
  // range for all. Results may lie where their own images lie.
  Report run(std::span<const ConstImageView> in, std::span<const ImageView> out);
  // One image of a window of a sequence. Where the window has fewer than reach().before images before it, or
  // fewer than reach().after behind, the sequence ends there.
  Report run(std::span<const ConstImageView> window, int centre, const ImageView& out);
  // From a reader to a writer, all images or one. Results of one image that the next one needs are kept as
  // long as the reader is the same: call forget_slices() before it reads another sequence.
  Report run(SliceReader& in, SliceWriter& out, const ImageSpec& out_spec);
  Report run(SliceReader& in, int slice, const ImageView& out);
  void forget_slices();

  // On a GPU: enqueues the work on the caller's stream and returns. The images lie on that GPU or in
  // page-locked host memory, and must not change until the stream has done the work. The first call allocates
  // memory for it. Where nonfinite is `error`, wait() throws it.
  void run_async(const ConstImageView& in, const ImageView& out, Stream stream = {});
  void wait();  // until the work of run_async() is done; throws its errors

  using Reach = ungrain::Reach;
  // How far a pixel's neighbourhood extends through all stages. Of a volume: x within slices along both axes,
  // y over slices.
  Reach reach() const;
  const MethodParams& params() const;  // resolved
  const ImageSpec& spec() const;
  Device device() const;

 private:
  struct UNGRAIN_HIDDEN Impl;
  explicit Denoiser(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
UNGRAIN_API_END
