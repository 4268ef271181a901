#include "journal.h"

#include <sys/stat.h>

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json_text.h"

namespace ungrain::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* journal_name = ".ungrain-done.jsonl";

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// Changes whenever the file does; empty where there is none.
std::string stamp_of(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return "";
  return fmt::format("{}:{}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::string origin(const fs::path& input, const std::string& input_stamp, const std::string& output_stamp,
                   const std::string& settings) {
  std::error_code error;
  const fs::path known = fs::weakly_canonical(input, error);
  return json_text({(error ? input : known).string(), input_stamp, output_stamp, settings});
}

}  // namespace

const Journal::Entries& Journal::entries_of(const fs::path& folder) {
  const auto [found, fresh] = folders_.try_emplace(folder.string());
  if (fresh) {
    std::ifstream file(folder / journal_name);
    for (std::string line; std::getline(file, line);) {
      // A line that was cut off by a crash is no line.
      const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
      if (entry.is_object() && entry.contains("output") && entry.contains("from") &&
          entry["output"].is_string() && entry["from"].is_string()) {
        found->second[entry["output"].get<std::string>()] = entry["from"].get<std::string>();
      }
    }
  }
  return found->second;
}

bool Journal::is_done(const fs::path& input, const fs::path& output) {
  const Entries& entries = entries_of(folder_of(output));
  const auto found = entries.find(output.filename().string());
  const std::string output_stamp = stamp_of(output);
  return found != entries.end() && !output_stamp.empty() &&
         found->second == origin(input, stamp_of(input), output_stamp, settings_);
}

void Journal::record(const fs::path& input, const fs::path& output) {
  const nlohmann::json entry{{"output", output.filename().string()},
                             {"from", origin(input, stamp_of(input), stamp_of(output), settings_)}};
  std::ofstream file(folder_of(output) / journal_name, std::ios::app);
  file << json_text(entry) << '\n';
}

}  // namespace ungrain::cli
