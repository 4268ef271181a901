// What the header of one DICOM file says of its frames. No pixel is read for it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/dicom_elements.h"
#include "io/file_access.h"
#include "io/source_file.h"

namespace ungrain::io {

using Vector3 = std::array<double, 3>;

// What may be said of the file, of all frames, or of each frame. Lengths are millimetres; positions count
// towards the patient's left, back and head.
struct DicomFrame {
  std::optional<Vector3> position;  // of the first pixel's centre
  std::optional<Vector3> along_row;
  std::optional<Vector3> along_column;
  std::optional<double> row_distance;
  std::optional<double> column_distance;
  std::optional<double> slice_distance;
  std::optional<double> slice_thickness;
  std::optional<double> slope;
  std::optional<double> intercept;
  std::optional<std::int64_t> time_index;  // of a series in time
};

// A value is slope * sample + intercept.
struct DicomScaling {
  double slope = 1;
  double intercept = 0;
  friend bool operator==(const DicomScaling&, const DicomScaling&) = default;
};

enum class DicomColours : std::uint8_t { gray, inverted_gray, rgb };

struct DicomPixels {
  const DicomSyntax* syntax = nullptr;
  std::uint64_t data_begin = 0;  // of the data set, where it is deflated
  int width = 0;
  int height = 0;
  int channels = 1;
  DicomColours colours = DicomColours::gray;
  bool planes = false;                        // channel by channel
  int bytes = 1;                              // of a sample
  int bits = 8;                               // of these, that count
  int lowest_bit = 0;                         // the place of the least of them
  bool is_signed = false;                     // two's complement
  bool swapped = false;                       // bytes of 8-bit samples are stored as big-endian pairs
  std::uint64_t at = 0;                       // of native pixels
  std::vector<DicomFragment> fragments = {};  // of RLE pixels, one a frame

  std::uint64_t frame_bytes() const {
    return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height) *
           static_cast<std::uint64_t>(channels) * static_cast<std::uint64_t>(bytes);
  }
};

struct DicomFile {
  std::filesystem::path path;
  FileStamp stamp;
  FileAccess access;
  DicomPixels pixels;
  std::string instance;  // the image's own identifier
  std::string series;    // the series' identifier
  std::string description;
  std::optional<std::int64_t> series_number;
  std::optional<std::int64_t> acquisition;
  std::optional<std::int64_t> number;  // of the image in its series
  std::optional<std::int64_t> echo;
  std::optional<double> repetition_ms;
  bool has_lookup_table = false;  // its samples are to be replaced by those of a table
  int frames = 1;
  DicomFrame common;                  // of all frames
  std::vector<DicomFrame> of_frames;  // may be fewer than the frames: the others have nothing of their own

  DicomFrame frame(int index) const;
};

// Nothing: it contains no image. Throws where it is damaged, or contains one that cannot be read.
std::optional<DicomFile> read_dicom_file(const SourceFile& file);

}  // namespace ungrain::io
