#include "core/workers.h"

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ungrain/error.h"
#include "ungrain/methods/box.h"

namespace ungrain {
namespace {

// Resident memory of this process; 0 where the system does not tell.
std::int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

TEST(Workers, EveryItemOnceAndWorkersApart) {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    ASSERT_EQ(workers.count(), threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> seen(997);
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
      workers.for_each(997, [&](std::int64_t item, int worker) {
        ASSERT_LT(worker, threads);
        EXPECT_EQ(busy[static_cast<std::size_t>(worker)]++, 0) << "two calls share a worker";
        ++seen[static_cast<std::size_t>(item)];
        --busy[static_cast<std::size_t>(worker)];
      });
      for (const std::atomic<int>& count : seen) ASSERT_EQ(count, 1);
    }
  }
}

// Many short steps, whose results each depend on the step before.
TEST(Workers, StayAwakeOverManySteps) {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    int calls = 0;
    std::vector<int> values(37);
    workers.stay_awake([&] {
      ++calls;
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
      for (int step = 0; step < 500; ++step) {
        workers.for_each_quietly(37, [&](std::int64_t item, int worker) {
          ASSERT_LT(worker, threads);
          EXPECT_EQ(busy[static_cast<std::size_t>(worker)]++, 0) << "two calls share a worker";
          EXPECT_EQ(values[static_cast<std::size_t>(item)]++, step) << "a step began before the last ended";
          --busy[static_cast<std::size_t>(worker)];
        });
        workers.for_each_quietly(1, [&](std::int64_t, int worker) { ASSERT_LT(worker, threads); });
      }
    });
    EXPECT_EQ(calls, 1);
    for (const int value : values) EXPECT_EQ(value, 500);
    EXPECT_THROW(workers.stay_awake([&] {
      workers.for_each_quietly(10, [](std::int64_t item, int) {
        if (item == 3) throw std::runtime_error("item");
      });
    }),
                 std::runtime_error);
    EXPECT_THROW(workers.stay_awake([] { throw std::runtime_error("body"); }), std::runtime_error);
    std::atomic<int> after{0};
    workers.for_each(20, [&](std::int64_t, int) { ++after; });
    EXPECT_EQ(after, 20);
  }
}

// Several at once, each from a thread of its own: more threads than workers, and bodies that run others.
TEST(Workers, RunSideBySideAndInsideOneAnother) {
  constexpr int threads = 2;
  std::vector<std::thread> callers;
  std::atomic<int> total{0};
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        Workers workers(threads);
        std::vector<std::atomic<int>> busy(threads);
        workers.for_each(20, [&](std::int64_t item, int worker) {
          ASSERT_LT(worker, threads);
          EXPECT_EQ(busy[static_cast<std::size_t>(worker)]++, 0) << "two calls share a worker";
          if (item == 0) Workers(threads).for_each(5, [&](std::int64_t, int) { ++total; });
          ++total;
          --busy[static_cast<std::size_t>(worker)];
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 6 * 300 * 25);
}

// oneTBB 2021.8 keeps about 7 KiB of every arena that is destroyed.
TEST(Workers, ManyDenoisersKeepNoMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
#endif
  if (resident_kib() == 0) GTEST_SKIP() << "the system does not tell a process's memory";
  const ImageSpec spec{.width = 128, .height = 128, .type = PixelType::u8};
  const std::vector<std::uint8_t> image(128 * 128, 100);
  std::vector<std::uint8_t> result(image.size());
  const auto create_and_run = [&](int times) {
    for (int time = 0; time < times; ++time) {
      Options options;
      options.device = Device{Device::Kind::cpu};
      options.threads = 2;
      Denoiser::create(BoxParams{.radius = 1}, spec, options)
          .run({image.data(), spec}, {result.data(), spec});
    }
  };
  create_and_run(500);
  const std::int64_t before = resident_kib();
  create_and_run(20'000);
  EXPECT_LT(resident_kib() - before, 8 * 1024);
}

TEST(Workers, PartsOfTheItems) {
  for (const int threads : {1, 3}) {
    Workers workers(threads);
    std::int64_t last = 0;
    workers.watch(nullptr, [&](std::int64_t done, std::int64_t of) {
      EXPECT_EQ(of, 100);
      EXPECT_GT(done, last);
      last = done;
    });
    std::vector<std::atomic<int>> seen(100);
    const auto see = [&](std::int64_t item, int) { ++seen[static_cast<std::size_t>(item)]; };
    workers.for_each_of(0, 60, 100, see);
    EXPECT_LE(last, 60);
    const std::int64_t before = last;
    workers.for_each_quietly(100, see);
    EXPECT_EQ(last, before);
    workers.for_each_of(60, 100, 100, see);
    EXPECT_LE(last, 100);
    for (const std::atomic<int>& count : seen) ASSERT_EQ(count, 2);
  }
}

TEST(Workers, ExceptionsComeThrough) {
  Workers workers(3);
  const auto fail = [](std::int64_t item, int) {
    if (item == 40) throw std::runtime_error("item 40");
  };
  EXPECT_THROW(workers.for_each(100, fail), std::runtime_error);
  std::atomic<int> count{0};
  workers.for_each(10, [&](std::int64_t, int) { ++count; });  // and the workers are as before
  EXPECT_EQ(count, 10);
}

TEST(Workers, CancelAndProgress) {
  Workers workers(2);
  CancelToken cancel;
  std::int64_t last = 0;
  workers.watch(&cancel, [&](std::int64_t done, std::int64_t of) {
    EXPECT_EQ(of, 1000);
    last = done;
    if (done > 100) cancel.cancel();
  });
  EXPECT_THROW(workers.for_each(1000, [](std::int64_t, int) {}), Error);
  EXPECT_LE(last, 1000);
}

}  // namespace
}  // namespace ungrain
