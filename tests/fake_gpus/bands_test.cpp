// Bands over several GPUs (cuda/execution.cpp), on machines that have none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "cuda/execution.h"
#include "cuda/memory.h"
#include "fake_gpus.h"
#include "test_images.h"
#include "ungrain/error.h"

namespace ungrain::testing {
namespace {

constexpr int radius = 3;

// The mean of a column of pixels: every row looks at those above and below it.
Stage column_mean() {
  const auto launch = [](const DeviceStageCall& call) {
    const ConstPlanes in = call.in[0];
    const Planes out = call.out;
    const Extent image = call.image;
    const int gpu = fake_gpus::gpu_of(cuda::handle(call.stream));
    const auto work = [=] {
      ASSERT_EQ(fake_gpus::gpu_of(in.data), gpu);
      ASSERT_EQ(fake_gpus::gpu_of(out.data), gpu);
      for (int y = out.rect.y0; y < out.rect.y1; ++y) {
        for (int x = out.rect.x0; x < out.rect.x1; ++x) {
          float sum = 0;
          int count = 0;
          for (int py = std::max(0, y - radius); py <= std::min(image.height - 1, y + radius);
               ++py, ++count) {
            sum += in.at(0, x, py);
          }
          out.at(0, x, y) = sum / static_cast<float>(count);
        }
      }
    };
    cuda::check(fake_gpus::enqueue(cuda::handle(call.stream), work), "launching a kernel");
  };
  return {.name = "mean", .reach = {.x = 0, .y = radius}, .planes = 1, .launch = launch};
}

Pipeline two_means() {
  Pipeline pipeline{.stages = {column_mean(), column_mean()}};
  for (int stage = 0; stage < 2; ++stage) pipeline.stages[static_cast<std::size_t>(stage)].reads = {stage};
  return pipeline;
}

const ImageSpec gray{.width = 37, .height = 203, .type = PixelType::f32};
constexpr std::size_t plenty = 64 << 20;

TestImage picture(const ImageSpec& spec = gray) {
  TestImage image(spec, Layout::interleaved);
  fill_with_picture(image);
  return image;
}

struct Made {
  Report report;
  std::uint64_t hash = 0;
};

Made make(const TestImage& in, std::vector<int> queues, const Options& options = {.threads = 2}) {
  TestImage out(in.view().spec, Layout::padded);
  const Report report = cuda::make_execution(two_means(), in.view().spec, options, std::move(queues))
                            ->run(in.view(), out.view());
  EXPECT_TRUE(out.guards_intact());
  return {report, hash_of(out.view())};
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(FakeGpus, BandsGoOverAllQueues) {
  fake_gpus::reset(3, plenty);
  const TestImage in = picture();
  const Made one = make(in, {0}, {.threads = 2, .band_rows = 203});
  EXPECT_EQ(one.report.bands, 1);
  const std::vector<std::vector<int>> sets = {{0}, {0, 0}, {2}, {0, 1, 2}, {1, 2, 2}};
  for (const std::vector<int>& queues : sets) {
    for (const int rows : {1, 7, 11, 64}) {
      fake_gpus::reset(3, plenty);
      const Made many = make(in, queues, {.threads = 2, .band_rows = rows});
      EXPECT_EQ(many.hash, one.hash) << rows;
      const int bands = (gray.height + rows - 1) / rows;
      EXPECT_EQ(many.report.bands, bands);
      EXPECT_EQ(many.report.queues, std::min(static_cast<int>(queues.size()), bands));
      EXPECT_EQ(many.report.gpus, static_cast<int>(std::set<int>(queues.begin(), queues.end()).size()));
      // An even share: kernels are conversion, two stages and, here, no conversion back.
      for (const int gpu : {0, 1, 2}) {
        const auto on_it = static_cast<int>(std::count(queues.begin(), queues.end(), gpu));
        const double share = 3.0 * bands * on_it / static_cast<double>(queues.size());
        EXPECT_NEAR(fake_gpus::kernels_run(gpu), share, 3.0 * std::max(1, on_it)) << gpu;
        EXPECT_EQ(fake_gpus::bytes_in_use(gpu), 0U) << gpu;
      }
    }
  }
}

TEST(FakeGpus, OtherTypesAndInPlace) {
  fake_gpus::reset(2, plenty);
  ImageSpec bytes = gray;
  bytes.type = PixelType::u8;
  const TestImage in = picture(bytes);
  const Made one = make(in, {0}, {.threads = 1, .band_rows = 203});
  for (const int rows : {1, 2, 5, 20}) {
    const Options options{.threads = 1, .band_rows = rows};
    EXPECT_EQ(make(in, {0, 1}, options).hash, one.hash);
    TestImage image = picture(bytes);
    cuda::make_execution(two_means(), bytes, options, {0, 1, 1})->run(image.view(), image.view());
    EXPECT_EQ(hash_of(image.view()), one.hash) << "in place, " << rows;
  }
}

class Rows : public RowReader, public RowWriter {
 public:
  Rows(const TestImage& in, TestImage& out) : in_(in), out_(out) {}
  void read_rows(int first, const ImageView& rows) override {
    EXPECT_EQ(first, next_in_);
    next_in_ = first + rows.spec.height;
    copy(in_.view().rows(first, rows.spec.height), rows);
  }
  void write_rows(int first, const ConstImageView& rows) override {
    EXPECT_EQ(first, next_out_);
    next_out_ = first + rows.spec.height;
    copy(rows, out_.view().rows(first, rows.spec.height));
  }

 private:
  static void copy(const ConstImageView& from, const ImageView& to) {
    for (int y = 0; y < from.spec.height; ++y) {
      std::copy_n(static_cast<const std::byte*>(from.data) + y * from.strides.y,
                  from.strides.x * from.spec.width, static_cast<std::byte*>(to.data) + y * to.strides.y);
    }
  }
  const TestImage& in_;
  TestImage& out_;
  int next_in_ = 0;
  int next_out_ = 0;
};

TEST(FakeGpus, RowsAreReadAndWrittenInOrder) {
  fake_gpus::reset(2, plenty);
  const TestImage in = picture();
  const std::uint64_t expected = make(in, {0}).hash;
  for (const int rows : {1, 6, 30}) {
    TestImage out(gray, Layout::interleaved);
    Rows file(in, out);
    const auto execution =
        cuda::make_execution(two_means(), gray, {.threads = 1, .band_rows = rows}, {0, 1, 0, 1});
    const Report report = execution->run(file, file, gray);
    EXPECT_EQ(hash_of(out.view()), expected);
    EXPECT_EQ(report.gpus, 2);
    EXPECT_EQ(report.queues, 4);
  }
}

TEST(FakeGpus, MemoryIsSharedByTheQueues) {
  const TestImage in = picture();
  fake_gpus::reset(2, plenty);
  const std::uint64_t expected = make(in, {0}).hash;
  constexpr std::size_t limit = 64 << 10;
  const Made tight = make(in, {0, 1}, {.threads = 1, .memory = limit});
  EXPECT_EQ(tight.hash, expected);
  EXPECT_LE(tight.report.buffer_bytes, limit);
  EXPECT_GT(tight.report.bands, 6);
  // Half of what is free, on the GPU that has least.
  fake_gpus::reset(2, 256 << 10);
  const Made little = make(in, {0, 0, 1}, {.threads = 1});
  EXPECT_EQ(little.hash, expected);
  EXPECT_LE(little.report.buffer_bytes, 3U * (64 << 10));
  // What is planned cannot be had: bands of half the rows.
  fake_gpus::reset(2, 96 << 10);
  const Made less = make(in, {0, 1}, {.threads = 1, .memory = 1 << 20});
  EXPECT_EQ(less.hash, expected);
  for (const int gpu : {0, 1}) EXPECT_EQ(fake_gpus::bytes_in_use(gpu), 0U);
  fake_gpus::reset(2, plenty);
  EXPECT_NE(message_of([&] { make(in, {0, 1}, {.memory = 1000}); }).find("GPU memory"), std::string::npos);
}

TEST(FakeGpus, CancelAndBadPixelsStopAllQueues) {
  fake_gpus::reset(2, plenty);
  TestImage in = picture();
  TestImage out(gray, Layout::interleaved);
  Options options{.threads = 1, .band_rows = 5};
  int calls = 0;
  options.progress = [&](double) {
    if (++calls == 3) options.cancel.cancel();
  };
  const auto cancelled = cuda::make_execution(two_means(), gray, options, {0, 1});
  EXPECT_EQ(message_of([&] { cancelled->run(in.view(), out.view()); }), "cancelled");
  EXPECT_EQ(calls, 3);

  in.set(7, 100, 0, std::numeric_limits<double>::infinity());
  const Options strict{.threads = 1, .nonfinite = NonFinite::error, .band_rows = 5};
  const auto execution = cuda::make_execution(two_means(), gray, strict, {0, 1});
  Rows file(in, out);
  EXPECT_EQ(message_of([&] { execution->run(file, file, gray); }), "pixel (7, 100) is not a finite number");
  // It can be used again.
  TestImage good = picture();
  execution->run(good.view(), out.view());
  EXPECT_EQ(hash_of(out.view()), make(good, {0}).hash);
}

TEST(FakeGpus, ImagesOfOneGpuAreNotForAll) {
  fake_gpus::reset(2, plenty);
  TestImage image = picture();
  ImageView there = image.view();
  there.space = {Space::Memory::cuda, 1};
  const auto all = cuda::make_execution(two_means(), gray, {.threads = 1}, {0, 1});
  EXPECT_EQ(message_of([&] { all->run(there, image.view()); }),
            "the input lies on GPU 1, cuda:all works on images in the host's memory");
  EXPECT_EQ(message_of([&] { all->run(image.view(), there); }),
            "the output lies on GPU 1, cuda:all works on images in the host's memory");
  EXPECT_NE(message_of([&] { all->run_async(there, there, {}); }).find("cuda:all"), std::string::npos);
  const auto other = cuda::make_execution(two_means(), gray, {.threads = 1}, {0});
  EXPECT_EQ(message_of([&] { other->run(there, there); }),
            "the input lies on GPU 1, the method runs on GPU 0");
}

}  // namespace
}  // namespace ungrain::testing
