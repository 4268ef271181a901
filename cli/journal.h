// The journal of --resume: for each output, its input and settings. One line of JSON a file, appended when
// the output is complete, in a hidden file of the output's folder.
//
// Others may have write access to that folder: only a regular file is read or written, and links are not
// followed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ungrain::cli {

struct JournalEntry {
  std::string output;  // the file's name
  std::string from;    // its input and settings
};
// Null for a line that is no entry: cut off by a crash, or anything else.
std::optional<JournalEntry> parse_journal_line(std::string_view line);

class Journal {
 public:
  // `settings`: everything that changes the output (method, parameters, type), as text.
  explicit Journal(std::string settings) : settings_(std::move(settings)) {}

  // Reads the journals' entries of these outputs, for is_done(). Throws Error(io) where a journal cannot be
  // trusted.
  void read(const std::vector<std::filesystem::path>& outputs);
  // Whether `output` exists, is complete, and was made with these settings from `input` in its present state.
  bool is_done(const std::filesystem::path& input, const std::filesystem::path& output) const;
  // Returns why it could not be recorded, once a folder; otherwise nothing.
  std::string record(const std::filesystem::path& input, const std::filesystem::path& output);

 private:
  using Entries = std::map<std::string, std::string>;  // output's name -> its input and settings

  std::string settings_;
  std::map<std::string, Entries> folders_;
  std::set<std::string> unwritable_;  // journals
};

}  // namespace ungrain::cli
