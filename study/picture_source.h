// Where the pictures come from: the computed scene at any size, or the middle of somebody's own.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "study/rung.h"
#include "ungrain/image.h"

namespace ungrain::study {

class PictureSource {
 public:
  PictureSource() = default;  // the scene
  // A file that is taken to be clean; colours become gray (Rec. 601), the white level 255. Throws where it
  // cannot be read or is too small to be studied.
  explicit PictureSource(const std::filesystem::path& file);

  const std::string& name() const { return name_; }
  bool is_scene() const { return own_ == nullptr; }
  bool has(const Size& size) const;                             // whether it is large enough
  Size size() const;                                            // of somebody's own
  Image clean(const Size& size) const;                          // gray bytes
  Image noisy(const Size& size, double sigma, int seed) const;  // the same with Gaussian noise

 private:
  std::string name_ = "demo scene";
  std::shared_ptr<const Image> own_;
  // What was rendered, by width and height: several ladders look at the same sizes.
  using Rendered = std::map<std::pair<int, int>, Image>;
  std::shared_ptr<Rendered> rendered_ = std::make_shared<Rendered>();
};

}  // namespace ungrain::study
