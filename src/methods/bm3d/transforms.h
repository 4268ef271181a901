// The transforms of bm3d by their definitions. The reference computes with them, and the fast versions derive
// their tables from them.
#pragma once

#include <complex>
#include <vector>

#include "ungrain/methods/bm3d.h"

namespace ungrain {

// Square; row r of a forward transform gives coefficient r.
struct TransformMatrix {
  explicit TransformMatrix(int rows)
      : side(rows), values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(rows)) {}

  std::complex<double>& at(int row, int column) { return values[row * side + column]; }
  const std::complex<double>& at(int row, int column) const { return values[row * side + column]; }

  int side;
  std::vector<std::complex<double>> values;
};

// Both ways along one axis.
struct TransformPair {
  TransformMatrix forward;
  TransformMatrix inverse;
};

// Along a group of `size` patches: orthonormal (dft: unitary). Haar and hadamard take powers of two.
TransformPair group_transform(GroupTransform kind, int size);

// The levels of a transform within a patch, in order, each along the rows and the columns of the first
// level.forward.side x level.forward.side coefficients. All have one level except bior1.5, whose further
// levels transform the low-low quadrant of the previous one. Orthonormal (dft: unitary) except bior1.5, which
// is biorthogonal. Bior1.5 and hadamard take powers of two.
std::vector<TransformPair> patch_transform(PatchTransform kind, int side);

// Weights of a patch's pixels along one axis: a Kaiser window of beta 2, 1 in the middle; or all 1.
std::vector<double> patch_window(int side, bool kaiser);

}  // namespace ungrain
