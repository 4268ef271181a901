// Finds the groups of all references of a tile, on a CPU.
#pragma once

#include <cstdint>

#include "core/planes.h"
#include "core/scratch.h"
#include "groups/match_simd.h"
#include "groups/tile_sums.h"

namespace ungrain {

class TileSearch {
 public:
  // `tile_side`: pixels that a tile's patches touch, along each axis; `spacing`: of its references.
  TileSearch(int tile_side, int search, int spacing, int most);

  // A worker's memory.
  struct Memory {
    float* words = nullptr;
    float* energies = nullptr;
    float* match = nullptr;
    float* words_beyond = nullptr;  // of one reference's window
    float* energies_beyond = nullptr;
  };
  Memory take_memory(ScratchPieces& pieces) const;

  // How pixels are compared, and how those of windows with pixels far outside the range of the first: its
  // middle is the reference's mean.
  struct Scales {
    MatchScale usual;
    MatchScale beyond;
    const MatchCorrection* correction = nullptr;  // or none
    const MatchCorrection* correction_beyond = nullptr;
    // Mean squared difference that a member may have.
    double max_distance = 0;
  };

  // A tile's pixels as integers.
  struct Integers {
    MatchTile tile;
    bool within = true;  // none lies beyond the ends
  };

  // `image` covers the pixels of all references' windows that the image, of this extent, has.
  Integers integers(const ConstPlanes& image, const Extent& extent, const Scales& scales,
                    const TileSums::Tile& at, const Memory& memory) const;

  // Calls keep(group, x, y) for each reference in reading order.
  template <class Keep>
  void find(const ConstPlanes& image, const Extent& extent, const Scales& scales, const Integers& integers,
            const TileSums& sums, const TileSums::Tile& at, const Memory& memory, const Keep& keep) const {
    const int at_once = integers.within ? references_at_once(search_, spacing_, scales.usual.deep) : 1;
    MatchGroup groups[most_references_at_once];
    int x[most_references_at_once];
    for (int yi = at.ys.begin; yi < at.ys.end; ++yi) {
      const int y = sums.down().position(yi);
      for (int xi = at.xs.begin; xi < at.xs.end; xi += at_once) {
        const int count = std::min(at_once, at.xs.end - xi);
        for (int r = 0; r < count; ++r) x[r] = sums.across().position(xi + r);
        find_some(image, extent, scales, integers, x, count, y, memory, groups);
        for (int r = 0; r < count; ++r) keep(groups[r], x[r], y);
      }
    }
  }

 private:
  void find_some(const ConstPlanes& image, const Extent& extent, const Scales& scales,
                 const Integers& integers, const int* x, int count, int y, const Memory& memory,
                 MatchGroup* groups) const;
  bool window_is_within(const ConstPlanes& image, const Extent& extent, const MatchScale& scale, int x,
                        int y) const;

  Rect area_;  // of a tile at 0, 0
  int search_;
  int spacing_;
  int most_;
};

}  // namespace ungrain
