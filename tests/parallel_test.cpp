#include "cpu/parallel.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "ungrain/error.h"

namespace ungrain {
namespace {

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
