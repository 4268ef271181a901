// Work beside the workers: reading and writing while they filter.
#pragma once

#include <functional>
#include <memory>

namespace ungrain {

// One job at a time on a thread of its own, which is started with the first.
class Background {
 public:
  Background();
  ~Background();  // waits for the job; its exception is lost
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void start(std::function<void()> job);  // after wait(), or as the first
  void wait();                            // until the job is done; rethrows its exception

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
