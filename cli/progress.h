// The progress of a batch: a bar with rate and time left on a terminal, nothing elsewhere. Several files may
// be worked on at once, each by a thread of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>

namespace ungrain::cli {

class ProgressBar {
  using Clock = std::chrono::steady_clock;

  struct RunningFile {
    std::string name;
    double work = 0;
    Clock::time_point start;
    double pixels = 0;
    double fraction = 0;

    double seconds_until(Clock::time_point now) const {
      return std::chrono::duration<double>(now - start).count();
    }
  };

 public:
  // `work` is the total of all files in any unit (their bytes), `jobs` the number of files worked on at once;
  // no bar unless `wanted` and stderr is a terminal.
  ProgressBar(bool wanted, int files, double work, int jobs);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // A file that is being worked on, for the lifetime of this object.
  class File {
   public:
    File(ProgressBar& bar, const std::string& name, double work);
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void set_pixels(double pixels);  // as soon as they are known
    void update(double fraction);
    void done() { done_ = true; }  // a skipped or failed file says nothing about the speed

   private:
    ProgressBar& bar_;
    std::list<RunningFile>::iterator file_;
    bool done_ = false;
  };

  // Clears the bar while `print` writes.
  void aside(const std::function<void()>& print);

 private:
  void draw(bool at_once);
  void clear();

  bool shown_;
  int files_;
  double work_;
  int jobs_;
  std::mutex mutex_;  // for all members below, and the terminal
  int started_ = 0;
  std::list<RunningFile> running_;
  double work_done_ = 0;
  double work_measured_ = 0;  // done in the seconds below
  double seconds_measured_ = 0;
  Clock::time_point last_;
  bool drawn_ = false;
};

// The frames of a clip: how many are done, how many a second, time left.
class FrameBar {
 public:
  // `frames` is 0 where their number is not known; no bar unless `wanted` and stderr is a terminal.
  FrameBar(bool wanted, std::string name, std::int64_t frames);
  ~FrameBar();
  FrameBar(const FrameBar&) = delete;
  FrameBar& operator=(const FrameBar&) = delete;

  // `noise` in words, or empty.
  void update(std::int64_t done, const std::string& noise);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_;
  std::string name_;
  std::int64_t frames_;
  std::mutex mutex_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_;
  bool drawn_ = false;
};

}  // namespace ungrain::cli
