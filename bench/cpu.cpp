// ungrain-bench-cpu: times of the filters on the processor, from an image in memory to an image in memory
// through the public API. Each result is held against the reference before it is timed, and each time against
// what the machine can do at most, measured by the same program.
//
// With --ask it waits for requests on the standard input, one JSON object a line, and answers each with one:
// so that another program (bench/run) can let it take turns with other libraries.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/cases.h"
#include "bench/ceilings.h"
#include "bench/common.h"
#include "bench/parts.h"
#include "bench/trial.h"
#include "cpu/simd.h"
#include "io/image_file.h"
#include "ungrain/error.h"

namespace ungrain::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> words;
  std::string sizes = "512x512,1920x1080,4096x4096";
  int threads = 0;
  std::string simd;
  std::string json;
  bool quick = false;
  bool cpu_time = false;
  bool ask = false;
};

[[noreturn]] void invalid(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

std::vector<Size> parse_sizes(const std::string& text) {
  std::vector<Size> sizes;
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) {
    Size size;
    int end = 0;
    const int read = std::sscanf(word.c_str(), "%dx%d%n", &size.width, &size.height, &end);
    if (read != 2 || word.c_str()[end] != '\0')
      invalid(fmt::format("a size is WIDTHxHEIGHT, not '{}'", word));
    sizes.push_back(size);
  }
  return sizes;
}

int all_threads() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

// The ceilings for a number of threads, measured when they are first asked for.
class Ceilings {
 public:
  double multiply_adds(const std::string& simd, int threads) {
    const auto [at, missing] = multiply_adds_.try_emplace({simd, threads}, 0);
    if (missing) {
      use_simd_target(simd);
      at->second = multiply_adds_per_ns(threads);
    }
    return at->second;
  }
  double copy(std::size_t bytes, int threads) {
    const auto [at, missing] = copies_.try_emplace({bytes, threads}, 0);
    if (missing) at->second = copy_bytes_per_ns(bytes, threads);
    return at->second;
  }

 private:
  std::map<std::pair<std::string, int>, double> multiply_adds_;
  std::map<std::pair<std::size_t, int>, double> copies_;
};

std::vector<std::string> simd_names() {
  std::vector<std::string> names = simd_targets();
  for (const std::string& variant : simd_variants()) names.push_back(variant);
  return names;
}

Json machine(const std::string& simd, int threads, bool quick, Ceilings& ceilings) {
  Json sets;
  for (const std::string& target : simd_names()) {
    sets[target] = {{"one_thread", ceilings.multiply_adds(target, 1)},
                    {"all_threads", ceilings.multiply_adds(target, threads)}};
  }
  const std::size_t large = (quick ? 16UL : 256UL) << 20U;
  return {{"simd", simd.empty() ? simd_targets().front() : simd},
          {"threads", threads},
          {"compiler", __VERSION__},
          {"multiply_adds_per_ns", sets},
          {"simd_of_bm3d", simd_variants()},
          {"copy_bytes_per_ns", {{"bytes", large}, {"rate", ceilings.copy(large, threads)}}}};
}

Json description(const Case& what) {
  Json params;
  for (const ParamInfo& info : method_info(what.params.method()).params) {
    params[info.name] = what.params.get_text(info.name);
  }
  return {{"name", what.name()},
          {"method", what.params.method()},
          {"filter", what.filter},
          {"setting", what.setting},
          {"colour", what.rgb ? "rgb" : "gray"},
          {"type", name(what.type)},
          {"params", params},
          {"least_operations", what.least_operations},
          {"least_bytes", what.least_bytes()}};
}

// What the ceilings are for a trial: the times that its least work would take.
Json bounds(const Trial& trial, const std::string& simd, int threads, Ceilings& ceilings) {
  const double pixels = static_cast<double>(trial.spec().width) * trial.spec().height;
  const double arithmetic =
      trial.what().least_operations * pixels / ceilings.multiply_adds(simd, threads) / 1e6;
  const double memory =
      trial.what().least_bytes() * pixels / ceilings.copy(trial.input().bytes(), threads) / 1e6;
  return {{"fma_ms", arithmetic}, {"copy_ms", memory}};
}

// ---- By itself
// -------------------------------------------------------------------------------------------------

struct Effort {
  double seconds = 0.5;
  int least_runs = 3;
};

Json measure(const Case& what, const Size& size, const Options& options, const Effort& effort,
             Ceilings& ceilings) {
  Trial trial(what,
              {.size = size, .threads = options.threads, .simd = options.simd, .cpu_time = options.cpu_time});
  trial.check();  // the first run of it is the warm-up
  Json row = description(what);
  row["width"] = size.width;
  row["height"] = size.height;
  row["error"] = trial.error();
  row["right"] = trial.right();
  if (!trial.right()) return row;
  std::vector<double> ms = trial.run_for(effort.seconds);
  while (static_cast<int>(ms.size()) < effort.least_runs) ms.push_back(trial.run_once());
  row["threads"] = trial.threads();
  row["runs"] = ms.size();
  row["ms"] = median(ms);
  row["spread"] = (quantile(ms, 0.75) - quantile(ms, 0.25)) / 2 / median(ms);
  row["mpixel_per_s"] = static_cast<double>(size.width) * size.height / median(ms) / 1e3;
  row["psnr"] = trial.psnr();
  row["bounds"] = bounds(trial, options.simd, trial.threads(), ceilings);
  return row;
}

std::string error_text(const Json& row) {
  const double error = row["error"];
  const bool floats = row["type"].get<std::string>().front() == 'f';
  return floats ? fmt::format("{:.0e}", error) : fmt::format("{:.0f} step", error);
}

std::string share_text(double share) { return share > 0 ? fmt::format("{:.0f} %", 100 * share) : "-"; }

void print_row(const Json& row) {
  const std::string size = fmt::format("{}x{}", row["width"].get<int>(), row["height"].get<int>());
  fmt::print("| {:<38} | {:<9} ", row["name"].get<std::string>(), size);
  if (!row["right"].get<bool>()) {
    fmt::print("| WRONG: error {} |\n", error_text(row));
    return;
  }
  const double ms = row["ms"];
  fmt::print("| {:>9.3f} | {:>3.0f} % | {:>8.1f} | {:>6} | {:>5.2f} | {:>5} | {:>5} |\n", ms,
             100 * row["spread"].get<double>(), row["mpixel_per_s"].get<double>(), error_text(row),
             row["psnr"].get<double>(), share_text(row["bounds"]["fma_ms"].get<double>() / ms),
             share_text(row["bounds"]["copy_ms"].get<double>() / ms));
  std::fflush(stdout);
}

void write_json(const std::string& path, const Json& what) {
  std::ofstream file(path);
  file << what.dump(1) << '\n';
  if (!file.flush()) throw Error(ErrorCode::io, fmt::format("{}: cannot be written", path));
}

// Whether all results were right.
bool run_all(const Options& options) {
  const std::vector<Case> chosen = cases(options.words);
  const std::vector<Size> sizes = parse_sizes(options.sizes);
  const Effort effort = options.quick ? Effort{0.05, 1} : Effort{};
  const int threads = options.threads > 0 ? options.threads : all_threads();
  Ceilings ceilings;
  Json result = {{"machine", machine(options.simd, threads, options.quick, ceilings)},
                 {"rows", Json::array()}};
  const Json& about = result["machine"];
  const std::string simd = about["simd"];
  fmt::print("{}, {} threads; {:.0f} G multiply-adds/s ({:.0f} on one thread), copies {:.1f} GB/s\n\n", simd,
             threads, about["multiply_adds_per_ns"][simd]["all_threads"].get<double>(),
             about["multiply_adds_per_ns"][simd]["one_thread"].get<double>(),
             about["copy_bytes_per_ns"]["rate"].get<double>());
  fmt::print(
      "| filter | image | ms | +- | Mpixel/s | error | PSNR | of FMA | of copy "
      "|\n|---|---|---|---|---|---|---|---|---|\n");
  bool right = true;
  for (const Size& size : sizes) {
    for (const Case& what : chosen) {
      result["rows"].push_back(measure(what, size, options, effort, ceilings));
      print_row(result["rows"].back());
      right = right && result["rows"].back()["right"].get<bool>();
    }
  }
  if (!options.json.empty()) write_json(options.json, result);
  return right;
}

// ---- On request
// ------------------------------------------------------------------------------------------------

class Answers {
 public:
  explicit Answers(const Options& options) : options_(options), cases_(cases(options.words)) {}

  Json operator()(const Json& request) {
    const std::string what = request.at("do");
    if (what == "list") return list();
    if (what == "machine") return machine(options_.simd, threads_of(request), options_.quick, ceilings_);
    if (what == "open") return open(request);
    if (what == "run") return {{"ms", trial(request).run_for(request.at("seconds"))}};
    if (what == "psnr") return {{"psnr", trial(request).psnr()}};
    if (what == "parts") return parts(request);
    if (what == "save") return save(request);
    if (what == "close") return {{"closed", trials_.erase(request.at("id").get<int>())}};
    invalid(fmt::format("nobody knows how to '{}'", what));
  }

 private:
  static int threads_of(const Json& request) {
    const int threads = request.value("threads", 0);
    return threads > 0 ? threads : all_threads();
  }

  Json list() const {
    Json all = Json::array();
    for (const Case& one : cases_) all.push_back(description(one));
    return {{"cases", all}};
  }

  const Case& case_named(const std::string& name) const {
    for (const Case& one : cases_) {
      if (one.name() == name) return one;
    }
    invalid(fmt::format("no case '{}'", name));
  }

  static PixelType type_named(const std::string& text) {
    for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16, PixelType::f32}) {
      if (text == name(type)) return type;
    }
    invalid(fmt::format("no samples of type '{}'", text));
  }

  Trial& trial(const Json& request) { return *trials_.at(request.at("id").get<int>()); }

  Json open(const Json& request) {
    const Setup setup{.size = {request.at("width"), request.at("height")},
                      .threads = request.value("threads", options_.threads),
                      .simd = request.value("simd", options_.simd),
                      .reference = request.value("reference", false),
                      .cpu_time = options_.cpu_time};
    auto trial = std::make_unique<Trial>(case_named(request.at("case")), setup);
    trial->check();
    Json answer = {{"id", next_id_},
                   {"first_ms", trial->first_ms()},
                   {"error", trial->error()},
                   {"right", trial->right()},
                   {"threads", trial->threads()},
                   {"bounds", bounds(*trial, setup.simd, trial->threads(), ceilings_)}};
    trials_.emplace(next_id_++, std::move(trial));
    return answer;
  }

  // Where the time of a case of bm3d goes, on one thread.
  Json parts(const Json& request) {
    const Size size{request.at("width"), request.at("height")};
    Trial trial(case_named(request.at("case")), {.size = size, .threads = 1, .simd = options_.simd});
    const PartRates rates{ceilings_.multiply_adds(options_.simd, 1), ceilings_.copy(tile_copy_bytes, 1)};
    Json list = Json::array();
    for (const PartTime& one : measure_parts(trial, rates)) {
      list.push_back(
          {{"step", one.step}, {"part", one.part}, {"ns", one.ns}, {"fma", one.fma}, {"copy", one.copy}});
    }
    return {{"parts", list}, {"copy_bytes_per_ns", rates.copy_bytes}, {"copy_bytes", tile_copy_bytes}};
  }

  // The picture of a kind and size, with or without its noise, or a trial's result, as an NPY file.
  Json save(const Json& request) {
    const std::string path = request.at("path");
    if (request.contains("id")) {
      io::write_image(path, trial(request).output().view());
    } else {
      const Size size{request.at("width"), request.at("height")};
      const bool rgb = request.at("colour") == "rgb";
      const ImageSpec spec = spec_of(size, type_named(request.at("type")), rgb);
      if (request.value("clean", false)) {
        const Image clean = clean_picture(spec);
        io::write_image(path, clean.view());
      } else {
        io::write_image(path, noisy_picture(spec)->view());
      }
    }
    return {{"path", path}};
  }

  Options options_;
  std::vector<Case> cases_;
  std::map<int, std::unique_ptr<Trial>> trials_;
  int next_id_ = 0;
  Ceilings ceilings_;
};

void answer_requests(const Options& options) {
  Answers answers(options);
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      answer = answers(Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"failed", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}

int run(int count, char** arguments) {
  Options options;
  CLI::App app("Times of ungrain's filters on the processor, beside what the machine can do at most.",
               "ungrain-bench-cpu");
  app.add_option("words", options.words,
                 "only what begins with one of them: \"bilateral\", \"nlm 21/7 rgb\"");
  app.add_option("--threads", options.threads, "0: one for each processor")->check(CLI::Range(0, 1024));
  app.add_option("--sizes", options.sizes, "WIDTHxHEIGHT,...")->capture_default_str();
  app.add_option("--simd", options.simd, "the set of vector instructions; otherwise the best")
      ->check(CLI::IsMember(simd_names()));
  app.add_option("--json", options.json, "write the results into this file, too");
  app.add_flag("--quick", options.quick, "short and rough");
  app.add_flag("--cpu-time", options.cpu_time, "time of the processor: for one thread on a busy machine");
  app.add_flag("--ask", options.ask, "answer requests on the standard input");
  CLI11_PARSE(app, count, arguments);
  if (options.cpu_time && options.threads != 1) invalid("--cpu-time needs --threads 1");
  if (options.ask) {
    answer_requests(options);
    return 0;
  }
  return run_all(options) ? 0 : 1;
}

}  // namespace
}  // namespace ungrain::bench

int main(int count, char** arguments) {
  try {
    return ungrain::bench::run(count, arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ungrain-bench-cpu: {}\n", error.what());
    return 2;
  }
}
