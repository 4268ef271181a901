// The stages of bm3d on a GPU: find groups, filter and sum them, turn the sums into pixels.
#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "core/border.h"
#include "core/channel_noise.h"
#include "core/scratch.h"
#include "cuda/launch.cuh"
#include "cuda/two_scales.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/cuda_filter.h"
#include "methods/bm3d/scales.h"
#include "methods/bm3d/time.h"
#include "methods/bm3d/transforms.h"

namespace ungrain {
namespace {

using cuda::blocks_for;
using cuda::Bm3dCommonNoise;
using cuda::Bm3dDeviationsCall;
using cuda::Bm3dFast;
using cuda::Bm3dFilterCall;
using cuda::Bm3dFinishCall;
using cuda::Bm3dGeneral;
using cuda::Bm3dGeneralCall;
using cuda::Bm3dGeneralMatch;
using cuda::Bm3dLevels;
using cuda::Bm3dSums;
using cuda::GroupMatchCall;
using cuda::ReferenceGrid;

constexpr int block_columns = 32;
constexpr int block_rows = 8;

dim3 blocks_of(const Rect& rect, int planes = 1) {
  return cuda::tall_grid(blocks_for(rect.width(), block_columns), blocks_for(rect.height(), block_rows),
                         planes);
}

struct OpponentMatrix {
  double values[3][3];
};

// Rounds as the reference rounds, because the groups may depend on it.
__global__ void opponent_kernel(const ConstPlanes in, const Planes out, const OpponentMatrix matrix) {
  const int x = out.rect.x0 + static_cast<int>(blockIdx.x) * block_columns + static_cast<int>(threadIdx.x);
  const int y = out.rect.y0 + cuda::block_row() * block_rows + static_cast<int>(threadIdx.y);
  if (x >= out.rect.x1 || y >= out.rect.y1) return;
  double colours[3];
  for (int c = 0; c < 3; ++c) colours[c] = in.at(c, x, y);
  for (int plane = 0; plane < 3; ++plane) {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum = __dadd_rn(sum, __dmul_rn(matrix.values[plane][c], colours[c]));
    out.at(plane, x, y) = static_cast<float>(sum);
  }
}

// Continues axes shorter than a patch.
__global__ void pad_kernel(const ConstPlanes in, const Extent image, const Planes out) {
  const int x = out.rect.x0 + static_cast<int>(blockIdx.x) * block_columns + static_cast<int>(threadIdx.x);
  const int y = out.rect.y0 + cuda::block_row(out.count) * block_rows + static_cast<int>(threadIdx.y);
  if (x >= out.rect.x1 || y >= out.rect.y1) return;
  const int plane = cuda::block_plane(out.count);
  out.at(plane, x, y) = in.at(plane, border_index(Border::symmetric, x, image.width),
                              border_index(Border::symmetric, y, image.height));
}

constexpr int most_patch = 32;
constexpr int usual_patch = 8;

// Pixels of a block of finish_kernel(): a thread has a few rows of a column.
constexpr int finish_rows_each = 4;
constexpr int finish_rows = block_rows * finish_rows_each;

// The weight of a pixel is the sum over the patches that cover it: a convolution with the window, rows first.
// Patch: its side, or 0 if it is known only at run time.
template <int Patch>
__global__ void __launch_bounds__(block_columns* block_rows)
    finish_kernel(const __grid_constant__ Bm3dFinishCall call) {
  constexpr int most = Patch > 0 ? Patch : most_patch;
  __shared__ float weights[(finish_rows + most - 1) * (block_columns + most - 1)];
  __shared__ float row_sums[(finish_rows + most - 1) * block_columns];
  const Bm3dSums& sums = call.sums;
  const int before = Patch > 0 ? Patch - 1 : sums.patch - 1;
  const int columns = block_columns + before;
  const int rows = finish_rows + before;
  const Rect& rect = sums.rect;
  const Rect weight_rect = sums.weight_rect();
  const auto column = static_cast<int>(threadIdx.x);
  const auto warp = static_cast<int>(threadIdx.y);
  const int first_row = warp * finish_rows_each;
  const int x0 = rect.x0 + static_cast<int>(blockIdx.x) * block_columns;
  const int y0 = rect.y0 + cuda::block_row() * finish_rows;
  const int x = x0 + column;
  const auto inside = [&](int i) { return x < rect.x1 && y0 + first_row + i < rect.y1; };
  // Factor from the sums' steps to values: the quotient of two powers of two.
  const float step = sums.weight_steps / sums.value_steps;
  float means[max_channels][finish_rows_each] = {};
#pragma unroll
  for (int plane = 0; plane < max_channels; ++plane) {
    if (plane >= call.out.count) break;
    // Loaded early, so that these loads overlap with those of the weights.
    float values[finish_rows_each] = {};
    float noisy[finish_rows_each] = {};
#pragma unroll
    for (int i = 0; i < finish_rows_each; ++i) {
      if (!inside(i)) continue;
      const int y = y0 + first_row + i;
      values[i] = static_cast<float>(static_cast<long long>(sums.values[Bm3dSums::index(rect, plane, x, y)]));
      if (call.lost) noisy[i] = call.noisy.at(plane, x, y);
    }
    for (int at = warp * block_columns + column; at < rows * columns; at += block_columns * block_rows) {
      const int r = at / columns;
      const int from_x = x0 - before + at - r * columns;
      const int from_y = y0 - before + r;
      const bool there = Bm3dSums::holds(weight_rect, from_x, from_y);
      weights[at] =
          there ? static_cast<float>(sums.weights[Bm3dSums::index(weight_rect, plane, from_x, from_y)])
                : 0.0F;
    }
    __syncthreads();
    for (int r = warp; r < rows; r += block_rows) {
      float sum = 0;
#pragma unroll
      for (int d = 0; d <= before; ++d)
        sum = fmaf(call.window[d], weights[r * columns + column + before - d], sum);
      row_sums[r * block_columns + column] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < finish_rows_each; ++i) {
      float all = 0;
#pragma unroll
      for (int d = 0; d <= before; ++d)
        all = fmaf(call.window[d], row_sums[(first_row + i + before - d) * block_columns + column], all);
      const float mean = values[i] * step / all * call.unit[plane];
      means[plane][i] = call.lost ? noisy[i] - mean : mean;
    }
  }
#pragma unroll
  for (int i = 0; i < finish_rows_each; ++i) {
    if (!inside(i)) continue;
#pragma unroll
    for (int plane = 0; plane < max_channels; ++plane) {
      if (plane >= call.out.count) break;
      float value = means[plane][i];
      if (call.to_rgb && plane < 3) {
        value = 0;
#pragma unroll
        for (int from = 0; from < 3; ++from)
          value = fmaf(call.to_colours[from][plane], means[from][i], value);
      }
      call.out.at(plane, x, y0 + first_row + i) = value;
    }
  }
}

// Reference patches along an axis: every spacing-th, and the last.
struct Axis {
  int last = 0;
  int spacing = 1;

  int count() const { return (last + spacing - 1) / spacing + 1; }
  // Reference patches at positions [from, to].
  int first(int from) const {
    if (from <= 0) return 0;
    return from > last ? count() : std::min((from + spacing - 1) / spacing, count() - 1);
  }
  int end(int to) const {
    if (to < 0) return 0;
    return to >= last ? count() : to / spacing + 1;
  }
};

constexpr std::size_t scratch_alignment = 256;  // the runtime's alignment of allocations
constexpr double general_steps = 0x1p32;
// Pixels of an image from which a search may find patches that are nearly as near. In smaller ones the exact
// search hardly takes time, and a few patches weigh more.
constexpr double least_for_nearly = 256 * 256;
constexpr int most_matches = 64;  // largest group of launch_group_match()

OpponentMatrix opponent() {
  OpponentMatrix matrix{};
  for (int plane = 0; plane < 3; ++plane) {
    for (int c = 0; c < 3; ++c) matrix.values[plane][c] = opponent_matrix[plane][c];
  }
  return matrix;
}

class CudaStep {
 public:
  CudaStep(const Bm3dSettings& settings, const ImageSpec& spec, int index)
      : settings_(settings),
        index_(index),
        step_(index == 0 ? settings_.first : settings_.second),
        image_{spec.width, spec.height},
        padded_{padded_length(spec.width, step_.patch), padded_length(spec.height, step_.patch)},
        planes_(spec.colour_channels()),
        white_(spec.white()),
        reach_(group_reach(settings_, index)),
        across_{padded_.width - step_.patch, step_.spacing},
        down_{padded_.height - step_.patch, step_.spacing},
        varies_(settings.sigma_map.data != nullptr),
        fast_(cuda::bm3d_fast_filter(settings_, index, white_)),
        general_(cuda::bm3d_general_filter(step_, index == 1, varies_ || is_correlated(settings_))) {
    for (int plane = 0; plane < planes_; ++plane)
      sigma_[plane] = fast_ ? cuda::fast_sigma(settings_, plane) : settings_.sigma[plane];
    if (by_model()) append_model();
    for (int plane = 0; plane < planes_; ++plane) append_common(plane);
  }
  CudaStep(const CudaStep&) = delete;
  CudaStep& operator=(const CudaStep&) = delete;

  // Floats for a call of so many rows, at any width.
  std::size_t scratch(int rows) const {
    const Rect out{0, 0, image_.width, std::min(rows, image_.height)};
    const int references = std::min(
        down_.count(), (out.height() + 2 * (reach_ + step_.patch) + step_.spacing) / step_.spacing + 2);
    const int held = std::min(image_.height, out.height() + 2 * bm3d_reach(settings_, index_));
    const Rect area{0, 0, padded_.width, padded_length(held, step_.patch)};
    ReferenceGrid grid = grid_at(0, across_.count(), 0, references);
    return Memory(*this, nullptr, out, area, grid).floats;
  }

  void launch(const DeviceStageCall& call) const {
    const Rect& out = call.out.rect;
    const int before = reach_ + step_.patch - 1;
    const ReferenceGrid grid = grid_at(across_.first(out.x0 - before), across_.end(out.x1 - 1 + reach_),
                                       down_.first(out.y0 - before), down_.end(out.y1 - 1 + reach_));
    // Other stages may need more rows than this one.
    const int around = bm3d_reach(settings_, index_);
    const Rect needed{std::max(0, out.x0 - around), std::max(0, out.y0 - around),
                      std::min(image_.width, out.x1 + around), std::min(image_.height, out.y1 + around)};
    ConstPlanes noisy = cropped(call.in[0], needed);
    ConstPlanes basic;
    if (index_ == 1) basic = cropped(call.in[1], needed);
    const Rect area = padded_rect(needed);
    Memory memory(*this, call.scratch.data(), out, area, grid);
    const cudaStream_t stream = cuda::handle(call.stream);
    const auto clear = [&](void* what, std::size_t bytes) {
      cuda::check(cudaMemsetAsync(what, 0, bytes, stream), "clearing memory");
    };
    clear(memory.sums.values,
          Bm3dSums::floats(planes_, out.width(), out.height(), step_.patch) * sizeof(float));
    noisy = padded(noisy, memory.noisy, call.stream);
    if (index_ == 1) basic = padded(basic, memory.basic, call.stream);
    ConstPlanes variance;
    if (varies_) variance = upload_variances(memory.variance, area, stream);
    upload_table(memory, stream);

    Bm3dFilterCall filter;
    filter.noisy = noisy;
    filter.basic = basic;
    filter.grid = grid;
    filter.count = step_.group;
    filter.offsets = memory.offsets;
    filter.found = memory.found;
    filter.sums = memory.sums;
    filter.strength = static_cast<float>(step_.strength);
    for (int plane = 0; plane < planes_; ++plane) {
      filter.sigma[plane] = static_cast<float>(sigma_[plane]);
      filter.middle[plane] = middle_of(plane);
    }
    if (by_model()) {
      filter.noise.shares = memory.table + shares_;
      filter.noise.deviations = memory.deviations;
      for (int plane = 0; plane < planes_; ++plane)
        filter.noise.strength[plane] = static_cast<float>(settings_.model[plane].strength);
      for (int plane = 0; plane < planes_; ++plane) {
        filter.noise.common[plane] = common_[plane].noise;
        if (has_common(plane)) filter.noise.common[plane].values = memory.table + common_[plane].values;
      }
    }
    copy_window(filter.window);
    filter.left_over = memory.left_over;
    Bm3dGeneralCall general;
    general.shape = general_.shape;
    general.table = memory.table;
    general.workspace = general_.workspace > 0 ? memory.workspace : nullptr;
    general.workspace_floats = general_.workspace;
    general.variance = variance;
    general.only_left = fast_.has_value();
    general.value_scale = static_cast<float>(1 / white_);

    filter.planes = settings_.opponent ? planes_ : 1;
    for (int plane = 0; plane < planes_; plane += filter.planes) {
      filter.first_plane = plane;
      const ConstPlanes matched = one_of(index_ == 0 ? noisy : basic, plane);
      find_groups(matched, plane, grid, memory, call.stream);
      if (by_model()) find_deviations(matched, plane, filter, memory, call.stream);
      general.filter = filter;
      if (fast_) {
        clear(memory.left_over, sizeof(unsigned));
        cuda::launch_bm3d_fast(*fast_, filter, call.stream);
      }
      cuda::launch_bm3d_general(general_, general, call.stream);
    }
    finish(call, memory.sums);
  }

 private:
  // The scratch memory of a call, or its size.
  struct Memory {
    Memory(const CudaStep& step, float* start, const Rect& out, const Rect& area, const ReferenceGrid& grid) {
      ScratchPieces pieces(start, scratch_alignment);
      const int k = step.step_.patch;
      const auto planes = static_cast<std::size_t>(step.planes_);
      const std::size_t area_pixels = static_cast<std::size_t>(area.width()) * area.height();
      const std::size_t references = static_cast<std::size_t>(grid.count_i) * grid.count_j;
      const auto group = static_cast<std::size_t>(step.step_.group);
      sums.rect = out;
      sums.patch = k;
      sums.values =
          pieces.take<unsigned long long>(Bm3dSums::floats(step.planes_, out.width(), out.height(), k) / 2);
      if (start != nullptr)
        sums.weights = sums.values + planes * static_cast<std::size_t>(out.width()) * out.height();
      sums.value_steps = static_cast<float>(general_steps);
      sums.weight_steps = static_cast<float>(general_steps);
      if (step.fast_) cuda::set_fast_units(*step.fast_, sums);
      const std::size_t padding = step.is_padded() ? planes * area_pixels : 0;
      noisy = pieces.take<float>(padding);
      basic = pieces.take<float>(step.index_ == 1 ? padding : 0);
      variance = pieces.take<float>(step.varies_ ? planes * area_pixels : 0);
      patch_sums = pieces.take<float>(step.by_model() ? area_pixels : 0);
      deviations = pieces.take<float>(step.by_model() ? planes * references : 0);
      offsets = pieces.take<std::int8_t>(2 * references * group);
      found = pieces.take<std::uint8_t>(references);
      left_over = pieces.take<unsigned>(step.fast_ ? 1 + references * planes : 0);
      table = pieces.take<float>(step.general_.table.size());
      workspace =
          pieces.take<float>(step.general_.workspace * static_cast<std::size_t>(step.general_.blocks));
      const std::size_t coefficients =
          cuda::bm3d_compared_floats(step.general_.shape, area.width(), area.height());
      compared = pieces.take<float>(step.step_.prefilter > 0 ? coefficients : 0);
      GroupMatchCall match = step.match_call({nullptr, area, area.width(), 0, 1}, grid);
      this->match = pieces.take<float>(step.uses_own_search() ? 0 : cuda::group_match_scratch(match));
      floats = pieces.floats();
    }

    Bm3dSums sums;
    float* noisy = nullptr;  // padded
    float* basic = nullptr;
    float* variance = nullptr;
    float* patch_sums = nullptr;
    float* deviations = nullptr;
    std::int8_t* offsets = nullptr;
    std::uint8_t* found = nullptr;
    unsigned* left_over = nullptr;
    float* table = nullptr;
    float* workspace = nullptr;
    float* compared = nullptr;
    float* match = nullptr;
    std::size_t floats = 0;
  };

  bool by_model() const { return !settings_.model.empty(); }

  // Appends to the uploaded table: the planes' shares, then their variances by level.
  void append_model() {
    std::vector<float>& table = general_.table;
    shares_ = static_cast<int>(table.size());
    for (const PlaneNoise& noise : settings_.model) {
      const double mean = mean_share(noise);
      for (const double share : noise.shares)
        table.push_back(static_cast<float>(mean > 0 ? share / mean : 0));
    }
    for (int plane = 0; plane < planes_; ++plane) {
      const PlaneNoise& noise = settings_.model[plane];
      const double unit = sigma_[plane] * sigma_[plane];
      Bm3dLevels& of = levels_[plane];
      of.count = static_cast<int>(noise.levels.size());
      of.levels = static_cast<int>(table.size());
      for (const double level : noise.levels) table.push_back(static_cast<float>(level));
      of.variances = static_cast<int>(table.size());
      for (const double variance : noise.variances)
        table.push_back(static_cast<float>(unit > 0 ? variance * mean_share(noise) / unit : 0));
    }
  }

  bool has_common(int plane) const { return by_model() && settings_.model[plane].covariances != nullptr; }
  bool corrects(int plane) const { return index_ == 0 && has_common(plane); }

  // Appends to the table: the covariances of two patches' noise and the corrections of distances.
  void append_common(int plane) {
    if (!has_common(plane)) return;
    std::vector<float>& table = general_.table;
    CommonNoise& common = common_[plane];
    const PatchCovariances& covariances = *settings_.model[plane].covariances;
    common.noise.reach_x = covariances.reach_x();
    common.noise.reach_y = covariances.reach_y();
    if (plane > 0 && settings_.model[plane - 1].covariances == settings_.model[plane].covariances) {
      common.values = common_[plane - 1].values;
    } else {
      common.values = static_cast<int>(table.size());
      for (int dy = 0; dy <= covariances.reach_y(); ++dy) {
        for (int dx = -covariances.reach_x(); dx <= covariances.reach_x(); ++dx) {
          for (const double value : covariances.at(dx, dy)) table.push_back(static_cast<float>(value));
        }
      }
    }
    if (!corrects(plane)) return;
    common.corrections = static_cast<int>(table.size());
    common.least_correction = least_correction(settings_, index_, plane);
    for (int dy = -reach_; dy <= reach_; ++dy) {
      for (int dx = -reach_; dx <= reach_; ++dx) {
        const double correction =
            distance_correction(settings_, index_, plane, dx, dy) - common.least_correction;
        table.push_back(static_cast<float>(correction * step_.patch * step_.patch));
      }
    }
  }

  bool is_padded() const { return padded_.width != image_.width || padded_.height != image_.height; }
  bool uses_own_search() const { return step_.group > most_matches || step_.prefilter > 0; }

  ReferenceGrid grid_at(int first_i, int end_i, int first_j, int end_j) const {
    return {step_.spacing, across_.last, down_.last, first_i, first_j, end_i - first_i, end_j - first_j};
  }

  static ConstPlanes cropped(ConstPlanes planes, const Rect& rect) {
    planes.data = &planes.at(0, rect.x0, rect.y0);
    planes.rect = rect;
    return planes;
  }

  Rect padded_rect(const Rect& rect) const {
    Rect padded = rect;
    if (padded_.width != image_.width) padded.x0 = 0, padded.x1 = padded_.width;
    if (padded_.height != image_.height) padded.y0 = 0, padded.y1 = padded_.height;
    return padded;
  }

  ConstPlanes padded(const ConstPlanes& planes, float* to, Stream stream) const {
    if (!is_padded()) return planes;
    const Rect rect = padded_rect(planes.rect);
    const Planes out{to, rect, rect.width(), static_cast<std::ptrdiff_t>(rect.width()) * rect.height(),
                     planes_};
    cuda::launch(pad_kernel, blocks_of(rect, planes_), dim3(block_columns, block_rows), 0, stream, planes,
                 image_, out);
    return out;
  }

  // Page-locked, so that copies do not block; allocated only when a GPU is known to be present.
  void upload_table(const Memory& memory, cudaStream_t stream) const {
    const std::size_t bytes = general_.table.size() * sizeof(float);
    std::call_once(table_made_, [&] {
      table_ = cuda::PinnedBuffer(bytes);
      std::copy(general_.table.begin(), general_.table.end(), reinterpret_cast<float*>(table_.data()));
    });
    cuda::check(cudaMemcpyAsync(memory.table, table_.data(), bytes, cudaMemcpyHostToDevice, stream),
                "uploading a table");
  }

  // The map lies in host memory. Uploads the rows that the call needs, as variances of the working planes.
  ConstPlanes upload_variances(float* to, const Rect& area, cudaStream_t stream) const {
    const std::size_t plane_floats = static_cast<std::size_t>(area.width()) * area.height();
    std::vector<float> variances(plane_floats * static_cast<std::size_t>(planes_));
    for (int plane = 0; plane < planes_; ++plane) {
      map_variances(settings_.sigma_map, settings_.opponent, plane, area,
                    variances.data() + static_cast<std::size_t>(plane) * plane_floats);
    }
    // From pageable memory: the call returns after the memory was read.
    cuda::check(cudaMemcpyAsync(to, variances.data(), variances.size() * sizeof(float),
                                cudaMemcpyHostToDevice, stream),
                "uploading a sigma map");
    return {to, area, area.width(), static_cast<std::ptrdiff_t>(plane_floats), planes_};
  }

  void copy_window(float* to) const {
    const std::vector<double> line = patch_window(step_.patch, step_.kaiser);
    for (int i = 0; i < step_.patch; ++i) to[i] = static_cast<float>(line[i]);
  }

  // Colour differences lie around 0.
  float middle_of(int plane) const {
    return settings_.opponent && plane > 0 ? 0 : static_cast<float>(plane_white() / 2);
  }
  // Luminance reaches sqrt 3 times white.
  double plane_white() const { return white_ * (settings_.opponent ? std::sqrt(3.0) : 1); }

  GroupMatchCall match_call(const ConstPlanes& plane, const ReferenceGrid& grid) const {
    const double white = plane_white();
    GroupMatchCall match;
    match.plane = plane;
    match.image = padded_;
    match.grid = grid;
    match.patch = step_.patch;
    match.search = step_.search;
    match.count = step_.group;
    match.max_distance = static_cast<float>(step_.max_distance * step_.patch * step_.patch);
    match.middle = static_cast<float>(white / 2);
    match.scale = static_cast<float>(255 / white);
    match.nearly = static_cast<double>(image_.width) * image_.height >= least_for_nearly;
    return match;
  }

  static ConstPlanes one_of(ConstPlanes planes, int plane) {
    planes.data += plane * planes.plane_stride;
    planes.count = 1;
    return planes;
  }

  void find_groups(const ConstPlanes& matched, int plane, const ReferenceGrid& grid, const Memory& memory,
                   Stream stream) const {
    GroupMatchCall match = match_call(matched, grid);
    match.offsets = memory.offsets;
    match.found = memory.found;
    match.scratch = memory.match;
    if (corrects(plane)) {
      match.corrections = memory.table + common_[plane].corrections;
      match.max_distance = static_cast<float>((step_.max_distance - common_[plane].least_correction) *
                                              step_.patch * step_.patch);
    }
    if (uses_own_search()) {
      // The compared coefficients are those of the filter's own transform.
      Bm3dGeneralMatch own{match, general_.shape, memory.table, -1, memory.compared};
      if (step_.prefilter > 0) own.threshold = static_cast<float>(step_.prefilter * settings_.sigma[plane]);
      cuda::launch_bm3d_general_match(own, stream);
    } else {
      cuda::launch_group_match(match, stream);
    }
  }

  // Computes the deviations of the groups of `filter`, for all its planes.
  void find_deviations(const ConstPlanes& matched, int plane, const Bm3dFilterCall& filter,
                       const Memory& memory, Stream stream) const {
    Bm3dDeviationsCall call;
    call.plane = matched;
    call.grid = filter.grid;
    call.count = filter.count;
    call.any_size = general_.shape.any_size;
    call.offsets = filter.offsets;
    call.found = filter.found;
    call.table = memory.table;
    std::copy_n(levels_ + plane, filter.planes, call.planes);
    call.plane_count = filter.planes;
    call.deviations = memory.deviations + static_cast<std::size_t>(plane) * filter.references();
    call.sums = memory.patch_sums;
    cuda::launch_bm3d_deviations(call, stream);
  }

  void finish(const DeviceStageCall& call, const Bm3dSums& sums) const {
    Bm3dFinishCall finish{};
    finish.sums = sums;
    finish.noisy = call.in[0];
    finish.out = call.out;
    for (int plane = 0; plane < 3; ++plane) {
      for (int c = 0; c < 3; ++c) finish.to_colours[plane][c] = static_cast<float>(opponent_matrix[plane][c]);
    }
    finish.lost = fast_.has_value();
    for (int plane = 0; plane < planes_; ++plane)
      finish.unit[plane] = static_cast<float>(finish.lost ? sigma_[plane] : white_);
    finish.to_rgb = settings_.opponent && index_ + 1 == settings_.steps;
    copy_window(finish.window);
    cuda::launch_bm3d_finish(finish, call.stream);
  }

  Bm3dSettings settings_;
  int index_;
  Bm3dStep step_;
  Extent image_;
  Extent padded_;
  int planes_;
  double white_;
  int reach_;
  Axis across_;
  Axis down_;
  bool varies_;
  std::optional<Bm3dFast> fast_;
  Bm3dGeneral general_;
  double sigma_[max_channels] = {};  // units of the sums
  int shares_ = 0;                   // of a model: place in the table
  Bm3dLevels levels_[max_channels];
  struct CommonNoise {
    Bm3dCommonNoise noise;  // without its values
    int values = 0;         // place in the table
    int corrections = 0;
    double least_correction = 0;
  };
  CommonNoise common_[max_channels];
  mutable std::once_flag table_made_;
  mutable cuda::PinnedBuffer table_;
};

Stage stage(const char* name, const Bm3dSettings& settings, const ImageSpec& spec, int index,
            std::vector<int> reads) {
  const auto step = std::make_shared<const CudaStep>(settings, spec, index);
  const int reach = bm3d_reach(settings, index);
  return {.name = name,
          .reach = {.x = reach, .y = reach},
          .planes = spec.colour_channels(),
          .reads = std::move(reads),
          .scratch_for = [step](int rows) { return step->scratch(rows); },
          .launch = [step](const DeviceStageCall& call) { step->launch(call); }};
}

Pipeline one_scale(const Bm3dParams& params, const ImageSpec& spec) {
  const Bm3dSettings settings = bm3d_settings(params, spec);
  if (is_identity(settings)) return {};
  if (settings.over_time) return bm3d_time_cuda(settings, spec);
  Pipeline pipeline;
  int noisy = 0;
  if (settings.opponent) {
    pipeline.stages.push_back(
        {.name = "opponent", .planes = 3, .reads = {0}, .launch = cuda::launch_bm3d_opponent});
    noisy = 1;
  }
  pipeline.stages.push_back(stage("threshold", settings, spec, 0, {noisy}));
  if (settings.steps == 2) pipeline.stages.push_back(stage("wiener", settings, spec, 1, {noisy, noisy + 1}));
  return pipeline;
}

}  // namespace

void cuda::launch_bm3d_finish(const Bm3dFinishCall& call, Stream stream) {
  const Rect& rect = call.sums.rect;
  launch(call.sums.patch == usual_patch ? finish_kernel<usual_patch> : finish_kernel<0>,
         tall_grid(blocks_for(rect.width(), block_columns), blocks_for(rect.height(), finish_rows)),
         dim3(block_columns, block_rows), 0, stream, call);
}

void cuda::launch_bm3d_opponent(const DeviceStageCall& call) {
  launch(opponent_kernel, blocks_of(call.out.rect), dim3(block_columns, block_rows), 0, call.stream,
         call.in[0], call.out, opponent());
}

Pipeline bm3d_cuda(const Bm3dParams& params, const ImageSpec& spec) {
  return bm3d_in_scales(params, spec, cuda::scale_passes(), one_scale);
}

}  // namespace ungrain
