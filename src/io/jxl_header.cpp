#include "io/jxl_header.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/boxes.h"

namespace ungrain::io {
namespace {

// Bits from the lowest of each byte on; zeros beyond the end.
class BitReader {
 public:
  BitReader(const SourceFile& file, std::uint64_t at) { file.read_some(bytes_.data(), bytes_.size(), at); }

  std::uint32_t take(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      const std::size_t byte = at_ / 8;
      const unsigned bit = byte < bytes_.size() ? bytes_[byte] >> (at_ % 8) & 1U : 0;
      value |= bit << i;
    }
    return value;
  }

 private:
  std::array<unsigned char, 64> bytes_{};
  std::size_t at_ = 0;
};

void skip_side(BitReader& bits) {
  constexpr std::array widths = {9, 13, 18, 30};
  bits.take(widths[bits.take(2)]);
}

void skip_size(BitReader& bits) {
  const bool small = bits.take(1) != 0;
  small ? static_cast<void>(bits.take(5)) : skip_side(bits);
  if (bits.take(3) == 0)
    small ? static_cast<void>(bits.take(5)) : skip_side(bits);  // no common ratio: the width
}

}  // namespace

bool jxl_is_animated(const SourceFile& file) {
  const std::optional<std::uint64_t> codestream = jxl_codestream_at(file);
  if (!codestream) return false;
  BitReader bits(file, *codestream);
  if (bits.take(16) != 0x0aff) return false;
  skip_size(bits);
  if (bits.take(1) != 0) return false;     // all metadata are the default
  if (bits.take(1) == 0) return false;     // no extra fields
  bits.take(3);                            // orientation
  if (bits.take(1) != 0) skip_size(bits);  // the size it should be shown at
  if (bits.take(1) != 0) return false;     // a preview, which no encoder writes
  return bits.take(1) != 0;
}

}  // namespace ungrain::io
