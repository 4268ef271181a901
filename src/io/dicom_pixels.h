// Reads the rows of one DICOM file's frames: native and RLE pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/dicom_elements.h"
#include "io/dicom_file.h"
#include "io/source_file.h"
#include "ungrain/image.h"

namespace ungrain::io {

class DicomPixelReader {
 public:
  // Opens the file; throws where it is no longer the one whose header was read. `file` stays where it is.
  explicit DicomPixelReader(const DicomFile& file);
  DicomPixelReader(const DicomPixelReader&) = delete;
  DicomPixelReader& operator=(const DicomPixelReader&) = delete;

  // `rows` are f32, or of the samples' type where these are unsigned and not scaled.
  void read_rows(int frame, int first, const ImageView& rows, const DicomScaling& scaling);

  // Memory that it takes besides a few rows.
  static std::uint64_t decoding_bytes(const DicomPixels& pixels);

 private:
  void read_stored(int frame, int first, int count);
  void read_bytes(std::byte* to, std::size_t size, std::uint64_t offset);
  void decode_rle(int frame);
  void decode_segment(std::size_t begin, std::size_t end, std::size_t place);

  const DicomFile& file_;
  const DicomPixels& pixels_;
  SourceFile source_;
  DicomBytes bytes_;
  int decoded_frame_ = -1;        // in frame_, of RLE pixels
  std::vector<std::byte> frame_;  // little endian, channels interleaved
  std::vector<std::byte> fragment_;
  std::vector<std::byte> stored_;  // rows of the file
  std::vector<std::byte> plane_;
  std::vector<std::byte> row_;
};

}  // namespace ungrain::io
