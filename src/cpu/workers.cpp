#include "core/workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ungrain/denoiser.h"
#include "ungrain/error.h"

#if UNGRAIN_STD_THREADS
#include <condition_variable>
#else
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace ungrain {
namespace {

#if UNGRAIN_STD_THREADS

// A fixed set of threads that all take items from one counter until all are taken.
class Team {
 public:
  explicit Team(int size) {
    for (int worker = 1; worker < size; ++worker) {
      threads_.emplace_back([this, worker] { serve(worker); });
    }
  }
  ~Team() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  void run(std::int64_t items, const std::function<void(std::int64_t, int)>& body) {
    {
      const std::lock_guard lock(mutex_);
      body_ = &body;
      items_ = items;
      next_ = 0;
      failure_ = nullptr;
      busy_ = static_cast<int>(threads_.size());
      ++round_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void serve(int worker) {
    std::uint64_t seen = 0;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
        if (stopping_) return;
        seen = round_;
      }
      work(worker);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  void work(int worker) {
    try {
      for (std::int64_t item = next_++; item < items_; item = next_++) (*body_)(item, worker);
    } catch (...) {
      next_ = items_;
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(std::int64_t, int)>* body_ = nullptr;
  std::int64_t items_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::exception_ptr failure_;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
};

#else

// The arenas of the process, kept for the next run: oneTBB 2021.8 leaks about 7 KiB of each that is
// destroyed. A run has an arena to itself. In a shared one the threads of other runs could take every slot,
// and a run would wait until they are done. There are as many arenas of a size as runs were ever active at
// once.
class Arenas {
 public:
  using Arena = std::list<tbb::task_arena>;  // of one: returning it moves a link and allocates nothing

  static Arenas& of_process() {
    // Never destroyed: other threads may still be active when the process ends.
    static Arenas& arenas = *new Arenas;
    return arenas;
  }

  // oneTBB starts no more threads than there are processors, and prints a warning, unless a limit allows
  // more. It obeys the smallest of several limits, so there is only one, for the largest size.
  void allow(int size) {
    const std::lock_guard lock(mutex_);
    if (size <= std::max(allowed_, tbb::info::default_concurrency())) return;
    limit_.reset();
    limit_.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(size));
    allowed_ = size;
  }

  Arena take(int size) {
    Arena taken;
    const std::lock_guard lock(mutex_);
    Arena& idle = idle_[size];
    if (idle.empty()) {
      taken.emplace_back(size);
    } else {
      taken.splice(taken.begin(), idle, idle.begin());
    }
    return taken;
  }

  void give_back(int size, Arena arena) noexcept {
    const std::lock_guard lock(mutex_);
    const auto idle = idle_.find(size);
    idle->second.splice(idle->second.begin(), arena);
  }

 private:
  std::mutex mutex_;
  std::map<int, Arena> idle_;
  std::optional<tbb::global_control> limit_;
  int allowed_ = 0;
};

// An arena of the process, borrowed for one run.
class BorrowedArena {
 public:
  explicit BorrowedArena(int size) : size_(size), arena_(Arenas::of_process().take(size)) {}
  ~BorrowedArena() { Arenas::of_process().give_back(size_, std::move(arena_)); }
  BorrowedArena(const BorrowedArena&) = delete;
  BorrowedArena& operator=(const BorrowedArena&) = delete;

  tbb::task_arena& get() { return arena_.front(); }

 private:
  int size_;
  Arenas::Arena arena_;
};

class Team {
 public:
  explicit Team(int size) : size_(size) { Arenas::of_process().allow(size); }

  int size() const { return size_; }

  void run(std::int64_t items, const std::function<void(std::int64_t, int)>& body) {
    BorrowedArena arena(size_);
    arena.get().execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::int64_t>(0, items, 1),
          [&](const tbb::blocked_range<std::int64_t>& range) {
            const int worker = tbb::this_task_arena::current_thread_index();
            for (std::int64_t item = range.begin(); item < range.end(); ++item) body(item, worker);
          },
          tbb::simple_partitioner());
    });
  }

 private:
  int size_;
};

#endif

// Waits for something that is expected within microseconds.
class BusyWait {
 public:
  void operator()() {
    constexpr int patience = 2000;
    if (++turns_ > patience) return std::this_thread::yield();  // others may need the processor
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");  // pauses about as long as the instruction above
#endif
  }

 private:
  int turns_ = 0;
};

// Threads that are awake between one run and the next. The leader never waits for a thread to arrive, only
// for those at work: threads that come late or not at all do no harm.
class Crew {
 public:
  using Body = std::function<void(std::int64_t, int)>;

  // The leader's: does all items and returns. Rethrows the first exception.
  void run(std::int64_t items, const Body& body, int worker) {
    body_ = &body;
    items_ = items;
    next_ = 0;
    failure_ = nullptr;
    open_ = true;
    ++round_;
    work(worker);
    open_ = false;
    // A helper counts itself before it looks whether the round is open.
    for (BusyWait wait; helpers_at_work_ > 0;) wait();
    if (failure_) std::rethrow_exception(failure_);
  }
  void dismiss() { dismissed_ = true; }

  // A helper's, until the crew is dismissed.
  void help(int worker) {
    std::uint64_t seen = 0;
    for (BusyWait wait; !dismissed_;) {
      if (round_ == seen) {
        wait();
        continue;
      }
      seen = round_;
      ++helpers_at_work_;
      if (open_) work(worker);
      --helpers_at_work_;
      wait = BusyWait();
    }
  }

 private:
  void work(int worker) {
    try {
      for (std::int64_t item = next_++; item < items_; item = next_++) (*body_)(item, worker);
    } catch (...) {
      next_ = items_;
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  const Body* body_ = nullptr;
  std::int64_t items_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> open_{false};
  std::atomic<std::uint64_t> round_{0};
  std::atomic<int> helpers_at_work_{0};
  std::atomic<bool> dismissed_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

int processors() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_threads); }

}  // namespace

struct Workers::Impl {
  explicit Impl(int threads) : team(threads > 0 ? threads : processors()) {}

  Team team;
  Crew* crew = nullptr;  // while the threads stay awake
  int leader = 0;        // the calling thread's worker then
  const CancelToken* cancel = nullptr;
  std::function<void(std::int64_t, std::int64_t)> progress;
};

Workers::Workers(int threads) : impl_(std::make_unique<Impl>(threads)) {}
Workers::~Workers() = default;
Workers::Workers(Workers&&) noexcept = default;
Workers& Workers::operator=(Workers&&) noexcept = default;

int Workers::count() const { return impl_->team.size(); }

void Workers::watch(const CancelToken* cancel, std::function<void(std::int64_t, std::int64_t)> progress) {
  impl_->cancel = cancel;
  impl_->progress = std::move(progress);
}

void Workers::for_each(std::int64_t items, const std::function<void(std::int64_t, int)>& body) {
  for_each_of(0, items, items, body);
}

void Workers::for_each_quietly(std::int64_t items, const std::function<void(std::int64_t, int)>& body) {
  for_each_of(0, items, 0, body);
}

void Workers::for_each_of(std::int64_t begin, std::int64_t end, std::int64_t items,
                          const std::function<void(std::int64_t, int)>& body) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<std::int64_t> done{begin};
  const auto step = [&](std::int64_t item, int worker) {
    if (impl_->cancel != nullptr && impl_->cancel->cancelled()) return;
    body(begin + item, worker);
    const std::int64_t finished = ++done;
    if (impl_->progress && items > 0 && std::this_thread::get_id() == caller)
      impl_->progress(finished, items);
  };
  const std::int64_t now = end - begin;
  if (count() == 1 || now == 1) {
    for (std::int64_t item = 0; item < now; ++item) step(item, impl_->leader);
  } else if (impl_->crew != nullptr) {
    impl_->crew->run(now, step, impl_->leader);
  } else {
    impl_->team.run(now, step);
  }
  if (impl_->cancel != nullptr && impl_->cancel->cancelled()) {
    throw Error(ErrorCode::cancelled, "cancelled");
  }
}

// One item for each thread: the first to take one leads, the others help until they are dismissed.
void Workers::stay_awake(const std::function<void()>& body) {
  if (count() == 1 || count() > processors()) return body();  // too many would only wait for each other
  Crew crew;
  std::atomic<bool> is_led{false};
  impl_->team.run(count(), [&](std::int64_t, int worker) {
    if (is_led.exchange(true)) return crew.help(worker);
    struct Leading {
      Leading(Impl& of, Crew& with, int worker) : impl(of), crew(with) {
        impl.crew = &crew;
        impl.leader = worker;
      }
      ~Leading() {
        impl.crew = nullptr;
        impl.leader = 0;
        crew.dismiss();
      }
      Impl& impl;
      Crew& crew;
    };
    const Leading leading(*impl_, crew, worker);
    body();
  });
}

}  // namespace ungrain
