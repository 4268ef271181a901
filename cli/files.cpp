#include "files.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "commands.h"
#include "io/image_file.h"
#include "platform/files.h"
#include "streams.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

const std::string result_mark = ".ungrain";
const std::string volume_extension = ".nii.gz";  // of results of DICOM files, which are not written

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// ".ome" of a name like stack.ome.tif, which belongs to its extension; else empty.
std::string ome_mark(const fs::path& path) {
  const std::string last = io::file_stem(path).extension().string();
  return lower(last) == ".ome" && io::is_format(path, "TIFF") ? last : "";
}

// The name without its extension, and without the mark before that.
fs::path plain_stem(const fs::path& path) {
  const fs::path stem = io::file_stem(path);
  return ome_mark(path).empty() ? stem : stem.stem();
}

// DICOM files may have any name, and a folder of them has no extension.
bool is_nameless_dicom(const fs::path& input) {
  std::error_code error;
  return fs::is_directory(input, error) || (!io::can_read(input) && io::holds_dicom(input));
}

// The name of a result, with `mark` before its extension.
fs::path result_name(const fs::path& input, const std::string& mark) {
  const bool nameless = is_nameless_dicom(input);
  fs::path name = nameless ? input.filename() : plain_stem(input);
  name += mark + (nameless ? volume_extension : ome_mark(input) + result_extension(input));
  return name;
}

fs::path beside(const fs::path& input) { return input.parent_path() / result_name(input, result_mark); }

fs::path inside(const fs::path& folder, const fs::path& input) { return folder / result_name(input, ""); }

// Without a slash at its end, and with a name of its own: not "." or "..".
fs::path named_folder(const std::string& argument) {
  fs::path folder = argument;
  while (!folder.has_filename() && folder.has_relative_path()) folder = folder.parent_path();
  if (folder.filename() != "." && folder.filename() != "..") return folder;
  std::error_code error;
  const fs::path known = fs::canonical(folder, error);
  return error ? folder : known;
}

// A canonical name, so that different spellings of the same file are equal.
std::string identity(const fs::path& path) {
  std::error_code error;
  const fs::path whole =
      fs::absolute(path, error);  // else a name that does not exist yet would stay relative
  const fs::path known = fs::weakly_canonical(whole, error);
  return error ? path.string() : known.string();
}

bool goes_to_folder(const std::string& output, std::size_t inputs) {
  std::error_code error;
  if (output.empty()) return false;
  if (fs::is_directory(output, error) || output.ends_with('/')) return true;
  if (inputs < 2) return false;
  // A folder called all.png would be unexpected.
  if (fs::exists(output, error) || io::can_write(output, nullptr)) {
    throw UsageError(
        fmt::format("{}: {} inputs need a folder to go to, and this is a file's name{}", output, inputs,
                    fs::exists(output, error) ? "" : fmt::format(" ({}/ is a folder's)", output)));
  }
  return true;
}

// Throws where a result would overwrite another result or an input that has not been read yet.
void check_conflicts(const std::vector<FilePair>& pairs) {
  std::map<std::string, fs::path> inputs;
  for (const FilePair& pair : pairs) inputs.emplace(identity(pair.input), pair.input);
  std::map<std::string, fs::path> taken;
  for (const FilePair& pair : pairs) {
    const std::string output = identity(pair.output);
    const auto [entry, fresh] = taken.emplace(output, pair.input);
    if (!fresh) {
      throw UsageError(fmt::format("{} and {} would both be written to {}", entry->second.string(),
                                   pair.input.string(), pair.output.string()));
    }
    if (output != identity(pair.input) && inputs.contains(output)) {
      throw UsageError(fmt::format("{} is an input, and the result of {} would be written to it",
                                   inputs[output].string(), pair.input.string()));
    }
  }
}

void make_folder(const std::string& name) {
  std::error_code error;
  if (fs::is_directory(name, error)) return;
  fs::create_directory(fs::path(name + "/").parent_path(), error);
  if (error)
    throw Error(ErrorCode::io, fmt::format("{}: the folder cannot be made: {}", name, error.message()));
}

}  // namespace

std::string result_extension(const fs::path& input) {
  std::string own = io::file_extension(input);
  const bool read_only = !io::can_write(input, nullptr) && io::can_read(input);
  if (!read_only) return own;
  if (io::is_format(input, "camera raw")) return ".dng";
  if (io::is_format(input, "DICOM")) return volume_extension;
  if (lower(own) == ".pbm") return ".pgm";
  if (lower(own) == ".dib") return ".bmp";
  return io::can_write("x.tif", nullptr) ? ".tif" : ".npy";
}

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    const bool hidden = path.filename().string().starts_with('.');
    const bool result = plain_stem(path).extension() == result_mark;
    std::error_code dangling;  // a dangling link is not an image, and no reason to stop
    if (!hidden && !result && io::can_read(path) && entry.is_regular_file(dangling)) found.push_back(path);
  }
  if (error) throw Error(ErrorCode::io, fmt::format("{}: {}", folder.string(), error.message()));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> expand_inputs(const std::vector<std::string>& arguments, bool volumes) {
  std::vector<fs::path> inputs;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (argument == stream_name) {
      inputs.emplace_back(argument);
    } else if (volumes && fs::is_directory(argument, error) && io::holds_dicom(argument)) {
      inputs.push_back(named_folder(argument));
    } else if (fs::is_directory(argument, error)) {
      const std::vector<fs::path> images = images_in(argument);
      if (images.empty()) {
        throw UsageError(
            fmt::format("{}: no images in this folder{}", argument,
                        io::holds_dicom(argument) ? ", but DICOM slices: ungrain volume filters them" : ""));
      }
      inputs.insert(inputs.end(), images.begin(), images.end());
    } else if (!fs::exists(argument, error) && argument.find_first_of("*?[") != std::string::npos) {
      const std::vector<fs::path> matches = platform::matching_files(argument);
      if (matches.empty()) throw UsageError(fmt::format("{}: no file matches", argument));
      inputs.insert(inputs.end(), matches.begin(), matches.end());
    } else {
      inputs.emplace_back(argument);
    }
  }
  return inputs;
}

std::vector<FilePair> pair_outputs(const std::vector<fs::path>& inputs, const std::string& output) {
  const bool folder = output != stream_name && goes_to_folder(output, inputs.size());
  if (output == stream_name && inputs.size() > 1) {
    throw UsageError(fmt::format("{} inputs cannot all go to the standard output", inputs.size()));
  }
  const bool nameless = std::find(inputs.begin(), inputs.end(), stream_name) != inputs.end();
  if (nameless && (folder || output.empty())) {
    throw UsageError(
        "the standard input has no name for its result: give --output a file, or - for the standard output");
  }
  std::vector<FilePair> pairs;
  for (const fs::path& input : inputs) {
    pairs.push_back({input, output.empty() ? beside(input)
                            : folder       ? inside(output, input)
                                           : fs::path(output)});
  }
  check_conflicts(pairs);
  if (folder) make_folder(output);
  return pairs;
}

}  // namespace ungrain::cli
