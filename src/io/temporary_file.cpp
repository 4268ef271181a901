#include "io/temporary_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "io/failure.h"
#include "io/image_file.h"
#include "platform/files.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;
using platform::FileKind;
using platform::FileStatus;

// The temporary files that exist.
struct LiveFiles {
  std::mutex mutex;
  std::set<std::string> paths;
};

LiveFiles& live_files() {
  static auto* const files = new LiveFiles;  // never destroyed: a signal may come during exit
  return *files;
}

fs::path follow_links(const fs::path& named) {
  fs::path path = named;
  std::error_code error;
  constexpr int most_links = 40;  // as the kernel's own limit
  for (int i = 0; i < most_links; ++i) {
    if (!fs::is_symlink(path, error)) return path;
    const fs::path next = fs::read_symlink(path, error);
    if (error) fail(named, "cannot be followed as a link", error.value());
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  fail(named, "too many symbolic links");
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

void check_target(const fs::path& named, const fs::path& target) {
  const fs::path folder = folder_of(target);
  const std::optional<FileStatus> place = platform::status_of(folder);
  if (!place) {
    if (errno == ENOENT) fail(named, fmt::format("the folder {} does not exist", folder.string()));
    fail(named, fmt::format("the folder {} cannot be used", folder.string()), errno);
  }
  if (place->kind != FileKind::folder) fail(named, fmt::format("{} is not a folder", folder.string()));
  if (!platform::may_write_folder(folder)) {
    fail(named, fmt::format("the folder {} is not writable", folder.string()), errno);
  }
  const std::optional<FileStatus> old = platform::status_of(target);
  if (!old) return;  // it is new
  if (old->kind == FileKind::folder) fail(named, "is a folder");
  if (old->kind != FileKind::file) fail(named, "is not a regular file");
  if (!platform::may_write_file(target)) fail(named, "is not writable", errno);
}

// ".photo.ungrain-1a2b3c4d.jpg" for photo.jpg: the extension tells encoders the format.
std::string hidden_name(const fs::path& target) {
  constexpr std::size_t longest_stem = 200;  // most file systems end at 255 bytes
  thread_local std::minstd_rand random{std::random_device{}()};
  return fmt::format(".{}.ungrain-{:08x}{}", file_stem(target).string().substr(0, longest_stem),
                     static_cast<std::uint32_t>(random()), file_extension(target));
}

unsigned group_of_new_files(const fs::path& folder) {
  const std::optional<FileStatus> status = platform::status_of(folder);
  return status && status->passes_group_on ? status->group : platform::group_of_this_process();
}

// The mode for a file just created in `expected_group` with the mode that `access` gives. Some file systems
// assign another group: then the mode for that group is set.
unsigned limited_mode(int descriptor, const FileAccess& access, unsigned expected_group) {
  const std::optional<FileStatus> status = platform::status_of(descriptor);
  if (!status) return 0600;
  const unsigned limited = status->mode & access.mode_in(status->group);
  if (status->group != expected_group && !platform::set_permissions(descriptor, limited)) return status->mode;
  return limited;
}

}  // namespace

void remove_temporaries() noexcept {
  LiveFiles& files = live_files();
  // The interrupted thread may hold the lock: then a file is left behind rather than the program blocked.
  const std::unique_lock lock(files.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  // From the last to the first: a folder is registered before its contents.
  for (auto path = files.paths.rbegin(); path != files.paths.rend(); ++path) platform::remove_file(*path);
}

void track_temporary(const fs::path& path) {
  LiveFiles& files = live_files();
  const std::lock_guard lock(files.mutex);
  files.paths.insert(path.string());
}

void remove_leftovers_beside(const fs::path& target) { remove_leftovers(folder_of(follow_links(target))); }

TemporaryFile::TemporaryFile(const fs::path& target, const FileAccess& access)
    : named_(target), target_(follow_links(target)) {
  check_target(named_, target_);
  remove_leftovers(folder_of(target_));
  create(access);
}

void TemporaryFile::create(const FileAccess& access) {
  constexpr int tries = 100;
  // Created with its final permissions: the kernel applies the umask or the folder's default ACL. commit()
  // copies the permissions of a replaced file.
  const unsigned group = group_of_new_files(folder_of(target_));
  std::error_code error;
  const unsigned mode = fs::exists(target_, error) ? 0600 : access.mode_in(group);
  int problem = EEXIST;
  for (int i = 0; i < tries && problem == EEXIST; ++i) {
    fs::path candidate = target_.parent_path() / hidden_name(target_);
    std::optional<FileGuard> guard = FileGuard::create(candidate);
    if (guard) {
      descriptor_ =
          platform::open_file(candidate, {.write = true, .create = true, .must_be_new = true, .mode = mode});
    }
    problem = errno;
    if (descriptor_ >= 0) {
      mode_ = limited_mode(descriptor_, access, group);
      path_ = std::move(candidate);
      guard_.emplace(std::move(*guard));
      track_temporary(path_);
      track_temporary(guard_->path());
      return;
    }
  }
  fail(named_, "cannot be created", problem);
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) platform::close_file(descriptor_);
  if (!committed_) {
    platform::remove_file(path_);
    remove_guard();
  }
}

void TemporaryFile::remove_guard() {
  LiveFiles& files = live_files();
  const std::lock_guard lock(files.mutex);
  files.paths.erase(path_.string());
  files.paths.erase(guard_->path().string());
  guard_.reset();
}

void TemporaryFile::write(const void* from, std::size_t size, std::uint64_t offset) {
  constexpr std::size_t largest_write = std::size_t{1} << 30U;
  std::size_t done = 0;
  while (done < size) {
    const std::size_t part = std::min(size - done, largest_write);
    const std::ptrdiff_t put =
        platform::write_at(descriptor_, static_cast<const std::byte*>(from) + done, part, offset + done);
    if (put < 0) {
      if (errno == EINTR) continue;
      fail(named_, "cannot be written", errno);
    }
    done += static_cast<std::size_t>(put);
  }
}

void TemporaryFile::set_permissions(int descriptor) const {
  const std::optional<FileStatus> replaced = platform::status_of(target_);
  // A file system without permissions refuses; the picture matters more.
  platform::set_permissions(descriptor, replaced ? replaced->mode : mode_);
}

void TemporaryFile::commit() {
  const int written = platform::open_file(path_, {.write = true, .follow_links = false});
  if (written < 0) fail(named_, "its temporary file is gone", errno);
  platform::close_file(descriptor_);
  descriptor_ = written;
  set_permissions(written);
  if (!platform::flush_to_disk(written)) fail(named_, "cannot be written", errno);
  if (!platform::close_file(std::exchange(descriptor_, -1))) fail(named_, "cannot be written", errno);
  if (!platform::replace_file(path_, target_)) fail(named_, "cannot be replaced", errno);
  committed_ = true;
  remove_guard();
  platform::flush_folder(folder_of(target_));  // the pixels are on the disk already
}

}  // namespace ungrain::io
