#include "study/report.h"

#include <fstream>
#include <map>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cuda/check.h"
#include "study/papers/tables.h"

namespace ungrain::study {
namespace {

using nlohmann::json;

// The time of a rung on the same picture; 0 where it was not measured.
double ms_of(const std::vector<Measured>& results, const std::string& rung, const Measured& like) {
  for (const Measured& result : results) {
    if (result.rung == rung && result.size == like.size && result.radius == like.radius)
      return result.best().ms;
  }
  return 0;
}

std::string ratio(double of, double to) { return of > 0 && to > 0 ? fmt::format("{:.2f}", of / to) : "-"; }

json shape_json(const Timing& timing) {
  json entry = {{"ms", timing.ms}};
  if (timing.shape.side > 0) {
    entry["side"] = timing.shape.side;
    entry["tiling"] = timing.shape.tiling;
  }
  if (timing.use) {
    entry["registers"] = timing.use->registers;
    entry["spilled_bytes"] = timing.use->spilled;
    entry["shared_bytes"] = timing.use->shared;
    entry["blocks"] = timing.use->blocks;
    entry["occupancy"] = timing.use->occupancy;
  }
  return entry;
}

json result_json(const Ladder& ladder, const std::vector<Measured>& results, const Measured& result) {
  json entry = {
      {"width", result.size.width},        {"height", result.size.height}, {"radius", result.radius},
      {"largest_error", result.error},  // null: not a number, a pixel was not written
      {"best", shape_json(result.best())}, {"all", json::array()}};
  for (const Timing& timing : result.all) entry["all"].push_back(shape_json(timing));
  const double naive = ms_of(results, ladder.naive, result);
  const double sequential = ms_of(results, ladder.sequential, result);
  if (naive > 0) entry["over_naive"] = naive / result.best().ms;
  if (sequential > 0) entry["over_sequential"] = sequential / result.best().ms;
  return entry;
}

}  // namespace

void print_table(const Ladder& ladder, const std::vector<Measured>& results) {
  fmt::print(
      "| rung | image | r | ms | block | N | registers | occupancy | over naive | over sequential | error |\n"
      "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const Measured& result : results) {
    const Timing& best = result.best();
    const bool kernel = best.use.has_value();
    fmt::print("| {} | {} x {} | {} | {:.4f} | {} | {} | {} | {} | {} | {} | {:.1e}{} |\n", result.rung,
               result.size.width, result.size.height, result.radius, best.ms,
               kernel ? fmt::format("{}", best.shape.side) : "-",
               kernel ? fmt::format("{}", best.shape.tiling) : "-",
               kernel ? fmt::format("{}", best.use->registers) : "-",
               kernel ? fmt::format("{:.0f} %", 100 * best.use->occupancy) : "-",
               ratio(ms_of(results, ladder.naive, result), best.ms),
               ratio(ms_of(results, ladder.sequential, result), best.ms), result.error,
               result.error <= tolerance ? "" : " WRONG");
  }
}

void write_json(const std::string& path, const std::string& gpu, const Ladder& ladder,
                const std::vector<Measured>& results) {
  int driver = 0;
  cuda::check(cudaDriverGetVersion(&driver), "asking for the driver");
  json document = {{"ladder", ladder.name},         {"gpu", gpu},
                   {"driver_cuda_version", driver}, {"toolkit_cuda_version", CUDART_VERSION},
                   {"compiler", __VERSION__},       {"tolerance", tolerance},
                   {"rungs", json::array()}};
  for (const Rung& rung : ladder.rungs) {
    json entry = {
        {"name", rung.name}, {"paper", rung.paper}, {"idea", rung.idea}, {"results", json::array()}};
    for (const Measured& result : results) {
      if (result.rung == rung.name) entry["results"].push_back(result_json(ladder, results, result));
    }
    document["rungs"].push_back(std::move(entry));
  }
  std::ofstream file(path);
  file << document.dump(1) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void print_beside_papers(const std::vector<std::string>& json_files) {
  // Ours by ladder, rung and radius: the picture of the paper's size where it was measured, else the largest.
  struct Ours {
    int width;
    int height;
    double ms;
  };
  std::multimap<std::tuple<std::string, std::string, int>, Ours> ours;
  for (const std::string& path : json_files) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    const json document = json::parse(file);
    for (const json& rung : document.at("rungs")) {
      for (const json& result : rung.at("results")) {
        ours.insert({{document.at("ladder"), rung.at("name"), result.at("radius")},
                     {result.at("width"), result.at("height"), result.at("best").at("ms")}});
      }
    }
  }
  fmt::print(
      "| paper | table | image | rung | r | paper ms | paper over naive | our image | our ms | our over "
      "naive |\n"
      "|---|---|---|---|--:|--:|--:|---|--:|--:|\n");
  for (const PaperTime& paper : paper_times()) {
    const Ours* best = nullptr;
    const auto [first, last] = ours.equal_range({paper.ladder, paper.rung, paper.radius});
    const auto same_size = [&](const Ours& entry) {
      return entry.width == paper.width && entry.height == paper.height;
    };
    for (auto it = first; it != last; ++it) {
      const Ours& entry = it->second;
      const bool larger = best != nullptr && !same_size(*best) &&
                          static_cast<long long>(entry.width) * entry.height >
                              static_cast<long long>(best->width) * best->height;
      if (best == nullptr || same_size(entry) || larger) best = &entry;
    }
    // Over the rung that keeps the same paper's naive kernel alive, on the same picture as `best`.
    double naive_ms = 0;
    const auto [first_naive, last_naive] = ours.equal_range({paper.ladder, paper.naive_rung, paper.radius});
    for (auto it = first_naive; best != nullptr && it != last_naive; ++it) {
      if (it->second.width == best->width && it->second.height == best->height) naive_ms = it->second.ms;
    }
    fmt::print("| {} | {} | {} | {} | {} | {:.4g} | {} | {} | {} | {} |\n", paper.paper, paper.table,
               paper.image, paper.rung, paper.radius, paper.ms, ratio(paper.naive_ms, paper.ms),
               best ? fmt::format("{} x {}", best->width, best->height) : "-",
               best ? fmt::format("{:.4f}", best->ms) : "-", best ? ratio(naive_ms, best->ms) : "-");
  }
}

}  // namespace ungrain::study
