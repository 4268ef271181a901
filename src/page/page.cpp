#include "page/page.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "io/browser_picture.h"
#include "page_assets.h"
#include "ungrain/convert.h"

namespace ungrain::page {
namespace {

using nlohmann::json;

const std::map<std::string_view, std::string_view> scripts = {
    {"compare", compare_js}, {"noise", noise_js}, {"study", study_js}, {"volume", volume_js}};

std::string replaced(std::string_view text,
                     const std::vector<std::pair<std::string_view, std::string_view>>& rules) {
  std::string result;
  while (!text.empty()) {
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& one) {
      return text.substr(0, one.first.size()) == one.first;
    });
    result += rule != rules.end() ? rule->second : text.substr(0, 1);
    text.remove_prefix(rule != rules.end() ? rule->first.size() : 1);
  }
  return result;
}

std::string escaped(std::string_view text) {  // for text and for attributes in quotes
  return replaced(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// JSON that no text in it can end, neither as HTML nor as a script (line separators are escaped).
std::string embeddable(const json& data) {
  return replaced(data.dump(-1, ' ', false, json::error_handler_t::replace),
                  {{"<", "\\u003c"}, {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"}});
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve(bytes.size() * 4 / 3 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) result += k <= count ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return result;
}

}  // namespace

Crop shown_part(int width, int height, double most_pixels) {
  const double pixels = static_cast<double>(width) * height;
  if (pixels <= most_pixels) return {0, 0, width, height};
  const int side = static_cast<int>(std::sqrt(most_pixels));
  Crop part;
  part.width = std::min(width, std::max(side, static_cast<int>(most_pixels / height)));
  part.height = std::min(height, std::max(1, static_cast<int>(most_pixels / part.width)));
  part.x = (width - part.width) / 2;
  part.y = (height - part.height) / 2;
  return part;
}

std::string source_of(const ConstImageView& image, const Crop& part) {
  const int channels = image.spec.colour == Colour::rgb ? 3 : 1;
  const auto width = static_cast<std::size_t>(part.width);
  std::vector<std::uint8_t> samples(width * static_cast<std::size_t>(part.height * channels));
  std::vector<double> row(static_cast<std::size_t>(image.spec.width));
  const double scale = 255 / image.spec.white();
  for (int y = 0; y < part.height; ++y) {
    for (int channel = 0; channel < channels; ++channel) {
      load_row(image, part.y + y, channel, row.data());
      for (std::size_t x = 0; x < width; ++x) {
        const double value = row[static_cast<std::size_t>(part.x) + x] * scale;
        const double shown = std::isnan(value) ? 0 : std::clamp(value, 0.0, 255.0);
        samples[(static_cast<std::size_t>(y) * width + x) * static_cast<std::size_t>(channels) +
                static_cast<std::size_t>(channel)] = static_cast<std::uint8_t>(std::lround(shown));
      }
    }
  }
  const io::BrowserPicture file = io::browser_picture(samples, part.width, part.height, channels);
  return fmt::format("data:{};base64,{}", file.media_type, base64(file.bytes));
}

std::string in_short(const json& metrics) {
  const json& psnr = metrics.at("psnr");
  std::string text = psnr.is_number()                  ? fmt::format("{:.2f}", psnr.get<double>())
                     : psnr.is_null() || psnr == "inf" ? "∞"
                     : psnr == "-inf"                  ? "−∞"
                                                       : "–";
  text += " dB";
  for (const auto& [key, name] : {std::pair("ssim", "SSIM"), std::pair("fsim", "FSIM")}) {
    if (const auto value = metrics.find(key); value != metrics.end() && value->is_number())
      text += fmt::format(", {} {:.4f}", name, value->get<double>());
  }
  return text;
}

std::string render_page(std::string_view kind, const json& data, const std::vector<Picture>& pictures) {
  std::string shown;
  for (const Picture& picture : pictures) {
    shown += fmt::format("<p><img alt=\"{0}\" data-numbers=\"{1}\" src=\"{2}\"><br>{0} {1}</p>\n",
                         escaped(picture.name), escaped(picture.caption), picture.source);
  }
  const std::string title = escaped(data.at("title").get<std::string>());
  const std::string text = embeddable(data);
  const std::string script = fmt::format("{}{}", page_js, scripts.at(kind));
  return replaced(page_html, {{"{{title}}", title},
                              {"{{style}}", page_css},
                              {"{{pictures}}", shown},
                              {"{{data}}", text},
                              {"{{script}}", script}});
}

}  // namespace ungrain::page
