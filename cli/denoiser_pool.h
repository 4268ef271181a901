// The denoisers of a batch. One that has served a file serves the next of the same kind: its memory, slow to
// get on a GPU, is allocated once.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "ungrain/denoiser.h"

namespace ungrain::cli {

class DenoiserPool {
  struct Item;

 public:
  // `most`: how many there may be at once, in use or idle.
  explicit DenoiserPool(int most);
  ~DenoiserPool();
  DenoiserPool(const DenoiserPool&) = delete;
  DenoiserPool& operator=(const DenoiserPool&) = delete;

  // A denoiser in use. give_back() leaves it to others; one that is destroyed before, after a failed run
  // perhaps, is not used again.
  class Loan {
   public:
    Loan();
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    Denoiser& operator*() const;
    Denoiser* operator->() const { return &**this; }
    explicit operator bool() const { return item_ != nullptr; }
    void give_back();

   private:
    friend class DenoiserPool;
    DenoiserPool* pool_ = nullptr;
    std::unique_ptr<Item> item_;
  };

  // Puts a denoiser for these images into `loan`, which may hold one already.
  void lend(Loan& loan, const MethodParams& params, const ImageSpec& spec, const Options& options);
  void clear();  // frees those that are idle
  // Leaves those that are idle to the end of the process: a GPU's driver frees all memory at once sooner than
  // piece by piece.
  void abandon();

 private:
  std::unique_ptr<Item> take_idle(const ImageSpec& spec, const Options& options);

  std::mutex mutex_;
  std::list<std::unique_ptr<Item>> idle_;  // the last used first
  std::size_t most_;
  std::size_t lent_ = 0;
};

}  // namespace ungrain::cli
