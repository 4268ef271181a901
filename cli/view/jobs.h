// Files that are saved with settings, one or a batch: the code of `ungrain FILES`, in the background.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "ungrain/denoiser.h"
#include "view/document.h"

namespace ungrain::cli::view {

struct JobFile {
  FilePair files;
  Arguments words;   // with the names of the server's own files
  std::string name;  // shown
  Treatment as = Treatment::pages;
};

class Jobs {
 public:
  explicit Jobs(Device device);  // where the settings name none
  ~Jobs();                       // cancels what runs
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Starts a job; `kind` is "save" or "batch". Jobs run one after the other.
  int start(const std::string& kind, std::vector<JobFile> files);
  void cancel(int job);
  // The files that are not done yet, once more.
  void resume(int job);
  nlohmann::json list() const;
  // An output that was written. Throws Error(io) where there is none.
  std::filesystem::path output(int job, int output) const;

 private:
  struct Job;
  Job& find(int job) const;
  void run(Job& job);
  // Each returns the line that is said of the file.
  std::string save_clip(Job& job, const JobFile& file, const std::function<void(double)>& progress) const;

  void set_device(Options& options) const;

  Device device_;
  mutable std::mutex mutex_;
  std::mutex running_;  // held by the job that runs
  std::map<int, std::unique_ptr<Job>> jobs_;
};

}  // namespace ungrain::cli::view
