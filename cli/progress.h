// How far a batch is: a bar with rate and time left on a terminal, nothing elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ungrain::cli {

class ProgressBar {
 public:
  // `work` is what all files together come to, in any unit (their bytes); no bar unless `wanted` and stderr
  // is a terminal.
  ProgressBar(bool wanted, int files, double work);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void start_file(const std::string& name, double work);
  void set_pixels(double pixels);  // of this file, as soon as it is known
  void update(double fraction);    // of this file
  void end_file(bool counts);      // a file that was skipped or failed says nothing about the speed
  void clear();                    // before anything else is printed

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_;
  int files_;
  double work_;
  int file_ = 0;
  std::string name_;
  double file_work_ = 0;
  double file_pixels_ = 0;
  double work_done_ = 0;
  double work_measured_ = 0;  // that the seconds below went into
  double seconds_measured_ = 0;
  Clock::time_point file_start_;
  Clock::time_point last_;
  bool drawn_ = false;
};

}  // namespace ungrain::cli
