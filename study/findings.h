// What the measurements say about each idea, and what the papers measured of the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/measurements.h"

namespace ungrain::study {

struct Finding {
  enum class Kind {
    idea,
    together,  // of all ideas
    machine,   // not of kernels but of what runs them
  };
  std::string idea;
  std::string ladder;
  std::string rung;
  std::string without;
  double factor =
      0;  // times as fast with it: the geometric mean over all cells that were measured with and without
  double smallest = 0;
  double largest = 0;
  int cells = 0;                // pictures and radii
  std::optional<double> paper;  // the same from the papers' tables
  std::string paper_name = {};
  Kind kind = Kind::idea;
};

// The known ideas of the ladders that are there; for ladders without any, each kernel over the naive one. And
// for each ladder what all cores bring over one, and the GPU over all cores. Best first.
std::vector<Finding> findings(const Measurements& ours);

}  // namespace ungrain::study
