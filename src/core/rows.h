// The rows that a run holds: input samples on the host, and planes of each result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/background.h"
#include "core/planes.h"
#include "device/backend.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain {

// Some columns of a view.
template <class View>
View columns_of(View view, int first, int count) {
  using Byte = std::conditional_t<std::is_same_v<View, ImageView>, std::byte, const std::byte>;
  view.data = static_cast<Byte*>(view.data) + first * view.strides.x;
  view.spec.width = count;
  if (!view.region.whole()) view.region.x += first;
  return view;
}

// Samples of consecutive rows one after the other: each row's channels interleaved, or for ycbcr plane after
// plane.
Strides packed_rows(const ImageSpec& spec);

// Copies between views of one type on the host, of any layouts.
void copy_rows(const ConstImageView& from, const ImageView& to, Workers& workers);

// Rows of one slice of the input.
struct RowRequest {
  int slice = 0;
  RowRange rows;
};

// Reads rows straight into buffers on the host. Rows of the previous request are copied from its buffer: each
// row is read once and in order.
class RowFeed {
 public:
  // Fills `rows` with the rows of the slice from `first` on.
  using Read = std::function<void(int slice, int first, const ImageView& rows)>;

  struct Buffer {
    Memory memory;
    RowRequest holds;
    std::unique_ptr<Mark> uploaded;  // null: nothing is uploaded from here
    Queue* uploads = nullptr;        // the queue of an upload that may be under way
  };

  void reserve(Queue& queue, int buffers, std::size_t bytes_each, bool uploads);
  // For a new run. `row_spec` says what a row is; `ahead`: on a thread of its own, while others are worked
  // on.
  // `once`: no row is read twice.
  void start(const ImageSpec& row_spec, Read read, bool ahead, bool once);
  // The rows; `next` is what will be asked for after them. They stay until as many requests have followed as
  // there are buffers, less one that is read ahead.
  Buffer& get(const RowRequest& request, const std::optional<RowRequest>& next);
  // A buffer that holds these rows; null: none does.
  const Buffer* find(const RowRequest& request) const;
  ConstImageView view(const Buffer& buffer, RowRange rows) const;
  void settle();  // until nothing is being read
  void stop();    // the same; its exception is lost

 private:
  Buffer& fill(const RowRequest& request);  // chooses the buffer; reading_job_ then reads into it

  std::vector<Buffer> buffers_;
  std::size_t bytes_each_ = 0;
  ImageSpec row_spec_;
  Read read_;
  bool ahead_ = false;
  bool once_ = true;
  std::size_t next_buffer_ = 0;
  Buffer* last_ = nullptr;  // filled last
  Buffer* read_ahead_ = nullptr;
  std::function<void()> reading_job_;
  Background reading_;
};

// The rows of one slice of a result that are held, as planes.
class PlaneRows {
 public:
  PlaneRows() = default;
  PlaneRows(Memory memory, Element element, int planes, std::ptrdiff_t row_stride, int rows)
      : memory_(std::move(memory)),
        element_(element),
        planes_(planes),
        capacity_(rows),
        stride_(row_stride) {}

  void start(RowRange columns, int first_row);  // empty
  void drop_before(int row);                    // on the host only, unless it is the first row
  TypedPlanes make(RowRange rows);              // room for these, which follow what is held
  TypedPlanes held() const { return view(held_); }

 private:
  TypedPlanes view(RowRange rows) const;

  Memory memory_;
  Element element_ = Element::f32;
  int planes_ = 0;
  int capacity_ = 0;
  std::ptrdiff_t stride_ = 0;
  RowRange columns_;
  RowRange held_;
};

// The slices of one result that are held.
class SliceRing {
 public:
  SliceRing() = default;
  explicit SliceRing(std::vector<PlaneRows> slots) : slots_(std::move(slots)), slices_(slots_.size(), none) {}

  void clear() { slices_.assign(slots_.size(), none); }
  void retain(const std::vector<int>& slices);  // the others are dropped
  PlaneRows& open(int slice);                   // room for a slice that is not held
  PlaneRows* find(int slice);                   // null: it is not held
  std::vector<PlaneRows>& slots() { return slots_; }

 private:
  static constexpr int none = -1;
  std::vector<PlaneRows> slots_;
  std::vector<int> slices_;
};

}  // namespace ungrain
