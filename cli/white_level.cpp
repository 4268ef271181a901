#include "white_level.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "signals.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

constexpr std::array usual_whites = {1.0, 255.0, 1023.0, 4095.0, 16383.0, 65535.0};
// Noise may exceed white.
constexpr double headroom = 1.5;
// In these formats 1 is white by definition, and lights are brighter.
constexpr double headroom_of_light = 16;
// Values above may be a few hot pixels.
constexpr double share_above = 0.01;

struct Values {
  std::array<double, usual_whites.size()> limits{};
  std::array<std::int64_t, usual_whites.size()> above{};
  std::int64_t finite = 0;
  float largest = 0;
};

double limit_of(double white, bool is_light, bool whole_numbers) {
  if (whole_numbers) return white;

  return white * (white == 1 && is_light ? headroom_of_light : headroom);
}

void count_row(const std::vector<float>& row, Values& values) {
  for (const float value : row) {
    if (!std::isfinite(value)) continue;
    ++values.finite;
    values.largest = std::max(values.largest, value);
    for (std::size_t i = 0; i < usual_whites.size() && value > values.limits[i]; ++i) {
      ++values.above[i];
    }
  }
}

void count_rows(io::InputFile& file, const ImageSpec& spec, int first, int count, Values& values) {
  ImageSpec band = spec;
  band.height = count;
  Image memory(band);
  file.read_rows(first, memory.view());
  std::vector<float> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < count; ++y) {
    for (int channel = 0; channel < spec.colour_channels(); ++channel) {
      load_row(ConstImageView(memory.view()), y, channel, row.data());
      count_row(row, values);
    }
  }
}

// Counts all rows of a page, or some bands of a large one.
void count_page(io::InputFile& file, const ImageSpec& spec, Values& values) {
  constexpr double most_pixels = 16e6;
  constexpr int bands = 64;
  const int band_rows = std::clamp((1 << 20) / spec.width, 1, 64);
  const bool all =
      static_cast<double>(spec.width) * spec.height <= most_pixels || spec.height <= bands * band_rows;
  const int step = all ? band_rows : spec.height / bands;
  for (int top = 0; top < spec.height; top += step) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    count_rows(file, spec, top, std::min(band_rows, spec.height - top), values);
  }
}

// Integers have no headroom: the smallest number of bits, from 8 on, that holds all of them, outliers
// excepted.
double white_of_integers(const Values& values) {
  double white = 255;
  while (white < values.largest) white = 2 * white + 1;
  for (std::size_t i = 1; i < usual_whites.size() && usual_whites[i] < white; ++i) {
    if (static_cast<double>(values.above[i]) <= share_above * static_cast<double>(values.finite)) {
      return usual_whites[i];
    }
  }
  return white;
}

}  // namespace

WhiteLevel find_white_level(io::InputFile& file, const io::FileInfo& info) {
  if (!info.white_unknown) return {info.spec.range, info.spec.range > 0 ? "metadata" : "type"};
  constexpr int most_pages = 16;
  const bool is_light = info.format == "OpenEXR" || info.format == "Radiance";
  const bool whole_numbers = info.spec.range > 0;
  Values values;
  for (std::size_t i = 0; i < usual_whites.size(); ++i) {
    values.limits[i] = limit_of(usual_whites[i], is_light, whole_numbers);
  }
  const int pages = std::min(info.pages, most_pages);
  for (int i = 0; i < pages; ++i) {
    file.select_page(static_cast<int>(static_cast<std::int64_t>(i) * info.pages / pages));
    count_page(file, info.spec, values);
  }
  file.select_page(0);
  if (values.finite == 0 || values.largest <= 0) return {};
  constexpr double darkest = 1.0 / 256;  // below this the values are in another unit
  if (values.largest < darkest) return {values.largest, "values"};
  if (whole_numbers) return {std::min(white_of_integers(values), info.spec.range), "values"};
  for (std::size_t i = 0; i < usual_whites.size(); ++i) {
    const bool fits =
        static_cast<double>(values.above[i]) <= share_above * static_cast<double>(values.finite);
    if (fits && i == 0) return {};
    if (fits) return {usual_whites[i], "values"};
  }
  return {values.largest, "values"};
}

}  // namespace ungrain::cli
