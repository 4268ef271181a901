// The papers' own figures, as they print them: papers.json, table by table. It holds milliseconds; [001],
// [003] and [004] print seconds. Copies to the GPU are in the times of [004] only.
//
// [000]'s tables 6.7, 6.12 and 6.17 are of a search of the whole image; nlm-bilateral searches a window with
// that radius, nlm-bilateral-whole-image the whole image with patches that reach so far, and stands beside 3
// only. What the paper's "filter radius" is there remains unclear; why it cannot be the patch's is in the
// note of table 6.7. [004]'s speed-ups follow from its table 5.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ungrain::study {

inline constexpr int any_radius = 0;  // the table has none

struct PaperTime {
  std::string paper;
  std::string table;
  std::string image;
  int width;  // 0: the paper does not say
  int height;
  std::string ladder;
  std::string rung;        // ours that keeps this version alive; in brackets: somebody else's program
  std::string naive_rung;  // and the one that keeps its naive kernel
  int radius;
  double ms;
  double naive_ms;  // of the paper's naive kernel, same image and radius; 0: not printed
};

// Of a version over the sequential one.
struct PaperSpeedUp {
  std::string paper;
  std::string table;
  std::string image;
  int width;
  int height;
  std::string ladder;
  std::string rung;
  std::string sequential_rung;
  int radius;
  double factor;
};

struct PaperQuality {
  std::string paper;
  std::string table;
  std::string version;
  std::string image;
  int side;
  double psnr;  // dB
  double ssim;
  double fsim;
};

const nlohmann::json& papers();  // the whole file
const std::vector<PaperTime>& paper_times();
const std::vector<PaperSpeedUp>& paper_speed_ups();
const std::vector<PaperQuality>& paper_qualities();

}  // namespace ungrain::study
