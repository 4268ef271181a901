// A sum that loses nothing.
#pragma once

#include <cmath>

namespace ungrain {

// Neumaier's sum: what each addition rounds away is kept, so that a billion terms lose nothing.
class ExactingSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace ungrain
