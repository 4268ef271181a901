// Finds the files that a command reads, and the path of each result.
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

// The images in a folder, but not earlier results, by name.
std::vector<fs::path> images_in(const fs::path& folder);

// Files as they are; for folders, the images in them (but not earlier results); for patterns, what they
// match. `volumes`: a folder with DICOM files is an input by itself.
std::vector<fs::path> expand_inputs(const std::vector<std::string>& arguments, bool volumes);

// The input's own extension, or that of the nearest writable format where the input's format can only be
// read.
std::string result_extension(const fs::path& input);

// `output` empty: NAME.ungrain.EXT beside each input, a folder of slices too. A folder (one that exists, a
// name that ends in a slash or, with several inputs, a name without an image's extension): the same name in
// there; the folder itself is created, but not its parents. Otherwise the file itself, or the standard output
// (-). Throws UsageError where a result would overwrite another result or another input.
std::vector<FilePair> pair_outputs(const std::vector<fs::path>& inputs, const std::string& output);

}  // namespace ungrain::cli
