#include "study/papers/p002.h"

#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ungrain::study {
namespace {

using nlohmann::json;

constexpr const char* desktop_1 = "GeForce GTX 660; Phenom II X2 550, 2 cores";
constexpr const char* desktop_2 = "GeForce GTX 980; Core i7 870, 4 cores";
constexpr const char* server_1 = "Tesla K20m; 2 x Xeon E5-2630, 12 cores";

// The row "roads", OpenMP, of table 5.1 is printed so: 30 times that of table 5.2. That machine has 4 GB of
// memory, and the larger pictures failed on it for want of it.
// clang-format off
constexpr Paper002Time times[] = {
    {"5.1", desktop_1, "lena", 512, 512, "CUDA", 0.74, 46},
    {"5.1", desktop_1, "lena", 512, 512, "OpenMP", 3.95, 1.55},
    {"5.1", desktop_1, "lena", 512, 512, "MATLAB", 7.72, 1.55},
    {"5.1", desktop_1, "roads", 1615, 1026, "CUDA", 3.49, 0.34},
    {"5.1", desktop_1, "roads", 1615, 1026, "OpenMP", 279.18, 4.09},
    {"5.1", desktop_1, "roads", 1615, 1026, "MATLAB", 57.54, 1.15},
    {"5.1", desktop_1, "bodies 9MPx", 3714, 2460, "CUDA", 18.16, 1.93},
    {"5.1", desktop_1, "bodies 9MPx", 3714, 2460, "MATLAB", 263.20, 1.94},
    {"5.1", desktop_1, "bodies", 4714, 3122, "CUDA", 29.53, 0.44},
    {"5.1", desktop_1, "bodies", 4714, 3122, "MATLAB", 423.44, 0.89},
    {"5.2", desktop_2, "lena", 512, 512, "CUDA", 0.21, 5.18},
    {"5.2", desktop_2, "lena", 512, 512, "OpenMP", 1.57, 1.40},
    {"5.2", desktop_2, "roads", 1615, 1026, "CUDA", 0.69, 1.91},
    {"5.2", desktop_2, "roads", 1615, 1026, "OpenMP", 9.34, 0.95},
    {"5.2", desktop_2, "bodies 9MPx", 3714, 2460, "CUDA", 3.13, 0.33},
    {"5.2", desktop_2, "bodies", 4714, 3122, "CUDA", 5.10, 2.23},
    {"5.3", server_1, "lena", 512, 512, "CUDA", 0.50, 12.40},
    {"5.3", server_1, "lena", 512, 512, "OpenMP", 1.21, 3.22},
    {"5.3", server_1, "roads", 1615, 1026, "CUDA", 2.42, 0.09},
    {"5.3", server_1, "roads", 1615, 1026, "OpenMP", 5.19, 10.96},
    {"5.3", server_1, "bodies 9MPx", 3714, 2460, "CUDA", 12.30, 0.01},
    {"5.3", server_1, "bodies 9MPx", 3714, 2460, "OpenMP", 22.47, 5.59},
    {"5.3", server_1, "bodies", 4714, 3122, "CUDA", 20.10, 0.01},
    {"5.3", server_1, "bodies", 4714, 3122, "OpenMP", 29.96, 6.24},
};

constexpr Paper002Quality qualities[] = {
    {"lena", 20, "CUDA", 32.27},        {"lena", 20, "OpenMP", 31.96},        {"lena", 20, "MATLAB", 32.49},
    {"roads", 25, "CUDA", 24.81},       {"roads", 25, "OpenMP", 25.54},       {"roads", 25, "MATLAB", 25.53},
    {"bodies 9MPx", 25, "CUDA", 33.47}, {"bodies 9MPx", 25, "OpenMP", 34.73}, {"bodies 9MPx", 25, "MATLAB", 34.62},
    {"bodies", 25, "CUDA", 33.25},      {"bodies", 25, "OpenMP", 35.17},      {"bodies", 25, "MATLAB", 35.01},
};
// clang-format on

// The rungs that stand beside the paper's versions.
constexpr const char* of_cuda = "2 batches";
constexpr const char* of_openmp = "threads";
constexpr const char* of_product = "ungrain";

// Of the ladder bm3d, by rung.
std::map<std::string, json> our_results(const std::vector<std::string>& json_files) {
  std::map<std::string, json> results;
  for (const std::string& path : json_files) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    const json document = json::parse(file);
    if (document.value("ladder", std::string()) != "bm3d") continue;
    for (const json& rung : document.at("rungs")) results[rung.at("name")] = rung.at("results");
  }
  return results;
}

std::string our_ms(const std::map<std::string, json>& ours, const std::string& rung, int width, int height) {
  const auto found = ours.find(rung);
  if (found == ours.end()) return "-";
  for (const json& result : found->second) {
    if (result.at("width") == width && result.at("height") == height)
      return fmt::format("{:.3f}", result.at("best").at("ms").get<double>());
  }
  return "-";
}

// §4.2: how many reference patches are filtered at once.
void print_batches(const std::map<std::string, json>& ours) {
  for (const auto& [rung, results] : ours) {
    for (const json& result : results) {
      std::string header;
      std::string row;
      std::string line;
      for (const json& shape : result.at("all")) {
        if (!shape.contains("batch")) continue;
        header += fmt::format(" {} |", shape.at("batch").get<std::string>());
        line += "--:|";
        row += fmt::format(" {:.3f} |", shape.at("ms").get<double>());
      }
      if (row.empty()) continue;
      fmt::print("\nbm3d, {}, {} x {}: ms by batch\n\n|{}\n|{}\n|{}\n", rung, result.at("width").get<int>(),
                 result.at("height").get<int>(), header, line, row);
    }
  }
}

}  // namespace

std::span<const Paper002Time> paper_002_times() { return times; }
std::span<const Paper002Quality> paper_002_qualities() { return qualities; }

void print_beside_paper_002(const std::vector<std::string>& json_files) {
  const std::map<std::string, json> ours = our_results(json_files);
  fmt::print(
      "\n| paper | table | machine | image | version | paper ms | our rung | our ms | our product's ms |\n"
      "|---|---|---|---|---|--:|---|--:|--:|\n");
  for (const Paper002Time& paper : paper_002_times()) {
    const std::string version = paper.version;
    const std::string rung = version == "CUDA" ? of_cuda : version == "OpenMP" ? of_openmp : "-";
    fmt::print("| [002] | {} | {} | {}, {} x {} | {} | {:.6g} ± {} % | {} | {} | {} |\n", paper.table,
               paper.machine, paper.image, paper.width, paper.height, version, 1000 * paper.seconds,
               paper.deviation_percent, rung, our_ms(ours, rung, paper.width, paper.height),
               our_ms(ours, of_product, paper.width, paper.height));
  }
  print_batches(ours);
  fmt::print("\n| paper | table | image | sigma | version | PSNR |\n|---|---|---|--:|---|--:|\n");
  for (const Paper002Quality& paper : paper_002_qualities()) {
    fmt::print("| [002] | 5.4 | {} | {} | {} | {:.2f} |\n", paper.image, paper.sigma, paper.version,
               paper.psnr);
  }
}

}  // namespace ungrain::study
