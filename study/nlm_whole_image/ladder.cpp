#include "study/library_rung.h"
#include "study/nlm_whole_image/rungs.h"
#include "study/whole_image.h"

namespace ungrain::study {

Ladder nlm_whole_image_ladder() {
  const std::string_view name = "nlm-whole-image";
  const std::vector<int> patches_of_3_5_7 = {1, 2, 3};
  std::vector<Rung> rungs = {nlm_whole_image_symmetric(), up_to(threads_rung(name), {512, 512})};
#if UNGRAIN_HAVE_CUDA
  for (const Rung& rung : {nlm_whole_image_global_memory(), nlm_whole_image_shared_memory(),
                           nlm_whole_image_own_patch(), nlm_whole_image_overlapping()}) {
    rungs.push_back(rung);
  }
#endif
  rungs.push_back(product_rung(name));
  rungs.push_back(product_rung_in_halves(name));
  const std::vector<int> figures_threads = {32, 64, 128, 256, 512, 1024};
  const std::vector<int> figures_blocks = {16, 32, 64, 128, 256, 512, 1024};
  return {.name = std::string(name),
          .summary = "[003]'s versions, searching the whole image",
          .setting = "patches of 2 r + 1, strengths of [003]'s experiment (preset paper-003)",
          .rungs = std::move(rungs),
          .sequential = "v0 symmetric",
          .naive = "v1 global memory",
          .check_size = whole_image_check_size,
          // [003]'s sizes and two more; its figures' threads and blocks.
          .usual = {.sizes = {{64, 64}, {128, 128}, {256, 256}, {512, 512}, {1024, 1024}},
                    .radii = patches_of_3_5_7,
                    .threads = figures_threads,
                    .blocks = figures_blocks},
          .quick = {.sizes = {{256, 256}, {512, 512}},
                    .radii = patches_of_3_5_7,
                    .threads = {64, 256},
                    .blocks = {256, 1024}},
          .papers = Sweep{.sizes = {{64, 64}, {128, 128}, {256, 256}, {512, 512}},
                          .radii = patches_of_3_5_7,
                          .threads = figures_threads,
                          .blocks = figures_blocks},
          .radii_up_to = 3,
          // 1e-4 of the range: [003]'s own measure (§7), and what the library promises on a GPU.
          .tolerance = 0.0255};
}

}  // namespace ungrain::study
