#include "study/bilateral/rungs.h"
#include "study/library_rung.h"

namespace ungrain::study {

Ladder bilateral_ladder() {
  std::vector<Rung> rungs = {
      bilateral_sequential(),      threads_rung("bilateral"),   bilateral_naive(),
      bilateral_constant_memory(), bilateral_shared_memory(),   bilateral_padded_shared(),
      bilateral_tiling(),          bilateral_tiling_padded(),   bilateral_rolling_tiling(),
      bilateral_unrolled(),        bilateral_unrolled_radius(), bilateral_no_tables()};
  for (const Rung& rung : bilateral_tables()) rungs.push_back(rung);
  for (const Rung& rung : bilateral_tables_shared_image()) rungs.push_back(rung);
  for (const Rung& rung :
       {bilateral_byte_table(), bilateral_texture(), bilateral_pair_symmetric(), bilateral_async_copies(),
        bilateral_dynamic_parallelism(), bilateral_fast_exponential(), product_rung("bilateral")}) {
    rungs.push_back(rung);
  }
  return {.name = "bilateral", .rungs = std::move(rungs), .sequential = "sequential", .naive = "1 naive"};
}

}  // namespace ungrain::study
