#include "study/report.h"

#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "study/measurements.h"
#include "study/papers/p002.h"
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
  if (timing.share < 1)
    entry["share"] = timing.share;  // of the picture that was filtered; the time is scaled
  if (timing.shape.side > 0) {
    entry["side"] = timing.shape.side;
    entry["tiling"] = timing.shape.tiling;
  }
  if (timing.shape.threads > 0) {
    entry["threads"] = timing.shape.threads;
    entry["grid"] = timing.shape.blocks;
  }
  if (timing.shape.batch.width > 0)
    entry["batch"] = fmt::format("{}x{}", timing.shape.batch.width, timing.shape.batch.height);
  for (const PartTime& part : timing.parts) entry["parts_ms"][part.part] = part.ms;
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
      {"largest_error", result.largest},  // null: not a number, a pixel was not written
      {"best", shape_json(result.best())}, {"all", json::array()}};
  for (const Timing& timing : result.all) entry["all"].push_back(shape_json(timing));
  if (ladder.agreement == Agreement::rms) entry["rms_error"] = result.error;
  if (result.psnr) entry["psnr"] = *result.psnr;
  const double naive = ms_of(results, ladder.naive, result);
  const double sequential = ms_of(results, ladder.sequential, result);
  if (naive > 0) entry["over_naive"] = naive / result.best().ms;
  if (sequential > 0) entry["over_sequential"] = sequential / result.best().ms;
  return entry;
}

std::string picture_of(const Measurements::Time* time) {
  return time != nullptr ? fmt::format("{} x {}", time->size.width, time->size.height) : "-";
}
std::string ms_of(const Measurements::Time* time) {
  return time != nullptr ? fmt::format("{:.4f}", time->ms) : "-";
}

void print_times(const Measurements& ours) {
  fmt::print(
      "\n| paper | table | image | rung | r | paper ms | paper over naive | our image | our ms | our over "
      "naive |\n"
      "|---|---|---|---|--:|--:|--:|---|--:|--:|\n");
  for (const PaperTime& paper : paper_times()) {
    const Measurements::Time* time =
        ours.find(paper.ladder, paper.rung, paper.radius, {paper.width, paper.height});
    // Over the rung that keeps the same paper's naive kernel alive.
    const double naive_ms =
        time != nullptr ? ours.ms_beside(*time, paper.ladder, paper.naive_rung, paper.radius) : 0;
    fmt::print(
        "| {} | {} | {} | {} | {} | {:.6g} | {} | {} | {} | {} |\n", paper.paper, paper.table,
        paper.width > 0 ? fmt::format("{}, {} x {}", paper.image, paper.width, paper.height) : paper.image,
        paper.rung, paper.radius, paper.ms, ratio(paper.naive_ms, paper.ms), picture_of(time), ms_of(time),
        time != nullptr ? ratio(naive_ms, time->ms) : "-");
  }
}

void print_speed_ups(const Measurements& ours) {
  fmt::print(
      "\n| paper | table | image | size | rung | r | paper over sequential | our image | our over sequential "
      "|\n"
      "|---|---|---|---|---|--:|--:|---|--:|\n");
  for (const PaperSpeedUp& paper : paper_speed_ups()) {
    const Measurements::Time* time =
        ours.find(paper.ladder, paper.rung, paper.radius, {paper.width, paper.height});
    const double sequential_ms =
        time != nullptr ? ours.ms_beside(*time, paper.ladder, paper.sequential_rung, paper.radius) : 0;
    fmt::print("| {} | {} | {} | {} x {} | {} | {} | {:.2f} | {} | {} |\n", paper.paper, paper.table,
               paper.image, paper.width, paper.height, paper.rung, paper.radius, paper.factor,
               picture_of(time), time != nullptr ? ratio(sequential_ms, time->ms) : "-");
  }
}

// [003]'s figures 3 to 8 with our times: how threads a block and blocks a grid go together.
void print_grids(const Measurements& ours) {
  for (const json& document : ours.ladders()) {
    for (const json& rung : document.at("rungs")) {
      for (const json& result : rung.at("results")) {
        std::map<int, std::map<int, double>> ms;  // by threads and blocks
        std::set<int> grids;
        for (const json& shape : result.at("all")) {
          if (!shape.contains("grid")) continue;
          grids.insert(shape.at("grid").get<int>());
          ms[shape.at("threads").get<int>()][shape.at("grid").get<int>()] = shape.at("ms").get<double>();
        }
        if (ms.empty()) continue;
        fmt::print("\n{}, {}, {} x {}, r {}: ms by threads a block and blocks\n\n| threads |",
                   document.at("ladder").get<std::string>(), rung.at("name").get<std::string>(),
                   result.at("width").get<int>(), result.at("height").get<int>(),
                   result.at("radius").get<int>());
        for (const int grid : grids) fmt::print(" {} |", grid);
        fmt::print("\n|--:|");
        for (std::size_t i = 0; i < grids.size(); ++i) fmt::print("--:|");
        for (const auto& [threads, by_grid] : ms) {
          fmt::print("\n| {} |", threads);
          for (const int grid : grids) {
            const auto found = by_grid.find(grid);
            fmt::print(" {} |", found != by_grid.end() ? fmt::format("{:.3f}", found->second) : "-");
          }
        }
        fmt::print("\n");
      }
    }
  }
}

// Where the time of the best shape goes, for rungs that say so.
void print_parts(const std::vector<Measured>& results) {
  bool first = true;
  for (const Measured& result : results) {
    const Timing& best = result.best();
    if (best.parts.empty()) continue;
    if (first) fmt::print("\nms by part, of one run:\n\n| rung | image | parts |\n|---|---|---|\n");
    first = false;
    fmt::print("| {} | {} x {} |", result.rung, result.size.width, result.size.height);
    const char* before = " ";
    for (const PartTime& part : best.parts) {
      fmt::print("{}{} {:.3f}", before, part.part, part.ms);
      before = ", ";
    }
    fmt::print(" |\n");
  }
}

// Ours are in docs/results/papers-nlm.md: they take the papers' images.
void print_qualities() {
  fmt::print(
      "\n| paper | table | version | image | size | PSNR | SSIM | FSIM |\n"
      "|---|---|---|---|---|--:|--:|--:|\n");
  for (const PaperQuality& paper : paper_qualities()) {
    fmt::print("| {} | {} | {} | {} | {} x {} | {:.1f} | {:.3f} | {:.3f} |\n", paper.paper, paper.table,
               paper.version, paper.image, paper.side, paper.side, paper.psnr, paper.ssim, paper.fsim);
  }
}

}  // namespace

void print_table(const Ladder& ladder, const std::vector<Measured>& results) {
  fmt::print(
      "| rung | image | r | ms | block | N | registers | occupancy | over naive | over sequential | error "
      "|{}\n"
      "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|{}\n",
      ladder.quality ? " PSNR |" : "", ladder.quality ? "--:|" : "");
  bool part = false;
  for (const Measured& result : results) {
    const Timing& best = result.best();
    const bool kernel = best.use.has_value();
    const bool squares = kernel && best.shape.side > 0;
    const bool grids = kernel && best.shape.threads > 0;
    const Size& batch = best.shape.batch;
    fmt::print("| {} | {} x {} | {} | {:.4f}{} | {} | {} | {} | {} | {} | {} | {:.1e}{} |", result.rung,
               result.size.width, result.size.height, result.radius, best.ms, best.share < 1 ? "*" : "",
               squares           ? fmt::format("{}", best.shape.side)
               : grids           ? fmt::format("{}", best.shape.threads)
               : batch.width > 0 ? fmt::format("{}x{}", batch.width, batch.height)
                                 : "-",
               squares ? fmt::format("{}", best.shape.tiling)
               : grids ? fmt::format("{}", best.shape.blocks)
                       : "-",
               kernel ? fmt::format("{}", best.use->registers) : "-",
               kernel ? fmt::format("{:.0f} %", 100 * best.use->occupancy) : "-",
               ratio(ms_of(results, ladder.naive, result), best.ms),
               ratio(ms_of(results, ladder.sequential, result), best.ms), result.error,
               result.error <= ladder.tolerance_of(result.rung) ? "" : " WRONG");
    if (ladder.quality) fmt::print(" {} |", result.psnr ? fmt::format("{:.2f}", *result.psnr) : "-");
    fmt::print("\n");
    part = part || best.share < 1;
  }
  if (part) fmt::print("\n\\* scaled: measured on a part of the picture\n");
  print_parts(results);
}

void write_json(const std::string& path, const Machine& machine, const std::string& picture,
                const Ladder& ladder, const std::vector<Measured>& results,
                const std::vector<CumulativeTime>& cumulative) {
  json document = machine_json(machine);
  document.update({{"ladder", ladder.name},
                   {"summary", ladder.summary},
                   {"strengths", ladder.setting},
                   {"picture", picture},
                   {"sequential", ladder.sequential},
                   {"naive", ladder.naive},
                   {"tolerance", ladder.tolerance},
                   {"rungs", json::array()}});
  if (machine.gpu.empty()) document["left_out"] = gpu_rungs(ladder);
  if (!ladder.left_out.empty()) document["not_built"] = ladder.left_out;
  for (const Rung& rung : ladder.rungs) {
    json entry = {{"name", rung.name},
                  {"paper", rung.paper},
                  {"idea", rung.idea},
                  {"gpu", rung.gpu},
                  {"results", json::array()}};
    for (const Measured& result : results) {
      if (result.rung == rung.name) entry["results"].push_back(result_json(ladder, results, result));
    }
    document["rungs"].push_back(std::move(entry));
  }
  for (const CumulativeTime& time : cumulative) {
    document["cumulative_average_time"].push_back({{"rung", time.rung},
                                                   {"width", time.size.width},
                                                   {"height", time.size.height},
                                                   {"pictures", time.pictures},
                                                   {"executions", time.executions},
                                                   {"ms", time.ms},
                                                   {"share", time.share}});
  }
  std::ofstream file(path);
  file << document.dump(1) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void print_beside_papers(const std::vector<std::string>& json_files) {
  const Measurements ours(json_files);
  for (const json& paper : papers()) {
    fmt::print("- {}: {}\n", paper.at("paper").get<std::string>(), paper.at("machine").get<std::string>());
  }
  print_times(ours);
  print_speed_ups(ours);
  print_grids(ours);
  print_qualities();
  print_beside_paper_002(json_files);
}

}  // namespace ungrain::study
