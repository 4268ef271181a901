// w(p,q) = w(q,p): a pair of pixels needs one exponential. A warp owns 32 columns and marches down the image
// in bands of `Band` rows; a lane holds its column's pixels of the band and their sums in registers, and
// meets every pixel of the window to its right (and, in its own column, below). What the partner gets is
// added in shared memory, to sums that belong to the warp alone. A band is finished when the band below it
// has been met: then the warp's own sums and those that the warp to the left has left for its last columns'
// partners are added up.
//
// Everything is laid out from the image's origin (bands at multiples of their height, blocks at multiples of
// their width), so that a pixel's sums are taken in one order whatever part of the image is asked for.
#include "methods/bilateral/symmetric.h"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.cuh"

namespace ungrain {
namespace {

using cuda::BorderedPlane;

constexpr int lanes = 32;
constexpr int slots = 3;  // bands held: the one before, this one, the next

struct SymmetricCall {
  BorderedPlane in;
  Planes out;
  int plane;
  int bands_each;  // of a block
  float scale;
  float unscale;
  float nothing;
  float space[16];
};

template <int Radius, int Band, int Warps>
class SymmetricBlock {
 public:
  static constexpr int threads = lanes * Warps;
  static constexpr int columns = threads + Radius;  // of pixels
  static constexpr int own_columns =
      threads - Radius;                            // that the block finishes; the first ones lack their left
  static constexpr int partners = lanes + Radius;  // columns of a warp's sums
  // Rows of a column lie together and are read four at a time; an odd number of fours keeps banks apart.
  static constexpr int pitch = slots * Band + 4;
  static constexpr int floats = columns * pitch + 2 * Warps * partners * pitch;

  __device__ SymmetricBlock(const SymmetricCall& call, float* shared)
      : call_(call),
        lane_(static_cast<int>(threadIdx.x) % lanes),
        warp_(static_cast<int>(threadIdx.x) / lanes),
        pixels_(shared),
        weights_(shared + columns * pitch + warp_ * 2 * partners * pitch),
        values_(weights_ + partners * pitch) {
    const Rect& area = call.out.rect;
    const int first_block = area.x0 / own_columns;
    left_ = (first_block + static_cast<int>(blockIdx.x)) * own_columns - Radius;
    const int area_band = area.y0 / Band;
    const int last_band = (area.y1 - 1) / Band;
    first_band_ = area_band + static_cast<int>(blockIdx.y) * call.bands_each;
    end_band_ = min(first_band_ + call.bands_each, last_band + 1);
  }

  __device__ void filter() {
    float fetched[Band];
    float fetched_beyond[Band];
    for (int band = first_band_ - 1; band <= first_band_ + 1; ++band) {
      fetch(band, fetched, fetched_beyond);
      store(band, fetched, fetched_beyond);
    }
    __syncthreads();
    for (int band = first_band_ - 1; band <= end_band_; ++band) {
      // Two bands ahead: what takes the place of the band before this one.
      const bool more = band >= first_band_ && band + 2 <= end_band_;
      if (more) fetch(band + 2, fetched, fetched_beyond);
      if (band < first_band_) {
        meet<false, false, true>(band);
      } else if (band == end_band_) {
        meet<true, false, false>(band);
      } else {
        meet<true, true, true>(band);
      }
      __syncthreads();
      if (band > first_band_) finish(band - 1);
      if (band < first_band_) continue;
      __syncthreads();
      if (more) store(band + 2, fetched, fetched_beyond);
      __syncthreads();
    }
  }

 private:
  __device__ static int slot_of(int band) { return (band % slots + slots) % slots * Band; }

  // A thread's column of a band, and for the first threads one of those beyond the block's own.
  __device__ void fetch(int band, float (&pixels)[Band], float (&beyond)[Band]) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int y0 = band * Band;
    const bool held = call_.in.holds(left_, y0, left_ + columns, y0 + Band);
    if (held) {
      const float* from = &call_.in.planes.at(call_.plane, left_ + thread, y0);
#pragma unroll
      for (int row = 0; row < Band; ++row) pixels[row] = from[row * call_.in.planes.row_stride];
      if (thread >= Radius) return;
      from += threads;
#pragma unroll
      for (int row = 0; row < Band; ++row) beyond[row] = from[row * call_.in.planes.row_stride];
    } else {
#pragma unroll 1
      for (int row = 0; row < Band; row += 1) {
        const float pixel = call_.in.at(call_.plane, left_ + thread, y0 + row, call_.nothing);
        const float other =
            thread < Radius ? call_.in.at(call_.plane, left_ + threads + thread, y0 + row, call_.nothing) : 0;
        // Registers have no run-time index.
#pragma unroll
        for (int i = 0; i < Band; ++i) {
          pixels[i] = i == row ? pixel : pixels[i];
          beyond[i] = i == row ? other : beyond[i];
        }
      }
    }
  }

  // Into the place of the band three before, whose sums are started afresh.
  __device__ void store(int band, const float (&pixels)[Band], const float (&beyond)[Band]) {
    const int thread = static_cast<int>(threadIdx.x);
    const int slot = slot_of(band);
    store_column(pixels_ + thread * pitch + slot, pixels);
    if (thread < Radius) store_column(pixels_ + (threads + thread) * pitch + slot, beyond);
    const float4 none = make_float4(0, 0, 0, 0);
    for (int column = lane_; column < partners; column += lanes) {
#pragma unroll
      for (int row = 0; row < Band; row += 4) {
        *reinterpret_cast<float4*>(weights_ + column * pitch + slot + row) = none;
        *reinterpret_cast<float4*>(values_ + column * pitch + slot + row) = none;
      }
    }
  }

  __device__ void store_column(float* to, const float (&pixels)[Band]) const {
#pragma unroll
    for (int row = 0; row < Band; row += 4) {
      *reinterpret_cast<float4*>(to + row) =
          make_float4(pixels[row] * call_.scale, pixels[row + 1] * call_.scale, pixels[row + 2] * call_.scale,
                      pixels[row + 3] * call_.scale);
    }
  }

  // Pairs of this band's pixels with those of the band before, of itself and of the next one.
  template <bool Before, bool Itself, bool Next>
  __device__ void meet(int band) {
    const int this_slot = slot_of(band);
    const float* own = pixels_ + (warp_ * lanes + lane_) * pitch + this_slot;
    float centre[Band];
    float weights[Band];
    float values[Band];
#pragma unroll
    for (int k = 0; k < Band; ++k) {
      centre[k] = own[k];
      weights[k] = 1;  // a pixel and itself
      values[k] = centre[k];
    }
    // The column itself: downwards only.
    {
      float exponents[Radius + 1];
#pragma unroll
      for (int d = 0; d <= Radius; ++d) exponents[d] = call_.space[d];
      if constexpr (Itself) {
#pragma unroll
        for (int k = 0; k < Band; ++k) {
#pragma unroll
          for (int j = k + 1; j < Band && j <= k + Radius; ++j) {
            const float weight = weight_of(centre[k], centre[j], exponents[j - k]);
            weights[k] += weight;
            values[k] = fmaf(weight, centre[j], values[k]);
            weights[j] += weight;
            values[j] = fmaf(weight, centre[k], values[j]);
          }
        }
      }
      if constexpr (Next) {
        meet_rows<Band, Band + Radius, 1>(pixels_ + (warp_ * lanes + lane_) * pitch + slot_of(band + 1),
                                          lane_, slot_of(band + 1), centre, weights, values, exponents);
      }
    }
    for (int dx = 1; dx <= Radius; ++dx) {
      float exponents[Radius + 1];
      const float across = call_.space[dx];
#pragma unroll
      for (int d = 0; d <= Radius; ++d) exponents[d] = across + call_.space[d];
      __syncwarp();  // the column was another lane's a moment ago
      const float* column = pixels_ + (warp_ * lanes + lane_ + dx) * pitch;
      if constexpr (Before) {
        meet_rows<-Radius, 0, 0>(column + slot_of(band - 1), lane_ + dx, slot_of(band - 1), centre, weights,
                                 values, exponents);
      }
      if constexpr (Itself) {
        meet_rows<0, Band, 0>(column + this_slot, lane_ + dx, this_slot, centre, weights, values, exponents);
      }
      if constexpr (Next) {
        meet_rows<Band, Band + Radius, 0>(column + slot_of(band + 1), lane_ + dx, slot_of(band + 1), centre,
                                          weights, values, exponents);
      }
    }
    __syncwarp();
    if constexpr (Itself) {
      add(weights_ + lane_ * pitch + this_slot, weights);
      add(values_ + lane_ * pitch + this_slot, values);
    }
  }

  __device__ static void add(float* sums, const float (&more)[Band]) {
#pragma unroll
    for (int group = 0; group < Band / 4; ++group) {
      float4 four = reinterpret_cast<const float4*>(sums)[group];
      four.x += more[4 * group];
      four.y += more[4 * group + 1];
      four.z += more[4 * group + 2];
      four.w += more[4 * group + 3];
      reinterpret_cast<float4*>(sums)[group] = four;
    }
  }

  __device__ static float weight_of(float a, float b, float exponent) {
    const float difference = a - b;
    return cuda::exp2_fast(fmaf(-difference, difference, exponent));
  }

  // Partners in the rows [First, End) relative to the band, all of one band, whose pixels start at `pixels`
  // and whose sums are the warp's column `partner` from `slot` on. Below: partners above or beside do not
  // count.
  template <int First, int End, int Below>
  __device__ void meet_rows(const float* pixels, int partner, int slot, const float (&centre)[Band],
                            float (&weights)[Band], float (&values)[Band],
                            const float (&exponents)[Radius + 1]) {
    constexpr int origin = First < 0 ? -Band : First >= Band ? Band : 0;
    float4* const partner_weights = reinterpret_cast<float4*>(weights_ + partner * pitch + slot);
    float4* const partner_values = reinterpret_cast<float4*>(values_ + partner * pitch + slot);
#pragma unroll
    for (int group = 0; group < Band / 4; ++group) {
      if (origin + 4 * group + 3 < First || origin + 4 * group >= End) continue;
      const float4 four = reinterpret_cast<const float4*>(pixels)[group];
      float4 w4 = partner_weights[group];
      float4 v4 = partner_values[group];
      const float pixel[4] = {four.x, four.y, four.z, four.w};
      float w[4] = {w4.x, w4.y, w4.z, w4.w};
      float v[4] = {v4.x, v4.y, v4.z, v4.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int j = origin + 4 * group + i;
        if (j < First || j >= End) continue;
#pragma unroll
        for (int k = 0; k < Band; ++k) {
          const int dy = j > k ? j - k : k - j;
          if (dy > Radius || (Below != 0 && j <= k)) continue;
          const float weight = weight_of(pixel[i], centre[k], exponents[dy]);
          weights[k] += weight;
          values[k] = fmaf(weight, pixel[i], values[k]);
          w[i] += weight;
          v[i] = fmaf(weight, centre[k], v[i]);
        }
      }
      partner_weights[group] = make_float4(w[0], w[1], w[2], w[3]);
      partner_values[group] = make_float4(v[0], v[1], v[2], v[3]);
    }
  }

  __device__ void finish(int band) {
    const int slot = slot_of(band);
    const int column = warp_ * lanes + lane_;
    const int x = left_ + column;
    const Rect& area = call_.out.rect;
    if (column < Radius || x < area.x0 || x >= area.x1) return;
    const float* left = weights_ - 2 * partners * pitch;  // of the warp to the left
    const bool takes = lane_ < Radius && warp_ > 0;
#pragma unroll
    for (int row = 0; row < Band; ++row) {
      const int y = band * Band + row;
      if (y < area.y0 || y >= area.y1) continue;
      float weights = weights_[lane_ * pitch + slot + row];
      float values = values_[lane_ * pitch + slot + row];
      if (takes) {
        weights += left[(lanes + lane_) * pitch + slot + row];
        values += left[(partners + lanes + lane_) * pitch + slot + row];
      }
      call_.out.at(call_.plane, x, y) = values / weights * call_.unscale;
    }
  }

  const SymmetricCall& call_;
  int lane_;
  int warp_;
  float* pixels_;   // [column][slot, row]
  float* weights_;  // of this warp: [partner column][slot, row]
  float* values_;
  int left_;
  int first_band_;
  int end_band_;
};

template <int Radius, int Band, int Warps>
__global__ void __launch_bounds__(lanes* Warps) symmetric_kernel(const __grid_constant__ SymmetricCall call) {
  extern __shared__ float shared[];
  SymmetricBlock<Radius, Band, Warps>(call, shared).filter();
}

template <int Radius, int Band, int Warps>
void launch_for(SymmetricCall of_call, const DeviceStageCall& call) {
  using Block = SymmetricBlock<Radius, Band, Warps>;
  constexpr std::size_t shared = Block::floats * sizeof(float);
  const auto kernel = symmetric_kernel<Radius, Band, Warps>;
  // Some times as many blocks as the GPU holds at once, so that none of it waits long for the last few.
  constexpr int rounds = 6;
  constexpr int least_bands = 2;  // of a block, which meets half a band more on either side
  static const int resident = [=] {
    cuda::allow_shared(kernel, shared);
    int device = 0;
    int multiprocessors = 0;
    int each = 0;
    cuda::check(cudaGetDevice(&device), "asking for the GPU");
    cuda::check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
                "asking for the GPU");
    cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, Block::threads, shared),
                "asking for the occupancy");
    return multiprocessors * std::max(each, 1);
  }();
  const Rect& area = call.out.rect;
  const int across = (area.x1 - 1) / Block::own_columns - area.x0 / Block::own_columns + 1;
  const int bands = (area.y1 - 1) / Band - area.y0 / Band + 1;
  const int down = std::clamp(rounds * resident / across, 1, std::max(1, bands / least_bands));
  of_call.bands_each = (bands + down - 1) / down;
  const dim3 grid(static_cast<unsigned>(across),
                  static_cast<unsigned>((bands + of_call.bands_each - 1) / of_call.bands_each));
  cuda::launch(kernel, grid, dim3(Block::threads), shared, call.stream, of_call);
}

}  // namespace

void launch_symmetric_bilateral(const cuda::WindowWeights& weights, Border border, int plane,
                                const DeviceStageCall& call) {
  SymmetricCall of_call{.in = {call.in[0], call.image, border},
                        .out = call.out,
                        .plane = plane,
                        .bands_each = 0,
                        .scale = weights.scale,
                        .unscale = weights.unscale,
                        .nothing = weights.nothing,
                        .space = {}};
  std::copy_n(weights.space, weights.reach_x + 1, of_call.space);
  switch (weights.reach_x) {
    case 4:
      return launch_for<4, 8, 4>(of_call, call);
    case 5:
      return launch_for<5, 8, 4>(of_call, call);
    case 6:
      return launch_for<6, 8, 4>(of_call, call);
    case 7:
      return launch_for<7, 8, 4>(of_call, call);
    case 8:
      return launch_for<8, 8, 4>(of_call, call);
    case 9:
      return launch_for<9, 16, 4>(of_call, call);
    case 10:
      return launch_for<10, 16, 4>(of_call, call);
    case 11:
      return launch_for<11, 16, 4>(of_call, call);
    case 12:
      return launch_for<12, 16, 4>(of_call, call);
    case 13:
      return launch_for<13, 16, 4>(of_call, call);
    case 14:
      return launch_for<14, 16, 4>(of_call, call);
    default:
      return launch_for<15, 16, 4>(of_call, call);
  }
}

}  // namespace ungrain
