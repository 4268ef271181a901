// What --resume goes by: for each output, what it was made from and how. One line of JSON a file, appended
// when the output is complete, in a hidden file of the output's folder.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace ungrain::cli {

class Journal {
 public:
  // `settings`: whatever changes the output (method, parameters, type), as text.
  explicit Journal(std::string settings) : settings_(std::move(settings)) {}

  // Whether `output` is there, complete, and made with these settings from `input` as it is now.
  bool is_done(const std::filesystem::path& input, const std::filesystem::path& output);
  void record(const std::filesystem::path& input, const std::filesystem::path& output);

 private:
  using Entries = std::map<std::string, std::string>;  // output's name -> what it was made from
  const Entries& entries_of(const std::filesystem::path& folder);

  std::string settings_;
  std::map<std::string, Entries> folders_;
};

}  // namespace ungrain::cli
