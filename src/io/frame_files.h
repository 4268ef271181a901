// Clips whose frames are image files with numbers in their names: frames/f%05d.png.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "io/clip.h"
#include "io/image_file.h"

namespace ungrain::io {

class FramePattern {
 public:
  // Whether the name holds a number's place: %d or %05d. "%%" stands for a percent sign.
  static bool is_pattern(const std::filesystem::path& name);
  // Throws Error(io) where there is more than one place, or one in a folder's name.
  explicit FramePattern(const std::filesystem::path& name);

  const std::filesystem::path& name() const { return name_; }
  std::filesystem::path file(std::int64_t number) const;
  // The number in the name of a file of the pattern's folder.
  std::optional<std::int64_t> number_in(const std::string& file_name) const;

 private:
  std::filesystem::path name_;
  std::filesystem::path folder_;
  std::string before_;
  std::string after_;
  int digits_ = 0;  // at least; filled up with zeros
};

// Begins with number 0 or 1, or else with the least that exists. A missing file ends the clip, with an error
// where later ones exist.
std::unique_ptr<FrameReader> open_frame_files(const FramePattern& pattern);
// The number of the clip's first frame.
std::int64_t first_number(const FramePattern& pattern);

// Each frame gets the number `first` + Frame::number. Metadata are those of the file of the same number in
// `like`, where that is given.
std::unique_ptr<FrameWriter> create_frame_files(const FramePattern& pattern, const ClipInfo& info,
                                                std::int64_t first, std::optional<FramePattern> like,
                                                const SaveOptions& save);

}  // namespace ungrain::io
