// The interface of a kind of device to the engine (core/engine.h). src/cpu and src/cuda implement it; the
// list of backends stands in device/backends.cpp.
//
// Work goes into queues. A queue's work is done in order; that of two queues may overlap. Only wait()
// guarantees that it is done. On the CPU every call returns when its work is done.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/method.h"
#include "core/planes.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain {

// Bytes that are freed with their last owner, uninitialised.
struct Memory {
  std::shared_ptr<void> owner;
  std::size_t bytes = 0;
  void* data() const { return owner.get(); }
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(owner.get()) + offset; }
};

// Pixels with a sample that is not finite.
struct NonFiniteStats {
  unsigned long long pixels = 0;
  // The largest complement of y << 32 | x: the first pixel in reading order. 0: there is none, so that a
  // device clears both numbers at once.
  unsigned long long inverse_first = 0;

  static constexpr unsigned long long inverse_of(int x, int y) {
    return ~(static_cast<unsigned long long>(y) << 32U | static_cast<unsigned>(x));
  }
  constexpr int first_x() const { return static_cast<int>(~inverse_first & 0xffffffffU); }
  constexpr int first_y() const { return static_cast<int>(~inverse_first >> 32U); }
};

// A point in a queue's work.
class Mark {
 public:
  virtual ~Mark() = default;
};

// Samples to float planes.
struct LoadCall {
  ConstImageView raw;  // its region says where it lies; covers the planes, and fill_radius around as far as
                       // the image goes where `fill` is set
  Planes planes;
  int row_shift = 0;  // row y of the planes is row y + row_shift of the image
  RowRange counted;   // rows of the planes whose pixels are counted
  bool fill = false;  // what is not finite is replaced (core/convert.h); else nothing is looked for
  NonFiniteStats* stats = nullptr;  // in the queue's memory; used where `fill` is set
  Subsampling step = {};            // from the planes' coordinates to those of `stats`
};

// Rows of bytes, the same distance apart.
struct ByteRows {
  void* data = nullptr;
  std::ptrdiff_t stride = 0;
  std::size_t bytes = 0;  // of a row
  int rows = 0;
};

// Float planes to samples.
struct StoreCall {
  ConstPlanes planes;
  ConstImageView raw;  // where alpha, and with `keep` what is not finite, comes from; no data: neither
  bool keep = false;
  ImageView out;  // its region says where it lies
  double scale = 1;
  double alpha_scale = 1;
};

// A method in one go, on samples (core/method.h, Direct), on the CPU.
struct DirectData {
  ConstImageView in;
  ImageView out;
  Rect in_rect;
  Rect out_rect;
  Extent image;
};

// The same on a GPU.
struct DeviceDirectCall {
  ConstImageView in;  // its region says where it lies; covers the output, the reach around it, and
                      // fill_radius more where samples may not be finite, as far as the image goes
  ImageView out;      // of the same type
  Extent image;
  bool keep = false;                // what is not finite is put back
  NonFiniteStats* stats = nullptr;  // in the queue's memory; counts the output's pixels
  Subsampling step = {};            // from the image's coordinates to those of `stats`
  Stream stream = {};
};

class Queue {
 public:
  virtual ~Queue() = default;

  virtual Memory allocate(std::size_t bytes) = 0;       // where stages work
  virtual Memory allocate_host(std::size_t bytes) = 0;  // on the host, fit for upload() and download()
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;

  virtual void clear(NonFiniteStats* stats) = 0;
  virtual void load(const LoadCall& call) = 0;
  virtual void store(const StoreCall& call) = 0;
  virtual void clear(const ByteRows& rows) = 0;  // in the queue's memory
  virtual void run(const Stage& stage, const StageData& data, const Memory& scratch) = 0;
  // Returns whether it met a sample that is not finite. Only where Pipeline::direct is set.
  virtual bool run_direct(const Direct& direct, const DirectData& data, const Memory& scratch);
  virtual void launch_direct(const Direct& direct, const DeviceDirectCall& call);  // its stream is set here

  virtual std::unique_ptr<Mark> make_mark() = 0;
  virtual void record(Mark& mark) = 0;                                // the point after the work so far
  virtual void follow(const Mark& mark) = 0;                          // later work waits for another queue's
  virtual void wait(const Mark& mark) = 0;                            // until the work before it is done
  virtual double ms_between(const Mark& start, const Mark& end) = 0;  // both waited for
  virtual void wait() = 0;                                            // until all work is done
};

struct BackendTraits {
  const char* memory_name = "";       // in errors: "working memory"
  bool works_in_host_memory = false;  // nothing is uploaded or downloaded
  // A band continues from the rows that the previous band has computed. Otherwise bands are independent: each
  // has a halo of its own, and several are worked on at once.
  bool carries_rows = false;
  bool rows_beyond_edges = false;     // under a wrap border stages take rows above 0 and beyond the height
  int lanes = 1;                      // bands that are worked on at once, for each queue
  std::ptrdiff_t row_alignment = 16;  // elements
};

// Reports how much of the running stage is done.
using StageProgress = std::function<void(double part)>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendTraits traits() const = 0;

  // Bands of images on the host take turns over this many queues, perhaps on several devices.
  virtual int queues() const { return 1; }
  virtual std::unique_ptr<Queue> make_queue(int index) = 0;
  virtual std::unique_ptr<Queue> queue_on(Stream stream);  // the caller's; throws where there are no streams
  virtual int devices_of(int queues) const = 0;            // how many the first queues lie on; 0: no GPU
  virtual std::size_t memory_to_take() const = 0;          // half of what is free, for all queues together

  // Rows of a band, before the memory limit.
  virtual int band_rows(const Pipeline& pipeline, const ImageSpec& spec, const Options& options) const = 0;
  // For all stages, which make so many rows at a time.
  virtual std::size_t scratch_bytes(const Pipeline& pipeline, std::span<const int> stage_rows,
                                    const ImageSpec& spec) const = 0;

  // Whether stages and conversions can work on the image where it lies. Throws where the image lies on a
  // device that this backend cannot use.
  virtual bool reaches(const ConstImageView& view, const char* which) const = 0;
  // Whether upload() and download() can use it where it lies.
  virtual bool copies_from(const ConstImageView& view) const = 0;

  // Threads for work on the host.
  virtual Workers& workers() = 0;
  virtual void watch(const CancelToken* cancel, StageProgress progress) = 0;
  virtual bool tells_progress() const { return false; }
};

}  // namespace ungrain
