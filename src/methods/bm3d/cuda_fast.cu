// The fast filter of groups of 8 x 8 patches on a GPU.
//
//   block   a tile of references and the pixels that their groups may lie on, 8 or 10 warps
//           shared memory: noisy | basic    | sums of values | sums of weights | corner tables | warps' own |
//                          float   (step 2)   int              int               (wavelets)
//                          the tile's references
//   warp    one group at a time: 1, 2, 4 ... 32 patches
//   lane    4 g + t: of each patch, row g, the pixels of columns t and t + 4;
//           of its transform, column g, the coefficients of rows 2 t and 2 t + 1
//
//   pixels of 2 patches X -> (pixel - mean) / sigma, halves -> M X^T -> (M X^T) M^T     tensor cores
//                         -> Haar along the group -> what threshold or Wiener takes     registers of a lane
//                         -> Haar back -> the two products back                         tensor cores
//                         -> times weight and window, whole numbers -> block's sums     shared atomics
//   block's 32-bit sums   -> the call's 64-bit sums, once at the end                    global atomics
//
// A product leaves its numbers in the lanes as the next one takes them, so nothing is moved between lanes.
// Rows of the tile are 4 mod 32 words apart: no two lanes meet in a bank when a patch is loaded or added.
// The sums are of what the filter takes away, in units of sigma; see Bm3dFilterCall. Pixels within 256 sigma
// of the reference patch's mean are rounded to halves with an error of at most 0.06 sigma. Groups with other
// pixels, and groups whose estimates would not fit the sums, are left to the general kernel.
//
// Two kernels filter groups: this file's holds coefficients as floats, cuda_fast_halves.cu's as halves.
#include <algorithm>
#include <cmath>
#include <limits>

#include "methods/bm3d/cuda_fast_kernel.cuh"
#include "methods/bm3d/transforms.h"
#include "ungrain/half.h"

namespace ungrain::cuda {
namespace {

using namespace bm3d_fast;

// Pixels farther than this from the reference patch's mean, in sigma, are too coarse as halves.
constexpr float largest_pixel = 256;

// Filters groups with coefficients that are floats.
template <int Most, bool Wiener, bool Wavelet, bool Model>
class GroupFilter : public PatchGroup<Most, Wavelet> {
  using Group = PatchGroup<Most, Wavelet>;
  using Group::call_, Group::own_, Group::lane_, Group::places_, Group::deviation_, Group::mean_of_all_,
      Group::patches_in, Group::sum_over_warp, Group::constant_root, Group::take_away_up_to;
  using typename Group::FourPlaces;

 public:
  static constexpr int most = Most;
  static constexpr bool wiener = Wiener;
  static constexpr bool wavelet = Wavelet;
  static constexpr bool model = Model;
  static constexpr bool halves = false;
  using Pixel = float;

  __device__ GroupFilter(const FastCall& call, int plane, std::uint32_t* own,
                         const std::uint32_t* corner_tables)
      : Group(call, plane, own, corner_tables) {
    if constexpr (Model) {
      limit_ = call.filter.strength * call.filter.noise.strength[plane];
      // Coefficients are stored transposed: see above.
      const float* const shares = call.filter.noise.shares + plane * patch * patch;
#pragma unroll
      for (int i = 0; i < 2; ++i) shares_[i] = shares[(lane_ % 4 * 2 + i) * patch + lane_ / 4];
    }
  }

  // Filters a group. The images begin at this lane's first pixel. Returns whether the group was filtered:
  // then `parts_` is what its patches lose and `weight_` their weight, in steps. `deviation`: the group's, of
  // a model, in units of sigma.
  __device__ bool filter(const float* noisy, const float* basic, int size, float deviation) {
    float kept = 0;
    float scale = this->inverse_sigma_;
    if constexpr (Model) {
      deviation_ = deviation;
      scale *= approximate_reciprocal(deviation);
    }
    if constexpr (Wiener) {
      const float noise_scale = Model ? scale * approximate_reciprocal(limit_) : this->inverse_noise_;
      if (!forward(basic, size, noise_scale)) return false;
      std::uint32_t shares[shares_in_registers];
      kept = lost_shares(size, shares);
      if (!forward(noisy, size, scale)) return false;
#pragma unroll
      for (int n = 0; n < Most; ++n) {
        const float2 share = unpack_halves(n < shares_in_registers ? shares[n] : *share_at(n));
        parts_[n][0] *= share.x;
        parts_[n][1] *= share.y;
      }
    } else {
      if (!forward(noisy, size, scale)) return false;
      kept = Model ? threshold_by_share(size) : threshold(size);
    }
    this->set_weight(kept);
    return inverse(size);
  }

  // Adds the group to the block's sums: values from this lane's first pixel on, weights from the tile's first
  // pixel on.
  __device__ void add(int* values, int* weights, int place, int size) const {
    this->add_weight(weights, place, size);
    const float factor = static_cast<float>(this->weight_) * deviation_;
    const float scale[2] = {factor * this->window_[0], factor * this->window_[1]};
    FourPlaces four;
    const auto add_one = [&](int n) {
      this->add_patch(bytes_after(values, four.of(places_, n)), parts_[n][0], parts_[n][1], scale);
    };
    for_pairs<Most>(
        size,
        [&](int n) {
          add_one(n);
          if (n > 0 || size > 1) add_one(n + 1);
        },
        [](int) {});
  }

 private:
  // The other factors lie in shared memory: registers do not suffice for them and for two numbers of each
  // patch.
  __device__ std::uint32_t* share_at(int n) const { return own_ + (n - shares_in_registers) * 32 + lane_; }

  // The second product of two patches, from the first.
  template <int Way>
  __device__ void transform(int n, const std::uint32_t (&firsts)[2]) {
    float c[4];
    this->template second_product<Way>(c, firsts[0], firsts[1]);
    parts_[n][0] = c[0];
    parts_[n][1] = c[1];
    parts_[n + 1][0] = c[2];
    parts_[n + 1][1] = c[3];
  }

  // Coefficients in units of 1 / scale. Sums and differences along the group are not normalised, except the
  // sum of all, which becomes the mean.
  // Pixels are taken less the reference's mean. Returns whether all are within `largest_pixel`. Sets
  // mean_of_all_.
  __device__ bool forward(const float* image, int size, float scale) {
    const float* const reference = bytes_after(image, places_[0]);
    const float mean = scale * this->mean_of_patch(reference[0], reference[4]);
    std::uint32_t largest = 0;
    FourPlaces four;
    for_pairs<Most>(
        size,
        [&](int n) {
          std::uint32_t pixels[2];
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float* const from = bytes_after(image, four.of(places_, n + i));
            pixels[i] = pack_halves(fmaf(from[0], scale, -mean), fmaf(from[4], scale, -mean));
          }
          // The second patch of a group of one is 0.
          if (n == 0 && size == 1) pixels[1] = 0;
          largest = larger_halves(larger_halves(largest, pixels[0]), pixels[1]);
          std::uint32_t firsts[2];
          this->template first_products<0>(firsts, pixels[0], pixels[1]);
          transform<0>(n, firsts);
        },
        [&](int n) {
          parts_[n][0] = zero_here();
          parts_[n][1] = zero_here();
          parts_[n + 1][0] = zero_here();
          parts_[n + 1][1] = zero_here();
        });
    mean_of_all_ = patch * mean;
    // A mean that is not finite would leave no numbers to compare.
    if (!this->all_within(largest, fabsf(mean) < 1e30F ? largest_pixel : -1.0F)) return false;

      // Haar: a sum stays at the first patch of its stretch, a difference goes to the first patch of the
      // stretch's second half. Missing patches are 0, so the sum of all passes through the remaining levels
      // unchanged, and their differences are ignored.
#pragma unroll
    for (int step = 1; step < Most; step *= 2) {
#pragma unroll
      for (int n = 0; n < Most; n += 2 * step) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float sum = parts_[n][i] + parts_[n + step][i];
          const float difference = parts_[n][i] - parts_[n + step][i];
          parts_[n + step][i] = n > 0 || step < size ? difference : 0.0F;
          parts_[n][i] = sum;
        }
      }
    }
    const float of_all = approximate_reciprocal(static_cast<float>(size));
    parts_[0][0] *= of_all;
    parts_[0][1] *= of_all;
    // The mean subtracted from every pixel is part of the mean's coefficient only.
    if (!Wavelet && lane_ == 0) parts_[0][0] += mean_of_all_;
    return true;
  }

  // Zeroes coefficients above the threshold, which leaves what is taken away. Returns how many were kept.
  __device__ float threshold(int size) {
    const float limit = call_.filter.strength;
    const float limit_of_all = limit * rsqrtf(static_cast<float>(size));
    const bool corner = Wavelet && in_corner(lane_);
    if constexpr (Wavelet) {
      if (corner) {
        std::uint32_t* const to = own_ + lane_ / 4 * 2 + lane_ % 4;
#pragma unroll
        for (int n = 0; n < Most; ++n) to[n * corner_words] = pack_halves(parts_[n][0], parts_[n][1]);
      }
      __syncwarp();
    }
    float kept = 0;
#pragma unroll
    for (int n = 0; n < Most; ++n) {
      const float of_n = n == 0 ? limit_of_all : limit * constant_root(patches_in(n));
#pragma unroll
      for (int i = 0; i < 2; ++i) kept += take_away_up_to(of_n, parts_[n][i]);
    }
    if constexpr (Wavelet) {
      // Replaces the count of the corner's lanes.
      if (corner) kept = 0;
      kept += this->threshold_corner(size, limit, limit_of_all);
      __syncwarp();
      if (corner) {
        const std::uint32_t* const from = own_ + lane_ / 4 * 2 + lane_ % 4;
#pragma unroll
        for (int n = 0; n < Most; ++n) {
          const float2 values = unpack_halves(from[n * corner_words]);
          parts_[n][0] = values.x;
          parts_[n][1] = values.y;
        }
      }
      __syncwarp();
    }
    return static_cast<float>(warp_sum(static_cast<int>(kept)));
  }

  // The same with a threshold for each coefficient; the group's mean is always kept. Returns the sum of the
  // kept coefficients' shares.
  __device__ float threshold_by_share(int size) {
    float limits[2];
    float of_all[2];
    float kept[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      limits[i] = limit_ * sqrtf(shares_[i]);
      of_all[i] = limits[i] * rsqrtf(static_cast<float>(size));
    }
    if (lane_ == 0) of_all[0] = -1;
#pragma unroll
    for (int n = 0; n < Most; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float limit = n == 0 ? of_all[i] : limits[i] * constant_root(patches_in(n));
        kept[i] += take_away_up_to(limit, parts_[n][i]);
      }
    }
    return sum_over_warp(fmaf(kept[0], shares_[0], kept[1] * shares_[1]));
  }

  // Computes the share that each noisy coefficient loses from the basic estimate's, as pairs of halves; those
  // of differences are scaled, see inverse(). Returns the sum of the squared kept shares, with a model times
  // the coefficients' shares of variance.
  __device__ float lost_shares(int size, std::uint32_t* shares) const {
    float kept[2] = {};
    float inverse_shares[2] = {1, 1};
#pragma unroll
    for (int i = 0; Model && i < 2; ++i) inverse_shares[i] = approximate_reciprocal(shares_[i]);
#pragma unroll
    for (int n = 0; n < Most; ++n) {
      // The noise's square, in units of a coefficient that is a difference of sums; that of an orthonormal
      // one is 1. The mean of all has its own unit. The shares of differences are divided by theirs, which
      // saves the division in the transform back.
      const auto noise = static_cast<float>(patches_in(n));
      float share[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float part = parts_[n][i];
        const float over_share = Model ? part * inverse_shares[i] : part;
        float keeps;
        if (n == 0) {
          share[i] = approximate_reciprocal(fmaf(part * over_share, static_cast<float>(size), 1.0F));
          keeps = 1 - share[i];
        } else {
          share[i] = approximate_reciprocal(fmaf(part, over_share, noise));
          keeps = fmaf(-noise, share[i], 1.0F);
        }
        float& sum = kept[Model ? i : 0];
        sum = fmaf(keeps, keeps, sum);
      }
      const std::uint32_t both = pack_halves(share[0], share[1]);
      if (n < shares_in_registers) {
        shares[n] = both;
      } else {
        *share_at(n) = both;
      }
    }
    return sum_over_warp(Model ? fmaf(kept[0], shares_[0], kept[1] * shares_[1]) : kept[0]);
  }

  // Returns whether the estimates fit the sums.
  __device__ bool inverse(int size) {
#pragma unroll
    for (int step = Most / 2; step > 0; step /= 2) {
      // Wiener: lost_shares() has divided them already.
      const float share = Wiener ? 1.0F : 0.5F / static_cast<float>(step);
#pragma unroll
      for (int n = 0; n < Most; n += 2 * step) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float mean = parts_[n][i];
          const float difference = parts_[n + step][i];
          parts_[n][i] = fmaf(difference, share, mean);
          parts_[n + step][i] = fmaf(difference, -share, mean);
        }
      }
    }
    // Only the mean's coefficient may exceed halves, because it is not relative to a mean.
    const bool is_half = fabsf(parts_[0][0]) < 60000.0F;
    std::uint32_t largest = 0;
    for_pairs<Most>(
        size,
        [&](int n) {
          std::uint32_t firsts[2];
          this->template first_products<1>(firsts, pack_halves(parts_[n][0], parts_[n][1]),
                                           pack_halves(parts_[n + 1][0], parts_[n + 1][1]));
          largest = larger_halves(larger_halves(largest, firsts[0]), firsts[1]);
          transform<1>(n, firsts);
        },
        [](int) {});
    return __all_sync(all_lanes, is_half) != 0 && this->fit_sums(largest);
  }

  float shares_[2];  // of variance, of this lane's coefficients
  float limit_ = 1;
  float parts_[Most][2];  // coefficients, then what the patches lose
};

std::uint32_t halves(double first, double second) {
  return float_to_half(static_cast<float>(first)) |
         static_cast<std::uint32_t>(float_to_half(static_cast<float>(second))) << 16U;
}

// The pixel columns that a lane holds.
int column_of(int slot) { return slot / 2 + slot % 2 * 4; }

Bm3dFastTables make_tables(const std::vector<TransformPair>& levels) {
  Bm3dFastTables tables;
  const TransformMatrix& forward = levels[0].forward;
  const TransformMatrix& inverse = levels[0].inverse;
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    const auto pair = [&](const TransformMatrix& m, int row, int first, int second) {
      return halves(m.at(row, first).real(), m.at(row, second).real());
    };
    for (const int quarter : {0, 3}) {
      tables.first[0][quarter][lane] = pair(forward, g, column_of(2 * t), column_of(2 * t + 1));
      tables.first[1][quarter][lane] = pair(inverse, g, 2 * t, 2 * t + 1);
    }
    tables.second[0][lane] = pair(forward, g, 2 * t, 2 * t + 1);
    tables.second[1][lane] = pair(inverse, column_of(g), 2 * t, 2 * t + 1);
    for (int x = 0; x < patch; ++x)
      tables.row_sums[lane] += half_to_float(float_to_half(static_cast<float>(forward.at(g, x).real())));
  }
  if (levels.size() == 1) return tables;

  // The levels after the first, applied to each unit vector of the quadrant's 16 places: the columns of their
  // matrix.
  constexpr int side = patch / 2;
  double corner[side * side][side * side];
  for (int place = 0; place < side * side; ++place) {
    double values[side * side] = {};
    values[place] = 1;
    for (std::size_t level = 1; level < levels.size(); ++level) {
      const TransformMatrix& m = levels[level].forward;
      double columns[side * side] = {};
      for (int f = 0; f < m.side; ++f) {
        for (int x = 0; x < m.side; ++x) {
          for (int y = 0; y < m.side; ++y) columns[f * side + x] += m.at(f, y).real() * values[y * side + x];
        }
      }
      for (int y = 0; y < m.side; ++y) {
        for (int f = 0; f < m.side; ++f) {
          double sum = 0;
          for (int x = 0; x < m.side; ++x) sum += m.at(f, x).real() * columns[y * side + x];
          values[y * side + f] = sum;
        }
      }
    }
    for (int c = 0; c < side * side; ++c) corner[c][place] = values[c];
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    for (int half = 0; half < 2; ++half) {
      for (int part = 0; part < 2; ++part) {
        const int k = 2 * t + 8 * part;
        const int n = 8 * half + g;
        tables.corner[0][2 * half + part][lane] = halves(corner[n][k], corner[n][k + 1]);
        tables.corner[1][2 * half + part][lane] = halves(corner[k][n], corner[k + 1][n]);
      }
    }
  }
  return tables;
}

std::size_t bytes_of(const Bm3dTile& tile, bool wiener, bool wavelet, bool halves, int most) {
  const auto pixels = static_cast<std::size_t>(tile.height) * tile.pitch;
  const auto weights = static_cast<std::size_t>(tile.height - (patch - 1)) * tile.pitch;
  const std::size_t own = static_cast<std::size_t>(block_shape(most, wiener, halves).warps) *
                          own_words(most, wiener, wavelet, halves);
  const std::size_t references =
      sizeof(TileReference) / 4 * static_cast<std::size_t>(tile.columns * tile.rows);
  return 4 * ((wiener ? 3 : 2) * pixels + weights + (wavelet ? corner_table_words : 0) + own + references);
}

// Chosen by the settings alone: the sums' units depend on the tile, and results must not differ from band to
// band.
std::optional<Bm3dTile> make_tile(int spacing, int reach, bool wiener, bool wavelet, bool halves, int most) {
  Bm3dTile tile;
  tile.reach = reach;
  const int least = 2 * reach + patch;
  constexpr int wanted_columns = 16;  // pixels of references, at least
  const int wanted_rows = wiener ? 45 : 39;
  const int least_rows = wiener ? 10 : 9;  // of references, if they lie far apart
  constexpr int most_references = 512;
  tile.pitch = 4;
  while (tile.pitch < least + wanted_columns) tile.pitch += 32;
  tile.columns = (tile.pitch - least) / spacing + 1;
  tile.width = (tile.columns - 1) * spacing + least;
  for (tile.rows = std::min(std::max(wanted_rows / spacing, least_rows), most_references / tile.columns);
       tile.rows > 0; --tile.rows) {
    tile.height = (tile.rows - 1) * spacing + least;
    tile.bytes = bytes_of(tile, wiener, wavelet, halves, most);
    if (tile.bytes <= most_shared_bytes) return tile;
  }
  return std::nullopt;
}

// Leaves every group to the general kernel.
__global__ void leave_all_kernel(unsigned* left_over, unsigned groups) {
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  if (first == 0) left_over[0] = groups;
  for (unsigned i = first; i < groups; i += gridDim.x * blockDim.x) left_over[1 + i] = i;
}

bool has_products() {
  constexpr int first_with_products = 8;
  int device = 0;
  int major = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the GPU");
  return major >= first_with_products;
}

// Whether the model's deviations and shares are within the range of the sums and shares.
bool takes_model(const PlaneNoise& noise) {
  constexpr double most_apart = 1024;
  constexpr double least_share = 1e-6;
  const auto [least, most] = std::minmax_element(noise.variances.begin(), noise.variances.end());
  return *most <= most_apart * *least &&
         *std::min_element(noise.shares.begin(), noise.shares.end()) >= least_share * mean_share(noise);
}

}  // namespace

double fast_sigma(const Bm3dSettings& settings, int plane) {
  if (settings.model.empty()) return settings.sigma[plane];
  const PlaneNoise& noise = settings.model[plane];
  return std::sqrt(*std::min_element(noise.variances.begin(), noise.variances.end()) * mean_share(noise));
}

std::optional<Bm3dFast> bm3d_fast_filter(const Bm3dSettings& settings, int index, double white) {
  const Bm3dStep& step = index == 0 ? settings.first : settings.second;
  constexpr int largest_group = 32;
  bool noise_known = settings.sigma_map.data == nullptr && !is_correlated(settings) &&
                     std::all_of(settings.model.begin(), settings.model.end(), takes_model);
  for (int plane = 0; plane < static_cast<int>(settings.sigma.size()); ++plane)
    noise_known = noise_known && fast_sigma(settings, plane) > std::numeric_limits<float>::min() * 1e3;
  Bm3dFast fast;
  fast.model = !settings.model.empty();
  fast.wiener = index == 1;
  fast.wavelet = step.transform == PatchTransform::bior15;
  fast.most = step.group > 16 ? 32 : 16;
  const bool takes = noise_known && !(fast.model && step.transform != PatchTransform::dct) &&
                     step.patch == patch && step.along == GroupTransform::haar &&
                     step.group <= largest_group && step.transform != PatchTransform::dft &&
                     !(fast.wiener && fast.wavelet) && (fast.wiener ? step.strength > 0 : true);
  if (!takes) return std::nullopt;
  // Strong noise. Luminance reaches sqrt 3 times white.
  constexpr double most_of_halves = 32;
  const double range = white * (settings.opponent ? std::sqrt(3.0) : 1);
  const double unit = *std::min_element(settings.sigma.begin(), settings.sigma.end()) *
                      (fast.wiener ? std::min(step.strength, 1.0) : 1);
  fast.halves = !fast.model && range <= most_of_halves * unit;
  const std::optional<Bm3dTile> tile = make_tile(step.spacing, group_reach(settings, index), fast.wiener,
                                                 fast.wavelet, fast.halves, fast.most);
  if (!tile) return std::nullopt;
  fast.tile = *tile;
  fast.tables = make_tables(patch_transform(step.transform, patch));
  return fast;
}

void set_fast_units(const Bm3dFast& fast, Bm3dSums& sums) {
  // A group gives a pixel at most one estimate for each of its patches, and at most patch x patch. A patch
  // begins at a pixel at most once a group.
  const double groups = static_cast<double>(fast.tile.columns) * fast.tile.rows;
  const double estimates = groups * std::min(fast.most, patch * patch);
  const auto power_below = [](double value) { return std::exp2(std::floor(std::log2(value))); };
  constexpr double room = 2147483000;
  constexpr double most_value_steps = 0x1p22 / 2 / largest_estimate;  // the range of rounded()
  constexpr double most_weight_steps = 0x1p23;                        // weights are exact floats
  sums.value_steps = static_cast<float>(
      std::min(power_below(room / (estimates * (largest_estimate + 1e-3))), most_value_steps));
  sums.weight_steps = static_cast<float>(std::min(power_below(room / groups), most_weight_steps));
}

void launch_bm3d_fast(const Bm3dFast& fast, const Bm3dFilterCall& filter, Stream stream) {
  FastCall call{filter, fast.tile, fast.tables};
  call.basic_per_noisy = 1 / filter.strength;
  call.mean_per_first_row = patch / fast.tables.row_sums[0];
  for (int plane = filter.first_plane; plane < filter.first_plane + filter.planes; ++plane) {
    call.middles[plane][0] = patch * filter.middle[plane] / filter.sigma[plane];
    call.middles[plane][1] = call.middles[plane][0] * call.basic_per_noisy;
  }
  if (!has_products()) {
    const auto groups = static_cast<unsigned>(filter.references()) * static_cast<unsigned>(filter.planes);
    constexpr int threads = 256;
    return launch(leave_all_kernel, blocks_for(static_cast<int>(groups), threads), threads, 0, stream,
                  filter.left_over, groups);
  }
  if (fast.halves) return launch_halves(fast, call, stream);
  if (fast.model) {
    if (fast.wiener) {
      return fast.most == 16 ? launch_filter<GroupFilter<16, true, false, true>>(call, stream)
                             : launch_filter<GroupFilter<32, true, false, true>>(call, stream);
    }
    return fast.most == 16 ? launch_filter<GroupFilter<16, false, false, true>>(call, stream)
                           : launch_filter<GroupFilter<32, false, false, true>>(call, stream);
  }
  if (fast.wiener) {
    return fast.most == 16 ? launch_filter<GroupFilter<16, true, false, false>>(call, stream)
                           : launch_filter<GroupFilter<32, true, false, false>>(call, stream);
  }
  if (fast.wavelet) {
    return fast.most == 16 ? launch_filter<GroupFilter<16, false, true, false>>(call, stream)
                           : launch_filter<GroupFilter<32, false, true, false>>(call, stream);
  }
  return fast.most == 16 ? launch_filter<GroupFilter<16, false, false, false>>(call, stream)
                         : launch_filter<GroupFilter<32, false, false, false>>(call, stream);
}

}  // namespace ungrain::cuda
