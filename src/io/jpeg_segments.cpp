#include "io/jpeg_segments.h"

#include <array>
#include <cstdint>
#include <optional>

namespace ungrain::io {
namespace {

using Payload = std::vector<unsigned char>;

constexpr std::size_t coefficients = 64;

// A table's numbers follow the diagonals in zigzag order.
std::array<std::size_t, coefficients> places_along_diagonals() {
  std::array<std::size_t, coefficients> places{};
  std::size_t n = 0;
  for (std::size_t sum = 0; sum < 15; ++sum) {
    for (std::size_t k = 0; k <= sum; ++k) {
      const std::size_t row = sum % 2 == 0 ? sum - k : k;
      const std::size_t column = sum - row;
      if (row < 8 && column < 8) places[n++] = row * 8 + column;
    }
  }
  return places;
}

class SegmentReader {
 public:
  void read(unsigned marker, const Payload& data) {
    constexpr unsigned comment = 0xfe;
    constexpr unsigned tables = 0xdb;
    constexpr unsigned first_frame = 0xc0;  // baseline, extended, progressive
    constexpr unsigned last_frame = 0xc2;
    if (marker == comment && !data.empty()) comments_.emplace_back(data.begin(), data.end());
    if (marker == tables) read_tables(data);
    if (marker >= first_frame && marker <= last_frame) read_frame(data);
  }

  JpegSegments result() && {
    JpegSegments segments{std::move(comments_), {}};
    if (luminance_table_) segments.steps = std::move(tables_[*luminance_table_]);
    return segments;
  }

 private:
  void read_tables(const Payload& data) {
    static const std::array<std::size_t, coefficients> places = places_along_diagonals();
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t bytes = data[at] >> 4U == 0 ? 1 : 2;
      const std::size_t table = data[at] & 15U;
      ++at;
      if (table >= tables_.size() || data.size() - at < bytes * coefficients) return;
      std::vector<int> steps(coefficients);
      for (const std::size_t place : places) {
        steps[place] = bytes == 1 ? data[at] : data[at] * 256 + data[at + 1];
        at += bytes;
      }
      tables_[table] = std::move(steps);
    }
  }

  void read_frame(const Payload& data) {
    constexpr std::size_t table_of_first = 8;  // after sizes, number of components, its name and sampling
    if (data.size() > table_of_first && data[table_of_first] < tables_.size()) {
      luminance_table_ = data[table_of_first];
    }
  }

  std::vector<std::string> comments_;
  std::array<std::vector<int>, 4> tables_;
  std::optional<std::size_t> luminance_table_;
};

}  // namespace

JpegSegments read_jpeg_segments(const SourceFile& file) {
  constexpr unsigned start_of_scan = 0xda;
  SegmentReader reader;
  for (std::uint64_t at = 2; at + 4 <= file.size();) {
    std::array<unsigned char, 4> head{};  // marker and length, which counts itself
    file.read(head.data(), head.size(), at);
    const unsigned length = static_cast<unsigned>(head[2]) << 8U | head[3];
    if (head[0] != 0xff || head[1] == start_of_scan || length < 2 || length > file.size() - at - 2) break;
    Payload data(length - 2);
    file.read(data.data(), data.size(), at + head.size());
    reader.read(head[1], data);
    at += 2 + length;
  }
  return std::move(reader).result();
}

}  // namespace ungrain::io
