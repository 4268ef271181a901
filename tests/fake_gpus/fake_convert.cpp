// cuda/convert.h on the fake GPUs, with the CPU's own conversion.
#include "cuda/convert.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/convert.h"
#include "core/run_checks.h"
#include "cuda/memory.h"
#include "fake_gpus.h"

namespace ungrain::cuda {

void load_planes(const ConstImageView& raw, const Planes& planes, int count_from, int count_to, Found* found,
                 Stream stream) {
  const auto work = [=] {
    const Rect rect = rect_of(raw);
    std::vector<float> row(static_cast<std::size_t>(raw.spec.width));
    for (int y = planes.rect.y0; y < planes.rect.y1; ++y) {
      for (int channel = 0; channel < planes.count; ++channel) {
        load_row(raw, y - rect.y0, channel, row.data());
        for (int x = planes.rect.x0; x < planes.rect.x1; ++x) {
          const bool bad = !std::isfinite(row[static_cast<std::size_t>(x - rect.x0)]);
          if (!bad || y < count_from || y >= count_to) continue;
          ++found->bad_pixels;  // of gray images
          const auto at = static_cast<unsigned long long>(y) << 32U | static_cast<unsigned>(x);
          found->first_bad = std::min(found->first_bad, at);
        }
        fill_nonfinite(raw, y - rect.y0, channel, row.data());
        std::copy_n(row.data() + (planes.rect.x0 - rect.x0), planes.rect.width(), planes.row(channel, y));
      }
    }
  };
  check(fake_gpus::enqueue(handle(stream), work), "loading planes");
}

void store_planes(const ConstPlanes& planes, const ConstImageView&, bool, const ImageView& out, double scale,
                  double, Stream stream) {
  const auto work = [=] {
    const Rect rect = rect_of(out);
    for (int y = rect.y0; y < rect.y1; ++y) {
      for (int channel = 0; channel < planes.count; ++channel) {
        store_row(out, y - rect.y0, channel, planes.row(channel, y) + (rect.x0 - planes.rect.x0), scale);
      }
    }
  };
  check(fake_gpus::enqueue(handle(stream), work), "storing planes");
}

}  // namespace ungrain::cuda
