// ungrain FILES…: each file through one method, row by row, into a file of its own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "denoise_file.h"
#include "denoise_request.h"
#include "files.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "journal.h"
#include "json_text.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "streams.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/memory.h"
#include "ungrain/version.h"

namespace ungrain::cli {
namespace {

std::string spec_text(const io::FileInfo& info) {
  const ImageSpec& spec = info.spec;
  const std::string size = spec.is_volume()
                               ? fmt::format("{}x{}x{}", spec.slice.width, spec.slice.height, spec.height)
                               : fmt::format("{}x{}", spec.width, spec.height);
  const char* const each = spec.is_volume() ? "volumes" : "pages";
  return fmt::format("{} {} {}{}{}", size, name(spec.type), name(spec.colour), spec.alpha ? "+alpha" : "",
                     info.pages > 1 ? fmt::format(" {} {}", info.pages, each) : "");
}

std::string names_text(const FilePair& files) {
  return io::one_line(fmt::format("{} -> {}", shown_input(files.input), shown_output(files.output)));
}

// "cuda:all (2 queues on 1 GPU)", or just the name.
std::string device_text(const Report& report) {
  if (report.device.index != Device::all_gpus) return name(report.device);
  return fmt::format("{} ({} on {} GPU{})", name(report.device),
                     report.queues == 1 ? "1 queue" : fmt::format("{} queues", report.queues), report.gpus,
                     report.gpus == 1 ? "" : "s");
}

// Where clipped noise was undone: "black and white".
std::string undone_text(const Outcome& outcome) {
  if (outcome.undone_at_black) return outcome.undone_at_white ? "black and white" : "black";
  return outcome.undone_at_white ? "white" : "";
}

std::string line_text(const FilePair& files, const Outcome& outcome) {
  std::string strengths;
  for (const Strength& strength : outcome.report.strengths) {
    strengths += fmt::format("  {} {:.4g} of 255 = {:.4g} of {:.6g}", strength.name, strength.on_255,
                             strength.value, outcome.in.spec.white());
  }
  const bool converted = outcome.out.spec.type != outcome.in.spec.type;
  const double pixels =
      static_cast<double>(outcome.in.spec.width) * outcome.in.spec.height * outcome.in.pages;
  std::string line = fmt::format("{}  {}{}", names_text(files), spec_text(outcome.in),
                                 converted ? fmt::format(" -> {}", name(outcome.out.spec.type)) : "");
  if (outcome.range_from == "values")
    line += fmt::format("  white {:g} by its values", outcome.in.spec.white());
  if (!outcome.noise_found) {
    line += fmt::format("  no noise found: written unchanged; {} tells it",
                        outcome.method == "bm3d" ? "--sigma" : "--sigma or another strength");
  }
  if (const std::string undone = undone_text(outcome); !undone.empty())
    line += fmt::format("  clipped noise at {} undone", undone);
  if (outcome.noise_too_weak) {
    line += fmt::format("  noise: {}: too weak to matter, left as it is", outcome.noise);
  } else if (outcome.noise_found && !outcome.noise.empty()) {
    line += fmt::format("  noise: {} ->", outcome.noise);
  }
  if (!outcome.copied) {
    const bool told = line.ends_with("->");
    line += fmt::format("{}{}{}  {} x{}  {:.2f} s  {:.1f} Mpixel/s", told ? " " : "  ", outcome.method,
                        outcome.noise_found && !outcome.noise_too_weak ? strengths : "",
                        device_text(outcome.report), outcome.report.threads, outcome.seconds,
                        pixels / outcome.seconds / 1e6);
  }
  if (outcome.report.nonfinite_pixels > 0) {
    line += fmt::format("  {} pixels were not finite", outcome.report.nonfinite_pixels);
  }
  if (!outcome.in.note.empty()) line += fmt::format("  ({})", outcome.in.note);
  line += '\n';
  if (!outcome.not_kept.empty()) {
    line +=
        io::one_line(fmt::format("{}: metadata not kept: {}", shown_output(files.output), outcome.not_kept)) +
        "\n";
  }
  return line;
}

nlohmann::json to_json(const FilePair& files, const Outcome& outcome) {
  const ImageSpec& spec = outcome.in.spec;
  nlohmann::json json{{"input", files.input.string()},
                      {"output", files.output.string()},
                      {"status", "done"},
                      {"format", outcome.in.format},
                      {"width", spec.width},
                      {"height", spec.height},
                      {"channels", spec.channels},
                      {"pages", outcome.in.pages},
                      {"type", name(spec.type)},
                      {"colour", name(spec.colour)},
                      {"alpha", spec.alpha},
                      {"range", spec.white()},
                      {"output_type", name(outcome.out.spec.type)},
                      {"method", outcome.method},
                      {"device", name(outcome.report.device)},
                      {"threads", outcome.report.threads},
                      {"bands", outcome.report.bands},
                      {"seconds", outcome.seconds},
                      {"filter_ms", outcome.report.ms},
                      {"buffer_bytes", outcome.report.buffer_bytes},
                      {"nonfinite_pixels", outcome.report.nonfinite_pixels}};
  if (spec.is_volume()) {
    json["width"] = spec.slice.width;
    json["height"] = spec.slice.height;
    json["depth"] = spec.height;
  }
  if (outcome.report.gpus > 0) {
    json["gpus"] = outcome.report.gpus;
    json["queues"] = outcome.report.queues;
  }
  if (!outcome.choice.empty()) json["device_choice"] = outcome.choice;
  for (const auto& [part, ms] : outcome.parts.ms()) json["parts_ms"][part] = ms;
  for (const auto& [key, value] : outcome.params) json["params"][key] = value;
  for (const StageTime& stage : outcome.report.stages) json["stages_ms"][stage.name] = stage.ms;
  for (const Strength& strength : outcome.report.strengths) {
    json["strengths"][strength.name] = {{"value", json_number(strength.value)},
                                        {"on_255", json_number(strength.on_255)}};
  }
  json["range_from"] = outcome.range_from;
  json["noise_found"] = outcome.noise_found;
  if (!outcome.noise.empty()) json["noise"] = outcome.noise;
  if (outcome.noise_too_weak) json["noise_too_weak"] = true;
  if (const std::string undone = undone_text(outcome); !undone.empty()) json["clipping_undone"] = undone;
  if (!outcome.in.note.empty()) json["note"] = outcome.in.note;
  if (!outcome.not_kept.empty()) json["metadata_not_kept"] = outcome.not_kept;
  return json;
}

nlohmann::json names_json(const FilePair& files, const char* status) {
  return {{"input", files.input.string()}, {"output", files.output.string()}, {"status", status}};
}

double bytes_of(const fs::path& file) {
  std::error_code error;
  if (!fs::is_directory(file, error)) {
    const std::uintmax_t bytes = fs::file_size(file, error);
    return error ? 0 : static_cast<double>(bytes);
  }
  double bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(file, error)) {
    std::error_code gone;
    if (entry.is_regular_file(gone)) bytes += static_cast<double>(entry.file_size(gone));
  }
  return bytes;
}

double bytes_of(const std::vector<FilePair>& files) {
  double bytes = 0;
  for (const FilePair& pair : files) bytes += bytes_of(pair.input);
  return bytes;
}

int jobs_by_default(const Settings& settings, std::size_t files, std::size_t places) {
  if (files < places) return 1;  // one file after the other, each over all queues
  if (settings.options.device.kind == Device::Kind::reference) return 1;
  const int threads = settings.options.threads > 0 ? settings.options.threads
                                                   : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(static_cast<int>(places), std::min(threads, most_jobs_by_default));
}

// The settings of each thread that works on files: its device and its share of the memory.
std::vector<Settings> settings_of_jobs(const Settings& settings, std::size_t files) {
  const std::vector<Device> places = queues(settings.options.device);
  const int wanted = settings.jobs.value_or(jobs_by_default(settings, files, places.size()));
  const std::size_t jobs = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(1, wanted)), 1,
                                                   std::max<std::size_t>(1, files));
  std::vector<Settings> list(jobs, settings);
  if (jobs == 1) return list;
  std::size_t memory = settings.options.memory;
  if (memory == 0 && settings.options.device.kind != Device::Kind::cuda) memory = free_memory() / 2;
  for (std::size_t job = 0; job < list.size(); ++job) {
    list[job].options.device = places[job % places.size()];
    if (memory > 0) list[job].options.memory = std::max<std::size_t>(1, memory / list.size());
  }
  return list;
}

// All files, on one thread or several; a file that fails does not stop the others.
class Batch {
 public:
  Batch(const std::vector<FilePair>& files, const MethodOptions& method, const Settings& settings)
      : files_(files),
        method_(method),
        settings_(settings),
        jobs_(settings_of_jobs(settings, files.size())),
        pool_(static_cast<int>(jobs_.size())),
        journal_(settings_text(settings, method)),
        bar_(!settings.quiet, static_cast<int>(files.size()), bytes_of(files),
             static_cast<int>(jobs_.size())) {
    std::error_code error;
    keep_journal_ =
        settings.output != stream_name && (settings.resume || fs::is_directory(settings.output, error));
    if (settings.resume) read_journal();
    told_.resize(files.size());
  }

  int run() {
    std::vector<std::thread> threads;
    for (std::size_t job = 1; job < jobs_.size(); ++job) {
      threads.emplace_back([this, job] { run_job(jobs_[job]); });
    }
    run_job(jobs_.front());
    for (std::thread& thread : threads) thread.join();
    pool_.abandon();  // the program ends with the batch
    say_rest();
    if (broken_) std::rethrow_exception(broken_);
    return conclude();
  }

 private:
  void read_journal() {
    std::vector<fs::path> outputs;
    for (const FilePair& pair : files_) outputs.push_back(pair.output);
    journal_.read(outputs);
  }

  void run_job(const Settings& settings) {
    try {
      for (std::size_t index = next_++; index < files_.size() && !interrupted().cancelled();
           index = next_++) {
        start_file(index, settings);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!broken_) broken_ = std::current_exception();
      next_ = files_.size();
    }
  }

  void start_file(std::size_t index, const Settings& settings) {
    const FilePair& pair = files_[index];
    ProgressBar::File progress(bar_, io::one_line(shown_input(pair.input.filename())), bytes_of(pair.input));
    if (settings.resume && is_done(pair)) {
      skip(index, "already done");
    } else if (settings.no_clobber && pair.output != stream_name &&
               fs::exists(fs::symlink_status(pair.output))) {
      skip(index, "is there already: left as it is");
    } else {
      run_file(index, settings, progress);
    }
  }

  bool is_done(const FilePair& pair) {
    const std::lock_guard lock(mutex_);
    return journal_.is_done(pair.input, pair.output);
  }

  // A GPU that fails is not tried again: this file and those behind it go to the CPU.
  Outcome denoise(const FilePair& pair, const Settings& settings, ProgressBar::File& progress) {
    if (!gpu_failed_ || settings.options.device.kind != Device::Kind::automatic) {
      try {
        return denoise_in_memory(pair, settings, progress);
      } catch (const ChosenGpuFailed& error) {
        if (pair.input == stream_name) throw;  // it cannot be read again
        if (!gpu_failed_.exchange(true)) {
          bar_.aside([&] {
            print_error(fmt::format("{}: the GPU failed ({}): the CPU goes on", shown_input(pair.input),
                                    error.what()));
          });
        }
      }
    }
    Settings on_cpu = settings;
    on_cpu.options.device = {Device::Kind::cpu};
    return denoise_in_memory(pair, on_cpu, progress);
  }

  // A file that does not fit its share of the memory is tried again when no other is worked on, with all of
  // it.
  Outcome denoise_in_memory(const FilePair& pair, const Settings& settings, ProgressBar::File& progress) {
    try {
      const std::shared_lock lock(memory_);
      return denoise_file(pair, method_, settings, progress, pool_, gpu_);
    } catch (const ChosenGpuFailed&) {
      throw;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory || jobs_.size() == 1 || pair.input == stream_name) throw;
    } catch (const std::bad_alloc&) {
      if (jobs_.size() == 1 || pair.input == stream_name) throw;
    }
    const std::unique_lock lock(memory_);
    pool_.clear();
    Settings alone = settings_;
    alone.options.device = settings.options.device;
    return denoise_file(pair, method_, alone, progress, pool_, gpu_);
  }

  void run_file(std::size_t index, const Settings& settings, ProgressBar::File& progress) {
    const FilePair& pair = files_[index];
    try {
      const Outcome outcome = denoise(pair, settings, progress);
      const std::lock_guard lock(mutex_);
      if (keep_journal_) record(pair);
      ++done_;
      progress.done();
      tell(index, to_json(pair, outcome), line_text(pair, outcome));
    } catch (const Error& error) {
      // Messages about files name the file already.
      const bool named = error.code() == ErrorCode::io;
      fail(index, error.code(),
           named ? error.what() : fmt::format("{}: {}", shown_input(pair.input), error.what()));
    } catch (const std::bad_alloc&) {
      fail(index, ErrorCode::out_of_memory, fmt::format("{}: out of memory", shown_input(pair.input)));
    } catch (const std::exception& error) {
      fail(index, ErrorCode::internal, fmt::format("{}: {}", shown_input(pair.input), error.what()));
    }
  }

  // The picture is written even if the journal cannot be.
  void record(const FilePair& pair) {
    const std::string problem = journal_.record(pair.input, pair.output);
    if (problem.empty()) return;
    unrecorded_ = true;
    bar_.aside([&] { print_error(problem); });
  }

  void skip(std::size_t index, std::string_view why) {
    const FilePair& pair = files_[index];
    io::remove_leftovers_beside(pair.output);
    const std::lock_guard lock(mutex_);
    ++done_;
    tell(index, names_json(pair, "skipped"), fmt::format("{}  {}\n", names_text(pair), why));
  }

  void fail(std::size_t index, ErrorCode code, const std::string& message) {
    if (code == ErrorCode::cancelled) return;
    const std::lock_guard lock(mutex_);
    ++failed_;
    nlohmann::json json = names_json(files_[index], "failed");
    json["code"] = name(code);
    json["message"] = with_stream_names(message);
    tell(index, json, "", message);
  }

  // What is to be said of the files is said in their order, whichever is done first.
  void tell(std::size_t index, const nlohmann::json& json, const std::string& line,
            const std::string& error = "") {
    told_[index] = Told{settings_.json ? json_text(json) + "\n" : settings_.quiet ? "" : line, error};
    bar_.aside([&] {
      for (; next_told_ < told_.size() && told_[next_told_]; ++next_told_) say(*told_[next_told_]);
    });
  }

  struct Told {
    std::string line;
    std::string error;  // on the standard error
  };

  static void say(Told& told) {
    if (!told.error.empty()) print_error(told.error);
    put(told.line);
    flush_output();
    told = {};
  }

  // After an interruption some files have nothing to be said of.
  void say_rest() {
    bar_.aside([&] {
      for (; next_told_ < told_.size(); ++next_told_) {
        if (told_[next_told_]) say(*told_[next_told_]);
      }
    });
  }

  int conclude() {
    const auto print_aside = [&](const std::string& message) { bar_.aside([&] { print_error(message); }); };
    if (interrupted().cancelled()) {
      print_aside(
          fmt::format("interrupted: {} of {} files done, no half-written file left", done_, files_.size()));
      return exit_failed;
    }
    if (failed_ > 0 && files_.size() > 1) {
      print_aside(fmt::format("{} of {} files failed, the others are done", failed_, files_.size()));
    }
    return failed_ > 0 || unrecorded_ ? exit_failed : exit_done;
  }

  const std::vector<FilePair>& files_;
  const MethodOptions& method_;
  const Settings& settings_;
  const std::vector<Settings> jobs_;
  GpuStart gpu_;
  DenoiserPool pool_;
  std::shared_mutex memory_;  // owned by the file that needs all of the memory
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> gpu_failed_ = false;
  std::mutex mutex_;  // for all that follows
  Journal journal_;
  ProgressBar bar_;
  bool keep_journal_ = false;
  int done_ = 0;
  int failed_ = 0;
  bool unrecorded_ = false;  // the journal could not be written
  std::exception_ptr broken_;
  std::vector<std::optional<Told>> told_;
  std::size_t next_told_ = 0;
};

int denoise_files(const Arguments& arguments, MethodOptions::For what) {
  DenoiseRequest request(what);
  if (!request.read(arguments)) return exit_done;
  Settings& settings = request.settings();
  if (settings.inputs.empty()) throw UsageError("name at least one file");
  check_streams(settings.inputs, settings.output, settings.format);
  if (settings.resume && (settings.output == stream_name ||
                          std::count(settings.inputs.begin(), settings.inputs.end(), stream_name) > 0)) {
    throw UsageError("--resume is for files, not for the standard input or output");
  }
  const std::vector<FilePair> files =
      pair_outputs(expand_inputs(settings.inputs, settings.volume), settings.output);
  prepare_gpu_start(files.size());
  // Of one file the GPU is looked for while it is read.
  if (files.size() > 1 || settings.options.device.index == Device::all_gpus)
    check_device(settings.options.device);
  settings.options.cancel = interrupted();
  settings.options.images = static_cast<int>(std::max<std::size_t>(1, files.size()));
  return Batch(files, request.method(), settings).run();
}

}  // namespace

int volume_command(const Arguments& arguments) {
  return denoise_files(with_volume_names(arguments), MethodOptions::For::volumes);
}

int denoise_command(const Arguments& arguments) {
  if (const auto flag = std::find(arguments.begin(), arguments.end(), "--volume"); flag != arguments.end()) {
    Arguments others = arguments;
    others.erase(others.begin() + (flag - arguments.begin()));
    return volume_command(others);
  }
  return denoise_files(arguments, MethodOptions::For::images);
}

}  // namespace ungrain::cli
