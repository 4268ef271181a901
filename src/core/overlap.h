// Reading and writing while the workers filter: the next rows are read, and finished ones written, on threads
// of their own. Each row is still asked for and given once and in order.
#pragma once

#include "core/bands.h"
#include "core/memory.h"
#include "cpu/background.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// Reads on while nobody waits: after each request as many rows more, as far as the memory and the image go.
class ReadAhead : public RowReader {
 public:
  ReadAhead(RowReader& source, const ImageSpec& image, const Buffer<std::byte>& memory);
  void read_rows(int first, const ImageView& rows) override;

 private:
  RowReader* source_;
  int height_;
  ImageView room_;  // as many rows as the memory holds
  RowRange ahead_;  // rows in the room that were not asked for yet
  int room_begin_ = 0;
  Background reading_;
};

// Hands rows to the writer and returns; they must stay as they are until the next call, or finish(), returns.
class WriteBehind : public RowWriter {
 public:
  explicit WriteBehind(RowWriter& target) : target_(&target) {}
  void write_rows(int first, const ConstImageView& rows) override;
  void finish() { writing_.wait(); }

 private:
  RowWriter* target_;
  Background writing_;
};

}  // namespace ungrain
