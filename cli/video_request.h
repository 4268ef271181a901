// A command line of ungrain video, read: for the program itself, and for those who have its words from
// elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "commands.h"
#include "io/clip.h"
#include "io/image_file.h"
#include "method_options.h"
#include "noise_options.h"
#include "ungrain/denoiser.h"

namespace ungrain::cli {

struct VideoSettings {
  std::string input;
  std::string output;
  Options options;
  NoiseOptions noise;
  io::SaveOptions save;
  bool quality_given = false;
  std::int64_t start = 0;
  std::optional<std::int64_t> frames;
  std::string size;
  std::string format;  // of raw frames
  io::Ratio rate;
  std::string encoder;
  bool no_cuts = false;
  bool json = false;
  bool quiet = false;
};

class VideoRequest {
 public:
  VideoRequest();

  // Once. False: help was asked for and printed. Throws UsageError with one line; a wrong value is found
  // before the clip is opened.
  bool read(const Arguments& words);
  void add_to(OptionTable& table);  // what read() reads

  VideoSettings& settings() { return settings_; }
  const VideoSettings& settings() const { return settings_; }
  const MethodOptions& method() const { return method_; }
  // The method's parameters for frames of a clip.
  MethodParams params(const ImageSpec& spec) const;

 private:
  VideoSettings settings_;
  MethodOptions method_;
};

}  // namespace ungrain::cli
