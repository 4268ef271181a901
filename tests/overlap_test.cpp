// Reading, filtering and writing at the same time.
#include <chrono>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "core/background.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Rows of one value that take their time, and may fail.
class SlowReader : public RowReader {
 public:
  SlowReader(double seconds_a_call, int fails_at) : seconds_(seconds_a_call), fails_at_(fails_at) {}
  void read_rows(int first, const ImageView& rows) override {
    const Clock::time_point start = Clock::now();
    EXPECT_EQ(first, next_);
    next_ = first + rows.spec.height;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    if (next_ > fails_at_) throw Error(ErrorCode::io, "the disk is gone");
    for (int y = 0; y < rows.spec.height; ++y) {
      auto* row = static_cast<std::uint8_t*>(rows.rows(y, 1).data);
      std::fill_n(row, rows.spec.width, static_cast<std::uint8_t>(first + y));
    }
    busy += seconds_since(start);
  }
  double busy = 0;

 private:
  double seconds_;
  int fails_at_;
  int next_ = 0;
};

class SlowWriter : public RowWriter {
 public:
  SlowWriter(double seconds_a_call, int fails_at) : seconds_(seconds_a_call), fails_at_(fails_at) {}
  void write_rows(int first, const ConstImageView& rows) override {
    const Clock::time_point start = Clock::now();
    EXPECT_EQ(first, next);
    next = first + rows.spec.height;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    if (next > fails_at_) throw Error(ErrorCode::io, "no space left");
    for (int y = 0; y < rows.spec.height; ++y) {
      EXPECT_EQ(*static_cast<const std::uint8_t*>(rows.rows(y, 1).data),
                static_cast<std::uint8_t>(first + y));
    }
    busy += seconds_since(start);
  }
  double busy = 0;
  int next = 0;

 private:
  double seconds_;
  int fails_at_;
};

constexpr int never = 1 << 20;
const ImageSpec spec{.width = 16, .height = 200};

// Leaves rows of one value as they are, and looks at their neighbours all the same.
Denoiser denoiser(const Options& options = {.device = {Device::Kind::cpu}, .threads = 2, .band_rows = 10}) {
  return Denoiser::create(MedianParams{.radius = 1}, spec, options);
}

TEST(Overlap, TakesLessThanTheSum) {
  SlowReader reader(0.01, never);
  SlowWriter writer(0.01, never);
  Denoiser d = denoiser();
  const Clock::time_point start = Clock::now();
  d.run(reader, writer, spec);
  EXPECT_LT(seconds_since(start), 0.8 * (reader.busy + writer.busy));
  EXPECT_EQ(writer.next, spec.height);
}

TEST(Overlap, FailuresComeThrough) {
  for (const bool of_reader : {true, false}) {
    Denoiser d = denoiser();
    SlowReader reader(0, of_reader ? 90 : never);
    SlowWriter writer(0, of_reader ? never : 90);
    try {
      d.run(reader, writer, spec);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), of_reader ? "the disk is gone" : "no space left");
    }
    SlowReader good(0, never);
    SlowWriter target(0, never);
    d.run(good, target, spec);
    EXPECT_EQ(target.next, spec.height);
  }
}

TEST(Overlap, TheLastRowsMayFailToo) {
  Denoiser d = denoiser();
  SlowReader reader(0, never);
  SlowWriter writer(0.005, spec.height - 1);
  EXPECT_THROW(d.run(reader, writer, spec), Error);
}

TEST(Overlap, CanBeCancelled) {
  Options options{.device = {Device::Kind::cpu}, .threads = 2, .band_rows = 10};
  Denoiser d = denoiser(options);
  SlowReader reader(0.005, never);
  SlowWriter writer(0.005, never);
  std::thread hand([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    options.cancel.cancel();
  });
  try {
    d.run(reader, writer, spec);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  hand.join();
  EXPECT_LT(writer.next, spec.height);
}

TEST(Overlap, OneBandNeedsNoThread) {
  Denoiser d = denoiser({.device = {Device::Kind::cpu}, .threads = 1, .band_rows = spec.height});
  SlowReader reader(0, never);
  SlowWriter writer(0, never);
  EXPECT_EQ(d.run(reader, writer, spec).bands, 1);
}

TEST(Background, ThrowsOnceAndGoesOn) {
  Background background;
  background.wait();
  int done = 0;
  background.start([] { throw std::runtime_error("no"); });
  EXPECT_THROW(background.wait(), std::runtime_error);
  background.wait();
  background.start([&] { ++done; });
  background.wait();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace ungrain::testing
