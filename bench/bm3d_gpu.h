// bm3d and ridge on a GPU: by profile and stage, and its kernels one by one.
#pragma once

#include <string>
#include <vector>

namespace ungrain::bench {

struct Bm3dRow {
  std::string filter;  // and its profile
  std::string image;
  std::string type;
  std::vector<std::string> stages = {};
  std::vector<double> stage_ms = {};  // medians
  double kernels_ms = 0;
  double noisy_psnr = 0;
  double psnr = 0;
  double cpu_psnr = 0;
  bool right = true;
};

// Of the rows whose filter and image begin with `only`: "bm3d normal 1080p".
std::vector<Bm3dRow> run_bm3d(const std::string& only);
// Search and filtering apart. Prints only.
void run_bm3d_kernels(const std::string& only, double products_per_second);

// With a noise model beside one sigma. Prints only.
void run_bm3d_models();

// From 1 to 100 Mpixel. Prints only.
void run_bm3d_sizes();

std::string json_of(const Bm3dRow& row);

}  // namespace ungrain::bench
