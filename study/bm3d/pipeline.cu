#include "study/bm3d/pipeline.cuh"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ungrain::study::bm3d {
namespace {

// A block for each group, a thread for each pixel of a patch.
__global__ void assemble_kernel(GroupCall call) {
  const int group = static_cast<int>(blockIdx.x);
  const int px = thread_x() % patch;
  const int py = thread_x() / patch;
  const int x = call.references.x(call.batch.i + group % call.batch.columns);
  const int y = call.references.y(call.batch.j + group / call.batch.columns);
  const int size = call.sizes[group];
  for (int n = 0; n < size; ++n) {
    const Shift shift = shift_of(call.lists[group * most_patches + n]);
    call.patch_of(group, n)[py * call.pitch + px] =
        call.picture.bytes[(y + shift.y + py) * call.picture.stride + x + shift.x + px];
  }
}

__global__ void aggregate_kernel(GroupCall call) {
  const int group = static_cast<int>(blockIdx.x);
  const int px = thread_x() % patch;
  const int py = thread_x() / patch;
  const int x = call.references.x(call.batch.i + group % call.batch.columns);
  const int y = call.references.y(call.batch.j + group / call.batch.columns);
  const int size = call.sizes[group];
  const float weight = call.weights[group];
  for (int n = 0; n < size; ++n) {
    const Shift shift = shift_of(call.lists[group * most_patches + n]);
    const int at = (y + shift.y + py) * call.picture.width + x + shift.x + px;
    atomicAdd(call.numerator + at, weight * call.patch_of(group, n)[py * call.pitch + px]);
    atomicAdd(call.denominator + at, weight);
  }
}

__global__ void divide_kernel(float* out, const float* numerator, const float* denominator, int pixels) {
  const int i = first_column() + thread_x();
  if (i < pixels) out[i] = numerator[i] / denominator[i];
}

__global__ void quads_kernel(Picture picture, std::uint32_t* quads) {
  const int x = first_column() + thread_x();
  const int y = static_cast<int>(blockIdx.y);
  if (x >= picture.width) return;
  std::uint32_t quad = 0;
  for (int r = 0; r < 4; ++r)  // those below the picture are in no patch; the margin holds them
    quad |= static_cast<std::uint32_t>(picture.bytes[(y + r) * picture.stride + x]) << (8 * r);
  quads[y * picture.width + x] = quad;
}

// Everything that lives as long as the rung.
struct Buffers {
  cuda::DeviceBuffer lists;
  cuda::DeviceBuffer sizes;
  cuda::DeviceBuffer weights;
  cuda::DeviceBuffer groups;
  cuda::DeviceBuffer sums;
  cuda::DeviceBuffer quads;
};

}  // namespace

std::shared_ptr<const cuda::DeviceBuffer> cosine_table() {
  std::vector<float> table(static_cast<std::size_t>((most_patches + 1) * square));
  for (int size = 1; size <= most_patches; ++size) {
    for (int u = 0; u < size; ++u) {
      const double scale = std::sqrt((u == 0 ? 1.0 : 2.0) / size);
      for (int n = 0; n < size; ++n) {
        table[static_cast<std::size_t>(size * square + u * most_patches + n)] =
            static_cast<float>(scale * std::cos(std::numbers::pi * (2 * n + 1) * u / (2.0 * size)));
      }
    }
  }
  return upload(table);
}

Size batch_of(const RungCall& call) {
  const References references(call.device);
  return {std::min(call.shape.batch.width, references.columns),
          std::min(call.shape.batch.height, references.rows)};
}

Prepared prepared_parts(std::function<void(const PartBegins&)> parts, const std::optional<KernelUse>& use) {
  return {.enqueue = [parts] { parts([](const char*) {}); }, .enqueue_parts = parts, .use = use};
}

std::optional<Prepared> in_batches(const RungCall& call, const BatchVersion& version) {
  if (!version.use) return {};
  const Picture picture = call.device;
  const References references(picture);
  const Size batch = batch_of(call);
  const auto groups = static_cast<std::size_t>(batch.width) * static_cast<std::size_t>(batch.height);
  const auto pixels = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height);
  const auto buffers = std::make_shared<Buffers>();
  buffers->lists = cuda::DeviceBuffer(groups * most_patches * sizeof(Key));
  buffers->sizes = cuda::DeviceBuffer(groups * sizeof(int));
  buffers->weights = cuda::DeviceBuffer(groups * sizeof(float));
  buffers->groups = cuda::DeviceBuffer(groups * most_patches * patch *
                                       static_cast<std::size_t>(version.pitch) * sizeof(float));
  buffers->sums = cuda::DeviceBuffer(2 * pixels * sizeof(float));
  if (version.quads) buffers->quads = cuda::DeviceBuffer(pixels * sizeof(std::uint32_t));
  // Patches that a group does not have are transformed too, and are never looked at.
  cuda::check(cudaMemset(buffers->groups.data(), 0, buffers->groups.size()), "clearing memory");

  const auto parts = [=, threshold = squared_threshold(call.strengths),
                      reach = call.strengths.radius](const PartBegins& begin) {
    auto* quads = static_cast<std::uint32_t*>(buffers->quads.data());
    auto* sums = static_cast<float*>(buffers->sums.data());
    auto* lists = static_cast<Key*>(buffers->lists.data());
    auto* sizes = static_cast<int*>(buffers->sizes.data());
    begin("the rest");
    cuda::check(cudaMemsetAsync(sums, 0, buffers->sums.size(), nullptr), "clearing memory");
    constexpr int threads = 256;
    if (quads != nullptr) {
      const dim3 grid(static_cast<unsigned>(cuda::blocks_for(picture.width, threads)),
                      static_cast<unsigned>(picture.height));
      cuda::launch(quads_kernel, grid, dim3(threads), 0, Stream{}, picture, quads);
    }
    for (int j = 0; j < references.rows; j += batch.height) {
      for (int i = 0; i < references.columns; i += batch.width) {
        const Batch piece{i, j, std::min(batch.width, references.columns - i),
                          std::min(batch.height, references.rows - j)};
        begin("matching");
        version.match({picture, references, piece, reach, lists, sizes, quads});
        const GroupCall of_piece{.picture = picture,
                                 .references = references,
                                 .batch = piece,
                                 .lists = lists,
                                 .sizes = sizes,
                                 .weights = static_cast<float*>(buffers->weights.data()),
                                 .groups = static_cast<float*>(buffers->groups.data()),
                                 .pitch = version.pitch,
                                 .numerator = sums,
                                 .denominator = sums + pixels,
                                 .threshold = threshold};
        const dim3 grid(static_cast<unsigned>(piece.groups()));
        begin("assembling");
        cuda::launch(assemble_kernel, grid, dim3(patch_pixels), 0, Stream{}, of_piece);
        version.filter(of_piece, begin);
        begin("aggregation");
        cuda::launch(aggregate_kernel, grid, dim3(patch_pixels), 0, Stream{}, of_piece);
      }
    }
    begin("the rest");
    cuda::launch(divide_kernel,
                 dim3(static_cast<unsigned>(cuda::blocks_for(static_cast<int>(pixels), threads))),
                 dim3(threads), 0, Stream{}, picture.out, static_cast<const float*>(sums),
                 static_cast<const float*>(sums + pixels), static_cast<int>(pixels));
  };
  return prepared_parts(parts, version.use);
}

}  // namespace ungrain::study::bm3d
