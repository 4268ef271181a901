#include "study/library_rung.h"
#include "study/nlm_bilateral_whole_image/rungs.h"
#include "study/whole_image.h"

namespace ungrain::study {

Ladder nlm_bilateral_whole_image_ladder() {
  const std::string_view name = "nlm-bilateral-whole-image";
  const std::vector<int> patches_of_3_5_7 = {1, 2, 3};
  std::vector<Rung> rungs = {nlm_bilateral_whole_image_sequential(), up_to(threads_rung(name), {570, 426})};
#if UNGRAIN_HAVE_CUDA
  rungs.push_back(nlm_bilateral_whole_image_naive());
  for (const Rung& rung : nlm_bilateral_whole_image_tables()) rungs.push_back(rung);
#endif
  rungs.push_back(product_rung(name));
  rungs.push_back(product_rung_in_halves(name));
  return {.name = std::string(name),
          .summary = "[000]'s versions, searching the whole image",
          .setting = "patches of 2 r + 1, sigma h 20, sigma range 30, distance does not count",
          .rungs = std::move(rungs),
          .check_size = whole_image_check_size,
          // The one of [000]'s images whose size it gives, between [003]'s sizes and a larger one.
          .usual = {.sizes = {{64, 64}, {128, 128}, {256, 256}, {570, 426}, {1024, 1024}},
                    .radii = patches_of_3_5_7},
          .quick = {.sizes = {{256, 256}, {570, 426}}, .radii = patches_of_3_5_7},
          .radii_up_to = 3,
          .tolerance = 0.0255};
}

}  // namespace ungrain::study
