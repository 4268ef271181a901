// "-" instead of a file: the standard input and output. Formats need random access and files are replaced as
// a whole, so the input is first copied to a temporary file, and the result is copied out when it is
// complete.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/image_file.h"

namespace ungrain::cli {

inline constexpr std::string_view stream_name = "-";

// Throws UsageError where the streams cannot be used as `inputs` and `output` (empty: none) ask, or where
// `format` (of the standard output, empty: the input's) is unknown or not for a stream. Afterwards reports go
// to the standard error if the result goes to the standard output.
void check_streams(const std::vector<std::string>& inputs, const std::string& output = {},
                   const std::string& format = {});

std::string shown_input(const std::filesystem::path& name);   // "standard input" for -, else the name
std::string shown_output(const std::filesystem::path& name);  // "standard output"
// The message with the temporary files' names replaced by their streams'.
std::string with_stream_names(std::string_view message);

// Opens a file or the standard input, which the first call reads to its end unless the user interrupts.
std::unique_ptr<io::InputFile> open_input(const std::filesystem::path& name, const io::OpenOptions& options);

// The file to which a result is written.
class ResultFile {
 public:
  // `named` is a file or -, whose format is `format` or, where that is empty, the input's.
  ResultFile(const std::filesystem::path& named, const std::string& input_format, const std::string& format);
  const std::filesystem::path& path() const { return path_; }
  void deliver() const;  // when it is complete: copies it to the standard output, if that is its target

 private:
  std::filesystem::path path_;
  bool streamed_;
};

}  // namespace ungrain::cli
