#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/ceilings_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ungrain::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// As many independent chains as hide the latency of the units: 8 on Intel's two, 16 on the four of ARM's
// large cores, which have the registers for them; 16 registers hold 12 chains and their factors.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
constexpr bool many_registers = false;
#else
constexpr bool many_registers = true;
#endif

// Returns the number of multiply-adds; writes a sum so that nothing is optimised away.
std::int64_t RunChains(std::int64_t rounds, float* sum) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.75F);
  const auto term = hn::Set(d, 0.25F);
  // A vector may have no size at compile time (SVE), so there are no arrays of them.
  auto a0 = hn::Iota(d, 0), a1 = hn::Iota(d, 1), a2 = hn::Iota(d, 2), a3 = hn::Iota(d, 3);
  auto b0 = hn::Iota(d, 4), b1 = hn::Iota(d, 5), b2 = hn::Iota(d, 6), b3 = hn::Iota(d, 7);
  auto c0 = hn::Iota(d, 8), c1 = hn::Iota(d, 9), c2 = hn::Iota(d, 10), c3 = hn::Iota(d, 11);
  auto e0 = hn::Iota(d, 12), e1 = hn::Iota(d, 13), e2 = hn::Iota(d, 14), e3 = hn::Iota(d, 15);
  for (std::int64_t round = 0; round < rounds; ++round) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    b0 = hn::MulAdd(b0, factor, term);
    b1 = hn::MulAdd(b1, factor, term);
    b2 = hn::MulAdd(b2, factor, term);
    b3 = hn::MulAdd(b3, factor, term);
    c0 = hn::MulAdd(c0, factor, term);
    c1 = hn::MulAdd(c1, factor, term);
    c2 = hn::MulAdd(c2, factor, term);
    c3 = hn::MulAdd(c3, factor, term);
    if constexpr (many_registers) {
      e0 = hn::MulAdd(e0, factor, term);
      e1 = hn::MulAdd(e1, factor, term);
      e2 = hn::MulAdd(e2, factor, term);
      e3 = hn::MulAdd(e3, factor, term);
    }
  }
  const auto a = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
  const auto b = hn::Add(hn::Add(b0, b1), hn::Add(b2, b3));
  const auto c = hn::Add(hn::Add(c0, c1), hn::Add(c2, c3));
  const auto e = hn::Add(hn::Add(e0, e1), hn::Add(e2, e3));
  *sum = hn::GetLane(hn::Add(hn::Add(a, b), hn::Add(c, e)));
  return rounds * (many_registers ? 16 : 12) * static_cast<std::int64_t>(hn::Lanes(d));
}

}  // namespace
}  // namespace ungrain::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "bench/ceilings.h"
#include "bench/common.h"

namespace ungrain::bench {
namespace {

HWY_EXPORT(RunChains);

// Threads that start together; the sum of what each of them did in a nanosecond. `prepare` runs on each
// thread before, `work` returns how much it did.
double rate_of(int threads, const std::function<void(int)>& prepare, const std::function<double(int)>& work) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  const auto body = [&](int thread) {
    prepare(thread);
    start.arrive_and_wait();
    const double before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    const double done = work(thread);
    rates[static_cast<std::size_t>(thread)] = done / (nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(body, thread);
  body(0);
  for (std::thread& other : others) other.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double copy_rate(std::size_t bytes, int threads) {
  const std::size_t block = std::max<std::size_t>(1, bytes / static_cast<std::size_t>(threads));
  // Small copies are repeated: clocks and the start of threads take as long.
  constexpr std::size_t at_least = 16UL << 20U;
  const std::size_t repeats = 2 + at_least / block;
  std::vector<std::unique_ptr<std::byte[]>> from(static_cast<std::size_t>(threads));
  std::vector<std::unique_ptr<std::byte[]>> to(static_cast<std::size_t>(threads));
  // Each thread's memory is first touched by itself, and is there before the clock starts.
  const auto prepare = [&](int thread) {
    for (auto* side : {&from, &to}) {
      auto& mine = (*side)[static_cast<std::size_t>(thread)];
      mine.reset(new std::byte[block]);
      std::memset(mine.get(), 1, block);
    }
  };
  const auto work = [&](int thread) {
    for (std::size_t i = 0; i < repeats; ++i) {
      std::memcpy(to[static_cast<std::size_t>(thread)].get(), from[static_cast<std::size_t>(thread)].get(),
                  block);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    return 2.0 * static_cast<double>(block) * static_cast<double>(repeats);
  };
  return rate_of(threads, prepare, work);
}

}  // namespace

double multiply_adds_per_ns(int threads) {
  constexpr std::int64_t rounds = 1 << 22;  // some 10 ms
  std::atomic<float> sink = 0;
  const auto chains = [&](std::int64_t count) {
    float sum = 0;
    const auto done = static_cast<double>(HWY_DYNAMIC_DISPATCH(RunChains)(count, &sum));
    sink = sum;
    return done;
  };
  // Some processors take a while to switch their wide units on.
  const auto warm_up = [&](int) { chains(rounds / 4); };
  return rate_of(threads, warm_up, [&](int) { return chains(rounds); });
}

double copy_bytes_per_ns(std::size_t bytes, int threads) {
  const double one = copy_rate(bytes, 1);
  return threads == 1 ? one : std::max(one, copy_rate(bytes, threads));
}

}  // namespace ungrain::bench

#endif
