// ungrain-study: the papers' kernel versions, kept alive and measured beside the product's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <list>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "study/gallery.h"
#include "study/harness.h"
#include "study/machine.h"
#include "study/measurements.h"
#include "study/page.h"
#include "study/report.h"

namespace ungrain::study {
namespace {

const std::map<std::string, Wanted> device_names = {
    {"auto", Wanted::whatever_there_is}, {"cuda", Wanted::gpu}, {"cpu", Wanted::processor}};

// What every ladder's command and `all` take.
struct Where {
  std::string device = "auto";
  std::string image;

  Machine machine() const { return find_machine(device_names.at(device)); }
  PictureSource source() const { return image.empty() ? PictureSource() : PictureSource(image); }
};

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
  std::string json_path;
  std::string pgm_folder;
  Where where;
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

// Somebody's own picture is cut to the sizes that it has; where it has none of them, it is taken as it is.
void fit_sizes(const Ladder& ladder, Sweep& sweep, const PictureSource& source) {
  const std::vector<Size> wanted = sweep.sizes;
  std::erase_if(sweep.sizes, [&](const Size& size) { return !source.has(size); });
  if (sweep.sizes.size() == wanted.size()) return;
  if (sweep.sizes.empty()) sweep.sizes.push_back(source.size());
  std::string sizes;
  for (const Size& size : sweep.sizes)
    sizes += fmt::format("{}{} x {}", sizes.empty() ? "" : ", ", size.width, size.height);
  fmt::print(stderr, "ungrain-study: {}: {} is cut to {}; it is too small for the others\n", ladder.name,
             source.name(), sizes);
}

// What was not run, said once a ladder.
void tell_left_out(const Ladder& ladder, const Machine& machine) {
  if (!ladder.left_out.empty())
    fmt::print(stderr, "ungrain-study: {}: left out: {}\n", ladder.name, ladder.left_out);
  const std::vector<std::string> names = gpu_rungs(ladder);
  if (!machine.gpu.empty() || names.empty()) return;
  fmt::print(stderr, "ungrain-study: {}: left out, {}: {}\n", ladder.name, machine.why_not,
             fmt::join(names, "; "));
}

bool all_right(const Ladder& ladder, const std::vector<Measured>& results) {
  const bool right = std::all_of(results.begin(), results.end(), [&](const Measured& result) {
    return result.error <= ladder.tolerance_of(result.rung);
  });
  if (!right) {
    fmt::print(stderr, "ungrain-study: {}: a rung differs from the reference by more than it may\n",
               ladder.name);
  }
  return right;
}

int run_ladder(const Ladder& ladder, const Request& request) {
  Plan plan = plan_for(ladder, request);
  const Machine machine = request.where.machine();
  plan.gpu = !machine.gpu.empty();
  plan.source = request.where.source();
  fit_sizes(ladder, plan.sweep, plan.source);
  tell_left_out(ladder, machine);
  const std::vector<Measured> results = measure(ladder, plan, stderr);
  fmt::print("{}, {}: {}, {}\n\n", ladder.name, plan.gpu ? machine.gpu : machine.processor, ladder.setting,
             !ladder.usual.batches.empty() ? "the best batch"
             : ladder.usual.blocks.empty() ? "the best block and tiling factor N"
                                           : "the best block and grid of N blocks");
  print_table(ladder, results);
  if (!request.json_path.empty())
    write_json(request.json_path, machine, plan.source.name(), ladder, results, {});
  return all_right(ladder, results) ? 0 : 1;
}

struct RequestForAll {
  std::string folder = "study-results";
  std::string only;
  bool quick = false;
  Where where;
};

// Every ladder over the papers' parameters, and the pictures: what the page is made from.
int run_all(const RequestForAll& request) {
  const auto start = std::chrono::steady_clock::now();
  const Machine machine = request.where.machine();
  const PictureSource source = request.where.source();
  const std::vector<Ladder> ladders = all_ladders();
  if (std::none_of(ladders.begin(), ladders.end(),
                   [&](const Ladder& ladder) { return ladder.name.find(request.only) != std::string::npos; }))
    throw std::runtime_error("--ladder: no ladder's name holds '" + request.only + "'; --help lists them");
  std::filesystem::create_directories(request.folder);
  bool right = true;
  for (const Ladder& ladder : ladders) {
    if (ladder.name.find(request.only) == std::string::npos) continue;
    Plan plan{.sweep = request.quick ? ladder.quick : ladder.papers.value_or(ladder.usual),
              .sides = {4, 8, 16, 32},
              .runs = 3,
              .enough_ms = std::min(20.0, ladder.enough_ms),
              .only = "",
              .pgm_folder = "",
              .gpu = !machine.gpu.empty(),
              .source = source};
    fit_sizes(ladder, plan.sweep, source);
    tell_left_out(ladder, machine);
    const std::vector<Measured> results = measure(ladder, plan, stderr);
    const std::vector<CumulativeTime> cat =
        request.quick ? std::vector<CumulativeTime>{} : cumulative_times(ladder, plan, stderr);
    write_json(request.folder + "/" + ladder.name + ".json", machine, source.name(), ladder, results, cat);
    right = all_right(ladder, results) && right;
  }
  fmt::print(stderr, "pictures\n");
  write_gallery(request.folder, source, machine, request.quick);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{:.0f} s; the results are in {}. The page: ungrain-study report {} --html study.html\n",
             seconds.count(), request.folder, request.folder);
  return right ? 0 : 1;
}

void add_where(CLI::App* command, Where& where) {
  command
      ->add_option("--device", where.device,
                   "auto: a GPU where there is one, else what runs on the processor; cuda; cpu")
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}))
      ->capture_default_str();
  command->add_option("--image", where.image,
                      "A clean picture of your own in place of the scene: its middle, cut to the sizes");
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
  add_where(command, request.where);
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
  for (const Ladder& ladder : all_ladders()) {
    const Request request(ladder.usual);
    CLI::App* command = app.add_subcommand(ladder.name, ladder.summary);
    commands.push_back({ladder, request, command});
    add_options(command, ladder, commands.back().request);
  }

  CLI::App* all = app.add_subcommand("all", "Every ladder over the papers' parameters, and the pictures");
  RequestForAll request_for_all;
  all->add_option("--json", request_for_all.folder, "The folder for the results")->capture_default_str();
  all->add_option("--ladder", request_for_all.only, "Only ladders whose name holds this");
  all->add_flag("--quick", request_for_all.quick, "Few sizes, radii and tiling factors");
  add_where(all, request_for_all.where);

  CLI::App* report = app.add_subcommand("report", "The papers' tables beside measurements of ours");
  std::vector<std::string> files;
  PageRequest page;
  report->add_option("files", files, "What --json wrote: files, or the folder that `all` filled")->required();
  report->add_option("--html", page.path, "Write a page instead: one file, nothing is fetched");
  report->add_option("--commit", page.commit, "The sources' commit, to be named on the page");
  try {
    app.parse(count, words);
    for (const Command& command : commands) {
      if (*command.app) return run_ladder(command.ladder, command.request);
    }
    if (*all) return run_all(request_for_all);
    if (page.path.empty()) {
      print_beside_papers(result_files(files));
    } else {
      write_page(result_files(files), page);
    }
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
