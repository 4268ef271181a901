#include "page/viewer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/convert.h"
#include "page/html.h"
#include "page/png.h"

namespace ungrain::page {
namespace {

std::string number(double value, int digits) {
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  if (std::isnan(value)) return "–";
  return fmt::format("{:.{}f}", value, digits);
}
std::string number(std::optional<double> value, int digits) { return value ? number(*value, digits) : "–"; }

std::string in_short(const Metrics& metrics) {
  std::string text = number(metrics.psnr, 2) + " dB";
  if (metrics.ssim) text += ", SSIM " + number(metrics.ssim, 4);
  if (metrics.fsim) text += ", FSIM " + number(metrics.fsim, 4);
  return text;
}

std::string choice(const char* which, const char* label, const std::vector<Shown>& pictures, int chosen) {
  std::string html = fmt::format("<label>{} <select data-choose=\"{}\">", label, which);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    html += fmt::format("<option value=\"{}\"{}>{}</option>", i,
                        static_cast<int>(i) == chosen ? " selected" : "", escaped(pictures[i].name));
  }
  return html + "</select></label>";
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

std::string png_of(const ConstImageView& image, const Crop& part) {
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
  return encode_png(samples, part.width, part.height, channels);
}

std::string viewer(const std::vector<Shown>& pictures, int left, int right) {
  std::string html = "<figure class=\"viewer\">\n<div class=\"controls\">";
  html += choice("left", "left", pictures, left) + choice("right", "right", pictures, right);
  html +=
      "<label>show <select data-choose=\"mode\"><option value=\"slider\" selected>slider</option>"
      "<option value=\"difference\">difference</option></select></label>"
      "<label>zoom <select data-choose=\"zoom\"><option value=\"0\" selected>fit</option>"
      "<option>1</option><option>2</option><option>4</option><option>8</option></select></label>"
      "<label class=\"only-difference\">times <select data-choose=\"gain\"><option>1</option>"
      "<option>2</option><option selected>4</option><option>8</option></select></label>"
      "</div>\n"
      "<div class=\"stage\"><canvas></canvas></div>\n"
      "<input type=\"range\" class=\"split\" min=\"0\" max=\"1000\" value=\"500\" "
      "aria-label=\"where the left picture ends\">\n"
      "<p class=\"names\"><span data-name=\"left\"></span><span data-name=\"right\"></span></p>\n"
      "<div class=\"pictures\">\n";
  for (const Shown& picture : pictures) {
    html += fmt::format("<p><img alt=\"{0}\" data-numbers=\"{1}\" src=\"{2}\"><br>{0} {1}</p>\n",
                        escaped(picture.name),
                        picture.metrics ? in_short(*picture.metrics) : escaped(picture.note),
                        data_uri("image/png", picture.png));
  }
  return html + "</div>\n</figure>\n";
}

std::string metrics_table(const std::vector<Shown>& pictures) {
  const bool colour = std::any_of(pictures.begin(), pictures.end(), [](const Shown& picture) {
    return picture.metrics && picture.metrics->fsimc.has_value();
  });
  std::string html =
      "<div class=\"scroll\"><table class=\"metrics\"><thead><tr><th>picture</th><th>PSNR dB</th>"
      "<th>SSIM</th><th>FSIM</th>";
  if (colour) html += "<th>FSIMc</th>";
  html += "<th>MSE</th><th>largest error</th></tr></thead><tbody>\n";
  for (const Shown& picture : pictures) {
    if (!picture.metrics) continue;
    const Metrics& metrics = *picture.metrics;
    html += fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td>", escaped(picture.name),
                        number(metrics.psnr, 2), number(metrics.ssim, 4), number(metrics.fsim, 4));
    if (colour) html += fmt::format("<td>{}</td>", number(metrics.fsimc, 4));
    html += fmt::format("<td>{:.5g}</td><td>{:.5g}</td></tr>\n", metrics.mse, metrics.max_abs);
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace ungrain::page
