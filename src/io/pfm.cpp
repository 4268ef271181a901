// PFM: float samples, rows from the bottom up. A negative last number in the header means little endian. Its
// magnitude is a scale that programs interpret differently: it is ignored and mentioned in the note.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "io/builtin_formats.h"
#include "io/failure.h"
#include "io/header_text.h"
#include "io/sample_matrix.h"

namespace ungrain::io {
namespace {

double next_scale(const SourceFile& file, ByteStream& bytes) {
  const std::string word = next_word(bytes);
  double scale = 0;
  const char* end = word.data() + word.size();
  const char* begin = word.starts_with('+') ? word.data() + 1 : word.data();
  const auto [stop, error] = std::from_chars(begin, end, scale);
  if (stop != end || error != std::errc{} || scale == 0 || !std::isfinite(scale)) {
    fail(file.path(), fmt::format("its header is damaged: the scale is \"{}\"", word));
  }
  return scale;
}

}  // namespace

bool is_pfm(const SourceFile& file) {
  std::array<char, 3> magic{};
  return file.read_some(magic.data(), magic.size(), 0) == magic.size() && magic[0] == 'P' &&
         (magic[1] == 'f' || magic[1] == 'F') && is_space(magic[2]);
}

std::unique_ptr<InputFile> open_pfm(SourceFile file) {
  ByteStream bytes(file);
  const bool rgb = next_word(bytes) == "PF";
  const std::int64_t width = next_integer(file, bytes, "width");
  const std::int64_t height = next_integer(file, bytes, "height");
  check_size(file.path(), width, height, rgb ? 3 : 1);
  const double scale = next_scale(file, bytes);
  end_header(file, bytes);

  FileInfo info;
  info.format = "PFM";
  info.spec.width = static_cast<int>(width);
  info.spec.height = static_cast<int>(height);
  info.spec.channels = rgb ? 3 : 1;
  info.spec.colour = rgb ? Colour::rgb : Colour::gray;
  info.spec.type = PixelType::f32;
  info.white_unknown = true;
  if (std::abs(scale) != 1) info.note = fmt::format("the header's scale of {} ignored", std::abs(scale));

  MatrixLayout layout;
  layout.sample = Sample::f32;
  layout.big_endian = scale > 0;
  layout.offset = bytes.offset();
  layout.order = MatrixLayout::Order::rows_bottom_up;
  check_file_size(file, info.spec, layout);
  return open_matrix(std::move(file), std::move(info), layout);
}

std::unique_ptr<OutputFile> create_pfm(const std::filesystem::path& path, const FileInfo& info) {
  const std::string header = fmt::format("{}\n{} {}\n-1.0\n", info.spec.channels == 3 ? "PF" : "Pf",
                                         info.spec.width, info.spec.height);
  MatrixLayout layout;
  layout.sample = Sample::f32;
  layout.offset = header.size();
  layout.order = MatrixLayout::Order::rows_bottom_up;
  return create_matrix(path, info, header, layout);
}

}  // namespace ungrain::io
