#include "methods/bm3d/transforms.h"

#include <cmath>
#include <numbers>

namespace ungrain {
namespace {

using std::numbers::pi;
using std::numbers::sqrt2;

TransformMatrix transposed(const TransformMatrix& matrix) {
  TransformMatrix result(matrix.side);
  for (int r = 0; r < matrix.side; ++r) {
    for (int c = 0; c < matrix.side; ++c) result.at(r, c) = std::conj(matrix.at(c, r));
  }
  return result;
}

TransformPair orthonormal(const TransformMatrix& forward) { return {forward, transposed(forward)}; }

TransformMatrix dct(int side) {
  TransformMatrix m(side);
  for (int f = 0; f < side; ++f) {
    const double scale = std::sqrt((f == 0 ? 1.0 : 2.0) / side);
    for (int x = 0; x < side; ++x) m.at(f, x) = scale * std::cos(pi * (2 * x + 1) * f / (2.0 * side));
  }
  return m;
}

TransformMatrix dft(int side) {
  TransformMatrix m(side);
  for (int f = 0; f < side; ++f) {
    for (int x = 0; x < side; ++x) m.at(f, x) = std::polar(1 / std::sqrt(side), -2 * pi * f * x / side);
  }
  return m;
}

// In the order of Sylvester's construction.
TransformMatrix hadamard(int side) {
  TransformMatrix m(side);
  m.at(0, 0) = 1 / std::sqrt(side);
  for (int half = 1; half < side; half *= 2) {
    for (int r = 0; r < half; ++r) {
      for (int c = 0; c < half; ++c) {
        const std::complex<double> value = m.at(r, c);
        m.at(r, c + half) = value;
        m.at(r + half, c) = value;
        m.at(r + half, c + half) = -value;
      }
    }
  }
  return m;
}

// Every level halves the sums of the previous one: row 0 is the mean, row 1 the difference of the halves,
// rows 2 and 3 of the quarters, and so on.
TransformMatrix haar(int side) {
  TransformMatrix m(side);
  for (int c = 0; c < side; ++c) m.at(0, c) = 1 / std::sqrt(side);
  for (int pieces = 1; pieces < side; pieces *= 2) {
    const int length = side / pieces;
    for (int piece = 0; piece < pieces; ++piece) {
      for (int c = 0; c < length; ++c) {
        m.at(pieces + piece, piece * length + c) = (c < length / 2 ? 1 : -1) / std::sqrt(length);
      }
    }
  }
  return m;
}

// One level of bior1.5, periodic: the low half of the coefficients, then the high half. With the pairs of the
// axis d(i) = (x(2i+1) - x(2i)) / sqrt 2 and s(i) = (x(2i+1) + x(2i)) / sqrt 2, high(i) = d(i) and low(i) =
// s(i) + (22 (d(i-1) - d(i+1)) - 3 (d(i-2) - d(i+2))) / 128. These are the only weights, on two pairs to each
// side, with which the inverse's high-pass filter has five vanishing moments. The inverse subtracts the same
// sum.
TransformPair bior15_level(int side) {
  TransformPair pair{TransformMatrix(side), TransformMatrix(side)};
  const int half = side / 2;
  constexpr struct {
    int offset;
    double weight;
  } update[] = {{-2, -3.0 / 128}, {-1, 22.0 / 128}, {1, -22.0 / 128}, {2, 3.0 / 128}};
  for (int i = 0; i < half; ++i) {
    pair.forward.at(half + i, 2 * i) -= 1 / sqrt2;
    pair.forward.at(half + i, 2 * i + 1) += 1 / sqrt2;
    pair.forward.at(i, 2 * i) += 1 / sqrt2;
    pair.forward.at(i, 2 * i + 1) += 1 / sqrt2;
    pair.inverse.at(2 * i, i) += 1 / sqrt2;
    pair.inverse.at(2 * i + 1, i) += 1 / sqrt2;
    pair.inverse.at(2 * i, half + i) -= 1 / sqrt2;
    pair.inverse.at(2 * i + 1, half + i) += 1 / sqrt2;
    for (const auto& [offset, weight] : update) {
      const int j = ((i + offset) % half + half) % half;
      pair.forward.at(i, 2 * j) -= weight / sqrt2;
      pair.forward.at(i, 2 * j + 1) += weight / sqrt2;
      pair.inverse.at(2 * i, half + j) -= weight / sqrt2;
      pair.inverse.at(2 * i + 1, half + j) -= weight / sqrt2;
    }
  }
  return pair;
}

// The modified Bessel function of the first kind and order 0, by its series.
double bessel_i0(double x) {
  double term = 1;
  double sum = 1;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= (x / 2 / k) * (x / 2 / k);
    sum += term;
  }
  return sum;
}

}  // namespace

TransformPair group_transform(GroupTransform kind, int size) {
  switch (kind) {
    case GroupTransform::haar:
      return orthonormal(haar(size));
    case GroupTransform::hadamard:
      return orthonormal(hadamard(size));
    case GroupTransform::dct:
      return orthonormal(dct(size));
    case GroupTransform::dft:
      break;
  }
  return orthonormal(dft(size));
}

std::vector<TransformPair> patch_transform(PatchTransform kind, int side) {
  std::vector<TransformPair> levels;
  switch (kind) {
    case PatchTransform::dct:
      return {orthonormal(dct(side))};
    case PatchTransform::hadamard:
      return {orthonormal(hadamard(side))};
    case PatchTransform::dft:
      return {orthonormal(dft(side))};
    case PatchTransform::bior15:
      for (int size = side; size > 1; size /= 2) levels.push_back(bior15_level(size));
      break;
  }
  return levels;
}

std::vector<double> patch_window(int side, bool kaiser) {
  std::vector<double> window(static_cast<std::size_t>(side), 1.0);
  constexpr double beta = 2;
  for (int i = 0; kaiser && side > 1 && i < side; ++i) {
    const double from_middle = 2.0 * i / (side - 1) - 1;
    window[i] = bessel_i0(beta * std::sqrt(1 - from_middle * from_middle)) / bessel_i0(beta);
  }
  return window;
}

}  // namespace ungrain
