// Plots as SVG: colours come from the page's style, so that they follow its light or dark mode, and letters
// are as large on a phone as the text around them.
#pragma once

#include <string>
#include <vector>

namespace ungrain::page {

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;
  int colour = 0;       // which of the style's; the same one twice where two series belong together
  bool dashed = false;  // somebody else's figures
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  bool log_x = false;
  bool log_y = true;
  bool from_zero = true;  // where log_y is false
};

// Lines through points. Series without points are left out; nothing where there are no points at all.
std::string line_plot(const Plot& plot);

struct Bar {
  std::string name;
  double value = 0;
  bool ours = false;      // stands out
  std::string note = {};  // shown where the pointer rests
};

struct BarPlot {
  std::string title;
  std::string unit;
  double mark = 1;  // a line across all bars
  std::vector<Bar> bars;
};

// A bar a row, its name above it.
std::string bar_plot(const BarPlot& plot);

// Three significant digits, without an exponent.
std::string short_number(double value);

}  // namespace ungrain::page
