// [002]'s tables 5.1 to 5.4, as it prints them, and ours beside them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ungrain::study {

// The first step of BM3D. Every time was measured at least five times: the mean, and the largest deviation
// from it.
struct Paper002Time {
  const char* table;
  const char* machine;
  const char* image;
  int width;
  int height;
  const char* version;
  double seconds;
  double deviation_percent;
};

struct Paper002Quality {
  const char* image;
  int sigma;  // "around": as the table says it
  const char* version;
  double psnr;  // dB
};

std::span<const Paper002Time> paper_002_times();
std::span<const Paper002Quality> paper_002_qualities();

// From files that write_json() wrote for the ladder bm3d; nothing of ours where none of them is.
void print_beside_paper_002(const std::vector<std::string>& json_files);

}  // namespace ungrain::study
