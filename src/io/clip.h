// Clips: frames of one spec in order, each read and written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/byte_streams.h"
#include "ungrain/image.h"

namespace ungrain::io {

struct Ratio {
  std::int64_t num = 0;
  std::int64_t den = 0;
  bool known() const { return num > 0 && den > 0; }
  friend bool operator==(const Ratio&, const Ratio&) = default;
};

struct ClipInfo {
  ImageSpec spec;
  std::string format = {};         // "Y4M", "raw", "PNG" ...
  Ratio rate = {};                 // frames a second
  Ratio aspect = {};               // of a pixel: width to height
  std::string range = {};          // "LIMITED", "FULL" or empty: not known
  std::vector<std::string> words;  // of a Y4M header, all of them in their order; else empty
  std::int64_t frames = -1;        // -1: not known; a guess where a file may still grow or be cut short
  FileAccess access = {};
};

struct Frame {
  Image pixels;
  std::string words = {};  // what follows FRAME in a Y4M stream, with its space
  int number = 0;          // of the frame in the input, from 0
};

class FrameReader {
 public:
  virtual ~FrameReader() = default;
  virtual const ClipInfo& info() const = 0;
  // The next frame; `frame` has the clip's spec. False: the clip has ended. Throws Error(io) that names the
  // file and the frame.
  virtual bool read(Frame& frame) = 0;
};

class FrameWriter {
 public:
  virtual ~FrameWriter() = default;
  virtual const ImageSpec& spec() const = 0;  // of the frames that write() takes
  virtual void write(const Frame& frame) = 0;
  // After the last frame, also where that came sooner than expected: what was written becomes the result.
  virtual void finish() = 0;
};

// Bytes of a frame without the room that ycbcr's chroma leaves unused: planes one after the other, rows
// without gaps.
std::uint64_t packed_bytes(const ImageSpec& spec);
// Reads a frame so packed; returns the number of bytes that were there.
std::uint64_t read_packed(ByteSource& from, Image& frame);
// Packs a frame behind what is in `to`.
void append_packed(const Image& frame, std::vector<std::byte>& to);

// The spec of a frame of `bits` a sample, 8 to 16.
ImageSpec gray_frame(int width, int height, int bits);
ImageSpec ycbcr_frame(int width, int height, int bits, Subsampling chroma);
// 8 to 16, from the white level.
int bits_of(const ImageSpec& spec);

// Throws where a frame's memory is more than what is free.
void check_frame_memory(const std::string& name, const ImageSpec& spec);

}  // namespace ungrain::io
