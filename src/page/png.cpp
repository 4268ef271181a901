#include "page/png.h"

#include <array>
#include <cstdlib>
#include <vector>

#include "page/deflate.h"

namespace ungrain::page {
namespace {

std::uint32_t crc32(const std::string& bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t entry = i;
      for (int bit = 0; bit < 8; ++bit) entry = (entry & 1) != 0 ? 0xedb88320U ^ (entry >> 1) : entry >> 1;
      entries[i] = entry;
    }
    return entries;
  }();
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

void put_number(std::string& to, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(number >> shift & 0xff);
}

void put_chunk(std::string& png, const char* kind, const std::string& body) {
  put_number(png, static_cast<std::uint32_t>(body.size()));
  const std::string checked = kind + body;
  png += checked;
  put_number(png, crc32(checked));
}

// PNG's five ways of telling a byte by its neighbours: left, above, and above left.
int prediction(int filter, int left, int above, int corner) {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return above;
    case 3:
      return (left + above) / 2;
    case 4: {
      const int guess = left + above - corner;
      const int from_left = std::abs(guess - left);
      const int from_above = std::abs(guess - above);
      const int from_corner = std::abs(guess - corner);
      if (from_left <= from_above && from_left <= from_corner) return left;
      return from_above <= from_corner ? above : corner;
    }
    default:
      return 0;
  }
}

// Each row by the way that leaves the smallest differences, its number first.
std::vector<std::uint8_t> filtered(std::span<const std::uint8_t> samples, int row_bytes, int height,
                                   int channels) {
  std::vector<std::uint8_t> result;
  result.reserve(static_cast<std::size_t>(row_bytes + 1) * static_cast<std::size_t>(height));
  std::vector<std::uint8_t> row(static_cast<std::size_t>(row_bytes));
  std::vector<std::uint8_t> best(row.size());
  for (int y = 0; y < height; ++y) {
    const auto at = [&](int x, int line) -> int {
      if (x < 0 || line < 0) return 0;
      return samples[static_cast<std::size_t>(line) * static_cast<std::size_t>(row_bytes) +
                     static_cast<std::size_t>(x)];
    };
    long smallest = -1;
    std::uint8_t best_filter = 0;
    for (int filter = 0; filter < 5; ++filter) {
      long sum = 0;
      for (int x = 0; x < row_bytes; ++x) {
        const int expected = prediction(filter, at(x - channels, y), at(x, y - 1), at(x - channels, y - 1));
        const auto byte = static_cast<std::uint8_t>(at(x, y) - expected);
        row[static_cast<std::size_t>(x)] = byte;
        sum += byte < 128 ? byte : 256 - byte;
      }
      if (smallest < 0 || sum < smallest) {
        smallest = sum;
        best_filter = static_cast<std::uint8_t>(filter);
        best.swap(row);
      }
    }
    result.push_back(best_filter);
    result.insert(result.end(), best.begin(), best.end());
  }
  return result;
}

}  // namespace

std::string encode_png(std::span<const std::uint8_t> samples, int width, int height, int channels) {
  std::string header;
  put_number(header, static_cast<std::uint32_t>(width));
  put_number(header, static_cast<std::uint32_t>(height));
  header += '\x08';
  header += channels == 1 ? '\x00' : '\x02';
  header.append(3, '\0');  // compression, filters, interlacing: the only ones, and none
  std::string png = "\x89PNG\r\n\x1a\n";
  put_chunk(png, "IHDR", header);
  put_chunk(png, "IDAT", zlib_compressed(filtered(samples, width * channels, height, channels)));
  put_chunk(png, "IEND", "");
  return png;
}

}  // namespace ungrain::page
