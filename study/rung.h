// What a rung of a ladder is, and what it is given. Kernels see a Picture and nothing else of the harness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#if UNGRAIN_HAVE_CUDA
#include "cuda/memory.h"
#endif
#include "ungrain/image.h"

namespace ungrain::study {

inline constexpr int largest_radius = 15;
// Non-local means: the side of a patch, [004]'s, and how far it reaches from the pixel in its middle.
inline constexpr int patch_side = 7;
inline constexpr int patch_reach = patch_side / 2;
// The papers' border rules differ, and none is what is studied: pictures are held with their mirrored
// surroundings, so that a rung filters every pixel as if it were an inner one.
inline constexpr int margin = largest_radius + patch_reach;

struct Size {
  int width = 0;
  int height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

// A picture in memory. `pixels` and `bytes` hold the same whole numbers from 0 to 255 and point to pixel
// (0, 0); `margin` pixels on every side of it may be read too. The result has no margin.
struct Picture {
  const float* pixels = nullptr;
  const std::uint8_t* bytes = nullptr;
  float* out = nullptr;
  int width = 0;
  int height = 0;
  int stride = 0;  // pixels from row to row of the input; of the result: width
};

// The papers' strengths, for values from 0 to 255.
struct Strengths {
  int radius = 1;  // of the window, or of the search for similar patches
  double sigma_space = 3;
  double sigma_range = 30;
  double factor = 0.5;    // adaptive-bilateral
  double epsilon = 0.01;  // adaptive-bilateral
  double h = 20;          // nlm
  double sigma_h = 20;    // nlm-bilateral
  double sigma = 20;      // bm3d: of the noise
};

// How a kernel is launched: blocks of side × side threads, each thread `tiling` pixels; or, where kernels
// stride over the picture, a grid of `blocks` blocks of `threads` threads; or, where a picture is filtered
// piece by piece, so many reference patches at once.
struct Shape {
  int side = 0;
  int tiling = 1;
  int threads = 0;
  int blocks = 0;
  Size batch = {};
};

struct RungCall {
  Picture device;
  Picture host;
  ConstImageView host_view;    // without the margin, for the library
  ConstImageView device_view;  // the same in GPU memory
  Strengths strengths;
  Shape shape;
  bool whole = true;  // false: a slow rung may filter a part
};

// What a kernel takes of a multiprocessor.
struct KernelUse {
  int registers = 0;       // a thread
  int spilled = 0;         // bytes of local memory a thread
  std::size_t shared = 0;  // bytes a block
  int blocks = 0;          // at once on a multiprocessor
  double occupancy = 0;    // share of the threads that a multiprocessor can hold
};

// Told, before kernels are enqueued, to which part of the work they belong.
using PartBegins = std::function<void(const char* part)>;

// A rung made ready for one picture: tables are uploaded, memory is there.
struct Prepared {
  std::function<void()> enqueue = {};  // the kernels, on the default stream; timed by events
  std::function<double()> timed = {};  // in place of it: runs, returns its own ms
  std::function<void(const PartBegins&)> enqueue_parts = {};  // the same as enqueue, where parts have names
  bool result_on_host = false;                                // in RungCall::host.out
  std::optional<KernelUse> use = {};
  double share = 1;  // of the picture that is filtered; below 1 only where RungCall::whole is false
};

enum class Shapes {
  none,     // not a kernel of ours
  sides,    // block sides
  tilings,  // and tiling factors
  grids,    // threads a block and blocks a grid
  batches   // reference patches at once
};

struct Rung {
  std::string name;
  std::string paper;  // which paper and which version of it
  std::string idea;   // the one thing it changes
  Shapes shapes = Shapes::sides;
  bool gpu = true;       // false: it runs on the processor
  double tolerance = 0;  // of 255: what it may differ from the reference; 0: the ladder's
  // Which of the library's settings it is held against, where a ladder's rungs do not all compute the same.
  std::string computes = {};
  // Nothing where the GPU cannot launch that shape.
  std::function<std::optional<Prepared>(const RungCall&)> prepare;
};

// What a ladder is measured on.
struct Sweep {
  std::vector<Size> sizes;
  std::vector<int> radii;
  std::vector<int> tilings = {};
  std::vector<int> threads = {};
  std::vector<int> blocks = {};
  std::vector<Size> batches = {};
};

// Which difference from the reference counts.
enum class Agreement {
  largest,  // of any pixel
  rms       // of all: where rounding may turn a decision, and with it single pixels
};

struct Ladder {
  std::string name;
  std::string summary;
  std::string setting;        // the strengths, in words
  std::string left_out = {};  // rungs that this build has not, and why
  std::vector<Rung> rungs;
  std::string sequential = "sequential";  // the rungs that speed-ups are over
  std::string naive = "naive";
  Size check_size;  // no multiple of any block's side: blocks that stick out are checked too
  Sweep usual;
  Sweep quick;
  std::optional<Sweep> papers = {};  // for ungrain-study all; none: the usual one
  std::vector<Size> cat_sizes = {};  // for [004]'s cumulative average time; none: it is not taken
  int radii_up_to = largest_radius;
  double enough_ms = 300;   // a kernel whose first run takes longer is not run again
  double tolerance = 0.01;  // of 255: what a rung may differ from the reference
  Agreement agreement = Agreement::largest;
  bool quality = false;  // rungs do not all compute the same: each one's PSNR is shown

  double tolerance_of(const std::string& rung) const;
};

// [001]'s sizes; radii and tiling factors of both papers.
inline const Sweep window_sweep{.sizes = {{512, 512}, {1920, 1080}, {5522, 3651}},
                                .radii = {1, 3, 5, 7, 11, 15},
                                .tilings = {2, 3, 4, 5, 6}};
// Everything that [000] and [001] print times of: the first's 570 x 426, the second's three sizes.
inline const Sweep papers_window_sweep{.sizes = {{512, 512}, {570, 426}, {1920, 1080}, {5522, 3651}},
                                       .radii = {1, 3, 5, 7, 9, 11, 13, 15},
                                       .tilings = {2, 3, 4, 5, 6}};
inline const Sweep quick_window_sweep{.sizes = {{1920, 1080}}, .radii = {1, 5, 15}, .tilings = {2, 4}};
inline constexpr Size window_check_size{203, 157};
// Smaller where the reference compares patches: it takes a second for these.
inline constexpr Size patch_check_size{101, 79};
// And where it compares each with all others.
inline constexpr Size whole_image_check_size{53, 41};

Ladder bilateral_ladder();
Ladder adaptive_bilateral_ladder();
Ladder nlm_ladder();
Ladder nlm_bilateral_ladder();
Ladder nlm_whole_image_ladder();
Ladder nlm_bilateral_whole_image_ladder();
Ladder bm3d_ladder();

std::vector<Ladder> all_ladders();  // in the order they are shown

}  // namespace ungrain::study
