#include "io/browser_picture.h"

#if UNGRAIN_HAVE_VIPS
#include "io/vips_functions.h"
#endif

namespace ungrain::io {

#if UNGRAIN_HAVE_VIPS

BrowserPicture browser_picture(const std::vector<std::uint8_t>& samples, int width, int height,
                               int channels) {
  return vips_functions().browser_picture(samples, width, height, channels);
}

#else

namespace {

void put(std::string& to, std::size_t number, int bytes) {
  for (int shift = 0; shift < 8 * bytes; shift += 8) to += static_cast<char>(number >> shift & 0xff);
}

}  // namespace

BrowserPicture browser_picture(const std::vector<std::uint8_t>& samples, int width, int height,
                               int channels) {
  const std::size_t colours = channels == 1 ? 256 : 0;  // gray needs a palette
  const std::size_t row = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  const std::size_t padded = (row + 3) / 4 * 4;
  const std::size_t start = 14 + 40 + 4 * colours;
  const std::size_t rows = static_cast<std::size_t>(height);
  std::string file = "BM";
  put(file, start + padded * rows, 4);
  put(file, 0, 4);
  put(file, start, 4);
  put(file, 40, 4);
  put(file, static_cast<std::size_t>(width), 4);
  put(file, rows, 4);
  put(file, 1, 2);
  put(file, 8 * static_cast<std::size_t>(channels), 2);
  put(file, 0, 4);  // not compressed
  put(file, padded * rows, 4);
  put(file, 0, 8);  // pixels a metre: unknown
  put(file, colours, 4);
  put(file, 0, 4);
  for (std::size_t value = 0; value < colours; ++value) put(file, value * 0x010101, 4);
  file.reserve(start + padded * rows);
  for (std::size_t y = rows; y-- > 0;) {  // rows from the bottom up; blue, green, red
    const std::uint8_t* from = samples.data() + y * row;
    for (std::size_t x = 0; x < row; ++x)
      file += static_cast<char>(from[channels == 1 ? x : x - x % 3 + 2 - x % 3]);
    file.append(padded - row, '\0');
  }
  return {"image/bmp", std::move(file)};
}

#endif

}  // namespace ungrain::io
