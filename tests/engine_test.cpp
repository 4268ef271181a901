// The engine by itself, on made-up GPUs (bands over several, scarce memory) and along the slow axis.
#include "core/engine.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/border.h"
#include "cpu/cpu_backend.h"
#include "made_up_gpu.h"
#include "test_images.h"
#include "ungrain/error.h"

namespace ungrain::testing {
namespace {

constexpr int radius = 3;

// The mean of a column of pixels: every row looks at those above and below it.
Stage column_mean() {
  const auto run = [](const StageCall& call) {
    const ConstPlanes& in = call.in[0];
    const Planes& out = call.out;
    for (int y = out.rect.y0; y < out.rect.y1; ++y) {
      for (int x = out.rect.x0; x < out.rect.x1; ++x) {
        float sum = 0;
        int count = 0;
        for (int py = std::max(0, y - radius); py <= std::min(call.image.height - 1, y + radius); ++py) {
          sum += in.at(0, x, py);
          ++count;
        }
        out.at(0, x, y) = sum / static_cast<float>(count);
      }
    }
  };
  return {.name = "mean", .reach = {.x = 0, .y = radius}, .planes = 1, .run = run};
}

Pipeline two_means() {
  Pipeline pipeline{.stages = {column_mean(), column_mean()}};
  for (int stage = 0; stage < 2; ++stage) pipeline.stages[static_cast<std::size_t>(stage)].reads = {stage};
  return pipeline;
}

const ImageSpec gray{.width = 37, .height = 203, .type = PixelType::f32};
constexpr std::size_t plenty = 64 << 20;

TestImage picture(const ImageSpec& spec = gray, std::uint32_t seed = 1) {
  TestImage image(spec, Layout::interleaved);
  fill_with_picture(image, seed);
  return image;
}

struct Made {
  Report report;
  std::uint64_t hash = 0;
};

Made make(const TestImage& in, std::unique_ptr<Backend> backend, const Options& options = {.threads = 2}) {
  TestImage out(in.view().spec, Layout::padded);
  Engine engine(two_means(), in.view().spec, options, std::move(backend));
  const Report report = engine.run(in.view(), out.view());
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

TEST(MadeUpGpus, BandsGoOverAllQueues) {
  const TestImage in = picture();
  const Made one = make(in, make_cpu_backend(1));
  const std::vector<std::vector<int>> sets = {{0}, {0, 0}, {2}, {0, 1, 2}, {1, 2, 2}};
  for (const std::vector<int>& queues : sets) {
    for (const int rows : {1, 7, 11, 64}) {
      MadeUpGpus gpus(3, plenty);
      const Made many = make(in, gpus.backend(queues), {.threads = 2, .band_rows = rows});
      EXPECT_EQ(many.hash, one.hash) << rows;
      const int bands = (gray.height + rows - 1) / rows;
      EXPECT_EQ(many.report.bands, bands);
      EXPECT_EQ(many.report.queues, std::min(static_cast<int>(queues.size()), bands));
      EXPECT_EQ(many.report.gpus, static_cast<int>(std::set<int>(queues.begin(), queues.end()).size()));
      // An even share of conversions and stages.
      for (const int gpu : {0, 1, 2}) {
        const auto on_it = static_cast<int>(std::count(queues.begin(), queues.end(), gpu));
        const double share = 4.0 * bands * on_it / static_cast<double>(queues.size());
        EXPECT_NEAR(gpus.work_done(gpu), share, 4.0 * std::max(1, on_it)) << gpu;
        EXPECT_EQ(gpus.bytes_in_use(gpu), 0U) << gpu;
      }
    }
  }
}

TEST(MadeUpGpus, StagesOfOverlappingQueuesAddUpToTheRunAtMost) {
  const TestImage in = picture();
  for (const double factor : {1.0, 1e3, 1e6}) {
    MadeUpGpus gpus(1, plenty);
    gpus.stretch_time(factor);
    const Report report = make(in, gpus.backend({0, 0}), {.threads = 2, .band_rows = 11}).report;
    ASSERT_EQ(report.stages.size(), 2U);
    double sum = 0;
    for (const StageTime& stage : report.stages) {
      EXPECT_GT(stage.ms, 0);
      sum += stage.ms;
    }
    EXPECT_LE(sum, report.ms * (1 + 1e-9)) << factor;
    // Where they take longer than the run, they share all of it.
    EXPECT_GE(sum, factor == 1e6 ? report.ms * (1 - 1e-9) : 0);
  }
}

TEST(MadeUpGpus, OtherTypesAndInPlace) {
  MadeUpGpus gpus(2, plenty);
  ImageSpec bytes = gray;
  bytes.type = PixelType::u8;
  const TestImage in = picture(bytes);
  const Made one = make(in, make_cpu_backend(1));
  for (const int rows : {1, 2, 5, 20}) {
    const Options options{.threads = 1, .band_rows = rows};
    EXPECT_EQ(make(in, gpus.backend({0, 1}), options).hash, one.hash);
    TestImage image = picture(bytes);
    Engine(two_means(), bytes, options, gpus.backend({0, 1, 1})).run(image.view(), image.view());
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
  static void copy(const ConstImageView& from, const ImageView& to) {
    for (int y = 0; y < from.spec.height; ++y) {
      std::copy_n(static_cast<const std::byte*>(from.data) + y * from.strides.y,
                  from.strides.x * from.spec.width, static_cast<std::byte*>(to.data) + y * to.strides.y);
    }
  }

 private:
  const TestImage& in_;
  TestImage& out_;
  int next_in_ = 0;
  int next_out_ = 0;
};

TEST(MadeUpGpus, RowsAreReadAndWrittenInOrder) {
  MadeUpGpus gpus(2, plenty);
  const TestImage in = picture();
  const std::uint64_t expected = make(in, make_cpu_backend(1)).hash;
  for (const int rows : {1, 6, 30}) {
    TestImage out(gray, Layout::interleaved);
    Rows file(in, out);
    Engine engine(two_means(), gray, {.threads = 1, .band_rows = rows}, gpus.backend({0, 1, 0, 1}));
    const Report report = engine.run(file, file, gray);
    EXPECT_EQ(hash_of(out.view()), expected);
    EXPECT_EQ(report.gpus, 2);
    EXPECT_EQ(report.queues, 4);
  }
}

Pipeline one_mean() {
  Pipeline pipeline{.stages = {column_mean()}};
  pipeline.stages[0].reads = {0};
  return pipeline;
}

TEST(MadeUpGpus, APipelineOfTheSameSizesTakesTheMemoryOver) {
  MadeUpGpus gpus(1, plenty);
  const TestImage in = picture();
  const std::uint64_t expected = make(in, make_cpu_backend(1)).hash;
  TestImage out(gray, Layout::interleaved);
  Engine engine(two_means(), gray, {.threads = 1, .band_rows = 30}, gpus.backend({0}));
  engine.run(in.view(), out.view());
  const int allocated = gpus.allocations(0);
  EXPECT_TRUE(engine.take_over(two_means()));
  engine.run(in.view(), out.view());
  EXPECT_EQ(hash_of(out.view()), expected);
  EXPECT_EQ(gpus.allocations(0), allocated);
  EXPECT_FALSE(engine.take_over(one_mean()));
  engine.run(in.view(), out.view());
  EXPECT_EQ(hash_of(out.view()), expected);
}

// Samples of 8 bits need a quarter of what floats do.
TEST(MadeUpGpus, OutputsTakeAsMuchMemoryAsTheirTypeNeeds) {
  const TestImage in = picture();
  std::size_t bytes[2] = {};
  for (const PixelType type : {PixelType::u8, PixelType::f32}) {
    MadeUpGpus gpus(1, plenty);
    ImageSpec made = gray;
    made.type = type;
    TestImage out(made, Layout::interleaved);
    Rows file(in, out);
    Engine engine(two_means(), gray, {.threads = 1, .band_rows = gray.height}, gpus.backend({0}));
    engine.run(file, file, made);
    bytes[type == PixelType::f32] = gpus.bytes_in_use(0);
  }
  EXPECT_EQ(bytes[1] - bytes[0], 3U * gray.width * gray.height);
}

TEST(MadeUpGpus, MemoryIsSharedByTheQueues) {
  const TestImage in = picture();
  const std::uint64_t expected = make(in, make_cpu_backend(1)).hash;
  MadeUpGpus enough(2, plenty);
  constexpr std::size_t limit = 64 << 10;
  const Made tight = make(in, enough.backend({0, 1}), {.threads = 1, .memory = limit});
  EXPECT_EQ(tight.hash, expected);
  EXPECT_LE(tight.report.buffer_bytes, limit);
  EXPECT_GT(tight.report.bands, 6);
  // Half of what is free, on the GPU that has least.
  MadeUpGpus scarce(2, 256 << 10);
  const Made little = make(in, scarce.backend({0, 0, 1}), {.threads = 1});
  EXPECT_EQ(little.hash, expected);
  EXPECT_LE(little.report.buffer_bytes, 3U * (64 << 10));
  // What is planned cannot be had: bands of half the rows.
  MadeUpGpus scarcer(2, 96 << 10);
  const Made less = make(in, scarcer.backend({0, 1}), {.threads = 1, .memory = 1 << 20});
  EXPECT_EQ(less.hash, expected);
  for (const int gpu : {0, 1}) EXPECT_EQ(scarcer.bytes_in_use(gpu), 0U);
  EXPECT_NE(message_of([&] {
              make(in, enough.backend({0, 1}), {.memory = 1000});
            }).find("GPU memory"),
            std::string::npos);
}

TEST(MadeUpGpus, CancelAndBadPixelsStopAllQueues) {
  MadeUpGpus gpus(2, plenty);
  TestImage in = picture();
  TestImage out(gray, Layout::interleaved);
  Options options{.threads = 1, .band_rows = 5};
  int calls = 0;
  options.progress = [&](double) {
    if (++calls == 3) options.cancel.cancel();
  };
  Engine cancelled(two_means(), gray, options, gpus.backend({0, 1}));
  EXPECT_EQ(message_of([&] { cancelled.run(in.view(), out.view()); }), "cancelled");
  EXPECT_EQ(calls, 3);

  in.set(7, 100, 0, std::numeric_limits<double>::infinity());
  Engine strict(two_means(), gray, {.threads = 1, .nonfinite = NonFinite::error, .band_rows = 5},
                gpus.backend({0, 1}));
  Rows file(in, out);
  EXPECT_EQ(message_of([&] { strict.run(file, file, gray); }), "pixel (7, 100) is not a finite number");
  // It can be used again.
  TestImage good = picture();
  strict.run(good.view(), out.view());
  EXPECT_EQ(hash_of(out.view()), make(good, gpus.backend({0})).hash);
}

// ---- the slow axis

// A weighted sum over slices; what stands nowhere weighs nothing. Weights differ, so that order shows.
Stage slice_sum(int before, int after, std::vector<int> reads) {
  const auto run = [before, after](const StageCall& call) {
    for (int y = call.out.rect.y0; y < call.out.rect.y1; ++y) {
      for (int x = call.out.rect.x0; x < call.out.rect.x1; ++x) {
        for (int plane = 0; plane < call.out.count; ++plane) {
          float sum = 0;
          for (int offset = -before; offset <= after; ++offset) {
            const ConstPlanes& planes = call.at(0, offset);
            if (planes.data == nullptr) continue;
            sum += planes.at(plane, x, y) / static_cast<float>(offset + before + 2);
          }
          call.out.at(plane, x, y) = sum;
        }
      }
    }
  };
  return {.name = "slices",
          .reach = {.before = before, .after = after},
          .planes = 1,
          .reads = std::move(reads),
          .run = run};
}

// Over rows, over slices, over rows, over other slices.
Pipeline through_slices(Border border, int before = 2, int after = 1) {
  Pipeline pipeline{
      .stages = {column_mean(), slice_sum(before, after, {1}), column_mean(), slice_sum(1, 2, {3})},
      .slow_border = border};
  pipeline.stages[0].reads = {0};
  pipeline.stages[2].reads = {2};
  return pipeline;
}

const ImageSpec slice_spec{.width = 19, .height = 33, .type = PixelType::f32};

struct Sequence : ImageSequence {
  explicit Sequence(int count, const ImageSpec& spec = slice_spec) : ImageSequence(count, spec) {}
};

class Stack : public SliceReader, public SliceWriter {
 public:
  Stack(const Sequence& in, Sequence& out, std::vector<int> cuts = {0}, bool once = true)
      : in_(in), out_(out), cuts_(std::move(cuts)), once_(once) {}
  bool has(int slice) override { return slice < static_cast<int>(in_.images.size()); }
  void read_rows(int slice, int first, const ImageView& rows) override {
    const bool first_time = read_.insert({slice, first}).second;
    EXPECT_TRUE(first_time || !once_) << slice << " " << first;
    Rows::copy(in_.images[static_cast<std::size_t>(slice)].view().rows(first, rows.spec.height), rows);
    rows_read += rows.spec.height;
  }
  bool starts_scene(int slice) override { return std::count(cuts_.begin(), cuts_.end(), slice) > 0; }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    EXPECT_EQ(std::pair(slice, first), next_out_);
    const bool last = first + rows.spec.height == in_.images.front().view().spec.height;
    next_out_ = last ? std::pair(slice + 1, 0) : std::pair(slice, first + rows.spec.height);
    Rows::copy(rows, out_.images[static_cast<std::size_t>(slice)].view().rows(first, rows.spec.height));
  }
  int rows_read = 0;

 private:
  const Sequence& in_;
  Sequence& out_;
  std::vector<int> cuts_;
  bool once_;
  std::set<std::pair<int, int>> read_;
  std::pair<int, int> next_out_;
};

// Every slice computed from the definition, each stage on whole slices.
std::vector<std::uint64_t> by_definition(const Sequence& in, const Pipeline& pipeline,
                                         const std::vector<int>& cuts) {
  const int count = static_cast<int>(in.images.size());
  const Rect rect{0, 0, slice_spec.width, slice_spec.height};
  std::vector<std::vector<std::vector<float>>> results(pipeline.stages.size() + 1);
  const auto planes = [&](std::vector<float>& values) {
    return Planes{values.data(), rect, rect.width(), 0, 1};
  };
  for (const TestImage& image : in.images) {
    std::vector<float> values;
    for (int y = 0; y < rect.height(); ++y) {
      for (int x = 0; x < rect.width(); ++x) values.push_back(static_cast<float>(image.at(x, y, 0)));
    }
    results[0].push_back(values);
  }
  Workers workers(1);
  for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
    const Stage& stage = pipeline.stages[index];
    for (int slice = 0; slice < count; ++slice) {
      int begin = slice;
      while (begin > 0 && std::count(cuts.begin(), cuts.end(), begin) == 0) --begin;
      int end = slice + 1;
      while (end < count && std::count(cuts.begin(), cuts.end(), end) == 0) ++end;
      std::vector<ConstPlanes> at;
      for (int offset = -stage.reach.before; offset <= stage.reach.after; ++offset) {
        const int found = border_index(pipeline.slow_border, slice + offset - begin, end - begin);
        at.push_back(found == no_pixel ? ConstPlanes{}
                                       : ConstPlanes(planes(results[static_cast<std::size_t>(
                                             stage.reads[0])][static_cast<std::size_t>(begin + found)])));
      }
      std::vector<float> made(static_cast<std::size_t>(rect.width()) * rect.height());
      stage.run({{at, planes(made), {rect.width(), rect.height()}, stage.reach}, workers, {}});
      results[index + 1].push_back(made);
    }
  }
  std::vector<std::uint64_t> hashes;
  for (std::vector<float>& values : results.back()) {
    hashes.push_back(hash_of(ConstImageView(values.data(), slice_spec)));
  }
  return hashes;
}

// On the CPU and on a made-up GPU.
std::vector<std::unique_ptr<Backend>> backends(MadeUpGpus& gpus) {
  std::vector<std::unique_ptr<Backend>> list;
  list.push_back(make_cpu_backend(2));
  list.push_back(gpus.backend({0}));
  return list;
}

constexpr Border all_borders[] = {Border::symmetric, Border::mirror, Border::clamp,
                                  Border::constant,  Border::wrap,   Border::shrink};

TEST(SlowAxis, EveryWayToRunASequenceGivesTheDefinition) {
  for (const Border border : all_borders) {
    for (const int count : {1, 2, 3, 9}) {
      const Sequence in(count);
      const Pipeline pipeline = through_slices(border);
      const std::vector<std::uint64_t> expected = by_definition(in, pipeline, {0});
      for (const int band : {0, 1, 5, 32}) {
        SCOPED_TRACE(::testing::Message() << "border " << static_cast<int>(border) << ", " << count
                                          << " slices, bands of " << band);
        MadeUpGpus gpus(1, plenty);
        for (std::unique_ptr<Backend>& backend : backends(gpus)) {
          Engine engine(pipeline, slice_spec, {.threads = 2, .band_rows = band}, std::move(backend));
          Sequence out(count);
          engine.run(in.views(), out.views());
          EXPECT_EQ(out.hashes(), expected) << "views";

          Sequence in_place(count);
          engine.run(std::as_const(in_place).views(), in_place.views());
          EXPECT_EQ(in_place.hashes(), expected) << "in place";

          Sequence streamed(count);
          const bool once = band == 0 && border != Border::wrap;
          Stack stack(in, streamed, {0}, once);
          engine.run(stack, stack, slice_spec);
          EXPECT_EQ(streamed.hashes(), expected) << "streamed";
          EXPECT_TRUE(!once || stack.rows_read == count * slice_spec.height) << stack.rows_read;

          for (int slice = count - 1; slice >= 0; slice -= 2) {
            TestImage alone(slice_spec, Layout::interleaved);
            const std::vector<ConstImageView> views = in.views();
            engine.run_centre(views, slice, alone.view());
            EXPECT_EQ(hash_of(alone.view()), expected[static_cast<std::size_t>(slice)]) << "alone " << slice;
          }
        }
        EXPECT_EQ(gpus.bytes_in_use(0), 0U);
      }
    }
  }
}

TEST(SlowAxis, SlicesInAnyOrderReadWhatTheyNeed) {
  const Sequence in(12);
  const Pipeline pipeline = through_slices(Border::mirror);
  const std::vector<std::uint64_t> expected = by_definition(in, pipeline, {0, 4, 5});
  MadeUpGpus gpus(1, plenty);
  for (std::unique_ptr<Backend>& backend : backends(gpus)) {
    Engine engine(pipeline, slice_spec, {.threads = 2}, std::move(backend));
    Sequence out(12);
    Stack stack(in, out, {0, 4, 5}, false);
    for (const int slice : {7, 8, 9, 3, 0, 11, 5, 4, 4, 10, 6}) {
      TestImage alone(slice_spec, Layout::interleaved);
      const int before = stack.rows_read;
      engine.run_slice(stack, slice, alone.view());
      EXPECT_EQ(hash_of(alone.view()), expected[static_cast<std::size_t>(slice)]) << slice;
      // The slice after one that was made needs one more.
      EXPECT_TRUE(slice != 8 || stack.rows_read - before == slice_spec.height) << stack.rows_read - before;
    }
    Sequence all(12);
    Stack again(in, all, {0, 4, 5});
    engine.run(again, again, slice_spec);
    EXPECT_EQ(all.hashes(), expected);
  }
}

TEST(SlowAxis, NothingIsUploadedOrComputedTwice) {
  const Sequence in(20);
  Sequence out(20);
  MadeUpGpus gpus(1, plenty);
  Engine engine(through_slices(Border::clamp), slice_spec, {.threads = 2}, gpus.backend({0}));
  Stack stack(in, out);
  engine.run(stack, stack, slice_spec);
  EXPECT_EQ(gpus.uploads(0), 20);
  EXPECT_EQ(gpus.work_done(0), 20 * (1 + 4 + 1));
}

// Larger than a band of a single image would be.
TEST(SlowAxis, LargeSlicesThatFitTheMemoryAreReadOnce) {
  ImageSpec spec = slice_spec;
  spec.width = 1100;
  spec.height = 1000;
  spec.type = PixelType::u8;
  const Sequence in(4, spec);
  MadeUpGpus gpus(1, std::size_t{1} << 30U);
  for (std::unique_ptr<Backend>& backend : backends(gpus)) {
    Sequence out(4, spec);
    Stack stack(in, out);
    Engine engine(through_slices(Border::clamp), spec, {.threads = 2}, std::move(backend));
    engine.run(stack, stack, spec);
    EXPECT_EQ(stack.rows_read, 4 * spec.height);
  }
}

TEST(SlowAxis, AStackOfSingleImagesWhereNothingLooksAlong) {
  const Sequence in(7);
  MadeUpGpus gpus(2, plenty);
  for (const int band : {0, 1, 8}) {
    for (const bool on_gpu : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "bands of " << band << (on_gpu ? " on GPUs" : " on the CPU"));
      Engine engine(two_means(), slice_spec, {.threads = 2, .band_rows = band},
                    on_gpu ? gpus.backend({0, 1}) : make_cpu_backend(2));
      Sequence alone(7);
      for (std::size_t slice = 0; slice < in.images.size(); ++slice) {
        engine.run(in.images[slice].view(), alone.images[slice].view());
      }
      Sequence out(7);
      Stack stack(in, out);
      engine.run(stack, stack, slice_spec);
      EXPECT_EQ(out.hashes(), alone.hashes()) << "streamed";

      Sequence made(7);
      engine.run(in.views(), made.views());
      EXPECT_EQ(made.hashes(), alone.hashes()) << "views";

      Sequence in_place(7);
      engine.run(std::as_const(in_place).views(), in_place.views());
      EXPECT_EQ(in_place.hashes(), alone.hashes()) << "in place";

      Sequence one_by_one(7);
      Stack again(in, out);
      for (std::size_t slice = 0; slice < in.images.size(); ++slice) {
        engine.run_slice(again, static_cast<int>(slice), one_by_one.images[slice].view());
      }
      EXPECT_EQ(one_by_one.hashes(), alone.hashes()) << "one by one";
    }
  }
}

TEST(SlowAxis, AlphaAndBadPixelsStayWithTheirSlice) {
  ImageSpec spec = slice_spec;
  spec.channels = 2;
  spec.alpha = true;
  for (const int band : {0, 6}) {
    MadeUpGpus gpus(1, plenty);
    for (std::unique_ptr<Backend>& backend : backends(gpus)) {
      Sequence in(6, spec);
      in.images[3].set(4, 9, 0, std::numeric_limits<double>::quiet_NaN());
      Engine engine(through_slices(Border::clamp), spec,
                    {.threads = 2, .nonfinite = NonFinite::keep, .band_rows = band}, std::move(backend));
      Sequence out(6, spec);
      Stack stack(in, out, {0}, false);
      const Report report = engine.run(stack, stack, spec);
      EXPECT_EQ(report.nonfinite_pixels, 1);
      EXPECT_TRUE(std::isnan(out.images[3].at(4, 9, 0)));
      EXPECT_FALSE(std::isnan(out.images[2].at(4, 9, 0)));
      for (std::size_t slice = 0; slice < 6; ++slice) {
        for (int y = 0; y < spec.height; ++y) {
          ASSERT_EQ(out.images[slice].at(7, y, 1), in.images[slice].at(7, y, 1)) << slice << " " << y;
        }
      }
    }
  }
}

TEST(SlowAxis, SlicesTooLargeForTheMemoryAreWorkedOnInBands) {
  ImageSpec spec = slice_spec;
  spec.height = 400;
  const Sequence in(5, spec);
  const Pipeline pipeline = through_slices(Border::symmetric);
  Sequence whole(5, spec);
  Engine(pipeline, spec, {.threads = 1}, make_cpu_backend(1)).run(in.views(), whole.views());
  constexpr std::size_t limit = 300 << 10;
  Sequence out(5, spec);
  const Report report = Engine(pipeline, spec, {.threads = 1, .memory = limit}, make_cpu_backend(1))
                            .run(in.views(), out.views());
  EXPECT_GT(report.bands, 5);
  EXPECT_LE(report.buffer_bytes, limit);
  EXPECT_EQ(out.hashes(), whole.hashes());
  MadeUpGpus gpus(1, plenty);
  Sequence on_gpu(5, spec);
  EXPECT_GT(Engine(pipeline, spec, {.threads = 1, .memory = limit}, gpus.backend({0}))
                .run(in.views(), on_gpu.views())
                .bands,
            5);
  EXPECT_EQ(on_gpu.hashes(), whole.hashes());
}

TEST(SlowAxis, ResultsAreOfAnyType) {
  // Float to bytes, bytes over slices to 32-bit integers, and back.
  const auto each = [](const StageCall& call, auto body) {
    for (int y = call.typed_out.rect.y0; y < call.typed_out.rect.y1; ++y) {
      for (int x = call.typed_out.rect.x0; x < call.typed_out.rect.x1; ++x) body(x, y);
    }
  };
  Pipeline pipeline;
  pipeline.stages.push_back({.name = "bytes",
                             .planes = 1,
                             .element = Element::u8,
                             .reads = {0},
                             .run = [each](const StageCall& call) {
                               const auto out = call.typed_out.as<std::uint8_t>();
                               each(call, [&](int x, int y) {
                                 out.at(0, x, y) = static_cast<std::uint8_t>(255 * call.in[0].at(0, x, y));
                               });
                             }});
  pipeline.stages.push_back({.name = "sum",
                             .reach = {.y = 1, .before = 1},
                             .planes = 1,
                             .element = Element::i32,
                             .reads = {1},
                             .run = [each](const StageCall& call) {
                               const auto out = call.typed_out.as<std::int32_t>();
                               const auto now = call.typed_in[1].as<const std::uint8_t>();
                               const auto then = call.typed_in[0].as<const std::uint8_t>();
                               each(call, [&](int x, int y) {
                                 const int below = std::min(y + 1, call.image.height - 1);
                                 out.at(0, x, y) = 1000 * now.at(0, x, y) + then.at(0, x, below);
                               });
                             }});
  pipeline.stages.push_back(
      {.name = "floats", .planes = 1, .reads = {2}, .run = [each](const StageCall& call) {
         const auto in = call.typed_in[0].as<const std::int32_t>();
         each(call, [&](int x, int y) { call.out.at(0, x, y) = static_cast<float>(in.at(0, x, y)); });
       }});
  const Sequence in(4);
  std::vector<std::vector<std::uint64_t>> seen;
  for (const int band : {0, 4}) {
    MadeUpGpus gpus(1, plenty);
    for (std::unique_ptr<Backend>& backend : backends(gpus)) {
      Engine engine(pipeline, slice_spec, {.threads = 1, .band_rows = band}, std::move(backend));
      Sequence out(4);
      engine.run(in.views(), out.views());
      const int now = static_cast<int>(255 * static_cast<float>(in.images[2].at(3, 5, 0)));
      const int then = static_cast<int>(255 * static_cast<float>(in.images[1].at(3, 6, 0)));
      EXPECT_EQ(out.images[2].at(3, 5, 0), 1000 * now + then);
      seen.push_back(out.hashes());
    }
  }
  for (const auto& hashes : seen) EXPECT_EQ(hashes, seen.front());
}

TEST(SlowAxis, ErrorsSayWhatIsWrong) {
  Engine engine(two_means(), slice_spec, {.threads = 1}, make_cpu_backend(1));
  Sequence in(3);
  Sequence out(2);
  EXPECT_EQ(message_of([&] { engine.run(std::as_const(in).views(), out.views()); }),
            "3 images cannot become 2");
  const std::vector<ConstImageView> views = std::as_const(in).views();
  EXPECT_EQ(message_of([&] { engine.run_centre(views, 3, out.images[0].view()); }),
            "image 3 of a window of 3 cannot be made");
  std::vector<ImageView> turned = in.views();
  std::reverse(turned.begin(), turned.end());
  EXPECT_EQ(message_of([&] { engine.run(views, turned); }),
            "an image's result cannot lie where another image lies");
  Stack stack(in, out);
  EXPECT_EQ(message_of([&] { engine.run_slice(stack, 3, out.images[0].view()); }),
            "the sequence has no image 3");
}

}  // namespace
}  // namespace ungrain::testing
