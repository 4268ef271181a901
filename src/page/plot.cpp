#include "page/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "page/html.h"

namespace ungrain::page {
namespace {

constexpr double width = 400;
constexpr double height = 270;
constexpr double left_edge = 52;
constexpr double right_edge = 392;
constexpr double top_edge = 12;
constexpr double bottom_edge = 226;
constexpr int colours = 8;

// From values to a place along an axis.
class Axis {
 public:
  Axis(double low, double high, bool log, double from, double to)
      : low_(low), high_(high), log_(log), from_(from), to_(to) {
    if (log_) {
      if (high_ / low_ < 1.2) {
        low_ /= 1.1;
        high_ *= 1.1;
      }
    } else if (high_ - low_ < 1e-12) {
      low_ -= 1;
      high_ += 1;
    }
  }

  double place(double value) const {
    const double share =
        log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return from_ + share * (to_ - from_);
  }

  std::vector<double> ticks() const {
    std::vector<double> result;
    if (log_) {
      const double decades = std::log10(high_ / low_);
      const std::vector<double> steps = decades > 2.5 ? std::vector<double>{1} : std::vector<double>{1, 2, 5};
      const int every = std::max(1, static_cast<int>(std::ceil(decades / 7)));
      for (int exponent = static_cast<int>(std::floor(std::log10(low_)));
           exponent <= static_cast<int>(std::ceil(std::log10(high_))); exponent += every) {
        for (const double step : steps) {
          const double value = step * std::pow(10.0, exponent);
          if (value >= low_ * 0.999 && value <= high_ * 1.001) result.push_back(value);
        }
      }
      return result;
    }
    const double rough = (high_ - low_) / 5;
    const double unit = std::pow(10.0, std::floor(std::log10(rough)));
    const double step = rough / unit > 5 ? 10 * unit : rough / unit > 2 ? 5 * unit : 2 * unit;
    for (double value = std::ceil(low_ / step - 1e-9) * step; value <= high_ + step * 1e-9; value += step)
      result.push_back(value);
    return result;
  }

 private:
  double low_;
  double high_;
  bool log_;
  double from_;
  double to_;
};

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string legend(const Plot& plot) {
  std::string html = "<ul class=\"legend\">";
  for (const Series& series : plot.series) {
    if (series.points.empty()) continue;
    html += fmt::format(
        "<li><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"line s{}{}\" d=\"M1 "
        "5H25\"/></svg>{}"
        "</li>",
        series.colour % colours, series.dashed ? " dashed" : "", escaped(series.name));
  }
  return html + "</ul>";
}

// The plot's points that a logarithm can be taken of.
bool drawable(const Plot& plot, const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!plot.log_x || point.x > 0) &&
         (!plot.log_y || point.y > 0);
}

// What is within 5 % of the mark is neither above nor below it.
const char* bar_kind(const BarPlot& plot, const Bar& bar) {
  if (bar.ours || plot.mark == 0) return "ours";
  if (bar.value >= plot.mark * 1.05) return "above";
  return bar.value <= plot.mark / 1.05 ? "below" : "even";
}

}  // namespace

std::string short_number(double value) {
  if (!std::isfinite(value)) return "–";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 999.5) return fmt::format("{:.0f}", value);
  const int digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string line_plot(const Plot& plot) {
  Extent x_extent;
  Extent y_extent;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      if (!drawable(plot, point)) continue;
      x_extent.add(point.x);
      y_extent.add(point.y);
    }
  }
  if (x_extent.low > x_extent.high) return "";
  if (!plot.log_y && plot.from_zero) y_extent.add(0);
  const Axis x_axis(x_extent.low, x_extent.high, plot.log_x, left_edge + 8, right_edge - 8);
  const Axis y_axis(y_extent.low, y_extent.high, plot.log_y, bottom_edge - 6, top_edge + 6);

  std::string html = fmt::format(
      "<figure class=\"plot\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1} {2}\" role=\"img\" "
      "aria-label=\"{0}\">\n",
      escaped(plot.title), width, height);
  for (const double value : y_axis.ticks()) {
    const double y = y_axis.place(value);
    html += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text class=\"tick y\" x=\"{}\" y=\"{:.1f}\">{}</text>",
        left_edge, y, right_edge, left_edge - 6, y + 4, short_number(value));
  }
  for (const double value : x_axis.ticks()) {
    const double x = x_axis.place(value);
    html += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"tick x\" x=\"{0:.1f}\" "
        "y=\"{3}\">{4}</text>",
        x, top_edge, bottom_edge, bottom_edge + 17, short_number(value));
  }
  html += fmt::format(
      "<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/><text class=\"label\" x=\"{4}\" y=\"{5}\">{6}</text>"
      "<text class=\"label\" transform=\"translate(12 {7}) rotate(-90)\">{8}</text>\n",
      left_edge, top_edge, bottom_edge, right_edge, (left_edge + right_edge) / 2, height - 8,
      escaped(plot.x_label), (top_edge + bottom_edge) / 2, escaped(plot.y_label));
  for (const Series& series : plot.series) {
    std::string path;
    std::string dots;
    for (const Point& point : series.points) {
      if (!drawable(plot, point)) continue;
      const double x = x_axis.place(point.x);
      const double y = y_axis.place(point.y);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      dots += fmt::format(
          "<circle class=\"dot s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {} {}, {} "
          "{}</title></circle>",
          series.colour % colours, x, y, escaped(series.name), escaped(plot.x_label), short_number(point.x),
          short_number(point.y), escaped(plot.y_label));
    }
    if (path.empty()) continue;
    html += fmt::format("<path class=\"line s{}{}\" d=\"{}\"/>{}\n", series.colour % colours,
                        series.dashed ? " dashed" : "", path, dots);
  }
  return html + "</svg>" + legend(plot) + "</figure>\n";
}

std::string bar_plot(const BarPlot& plot) {
  if (plot.bars.empty()) return "";
  constexpr double row = 32;
  constexpr double longest = 330;  // leaves room for the number behind it
  double largest = plot.mark;
  for (const Bar& bar : plot.bars) largest = std::max(largest, bar.value);
  const double total = row * static_cast<double>(plot.bars.size()) + 8;
  std::string html = fmt::format(
      "<figure class=\"plot bars\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1} {2}\" role=\"img\" "
      "aria-label=\"{0}\">\n",
      escaped(plot.title), width, total);
  double y = 0;
  for (const Bar& bar : plot.bars) {
    const double length = std::max(1.0, bar.value / largest * longest);
    html += fmt::format(
        "<g><title>{0}{1}</title><text class=\"bar-name\" x=\"0\" y=\"{2:.1f}\">{0}</text><rect class=\"bar "
        "{3}\" x=\"0\" "
        "y=\"{4:.1f}\" width=\"{5:.1f}\" height=\"10\" rx=\"2\"/><text class=\"bar-value\" x=\"{6:.1f}\" "
        "y=\"{7:.1f}\">{8}{9}</text></g>\n",
        escaped(bar.name), bar.note.empty() ? "" : ": " + escaped(bar.note), y + 13, bar_kind(plot, bar),
        y + 18, length, length + 5, y + 27, short_number(bar.value), escaped(plot.unit));
    y += row;
  }
  if (plot.mark == 0) return html + "</svg></figure>\n";
  const double at = plot.mark / largest * longest;
  html += fmt::format("<path class=\"mark\" d=\"M{0:.1f} 0V{1:.1f}\"/></svg></figure>\n", at, total);
  return html;
}

}  // namespace ungrain::page
