// A command line of ungrain, read: for the program itself, and for those who have its words from elsewhere.
#pragma once

#include "commands.h"
#include "denoise_settings.h"
#include "method_options.h"

namespace ungrain::cli {

class DenoiseRequest {
 public:
  explicit DenoiseRequest(MethodOptions::For what);  // images or volumes

  // Once. False: help was asked for and printed. Throws UsageError with one line; a wrong value is found
  // before any file is opened.
  bool read(const Arguments& words);
  void add_to(OptionTable& table);  // what read() reads

  Settings& settings() { return settings_; }
  const Settings& settings() const { return settings_; }
  const MethodOptions& method() const { return method_; }

 private:
  MethodOptions::For what_;
  Settings settings_;
  MethodOptions method_;
};

// Files worked on at once where nothing is given: one for each thread, up to so many. Beside a file that is
// filtered others are read, measured and written, most of it on one thread each.
inline constexpr int most_jobs_by_default = 8;

}  // namespace ungrain::cli
