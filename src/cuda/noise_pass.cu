// The noise estimate's pass over an image in GPU memory. Compiled without fused multiply-adds
// (CMakeLists.txt): noise_pass_items.h gives the bits that the processor computes.
//
// Of 20 Mpixel every pixel is read once, by the cells; of the blocks a lattice of 40,000 is read at most.
// What goes over the bus: 88 bytes for each block and plane, 24 for each block and channel that may be cut,
// about 300 windows of 16 bytes for each of 128 lists, and the samples of the few thousand measured blocks.
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/sample_types.h"
#include "cuda/launch.cuh"
#include "cuda/noise_pass.h"
#include "noise/flat_windows.h"
#include "noise/noise_pass_items.h"
#include "ungrain/error.h"

namespace ungrain::cuda {
namespace {

constexpr int threads = 128;
constexpr int level_count = WindowLattice::level_count;
constexpr int list_count = 2 * level_count;  // of each level by window, and of each by ring

// ---- samples

// A view as a kernel argument.
template <PixelType Type>
struct Samples {
  const unsigned char* data;
  Strides strides;

  __device__ const unsigned char* at(int x, int y, int channel) const {
    return data + x * strides.x + y * strides.y + channel * strides.channel;
  }
  __device__ float operator()(int x, int y, int channel) const {
    const unsigned char* from = at(x, y, channel);
    if constexpr (Type == PixelType::u8) return *from;
    if constexpr (Type == PixelType::u16) return *reinterpret_cast<const std::uint16_t*>(from);
    if constexpr (Type == PixelType::f16) return __half2float(*reinterpret_cast<const __half*>(from));
    if constexpr (Type == PixelType::f32) return *reinterpret_cast<const float*>(from);
  }
};

template <PixelType Type>
Samples<Type> samples_of(const ConstImageView& view) {
  return {static_cast<const unsigned char*>(view.data), view.strides};
}

__device__ long long thread_number() {
  return static_cast<long long>(block_row()) * gridDim.x * blockDim.x +
         static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// A grid with a thread for each of `count` items, which ask thread_number().
dim3 grid_for(std::size_t count) {
  constexpr std::size_t across = 1024;
  const std::size_t blocks = (count + threads - 1) / threads;
  return tall_grid(static_cast<int>(std::min(blocks, across)),
                   static_cast<int>((blocks + across - 1) / across));
}

// ---- the white estimate's blocks: a thread for each block and plane, the lanes of a batch side by side

template <PixelType Type>
__global__ void white_blocks_kernel(Samples<Type> image, WhiteBlocks of, BatchStatistics* looks) {
  const long long number = thread_number();
  const int lane = static_cast<int>(number % batch_blocks);
  const long long look = number / batch_blocks;
  const int plane = static_cast<int>(look % of.planes());
  const long long batch = look / of.planes();
  const auto row = static_cast<int>(batch / of.row_batches());
  if (row >= of.rows) return;
  const int first = static_cast<int>(batch % of.row_batches()) * batch_blocks;
  const int column = min(first + lane, of.columns - 1);  // lanes without a block repeat the last one
  pass_items::look_at_white_block(image, of, column * of.step, row * of.step, plane, lane, looks[look]);
}

// ---- flat windows

template <PixelType Type>
__global__ void cells_kernel(Samples<Type> image, WindowLattice of, float* cells) {
  const long long number = thread_number();
  if (number >= static_cast<long long>(of.cells_across) * of.cells_down) return;
  const auto column = static_cast<int>(number % of.cells_across);
  const auto row = static_cast<int>(number / of.cells_across);
  cells[number] = pass_items::cell_sum(image, of, column * of.cell_step, row * of.cell_step);
}

// Textures are counted in bins by the leading bits of a float: exponent and 7 bits of the mantissa. Rounding
// to float keeps the order; what is below 0 by rounding errors is counted as 0.
constexpr int bin_shift = 16;
constexpr int bin_count = 1 << 15;
__device__ int bin_of(double texture) {
  return static_cast<int>(__float_as_uint(static_cast<float>(texture > 0 ? texture : 0.0)) >> bin_shift);
}

// Results of the windows kernels besides the lists.
struct WindowCounts {
  unsigned long long windows[level_count];
  unsigned long long constant[level_count];
  int last_bin[list_count];               // windows in later bins are not listed
  unsigned list_sizes[list_count];        // windows up to that bin
  unsigned long long begins[list_count];  // of the lists, one after the other
  unsigned filled[list_count];
};

struct WindowPlace {
  int column;
  int row;
  bool is_inside;
};
__device__ WindowPlace window_place(const WindowLattice& of) {
  const long long number = thread_number();
  const auto row = static_cast<int>(number / of.columns);
  return {static_cast<int>(number % of.columns), row, row < of.rows};
}

enum class WindowKind { not_finite, constant, other };

template <PixelType Type>
__device__ WindowKind look_at_window(const Samples<Type>& image, const WindowLattice& of, const float* cells,
                                     const WindowPlace& place, pass_items::WindowLook& look) {
  const int cells_apart = of.step / of.cell_step;
  const float* first = cells + static_cast<std::ptrdiff_t>(place.row) * cells_apart * of.cells_across +
                       static_cast<std::ptrdiff_t>(place.column) * cells_apart;
  look = pass_items::look_at_window(first, of.cells_across, flatness_cell / of.cell_step, of.level_scale);
  if (!isfinite(look.texture)) return WindowKind::not_finite;
  constexpr int offset = (flatness_window - measured_side) / 2;
  if (look.texture == 0 &&
      pass_items::is_constant(image, of, place.column * of.step + offset, place.row * of.step + offset)) {
    return WindowKind::constant;
  }
  return WindowKind::other;
}

template <PixelType Type>
__global__ void count_windows_kernel(Samples<Type> image, WindowLattice of, const float* cells,
                                     unsigned* bins, WindowCounts* counts) {
  __shared__ unsigned found[2][level_count];
  for (int i = threadIdx.x; i < 2 * level_count; i += blockDim.x) found[i / level_count][i % level_count] = 0;
  __syncthreads();
  const WindowPlace place = window_place(of);
  if (place.is_inside) {
    pass_items::WindowLook look;
    const WindowKind kind = look_at_window(image, of, cells, place, look);
    if (kind == WindowKind::constant) atomicAdd(&found[1][look.level], 1U);
    if (kind == WindowKind::other) {
      atomicAdd(&found[0][look.level], 1U);
      atomicAdd(&bins[look.level * bin_count + bin_of(look.texture)], 1U);
      if (!isnan(look.ring)) {
        atomicAdd(&bins[(level_count + look.level) * bin_count + bin_of(look.ring)], 1U);
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < level_count; i += blockDim.x) {
    if (found[0][i] > 0) atomicAdd(&counts->windows[i], static_cast<unsigned long long>(found[0][i]));
    if (found[1][i] > 0) atomicAdd(&counts->constant[i], static_cast<unsigned long long>(found[1][i]));
  }
}

// One block for each list: finds the bin up to which there are enough windows.
constexpr int find_threads = 256;
__global__ void find_last_bins_kernel(const unsigned* bins, WindowCounts* counts) {
  constexpr int each = bin_count / find_threads;
  __shared__ unsigned sums[find_threads];
  const int list = static_cast<int>(blockIdx.x);
  const unsigned* of_list = bins + list * bin_count;
  unsigned sum = 0;
  for (int i = 0; i < each; ++i) sum += of_list[threadIdx.x * each + i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  unsigned before = 0;
  int part = 0;
  while (part < find_threads - 1 && before + sums[part] < BlockPool::most) before += sums[part++];
  int bin = part * each;
  const int end = bin + each - 1;
  while (bin < end && before + of_list[bin] < BlockPool::most) before += of_list[bin++];
  counts->last_bin[list] = bin;
  counts->list_sizes[list] = before + of_list[bin];
}

__global__ void place_lists_kernel(WindowCounts* counts) {
  unsigned long long begin = 0;
  for (int list = 0; list < list_count; ++list) {
    counts->begins[list] = begin;
    begin += counts->list_sizes[list];
  }
}

__device__ void list_window(double texture, long long place, int list, WindowCounts* counts,
                            FlatWindow* windows, unsigned long long room) {
  if (bin_of(texture) > counts->last_bin[list]) return;
  const unsigned long long at = counts->begins[list] + atomicAdd(&counts->filled[list], 1U);
  if (at < room) windows[at] = {texture, place};
}

template <PixelType Type>
__global__ void list_windows_kernel(Samples<Type> image, WindowLattice of, const float* cells,
                                    WindowCounts* counts, FlatWindow* windows, unsigned long long room) {
  const WindowPlace place = window_place(of);
  if (!place.is_inside) return;
  pass_items::WindowLook look;
  if (look_at_window(image, of, cells, place, look) != WindowKind::other) return;
  const long long at =
      static_cast<long long>(place.row) * of.step * of.width + static_cast<long long>(place.column) * of.step;
  list_window(look.texture, at, look.level, counts, windows, room);
  if (!isnan(look.ring)) list_window(look.ring, at, level_count + look.level, counts, windows, room);
}

// ---- cut blocks: a thread for each block and channel

template <PixelType Type, class Value>
__global__ void cut_blocks_kernel(Samples<Type> image, CutLattice of, CutBlock* blocks) {
  const long long number = thread_number();
  const long long each = static_cast<long long>(of.columns) * of.rows;
  if (number >= each * of.channels) return;
  const long long block = number % each;
  blocks[number] = pass_items::look_at_cut_block<Value>(
      image, of.white, static_cast<int>(block % of.columns) * of.step,
      static_cast<int>(block / of.columns) * of.step, static_cast<int>(number / each));
}

// ---- samples as they are, for the host

template <PixelType Type>
__global__ void copy_blocks_kernel(Samples<Type> image, const NoiseBlock* blocks, long long count, int first,
                                   int channels, unsigned char* to) {
  constexpr int bytes = bytes_per_sample(Type);
  const long long number = thread_number();
  const auto sample = static_cast<int>(number % batch_samples);
  const auto channel = static_cast<int>(number / batch_samples % channels);
  const long long n = number / batch_samples / channels;
  if (n >= count) return;
  const NoiseBlock block = blocks[n];
  const unsigned char* from =
      image.at(block.x + sample % measured_side, block.y + sample / measured_side, first + channel);
  for (int byte = 0; byte < bytes; ++byte) to[number * bytes + byte] = from[byte];
}

template <PixelType Type>
__global__ void pack_kernel(Samples<Type> image, int width, int height, int channels, unsigned char* to) {
  constexpr int bytes = bytes_per_sample(Type);
  const long long number = thread_number();
  const long long pixel = number / channels;
  const auto y = static_cast<int>(pixel / width);
  if (y >= height) return;
  const unsigned char* from =
      image.at(static_cast<int>(pixel % width), y, static_cast<int>(number % channels));
  for (int byte = 0; byte < bytes; ++byte) to[number * bytes + byte] = from[byte];
}

// ---- memory

template <class Buffer>
class Growing {
 public:
  template <class T>
  T* of(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (buffer_.size() < bytes) {
      buffer_ = Buffer();  // the old one is given back before
      buffer_ = Buffer(std::bit_ceil(bytes));
    }
    return reinterpret_cast<T*>(buffer_.data());
  }

 private:
  Buffer buffer_;
};
using GrowingDevice = Growing<DeviceBuffer>;
using GrowingPinned = Growing<PinnedBuffer>;

// What a pass works with. Making it takes longer than the pass.
struct Workspace {
  OwnStream stream;
  GrowingDevice looks, cells, bins, counts, windows, cuts, blocks, samples;
  GrowingPinned host_looks, host_counts, host_windows, host_cuts, host_blocks, host_samples;
};

// Workspaces that no pass uses, at most one for each GPU.
class Workspaces {
 public:
  static Workspaces& of_process() {
    // Never destroyed: the CUDA runtime may be gone before it when the process ends.
    static Workspaces& workspaces = *new Workspaces;
    return workspaces;
  }
  std::unique_ptr<Workspace> take(int gpu) {
    {
      const std::lock_guard lock(mutex_);
      if (std::unique_ptr<Workspace>& idle = idle_[gpu]) return std::move(idle);
    }
    return std::make_unique<Workspace>();
  }
  void give_back(int gpu, std::unique_ptr<Workspace> workspace) noexcept {
    const std::lock_guard lock(mutex_);
    const auto idle = idle_.find(gpu);
    if (idle != idle_.end()) std::swap(idle->second, workspace);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Workspace>> idle_;
};

// ---- the pass

class CudaNoisePass : public NoisePass {
 public:
  explicit CudaNoisePass(const ConstImageView& image) : image_(image), gpu_(image.space.device) {
    const CurrentDevice current(gpu_);
    work_ = Workspaces::of_process().take(gpu_);
    if (!is_aligned()) image_ = packed(packed_);
  }
  ~CudaNoisePass() override {
    cudaStreamSynchronize(work_->stream.get());  // after an error something may still run
    Workspaces::of_process().give_back(gpu_, std::move(work_));
  }
  CudaNoisePass(const CudaNoisePass&) = delete;
  CudaNoisePass& operator=(const CudaNoisePass&) = delete;

  std::span<const BatchStatistics> white_blocks(const WhiteBlocks& blocks) override {
    const CurrentDevice current(gpu_);
    const std::size_t count = blocks.batches() * static_cast<std::size_t>(blocks.planes());
    auto* looks = work_->looks.of<BatchStatistics>(count);
    with_pixel_type(image_.spec.type, [&](auto type) {
      launch(white_blocks_kernel<decltype(type)::value>, grid_for(count * batch_blocks), threads, 0, stream(),
             samples_of<decltype(type)::value>(image_), blocks, looks);
    });
    return downloaded(looks, count, work_->host_looks);
  }

  bool windows(const WindowLattice& lattice, FoundWindows& found) override {
    if (lattice.columns == 0) return true;
    const CurrentDevice current(gpu_);
    const auto windows = static_cast<std::size_t>(lattice.columns) * lattice.rows;
    const auto cell_count = static_cast<std::size_t>(lattice.cells_across) * lattice.cells_down;
    constexpr std::size_t all_bins = static_cast<std::size_t>(list_count) * bin_count;
    auto* cells = work_->cells.of<float>(cell_count);
    auto* bins = work_->bins.of<unsigned>(all_bins);
    auto* counts = work_->counts.of<WindowCounts>(1);
    auto* lists = work_->windows.of<FlatWindow>(list_room);
    clear(bins, all_bins * sizeof(unsigned));
    clear(counts, sizeof(WindowCounts));
    with_pixel_type(image_.spec.type, [&](auto type) {
      const auto image = samples_of<decltype(type)::value>(image_);
      launch(cells_kernel<decltype(type)::value>, grid_for(cell_count), threads, 0, stream(), image, lattice,
             cells);
      launch(count_windows_kernel<decltype(type)::value>, grid_for(windows), threads, 0, stream(), image,
             lattice, cells, bins, counts);
      launch(find_last_bins_kernel, list_count, find_threads, 0, stream(), bins, counts);
      launch(place_lists_kernel, 1, 1, 0, stream(), counts);
      launch(list_windows_kernel<decltype(type)::value>, grid_for(windows), threads, 0, stream(), image,
             lattice, cells, counts, lists, static_cast<unsigned long long>(list_room));
    });
    const WindowCounts& counted = downloaded(counts, 1, work_->host_counts).front();
    const std::size_t listed = counted.begins[list_count - 1] + counted.list_sizes[list_count - 1];
    if (listed > list_room) return false;
    const std::span<const FlatWindow> all = downloaded(lists, listed, work_->host_windows);
    const auto list = [&](std::size_t n) { return all.subspan(counted.begins[n], counted.list_sizes[n]); };
    for (std::size_t level = 0; level < level_count; ++level) {
      found.levels[level] = {.windows = static_cast<std::int64_t>(counted.windows[level]),
                             .constant = static_cast<std::int64_t>(counted.constant[level]),
                             .by_window = list(level),
                             .by_ring = list(level_count + level)};
    }
    return true;
  }

  std::span<const CutBlock> cut_blocks(const CutLattice& lattice) override {
    const CurrentDevice current(gpu_);
    const std::size_t count = lattice.blocks() * static_cast<std::size_t>(lattice.channels);
    if (count == 0) return {};
    auto* blocks = work_->cuts.of<CutBlock>(count);
    with_pixel_type(image_.spec.type, [&](auto type) {
      constexpr PixelType Type = decltype(type)::value;
      const auto image = samples_of<Type>(image_);
      if constexpr (!is_float(Type)) {
        if (lattice.whole_numbers) {
          launch(cut_blocks_kernel<Type, std::int32_t>, grid_for(count), threads, 0, stream(), image, lattice,
                 blocks);
          return;
        }
      }
      launch(cut_blocks_kernel<Type, double>, grid_for(count), threads, 0, stream(), image, lattice, blocks);
    });
    return downloaded(blocks, count, work_->host_cuts);
  }

  void copy(std::span<const NoiseBlock> blocks, int first_channel, int channels, Workers& workers,
            float* to) const override {
    if (blocks.empty()) return;
    const CurrentDevice current(gpu_);
    auto* places = work_->host_blocks.of<NoiseBlock>(blocks.size());
    std::copy(blocks.begin(), blocks.end(), places);
    auto* on_gpu = work_->blocks.of<NoiseBlock>(blocks.size());
    check(cudaMemcpyAsync(on_gpu, places, blocks.size_bytes(), cudaMemcpyHostToDevice, work_->stream.get()),
          "uploading the places of blocks");
    const std::size_t count = blocks.size() * static_cast<std::size_t>(channels) * batch_samples;
    const std::size_t bytes = count * static_cast<std::size_t>(bytes_per_sample(image_.spec.type));
    auto* samples = work_->samples.of<unsigned char>(bytes);
    with_pixel_type(image_.spec.type, [&](auto type) {
      launch(copy_blocks_kernel<decltype(type)::value>, grid_for(count), threads, 0, stream(),
             samples_of<decltype(type)::value>(image_), on_gpu, static_cast<long long>(blocks.size()),
             first_channel, channels, samples);
    });
    const unsigned char* from = downloaded(samples, bytes, work_->host_samples).data();
    with_sample_type(image_.spec.type,
                     [&]<class Sample>(Sample) { convert<Sample>(from, count, workers, to); });
  }

  Image on_host() override {
    const CurrentDevice current(gpu_);
    Image host(image_.spec);
    DeviceBuffer memory;
    download(host.view().data, packed(memory).data, host.bytes());
    return host;
  }

 private:
  // A list has a little more than BlockPool::most windows, unless very many are equally flat.
  static constexpr std::size_t list_room = std::size_t{list_count} * 4 * BlockPool::most;

  // Whether samples can be read as a whole.
  bool is_aligned() const {
    const std::ptrdiff_t size = bytes_per_sample(image_.spec.type);
    const Strides& strides = image_.strides;
    return reinterpret_cast<std::uintptr_t>(image_.data) % static_cast<std::uintptr_t>(size) == 0 &&
           strides.x % size == 0 && strides.y % size == 0 && strides.channel % size == 0;
  }

  // A copy of the image on the GPU, interleaved and without padding.
  ConstImageView packed(DeviceBuffer& memory) const {
    const ImageSpec& spec = image_.spec;
    const std::size_t count = static_cast<std::size_t>(spec.width) * spec.height * spec.channels;
    memory = DeviceBuffer(count * static_cast<std::size_t>(bytes_per_sample(spec.type)));
    auto* to = static_cast<unsigned char*>(memory.data());
    with_pixel_type(spec.type, [&](auto type) {
      launch(pack_kernel<decltype(type)::value>, grid_for(count), threads, 0, stream(),
             samples_of<decltype(type)::value>(image_), spec.width, spec.height, spec.channels, to);
    });
    return {to, spec, interleaved_strides(spec), image_.space};
  }

  Stream stream() const { return {work_->stream.get()}; }

  void clear(void* memory, std::size_t bytes) const {
    check(cudaMemsetAsync(memory, 0, bytes, work_->stream.get()), "clearing memory");
  }
  void download(void* to, const void* from, std::size_t bytes) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, work_->stream.get()),
          "downloading the noise's numbers");
    work_->stream.wait();
  }
  template <class T>
  std::span<const T> downloaded(const T* from, std::size_t count, GrowingPinned& to) const {
    if (count == 0) return {};
    T* host = to.of<T>(count);
    download(host, from, count * sizeof(T));
    return {host, count};
  }

  template <class Sample>
  static void convert(const unsigned char* from, std::size_t count, Workers& workers, float* to) {
    constexpr std::size_t part = 1 << 14;
    workers.for_each_quietly(static_cast<std::int64_t>((count + part - 1) / part), [&](std::int64_t n, int) {
      const std::size_t first = static_cast<std::size_t>(n) * part;
      for (std::size_t i = first; i < std::min(count, first + part); ++i) {
        Sample sample;
        std::memcpy(&sample, from + i * sizeof sample, sizeof sample);
        to[i] = to_real<float>(sample);
      }
    });
  }

  ConstImageView image_;
  int gpu_;
  DeviceBuffer packed_;  // of an image whose samples lie at odd addresses
  std::unique_ptr<Workspace> work_;
};

}  // namespace

std::unique_ptr<NoisePass> make_noise_pass(const ConstImageView& image) {
  return std::make_unique<CudaNoisePass>(image);
}

}  // namespace ungrain::cuda
