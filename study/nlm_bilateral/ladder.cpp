#include "study/library_rung.h"
#include "study/nlm_bilateral/rungs.h"

namespace ungrain::study {

Ladder nlm_bilateral_ladder() {
  std::vector<Rung> rungs = {nlm_bilateral_sequential(), threads_rung("nlm-bilateral")};
#if UNGRAIN_HAVE_CUDA
  rungs.push_back(nlm_bilateral_naive());
  for (const Rung& rung : nlm_bilateral_tables()) rungs.push_back(rung);
#endif
  rungs.push_back(product_rung("nlm-bilateral"));
  return {.name = "nlm-bilateral",
          .summary = "[000]'s versions, searching a window",
          .setting = "search of 2 r + 1, patches of 7, sigma h 20, sigma range 30, sigma space 3",
          .rungs = std::move(rungs),
          .check_size = patch_check_size,
          // [000]'s radii and the one of its images whose size it gives; no rung has tiling factors.
          .usual = {.sizes = {{570, 426}, {1920, 1080}}, .radii = {3, 5, 7, 9, 11, 13, 15}, .tilings = {2}},
          .quick = {.sizes = {{1920, 1080}}, .radii = {5, 15}, .tilings = {2}}};
}

}  // namespace ungrain::study
