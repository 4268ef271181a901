// The page of ungrain compare --html: the pictures or volumes beside their numbers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/image_file.h"
#include "page/page.h"

namespace ungrain::cli {

// A file that is compared. The spec's range is the white level that counts in the comparison.
struct ComparedFile {
  std::string name;
  std::unique_ptr<io::InputFile> file;  // of volumes where the comparison is one of volumes
  io::FileInfo info;
  io::FileAccess access;
};

class ComparisonPage {
 public:
  using Open = std::function<ComparedFile(const std::string& file)>;

  // Of images or, where `clean` is one, of volumes. `remarks` stand on the page.
  static std::unique_ptr<ComparisonPage> create(const ComparedFile& clean, Open open,
                                                std::vector<std::string> remarks);
  virtual ~ComparisonPage() = default;

  void add(const std::string& file, const nlohmann::json& metrics);  // null: the clean one, first
  void write(const std::string& path);

 protected:
  ComparisonPage(io::FileInfo clean, Open open, std::vector<std::string> remarks)
      : clean_(std::move(clean)), notes_(std::move(remarks)), open_(std::move(open)) {}
  virtual std::string source(ComparedFile& file) = 0;  // the picture that the page has of it
  virtual std::string_view kind() const = 0;           // of page::render_page()
  virtual std::string about() const = 0;
  virtual void describe(nlohmann::json& /*data*/) const {}  // adds what the kind's script needs

  io::FileInfo clean_;
  std::vector<std::string> notes_;

 private:
  void shorten_names();

  Open open_;
  std::vector<page::Picture> pictures_;
  std::vector<nlohmann::json> metrics_;  // of each; null: the clean picture
  io::FileAccess access_;                // of the files whose pixels are shown
};

}  // namespace ungrain::cli
