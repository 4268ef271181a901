#include "view/jobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "denoise_clip.h"
#include "denoise_file.h"
#include "denoise_request.h"
#include "io/failure.h"
#include "progress.h"
#include "ungrain/error.h"
#include "view/request.h"

namespace ungrain::cli::view {

struct Jobs::Job {
  int number = 0;
  std::string kind;
  std::vector<JobFile> files;
  std::vector<char> done;  // by file
  std::vector<std::string> lines;
  std::string state = "running";
  std::size_t failed = 0;
  double fraction = 0;  // of the file that is worked on
  CancelToken cancel;
  std::thread thread;
};

Jobs::Jobs(Device device) : device_(device) {}

Jobs::~Jobs() {
  for (const auto& [number, job] : jobs_) {
    {
      const std::lock_guard lock(mutex_);
      job->cancel.cancel();
    }
    if (job->thread.joinable()) job->thread.join();
  }
}

Jobs::Job& Jobs::find(int number) const {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) throw Error(ErrorCode::io, fmt::format("there is no job {}", number));
  return *found->second;
}

int Jobs::start(const std::string& kind, std::vector<JobFile> files) {
  const std::lock_guard lock(mutex_);
  auto job = std::make_unique<Job>();
  job->number = static_cast<int>(jobs_.size()) + 1;
  job->kind = kind;
  job->done.resize(files.size());
  job->files = std::move(files);
  Job& started = *job;
  jobs_[started.number] = std::move(job);
  started.thread = std::thread([this, &started] { run(started); });
  return started.number;
}

void Jobs::cancel(int number) {
  const std::lock_guard lock(mutex_);
  Job& job = find(number);
  if (job.state == "running") job.cancel.cancel();
}

void Jobs::resume(int number) {
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    Job& job = find(number);
    if (job.state == "running") throw Error(ErrorCode::io, fmt::format("job {} is running", number));
    ended = std::move(job.thread);
  }
  if (ended.joinable()) ended.join();
  const std::lock_guard lock(mutex_);
  Job& job = find(number);
  job.state = "running";
  job.failed = 0;
  job.lines.clear();
  job.cancel = {};
  job.thread = std::thread([this, &job] { run(job); });
}

// Files are saved where they were looked at: another device may round some pixels otherwise.
void Jobs::set_device(Options& options) const {
  if (options.device.kind == Device::Kind::automatic) options.device = device_;
  options.images = 0;  // many: the device is started
}

std::string Jobs::save_clip(Job& job, const JobFile& file,
                            const std::function<void(double)>& progress) const {
  VideoRequest request;
  if (!request.read(file.words)) throw Error(ErrorCode::internal, "settings are a list of words");
  VideoSettings& settings = request.settings();
  settings.input = file.files.input.string();
  settings.output = file.files.output.string();
  settings.options.cancel = job.cancel;
  set_device(settings.options);
  const ClipOutcome outcome = denoise_clip(
      request,
      [&](const ClipProgress& made) {
        if (made.expected > 0) progress(static_cast<double>(made.done) / static_cast<double>(made.expected));
      },
      WhenCancelled::keep_nothing);
  if (job.cancel.cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
  if (outcome.problem) std::rethrow_exception(outcome.problem);
  return fmt::format("{}: {}, {} frames", file.name, file.files.output.filename().string(), outcome.written);
}

void Jobs::run(Job& job) {
  const std::lock_guard one_at_a_time(running_);
  DenoiserPool pool(1);
  GpuStart gpu;
  ProgressBar bar(false, static_cast<int>(job.files.size()), 0, 1);
  const auto say = [&](const std::string& line) {
    const std::lock_guard lock(mutex_);
    job.lines.push_back(io::one_line(line));
  };
  for (std::size_t i = 0; i < job.files.size() && !job.cancel.cancelled(); ++i) {
    if (job.done[i] != 0) continue;
    const JobFile& file = job.files[i];
    const auto progressed = [&](double fraction) {
      const std::lock_guard lock(mutex_);
      job.fraction = fraction;
    };
    try {
      if (file.as == Treatment::clip) {
        say(save_clip(job, file, progressed));
        const std::lock_guard lock(mutex_);
        job.done[i] = 1;
        continue;
      }
      const std::unique_ptr<DenoiseRequest> request = read_request(file.words, methods_of(file.as));
      Settings& settings = request->settings();
      settings.options.cancel = job.cancel;
      settings.options.progress = progressed;
      set_device(settings.options);
      ProgressBar::File progress(bar, file.name, 0);
      Outcome outcome;
      try {
        outcome = denoise_file(file.files, request->method(), settings, progress, pool, gpu);
      } catch (const ChosenGpuFailed& error) {
        say(fmt::format("{}: the GPU failed ({}): the CPU goes on", file.name, error.what()));
        settings.options.device = {Device::Kind::cpu};
        outcome = denoise_file(file.files, request->method(), settings, progress, pool, gpu);
      }
      say(fmt::format("{}: {}{}{}", file.name, file.files.output.filename().string(),
                      outcome.copied ? ", no noise found: unchanged" : "",
                      outcome.not_kept.empty() ? "" : ", not kept: " + outcome.not_kept));
      const std::lock_guard lock(mutex_);
      job.done[i] = 1;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) break;
      const std::string why = with_names(error.what(), file.files.input, file.name);
      say(error.code() == ErrorCode::io ? why : fmt::format("{}: {}", file.name, why));
      const std::lock_guard lock(mutex_);
      ++job.failed;
    } catch (const std::bad_alloc&) {
      say(fmt::format("{}: out of memory", file.name));
      const std::lock_guard lock(mutex_);
      ++job.failed;
    } catch (const std::exception& error) {
      say(fmt::format("{}: {}", file.name, error.what()));
      const std::lock_guard lock(mutex_);
      ++job.failed;
    }
  }
  const std::lock_guard lock(mutex_);
  job.fraction = 0;
  job.state = job.cancel.cancelled() ? "cancelled" : job.failed > 0 ? "failed" : "done";
}

nlohmann::json Jobs::list() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [number, job] : jobs_) {
    const auto done = std::count(job->done.begin(), job->done.end(), 1);
    nlohmann::json outputs = nlohmann::json::array();
    for (std::size_t i = 0; i < job->files.size(); ++i) {
      if (job->done[i] != 0) {
        outputs.push_back({{"name", job->files[i].files.output.filename().string()},
                           {"download", fmt::format("/api/download?job={}&output={}", number, i)}});
      }
    }
    const double total = static_cast<double>(job->files.size());
    list.push_back({{"job", number},
                    {"kind", job->kind},
                    {"state", job->state},
                    {"done", done},
                    {"failed", job->failed},
                    {"total", job->files.size()},
                    {"fraction", std::min(1.0, (static_cast<double>(done) + job->fraction) / total)},
                    {"lines", job->lines},
                    {"outputs", outputs}});
  }
  return list;
}

std::filesystem::path Jobs::output(int number, int output) const {
  const std::lock_guard lock(mutex_);
  const Job& job = find(number);
  if (output < 0 || output >= static_cast<int>(job.files.size()) ||
      job.done[static_cast<std::size_t>(output)] == 0) {
    throw Error(ErrorCode::io, fmt::format("job {} has no file {}", number, output));
  }
  return job.files[static_cast<std::size_t>(output)].files.output;
}

}  // namespace ungrain::cli::view
