// The files that the page may see, by number. Paths never come from a request.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/scratch_folder.h"
#include "view/http.h"

namespace ungrain::cli::view {

struct ShelfFile {
  int number = 0;
  std::filesystem::path path;  // canonical: links are resolved
  std::string name;            // shown
  std::uintmax_t bytes = 0;
  bool uploaded = false;
};

class Shelf {
 public:
  // Files and folders as a command line names them. Links in a folder that lead out of it are left out.
  explicit Shelf(const std::vector<std::string>& arguments);

  std::vector<ShelfFile> files() const;
  // Throws Error(io) where there is no such file, or where its path leads elsewhere by now.
  ShelfFile find(int number) const;

  // Takes a file of at most `limit` bytes. Throws Error(io) where it is larger or not complete.
  ShelfFile add(const std::string& name, const ReadBody& body, std::uintmax_t limit);

 private:
  void add_file(const std::filesystem::path& path, const std::filesystem::path& root);

  mutable std::mutex mutex_;
  std::vector<ShelfFile> files_;
  std::uintmax_t uploaded_ = 0;
  std::optional<io::ScratchFolder> uploads_;
};

// A message with the file's name in place of its path.
std::string with_names(std::string message, const std::filesystem::path& path, const std::string& name);

// A file's own name, without folders: "a/../b.png" is refused. Throws Error(io).
std::string plain_name(const std::string& name);

}  // namespace ungrain::cli::view
