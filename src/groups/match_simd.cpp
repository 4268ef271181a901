// The distance of two patches is the sum of their energies less twice their dot product, which processors
// compute fastest: a word of the reference, four 8-bit or two 16-bit pixels, is multiplied with the words of
// a vector of neighbouring candidates. Pass 1 keeps the results of all candidates and the best of each class:
// a column of every second or fourth pair of rows. Bisection finds a threshold that the best of as many
// classes reach as patches are wanted. Pass 2 lists the candidates up to the threshold; their keys (the
// distance, then the place in reading order) are sorted by insertion into registers.
//
// Similar patches are often neighbours, above or beside each other. Parts of the rows that alternate, not
// halves or quarters of the window, put them into different classes, so that few classes hold several of
// them.
#include "groups/match_simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "cpu/simd.h"
#include "cpu/vector_targets.h"

// Dot products of bytes are instructions of this target; no other code of the library gains by it.
#define HWY_WANT_AVX3_DL
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS UNGRAIN_UNUSED_TARGETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "groups/match_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#ifndef UNGRAIN_GROUPS_MATCH_SIMD_CPP_
#define UNGRAIN_GROUPS_MATCH_SIMD_CPP_
namespace ungrain {
namespace {

// Products of a reference's word with the candidates' words. wide: two pixels of 16 bits. pairs: four bytes,
// products added in 16 bits first, which allows 7 bits a pixel. dots: four bytes, products added in 32 bits.
enum class Products { wide, pairs, dots };

constexpr int column_bits = 6;
constexpr int place_bits = 12;
constexpr int distance_bits = 20;
constexpr std::int32_t excluded_score = -(1 << 30);
constexpr int most_parts = 4;
// Rows of one part that follow each other: those that may share their loads.
constexpr int rows_of_part = 2;
constexpr int words_beyond = 8;  // right of a patch's corner
// Rows of keys: vectors extend beyond the columns that a key can hold, with candidates outside all windows.
constexpr int key_pitch = match_key_pitch;
// Bisection runs over the upper halves of floats' bit codes, which are ordered as the numbers are, from 1/2
// on. Its last step is 3 % of the distance.
constexpr std::int32_t code_of_half = 0x3F00;
constexpr std::int32_t first_step = 0x0800;
constexpr std::int32_t last_step = 4;
constexpr int halvings_of_all = 12;
constexpr std::int32_t code_of_none = 0x7F00;
// Above any distance of 12 bits and below those of excluded candidates; the largest distance of a key.
constexpr std::int32_t highest_code(bool deep) { return deep ? 0x4E00 : 0x497F; }
// The largest number with this code.
float largest_of(std::int32_t code) { return std::bit_cast<float>(code << 16 | 0xFFFF); }
constexpr int match_list = match_columns * match_columns + longest_match_vector;

// Distances too large for a key lose their last bits. With 12 bits patches may be far apart in units of the
// noise, and a group must still get its patches.
int key_shift(std::int32_t threshold) {
  return std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint32_t>(threshold))) - distance_bits);
}

}  // namespace
}  // namespace ungrain
#endif

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if !UNGRAIN_HAS_VECTORS

void FindMatches(const MatchCall&) {}
bool FillMatchTile(const ConstPlanes&, int, const Extent&, const MatchScale&, const MatchTile&) {
  return true;
}
int Lanes() { return 1; }
int References(bool) { return 1; }
float BytesDepth() { return 127; }

#else

using Signed = hn::CappedTag<std::int32_t, longest_match_vector>;
using Unsigned = hn::CappedTag<std::uint32_t, longest_match_vector>;
using Halves = hn::Repartition<std::int16_t, Signed>;
using Sums = hn::Vec<Signed>;
using Keys = hn::Vec<Unsigned>;
constexpr Signed ds;
constexpr Unsigned du;
[[maybe_unused]] constexpr Halves dh;  // not on every processor
constexpr int lanes = static_cast<int>(HWY_MIN(HWY_LANES(std::int32_t), std::size_t{longest_match_vector}));
constexpr int copies = std::min(match_copies, lanes / 4);

// clang declares the instruction to every function from version 16 on, before that only where all code may
// use it.
#if defined(__clang__) && __clang_major__ < 16 && !defined(__ARM_FEATURE_DOTPROD)
#define UNGRAIN_ARM_DOTS 0
#else
#define UNGRAIN_ARM_DOTS (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
#endif
#define UNGRAIN_BYTE_DOTS \
  (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || UNGRAIN_ARM_DOTS)
// Products of 16 bits are added in neighbouring pairs, which are of the same candidate.
#define UNGRAIN_ADDS_NEIGHBOURS (HWY_ARCH_X86 || HWY_ARCH_WASM)
#define UNGRAIN_SHORT_MATCHES (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3)
#define UNGRAIN_BYTE_PAIRS (HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

// For pixels of at most 8 bits. AVX3, AVX2 and NEON have dot products on some processors only.
HWY_INLINE Products ProductsOfBytes() {
#if HWY_TARGET == HWY_AVX3_DL
  return Products::dots;
#elif UNGRAIN_BYTE_DOTS && UNGRAIN_BYTE_PAIRS
  return byte_dots_in_use(HWY_TARGET) ? Products::dots : Products::pairs;
#elif UNGRAIN_BYTE_DOTS
  return byte_dots_in_use(HWY_TARGET) ? Products::dots : Products::wide;
#elif UNGRAIN_BYTE_PAIRS
  return Products::pairs;
#else
  return Products::wide;
#endif
}

// Offset added to pixels: x86 multiplies unsigned bytes with signed ones.
constexpr int ByteOffset(Products by) {
  if (by == Products::pairs) return 64;
  return UNGRAIN_ARM_DOTS ? 0 : 128;
}

// As many references as fit the registers beside two or more vectors of candidates.
constexpr int MostReferences(Products by) { return lanes == 16 || by == Products::dots ? 4 : 3; }
constexpr int WordsOfRow(Products by) { return by == Products::wide ? 4 : 2; }
constexpr int PixelsOfWord(Products by) { return match_patch / WordsOfRow(by); }

#if UNGRAIN_BYTE_PAIRS
// Products of bytes, added in pairs.
HWY_INLINE hn::Vec<Halves> BytePairs(Sums candidates, Sums reference) {
#if HWY_TARGET == HWY_SSE4
  return hn::Vec<Halves>{_mm_maddubs_epi16(candidates.raw, reference.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<Halves>{_mm256_maddubs_epi16(candidates.raw, reference.raw)};
#else
  return hn::Vec<Halves>{_mm512_maddubs_epi16(candidates.raw, reference.raw)};
#endif
}
#endif

// Dot products of a vector of candidates with one reference: what one row of the patch adds.
template <Products By>
struct Dot {
  static constexpr int words = WordsOfRow(By);

  HWY_INLINE Dot() {}  // NOLINT: else it is made outside of the functions that may use vectors

#if UNGRAIN_ADDS_NEIGHBOURS
  Sums sum;

  HWY_INLINE void Start(Sums start) { sum = start; }
  HWY_INLINE Sums Get() const { return sum; }
#else
  // Products fill two vectors, each of half the candidates; they are combined at the end.
  Sums start;
  Sums lower;
  Sums upper;

  HWY_INLINE void Start(Sums from) {
    start = from;
    lower = upper = hn::Zero(ds);
  }
  HWY_INLINE Sums Get() const {
    return hn::Add(start, hn::Add(hn::ConcatEven(ds, upper, lower), hn::ConcatOdd(ds, upper, lower)));
  }
#endif

  HWY_INLINE void Add(const Sums (&candidates)[words], const Sums (&reference)[words]) {
    // Highway 1.0 has no function for either dot product instruction.
    if constexpr (By == Products::dots) {
#pragma GCC unroll 2
      for (int i = 0; i < words; ++i) {
#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3
        asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(candidates[i].raw), "v"(reference[i].raw));
#elif HWY_TARGET == HWY_AVX2
        asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(candidates[i].raw), "x"(reference[i].raw));
#endif
      }
    } else if constexpr (By == Products::pairs) {
#if UNGRAIN_BYTE_PAIRS
      const auto pairs =
          hn::Add(BytePairs(candidates[0], reference[0]), BytePairs(candidates[1], reference[1]));
      Sums none = hn::Zero(ds);
      sum = hn::ReorderWidenMulAccumulate(ds, pairs, hn::Set(dh, 1), sum, none);
#endif
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < words; ++i) {
#if HWY_TARGET == HWY_AVX3_DL
        asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(candidates[i].raw), "v"(reference[i].raw));
#elif HWY_ARCH_X86
        Sums none = hn::Zero(ds);
        sum = hn::ReorderWidenMulAccumulate(ds, hn::BitCast(dh, candidates[i]), hn::BitCast(dh, reference[i]),
                                            sum, none);
#elif HWY_ARCH_WASM
        sum = hn::Add(
            sum, hn::WidenMulPairwiseAdd(ds, hn::BitCast(dh, candidates[i]), hn::BitCast(dh, reference[i])));
#elif HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
        const int16x8_t a = vreinterpretq_s16_s32(candidates[i].raw);
        const int16x8_t b = vreinterpretq_s16_s32(reference[i].raw);
        lower.raw = vmlal_s16(lower.raw, vget_low_s16(a), vget_low_s16(b));
        upper.raw = vmlal_high_s16(upper.raw, a, b);
#else
        const hn::Half<Halves> half;
        const auto a = hn::BitCast(dh, candidates[i]);
        const auto b = hn::BitCast(dh, reference[i]);
        lower = hn::Add(lower, hn::Mul(hn::PromoteTo(ds, hn::LowerHalf(half, a)),
                                       hn::PromoteTo(ds, hn::LowerHalf(half, b))));
        upper = hn::Add(upper, hn::Mul(hn::PromoteTo(ds, hn::UpperHalf(half, a)),
                                       hn::PromoteTo(ds, hn::UpperHalf(half, b))));
#endif
      }
    }
  }
};

// The candidates of a few references.
struct Window {
  const MatchTile* tile;
  int references;
  int columns;    // of the union of all windows, from the first one's left edge
  int rows;       // inside the area
  int first_row;  // the first row of the window that lies inside
  int side;
  bool deep;
  const std::uint32_t* words[4];  // the words of a patch's row, at the first candidate
  const std::int32_t* energies;
  std::uint32_t* reference_words;  // [reference][row of the patch][word]
  std::int32_t
      own[most_references_at_once];    // minuend of a candidate's sum; the difference is half its distance
  int shift[most_references_at_once];  // of a reference's window from the first one's
  std::int32_t* best;                  // [part of the rows][reference][column]
  std::int32_t* sums;                  // [reference][row][column]
  std::uint32_t* list;                 // room for two references' candidates
};

// Adds the dot products of K rows of V vectors to what they started with: about ten independent ones should
// be in flight to hide their latency.
template <Products By, int R, int V, int K>
HWY_INLINE void AddDotsOfRows(const Window& w, int row, int column, Dot<By> (&dots)[K][R][V]) {
  constexpr int words = WordsOfRow(By);
  const std::ptrdiff_t pitch = w.tile->pitch;
  std::ptrdiff_t from = row * pitch + column;
#pragma GCC unroll 16
  for (int y = 0; y < match_patch + K - 1; ++y) {
    Sums some[V][words];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
#pragma GCC unroll 8
      for (int i = 0; i < words; ++i) {
        some[v][i] = hn::BitCast(ds, hn::LoadU(du, w.words[i] + from + v * lanes));
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
      if (y - k < 0 || y - k >= match_patch) continue;
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        Sums reference[words];
#pragma GCC unroll 8
        for (int i = 0; i < words; ++i) {
          reference[i] =
              hn::BitCast(ds, hn::Set(du, w.reference_words[(r * match_patch + (y - k)) * words + i]));
        }
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) dots[k][r][v].Add(some[v], reference);
      }
    }
    from += pitch;
  }
}

template <Products By, int R, int V, int K>
HWY_INLINE void FindRows(const Window& w, int row, int column, Sums (&best)[R][V]) {
  Dot<By> dots[K][R][V];
  const std::ptrdiff_t pitch = w.tile->pitch;
  const std::int32_t* energies = w.energies + row * pitch + column;
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Sums start = hn::LoadU(ds, energies + k * pitch + v * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) dots[k][r][v].Start(start);
    }
  }
  AddDotsOfRows<By, R, V, K>(w, row, column, dots);
  std::int32_t* to = w.sums + row * key_pitch + column;
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Sums sum = dots[k][r][v].Get();
        hn::StoreU(sum, ds, to + (r * match_columns + k) * key_pitch + v * lanes);
        best[r][v] = hn::Max(best[r][v], sum);
      }
    }
  }
}

HWY_INLINE std::int32_t* SumsOf(const Window& w, int r) { return w.sums + r * match_columns * key_pitch; }

// Where vectors of a reference's candidates begin and how many there are. Long ones begin where those of all
// references do, because a load that crosses a cache line counts twice.
HWY_INLINE int FirstColumn(const Window& w, int r) { return lanes == 16 ? 0 : w.shift[r]; }
template <int Vectors>
HWY_INLINE int VectorsOf(const Window& w) {
  return Vectors > 0 ? Vectors : ((lanes == 16 ? w.columns : w.side) + lanes - 1) / lanes;
}

HWY_INLINE std::int32_t* BestOf(const Window& w, int part, int r) {
  return w.best + (part * most_references_at_once + r) * key_pitch;
}

#if UNGRAIN_ARM_DOTS
#ifdef __ARM_FEATURE_DOTPROD
#define UNGRAIN_WITH_DOTS
#elif defined(__clang__)
#define UNGRAIN_WITH_DOTS __attribute__((target("dotprod,aes")))
#else
#define UNGRAIN_WITH_DOTS __attribute__((target("arch=armv8.2-a+dotprod+crypto")))
#endif

template <int Lane>
UNGRAIN_WITH_DOTS HWY_INLINE void AddDots(Sums& sum, Sums candidates, Sums reference) {
  sum.raw = vdotq_laneq_s32(sum.raw, vreinterpretq_s8_s32(candidates.raw),
                            vreinterpretq_s8_s32(reference.raw), Lane);
}

// A vector holds four candidates here, so the words to the right of one vector are the next vector, and two
// rows of a reference's patch.
template <int Row, int R, int V>
UNGRAIN_WITH_DOTS HWY_INLINE void AddPatchRow(const std::uint32_t* from, const Sums (&reference)[R],
                                              Sums (&sums)[R][V]) {
  Sums some[V + 1];
#pragma GCC unroll 8
  for (int v = 0; v <= V; ++v) some[v] = hn::BitCast(ds, hn::LoadU(du, from + v * lanes));
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      AddDots<2 * Row>(sums[r][v], some[v], reference[r]);
      AddDots<2 * Row + 1>(sums[r][v], some[v + 1], reference[r]);
    }
  }
}

template <int R, int V>
UNGRAIN_WITH_DOTS HWY_INLINE void FindRowOfDots(const Window& w, int part, int row, int column) {
  static_assert(lanes == 4);
  const std::ptrdiff_t pitch = w.tile->pitch;
  const std::uint32_t* from = w.words[0] + row * pitch + column;
  const std::int32_t* energies = w.energies + row * pitch + column;
  Sums sums[R][V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const Sums start = hn::LoadU(ds, energies + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][v] = start;
  }
  // Not unrolled: the compiler would keep more loads in flight than there are registers.
#pragma GCC unroll 1
  for (int y = 0; y < match_patch; y += 2) {
    Sums reference[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      reference[r] = hn::BitCast(ds, hn::LoadU(du, w.reference_words + (r * match_patch + y) * 2));
    }
    AddPatchRow<0>(from, reference, sums);
    AddPatchRow<1>(from + pitch, reference, sums);
    from += 2 * pitch;
  }
  std::int32_t* to = w.sums + row * key_pitch + column;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      hn::StoreU(sums[r][v], ds, to + r * match_columns * key_pitch + v * lanes);
      std::int32_t* best = BestOf(w, part, r) + column + v * lanes;
      hn::StoreU(hn::Max(hn::LoadU(ds, best), sums[r][v]), ds, best);
    }
  }
}
#endif

// Calls body(row) for the first rows of a part's blocks.
template <class Body>
HWY_INLINE void ForBlocks(const Window& w, int parts, int part, const Body& body) {
  for (int row = part * rows_of_part; row < w.rows; row += parts * rows_of_part) body(row);
}

template <Products By, int R, int V, int K>
HWY_NOINLINE void FindColumns(const Window& w, int parts, int part, int column) {
  Sums best[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) best[r][v] = hn::Set(ds, excluded_score);
  }
  ForBlocks(w, parts, part, [&](int row) HWY_ATTR {
    if (K == rows_of_part && row + K <= w.rows) {
      FindRows<By, R, V, K>(w, row, column, best);
      return;
    }
    FindRows<By, R, V, 1>(w, row, column, best);
    if (row + 1 < w.rows) FindRows<By, R, V, 1>(w, row + 1, column, best);
  });
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) hn::StoreU(best[r][v], ds, BestOf(w, part, r) + column + v * lanes);
  }
}

#if UNGRAIN_ARM_DOTS
template <int R, int V>
UNGRAIN_WITH_DOTS HWY_NOINLINE void FindColumnsOfDots(const Window& w, int parts, int part, int column) {
  // In memory: no registers are left for them.
  for (int r = 0; r < R; ++r) std::fill_n(BestOf(w, part, r) + column, V * lanes, excluded_score);
  // Without a function for the body, which would not be of these instructions.
  for (int first = part * rows_of_part; first < w.rows; first += parts * rows_of_part) {
    for (int row = first; row < std::min(first + rows_of_part, w.rows); ++row)
      FindRowOfDots<R, V>(w, part, row, column);
  }
}
#endif

template <Products By, int R>
void FindSums(const Window& w, int parts) {
  for (int part = 0; part < parts; ++part) {
    int column = 0;
    const auto left = [&] { return w.columns - column; };
    if constexpr (lanes == 16) {
      for (; left() > 32; column += 48) FindColumns<By, R, 3, R >= 3 ? 1 : 2>(w, parts, part, column);
      for (; left() > 0; column += 32) FindColumns<By, R, 2, R == 4 ? 1 : 2>(w, parts, part, column);
    } else if constexpr (UNGRAIN_ARM_DOTS && By == Products::dots) {
#if UNGRAIN_ARM_DOTS
      for (; left() > 0; column += 4 * lanes) FindColumnsOfDots<R, 4>(w, parts, part, column);
#endif
    } else {
      for (; left() > 0; column += 2 * lanes) FindColumns<By, R, 2, 1>(w, parts, part, column);
    }
  }
}

// Shifts by one lane: the last lane of the previous vector, then all but the last of this one.
HWY_INLINE Keys Along(Keys before, Keys here) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return Keys{_mm512_alignr_epi32(here.raw, before.raw, 15)};
#elif HWY_TARGET == HWY_AVX2
  const __m256i middle = _mm256_permute2x128_si256(before.raw, here.raw, 0x21);
  return Keys{_mm256_alignr_epi8(here.raw, middle, 12)};
#else
  return hn::CombineShiftRightBytes<12>(du, here, before);
#endif
}

// A vector of ascending keys, after `before`, when a key is inserted into both: larger keys move on.
HWY_INLINE Keys Insert(Keys key, Keys before, Keys here) {
  return hn::Min(here, hn::Max(key, Along(before, here)));
}

// The threshold from all candidates, for 12-bit pixels where too few columns lie inside the image: the
// farthest candidate must not decide how many bits keys have for the others. Bytes fit the keys, and listing
// all candidates costs less.
HWY_NOINLINE std::int32_t FindThresholdOfAll(const Window& w, int r, int wanted) {
  const std::int32_t* sums = SumsOf(w, r) + w.shift[r];
  const Sums own = hn::Set(ds, w.own[r]);
  const Sums columns = hn::Set(ds, w.side);
  const auto most = static_cast<std::int32_t>(largest_of(highest_code(true)));
  // Calls body(half the distances of a vector of candidates, mask of lanes that hold a candidate).
  const auto for_each = [&](auto body) HWY_ATTR {
    for (int row = 0; row < w.rows; ++row) {
      for (int column = 0; column < w.side; column += lanes) {
        const Sums distance = hn::Sub(own, hn::LoadU(ds, sums + row * key_pitch + column));
        body(distance,
             hn::And(hn::Lt(hn::Iota(ds, column), columns), hn::Lt(distance, hn::Set(ds, most + 1))));
      }
    }
  };
  Sums longest = hn::Zero(ds);
  for_each([&](Sums distance, hn::Mask<Signed> counts)
               HWY_ATTR { longest = hn::Max(longest, hn::IfThenElseZero(counts, distance)); });
  std::int32_t low = -1;
  std::int32_t high = hn::GetLane(hn::MaxOfLanes(ds, longest));
  for (int i = 0; i < halvings_of_all && low < high; ++i) {
    const std::int32_t middle = low + (high - low) / 2;
    std::size_t count = 0;
    for_each([&](Sums distance, hn::Mask<Signed> counts) HWY_ATTR {
      count += hn::CountTrue(ds, hn::And(counts, hn::Lt(distance, hn::Set(ds, middle + 1))));
    });
    (count >= static_cast<std::size_t>(wanted) ? high : low) = middle;
  }
  return high;
}

// The upper halves of two vectors' numbers, in no particular order.
HWY_INLINE hn::Vec<Halves> UpperHalves(Sums a, Sums b) {
  const Sums upper = hn::Set(ds, std::int32_t{-1} << 16);
  return hn::BitCast(dh, hn::Or(hn::ShiftRight<16>(a), hn::And(b, upper)));
}

HWY_INLINE int CountBelow(const hn::Vec<Halves>* values, int vectors, hn::Vec<Halves> limit) {
  if constexpr (lanes == 16) {
    std::size_t count = 0;
    for (int v = 0; v < vectors; ++v) count += hn::CountTrue(dh, hn::Lt(values[v], limit));
    return static_cast<int>(count);
  } else {
    hn::Vec<Halves> count = hn::Zero(dh);
    for (int v = 0; v < vectors; ++v) count = hn::Sub(count, hn::VecFromMask(dh, hn::Lt(values[v], limit)));
    const Sums both = hn::BitCast(ds, count);
    const Sums lower = hn::ShiftRight<16>(hn::ShiftLeft<16>(both));
    return hn::GetLane(hn::SumOfLanes(ds, hn::Add(hn::ShiftRight<16>(both), lower)));
  }
}

// Half the distance that `wanted` candidates, or a few more, reach, from the best of classes. Runs for all
// references at once, because each bisection waits for its previous step.
template <int Parts, int Vectors>
HWY_INLINE void FindThresholds(const Window& w, int wanted, std::int32_t* thresholds) {
  static_assert(Parts % 2 == 0);
  constexpr int most_vectors = Parts / 2 * (Vectors > 0 ? Vectors : match_columns / lanes);
  const int vectors = VectorsOf<Vectors>(w);
  const hn::Rebind<float, Signed> df;
  hn::Vec<Halves> codes[most_references_at_once][most_vectors];
  std::int32_t below[most_references_at_once];  // codes that fewer than wanted are less than
  const Sums first = hn::Iota(ds, 0);           // Highway makes any other number by number
  const Sums none = hn::Set(ds, code_of_none << 16);
  for (int r = 0; r < w.references; ++r) {
    below[r] = code_of_half;
    const Sums own = hn::Set(ds, w.own[r]);
    for (int v = 0; v < vectors; ++v) {
      const int column = FirstColumn(w, r) + v * lanes;
      const Sums from_edge = hn::Add(first, hn::Set(ds, column - w.shift[r]));
      const auto inside = hn::And(hn::Gt(from_edge, hn::Set(ds, -1)), hn::Lt(from_edge, hn::Set(ds, w.side)));
      const auto code_of = [&](int part) HWY_ATTR {
        const Sums distance = hn::Sub(own, hn::LoadU(ds, BestOf(w, part, r) + column));
        return hn::IfThenElse(inside, hn::BitCast(ds, hn::ConvertTo(df, distance)), none);
      };
      for (int part = 0; part < Parts; part += 2) {
        codes[r][part / 2 * vectors + v] = UpperHalves(code_of(part), code_of(part + 1));
      }
    }
  }
  for (std::int32_t step = first_step; step >= last_step; step /= 2) {
    for (int r = 0; r < w.references; ++r) {
      const hn::Vec<Halves> limit = hn::Set(dh, static_cast<std::int16_t>(below[r] + step));
      // Not a condition, which the compiler may turn into a branch that cannot be predicted.
      const std::int32_t too_few = (CountBelow(codes[r], Parts / 2 * vectors, limit) - wanted) >> 31;
      below[r] += step & too_few;
    }
  }
  const std::int32_t highest = highest_code(w.deep);
  for (int r = 0; r < w.references; ++r) {
    const std::int32_t code = std::min(below[r] + last_step - 1, highest);
    thresholds[r] = w.deep && code == highest ? FindThresholdOfAll(w, r, wanted - 1)
                                              : static_cast<std::int32_t>(largest_of(code));
  }
}

// Lists the keys of the candidates up to a threshold; returns how many.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
template <int Vectors>
HWY_INLINE int ListHits(const Window& w, int r, std::int32_t threshold, std::uint32_t* list) {
  static_assert(lanes == 16 && match_columns == 64);
  const Sums own = hn::Set(ds, w.own[r]);
  const Sums below = hn::Sub(own, hn::Set(ds, threshold + 1));
  const int shift = key_shift(threshold);
  const std::int32_t* sums = SumsOf(w, r);
  const int vectors = VectorsOf<Vectors>(w);
  const std::uint64_t columns = (~std::uint64_t{0} >> (64 - w.side)) << w.shift[r];
  __mmask16 inside[4];
  for (int v = 0; v < 4; ++v) inside[v] = static_cast<__mmask16>(columns >> (lanes * v));

  // Vectors that hold a candidate up to the threshold, without a branch: which do cannot be predicted.
  std::uint16_t filled[4 * match_columns + 1];
  std::uint8_t places[4 * match_columns + 1];
  int count = 0;
  const std::int32_t* row_sums = sums;
  for (int row = 0; row < w.rows; ++row, row_sums += key_pitch) {
    for (int v = 0; v < vectors; ++v) {
      const __mmask16 above =
          _mm512_mask_cmpgt_epi32_mask(inside[v], hn::LoadU(ds, row_sums + v * lanes).raw, below.raw);
      filled[count] = above;
      places[count] = static_cast<std::uint8_t>(4 * row + v);
      count += above != 0 ? 1 : 0;
    }
  }

  int hits = 0;
  const Keys column = hn::Iota(du, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint32_t place = places[i];
    const Sums found = hn::LoadU(ds, sums + place / 4 * key_pitch + place % 4 * lanes);
    const Keys distance = hn::BitCast(du, hn::Sub(own, found));
    const Keys at = hn::Add(column, hn::Set(du, place * lanes));
    const Keys keys = hn::Or(hn::ShiftLeft<place_bits>(hn::ShiftRightSame(distance, shift)), at);
    _mm512_storeu_si512(list + hits, _mm512_maskz_compress_epi32(filled[i], keys.raw));
    hits += std::popcount(filled[i]);
  }
  return hits;
}
#else
// One bit for each candidate of a block that lies above a limit; bits are `bits_apart` apart.
#if UNGRAIN_ARM_DOTS
constexpr int block = 16;
constexpr int bits_apart = 4;
constexpr std::uint64_t all_bits = 0x8888888888888888U;

HWY_INLINE std::uint64_t BitsAbove(const std::int32_t* sums, int /*columns*/, Sums below) {
  const auto above = [&](int i) HWY_ATTR {
    return vreinterpretq_u16_u32(vcgtq_s32(vld1q_s32(sums + 4 * i), below.raw));
  };
  const uint8x16_t bytes = vuzp1q_u8(vreinterpretq_u8_u16(vuzp1q_u16(above(0), above(1))),
                                     vreinterpretq_u8_u16(vuzp1q_u16(above(2), above(3))));
  const uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(bytes), 4);
  return vget_lane_u64(vreinterpret_u64_u8(nibbles), 0) & all_bits;
}
#else
constexpr int block = match_columns;
constexpr int bits_apart = 1;
constexpr std::uint64_t all_bits = ~std::uint64_t{0};

HWY_INLINE std::uint64_t BitsOf(hn::Mask<Signed> mask) {
#if HWY_TARGET == HWY_AVX2
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask.raw)));
#elif HWY_TARGET == HWY_SSE4
  return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(mask.raw)));
#else
  std::uint8_t bits[8] = {};
  hn::StoreMaskBits(ds, mask, bits);
  return bits[0];
#endif
}

HWY_INLINE std::uint64_t BitsAbove(const std::int32_t* sums, int columns, Sums below) {
  std::uint64_t bits = 0;
  for (int column = 0; column < columns; column += lanes) {
    bits |= BitsOf(hn::Gt(hn::LoadU(ds, sums + column), below)) << column;
  }
  return bits;
}
#endif

template <int Vectors>
HWY_INLINE int ListHits(const Window& w, int r, std::int32_t threshold, std::uint32_t* list) {
  const Sums below = hn::Set(ds, w.own[r] - threshold - 1);
  const std::int32_t* sums = SumsOf(w, r) + FirstColumn(w, r);
  const int shift = key_shift(threshold);
  int hits = 0;
  for (int row = 0; row < w.rows; ++row, sums += key_pitch) {
    for (int first = 0; first < w.side; first += block) {
      const int columns = std::min(w.side - first, block);
      std::uint64_t bits = BitsAbove(sums + first, columns, below);
      bits &= all_bits >> (bits_apart * (block - columns));
      for (; bits != 0; bits &= bits - 1) {
        const int column = first + std::countr_zero(bits) / bits_apart;
        const auto distance = static_cast<std::uint32_t>(w.own[r] - sums[column]) >> shift;
        list[hits++] = distance << place_bits | static_cast<std::uint32_t>(row << column_bits | column);
      }
    }
  }
  return hits;
}
#endif

// Shortens a long list to the keys up to a limit that `wanted` of them, or a few more, reach. A few passes
// over the list cost less than that many insertions, most of all where hundreds are equally near. The list
// has room for one more vector.
HWY_NOINLINE int Shorten(std::uint32_t* list, int count, int wanted) {
  constexpr int enough = 8;  // more than those wanted
  hn::StoreU(hn::Set(du, ~0U), du, list + count);
  const auto up_to = [](Keys keys, Keys limit) HWY_ATTR { return hn::Eq(hn::Min(keys, limit), keys); };
  std::uint32_t low = 0;
  std::uint32_t high = *std::max_element(list, list + count);
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const Keys limit = hn::Set(du, middle);
    Sums found = hn::Zero(ds);
    for (int i = 0; i < count; i += lanes) {
      found = hn::Sub(found, hn::BitCast(ds, hn::VecFromMask(du, up_to(hn::LoadU(du, list + i), limit))));
    }
    const int number = hn::GetLane(hn::SumOfLanes(ds, found));
    if (number < wanted) {
      low = middle + 1;
    } else {
      high = middle;
      if (number <= wanted + enough) break;
    }
  }
  const Keys limit = hn::Set(du, high);
  int left = 0;
  for (int i = 0; i < count; i += lanes) {
    const Keys keys = hn::LoadU(du, list + i);
    left += static_cast<int>(hn::CompressStore(keys, up_to(keys, limit), du, list + left));
  }
  return left;
}

// Sorts the smallest keys of two lists of the same length at once, because insertions wait for each other.
template <int N>
HWY_INLINE void SortTwo(const std::uint32_t* a, const std::uint32_t* b, int count, std::uint32_t* sorted_a,
                        std::uint32_t* sorted_b) {
  constexpr int vectors = N / lanes;
  const Keys none = hn::Set(du, ~0U);
  const Keys zero = hn::Zero(du);
  const Keys own = hn::IfThenElse(hn::FirstN(du, 1), zero, none);
  if constexpr (vectors == 1) {
    Keys a0 = own;
    Keys b0 = own;
    for (int i = 0; i < count; ++i) {
      a0 = Insert(hn::Set(du, a[i]), zero, a0);
      b0 = Insert(hn::Set(du, b[i]), zero, b0);
    }
    hn::Store(a0, du, sorted_a);
    hn::Store(b0, du, sorted_b);
  } else if constexpr (vectors == 2) {
    Keys a0 = own;
    Keys b0 = own;
    Keys a1 = none;
    Keys b1 = none;
    for (int i = 0; i < count; ++i) {
      const Keys key_a = hn::Set(du, a[i]);
      const Keys key_b = hn::Set(du, b[i]);
      a1 = Insert(key_a, a0, a1);
      b1 = Insert(key_b, b0, b1);
      a0 = Insert(key_a, zero, a0);
      b0 = Insert(key_b, zero, b0);
    }
    hn::Store(a0, du, sorted_a);
    hn::Store(a1, du, sorted_a + lanes);
    hn::Store(b0, du, sorted_b);
    hn::Store(b1, du, sorted_b + lanes);
  } else {
    for (int list = 0; list < 2; ++list) {
      const std::uint32_t* from = list == 0 ? a : b;
      Keys keys[vectors];
      for (int v = 0; v < vectors; ++v) keys[v] = v == 0 ? own : none;
      for (int i = 0; i < count; ++i) {
        const Keys key = hn::Set(du, from[i]);
#pragma GCC unroll 16
        for (int v = vectors - 1; v > 0; --v) keys[v] = Insert(key, keys[v - 1], keys[v]);
        keys[0] = Insert(key, zero, keys[0]);
      }
      for (int v = 0; v < vectors; ++v) hn::Store(keys[v], du, (list == 0 ? sorted_a : sorted_b) + v * lanes);
    }
  }
}

template <int N>
HWY_INLINE void WriteGroup(const Window& w, const MatchCall& call, int r, const std::uint32_t* sorted,
                           int hits, std::int32_t threshold) {
  MatchGroup& group = call.groups[r];
  const hn::Rebind<std::int16_t, Signed> narrow;
  const auto largest = static_cast<std::int32_t>(call.largest >> key_shift(threshold));
  const int most = std::min(call.most, hits + 1);
  const Sums own_column = hn::Set(ds, w.shift[r] - FirstColumn(w, r) + w.side / 2);
  const Sums own_row = hn::Set(ds, w.side / 2 - w.first_row);
  const Sums places = hn::Set(ds, match_columns - 1);
  std::size_t count = 0;
  for (int i = 0; i < N; i += lanes) {
    const Keys keys = hn::Load(du, sorted + i);
    const Sums column = hn::And(hn::BitCast(ds, keys), places);
    const Sums row = hn::And(hn::BitCast(ds, hn::ShiftRight<column_bits>(keys)), places);
    hn::StoreU(hn::DemoteTo(narrow, hn::Sub(column, own_column)), narrow, group.dx + i);
    hn::StoreU(hn::DemoteTo(narrow, hn::Sub(row, own_row)), narrow, group.dy + i);
    const Sums distance = hn::BitCast(ds, hn::ShiftRight<place_bits>(keys));
    count += hn::CountTrue(
        ds, hn::And(hn::Lt(hn::Iota(ds, i), hn::Set(ds, most)), hn::Lt(distance, hn::Set(ds, largest + 1))));
  }
  group.dx[0] = group.dy[0] = 0;
  group.count = static_cast<int>(count);
}

// More classes than wanted patches, so that few classes hold several of them: each part of the rows has its
// own columns.
constexpr int PartsFor(int wanted) { return wanted > 16 ? most_parts : most_parts / 2; }

// Two groups at a time. list_hits(r, list) lists the keys of a reference's candidates up to its threshold and
// returns how many.
template <int N, class ListHits>
HWY_INLINE void WriteGroups(const Window& w, const MatchCall& call, const std::int32_t* thresholds,
                            const ListHits& list_hits) {
  for (int r = 0; r < w.references; r += 2) {
    int hits[2] = {0, 0};
    std::uint32_t* lists[2] = {w.list, w.list + match_list};
    for (int i = 0; i < 2 && r + i < w.references; ++i) {
      hits[i] = list_hits(r + i, lists[i]);
      if (hits[i] > 3 * N) hits[i] = Shorten(lists[i], hits[i], call.most - 1);
    }
    const int most = std::max(hits[0], hits[1]);
    for (int i = 0; i < 2; ++i) std::fill(lists[i] + hits[i], lists[i] + most, ~0U);
    alignas(64) std::uint32_t sorted[2][N];
    SortTwo<N>(lists[0], lists[1], most, sorted[0], sorted[1]);
    for (int i = 0; i < 2 && r + i < w.references; ++i)
      WriteGroup<N>(w, call, r + i, sorted[i], hits[i], thresholds[r + i]);
  }
}

template <int N, int Vectors>
HWY_NOINLINE void Select(const Window& w, const MatchCall& call) {
  // A reference is no candidate of its own: it comes first, even among equally near patches.
  const int half = w.side / 2;
  for (int r = 0; r < w.references; ++r) {
    SumsOf(w, r)[(half - w.first_row) * key_pitch + w.shift[r] + half] = excluded_score;
  }
  std::int32_t thresholds[most_references_at_once];
  FindThresholds<PartsFor(N), Vectors>(w, call.most, thresholds);
  WriteGroups<N>(w, call, thresholds, [&](int r, std::uint32_t* list) HWY_ATTR {
    return ListHits<Vectors>(w, r, thresholds[r], list);
  });
}

template <int N>
void SelectOf(const Window& w, const MatchCall& call) {
  const int vectors = VectorsOf<0>(w);
  if (lanes == 16 && vectors == 3) {
    Select<N, lanes == 16 ? 3 : 0>(w, call);
  } else if (lanes == 16 && vectors == 2) {
    Select<N, lanes == 16 ? 2 : 0>(w, call);
  } else {
    Select<N, 0>(w, call);
  }
}

// Corrects sums in place and finds the best of their columns again. Corrections are relative to the least, so
// that no distance is below 0.
HWY_NOINLINE void CorrectSums(const MatchCorrection& by, int parts, Window& w) {
  const int half = w.side / 2;
  const int width = 2 * by.reach_x + 1;
  for (int r = 0; r < w.references; ++r) {
    std::int32_t* sums = SumsOf(w, r) + w.shift[r] + half - by.reach_x;
    for (int dy = -by.reach_y; dy <= by.reach_y; ++dy) {
      const int row = half + dy - w.first_row;
      if (row < 0 || row >= w.rows) continue;
      const std::int32_t* values = by.values.data() + (dy + by.reach_y) * width;
      for (int x = 0; x < width; ++x) sums[row * key_pitch + x] -= values[x];
    }
    for (int part = 0; part < parts; ++part) {
      std::int32_t* best = BestOf(w, part, r) + w.shift[r] + half - by.reach_x;
      std::fill_n(best, width, excluded_score);
      ForBlocks(w, parts, part, [&](int first) {
        for (int row = first; row < std::min(first + rows_of_part, w.rows); ++row) {
          for (int x = 0; x < width; ++x) best[x] = std::max(best[x], sums[row * key_pitch + x]);
        }
      });
    }
    w.own[r] -= by.least;
  }
}

#include "groups/match_short-inl.h"

// Where vectors of candidates' words begin. Of bytes there are copies, each moved by four words: with four
// references at once windows begin at multiples of four words, and a vector lies within a cache line of one
// of the copies.
template <Products By>
HWY_INLINE const std::uint32_t* WordsAt(const MatchTile& tile, std::ptrdiff_t first) {
  if constexpr (By == Products::wide) return tile.words + first;
  const std::ptrdiff_t moved = first / 4 % copies;
  return tile.words + moved * static_cast<std::ptrdiff_t>(match_words(tile.area)) + first - 4 * moved;
}

template <Products By>
Window WindowOf(const MatchCall& call) {
  constexpr int words = WordsOfRow(By);
  constexpr int byte_offset = By == Products::wide ? 0 : ByteOffset(By);
  const MatchTile& tile = call.tile;
  const int half = call.search / 2;
  Window w;
  w.tile = &tile;
  w.references = call.references;
  w.side = call.search;
  w.deep = tile.deep;
  w.columns = call.x[call.references - 1] - call.x[0] + call.search;
  const int top = std::max(call.y - half, tile.area.y0);
  w.first_row = top - (call.y - half);
  w.rows = std::min(call.y + half + 1, tile.area.y1 - match_patch + 1) - top;
  const std::ptrdiff_t first =
      static_cast<std::ptrdiff_t>(top - tile.area.y0) * tile.pitch + (call.x[0] - half - tile.area.x0);
  for (int i = 0; i < words; ++i) w.words[i] = WordsAt<By>(tile, first + i * PixelsOfWord(By));
  w.energies = tile.energies + first;
  w.reference_words = call.scratch;
  w.best = reinterpret_cast<std::int32_t*>(w.reference_words + most_references_at_once * match_patch * 4);
  w.sums = w.best + most_parts * most_references_at_once * key_pitch;
  w.list =
      reinterpret_cast<std::uint32_t*>(w.sums + most_references_at_once * match_columns * key_pitch + lanes);
  for (int r = 0; r < call.references; ++r) {
    const std::ptrdiff_t at =
        static_cast<std::ptrdiff_t>(call.y - tile.area.y0) * tile.pitch + (call.x[r] - tile.area.x0);
    std::uint32_t sums = 0;  // of every second byte, in the halves of a word
    for (int y = 0; y < match_patch; ++y) {
      for (int i = 0; i < words; ++i) {
        std::uint32_t word = tile.words[at + y * tile.pitch + i * PixelsOfWord(By)];
        if constexpr (byte_offset != 0) {
          sums += (word & 0x00FF00FFU) + (word >> 8 & 0x00FF00FFU);
          // Removes the offset from each byte.
          word ^= 0x01010101U * byte_offset;
          if constexpr (byte_offset == 64) word |= (word & 0x40404040U) << 1;
        }
        w.reference_words[(r * match_patch + y) * words + i] = word;
      }
    }
    const auto sum = static_cast<std::int32_t>((sums & 0xFFFFU) + (sums >> 16));
    w.own[r] = byte_offset * (sum - match_patch * match_patch * byte_offset) - tile.energies[at];
    w.shift[r] = call.x[r] - call.x[0];
  }
  return w;
}

template <Products By>
void FindMatchesBy(MatchCall call) {
  Window w = WindowOf<By>(call);
  const int parts = PartsFor(call.most);
  if (call.references == 1) {
    FindSums<By, 1>(w, parts);
  } else if (call.references == 2) {
    FindSums<By, 2>(w, parts);
  } else if (call.references == 3) {
    FindSums<By, 3>(w, parts);
  } else if constexpr (MostReferences(By) == 4) {
    FindSums<By, 4>(w, parts);
  }
  if (call.correction != nullptr) {
    CorrectSums(*call.correction, parts, w);
    call.largest -= call.correction->least;
  }
  if (call.most <= 16) {
    SelectOf<16>(w, call);
  } else if (call.most <= 32) {
    SelectOf<32>(w, call);
  } else {
    SelectOf<64>(w, call);
  }
}

void FindMatchesOfDots(const MatchCall& call) {
#if UNGRAIN_SHORT_MATCHES
  if (SuitsShortMatches(call)) {
    const unsigned too_far = FindShortMatches(WindowOf<Products::dots>(call), call);
    for (int r = 0; r < call.references; ++r) {
      if ((too_far >> r & 1) == 0) continue;
      MatchCall alone = call;
      alone.references = 1;
      alone.x += r;
      alone.groups += r;
      FindMatchesBy<Products::dots>(alone);
    }
    return;
  }
#endif
  FindMatchesBy<Products::dots>(call);
}

void FindMatches(const MatchCall& call) {
  const Products by = call.tile.deep ? Products::wide : ProductsOfBytes();
  if (by == Products::wide) {
    FindMatchesBy<Products::wide>(call);
  } else if constexpr (UNGRAIN_BYTE_DOTS) {
    if constexpr (UNGRAIN_BYTE_PAIRS) {
      if (by == Products::pairs) return FindMatchesBy<Products::pairs>(call);
    }
    FindMatchesOfDots(call);
  } else if constexpr (UNGRAIN_BYTE_PAIRS) {
    FindMatchesBy<Products::pairs>(call);
  }
}

// Turns a row of pixels into integers; returns whether all lay within the ends.
bool Quantise(const float* HWY_RESTRICT row, int count, const MatchScale& scale,
              std::int32_t* HWY_RESTRICT to) {
  const float most = scale.most;
  int beyond = 0;
  for (int x = 0; x < count; ++x) {
    const float level = (row[x] - scale.middle) * scale.inverse_step;
    const float held = std::min(std::max(level, -most), most);
    beyond |= held != level ? 1 : 0;
    // Adding and subtracting 1.5 * 2^23 rounds to nearest.
    to[x] = static_cast<std::int32_t>((held + 12582912.0F) - 12582912.0F);
  }
  return beyond == 0;
}

bool FillMatchTile(const ConstPlanes& image, int plane, const Extent& extent, const MatchScale& scale,
                   const MatchTile& tile) {
  const Rect& area = tile.area;
  const int pitch = tile.pitch;
  // Limited to the pixels that exist; the area may exceed the references' windows.
  const int x0 = std::max({area.x0, 0, image.rect.x0});
  const int x1 = std::min({area.x1, extent.width, image.rect.x1});
  alignas(64) static thread_local std::int32_t line[2048];
  const Products by = scale.deep ? Products::wide : ProductsOfBytes();
  bool within = true;
  for (int y = area.y0; y < area.y1; ++y) {
    std::fill_n(line, pitch + words_beyond, 0);
    if (y >= std::max(0, image.rect.y0) && y < std::min(extent.height, image.rect.y1)) {
      within &= Quantise(image.row(plane, y) + (x0 - image.rect.x0), x1 - x0, scale, line + (x0 - area.x0));
    }
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y - area.y0) * pitch;
    std::uint32_t* HWY_RESTRICT words = tile.words + at;
    std::int32_t* HWY_RESTRICT sums = tile.energies + at;
    if (by != Products::wide) {
      const int offset = ByteOffset(by);
      for (int x = 0; x < pitch; ++x) {
        const auto byte = [&](int i) { return static_cast<std::uint32_t>(line[x + i] + offset) & 0xFFU; };
        words[x] = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
      }
      for (int copy = 1; copy < copies; ++copy) {
        std::uint32_t* to = words + static_cast<std::ptrdiff_t>(match_words(area)) * copy;
        std::copy(words + 4 * copy, words + pitch, to);
        std::fill_n(to + pitch - 4 * copy, 4 * copy, 0);
      }
    } else {
      for (int x = 0; x < pitch; ++x) {
        words[x] = (static_cast<std::uint32_t>(line[x]) & 0xFFFFU) | static_cast<std::uint32_t>(line[x + 1])
                                                                         << 16;
      }
    }
    for (int x = 0; x < pitch; ++x) {
      std::int32_t sum = 0;
      for (int i = 0; i < match_patch; ++i) sum += line[x + i] * line[x + i];
      sums[x] = sum;
    }
  }
  for (int y = area.y0; y + match_patch <= area.y1; ++y) {
    std::int32_t* HWY_RESTRICT row = tile.energies + static_cast<std::ptrdiff_t>(y - area.y0) * pitch;
    const bool inside = y >= 0 && y + match_patch <= extent.height;
    const int left = inside ? std::clamp(-area.x0, 0, pitch) : pitch;
    const int right = inside ? std::clamp(extent.width - match_patch + 1 - area.x0, left, pitch) : pitch;
    for (int x = left; x < right; ++x) {
      std::int32_t sum = 0;
      for (int i = 0; i < match_patch; ++i) sum += row[x + i * pitch];
      row[x] = -((sum + 1) >> 1);
    }
    std::fill(row, row + left, excluded_score);
    std::fill(row + right, row + pitch, excluded_score);
  }
  return within;
}

int Lanes() { return lanes; }
int References(bool deep) { return MostReferences(deep ? Products::wide : ProductsOfBytes()); }
float BytesDepth() { return ProductsOfBytes() == Products::dots ? 127 : 63; }

#endif

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ungrain {

HWY_EXPORT(FindMatches);
HWY_EXPORT(FillMatchTile);
HWY_EXPORT(Lanes);
HWY_EXPORT(References);
HWY_EXPORT(BytesDepth);

Rect match_area(const Rect& positions) {
  return {positions.x0, positions.y0, positions.x1 + match_patch - 1, positions.y1 + match_patch - 1};
}

int match_pitch(const Rect& area) {
  // Vectors may begin at any candidate of the last reference's window.
  return (area.width() + match_columns + 15) / 16 * 16 + 16;
}

std::size_t match_words(const Rect& area) {
  return static_cast<std::size_t>(match_pitch(area)) * area.height() + 16;
}

std::size_t match_all_words(const Rect& area) { return match_words(area) * match_copies; }

float match_depth(bool deep) { return deep ? 2047.0F : HWY_DYNAMIC_DISPATCH(BytesDepth)(); }

bool has_match_vectors() { return HWY_DYNAMIC_DISPATCH(Lanes)() > 1; }

int references_at_once(int search, int spacing, bool deep) {
  const int vector = HWY_DYNAMIC_DISPATCH(Lanes)();
  const int room = HWY_DYNAMIC_DISPATCH(References)(deep);
  const auto fit = [&](int references) {
    return search + (references - 1) * spacing <= match_columns - vector + vector / longest_match_vector;
  };
  const auto vectors = [&](int references) {
    return (search + (references - 1) * spacing + vector - 1) / vector;
  };
  // As many references as need no further vector, on targets with long vectors.
  int most = 1;
  while (most < room && fit(most + 1) && (vector < longest_match_vector || vectors(most + 1) == vectors(1))) {
    ++most;
  }
  return most;
}

bool fill_match_tile(const ConstPlanes& image, int plane, const Extent& extent, const MatchScale& scale,
                     const MatchTile& tile) {
  return HWY_DYNAMIC_DISPATCH(FillMatchTile)(image, plane, extent, scale, tile);
}

void find_matches(const MatchCall& call) { HWY_DYNAMIC_DISPATCH(FindMatches)(call); }

}  // namespace ungrain
#endif
