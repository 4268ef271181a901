// The papers' own figures, as they print them.
#pragma once

#include <span>

namespace ungrain::study {

struct PaperMachine {
  const char* paper;
  const char* machine;
};

// What a table is about, and what is to be said against its figures.
struct PaperTable {
  const char* paper;
  const char* table;
  const char* caption;
  const char* note;
};

inline constexpr int any_radius = 0;  // the table has none

struct PaperTime {
  const char* paper;
  const char* table;
  const char* image;
  int width;  // 0: the paper does not say
  int height;
  const char* ladder;
  const char* rung;        // ours that keeps this version alive; in brackets: somebody else's program
  const char* naive_rung;  // and the one that keeps its naive kernel
  int radius;
  double ms;
  double naive_ms;  // of the paper's naive kernel, same image and radius; 0: not printed
};

// Of a version over the sequential one.
struct PaperSpeedUp {
  const char* paper;
  const char* table;
  const char* image;
  int width;
  int height;
  const char* ladder;
  const char* rung;
  const char* sequential_rung;
  int radius;
  double factor;
};

struct PaperQuality {
  const char* paper;
  const char* table;
  const char* version;
  const char* image;
  int side;
  double psnr;  // dB
  double ssim;
  double fsim;
};

std::span<const PaperMachine> paper_machines();
std::span<const PaperTable> paper_tables();
std::span<const PaperTime> paper_times();
std::span<const PaperSpeedUp> paper_speed_ups();
std::span<const PaperQuality> paper_qualities();

}  // namespace ungrain::study
