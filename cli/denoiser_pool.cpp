#include "denoiser_pool.h"

#include <algorithm>
#include <utility>

namespace ungrain::cli {

using Progress = std::function<void(double fraction)>;

struct DenoiserPool::Item {
  ImageSpec spec;
  Options options;
  std::shared_ptr<Progress> progress;
  Denoiser denoiser;

  bool is_for(const ImageSpec& image, const Options& wanted) const {
    return spec == image && options.device == wanted.device && options.threads == wanted.threads &&
           options.memory == wanted.memory && options.nonfinite == wanted.nonfinite &&
           options.band_rows == wanted.band_rows;
  }
};

DenoiserPool::DenoiserPool(int most) : most_(static_cast<std::size_t>(std::max(1, most))) {}
DenoiserPool::~DenoiserPool() = default;

Denoiser& DenoiserPool::Loan::operator*() const { return item_->denoiser; }

DenoiserPool::Loan::Loan() = default;

DenoiserPool::Loan::~Loan() {
  if (!item_) return;
  const std::lock_guard lock(pool_->mutex_);
  --pool_->lent_;
}

void DenoiserPool::Loan::give_back() {
  if (!item_) return;
  *item_->progress = nullptr;
  std::list<std::unique_ptr<Item>> node;
  node.push_back(std::move(item_));
  const std::lock_guard lock(pool_->mutex_);
  pool_->idle_.splice(pool_->idle_.begin(), node);
  --pool_->lent_;
}

std::unique_ptr<DenoiserPool::Item> DenoiserPool::take_idle(const ImageSpec& spec, const Options& options) {
  std::unique_ptr<Item> unused;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(idle_.begin(), idle_.end(), [&](const auto& item) { return item->is_for(spec, options); });
  std::unique_ptr<Item> taken;
  if (found != idle_.end()) {
    taken = std::move(*found);
    idle_.erase(found);
  } else if (!idle_.empty() && idle_.size() + lent_ >= most_) {  // the one not used for longest
    unused = std::move(idle_.back());
    idle_.pop_back();
  }
  if (taken) ++lent_;
  return taken;
}

void DenoiserPool::clear() {
  std::list<std::unique_ptr<Item>> unused;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  unused.swap(idle_);
}

void DenoiserPool::abandon() {
  static auto* const abandoned = new std::list<std::unique_ptr<Item>>;  // NOLINT: never freed, on purpose
  const std::lock_guard lock(mutex_);
  abandoned->splice(abandoned->end(), idle_);
}

void DenoiserPool::lend(Loan& loan, const MethodParams& params, const ImageSpec& spec,
                        const Options& options) {
  loan.pool_ = this;
  if (loan.item_ && !loan.item_->is_for(spec, options)) loan.give_back();
  if (!loan.item_) loan.item_ = take_idle(spec, options);
  if (loan.item_) {
    *loan.item_->progress = options.progress;
    loan.item_->denoiser.set_params(params);
    return;
  }
  auto progress = std::make_shared<Progress>(options.progress);
  Options forwarded = options;
  forwarded.progress = [progress](double fraction) {
    if (*progress) (*progress)(fraction);
  };
  auto item =
      std::make_unique<Item>(Item{spec, forwarded, progress, Denoiser::create(params, spec, forwarded)});
  const std::lock_guard lock(mutex_);
  loan.item_ = std::move(item);
  ++lent_;
}

}  // namespace ungrain::cli
