#include <algorithm>
#include <vector>

#include "core/border.h"
#include "core/pixels.h"
#include "core/window.h"
#include "methods/nlm/nlm.h"

namespace ungrain {
namespace {

double squared(double v) { return v * v; }

// One pixel and the channels [first, first + count) that share its weights.
class Pixel {
 public:
  Pixel(const NlmParams& params, const std::vector<double>& patch, const BorderedPlanes<const double>& image,
        const Extent& extent, int x, int y, int first, int count)
      : params_(params),
        patch_(patch),
        image_(image),
        extent_(extent),
        x_(x),
        y_(y),
        first_(first),
        count_(count) {}

  void filter(double* result) const {
    double weights = 0;
    double largest = 0;
    std::fill_n(result, count_, 0.0);
    const auto add = [&](int x, int y, double weight) {
      weights += weight;
      for (int c = 0; c < count_; ++c) result[c] += weight * image_.at(first_ + c, x, y);
    };
    for_search([&](int x, int y) {
      if ((x == x_ && y == y_) || !image_.counts(x, y)) return;
      const double weight = weight_of(x, y);
      largest = std::max(largest, weight);
      add(x, y, weight);
    });
    add(x_, y_, params_.self == SelfWeight::max && largest > 0 ? largest : 1);
    for (int c = 0; c < count_; ++c) result[c] /= weights;
  }

 private:
  template <class Visit>
  void for_search(Visit visit) const {
    const int reach = params_.search / 2;
    const bool everywhere = params_.search == NlmParams::whole_image;
    const Rect area = everywhere ? Rect{0, 0, extent_.width, extent_.height}
                                 : Rect{x_ - reach, y_ - reach, x_ + reach + 1, y_ + reach + 1};
    for (int y = area.y0; y < area.y1; ++y) {
      for (int x = area.x0; x < area.x1; ++x) visit(x, y);
    }
  }

  double weight_of(int x, int y) const {
    const double noise = 2 * squared(params_.sigma / params_.h.value());
    const double weight = std::exp(-std::max(distance(x, y) - noise, 0.0));
    return weight < smallest_weight ? 0 : weight;
  }

  // The squared distance of the patches around the pixel and around (x, y), in units of h².
  double distance(int x, int y) const {
    const int reach = params_.patch / 2;
    double sum = 0;
    double weights = 0;
    for (int ky = -reach; ky <= reach; ++ky) {
      for (int kx = -reach; kx <= reach; ++kx) {
        if (!image_.counts(x_ + kx, y_ + ky) || !image_.counts(x + kx, y + ky)) continue;
        const double weight =
            patch_[static_cast<std::size_t>(kx + reach)] * patch_[static_cast<std::size_t>(ky + reach)];
        weights += weight;
        for (int c = first_; c < first_ + count_; ++c) {
          sum += weight *
                 squared((image_.at(c, x_ + kx, y_ + ky) - image_.at(c, x + kx, y + ky)) / params_.h.value());
        }
      }
    }
    return sum / weights / difference_divisor(params_.colour, count_);
  }

  const NlmParams& params_;
  const std::vector<double>& patch_;
  const BorderedPlanes<const double>& image_;
  Extent extent_;
  int x_;
  int y_;
  int first_;
  int count_;
};

}  // namespace

Pipeline nlm_reference(const NlmParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const double white = spec.white();
  const std::vector<double> patch = patch_weights(params);
  const auto run = [=](const StageCall& call) {
    const WorkingCopy copy(call.in[0], params.colour, white);
    const BorderedPlanes image(copy.planes(), call.image, params.border);
    const int channels = call.out.count;
    const int together = channels_together(params.colour, channels);
    for_each_pixel(call, [&](int x, int y) {
      std::vector<double> pixel(static_cast<std::size_t>(channels));
      for (int first = 0; first < channels; first += together) {
        Pixel(params, patch, image, call.image, x, y, first, together)
            .filter(&pixel[static_cast<std::size_t>(first)]);
      }
      store_working_pixel(pixel, params.colour, white, call.out, x, y);
    });
  };
  return {
      .stages = {{.name = "nlm", .reach = nlm_reach(params), .planes = spec.colour_channels(), .run = run}},
      .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
