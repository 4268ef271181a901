// w(p,q) = w(q,p): a pair of pixels needs one exponential. A warp owns 32 columns and goes down the image in
// bands of `Band` rows. A lane holds its column's pixels of the band and their sums in registers, and is
// compared with every pixel of the window to its right (and, in its own column, below). The partner's share
// is added in shared memory, to sums that belong to the warp alone. A band is finished when the band below it
// has been compared: then the warp's own sums are added to those that the warp to the left has for the
// partners of its last columns.
//
// Bands start at multiples of their height and blocks at multiples of their width from the image's origin, so
// that a pixel's sums are taken in one order in every region of the image.
#include "methods/bilateral/symmetric.h"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.cuh"
#include "methods/bilateral/tuning.h"

namespace ungrain {
namespace {

using cuda::BorderedPlane;

constexpr int lanes = 32;

struct SymmetricCall {
  BorderedPlane in;
  Planes out;
  int channel;
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
  static constexpr int around = (Radius + Band - 1) / Band;  // bands above and below that are compared
  static constexpr int slots = 2 * around + 1;               // bands held
  // The rows of a column are adjacent and read four at a time; an odd number of fours avoids bank conflicts.
  static constexpr int pitch = slots * Band + (slots * Band / 4 % 2 == 0 ? 4 : 8);
  static constexpr int pixels = columns * pitch;
  static constexpr int sums = partners * pitch;  // of a warp: its weights; then as many values
  static constexpr int floats = pixels + Warps * 2 * sums;

  __device__ SymmetricBlock(const SymmetricCall& call, float* shared)
      : call_(call),
        lane_(static_cast<int>(threadIdx.x) % lanes),
        warp_(static_cast<int>(threadIdx.x) / lanes),
        pixels_(shared),
        sums_(shared + pixels + warp_ * 2 * sums) {
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
    for (int band = first_band_ - around; band <= first_band_ + around; ++band) {
      fetch(band, fetched, fetched_beyond);
      store(band, fetched, fetched_beyond);
    }
    __syncthreads();
    for (int band = first_band_ - around; band < end_band_ + around; ++band) {
      // The band that replaces the first one held.
      const bool more = band >= first_band_ && band + around + 1 < end_band_ + around;
      if (more) fetch(band + around + 1, fetched, fetched_beyond);
      finishes(band) ? meet<true>(band) : meet<false>(band);
      __syncthreads();
      if (band - around >= first_band_) finish(band - around);
      if (band < first_band_) continue;
      __syncthreads();
      if (more) store(band + around + 1, fetched, fetched_beyond);
      __syncthreads();
    }
  }

 private:
  __device__ static int slot_of(int band) { return (band % slots + slots) % slots * Band; }
  __device__ bool finishes(int band) const { return band >= first_band_ && band < end_band_; }

  // A thread's column of a band, and for the first threads one of the columns beyond the block's own.
  __device__ void fetch(int band, float (&pixels)[Band], float (&beyond)[Band]) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int y0 = band * Band;
    if (call_.in.holds(left_, y0, left_ + columns, y0 + Band)) {
      const float* from = &call_.in.planes.at(call_.channel, left_ + thread, y0);
#pragma unroll
      for (int row = 0; row < Band; ++row) pixels[row] = from[row * call_.in.planes.row_stride];
      if (thread >= Radius) return;
      from += threads;
#pragma unroll
      for (int row = 0; row < Band; ++row) beyond[row] = from[row * call_.in.planes.row_stride];
    } else {
#pragma unroll 1
      for (int row = 0; row < Band; row += 1) {
        const float pixel = call_.in.at(call_.channel, left_ + thread, y0 + row, call_.nothing);
        const float other =
            thread < Radius ? call_.in.at(call_.channel, left_ + threads + thread, y0 + row, call_.nothing)
                            : 0;
        // Registers cannot be indexed at run time.
#pragma unroll
        for (int i = 0; i < Band; ++i) {
          pixels[i] = i == row ? pixel : pixels[i];
          beyond[i] = i == row ? other : beyond[i];
        }
      }
    }
  }

  // Replaces the first band held and resets its sums.
  __device__ void store(int band, const float (&pixels)[Band], const float (&beyond)[Band]) {
    const int thread = static_cast<int>(threadIdx.x);
    const int slot = slot_of(band);
    store_column(pixels_ + thread * pitch + slot, pixels);
    if (thread < Radius) store_column(pixels_ + (threads + thread) * pitch + slot, beyond);
    const float4 none = make_float4(0, 0, 0, 0);
    for (int column = lane_; column < partners; column += lanes) {
#pragma unroll
      for (int row = 0; row < Band; row += 4) {
        *reinterpret_cast<float4*>(sums_ + column * pitch + slot + row) = none;
        *reinterpret_cast<float4*>(sums_ + sums + column * pitch + slot + row) = none;
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

  // A lane's column of a band: pixels and sums.
  struct LaneColumn {
    float centre[Band];
    float weights[Band];
    float values[Band];

    __device__ float weight(int k, float pixel, float exponent) const {
      const float difference = pixel - centre[k];
      return cuda::exp2_fast(fmaf(-difference, difference, exponent));
    }
    __device__ void add(int k, float pixel, float weight) {
      weights[k] += weight;
      values[k] = fmaf(weight, pixel, values[k]);
    }
  };

  // Compares this band's pixels with those of the bands around it and with each other, where the block
  // finishes one of the two. Finished: the block finishes the band itself.
  template <bool Finished>
  __device__ void meet(int band) {
    const int this_slot = slot_of(band);
    const int own_column = warp_ * lanes + lane_;
    LaneColumn own;
#pragma unroll
    for (int k = 0; k < Band; ++k) {
      own.weights[k] = 1;  // a pixel and itself
      own.centre[k] = pixels_[own_column * pitch + this_slot + k];
      own.values[k] = own.centre[k];
    }
    // The column itself: downwards only.
    {
      float exponents[Radius + 1];
#pragma unroll
      for (int d = 0; d <= Radius; ++d) exponents[d] = call_.space[d];
      if constexpr (Finished) meet_itself(own, exponents);
      meet_bands<Finished, 1, true>(band, 0, own, exponents);
    }
    for (int dx = 1; dx <= Radius; ++dx) {
      float exponents[Radius + 1];
      const float across = call_.space[dx];
#pragma unroll
      for (int d = 0; d <= Radius; ++d) exponents[d] = across + call_.space[d];
      __syncwarp();  // another lane had this column before
      meet_bands<Finished, -around, false>(band, dx, own, exponents);
    }
    __syncwarp();
    if constexpr (Finished) {
      add(sums_ + lane_ * pitch + this_slot, own.weights);
      add(sums_ + sums + lane_ * pitch + this_slot, own.values);
    }
  }

  __device__ static void meet_itself(LaneColumn& own, const float (&exponents)[Radius + 1]) {
#pragma unroll
    for (int k = 0; k < Band; ++k) {
#pragma unroll
      for (int j = k + 1; j < Band && j <= k + Radius; ++j) {
        const float weight = own.weight(k, own.centre[j], exponents[j - k]);
        own.add(k, own.centre[j], weight);
        own.add(j, own.centre[k], weight);
      }
    }
  }

  // Partners in the band `First` bands below and in those further down.
  template <bool Finished, int First, bool Below>
  __device__ void meet_bands(int band, int dx, LaneColumn& own, const float (&exponents)[Radius + 1]) {
    if (Finished || finishes(band + First)) {
      meet_rows<First, Below>(dx, slot_of(band + First), own, exponents);
    }
    if constexpr (First < around) meet_bands<Finished, First + 1, Below>(band, dx, own, exponents);
  }

  __device__ static void add(float* sums_of_column, const float (&more)[Band]) {
#pragma unroll
    for (int group = 0; group < Band / 4; ++group) {
      float4 four = reinterpret_cast<const float4*>(sums_of_column)[group];
      four.x += more[4 * group];
      four.y += more[4 * group + 1];
      four.z += more[4 * group + 2];
      four.w += more[4 * group + 3];
      reinterpret_cast<float4*>(sums_of_column)[group] = four;
    }
  }

  // Partners in the column dx to the right and the band `Bands` below, whose rows start at `slot`. Below:
  // partners above or beside do not count.
  template <int Bands, bool Below>
  __device__ void meet_rows(int dx, int slot, LaneColumn& own, const float (&exponents)[Radius + 1]) {
    constexpr int origin = Bands * Band;
    const float* const pixels = pixels_ + (warp_ * lanes + lane_ + dx) * pitch + slot;
    float* const partner_sums = sums_ + (lane_ + dx) * pitch + slot;
#pragma unroll
    for (int group = 0; group < Band / 4; ++group) {
      if (origin + 4 * group + 3 < -Radius || origin + 4 * group >= Band + Radius) continue;
      float pixel[4];
      float partner_weights[4];
      float partner_values[4];
      read_four(pixels + 4 * group, pixel);
      read_four(partner_sums + 4 * group, partner_weights);
      read_four(partner_sums + sums + 4 * group, partner_values);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int j = origin + 4 * group + i;
#pragma unroll
        for (int k = 0; k < Band; ++k) {
          const int dy = j > k ? j - k : k - j;
          if (dy > Radius || (Below && j <= k)) continue;
          const float weight = own.weight(k, pixel[i], exponents[dy]);
          own.add(k, pixel[i], weight);
          partner_weights[i] += weight;
          partner_values[i] = fmaf(weight, own.centre[k], partner_values[i]);
        }
      }
      write_four(partner_sums + 4 * group, partner_weights);
      write_four(partner_sums + sums + 4 * group, partner_values);
    }
  }

  __device__ static void read_four(const float* from, float (&to)[4]) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
  }
  __device__ static void write_four(float* to, const float (&from)[4]) {
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  }

  __device__ void finish(int band) {
    const int slot = slot_of(band);
    const int column = warp_ * lanes + lane_;
    const int x = left_ + column;
    const Rect& area = call_.out.rect;
    if (column < Radius || x < area.x0 || x >= area.x1) return;
    const float* left = sums_ - 2 * sums + lanes * pitch;  // of the warp to the left, beyond its own
    const bool takes = lane_ < Radius && warp_ > 0;
#pragma unroll
    for (int row = 0; row < Band; ++row) {
      const int y = band * Band + row;
      if (y < area.y0 || y >= area.y1) continue;
      const int at = lane_ * pitch + slot + row;
      float weights = sums_[at];
      float values = sums_[sums + at];
      if (takes) {
        weights += left[at];
        values += left[sums + at];
      }
      call_.out.at(call_.channel, x, y) = values / weights * call_.unscale;
    }
  }

  const SymmetricCall& call_;
  int lane_;
  int warp_;
  float* pixels_;  // [column][slot, row]
  float* sums_;    // of this warp: [weights, values][partner column][slot, row]
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
  constexpr int least_bands = 2;  // of a block, which is compared with half a band more on either side
  const int down =
      std::clamp(tuning::symmetric_rounds * resident / across, 1, std::max(1, bands / least_bands));
  of_call.bands_each = (bands + down - 1) / down;
  const dim3 grid(static_cast<unsigned>(across),
                  static_cast<unsigned>((bands + of_call.bands_each - 1) / of_call.bands_each));
  cuda::launch(kernel, grid, dim3(Block::threads), shared, call.stream, of_call);
}

}  // namespace

void launch_symmetric_bilateral(const cuda::WindowWeights& weights, Border border, int channel,
                                const DeviceStageCall& call) {
  SymmetricCall of_call{.in = {call.in[0], call.image, border},
                        .out = call.out,
                        .channel = channel,
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
      return launch_for<9, 12, 4>(of_call, call);
    default:
      return launch_for<10, 12, 4>(of_call, call);
  }
}

}  // namespace ungrain
