// Rows of rgb planes to luminance and colour differences, and back, on a CPU.
#pragma once

#include "core/opponent.h"
#include "core/planes.h"

namespace ungrain {

// One plane's row.
inline void opponent_row(const float* r, const float* g, const float* b, int plane, int width, float* to) {
  const auto weight = [&](int channel) { return static_cast<float>(opponent_matrix[plane][channel]); };
  const float of_r = weight(0);
  const float of_g = weight(1);
  const float of_b = weight(2);
  for (int x = 0; x < width; ++x) to[x] = of_r * r[x] + of_g * g[x] + of_b * b[x];
}

// All three, in place.
inline void rgb_row(const Planes& planes, int y) {
  float* row[3] = {planes.row(0, y), planes.row(1, y), planes.row(2, y)};
  for (int x = 0; x < planes.rect.width(); ++x) {
    const float from[3] = {row[0][x], row[1][x], row[2][x]};
    for (int plane = 0; plane < 3; ++plane) {
      float sum = 0;
      for (int c = 0; c < 3; ++c) sum += static_cast<float>(opponent_matrix[c][plane]) * from[c];
      row[plane][x] = sum;
    }
  }
}

}  // namespace ungrain
