// sRGB to CIE-Lab (D65) and back. Values below 0 and above white go through unclipped.
#pragma once

#include <array>
#include <cmath>

#include "core/host_device.h"

namespace ungrain {

using Triple = std::array<double, 3>;

// Independent noise of deviation `sigma` in red, green and blue (white 1), as a delta E: the root mean square
// of the distance by which it moves a pixel. Measured over gray levels and photographs: 230 to 260 sigma, as
// lightness has a scale of 100.
constexpr double noise_in_lab(double sigma) { return 250 * sigma; }

namespace colour {

using Matrix = std::array<Triple, 3>;

// Linear sRGB to XYZ (ITU-R BT.709 primaries, D65). The white point is its row sums, so that gray has a = b =
// 0.
constexpr Matrix to_xyz() {
  return {{{0.412453, 0.357580, 0.180423}, {0.212671, 0.715160, 0.072169}, {0.019334, 0.119193, 0.950227}}};
}

constexpr Triple white_point() {
  const Matrix m = to_xyz();
  return {m[0][0] + m[0][1] + m[0][2], m[1][0] + m[1][1] + m[1][2], m[2][0] + m[2][1] + m[2][2]};
}

constexpr Matrix inverse(const Matrix& m) {
  const auto minor = [&](int row, int column) {
    const int r0 = (row + 1) % 3;
    const int r1 = (row + 2) % 3;
    const int c0 = (column + 1) % 3;
    const int c1 = (column + 2) % 3;
    return m[r0][c0] * m[r1][c1] - m[r0][c1] * m[r1][c0];
  };
  const double determinant = m[0][0] * minor(0, 0) + m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
  Matrix result{};
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) result[column][row] = minor(row, column) / determinant;
  }
  return result;
}

constexpr Triple multiply(const Matrix& m, const Triple& v) {
  Triple result{};
  for (int row = 0; row < 3; ++row) result[row] = m[row][0] * v[0] + m[row][1] * v[1] + m[row][2] * v[2];
  return result;
}

UNGRAIN_HOST_DEVICE inline double to_linear(double v) {
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}
UNGRAIN_HOST_DEVICE inline double from_linear(double v) {
  return v <= 0.04045 / 12.92 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
}

// The cube root with a straight piece near black (CIE 15:2004).
constexpr double knee() { return 6.0 / 29; }
UNGRAIN_HOST_DEVICE inline double lab_curve(double t) {
  return t > knee() * knee() * knee() ? std::cbrt(t) : t / (3 * knee() * knee()) + 4.0 / 29;
}
constexpr double lab_curve_inverse(double f) {
  return f > knee() ? f * f * f : 3 * knee() * knee() * (f - 4.0 / 29);
}

}  // namespace colour

// rgb from 0 to 1; L from 0 to 100.
UNGRAIN_HOST_DEVICE inline Triple rgb_to_lab(const Triple& rgb) {
  constexpr colour::Matrix to_xyz = colour::to_xyz();
  constexpr Triple white = colour::white_point();
  const Triple linear{colour::to_linear(rgb[0]), colour::to_linear(rgb[1]), colour::to_linear(rgb[2])};
  const Triple xyz = colour::multiply(to_xyz, linear);
  const double fx = colour::lab_curve(xyz[0] / white[0]);
  const double fy = colour::lab_curve(xyz[1] / white[1]);
  const double fz = colour::lab_curve(xyz[2] / white[2]);
  return {116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)};
}

UNGRAIN_HOST_DEVICE inline Triple lab_to_rgb(const Triple& lab) {
  constexpr colour::Matrix from_xyz = colour::inverse(colour::to_xyz());
  constexpr Triple white = colour::white_point();
  const double fy = (lab[0] + 16) / 116;
  const double fx = fy + lab[1] / 500;
  const double fz = fy - lab[2] / 200;
  const Triple rgb = colour::multiply(
      from_xyz, {colour::lab_curve_inverse(fx) * white[0], colour::lab_curve_inverse(fy) * white[1],
                 colour::lab_curve_inverse(fz) * white[2]});
  return {colour::from_linear(rgb[0]), colour::from_linear(rgb[1]), colour::from_linear(rgb[2])};
}

}  // namespace ungrain
