// Which files a command reads, and where each result goes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ungrain::cli {

namespace fs = std::filesystem;

struct FilePair {
  fs::path input;
  fs::path output;
};

// Files as they are, folders as the images in them (but not earlier results), patterns as what they match.
std::vector<fs::path> expand_inputs(const std::vector<std::string>& arguments);

// The input's own extension, or that of the nearest format that can be written, where we only read the
// input's.
std::string result_extension(const fs::path& input);

// `output` empty: NAME.ungrain.EXT beside each input. A folder (one that exists, or a name that ends in a
// slash, or, where there are several inputs, one that is not an image's): the same name in there; the folder
// itself is made where only it is missing. Otherwise the file itself, or the standard output (-). Throws
// UsageError where a result would be written over another or over another's input.
std::vector<FilePair> pair_outputs(const std::vector<fs::path>& inputs, const std::string& output);

}  // namespace ungrain::cli
