// The moving windows of rows that a run holds: raw samples as they came, and float planes of each result.
#pragma once

#include <limits>

#include "core/bands.h"
#include "core/memory.h"
#include "core/planes.h"
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

// Where the samples of the input come from, in the coordinates of the whole image.
class RawSource {
 public:
  virtual ~RawSource() = default;
  // A view of just these rows; good until the next call.
  virtual ConstImageView rows(RowRange wanted) = 0;
  // Rows from here on must stay readable; earlier ones may be dropped.
  virtual void retain_from(int /*row*/) {}
  virtual bool stays() const { return false; }  // all rows can be had at any time
};

// All of it lies in memory and stays as it is.
class ViewSource : public RawSource {
 public:
  ViewSource(const ConstImageView& view, int first_row) : view_(view), first_row_(first_row) {}
  ConstImageView rows(RowRange wanted) override {
    return view_.rows(wanted.begin - first_row_, wanted.count());
  }
  bool stays() const override { return true; }

 private:
  ConstImageView view_;
  int first_row_;
};

// A window of rows that moves over what a reader gives; asking for rows before it starts the reader again
// there.
class StreamSource : public RawSource {
 public:
  StreamSource(RowReader& reader, const ImageSpec& row_spec, const Buffer<std::byte>& memory);
  ConstImageView rows(RowRange wanted) override;
  void retain_from(int row) override { retain_from_ = row; }

 private:
  RowReader* reader_;
  ImageView window_;  // as many rows as the memory holds
  RowRange held_;
  int retain_from_ = std::numeric_limits<int>::max();
};

// A view as a reader: the input of a run in place, whose rows are overwritten behind the window.
class ViewReader : public RowReader {
 public:
  ViewReader(const ConstImageView& view, int first_row) : view_(view), first_row_(first_row) {}
  void read_rows(int first, const ImageView& rows) override;

 private:
  ConstImageView view_;
  int first_row_;
};

// The rows of one result that are held, as float planes.
class PlaneRows {
 public:
  PlaneRows() = default;
  PlaneRows(int planes, int width, int rows);

  static std::size_t floats(int planes, int width, int rows);

  void start(RowRange columns, int first_row);  // empty, for a new run
  void drop_before(int row);
  Planes make(RowRange rows);  // room for these, which follow what is held
  ConstPlanes held() const { return view(held_); }

 private:
  Planes view(RowRange rows) const;

  Buffer<float> memory_;
  int planes_ = 0;
  int capacity_ = 0;
  std::ptrdiff_t stride_ = 0;
  RowRange columns_;
  RowRange held_;
};

}  // namespace ungrain
