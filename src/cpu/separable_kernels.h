// The vectorised parts of separable means: rows of floats, `count` of them, in whole vectors. Whatever is
// read or written behind the last one lies within separable_slack floats. Each number's sums have one order,
// wherever in a row it stands.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ungrain {

inline constexpr std::ptrdiff_t separable_slack = 256;

// out[i] = factor * sum over k of half[|k|] * at[i + k * step], k from -radius to radius; rounded half to
// even and saturated where it is an integer. Down a column the step is the distance of rows, along a row that
// of pixels. Reads and writes nothing behind what it is asked for; not in place.
void weighted_sum(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                  float factor, float* out);
void weighted_sum(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                  float factor, std::uint8_t* out);
void weighted_sum(const float* at, std::ptrdiff_t step, const float* half, int radius, std::ptrdiff_t count,
                  float factor, std::uint16_t* out);

// out[i] = first[i] + second[i]; may be in place.
void add_rows(const float* first, const float* second, std::ptrdiff_t count, float* out);

// out[i] = scale * sum over k of line[i + k * step], k from 0 to length - 1. Destroys the line, which holds
// (length - 1) * step numbers more.
void box_along_line(float* line, std::ptrdiff_t step, int length, float scale, std::ptrdiff_t count,
                    float* out);

// running[i] += row[i], or = row[i] where `restart`; out[i] = behind[i] + running[i], or running[i] where
// behind is null.
void slide_box(const float* row, const float* behind, bool restart, std::ptrdiff_t count, float* running,
               float* out);

// sums[i] += entering[i] - leaving[i], exact in integers; line[i] = sums[i]. Either row may be null.
void slide_sums(const std::uint8_t* entering, const std::uint8_t* leaving, std::ptrdiff_t count,
                std::uint16_t* sums, float* line);
void slide_sums(const std::uint16_t* entering, const std::uint16_t* leaving, std::ptrdiff_t count,
                std::uint32_t* sums, float* line);

// The same without the floats.
void slide_sums(const std::uint8_t* entering, const std::uint8_t* leaving, std::ptrdiff_t count,
                std::uint16_t* sums);

// Division of a 16-bit sum of at most 255 * by, rounded to nearest: (sum + half) * multiplier >> (16 +
// shift). By an odd number (there are no ties), 9 to 225.
struct ShortDivision {
  explicit ShortDivision(int by);
  std::uint16_t half;
  std::uint16_t multiplier = 0;
  int shift = 0;
};

// out[i] = (sum over k of line[i + k * step], k from 0 to length - 1), divided. The sums fit 16 bits. Reads
// and writes nothing behind what it is asked for.
void short_box_along_line(const std::uint16_t* line, std::ptrdiff_t step, int length, const ShortDivision& by,
                          std::ptrdiff_t count, std::uint8_t* out);

}  // namespace ungrain
