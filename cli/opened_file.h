// A file that is open for filtering: what the options say of its samples, and the method's parameters for
// each of its pages, with the noise that is found there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "denoise_settings.h"
#include "io/image_file.h"
#include "method_options.h"
#include "page_rows.h"
#include "ungrain/denoiser.h"
#include "ungrain/measured_noise.h"

namespace ungrain::cli {

struct MeasuredPage {
  MethodParams params;                      // resolved
  std::optional<NoiseModelEstimate> noise;  // nothing: it was not measured, or as --noise says
  std::string text;                         // the noise in words; empty: it was not measured
  bool line_found = true;                   // of --noise poisson-gaussian: whether there is noise
};

// Of noise that was measured.
enum class Visibility { none, too_weak, visible };

class OpenedFile {
 public:
  // `memory`: bytes that decoding may take. The settings must outlive this object.
  OpenedFile(const std::filesystem::path& path, const MethodOptions& method, const Settings& settings,
             std::size_t memory);

  const io::FileInfo& info() const { return info_; }  // of input(), with channels and white level as asked
  const ImageSpec& spec() const { return info_.spec; }
  std::string_view range_from() const { return range_from_; }  // the white level: type, metadata, values ...
  io::InputFile& input() { return *input_; }  // its pages; volumes, of a method that takes them as solids
  io::InputFile& file() { return *file_; }    // as it lies on the disk
  // Which pages are slices of which volume; nothing: they are no slices.
  const std::optional<io::PageOrder>& order() const { return order_; }
  const MethodParams& params() const { return *params_; }  // as asked

  // Whether each page has parameters of its own.
  bool pages_differ() const;
  // The parameters for the page, or volume, that input() has selected. `rows` are its rows. `known` is the
  // page's noise, where it was measured before.
  MeasuredPage measure(PageRows& rows, int page, MeasuredNoise* known = nullptr);
  // Whether the noise shows in a file of samples like `written`; noise that is asked to be removed more than
  // once always does.
  Visibility visibility(const NoiseModelEstimate& noise, const ImageSpec& written) const;

 private:
  void describe();
  void follow_voxel_sizes(const MethodOptions& method);
  Resolved resolve_page(PageRows& rows, int page, const NoiseModelOptions& options);
  void measure_line(PageRows& rows, MeasuredPage& measured);
  void measure_rician(PageRows& rows, MeasuredPage& measured);

  std::filesystem::path path_;
  const Settings& settings_;
  std::unique_ptr<io::InputFile> input_;
  io::InputFile* file_ = nullptr;  // input_, or inside it
  std::optional<io::PageOrder> order_;
  io::FileInfo info_;
  std::string_view range_from_ = "type";
  std::optional<MethodParams> params_;
};

// The output's type and white level. A type that was asked for is never replaced; otherwise the format may
// replace it.
io::FileInfo output_info(const io::FileInfo& in, const std::filesystem::path& path, const Settings& settings);

// Parameters that leave the image as it is.
MethodParams without_effect(MethodParams params);

}  // namespace ungrain::cli
