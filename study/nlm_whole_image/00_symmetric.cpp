// [003] v0: one thread; each pair of pixels once, its weight for both. The paper's program holds all weights,
// 16 GiB for 256 x 256; here they go into the pixels' sums as they come.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "study/nlm_whole_image/experiment.h"
#include "study/nlm_whole_image/rungs.h"

namespace ungrain::study {
namespace {

class SymmetricSearch {
 public:
  explicit SymmetricSearch(const RungCall& call)
      : picture_(call.host),
        pixels_(pixels_of(call.host)),
        entries_(patch_entries(call.strengths)),
        patches_(static_cast<std::size_t>(pixels_) * static_cast<std::size_t>(entries_)),
        sums_(static_cast<std::size_t>(pixels_)) {
    const std::vector<float> gaussian = gaussian_patch(call.strengths);
    const int reach = call.strengths.radius;
    float* entry = patches_.data();
    for (int i = 0; i < pixels_; ++i) {
      const float* weight = gaussian.data();
      for (int y = -reach; y <= reach; ++y) {
        const float* row = pixel(i) + static_cast<std::ptrdiff_t>(y) * picture_.stride;
        for (int x = -reach; x <= reach; ++x) *entry++ = row[x] * *weight++;
      }
    }
  }

  void start() { sums_.assign(sums_.size(), {}); }

  // The pairs of pixel i with those after it.
  void search_from(int i) {
    for (int j = i + 1; j < pixels_; ++j) {
      const float weight = std::exp(whole_image_factor() * distance(i, j));
      sums_[static_cast<std::size_t>(i)].add(weight, *pixel(j));
      sums_[static_cast<std::size_t>(j)].add(weight, *pixel(i));
    }
  }

  void divide() const {
    for (int i = 0; i < pixels_; ++i) picture_.out[i] = sums_[static_cast<std::size_t>(i)].value(*pixel(i));
  }

  double differences_before(int pixel) const {
    return static_cast<double>(pixel) * (pixels_ - 1 - (pixel - 1) / 2.0) * entries_;
  }

 private:
  struct Sums {
    double weights = 0;
    double values = 0;
    float largest = 0;

    void add(float weight, float value) {
      weights += weight;
      values += static_cast<double>(weight) * value;
      largest = std::max(largest, weight);
    }
    float value(float own) const {
      const double self = largest > 0 ? largest : 1.0;
      return static_cast<float>((values + self * own) / (weights + self));
    }
  };

  const float* pixel(int i) const {
    return picture_.pixels + static_cast<std::ptrdiff_t>(i / picture_.width) * picture_.stride +
           i % picture_.width;
  }
  float distance(int i, int j) const {
    const float* first = patches_.data() + static_cast<std::ptrdiff_t>(i) * entries_;
    const float* second = patches_.data() + static_cast<std::ptrdiff_t>(j) * entries_;
    float sum = 0;
    for (int k = 0; k < entries_; ++k) {
      const float difference = first[k] - second[k];
      sum += difference * difference;
    }
    return sum;
  }

  Picture picture_;
  int pixels_;
  int entries_;
  std::vector<float> patches_;
  std::vector<Sums> sums_;
};

Prepared prepare(const RungCall& call) {
  const auto search = std::make_shared<SymmetricSearch>(call);
  return one_pixel_after_the_other(
      call,
      [search](int i) {
        if (i == 0) search->start();
        search->search_from(i);
      },
      [search](int n) { return search->differences_before(n); }, [search] { search->divide(); });
}

}  // namespace

Rung nlm_whole_image_symmetric() {
  return {.name = "v0 symmetric",
          .paper = "[003] v0",
          .idea = "one thread of the processor; each weight for both its pixels",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = prepare};
}

}  // namespace ungrain::study
