// Threads. The only part of the project that knows how they are made: oneTBB, or plain std::thread where
// UNGRAIN_STD_THREADS is set (the thread-sanitizer build, because packaged oneTBB is not instrumented).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ungrain/denoiser.h"

namespace ungrain {

class Workers {
 public:
  explicit Workers(int threads);  // 0: one for each processor
  ~Workers();
  Workers(Workers&&) noexcept;
  Workers& operator=(Workers&&) noexcept;

  int count() const;

  // Set before a run: `cancel` is checked before every item, `progress` called after every item that the
  // calling thread has finished.
  void watch(const CancelToken* cancel, std::function<void(std::int64_t done, std::int64_t of)> progress);

  // Calls body(item, worker) for every item in [0, items), each once, in any order and on any thread;
  // `worker` in [0, count()) belongs to one running call at a time. Returns when all are done; rethrows the
  // first exception. Throws Error(cancelled) when the token was set. Must not be nested.
  void for_each(std::int64_t items, const std::function<void(std::int64_t item, int worker)>& body);

  // The same for items [begin, end) of `items`: progress counts all of them.
  void for_each_of(std::int64_t begin, std::int64_t end, std::int64_t items,
                   const std::function<void(std::int64_t item, int worker)>& body);
  // The same without progress.
  void for_each_quietly(std::int64_t items, const std::function<void(std::int64_t item, int worker)>& body);

  // Calls body() on one of the threads. For many short steps: the threads stay awake until it returns, and a
  // for_each() of this object inside it begins within a microsecond, not tens of them. They wait busily, so
  // body() should take milliseconds at most.
  void stay_awake(const std::function<void()>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
