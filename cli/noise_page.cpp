#include "noise_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/convert.h"
#include "noise_text.h"
#include "page/html.h"
#include "page/plot.h"
#include "page/viewer.h"

namespace ungrain::cli {
namespace {

constexpr int side = NoiseModel::side;

double root_mean_square(const NoiseModel::Spectrum& spectrum) {
  double squares = 0;
  for (const double value : spectrum) squares += value * value;
  return std::sqrt(squares / static_cast<double>(spectrum.size()));
}

std::string plot_over_levels(const NoisePage& page) {
  const double scale = 255 / page.spec.white();
  constexpr int steps = 64;
  page::Plot plot{.title = "Deviation by level",
                  .x_label = "level, of 255",
                  .y_label = "deviation, of 255",
                  .series = {},
                  .log_y = false};
  for (int c = 0; c < static_cast<int>(page.model.channels.size()); ++c) {
    const NoiseModel::Channel& channel = page.model.channels[static_cast<std::size_t>(c)];
    const double all_frequencies = root_mean_square(channel.spectrum);
    page::Series series{channel_name(page.spec, c), {}, c};
    for (int n = 0; n <= steps; ++n) {
      const double level = page.spec.white() * n / steps;
      series.points.push_back({level * scale, page.model.deviation(c, level) * all_frequencies * scale});
    }
    plot.series.push_back(std::move(series));
  }
  return page::line_plot(plot);
}

std::string plot_over_frequencies(const NoisePage& page) {
  const double scale = 255 / page.spec.white();
  page::Plot plot{.title = "Deviation by frequency, at the middle level",
                  .x_label = "i + j of the 8 x 8 cosine transform: coarse to fine",
                  .y_label = "deviation, of 255",
                  .series = {},
                  .log_y = false};
  for (int c = 0; c < static_cast<int>(page.model.channels.size()); ++c) {
    const NoiseModel::Channel& channel = page.model.channels[static_cast<std::size_t>(c)];
    const double level = channel.levels[channel.levels.size() / 2];
    page::Series series{channel_name(page.spec, c), {}, c};
    for (int sum = 0; sum <= 2 * (side - 1); ++sum) {
      double squares = 0;
      int count = 0;
      for (int j = std::max(0, sum - side + 1); j <= std::min(sum, side - 1); ++j) {
        squares += std::pow(page.model.deviation(c, level, sum - j, j), 2);
        ++count;
      }
      series.points.push_back({static_cast<double>(sum), std::sqrt(squares / count) * scale});
    }
    plot.series.push_back(std::move(series));
  }
  return page::line_plot(plot);
}

std::string spectrum_table(const NoisePage& page, int c) {
  const double scale = 255 / page.spec.white();
  const NoiseModel::Channel& channel = page.model.channels[static_cast<std::size_t>(c)];
  const double level = channel.levels[channel.levels.size() / 2];
  double most = 0;
  for (const double value : channel.spectrum) most = std::max(most, value);
  std::string html = fmt::format("<div><h3>{}</h3>\n<div class=\"scroll\"><table><tbody>\n",
                                 page::escaped(channel_name(page.spec, c)));
  for (int j = 0; j < side; ++j) {
    html += "<tr>";
    for (int i = 0; i < side; ++i) {
      const double share = most > 0 ? channel.spectrum[static_cast<std::size_t>(j * side + i)] / most : 0;
      html += fmt::format(
          "<td style=\"background:color-mix(in srgb, var(--accent) {:.0f}%, transparent)\">{:.1f}</td>",
          60 * share, page.model.deviation(c, level, i, j) * scale);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></div>\n";
}

std::string picture_with_blocks(const NoisePage& page) {
  const ImageSpec& shown = page.picture.spec();
  const std::string png = page::png_of(page.picture.view(), {0, 0, shown.width, shown.height});
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"100%\" role=\"img\" aria-label=\"the picture with the blocks "
      "that "
      "were "
      "measured\"><image href=\"{2}\" width=\"{0}\" height=\"{1}\" preserveAspectRatio=\"none\"/>\n",
      page.spec.width, page.spec.height, page::data_uri("image/png", png));
  // Blocks of a large picture would be specks: they are drawn as large as can be seen.
  const int drawn = std::max(side, std::max(page.spec.width, page.spec.height) / 160);
  for (const NoiseBlock& block : page.blocks) {
    svg += fmt::format("<rect class=\"block\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                       block.x + side / 2 - drawn / 2, block.y + side / 2 - drawn / 2, drawn, drawn);
  }
  return svg + "</svg>\n";
}

}  // namespace

Image made_small(const ConstImageView& image, int longest) {
  const ImageSpec& from = image.spec;
  const int factor = (std::max(from.width, from.height) + longest - 1) / longest;
  ImageSpec spec = from;
  spec.width = (from.width + factor - 1) / factor;
  spec.height = (from.height + factor - 1) / factor;
  Image small(spec);
  std::vector<double> row(static_cast<std::size_t>(from.width));
  std::vector<double> sums(static_cast<std::size_t>(spec.width));
  for (int c = 0; c < from.channels; ++c) {
    for (int y = 0; y < spec.height; ++y) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const int end = std::min(from.height, (y + 1) * factor);
      for (int line = y * factor; line < end; ++line) {
        load_row(image, line, c, row.data());
        for (int x = 0; x < from.width; ++x) sums[static_cast<std::size_t>(x / factor)] += row[x];
      }
      for (int x = 0; x < spec.width; ++x) {
        const int columns = std::min(from.width, (x + 1) * factor) - x * factor;
        sums[static_cast<std::size_t>(x)] /= columns * (end - y * factor);
      }
      store_row(small.view(), y, c, sums.data());
    }
  }
  return small;
}

std::string html_of(const NoisePage& page) {
  std::string body =
      fmt::format("<h1>Noise of {}</h1>\n<p class=\"lead\">{} x {}, {}: {}.</p>\n", page::escaped(page.name),
                  page.spec.width, page.spec.height, name(page.spec.type), page::escaped(page.found));
  body += "<div class=\"plots\">\n" + plot_over_levels(page) + plot_over_frequencies(page) + "</div>\n";
  body +=
      "<h2>Each frequency</h2>\n<p class=\"small\">Deviation of the coefficients of the 8 x 8 cosine "
      "transform at the middle level, of 255: from left to right ever finer across, from top to bottom ever "
      "finer down. White noise has one number everywhere.</p>\n<div class=\"beside\">\n";
  for (int c = 0; c < static_cast<int>(page.model.channels.size()); ++c) body += spectrum_table(page, c);
  body += "</div>\n";
  if (page.picture.bytes() > 0) {
    body += fmt::format(
        "<h2>Where it was measured</h2>\n<p class=\"small\">The flattest blocks of every level, {} of "
        "them.</p>\n",
        page.blocks.size());
    body += picture_with_blocks(page);
  }
  return page::document("Noise of " + page.name, body);
}

}  // namespace ungrain::cli
