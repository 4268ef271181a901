// The search of bytes with AVX-512: distances of 16 bits, two rows of which fill whole vectors, so that less
// is written, read again and compared. Larger distances become 65535; a reference whose patches are so far
// away is searched with 32 bits. The groups are the same.
//
// Rows go in pairs. A row has two or three vectors of 32-bit distances. The first two become one vector of 16
// bits, in the order that packing leaves; the third ones of both rows become another.
//
// Part of match_simd.cpp, for each target.

#if UNGRAIN_SHORT_MATCHES

using Shorts = hn::Repartition<std::uint16_t, Signed>;
using Distances = hn::Vec<Shorts>;
constexpr Shorts dshort;
constexpr int short_lanes = 2 * lanes;
constexpr int most_pairs = match_columns / 2;
constexpr std::uint16_t farthest = 65535;
// Bisection of thresholds: its last step is half a grey level's square for each of 32 pixels.
constexpr std::int32_t first_short_step = 0x8000;
constexpr std::int32_t last_short_step = 16;

// Where a candidate's distance lies: row and column of the window.
template <int V>
HWY_INLINE int ShortPlace(int row, int column) {
  const int parity = row % 2;
  const bool last = column >= 2 * lanes;
  const int vector = last ? 2 : parity;
  const int quarter = last ? parity : column / lanes;  // of four lanes' room of eight
  const int lane = column % lanes;
  return (row / 2 * V + vector) * short_lanes + lane / 4 * 8 + quarter * 4 + lane % 4;
}

// Distances too large for 16 bits are saturated.
HWY_INLINE Distances Pack(Sums a, Sums b) { return Distances{_mm512_packus_epi32(a.raw, b.raw)}; }

// K rows of V vectors from a column on, as distances.
template <int R, int V, int K>
HWY_INLINE void ShortRows(const Window& w, int row, const Sums (&own)[R], Sums (&distances)[K][R][V]) {
  Dot<Products::dots> dots[K][R][V];
  const std::ptrdiff_t pitch = w.tile->pitch;
  const std::int32_t* energies = w.energies + row * pitch;
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Sums energy = hn::LoadU(ds, energies + k * pitch + v * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) dots[k][r][v].Start(hn::Sub(own[r], energy));
    }
  }
  AddDotsOfRows<Products::dots, R, V, K>(w, row, 0, dots);
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) distances[k][r][v] = dots[k][r][v].Get();
    }
  }
}

HWY_INLINE std::uint16_t* ShortsOf(const Window& w, int r) {
  return reinterpret_cast<std::uint16_t*>(w.sums) + r * most_pairs * 3 * short_lanes;
}

template <int R, int V>
HWY_NOINLINE void FindShorts(const Window& w) {
  Sums own[R];
  for (int r = 0; r < R; ++r) own[r] = hn::Set(ds, w.own[r]);
  const auto store = [](const Distances& distances, std::uint16_t* to)
                         HWY_ATTR { hn::StoreU(distances, dshort, to); };
  std::uint16_t* to = ShortsOf(w, 0);
  const std::ptrdiff_t next = ShortsOf(w, 1) - ShortsOf(w, 0);
  for (int row = 0; row < w.rows; row += 2, to += V * short_lanes) {
    Sums first[1][R][V];
    Sums second[1][R][V];
    if (R * V <= 6 && row + 1 < w.rows) {
      Sums both[2][R][V];
      ShortRows<R, V, 2>(w, row, own, both);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        store(Pack(both[0][r][0], both[0][r][1]), to + r * next);
        store(Pack(both[1][r][0], both[1][r][1]), to + r * next + short_lanes);
        if constexpr (V == 3) store(Pack(both[0][r][2], both[1][r][2]), to + r * next + 2 * short_lanes);
      }
      continue;
    }
    ShortRows<R, V, 1>(w, row, own, first);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store(Pack(first[0][r][0], first[0][r][1]), to + r * next);
    if (row + 1 < w.rows) {
      ShortRows<R, V, 1>(w, row + 1, own, second);
    } else {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) second[0][r][v] = hn::Set(ds, farthest);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      store(Pack(second[0][r][0], second[0][r][1]), to + r * next + short_lanes);
      if constexpr (V == 3) store(Pack(first[0][r][2], second[0][r][2]), to + r * next + 2 * short_lanes);
    }
  }
}

// Columns of the lanes of a pair's vectors, and what must be added to a pair's first row for their rows.
struct ShortLanes {
  alignas(64) std::uint16_t columns[2][short_lanes];  // of the first vectors, and of the third
  alignas(64) std::uint32_t places[6][lanes];         // of halves of all three vectors: row, then column
};
constexpr ShortLanes MakeShortLanes() {
  ShortLanes made{};
  for (int i = 0; i < short_lanes; ++i) {
    const int quarter = i / 4 % 2;
    const int lane = i / 8 * 4 + i % 4;
    made.columns[0][i] = static_cast<std::uint16_t>(quarter * lanes + lane);
    made.columns[1][i] = static_cast<std::uint16_t>(2 * lanes + lane);
    for (int v = 0; v < 3; ++v) {
      const int parity = v == 2 ? quarter : v;
      made.places[2 * v + i / lanes][i % lanes] =
          static_cast<std::uint32_t>(parity << column_bits | made.columns[v == 2 ? 1 : 0][i]);
    }
  }
  return made;
}
constexpr ShortLanes short_places = MakeShortLanes();

// Lanes that hold a candidate of a reference: of a pair's first vectors, and of its third.
struct InsideLanes {
  __mmask32 first;
  __mmask32 third;
};
HWY_INLINE InsideLanes InsideOf(const Window& w, int r) {
  const __m512i left = _mm512_set1_epi16(static_cast<std::int16_t>(w.shift[r]));
  const __m512i side = _mm512_set1_epi16(static_cast<std::int16_t>(w.side));
  const auto of = [&](const std::uint16_t* columns) HWY_ATTR {
    return _mm512_cmplt_epu16_mask(_mm512_sub_epi16(_mm512_load_si512(columns), left), side);
  };
  return {of(short_places.columns[0]), of(short_places.columns[1])};
}

// The distance that `wanted` candidates, or a few more, reach, from the best of classes. A class is a lane of
// a pair's vectors, over all pairs of rows or over every second one. 65535 where it may be larger.
template <int V, int Parts>
HWY_INLINE void FindShortThresholds(const Window& w, int wanted, std::int32_t* thresholds) {
  Distances best[most_references_at_once][Parts * V];
  std::int32_t below[most_references_at_once];  // distances that fewer than wanted are less than
  for (int r = 0; r < w.references; ++r) {
    below[r] = 0;
    const std::uint16_t* from = ShortsOf(w, r);
#pragma GCC unroll 8
    for (int i = 0; i < Parts * V; ++i) best[r][i] = hn::Set(dshort, farthest);
    int row = 0;
    for (; row + 2 * Parts <= w.rows + 1; row += 2 * Parts, from += Parts * V * short_lanes) {
#pragma GCC unroll 8
      for (int i = 0; i < Parts * V; ++i) {
        best[r][i] = hn::Min(best[r][i], hn::LoadU(dshort, from + i * short_lanes));
      }
    }
    for (int i = 0; row < w.rows; row += 2, i += V, from += V * short_lanes) {
      for (int v = 0; v < V; ++v) {
        best[r][i + v] = hn::Min(best[r][i + v], hn::LoadU(dshort, from + v * short_lanes));
      }
    }
    const InsideLanes inside = InsideOf(w, r);
#pragma GCC unroll 8
    for (int i = 0; i < Parts * V; ++i) {
      const __mmask32 in = i % V == 2 ? inside.third : inside.first;
      best[r][i].raw = _mm512_mask_mov_epi16(hn::Set(dshort, farthest).raw, in, best[r][i].raw);
    }
  }
  for (std::int32_t step = first_short_step; step >= last_short_step; step /= 2) {
    for (int r = 0; r < w.references; ++r) {
      const __m512i limit = _mm512_set1_epi16(static_cast<std::int16_t>(below[r] + step));
      int count = 0;
#pragma GCC unroll 8
      for (int i = 0; i < Parts * V; ++i) {
        count += std::popcount(_mm512_cmplt_epu16_mask(best[r][i].raw, limit));
      }
      // Not a condition, which the compiler may turn into a branch that cannot be predicted.
      below[r] += step & (count - wanted) >> 31;
    }
  }
  for (int r = 0; r < w.references; ++r) thresholds[r] = below[r] + last_short_step - 1;
}

// Lanes up to a threshold, for all vectors of a reference's rows.
template <int V>
HWY_INLINE void FindShortHits(const Window& w, int r, std::int32_t threshold, std::uint32_t* masks) {
  const InsideLanes inside = InsideOf(w, r);
  const __m512i limit = _mm512_set1_epi16(static_cast<std::int16_t>(threshold));
  const std::uint16_t* from = ShortsOf(w, r);
  for (int row = 0; row < w.rows; row += 2) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v, from += short_lanes) {
      *masks++ =
          _mm512_mask_cmple_epu16_mask(v == 2 ? inside.third : inside.first, _mm512_loadu_si512(from), limit);
    }
  }
}

// Lists the keys of the candidates up to the threshold; returns how many. `masks` has room for a whole vector
// more.
template <int V>
HWY_INLINE int ListShortHits(const Window& w, int r, std::uint32_t* masks, std::uint32_t* list) {
  constexpr int halves_of_pair = 2 * V;
  const int halves = (w.rows + 1) / 2 * halves_of_pair;
  std::memset(masks + halves / 2, 0, lanes * sizeof(std::uint16_t));
  const auto* const half_masks = reinterpret_cast<const std::uint16_t*>(masks);
  // Vectors' halves that hold any, without a branch: which do cannot be predicted.
  alignas(64) std::uint32_t filled[most_pairs * halves_of_pair + lanes];
  int count = 0;
  __m512i at = hn::Iota(du, 0).raw;
  for (int i = 0; i < halves; i += lanes) {
    const __m512i some =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(half_masks + i)));
    const __mmask16 any = _mm512_test_epi32_mask(some, some);
    _mm512_storeu_si512(filled + count, _mm512_maskz_compress_epi32(any, at));
    count += std::popcount(any);
    at = _mm512_add_epi32(at, _mm512_set1_epi32(lanes));
  }
  const std::uint16_t* const shorts = ShortsOf(w, r);
  int hits = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t half = filled[i];
    const std::uint32_t pair = half / halves_of_pair;
    const __m512i distances =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(shorts + half * lanes)));
    const __m512i places =
        _mm512_add_epi32(_mm512_load_si512(short_places.places[half - pair * halves_of_pair]),
                         _mm512_set1_epi32(static_cast<std::int32_t>(pair << (column_bits + 1))));
    const __m512i keys = _mm512_or_si512(_mm512_slli_epi32(distances, place_bits), places);
    const __mmask16 mask = half_masks[half];
    _mm512_storeu_si512(list + hits, _mm512_maskz_compress_epi32(mask, keys));
    hits += std::popcount(mask);
  }
  return hits;
}

// The groups of the references whose patches are near enough; returns the others as bits.
template <int N, int V>
HWY_NOINLINE unsigned SelectShorts(const Window& w, const MatchCall& call) {
  constexpr int parts = N > 16 ? 2 : 1;
  std::int32_t thresholds[most_references_at_once];
  FindShortThresholds<V, parts>(w, call.most, thresholds);
  const int half = w.side / 2;
  constexpr int most_masks = most_pairs * V + lanes / 2;
  std::uint32_t masks[most_references_at_once][most_masks];
  unsigned too_far = 0;
  for (int r = 0; r < w.references; ++r) {
    // Farther patches than the largest distance are of no group.
    if (thresholds[r] == farthest && call.largest >= farthest) too_far |= 1U << r;
    thresholds[r] = std::min<std::int32_t>(thresholds[r], farthest - 1);
    // A reference is no candidate of its own: it comes first, even among equally near patches.
    ShortsOf(w, r)[ShortPlace<V>(half - w.first_row, w.shift[r] + half)] = farthest;
  }
  for (int r = 0; r < w.references; ++r) FindShortHits<V>(w, r, thresholds[r], masks[r]);
  WriteGroups<N>(w, call, thresholds,
                 [&](int r, std::uint32_t* list) HWY_ATTR { return ListShortHits<V>(w, r, masks[r], list); });
  return too_far;
}

// Each of four signed bytes, negated.
HWY_INLINE std::uint32_t NegatedBytes(std::uint32_t word) {
  return ((~word & 0x7F7F7F7FU) + 0x01010101U) ^ (~word & 0x80808080U);
}

template <int V>
unsigned FindShortMatchesOf(const Window& w, const MatchCall& call) {
  if (w.references == 1) {
    FindShorts<1, V>(w);
  } else if (w.references == 2) {
    FindShorts<2, V>(w);
  } else if (w.references == 3) {
    FindShorts<3, V>(w);
  } else {
    FindShorts<4, V>(w);
  }
  return call.most <= 16 ? SelectShorts<16, V>(w, call) : SelectShorts<32, V>(w, call);
}

bool SuitsShortMatches(const MatchCall& call) {
  const int columns = call.x[call.references - 1] - call.x[0] + call.search;
  return call.correction == nullptr && call.most <= 32 && columns > lanes && columns <= 3 * lanes;
}

// Returns the references that must be searched with 32 bits, as bits.
unsigned FindShortMatches(const Window& w, const MatchCall& call) {
  for (int i = 0; i < call.references * match_patch * WordsOfRow(Products::dots); ++i) {
    w.reference_words[i] = NegatedBytes(w.reference_words[i]);
  }
  return w.columns <= 2 * lanes ? FindShortMatchesOf<2>(w, call) : FindShortMatchesOf<3>(w, call);
}

#endif
