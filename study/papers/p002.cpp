#include "study/papers/p002.h"

#include <fstream>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "study/papers/tables.h"

namespace ungrain::study {
namespace {

using nlohmann::json;

std::string text(const json& value) { return value.get<std::string>(); }

const json& papers_002() {
  for (const json& paper : papers()) {
    if (paper.at("paper") == "[002]") return paper;
  }
  throw std::logic_error("papers.json: no [002]");
}

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

void print_beside_paper_002(const std::vector<std::string>& json_files) {
  const std::map<std::string, json> ours = our_results(json_files);
  fmt::print(
      "\n| paper | table | machine | image | version | paper ms | our rung | our ms | our product's ms |\n"
      "|---|---|---|---|---|--:|---|--:|--:|\n");
  std::string qualities;
  for (const json& table : papers_002().at("tables")) {
    const json& programs = table.at("programs");
    for (const json& row : programs.value("seconds_and_deviation", json::array())) {
      const int width = row.at(1);
      const int height = row.at(2);
      const std::string version = row.at(3);
      const std::string rung = version == "CUDA" ? of_cuda : version == "OpenMP" ? of_openmp : "-";
      fmt::print("| [002] | {} | {} | {}, {} x {} | {} | {:.6g} ± {} % | {} | {} | {} |\n",
                 text(table.at("table")), text(programs.at("machine")), text(row.at(0)), width, height,
                 version, 1000 * row.at(4).get<double>(), row.at(5).get<double>(), rung,
                 our_ms(ours, rung, width, height), our_ms(ours, of_product, width, height));
    }
    for (const json& row : programs.value("psnr", json::array())) {
      qualities +=
          fmt::format("| [002] | {} | {} | {} | {} | {:.2f} |\n", text(table.at("table")), text(row.at(0)),
                      row.at(1).get<int>(), text(row.at(2)), row.at(3).get<double>());
    }
  }
  print_batches(ours);
  fmt::print("\n| paper | table | image | sigma | version | PSNR |\n|---|---|---|--:|---|--:|\n{}",
             qualities);
}

}  // namespace ungrain::study
