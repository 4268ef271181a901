#include "study/bilateral/rungs.h"
#include "study/library_rung.h"

namespace ungrain::study {

Ladder bilateral_ladder() {
  std::vector<Rung> rungs = {bilateral_sequential(), threads_rung("bilateral")};
#if UNGRAIN_HAVE_CUDA
  for (const Rung& rung :
       {bilateral_naive(), bilateral_constant_memory(), bilateral_shared_memory(), bilateral_padded_shared(),
        bilateral_tiling(), bilateral_tiling_padded(), bilateral_rolling_tiling(), bilateral_unrolled(),
        bilateral_unrolled_radius(), bilateral_no_tables()}) {
    rungs.push_back(rung);
  }
  for (const Rung& rung : bilateral_tables()) rungs.push_back(rung);
  for (const Rung& rung : bilateral_tables_shared_image()) rungs.push_back(rung);
  for (const Rung& rung :
       {bilateral_byte_table(), bilateral_texture(), bilateral_pair_symmetric(), bilateral_async_copies(),
        bilateral_dynamic_parallelism(), bilateral_fast_exponential()}) {
    rungs.push_back(rung);
  }
#endif
  rungs.push_back(product_rung("bilateral"));
  return {.name = "bilateral",
          .summary = "[001]'s versions 1 to 8 and [000]'s tables",
          .setting = "sigma space 3, sigma range 30",
          .rungs = std::move(rungs),
          .naive = "1 naive",
          .check_size = window_check_size,
          .usual = window_sweep,
          .quick = quick_window_sweep,
          .papers = papers_window_sweep};
}

}  // namespace ungrain::study
