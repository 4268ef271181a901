// A clip that Python gives frame by frame and takes frame by frame, while a thread denoises it.
#pragma once

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "ungrain/denoiser.h"
#include "ungrain/image.h"
#include "values.h"

namespace ungrain::python {

// All calls come from one Python thread at a time, with the interpreter's lock.
class HeldClip {
 public:
  HeldClip(HeldParams params, const ImageSpec& spec, const Options& options, bool find_cuts);
  ~HeldClip();
  HeldClip(const HeldClip&) = delete;
  HeldClip& operator=(const HeldClip&) = delete;

  enum class Next { result, room, end };
  // Until there is a result, or, where `gives` says that frames are to come, room for one; or all is done.
  // Rethrows what went wrong. Ctrl-C is heard.
  Next wait(bool gives);
  void give(const ConstImageView& frame);  // after Next::room
  void finish();                           // no more frames
  void take(const ImageView& to);          // after Next::result
  void stop();                             // now; what is under way is dropped

  const ImageSpec& spec() const { return spec_; }
  double noise_level() const;  // of the first scene; negative: not known yet

 private:
  class Ends;
  void run(const Options& options, bool find_cuts);

  static constexpr std::size_t most_waiting = 2;  // frames at either end

  HeldParams params_;
  ImageSpec spec_;
  CancelToken cancel_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Image> given_;
  std::deque<Image> made_;
  std::exception_ptr failure_;
  double noise_level_ = -1;
  bool finished_ = false;  // no more frames come
  bool stopping_ = false;
  bool ended_ = false;  // the thread is done
  std::thread thread_;
};

}  // namespace ungrain::python
