// The stages of ridge on a GPU. A pass, for each plane: find groups, sum what is known of every patch,
// combine the groups' patches, turn the sums into pixels.
#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "core/border.h"
#include "core/channel_noise.h"
#include "core/opponent.h"
#include "core/scratch.h"
#include "cuda/launch.cuh"
#include "groups/tile_sums.h"
#include "methods/ridge/cuda_combine.h"
#include "methods/ridge/ridge.h"

namespace ungrain {
namespace {

using cuda::blocks_for;
using cuda::GroupMatchCall;
using cuda::ReferenceGrid;
using cuda::RidgeCombineCall;
using cuda::RidgeSums;

constexpr int block_columns = 32;
constexpr int block_rows = 8;
constexpr int most_patch = 8;

dim3 blocks_of(const Rect& rect) {
  return cuda::tall_grid(blocks_for(rect.width(), block_columns), blocks_for(rect.height(), block_rows));
}
const dim3 block_of_threads(block_columns, block_rows);

// A thread's pixel of a rectangle.
struct Pixel {
  int x;
  int y;
  bool inside;

  __device__ explicit Pixel(const Rect& rect) {
    x = rect.x0 + static_cast<int>(blockIdx.x) * block_columns + static_cast<int>(threadIdx.x);
    y = rect.y0 + cuda::block_row() * block_rows + static_cast<int>(threadIdx.y);
    inside = x < rect.x1 && y < rect.y1;
  }
};

struct OpponentWeights {
  float values[3][3];
};

OpponentWeights opponent_weights() {
  OpponentWeights weights{};
  for (int plane = 0; plane < 3; ++plane) {
    for (int c = 0; c < 3; ++c) weights.values[plane][c] = static_cast<float>(opponent_matrix[plane][c]);
  }
  return weights;
}

// ---- the image and the pilot, as the passes read them

struct StartCall {
  ConstPlanes noisy;
  ConstPlanes pilot;
  Planes out;
  OpponentWeights weights;
  bool opponent;
  float start;
};

// Rounds as the CPU rounds, because groups depend on it.
__global__ void start_kernel(const __grid_constant__ StartCall call) {
  const Pixel at(call.out.rect);
  if (!at.inside) return;
  const auto value = [&](const ConstPlanes& planes, int plane) {
    if (!call.opponent) return planes.at(plane, at.x, at.y);
    float sum = 0;
    for (int c = 0; c < 3; ++c) {
      const float part = __fmul_rn(call.weights.values[plane][c], planes.at(c, at.x, at.y));
      sum = c == 0 ? part : __fadd_rn(sum, part);
    }
    return sum;
  };
  for (int plane = 0; 2 * plane < call.out.count; ++plane) {
    const float noisy = value(call.noisy, plane);
    const float pilot = value(call.pilot, plane);
    call.out.at(guide_plane(plane), at.x, at.y) = pilot;
    call.out.at(partly_plane(plane), at.x, at.y) =
        call.start == 1 ? noisy : __fadd_rn(__fmul_rn(call.start, noisy), __fmul_rn(1 - call.start, pilot));
  }
}

// ---- what is compared: an image that is larger by a margin of mirrored pixels

__global__ void compared_kernel(const ConstPlanes from, const Extent image, const int margin,
                                const Planes out) {
  const Pixel at(out.rect);
  if (!at.inside) return;
  out.at(0, at.x, at.y) = from.at(0, border_index(Border::symmetric, at.x - margin, image.width),
                                  border_index(Border::symmetric, at.y - margin, image.height));
}

// ---- axes shorter than a patch, continued

__global__ void pad_kernel(const ConstPlanes from, const Extent image, const Planes out) {
  const Pixel at(out.rect);
  if (!at.inside) return;
  for (int plane = 0; plane < out.count; ++plane) {
    out.at(plane, at.x, at.y) = from.at(plane, border_index(Border::symmetric, at.x, image.width),
                                        border_index(Border::symmetric, at.y, image.height));
  }
}

// ---- sums over the patch that begins at each pixel of a rectangle

struct PlainPixels {
  ConstPlanes plane;
  using Value = float;
  __device__ float operator()(int x, int y) const { return plane.at(0, x, y); }
};

// The noise that was removed, and its square.
struct RemovedPixels {
  ConstPlanes started;
  ConstPlanes pilot;
  ConstPlanes partly;
  float start;
  using Value = float2;
  __device__ float2 operator()(int x, int y) const {
    float noisy = started.at(0, x, y);
    if (start != 1) noisy = pilot.at(0, x, y) + (noisy - pilot.at(0, x, y)) / start;
    const float removed = noisy - partly.at(0, x, y);
    return make_float2(removed, removed * removed);
  }
};

__device__ float added(float a, float b) { return a + b; }
__device__ float2 added(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }

// Patches that exceed the rectangle have no sum.
template <class Pixels>
__global__ void __launch_bounds__(block_columns* block_rows)
    patch_sums_kernel(const Pixels pixels, const Rect rect, const int patch,
                      typename Pixels::Value* const sums) {
  using Value = typename Pixels::Value;
  constexpr int columns = block_columns + most_patch - 1;
  constexpr int rows = block_rows + most_patch - 1;
  __shared__ Value values[rows][columns];
  __shared__ Value along_rows[rows][block_columns];
  const auto column = static_cast<int>(threadIdx.x);
  const auto row = static_cast<int>(threadIdx.y);
  const Pixel at(rect);
  for (int r = row; r < block_rows + patch - 1; r += block_rows) {
    for (int c = column; c < block_columns + patch - 1; c += block_columns)
      values[r][c] = pixels(min(at.x - column + c, rect.x1 - 1), min(at.y - row + r, rect.y1 - 1));
  }
  __syncthreads();
  for (int r = row; r < block_rows + patch - 1; r += block_rows) {
    Value sum = values[r][column];
    for (int i = 1; i < patch; ++i) sum = added(sum, values[r][column + i]);
    along_rows[r][column] = sum;
  }
  __syncthreads();
  if (!at.inside) return;
  Value sum = along_rows[row][column];
  for (int i = 1; i < patch; ++i) sum = added(sum, along_rows[row + i][column]);
  sums[RidgeSums::index(rect, at.x, at.y)] = sum;
}

// ---- from sums to pixels

struct FinishCall {
  RidgeSums sums;
  ConstPlanes partly;  // before the pass
  Planes out;          // guide and partly denoised, or the latter alone
};

__global__ void __launch_bounds__(block_columns* block_rows)
    finish_kernel(const __grid_constant__ FinishCall call) {
  constexpr int columns = block_columns + most_patch - 1;
  constexpr int rows = block_rows + most_patch - 1;
  __shared__ unsigned long long weights[rows][columns];
  __shared__ unsigned long long along_rows[rows][block_columns];
  const RidgeSums& sums = call.sums;
  const int before = sums.patch - 1;
  const Rect weight_rect = sums.weight_rect();
  const auto column = static_cast<int>(threadIdx.x);
  const auto row = static_cast<int>(threadIdx.y);
  const Pixel at(sums.rect);
  for (int r = row; r < block_rows + before; r += block_rows) {
    for (int c = column; c < block_columns + before; c += block_columns) {
      const int x = at.x - column - before + c;
      const int y = at.y - row - before + r;
      weights[r][c] =
          x < weight_rect.x1 && y < weight_rect.y1 ? sums.weights[RidgeSums::index(weight_rect, x, y)] : 0;
    }
  }
  __syncthreads();
  for (int r = row; r < block_rows + before; r += block_rows) {
    unsigned long long sum = 0;
    for (int i = 0; i <= before; ++i) sum += weights[r][column + i];
    along_rows[r][column] = sum;
  }
  __syncthreads();
  if (!at.inside) return;
  unsigned long long weight = 0;
  for (int i = 0; i <= before; ++i) weight += along_rows[row + i][column];

  const std::size_t place = RidgeSums::index(sums.rect, at.x, at.y);
  const std::size_t pixels = static_cast<std::size_t>(sums.rect.width()) * sums.rect.height();
  const auto both = static_cast<long long>(sums.values[place]);
  const auto lower = static_cast<long long>(static_cast<int>(both & 0xFFFFFFFFLL));
  const long long of_guide = ((both - lower) >> 32) + static_cast<long long>(sums.large[place]);
  const long long of_partly = lower + static_cast<long long>(sums.large[pixels + place]);
  const float unit = sums.weight_steps / sums.value_steps / static_cast<float>(weight);
  const float partly = call.partly.at(0, at.x, at.y);
  const bool last = call.out.count == 1;
  if (!last) call.out.at(0, at.x, at.y) = fmaf(static_cast<float>(of_guide), unit, partly);
  call.out.at(last ? 0 : 1, at.x, at.y) = fmaf(static_cast<float>(of_partly), unit, partly);
}

__global__ void rgb_kernel(const Planes planes, const OpponentWeights weights) {
  const Pixel at(planes.rect);
  if (!at.inside) return;
  float from[3];
  for (int plane = 0; plane < 3; ++plane) from[plane] = planes.at(plane, at.x, at.y);
  for (int c = 0; c < 3; ++c) {
    float sum = 0;
    for (int plane = 0; plane < 3; ++plane) sum = fmaf(weights.values[plane][c], from[plane], sum);
    planes.at(c, at.x, at.y) = sum;
  }
}

constexpr std::size_t scratch_alignment = 256;  // the runtime's alignment of allocations

class CudaPass {
 public:
  CudaPass(const RidgeSettings& settings, int pass)
      : settings_(settings),
        pass_(pass),
        last_(pass + 1 == settings.passes),
        image_{settings.spec.width, settings.spec.height},
        padded_{std::max(image_.width, settings.patch), std::max(image_.height, settings.patch)},
        reach_(settings.search / 2) {
    const GridShift shift = grid_shift(settings, pass);
    const auto axis = [&](int length, int by) {
      return ReferenceAxis{length - settings.patch, settings.spacing,
                           (settings.spacing - by) % settings.spacing};
    };
    across_ = axis(padded_.width, shift.x);
    down_ = axis(padded_.height, shift.y);
    for (int plane = 0; plane < settings.planes() && by_model(); ++plane) append_levels(plane);
  }
  CudaPass(const CudaPass&) = delete;
  CudaPass& operator=(const CudaPass&) = delete;

  // Floats for a call of so many rows, at any width.
  std::size_t scratch(int rows) const {
    const Rect out{0, 0, image_.width, std::min(rows, image_.height)};
    const int around = 2 * ridge_reach(settings_);
    const Rect area{0, 0, padded_.width,
                    std::max(settings_.patch, std::min(image_.height, out.height() + around))};
    const int references =
        std::min(down_.count(), (out.height() + 2 * (reach_ + settings_.patch)) / settings_.spacing + 4);
    return Memory(*this, nullptr, out, area, grid_at(0, across_.count(), 0, references)).floats;
  }

  void launch(const DeviceStageCall& call) const {
    const Rect& out = call.out.rect;
    const int before = reach_ + settings_.patch - 1;
    const ReferenceGrid grid =
        grid_at(across_.index_from(out.x0 - before), across_.index_after(out.x1 - 1 + reach_),
                down_.index_from(out.y0 - before), down_.index_after(out.y1 - 1 + reach_));
    // Other stages may need more rows than this one.
    const int around = ridge_reach(settings_);
    const Rect needed{std::max(0, out.x0 - around), std::max(0, out.y0 - around),
                      std::min(image_.width, out.x1 + around), std::min(image_.height, out.y1 + around)};
    const Rect area = padded_rect(needed);
    const Memory memory(*this, call.scratch.data(), out, area, grid);
    const ConstPlanes first = padded(cropped(call.in[0], needed), memory.first, call.stream);
    const ConstPlanes now = padded(cropped(call.in[1], needed), memory.now, call.stream);
    const cudaStream_t stream = cuda::handle(call.stream);
    if (by_model()) upload_levels(memory, stream);

    RidgeCombineCall combine;
    combine.grid = grid;
    combine.patch = settings_.patch;
    combine.count = settings_.group;
    combine.offsets = memory.offsets;
    combine.found = memory.found;
    combine.kept = static_cast<float>(kept_by(settings_, pass_));
    combine.least_left = static_cast<float>(least_left);
    combine.noise_factor = static_cast<float>(settings_.noise_factor);
    combine.least_noise = static_cast<float>(least_noise_of_energy);
    combine.least_noise_share = static_cast<float>(least_noise_share);
    combine.last = last_;
    for (int plane = 0; plane < settings_.planes(); ++plane) {
      const double sigma = settings_.sigma[plane];
      combine.guide = one_of(now, guide_plane(plane));
      combine.partly = one_of(now, partly_plane(plane));
      combine.variance = static_cast<float>(sigma * sigma);
      if (settings_.finds_groups(plane)) find_groups(combine.partly, plane, grid, memory, call.stream);
      if (!starts_noisy()) {
        sum_patches(RemovedPixels{one_of(first, partly_plane(plane)), one_of(first, guide_plane(plane)),
                                  combine.partly, static_cast<float>(settings_.start)},
                    area, memory.removed, call.stream);
        combine.removed = memory.removed;
      }
      if (has_map()) {
        sum_patches(PlainPixels{upload_variances(memory.variances, plane, area, stream)}, area,
                    memory.noise_sums, call.stream);
        combine.variances = memory.noise_sums;
      }
      if (by_model()) {
        if (settings_.finds_groups(plane))
          sum_patches(PlainPixels{combine.guide}, area, memory.noise_sums, call.stream);
        combine.level_sums = memory.noise_sums;
        combine.levels = {memory.table + levels_[plane].levels, memory.table + levels_[plane].variances,
                          levels_[plane].count};
      }
      combine.sums = sums_of(memory, out, sigma);
      cuda::check(cudaMemsetAsync(memory.sums, 0,
                                  RidgeSums::words(out.width(), out.height(), settings_.patch) *
                                      sizeof(unsigned long long),
                                  stream),
                  "clearing memory");
      cuda::launch_ridge_combine(combine, call.stream);
      Planes made = call.out;
      made.data += (last_ ? plane : guide_plane(plane)) * made.plane_stride;
      made.count = last_ ? 1 : 2;
      cuda::launch(finish_kernel, blocks_of(out), block_of_threads, 0, call.stream,
                   FinishCall{combine.sums, combine.partly, made});
    }
    if (last_ && settings_.opponent)
      cuda::launch(rgb_kernel, blocks_of(out), block_of_threads, 0, call.stream, call.out,
                   opponent_weights());
  }

 private:
  // The scratch memory of a call, or its size.
  struct Memory {
    Memory(const CudaPass& pass, float* start, const Rect& out, const Rect& area, const ReferenceGrid& grid) {
      ScratchPieces pieces(start, scratch_alignment);
      const RidgeSettings& settings = pass.settings_;
      const std::size_t pixels = static_cast<std::size_t>(area.width()) * area.height();
      const std::size_t planes = pass.is_padded() ? 2 * static_cast<std::size_t>(settings.planes()) : 0;
      const auto references = static_cast<std::size_t>(grid.references());
      const Rect compared_area = pass.compared_rect(area);
      sums = pieces.take<unsigned long long>(RidgeSums::words(out.width(), out.height(), settings.patch));
      first = pieces.take<float>(planes * pixels);
      now = pieces.take<float>(planes * pixels);
      compared = pieces.take<float>(static_cast<std::size_t>(compared_area.width()) * compared_area.height());
      removed = pieces.take<float2>(pass.starts_noisy() ? 0 : pixels);
      variances = pieces.take<float>(pass.has_map() ? pixels : 0);
      noise_sums = pieces.take<float>(pass.has_map() || pass.by_model() ? pixels : 0);
      table = pieces.take<float>(pass.table_.size());
      offsets = pieces.take<std::int8_t>(2 * references * static_cast<std::size_t>(settings.group));
      found = pieces.take<std::uint8_t>(references);
      const GroupMatchCall call =
          pass.match_call(0, {nullptr, compared_area, compared_area.width(), 0, 1}, grid);
      match = pieces.take<float>(cuda::group_match_scratch(call));
      floats = pieces.floats();
    }

    unsigned long long* sums = nullptr;
    float* first = nullptr;  // padded
    float* now = nullptr;
    float* compared = nullptr;
    float2* removed = nullptr;
    float* variances = nullptr;
    float* noise_sums = nullptr;
    float* table = nullptr;
    std::int8_t* offsets = nullptr;
    std::uint8_t* found = nullptr;
    float* match = nullptr;
    std::size_t floats = 0;
  };

  bool by_model() const { return !settings_.model.empty(); }
  bool has_map() const { return settings_.sigma_map.data != nullptr; }
  bool starts_noisy() const { return pass_ == 0 && settings_.start == 1; }
  bool is_padded() const { return padded_.width != image_.width || padded_.height != image_.height; }

  ReferenceGrid grid_at(int first_i, int end_i, int first_j, int end_j) const {
    return {.spacing = settings_.spacing,
            .last_x = across_.last,
            .last_y = down_.last,
            .first_i = first_i,
            .first_j = first_j,
            .count_i = end_i - first_i,
            .count_j = end_j - first_j,
            .lead_x = across_.lead,
            .lead_y = down_.lead};
  }

  static ConstPlanes cropped(ConstPlanes planes, const Rect& rect) {
    planes.data = &planes.at(0, rect.x0, rect.y0);
    planes.rect = rect;
    return planes;
  }
  static ConstPlanes one_of(ConstPlanes planes, int plane) {
    planes.data += plane * planes.plane_stride;
    planes.count = 1;
    return planes;
  }

  Rect padded_rect(const Rect& rect) const {
    Rect whole = rect;
    if (padded_.width != image_.width) whole.x0 = 0, whole.x1 = padded_.width;
    if (padded_.height != image_.height) whole.y0 = 0, whole.y1 = padded_.height;
    return whole;
  }
  ConstPlanes padded(const ConstPlanes& planes, float* to, Stream stream) const {
    if (!is_padded()) return planes;
    const Rect rect = padded_rect(planes.rect);
    const Planes made{to, rect, rect.width(), static_cast<std::ptrdiff_t>(rect.width()) * rect.height(),
                      2 * settings_.planes()};
    cuda::launch(pad_kernel, blocks_of(rect), block_of_threads, 0, stream, planes, image_, made);
    return made;
  }

  // What is compared lies at the places of the patches, in an image that is larger by a margin on each side.
  Rect compared_rect(const Rect& area) const {
    const int margin = compared_margin(settings_);
    const int more = compared_side - settings_.patch;
    const auto begin = [&](int at) { return at <= 0 ? 0 : at + margin; };
    const auto end = [&](int at, int length) { return at >= length ? length + more : at + margin; };
    return {begin(area.x0), begin(area.y0), end(area.x1, padded_.width), end(area.y1, padded_.height)};
  }

  GroupMatchCall match_call(int plane, const ConstPlanes& compared, const ReferenceGrid& grid) const {
    const int more = compared_side - settings_.patch;
    const MatchScale usual = match_scale(settings_, plane);
    const MatchScale beyond = match_scale_beyond(settings_, plane);
    GroupMatchCall match;
    match.plane = compared;
    match.image = {padded_.width + more, padded_.height + more};
    match.grid = grid;
    match.patch = compared_side;
    match.search = settings_.search;
    match.count = settings_.group;
    match.max_distance = INFINITY;
    match.middle = usual.middle;
    match.scale = usual.inverse_step;
    match.integers = {usual.most, beyond.inverse_step, beyond.most};
    return match;
  }

  void find_groups(const ConstPlanes& partly, int plane, const ReferenceGrid& grid, const Memory& memory,
                   Stream stream) const {
    const Rect rect = compared_rect(partly.rect);
    const Planes compared{memory.compared, rect, rect.width(), 0, 1};
    cuda::launch(compared_kernel, blocks_of(rect), block_of_threads, 0, stream, partly, padded_,
                 compared_margin(settings_), compared);
    GroupMatchCall match = match_call(plane, compared, grid);
    match.offsets = memory.offsets;
    match.found = memory.found;
    match.scratch = memory.match;
    cuda::launch_group_match(match, stream);
  }

  template <class Pixels>
  void sum_patches(const Pixels& pixels, const Rect& area, typename Pixels::Value* to, Stream stream) const {
    cuda::launch(patch_sums_kernel<Pixels>, blocks_of(area), block_of_threads, 0, stream, pixels, area,
                 settings_.patch, to);
  }

  // Appends to the uploaded table: a plane's levels, and its variances there.
  void append_levels(int plane) {
    const PlaneNoise& noise = settings_.model[plane];
    Levels of;
    of.count = static_cast<int>(noise.levels.size());
    of.levels = static_cast<int>(table_.size());
    for (const double level : noise.levels) table_.push_back(static_cast<float>(level));
    of.variances = static_cast<int>(table_.size());
    for (const double level : noise.levels)
      table_.push_back(static_cast<float>(variance_at(settings_, plane, level)));
    levels_.push_back(of);
  }

  // Page-locked, so that copies do not block; allocated only when a GPU is known to be present.
  void upload_levels(const Memory& memory, cudaStream_t stream) const {
    const std::size_t bytes = table_.size() * sizeof(float);
    std::call_once(pinned_once_, [&] {
      pinned_ = cuda::PinnedBuffer(bytes);
      std::copy(table_.begin(), table_.end(), reinterpret_cast<float*>(pinned_.data()));
    });
    cuda::check(cudaMemcpyAsync(memory.table, pinned_.data(), bytes, cudaMemcpyHostToDevice, stream),
                "uploading a table");
  }

  // The map lies in host memory. Uploads the rows that the call needs, as variances of a working plane.
  ConstPlanes upload_variances(float* to, int plane, const Rect& area, cudaStream_t stream) const {
    std::vector<float> variances(static_cast<std::size_t>(area.width()) * area.height());
    map_variances(settings_.sigma_map, settings_.opponent, plane, area, variances.data());
    // From pageable memory: the call returns after the memory was read.
    cuda::check(cudaMemcpyAsync(to, variances.data(), variances.size() * sizeof(float),
                                cudaMemcpyHostToDevice, stream),
                "uploading a sigma map");
    return {to, area, area.width(), 0, 1};
  }

  // Units in which no sum overflows: a pixel belongs to so many patches, and each reference's group has a
  // patch once at most.
  RidgeSums sums_of(const Memory& memory, const Rect& out, double sigma) const {
    RidgeSums sums;
    const std::size_t pixels = static_cast<std::size_t>(out.width()) * out.height();
    sums.values = memory.sums;
    sums.large = memory.sums + pixels;
    sums.weights = memory.sums + 3 * pixels;
    sums.rect = out;
    sums.patch = settings_.patch;
    constexpr double usual_difference = 4;  // in deviations of the noise
    const double limit = usual_difference * settings_.group * sigma;
    const double references = settings_.search / settings_.spacing + 3;  // along each axis
    const double most = references * references * settings_.patch * settings_.patch;
    // A number has at most 21 bits and a sign.
    sums.limit = static_cast<float>(limit);
    sums.value_steps = static_cast<float>(std::min(0x1p30 / most, 0x1p21) / limit);
    return sums;
  }

  RidgeSettings settings_;
  int pass_;
  bool last_;
  Extent image_;
  Extent padded_;
  int reach_;
  ReferenceAxis across_;
  ReferenceAxis down_;
  struct Levels {  // places in the table
    int levels = 0;
    int variances = 0;
    int count = 0;
  };
  std::vector<Levels> levels_;
  std::vector<float> table_;
  mutable std::once_flag pinned_once_;
  mutable cuda::PinnedBuffer pinned_;
};

}  // namespace

RidgePasses ridge_passes_on_cuda(const RidgeSettings& settings) {
  const auto start = [settings](const DeviceStageCall& call) {
    cuda::launch(start_kernel, blocks_of(call.out.rect), block_of_threads, 0, call.stream,
                 StartCall{call.in[0], call.in[1], call.out, opponent_weights(), settings.opponent,
                           static_cast<float>(settings.start)});
  };
  return {.start = {.name = "start", .launch = start}, .pass = [settings](int index) {
            const auto pass = std::make_shared<const CudaPass>(settings, index);
            return Stage{.name = "pass",
                         .scratch_for = [pass](int rows) { return pass->scratch(rows); },
                         .launch = [pass](const DeviceStageCall& call) { pass->launch(call); }};
          }};
}

Pipeline ridge_cuda(const RidgeParams& params, const ImageSpec& spec) {
  const RidgeSettings settings = ridge_settings(params, spec);
  if (is_identity(settings)) return {};
  return ridge_pipeline(ridge_pilot(params, spec, Device::Kind::cuda), settings,
                        ridge_passes_on_cuda(settings));
}

}  // namespace ungrain
