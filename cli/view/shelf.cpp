#include "view/shelf.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "files.h"
#include "io/failure.h"
#include "io/image_file.h"
#include "opened_clip.h"
#include "ungrain/error.h"

namespace ungrain::cli::view {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// Pictures and clips, but no results of ungrain.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> found = images_in(folder);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    std::error_code dangling;
    const bool shown = !path.filename().string().starts_with('.') && path.stem().extension() != ".ungrain";
    if (shown && has_clip_name(path) && entry.is_regular_file(dangling)) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

constexpr std::size_t longest_name = 200;

}  // namespace

std::string with_names(std::string message, const fs::path& path, const std::string& name) {
  const std::string full = path.string();
  for (std::size_t at = message.find(full); at != std::string::npos;
       at = message.find(full, at + name.size()))
    message.replace(at, full.size(), name);
  return message;
}

std::string plain_name(const std::string& name) {
  const fs::path path = name;
  const bool plain =
      !name.empty() && name.size() <= longest_name && path.filename() == path && !name.starts_with('.') &&
      name.find('\\') == std::string::npos &&
      std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!plain) throw Error(ErrorCode::io, fmt::format("'{}' is no name for a file here", io::one_line(name)));
  return name;
}

Shelf::Shelf(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    std::error_code error;
    const fs::path root = fs::canonical(argument, error);
    if (error) throw Error(ErrorCode::io, fmt::format("{}: {}", io::one_line(argument), error.message()));
    if (!fs::is_directory(root)) {
      add_file(root, root.parent_path());
      continue;
    }
    const std::vector<fs::path> paths = files_in(root);
    for (const fs::path& path : paths) add_file(path, root);
    if (!paths.empty()) continue;
    if (!io::holds_dicom(root)) throw UsageError(fmt::format("{}: no pictures in this folder", argument));
    files_.push_back(
        {.number = static_cast<int>(files_.size()) + 1, .path = root, .name = root.filename().string()});
  }
}

void Shelf::add_file(const fs::path& path, const fs::path& root) {
  std::error_code error;
  const fs::path known = fs::canonical(path, error);
  if (error || !lies_in(known, root) || !fs::is_regular_file(known, error)) return;
  files_.push_back({.number = static_cast<int>(files_.size()) + 1,
                    .path = known,
                    .name = path.filename().string(),
                    .bytes = fs::file_size(known, error)});
}

std::vector<ShelfFile> Shelf::files() const {
  const std::lock_guard lock(mutex_);
  return files_;
}

ShelfFile Shelf::find(int number) const {
  const std::lock_guard lock(mutex_);
  if (number < 1 || number > static_cast<int>(files_.size()))
    throw Error(ErrorCode::io, fmt::format("there is no file {}", number));
  const ShelfFile& file = files_[static_cast<std::size_t>(number) - 1];
  std::error_code error;
  if (fs::canonical(file.path, error) != file.path || error)
    throw Error(ErrorCode::io, fmt::format("{}: is no longer there", file.name));
  return file;
}

ShelfFile Shelf::add(const std::string& name, const ReadBody& body, std::uintmax_t limit) {
  const std::string plain = plain_name(name);
  if (!io::can_read(plain) && !has_clip_name(plain)) {
    throw Error(ErrorCode::io, fmt::format("{}: ungrain reads no files of this extension", plain));
  }
  ShelfFile file;
  file.name = plain;
  file.uploaded = true;
  std::uintmax_t room = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!uploads_) uploads_.emplace();
    file.number = static_cast<int>(files_.size()) + 1;
    file.path = uploads_->file(fmt::format("{}-{}", file.number, plain));
    room = limit - std::min(limit, uploaded_);
    files_.push_back(file);  // keeps its number; find() fails until the file is there
  }
  std::ofstream out(file.path, std::ios::binary);
  const bool complete = body([&](const char* bytes, std::size_t size) {
    file.bytes += size;
    if (file.bytes > room) return false;
    out.write(bytes, static_cast<std::streamsize>(size));
    return out.good();
  });
  out.close();
  const std::lock_guard lock(mutex_);
  ShelfFile& kept = files_[static_cast<std::size_t>(file.number) - 1];
  if (!complete || !out) {
    std::error_code error;
    fs::remove(file.path, error);
    throw Error(ErrorCode::io, file.bytes > room
                                   ? fmt::format("{}: uploads take {} MiB at most", plain, limit >> 20U)
                                   : fmt::format("{}: the upload is not complete", plain));
  }
  uploaded_ += file.bytes;
  kept = file;
  kept.path = fs::canonical(file.path);
  return kept;
}

}  // namespace ungrain::cli::view
