#include "core/background.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace ungrain {

struct Background::Impl {
  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return job || stopping; });
      if (!job) return;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        job();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      job = nullptr;
      failure = thrown;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> job;  // the running one
  std::exception_ptr failure;
  bool stopping = false;
  std::thread thread;
};

Background::Background() : impl_(std::make_unique<Impl>()) {}

Background::~Background() {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

void Background::start(std::function<void()> job) {
  const std::lock_guard lock(impl_->mutex);
  impl_->job = std::move(job);
  if (!impl_->thread.joinable()) impl_->thread = std::thread([this] { impl_->serve(); });
  impl_->changed.notify_all();
}

void Background::wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [this] { return !impl_->job; });
  if (impl_->failure) std::rethrow_exception(std::exchange(impl_->failure, nullptr));
}

}  // namespace ungrain
