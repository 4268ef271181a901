// The options that choose a method and its parameters, made from the methods' descriptors.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "option_table.h"
#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain::cli {

inline constexpr std::string_view default_method = "bm3d";
inline constexpr std::string_view default_volume_method = "bm4d";

// "nlm" means the one for volumes.
Arguments with_volume_names(Arguments arguments);

// Options as the user wrote them.
struct MethodWords {
  std::string method = std::string(default_method);
  std::string preset = {};
  std::map<std::string, std::string> given = {};  // by parameter
};

class MethodOptions {
 public:
  using ReadImage = Image (*)(const std::filesystem::path& path);
  // Without `read_image` no parameter can be an image.
  explicit MethodOptions(ReadImage read_image = nullptr, MethodWords words = {})
      : read_image_(read_image), words_(std::move(words)) {}
  // The default of --radius-t is that of a single image, or that of a clip. Volumes have methods of their
  // own, and of the others those that look along slices.
  enum class For { images, clips, volumes };
  void add_to(OptionTable& table, For what = For::images);
  const MethodWords& words() const { return words_; }

  // With strengths on the 0-255 scale. Throws UsageError that names the option.
  MethodParams read() const { return for_white(255); }
  // Strengths in the units of images with that white level. Images among the parameters live as long as this
  // object.
  MethodParams for_white(double white) const;
  MethodParams for_image(const ImageSpec& spec) const { return for_white(spec.white()); }
  // The text given for a parameter; empty: none.
  std::string given(const std::string& parameter) const;
  // The same, and removes it from the given parameters.
  std::string take(const std::string& parameter);
  // The content of images among the parameters, for --resume.
  std::string images_text() const;

 private:
  void add_quality(OptionTable& table, For what);
  void check_one_choice(bool& given);
  const Image& image(const std::string& parameter, double white) const;

  ReadImage read_image_;
  MethodWords words_;
  bool method_given_ = false;
  bool quality_given_ = false;
  // By parameter and white level: samples of files are on the 0-255 scale, like all strengths, unless they
  // are floats up to the white level of an image whose white is lower.
  mutable std::map<std::pair<std::string, double>, Image> images_;
  mutable std::mutex mutex_;
};

// The methods that a command for images, clips or volumes offers.
std::vector<MethodInfo> methods_for(MethodOptions::For what);

}  // namespace ungrain::cli
