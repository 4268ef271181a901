// Sequences of images of one spec: frames of a clip, slices of a volume. Denoiser::run() takes them as views
// or, in bounded memory, from a reader to a writer.
//
// Every method works on a sequence. A method that reaches along the sequence (Denoiser::reach()) reads the
// images before and after; the others filter each image by itself.
#pragma once

#include "ungrain/export.h"
#include "ungrain/image.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// Called from two threads, never at the same time.
class SliceReader {
 public:
  virtual ~SliceReader() = default;
  // Whether the slice exists. Asked only for slices a few ahead of those that were read.
  virtual bool has(int slice) = 0;
  // Fills `rows` with the slice's rows [first, first + rows.spec.height). Slices are read in order, each once
  // and each row once and in order, with three exceptions: where a slice does not fit the memory, its rows
  // are read again for every slice that looks at it; a wrap border looks at the slices of the other end; and
  // Denoiser::run() on one slice reads what that needs.
  virtual void read_rows(int slice, int first, const ImageView& rows) = 0;
  // Whether a new scene starts with this slice: no slice of one scene is used for a slice of another.
  virtual bool starts_scene(int slice) { return slice == 0; }
};

class SliceWriter {
 public:
  virtual ~SliceWriter() = default;
  virtual void write_rows(int slice, int first, const ConstImageView& rows) = 0;  // once each, in order
};

}  // namespace ungrain
UNGRAIN_API_END
