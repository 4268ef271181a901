// What --resume goes by: for each output, what it was made from and how. One line of JSON a file, appended
// when the output is complete, in a hidden file of the output's folder.
//
// Others may be able to write to that folder: only a regular file is read or written, never what a link
// points to.
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
  std::string from;    // what it was made from
};
// Null for a line that is none: one that was cut off by a crash, or anything else.
std::optional<JournalEntry> parse_journal_line(std::string_view line);

class Journal {
 public:
  // `settings`: whatever changes the output (method, parameters, type), as text.
  explicit Journal(std::string settings) : settings_(std::move(settings)) {}

  // What the journals say of these outputs, for is_done(). Throws Error(io) where one cannot be trusted.
  void read(const std::vector<std::filesystem::path>& outputs);
  // Whether `output` is there, complete, and made with these settings from `input` as it is now.
  bool is_done(const std::filesystem::path& input, const std::filesystem::path& output) const;
  // Returns why it could not be recorded, the first time in a folder; otherwise nothing.
  std::string record(const std::filesystem::path& input, const std::filesystem::path& output);

 private:
  using Entries = std::map<std::string, std::string>;  // output's name -> what it was made from

  std::string settings_;
  std::map<std::string, Entries> folders_;
  std::set<std::string> unwritable_;  // journals
};

}  // namespace ungrain::cli
