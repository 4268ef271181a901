// Settings as the page sends them: words of a command line of ungrain.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "denoise_request.h"
#include "io/scratch_folder.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain::cli::view {

// Noise that was measured for the page. `--noise-model @3` in its words means the third.
class HeldNoiseModels {
 public:
  int add(const NoiseModel& model, const ImageSpec& spec);
  // The words with the models' files. Throws UsageError where there is no such model.
  Arguments with_files(const Arguments& words) const;

 private:
  mutable std::mutex mutex_;
  io::ScratchFolder folder_;
  std::vector<std::filesystem::path> files_;
};

// From a JSON array of text. Throws UsageError.
Arguments words_of(const nlohmann::json& words);

// Throws UsageError where a word is for files or for the terminal: nothing of a request names a file.
void check_words(const Arguments& words, MethodOptions::For what);

// `words` have been checked.
std::unique_ptr<DenoiseRequest> read_request(const Arguments& words, MethodOptions::For what);

// What the page makes controls of.
nlohmann::json describe_methods(MethodOptions::For what);
nlohmann::json describe_common_options(MethodOptions::For what);

// The command line and the Python call that mean the same.
std::string command_line(const Arguments& words, const std::string& file, MethodOptions::For what);
std::string python_call(const Arguments& words, const std::string& file, MethodOptions::For what);

// The options of a preset file's content.
Arguments words_of_preset(const std::string& text, MethodOptions::For what);

}  // namespace ungrain::cli::view
