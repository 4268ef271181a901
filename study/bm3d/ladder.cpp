#include "study/bm3d/rungs.h"
#include "study/library_rung.h"
#include "study/whole_image.h"

namespace ungrain::study {
namespace {

Rung product(const char* name, const std::string& computes, const char* idea) {
  Rung rung = product_rung("bm3d", computes);
  rung.name = name;
  rung.idea = idea;
  return rung;
}

}  // namespace

Ladder bm3d_ladder() {
  Rung threads = threads_rung("bm3d");
  threads.paper = "[002] OpenMP, another program";
  std::vector<Rung> rungs = {up_to(one_thread_rung("bm3d"), {512, 512}), up_to(threads, {1615, 1026})};
  std::string left_out;
#if UNGRAIN_HAVE_CUDA
  left_out = bm3d_left_out();
  for (const Rung& rung : bm3d_batches()) rungs.push_back(rung);
#endif
  rungs.push_back(product("ungrain, paper-002", {}, "the product's general kernels on what 1 to 4 compute"));
#if UNGRAIN_HAVE_CUDA
  rungs.push_back(bm3d_dct());
  for (const Rung& rung : bm3d_shared_distances()) rungs.push_back(rung);
  for (const Rung& rung : bm3d_fused()) rungs.push_back(rung);
#endif
  rungs.push_back(
      product("ungrain, cosines", "dct", "the product's general kernels on what 5 to 10 compute"));
  Rung last = product(
      "ungrain", "normal",
      "the product's default: tensor cores, bior1.5 and Haar, a Kaiser window, no limit of distances");
  // Coefficients are halves: more of them fall on the other side of the threshold.
  last.tolerance = 0.2;
  rungs.push_back(last);
  const std::vector<int> search_of_39 = {19};
  return {
      .name = "bm3d",
      .summary = "[002]'s batches and the steps from them to the product, the first step of BM3D",
      .setting = "search of 2 r + 1, patches of 8, groups of up to 16, sigma 20",
      .left_out = left_out,
      .rungs = std::move(rungs),
      .sequential = "one thread",
      .naive = "1 own distances",
      // Neither the last column nor the last row of reference patches lies three pixels from the one before.
      .check_size = {103, 81},
      .usual = {.sizes = {{512, 512}, {1615, 1026}, {3714, 2460}, {4714, 3122}},
                .radii = search_of_39,
                .batches = {{32, 16}, {64, 32}, {128, 64}, {256, 128}, {512, 256}}},
      .quick = {.sizes = {{512, 512}}, .radii = search_of_39, .batches = {{32, 16}, {256, 128}}},
      .radii_up_to = 19,
      .enough_ms = 60,
      .tolerance = 0.02,
      .agreement = Agreement::rms,
      .quality = true};
}

}  // namespace ungrain::study
