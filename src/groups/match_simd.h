// The search for similar patches on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/planes.h"
#include "groups/match_scale.h"

namespace ungrain {

// Only patches of 8 x 8: a row is two or four words of integers.
constexpr int match_patch = 8;
constexpr int longest_match_vector = 16;
// A distance, the row and the column of a candidate share 32 bits.
constexpr int widest_match_search = 49;  // the references of one search fit beside it
constexpr int match_columns = 64;
constexpr int most_matches = 64;
constexpr int most_references_at_once = 4;

// The largest integer of a pixel, of 12 bits where `deep`; bytes have 7 bits on processors that add products
// in 16.
float match_depth(bool deep);

// The part of an image in which one tile's groups are searched, as integers.
struct MatchTile {
  Rect area;  // pixels and, with their upper left corners, patches; reaches beyond the image
  int pitch = 0;
  bool deep = false;
  // A pixel and its right neighbours: four of 8 bits or two of 16. Copies of the former follow.
  std::uint32_t* words = nullptr;
  // Minus half the sum of the patch's squares; an excluding value outside the image.
  std::int32_t* energies = nullptr;
};

// Copies of a tile's words, for the longest vectors that a processor of this kind has.
#if defined(__x86_64__) || defined(_M_X64)
constexpr int match_copies = longest_match_vector / 4;
#else
constexpr int match_copies = 1;
#endif

// What a tile needs for patches whose corners lie in `positions`: so many energies, and words with copies.
Rect match_area(const Rect& positions);
int match_pitch(const Rect& area);
std::size_t match_words(const Rect& area);
std::size_t match_all_words(const Rect& area);

// Returns whether all pixels lay within the depth's ends.
bool fill_match_tile(const ConstPlanes& image, int plane, const Extent& extent, const MatchScale& scale,
                     const MatchTile& tile);

// The patches most similar to a reference, in order of distance; the reference is first.
struct MatchGroup {
  int count = 0;
  std::int16_t dx[most_matches];  // from the reference
  std::int16_t dy[most_matches];
};

// Added to half the sum of squared differences, by the patches' distance; 0 beyond the reaches, which lie
// within the window. In the integers' units.
struct MatchCorrection {
  int reach_x = 0;
  int reach_y = 0;
  std::vector<std::int32_t> values;  // [dy][dx]
  std::int32_t least = 0;            // of all, 0 or less
};

struct MatchCall {
  const MatchTile& tile;
  int search;             // side of the window
  int most;               // patches of a group
  std::uint32_t largest;  // half the sum of squared differences that a member may have
  int references;         // at most references_at_once()
  const int* x;           // ascending, of one row
  int y;
  std::uint32_t* scratch;  // match_scratch words
  MatchGroup* groups;      // one for each reference
  const MatchCorrection* correction = nullptr;
};

constexpr int match_key_pitch = match_columns + 2 * longest_match_vector;
// The sums of all candidates, the best of each column of four parts, lists for two references, and words.
constexpr std::size_t match_scratch =
    static_cast<std::size_t>(most_references_at_once) * match_key_pitch * (match_columns + 4) +
    2 * static_cast<std::size_t>(match_columns) * match_columns + most_references_at_once * match_patch * 4 +
    4 * longest_match_vector;

// Whether the processor has the vector instructions that the functions here need.
bool has_match_vectors();

// How many references, `spacing` apart, one search should take.
int references_at_once(int search, int spacing, bool deep);

void find_matches(const MatchCall& call);

}  // namespace ungrain
