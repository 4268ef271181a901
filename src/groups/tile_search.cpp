#include "groups/tile_search.h"

#include <algorithm>
#include <cmath>

namespace ungrain {
namespace {

// Half the sum of squared differences that a group's patches may have.
std::uint32_t farthest(double max_distance, const MatchScale& scale) {
  const double per_pixel = max_distance * scale.inverse_step * scale.inverse_step;
  return static_cast<std::uint32_t>(std::min(per_pixel * match_patch * match_patch / 2, 1e9));
}

}  // namespace

TileSearch::TileSearch(int tile_side, int search, int spacing, int most)
    : area_(match_area({0, 0, tile_side - match_patch + 1, tile_side - match_patch + 1})),
      search_(search),
      spacing_(spacing),
      most_(most) {}

TileSearch::Memory TileSearch::take_memory(ScratchPieces& pieces) const {
  Memory memory;
  memory.words = pieces.take<float>(match_all_words(area_));
  memory.energies = pieces.take<float>(match_words(area_));
  memory.match = pieces.take<float>(match_scratch);
  const Rect window = match_area({0, 0, search_, search_});
  memory.words_beyond = pieces.take<float>(match_words(window));
  memory.energies_beyond = pieces.take<float>(match_words(window));
  return memory;
}

TileSearch::Integers TileSearch::integers(const ConstPlanes& image, const Extent& extent,
                                          const Scales& scales, const TileSums::Tile& at,
                                          const Memory& memory) const {
  Integers made;
  made.tile = {{at.left, at.top, at.left + area_.width(), at.top + area_.height()},
               match_pitch(area_),
               scales.usual.deep,
               reinterpret_cast<std::uint32_t*>(memory.words),
               reinterpret_cast<std::int32_t*>(memory.energies)};
  made.within = fill_match_tile(image, 0, extent, scales.usual, made.tile);
  return made;
}

void TileSearch::find_some(const ConstPlanes& image, const Extent& extent, const Scales& scales,
                           const Integers& integers, const int* x, int count, int y, const Memory& memory,
                           MatchGroup* groups) const {
  auto* scratch = reinterpret_cast<std::uint32_t*>(memory.match);
  if (integers.within || window_is_within(image, extent, scales.usual, x[0], y)) {
    find_matches({integers.tile, search_, most_, farthest(scales.max_distance, scales.usual), count, x, y,
                  scratch, groups, scales.correction});
    return;
  }
  MatchScale scale = scales.beyond;
  for (int row = y; row < y + match_patch; ++row) {
    for (int column = x[0]; column < x[0] + match_patch; ++column)
      scale.middle += image.at(0, column, row) / (match_patch * match_patch);
  }
  const int reach = search_ / 2;
  const Rect area = match_area({x[0] - reach, y - reach, x[0] + reach + 1, y + reach + 1});
  const MatchTile around{area, match_pitch(area), true, reinterpret_cast<std::uint32_t*>(memory.words_beyond),
                         reinterpret_cast<std::int32_t*>(memory.energies_beyond)};
  fill_match_tile(image, 0, extent, scale, around);
  find_matches({around, search_, most_, farthest(scales.max_distance, scale), 1, x, y, scratch, groups,
                scales.correction_beyond});
}

bool TileSearch::window_is_within(const ConstPlanes& image, const Extent& extent, const MatchScale& scale,
                                  int x, int y) const {
  const int reach = search_ / 2;
  const Rect window{std::max(0, x - reach), std::max(0, y - reach),
                    std::min(extent.width, x + reach + match_patch),
                    std::min(extent.height, y + reach + match_patch)};
  const float most = scale.most / scale.inverse_step;
  bool within = true;
  for (int row = window.y0; row < window.y1; ++row) {
    const float* pixels = image.row(0, row) - image.rect.x0;
    for (int column = window.x0; column < window.x1; ++column) {
      within &= std::abs(pixels[column] - scale.middle) <= most;
    }
  }
  return within;
}

}  // namespace ungrain
