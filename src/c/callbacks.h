// The caller's functions as the readers and writers of the C++ API.
#pragma once

#include "c/guard.h"
#include "c/structs.h"
#include "ungrain/denoiser.h"
#include "ungrain/sequence.h"

namespace ungrain::c {

class CallbackRows : public RowReader, public RowWriter {
 public:
  explicit CallbackRows(const ungrain_rows* given) : calls_(read(given)) {
    if (calls_.rows == nullptr) invalid("ungrain_rows has no function");
  }
  void read_rows(int first, const ImageView& rows) override { call(first, CImage(rows), "the reader"); }
  void write_rows(int first, const ConstImageView& rows) override { call(first, CImage(rows), "the writer"); }

 private:
  void call(int first, const CImage& rows, const char* who) const {
    set_message("");
    go_on(calls_.rows(calls_.user, first, rows.image()), who);
  }

  ungrain_rows calls_;
};

class CallbackSlices : public SliceReader, public SliceWriter {
 public:
  explicit CallbackSlices(const ungrain_slices* given, bool reads) : calls_(c::read(given)) {
    if (calls_.rows == nullptr) invalid("ungrain_slices has no function `rows`");
    if (reads && calls_.has == nullptr) invalid("ungrain_slices of a reader has no function `has`");
  }
  bool has(int slice) override { return calls_.has(calls_.user, slice) != 0; }
  bool starts_scene(int slice) override {
    return calls_.starts_scene == nullptr ? slice == 0 : calls_.starts_scene(calls_.user, slice) != 0;
  }
  void read_rows(int slice, int first, const ImageView& rows) override {
    call(slice, first, CImage(rows), "the reader");
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    call(slice, first, CImage(rows), "the writer");
  }

 private:
  void call(int slice, int first, const CImage& rows, const char* who) const {
    set_message("");
    go_on(calls_.rows(calls_.user, slice, first, rows.image()), who);
  }

  ungrain_slices calls_;
};

}  // namespace ungrain::c
