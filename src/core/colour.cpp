#include "core/colour.h"

#include <cmath>

namespace ungrain {
namespace {

using Matrix = std::array<Triple, 3>;

// Linear sRGB to XYZ (ITU-R BT.709 primaries, D65). The white point is its row sums, so that gray has a = b =
// 0.
constexpr Matrix to_xyz{
    {{0.412453, 0.357580, 0.180423}, {0.212671, 0.715160, 0.072169}, {0.019334, 0.119193, 0.950227}}};

constexpr Triple white_point{to_xyz[0][0] + to_xyz[0][1] + to_xyz[0][2],
                             to_xyz[1][0] + to_xyz[1][1] + to_xyz[1][2],
                             to_xyz[2][0] + to_xyz[2][1] + to_xyz[2][2]};

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

constexpr Matrix from_xyz = inverse(to_xyz);

Triple multiply(const Matrix& m, const Triple& v) {
  Triple result{};
  for (int row = 0; row < 3; ++row) result[row] = m[row][0] * v[0] + m[row][1] * v[1] + m[row][2] * v[2];
  return result;
}

double to_linear(double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); }
double from_linear(double v) {
  return v <= 0.04045 / 12.92 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
}

// The cube root with a straight piece near black (CIE 15:2004).
constexpr double knee = 6.0 / 29;
double lab_curve(double t) {
  return t > knee * knee * knee ? std::cbrt(t) : t / (3 * knee * knee) + 4.0 / 29;
}
double lab_curve_inverse(double f) { return f > knee ? f * f * f : 3 * knee * knee * (f - 4.0 / 29); }

}  // namespace

Triple rgb_to_lab(const Triple& rgb) {
  const Triple xyz = multiply(to_xyz, {to_linear(rgb[0]), to_linear(rgb[1]), to_linear(rgb[2])});
  const double fx = lab_curve(xyz[0] / white_point[0]);
  const double fy = lab_curve(xyz[1] / white_point[1]);
  const double fz = lab_curve(xyz[2] / white_point[2]);
  return {116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)};
}

Triple lab_to_rgb(const Triple& lab) {
  const double fy = (lab[0] + 16) / 116;
  const double fx = fy + lab[1] / 500;
  const double fz = fy - lab[2] / 200;
  const Triple rgb =
      multiply(from_xyz, {lab_curve_inverse(fx) * white_point[0], lab_curve_inverse(fy) * white_point[1],
                          lab_curve_inverse(fz) * white_point[2]});
  return {from_linear(rgb[0]), from_linear(rgb[1]), from_linear(rgb[2])};
}

}  // namespace ungrain
