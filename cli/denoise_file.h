// One file through one method, page by page or along its pages, into a file of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "denoise_settings.h"
#include "denoiser_pool.h"
#include "files.h"
#include "io/image_file.h"
#include "method_options.h"
#include "progress.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"

namespace ungrain::cli {

// Before anything looks for a GPU: lets it start sooner for so many files.
void prepare_gpu_start(std::size_t files);

// Looks for a GPU and starts it while the first file is being read and measured.
class GpuStart {
 public:
  ~GpuStart();
  // choose_device(), in the background for the first file; for others when its result is asked for.
  std::future<DeviceChoice> choose(const MethodParams& params, const ImageSpec& spec, const Options& options);

 private:
  std::atomic<bool> begun_ = false;
  std::thread thread_;
};

// Where a file's time goes: parts that follow each other and add up to the whole.
class PartTimes {
 public:
  void start(const char* part);  // ends the part before it
  void stop();
  const std::vector<std::pair<std::string, double>>& ms() const { return ms_; }

 private:
  std::vector<std::pair<std::string, double>> ms_;
  std::size_t running_ = 0;
  std::optional<std::chrono::steady_clock::time_point> since_;
};

// The result of one file.
struct Outcome {
  io::FileInfo in;
  io::FileInfo out;
  Report report;
  std::vector<std::pair<std::string, std::string>> params;  // resolved, in pixel units
  std::string method;
  double seconds = 0;
  PartTimes parts;  // open, decode, measure, prepare, filter (with reading and writing beside it), finish
  std::string_view range_from = "type";  // or metadata, values, --range
  bool noise_found = true;               // where noise was measured: whether there is any
  bool noise_too_weak = false;           // to be visible: the picture stays as it is
  std::string noise;                     // measured, in words; empty: it was not measured
  bool undone_at_black = false;          // the noise's cut at black was undone
  bool undone_at_white = false;
  bool copied = false;   // byte for byte
  std::string choice;    // why an automatic device became the one it is
  std::string not_kept;  // metadata that the output's format cannot hold
};

// Thrown where an automatic device became a GPU, and that has failed or is full.
struct ChosenGpuFailed : Error {
  explicit ChosenGpuFailed(const Error& error) : Error(error) {}
};

// Everything that changes pixels or how they are stored, for --resume.
std::string settings_text(const Settings& settings, const MethodOptions& method);

Outcome denoise_file(const FilePair& files, const MethodOptions& method, const Settings& settings,
                     ProgressBar::File& progress, DenoiserPool& pool, GpuStart& gpu);

}  // namespace ungrain::cli
