// The papers' own times, as they print them.
#pragma once

#include <span>

namespace ungrain::study {

struct PaperTime {
  const char* paper;
  const char* table;
  const char* image;
  int width;  // 0: the paper does not say
  int height;
  const char* ladder;
  const char* rung;        // ours that keeps this version alive
  const char* naive_rung;  // and the one that keeps its naive kernel
  int radius;
  double ms;
  double naive_ms;  // of the paper's naive kernel, same image and radius; 0: not printed
};

std::span<const PaperTime> paper_times();

}  // namespace ungrain::study
