// The estimate of an image's white noise, from its blocks, row by row.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/workers.h"
#include "noise/latest_rows.h"
#include "noise/noise_pass.h"
#include "ungrain/estimate.h"

namespace ungrain {

class WhiteNoise {
 public:
  explicit WhiteNoise(const ImageSpec& image);
  ~WhiteNoise();
  WhiteNoise(WhiteNoise&&) noexcept;
  WhiteNoise& operator=(WhiteNoise&&) noexcept;

  // Examines the blocks whose last row is in [first, end): in pieces on several threads at once, and then
  // collect() with the same rows. The result does not depend on the pieces.
  void look_at(const LatestRows& rows, int first, int end);
  void collect(const LatestRows& rows, Workers& workers);
  // For a pass over the image, in place of look_at(). Thin images have blocks of other sizes, for which there
  // is no pass.
  bool has_whole_blocks() const;
  WhiteBlocks lattice() const;
  void take(std::span<const BatchStatistics> looks, Workers& workers);

  // For an image whose pixels stay available, in place of collect().
  void choose(const BlockSource& source, Workers& workers);

  NoiseEstimate result(Workers& workers);  // after the last row

  std::vector<int> sampled_columns() const;  // NoiseEstimator's
  std::vector<int> sampled_rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Throw Error unless the view has pixels; unless these are in host memory; unless the rows are the image's
// next ones after `seen`.
void check_pixels(const ConstImageView& view);
void check_readable(const ConstImageView& view);
void check_rows(const ImageSpec& image, const ImageSpec& rows, int seen);
void check_complete(const ImageSpec& image, int seen);

// As many threads as requested (0: one for each processor), fewer for an image too small for them.
Workers estimate_workers(const ImageSpec& image, int threads);

// The rows of a whole image.
inline LatestRows all_rows(const ConstImageView& image) { return {image.rows(0, 0), image, 0}; }

// Examines the rows [first, rows.end()) in pieces: look(first, end, worker). A worker's pieces are large,
// because it examines some rows before them again, but they are handed out in small parts, whose rows stay in
// a core's cache.
template <class Look>
void look_in_pieces(const LatestRows& rows, int first, Workers& workers, const Look& look) {
  constexpr int thinnest = 32;
  constexpr int thickest = 128;
  constexpr int part = 32;
  const int wanted = (rows.end() - first) / (4 * workers.count());
  const int piece = wanted < thinnest ? thinnest : wanted > thickest ? thickest : wanted;
  const int pieces = (rows.end() - first + piece - 1) / piece;
  workers.for_each_quietly(pieces, [&](std::int64_t n, int worker) {
    const int from = first + static_cast<int>(n) * piece;
    const int end = rows.end() - from < piece ? rows.end() : from + piece;
    for (int y = from; y < end; y += part) look(y, end - y < part ? end : y + part, worker);
  });
}

}  // namespace ungrain
