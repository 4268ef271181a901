// Where the samples of a run come from and where its results go: views, readers and writers, of one image or
// of a sequence.
#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/rows.h"
#include "core/run_checks.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"
#include "ungrain/sequence.h"

namespace ungrain {

// Where the samples of a run come from.
class RunInput : public Slices {
 public:
  // Where the slice lies, if stages can read it there and it stays as it is; null: it is read.
  virtual const ConstImageView* view(int /*slice*/) const { return nullptr; }
  // Where it lies on the host, if it stays there as it is and can be uploaded from there; null: it is read.
  virtual const ConstImageView* upload_view(int /*slice*/) const { return nullptr; }
  virtual void read_rows(int slice, int first, const ImageView& rows) = 0;
  virtual bool takes_time() const { return true; }  // reading beside the filtering pays
  virtual bool reads_once() const { return true; }  // false: rows may be read again, while they are there
};

class ViewInput : public RunInput {
 public:
  // How the views get to where the stages work.
  enum class Way { as_they_lie, uploaded, copied, copied_in_place };

  ViewInput(std::span<const ConstImageView> views, Way way, Workers& workers)
      : views_(views), way_(way), workers_(&workers) {}
  bool exists(int slice) override { return slice < static_cast<int>(views_.size()); }
  bool starts_scene(int slice) override { return slice == 0; }
  const ConstImageView* view(int slice) const override {
    return way_ == Way::as_they_lie ? &at(slice) : nullptr;
  }
  const ConstImageView* upload_view(int slice) const override {
    return way_ == Way::uploaded ? &at(slice) : nullptr;
  }
  bool reads_once() const override { return way_ == Way::copied_in_place; }
  void read_rows(int slice, int first, const ImageView& rows) override {
    copy_rows(at(slice).rows(first - rect_of(at(slice)).y0, rows.spec.height), rows, *workers_);
  }
  bool takes_time() const override { return false; }

 private:
  const ConstImageView& at(int slice) const { return views_[static_cast<std::size_t>(slice)]; }
  std::span<const ConstImageView> views_;
  Way way_;
  Workers* workers_;
};

class RowInput : public RunInput {
 public:
  explicit RowInput(RowReader& reader) : reader_(&reader) {}
  bool exists(int slice) override { return slice == 0; }
  bool starts_scene(int) override { return true; }
  void read_rows(int, int first, const ImageView& rows) override { reader_->read_rows(first, rows); }

 private:
  RowReader* reader_;
};

class SliceInput : public RunInput {
 public:
  explicit SliceInput(SliceReader& reader) : reader_(&reader) {}
  bool exists(int slice) override { return reader_->has(slice); }
  bool starts_scene(int slice) override { return reader_->starts_scene(slice); }
  void read_rows(int slice, int first, const ImageView& rows) override {
    reader_->read_rows(slice, first, rows);
  }

 private:
  SliceReader* reader_;
};

// Where the samples of a run go.
class RunOutput {
 public:
  virtual ~RunOutput() = default;
  virtual const ImageView* view(int /*slice*/) const { return nullptr; }  // null: rows are written
  // Where it lies on the host, if it can be downloaded to there; null: rows are written.
  virtual const ImageView* download_view(int /*slice*/) const { return nullptr; }
  virtual void write_rows(int slice, int first, const ConstImageView& rows) = 0;
  virtual bool takes_time() const { return true; }
  virtual void slice_done(int /*slice*/) {}
  virtual void all_done() {}
};

class ViewOutput : public RunOutput {
 public:
  // How the results get there from where the stages work.
  enum class Way { as_they_lie, downloaded, copied };

  ViewOutput(std::span<const ImageView> views, int first_slice, Way way, Workers& workers)
      : views_(views), first_slice_(first_slice), way_(way), workers_(&workers) {}
  const ImageView* view(int slice) const override { return way_ == Way::as_they_lie ? &at(slice) : nullptr; }
  const ImageView* download_view(int slice) const override {
    return way_ == Way::downloaded ? &at(slice) : nullptr;
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    copy_rows(rows, at(slice).rows(first - rect_of(at(slice)).y0, rows.spec.height), *workers_);
  }
  bool takes_time() const override { return false; }

 protected:
  const ImageView& at(int slice) const { return views_[static_cast<std::size_t>(slice - first_slice_)]; }
  Workers& workers() const { return *workers_; }

 private:
  std::span<const ImageView> views_;
  int first_slice_;
  Way way_;
  Workers* workers_;
};

// In place, where slices are read again for later slices: a slice is overwritten only when nothing reads it
// any more.
class LateOutput : public ViewOutput {
 public:
  LateOutput(std::span<const ImageView> views, int delay, Workers& workers)
      : ViewOutput(views, 0, Way::copied, workers), delay_(delay) {}
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    if (waiting_.empty() || waiting_.back().slice != slice) {
      ImageSpec spec = at(slice).spec;
      waiting_.push_back({slice, Image(spec)});
    }
    copy_rows(rows, waiting_.back().image.view().rows(first - rect_of(at(slice)).y0, rows.spec.height),
              workers());
  }
  void slice_done(int slice) override { write_until(slice - delay_); }
  void all_done() override { write_until(std::numeric_limits<int>::max()); }

 private:
  struct Waiting {
    int slice = 0;
    Image image;
  };
  void write_until(int last) {
    while (!waiting_.empty() && waiting_.front().slice <= last) {
      copy_rows(waiting_.front().image.view(), at(waiting_.front().slice), workers());
      waiting_.erase(waiting_.begin());
    }
  }

  int delay_;
  std::vector<Waiting> waiting_;
};

class RowOutput : public RunOutput {
 public:
  explicit RowOutput(RowWriter& writer) : writer_(&writer) {}
  void write_rows(int, int first, const ConstImageView& rows) override { writer_->write_rows(first, rows); }

 private:
  RowWriter* writer_;
};

class SliceOutput : public RunOutput {
 public:
  explicit SliceOutput(SliceWriter& writer) : writer_(&writer) {}
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    writer_->write_rows(slice, first, rows);
  }

 private:
  SliceWriter* writer_;
};

}  // namespace ungrain
