// ungrain-study: the papers' kernel versions, kept alive and measured beside the product's.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <list>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "study/harness.h"
#include "study/report.h"
#include "ungrain/denoiser.h"

namespace ungrain::study {
namespace {

struct Request {
  explicit Request(const Sweep& usual)
      : radii(usual.radii), tilings(usual.tilings), threads(usual.threads), blocks(usual.blocks) {
    for (const Size& size : usual.sizes) sizes.push_back(fmt::format("{}x{}", size.width, size.height));
    for (const Size& size : usual.batches) batches.push_back(fmt::format("{}x{}", size.width, size.height));
  }

  std::vector<std::string> sizes;
  std::vector<int> radii;
  std::vector<int> sides = {4, 8, 16, 32};
  std::vector<int> tilings;
  std::vector<int> threads;
  std::vector<int> blocks;
  std::vector<std::string> batches;
  int runs = 7;
  bool quick = false;
  bool all = false;
  std::string only;
  std::string device = "cuda";
  std::string json_path;
  std::string pgm_folder;
};

Size parse_size(const std::string& text, const char* option, int least, int most) {
  Size size;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &size.width, &size.height, &rest) != 2) size = {};
  if (std::min(size.width, size.height) < least || std::max(size.width, size.height) > most) {
    throw CLI::ValidationError(option,
                               fmt::format("each is WIDTHxHEIGHT, from {0}x{0} to {1}x{1}", least, most));
  }
  return size;
}

Plan plan_for(const Ladder& ladder, const Request& request) {
  Plan plan{.sweep = {.sizes = {},
                      .radii = request.radii,
                      .tilings = request.tilings,
                      .threads = request.threads,
                      .blocks = request.blocks},
            .sides = request.sides,
            .runs = request.runs,
            .enough_ms = ladder.enough_ms,
            .only = request.only,
            .pgm_folder = request.pgm_folder};
  // The margin is mirrored once, and kernels count pixels in 32 bits.
  for (const std::string& size : request.sizes)
    plan.sweep.sizes.push_back(parse_size(size, "--sizes", margin, 30000));
  for (const std::string& batch : request.batches)
    plan.sweep.batches.push_back(parse_size(batch, "--batches", 1, 512));
  if (request.quick) {
    plan.sweep = ladder.quick;
    plan.runs = 3;
  }
  if (request.all) {
    plan.sweep.radii.resize(static_cast<std::size_t>(ladder.radii_up_to));
    std::iota(plan.sweep.radii.begin(), plan.sweep.radii.end(), 1);
    plan.runs = 3;
    plan.enough_ms = 20;  // some ten thousand cells: bilateral takes about four minutes on an H200
  }
  return plan;
}

// The GPU's name; nothing where there is none, with the reason on stderr.
std::string find_gpu() {
  std::string reason = "none found";
  for (const DeviceInfo& info : devices()) {
    if (info.device.kind != Device::Kind::cuda) continue;
    if (info.usable && info.device.index == 0) return info.description;
    reason = info.reason;
  }
  fmt::print(stderr, "ungrain-study: needs a GPU: {}\n", reason);
  return "";
}

int run_ladder(const Ladder& ladder, const Request& request) {
  const Plan plan = plan_for(ladder, request);
  const std::string gpu = find_gpu();
  if (gpu.empty()) return 1;
  if (!ladder.left_out.empty()) fmt::print(stderr, "ungrain-study: left out: {}\n", ladder.left_out);
  const std::vector<Measured> results = measure(ladder, plan, stderr);
  fmt::print("{}, {}: {}, {}\n\n", ladder.name, gpu, ladder.setting,
             !ladder.usual.batches.empty() ? "the best batch"
             : ladder.usual.blocks.empty() ? "the best block and tiling factor N"
                                           : "the best block and grid of N blocks");
  print_table(ladder, results);
  if (!request.json_path.empty()) write_json(request.json_path, gpu, ladder, results);
  const bool right = std::all_of(results.begin(), results.end(), [&](const Measured& result) {
    return result.error <= ladder.tolerance_of(result.rung);
  });
  if (!right) fmt::print(stderr, "ungrain-study: a rung differs from the reference by more than it may\n");
  return right ? 0 : 1;
}

void add_options(CLI::App* command, const Ladder& ladder, Request& request) {
  command->add_option("--sizes", request.sizes, "Pictures, WIDTHxHEIGHT")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--radii", request.radii,
                   "Radii of the window or the search, or of the patches where all is searched")
      ->delimiter(',')
      ->check(CLI::Range(1, ladder.radii_up_to))
      ->capture_default_str();
  if (request.batches.empty()) {
    command->add_option("--sides", request.sides, "Sides of the blocks of threads")
        ->delimiter(',')
        ->check(CLI::Range(4, 32))
        ->capture_default_str();
  } else {
    command
        ->add_option("--batches", request.batches,
                     "Reference patches that are filtered at once, COLUMNSxROWS, where a picture is filtered "
                     "in batches")
        ->delimiter(',')
        ->capture_default_str();
  }
  if (!request.tilings.empty()) {
    command->add_option("--tilings", request.tilings, "Pixels a thread, where the rung has them")
        ->delimiter(',')
        ->check(CLI::IsMember(request.tilings))
        ->capture_default_str();
  }
  if (!request.blocks.empty()) {
    command
        ->add_option("--threads", request.threads, "Threads a block, where kernels stride over the picture")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command->add_option("--blocks", request.blocks, "Blocks of a grid, where kernels stride over the picture")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
  }
  command->add_option("--runs", request.runs, "Runs; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rung", request.only, "Only rungs whose name holds this");
  command->add_option("--device", request.device, "Where kernels run")->check(CLI::IsMember({"cuda"}));
  command->add_option("--json", request.json_path, "Write every measurement to this file");
  command->add_option("--pgm", request.pgm_folder,
                      "Write what each rung makes of the picture it is checked on into this folder");
  CLI::Option* quick = command->add_flag("--quick", request.quick, "Few sizes, radii and tiling factors");
  command->add_flag("--all", request.all, "Every radius, few runs each")->excludes(quick);
}

int run(int count, char** words) {
  CLI::App app("The papers' kernel versions, checked against the reference and timed beside the product's.");
  app.require_subcommand(1);
  struct Command {
    Ladder ladder;
    Request request;
    CLI::App* app;
  };
  std::list<Command> commands;  // the options point into them
  for (const Ladder& ladder :
       std::vector{bilateral_ladder(), adaptive_bilateral_ladder(), nlm_ladder(), nlm_bilateral_ladder(),
                   nlm_whole_image_ladder(), nlm_bilateral_whole_image_ladder(), bm3d_ladder()}) {
    const Request request(ladder.usual);
    CLI::App* command = app.add_subcommand(ladder.name, ladder.summary);
    commands.push_back({ladder, request, command});
    add_options(command, ladder, commands.back().request);
  }
  CLI::App* report = app.add_subcommand("report", "The papers' tables beside measurements of ours");
  std::vector<std::string> files;
  report->add_option("files", files, "What --json wrote")->required();
  try {
    app.parse(count, words);
    for (const Command& command : commands) {
      if (*command.app) return run_ladder(command.ladder, command.request);
    }
    print_beside_papers(files);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
}

}  // namespace
}  // namespace ungrain::study

int main(int count, char** words) {
  try {
    return ungrain::study::run(count, words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ungrain-study: {}\n", error.what());
    return 1;
  }
}
