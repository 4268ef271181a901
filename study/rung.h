// What a rung of a ladder is, and what it is given. Kernels see a Picture and nothing else of the harness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/memory.h"
#include "ungrain/image.h"

namespace ungrain::study {

inline constexpr int largest_radius = 15;
// The papers' border rules differ, and none is what is studied: pictures are held with their mirrored
// surroundings, so that a rung filters every pixel as if it were an inner one.
inline constexpr int margin = largest_radius + 1;

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

// Both papers' strengths, for values from 0 to 255.
struct Strengths {
  int radius = 1;
  double sigma_space = 3;
  double sigma_range = 30;
  double factor = 0.5;    // adaptive-bilateral
  double epsilon = 0.01;  // adaptive-bilateral
};

// How a kernel is launched: blocks of side × side threads, each thread `tiling` pixels.
struct Shape {
  int side = 0;
  int tiling = 1;
};

struct RungCall {
  Picture device;
  Picture host;
  ConstImageView host_view;    // without the margin, for the library
  ConstImageView device_view;  // the same in GPU memory
  Strengths strengths;
  Shape shape;
  bool whole = true;  // false: a slow rung may filter a part and scale its time
};

// What a kernel takes of a multiprocessor.
struct KernelUse {
  int registers = 0;       // a thread
  int spilled = 0;         // bytes of local memory a thread
  std::size_t shared = 0;  // bytes a block
  int blocks = 0;          // at once on a multiprocessor
  double occupancy = 0;    // share of the threads that a multiprocessor can hold
};

// A rung made ready for one picture: tables are uploaded, memory is there.
struct Prepared {
  std::function<void()> enqueue = {};  // the kernels, on the default stream; timed by events
  std::function<double()> timed = {};  // in place of it: runs, returns its own ms
  bool result_on_host = false;         // in RungCall::host.out
  std::optional<KernelUse> use = {};
};

enum class Shapes {
  none,    // not a kernel of ours
  sides,   // block sides 4 to 32
  tilings  // and tiling factors 2 to 6
};

struct Rung {
  std::string name;
  std::string paper;  // which paper and which version of it
  std::string idea;   // the one thing it changes
  Shapes shapes = Shapes::sides;
  // Nothing where the GPU cannot launch that shape.
  std::function<std::optional<Prepared>(const RungCall&)> prepare;
};

struct Ladder {
  std::string name;
  std::vector<Rung> rungs;
  std::string sequential;  // the rungs that speed-ups are over
  std::string naive;
};

Ladder bilateral_ladder();
Ladder adaptive_bilateral_ladder();

}  // namespace ungrain::study
