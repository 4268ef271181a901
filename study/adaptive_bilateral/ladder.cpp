#include "study/adaptive_bilateral/rungs.h"
#include "study/library_rung.h"

namespace ungrain::study {

Ladder adaptive_bilateral_ladder() {
  std::vector<Rung> rungs = {adaptive_bilateral_sequential(), threads_rung("adaptive-bilateral")};
#if UNGRAIN_HAVE_CUDA
  rungs.push_back(adaptive_bilateral_naive());
  for (const Rung& rung : adaptive_bilateral_shared_image()) rungs.push_back(rung);
#endif
  rungs.push_back(product_rung("adaptive-bilateral"));
  return {.name = "adaptive-bilateral",
          .summary = "[000]'s versions",
          .setting = "sigma space 3, sigma range 30",
          .rungs = std::move(rungs),
          .check_size = window_check_size,
          .usual = window_sweep,
          .quick = quick_window_sweep,
          .papers = papers_window_sweep};
}

}  // namespace ungrain::study
