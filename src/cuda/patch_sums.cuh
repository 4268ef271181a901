// Sums over patches by a warp whose lanes own Columns adjacent columns and Rows rows each: along columns in
// registers, along rows between lanes.
//
// Flat patches: a column's sums are suffixes of one stretch of a patch's length joined with prefixes of the
// next, so that their cost does not depend on the patch and nothing is ever subtracted. Gaussian patches:
// weighted sums along columns, then along rows.
#pragma once

namespace ungrain::cuda {

template <int Channels, int Patch, bool Flat, bool AddsConstant, int Columns, int Rows>
struct PatchSums {
  static constexpr int around = Patch / 2;
  static constexpr int patch_rows = Rows + Patch - 1;  // that the patches of a thread's pixels cover

  // The sums of the squared differences of column i, for each of the thread's rows.
  __device__ static void sum_column(const float (&differences)[Channels][patch_rows], const float* taps,
                                    int i, float (&sums)[Rows][Columns]) {
    if constexpr (Flat && Rows <= Patch + 1) {
      // Row k's patch is the end of the first Patch rows and the start of those behind: every row belongs to
      // one chain only.
      float sum = square_of(differences, Patch - 1);
#pragma unroll
      for (int row = Patch - 1; row >= 0; --row) {
        if (row < Patch - 1) sum = with_square(differences, row, sum);
        if (row < Rows) sums[row][i] = sum;
      }
#pragma unroll
      for (int k = 1; k < Rows; ++k) {
        sum = k == 1 ? square_of(differences, Patch) : with_square(differences, k + Patch - 1, sum);
        sums[k][i] = k < Patch ? sums[k][i] + sum : sum;
      }
    } else if constexpr (Flat) {
      float squares[patch_rows];
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) squares[row] = square_of(differences, row);
        // The same with more stretches of Patch rows.
#pragma unroll
      for (int start = 0; start < Rows; start += Patch) {
        float sum = squares[start + Patch - 1];
#pragma unroll
        for (int row = Patch - 1; row >= 0; --row) {
          if (row < Patch - 1) sum += squares[start + row];
          if (start + row < Rows) sums[start + row][i] = sum;
        }
#pragma unroll
        for (int k = start + 1; k < start + Patch && k < Rows; ++k) {
          sum = k == start + 1 ? squares[start + Patch] : sum + squares[k + Patch - 1];
          sums[k][i] += sum;
        }
      }
    } else {
      float squares[patch_rows];
#pragma unroll
      for (int row = 0; row < patch_rows; ++row) squares[row] = square_of(differences, row);
#pragma unroll
      for (int k = 0; k < Rows; ++k) {
        float sum = squares[k] * taps[0];
#pragma unroll
        for (int tap = 1; tap < Patch; ++tap) sum = fmaf(squares[k + tap], taps[tap], sum);
        sums[k][i] = sum;
      }
    }
  }

  // From the column sums of a row to its patch sums, plus a constant.
  __device__ static void sum_row(const float (&columns)[Columns], const float* taps, float constant,
                                 float (&sums)[Columns]) {
    if constexpr (Flat) {
      float prefixes[Columns];  // of the lane's columns, up to each
      float suffixes[Columns];  // from each on
      prefixes[0] = columns[0];
      suffixes[Columns - 1] = columns[Columns - 1];
#pragma unroll
      for (int i = 1; i < Columns; ++i) {
        prefixes[i] = prefixes[i - 1] + columns[i];
        suffixes[Columns - 1 - i] = suffixes[Columns - i] + columns[Columns - 1 - i];
      }
      // Sums of whole lanes to the left and right, and parts of the lanes where a patch ends.
      constexpr int whole_lanes = around / Columns;
      float left_whole = 0;
      float right_whole = 0;
#pragma unroll
      for (int lanes = 1; lanes <= whole_lanes; ++lanes) {
        const float left = from_left(suffixes[0], lanes);
        const float right = from_right(prefixes[Columns - 1], lanes);
        left_whole = lanes == 1 ? left : left_whole + left;
        right_whole = lanes == 1 ? right : right_whole + right;
      }
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        const int first = i > around ? i - around : 0;
        const int last = i + around < Columns ? i + around : Columns - 1;
        float sum = 0;
        if (first == 0) {
          sum = prefixes[last];
        } else if (last == Columns - 1) {
          sum = suffixes[first];
        } else {
#pragma unroll
          for (int j = 0; j < Columns; ++j) {
            if (j >= first && j <= last) sum = j == first ? columns[j] : sum + columns[j];
          }
        }
        if constexpr (AddsConstant) sum += constant;
        static_assert(whole_lanes <= 1, "sums of the lanes in between are not kept apart");
        const int left = around - i;  // columns that lie in other lanes
        const int right = i + around - (Columns - 1);
        // Whole lanes first: neighbouring columns share that sum.
        if (left >= Columns) sum += left_whole;
        if (right >= Columns) sum += right_whole;
        if (left > 0 && left % Columns != 0) {
          sum += from_left(suffixes[Columns - left % Columns], left / Columns + 1);
        }
        if (right > 0 && right % Columns != 0) {
          sum += from_right(prefixes[right % Columns - 1], right / Columns + 1);
        }
        sums[i] = sum;
      }
    } else {
      float line[Columns + 2 * around];
#pragma unroll
      for (int j = 0; j < Columns + 2 * around; ++j) {
        const int column = j - around;
        if (column >= 0 && column < Columns) {
          line[j] = columns[column];
        } else if (column < 0) {
          const int lanes = (-column + Columns - 1) / Columns;
          line[j] = from_left(columns[column + lanes * Columns], lanes);
        } else {
          line[j] = from_right(columns[column % Columns], column / Columns);
        }
      }
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        float sum = constant;
#pragma unroll
        for (int tap = 0; tap < Patch; ++tap) sum = fmaf(line[i + tap], taps[tap], sum);
        sums[i] = sum;
      }
    }
  }

 private:
  // Adds a row's squared difference.
  __device__ static float with_square(const float (&differences)[Channels][patch_rows], int row, float sum) {
#pragma unroll
    for (int c = 0; c < Channels; ++c) sum = fmaf(differences[c][row], differences[c][row], sum);
    return sum;
  }
  __device__ static float square_of(const float (&differences)[Channels][patch_rows], int row) {
    float sum = differences[0][row] * differences[0][row];
#pragma unroll
    for (int c = 1; c < Channels; ++c) sum = fmaf(differences[c][row], differences[c][row], sum);
    return sum;
  }

  // The value of the lane so many to the left; the lane's own where there is none.
  __device__ static float from_left(float value, int lanes) {
    return __shfl_up_sync(0xffffffffU, value, lanes);
  }
  __device__ static float from_right(float value, int lanes) {
    return __shfl_down_sync(0xffffffffU, value, lanes);
  }
};

}  // namespace ungrain::cuda
