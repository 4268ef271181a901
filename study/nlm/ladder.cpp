#include "study/library_rung.h"
#include "study/nlm/rungs.h"

namespace ungrain::study {

Ladder nlm_ladder() {
  std::vector<Rung> rungs = {nlm_sequential(), threads_rung("nlm")};
#if UNGRAIN_HAVE_CUDA
  for (const Rung& rung : nlm_block_a_pixel()) rungs.push_back(rung);
  for (const Rung& rung :
       {nlm_naive(), nlm_shared_memory(), nlm_own_patch(), nlm_separable_sums(), nlm_symmetric_weights()}) {
    rungs.push_back(rung);
  }
  for (const Rung& rung : nlm_register_blocking()) rungs.push_back(rung);
#endif
  rungs.push_back(product_rung("nlm"));
  const std::vector<int> search_of_21 = {10};
  const std::vector<int> rows_a_thread = {2, 4, 8};
  return {.name = "nlm",
          .summary = "[004]'s versions and the steps from them to the product",
          .setting = "search of 2 r + 1, patches of 7, h 20",
          .rungs = std::move(rungs),
          .check_size = patch_check_size,
          // [004]'s sizes and two of [001]'s.
          .usual = {.sizes = {{128, 128}, {256, 256}, {512, 512}, {1024, 1024}, {1920, 1080}, {5522, 3651}},
                    .radii = search_of_21,
                    .tilings = rows_a_thread},
          .quick = {.sizes = {{512, 512}, {1920, 1080}}, .radii = search_of_21, .tilings = rows_a_thread},
          .cat_sizes = {{128, 128}, {256, 256}, {512, 512}, {1024, 1024}}};
}

}  // namespace ungrain::study
