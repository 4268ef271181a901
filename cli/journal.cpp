#include "journal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/image_file.h"
#include "json_text.h"
#include "platform/files.h"
#include "signals.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* journal_name = ".ungrain-done.jsonl";

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

std::string stamp_of(const fs::path& file);

// The folder's own time would change with a result in it.
std::string stamp_of_folder(const fs::path& folder) {
  std::set<std::string> stamps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code gone;
    if (name.starts_with('.') || !entry.is_regular_file(gone)) continue;
    if (io::holds_dicom(entry.path())) stamps.insert(name + ' ' + stamp_of(entry.path()));
  }
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const std::string& stamp : stamps) {
    for (const char c : stamp) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return fmt::format("{} files {:016x}", stamps.size(), hash);
}

// Changes whenever the file, or one of a folder's files, does; empty if there is no file.
std::string stamp_of(const fs::path& file) {
  const std::optional<platform::FileStatus> status = platform::status_of(file);
  if (!status) return "";
  if (status->kind == platform::FileKind::folder) return stamp_of_folder(file);
  return fmt::format("{}:{}.{:09}", status->size, status->seconds, status->nanoseconds);
}

std::string origin(const fs::path& input, const std::string& input_stamp, const std::string& output_stamp,
                   const std::string& settings) {
  std::error_code error;
  const fs::path known = fs::weakly_canonical(input, error);
  return json_text({(error ? input : known).string(), input_stamp, output_stamp, settings});
}

// Without waiting: a named pipe of that name would wait for its other end.
constexpr platform::Opening reading{.follow_links = false, .wait = false};
constexpr platform::Opening appending{
    .write = true, .create = true, .append = true, .follow_links = false, .wait = false, .mode = 0666};

// An open journal, or the reason why it is not open.
class JournalFile {
 public:
  JournalFile(const fs::path& path, const platform::Opening& how)
      : descriptor_(platform::open_file(path, how)) {
    if (descriptor_ < 0) {
      missing_ = errno == ENOENT || errno == ENOTDIR;
      fail(errno);
      if (const auto status = platform::link_status_of(path)) check_kind(*status);
      return;
    }
    const std::optional<platform::FileStatus> status = platform::status_of(descriptor_);
    if (!status) {
      fail(errno);
      return;
    }
    check_kind(*status);
    size_ = status->size;
  }
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;
  ~JournalFile() {
    if (descriptor_ >= 0) platform::close_file(descriptor_);
  }

  const std::string& problem() const { return problem_; }  // empty: none
  bool missing() const { return missing_; }
  std::uint64_t size() const { return size_; }

  // As many bytes as there are, up to `size`; 0 at the end and where there is a problem.
  std::size_t read(char* to, std::size_t size, std::uint64_t offset) {
    std::ptrdiff_t got = 0;
    do {
      got = platform::read_at(descriptor_, to, size, offset);
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(errno);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }

  // In one write, so that lines of processes that share the folder do not mix.
  void append(std::string_view line) {
    while (!line.empty() && problem_.empty()) {
      const std::ptrdiff_t put = platform::write_some(descriptor_, line.data(), line.size());
      if (put >= 0) {
        line.remove_prefix(static_cast<std::size_t>(put));
      } else if (errno != EINTR) {
        fail(errno);
      }
    }
  }

  bool ends_inside_line() {
    char last = '\n';
    return size_ > 0 && read(&last, 1, size_ - 1) == 1 && last != '\n';
  }

 private:
  void fail(int error_number) { problem_ = std::generic_category().message(error_number); }
  void check_kind(const platform::FileStatus& status) {
    if (status.kind == platform::FileKind::link) {
      problem_ = "is a symbolic link";
    } else if (status.kind != platform::FileKind::file) {
      problem_ = "is not a regular file";
    }
  }

  int descriptor_;
  std::string problem_;
  bool missing_ = false;
  std::uint64_t size_ = 0;
};

// "the journal out/.ungrain-done.jsonl: is a symbolic link"
std::string complaint(const fs::path& journal, std::string_view problem) {
  return fmt::format("the journal {}: {}", journal.string(), problem);
}

[[noreturn]] void refuse(const fs::path& journal, std::string_view problem) {
  throw Error(ErrorCode::io, fmt::format("{}: --resume cannot use it", complaint(journal, problem)));
}

// Calls use(line) for each line. Lines longer than any of ours are skipped and never held in memory.
template <class Use>
void for_each_line(JournalFile& file, Use use) {
  constexpr std::size_t longest = std::size_t{64} << 10U;
  std::vector<char> block(longest);
  std::string line;
  bool too_long = false;
  std::uint64_t offset = 0;
  while (const std::size_t got = file.read(block.data(), block.size(), offset)) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    offset += got;
    for (std::string_view rest(block.data(), got); !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      too_long = too_long || line.size() + end > longest;
      if (!too_long) line.append(rest.substr(0, end));
      if (end < rest.size()) {
        if (!too_long) use(line);
        line.clear();
        too_long = false;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (!too_long && !line.empty()) use(line);
}

}  // namespace

std::optional<JournalEntry> parse_journal_line(std::string_view line) {
  const nlohmann::json entry = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!entry.is_object()) return std::nullopt;
  const auto text = [&](const char* key) -> const std::string* {
    const auto found = entry.find(key);
    return found == entry.end() ? nullptr : found->get_ptr<const std::string*>();
  };
  const std::string* output = text("output");
  const std::string* from = text("from");
  if (output == nullptr || from == nullptr) return std::nullopt;
  return JournalEntry{*output, *from};
}

void Journal::read(const std::vector<fs::path>& outputs) {
  // Keeps only the entries asked for, so that memory does not grow with the journal.
  std::map<std::string, std::set<std::string>> wanted;
  for (const fs::path& output : outputs) {
    wanted[folder_of(output).string()].insert(output.filename().string());
  }
  for (const auto& [folder, names] : wanted) {
    const fs::path path = fs::path(folder) / journal_name;
    JournalFile file(path, reading);
    if (file.missing()) continue;
    if (!file.problem().empty()) refuse(path, file.problem());
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30U;  // some million lines
    if (file.size() > most_bytes)
      refuse(path, fmt::format("has {} bytes, 1 GiB at most is read", file.size()));
    Entries& entries = folders_[folder];
    for_each_line(file, [&, &names = names](const std::string& line) {
      std::optional<JournalEntry> entry = parse_journal_line(line);
      if (entry && names.contains(entry->output)) entries[entry->output] = std::move(entry->from);
    });
    if (!file.problem().empty()) refuse(path, file.problem());
  }
}

bool Journal::is_done(const fs::path& input, const fs::path& output) const {
  const auto entries = folders_.find(folder_of(output).string());
  if (entries == folders_.end()) return false;
  const auto found = entries->second.find(output.filename().string());
  const std::string output_stamp = stamp_of(output);
  return found != entries->second.end() && !output_stamp.empty() &&
         found->second == origin(input, stamp_of(input), output_stamp, settings_);
}

std::string Journal::record(const fs::path& input, const fs::path& output) {
  const fs::path path = folder_of(output) / journal_name;
  if (unwritable_.contains(path.string())) return "";
  const nlohmann::json entry{{"output", output.filename().string()},
                             {"from", origin(input, stamp_of(input), stamp_of(output), settings_)}};
  JournalFile file(path, appending);
  // Ends a line that a crash cut off, so that ours is not joined to it.
  if (file.problem().empty()) file.append((file.ends_inside_line() ? "\n" : "") + json_text(entry) + '\n');
  if (file.problem().empty()) return "";
  unwritable_.insert(path.string());
  return fmt::format("{}: not written, --resume will not know this run", complaint(path, file.problem()));
}

}  // namespace ungrain::cli
