#include "io/length_unit.h"

#include <array>
#include <cmath>

namespace ungrain::io {
namespace {

struct LengthUnit {
  std::string_view name;
  double metres = 1;
};

constexpr double inch = 0.0254;

// The sign of micro has two code points, U+00B5 and U+03BC; ImageJ also writes the first one as "\u00B5".
constexpr std::array units = {
    LengthUnit{"\xC2\xB5m", 1e-6},
    LengthUnit{"\xCE\xBCm", 1e-6},
    LengthUnit{"\\u00B5m", 1e-6},
    LengthUnit{"\xB5m", 1e-6},  // Latin-1
    LengthUnit{"um", 1e-6},
    LengthUnit{"micron", 1e-6},
    LengthUnit{"microns", 1e-6},
    LengthUnit{"micrometer", 1e-6},
    LengthUnit{"micrometre", 1e-6},
    LengthUnit{"nm", 1e-9},
    LengthUnit{"nanometer", 1e-9},
    LengthUnit{"pm", 1e-12},
    LengthUnit{"fm", 1e-15},
    LengthUnit{"\xC3\x85", 1e-10},      // U+00C5, of one letter
    LengthUnit{"\xE2\x84\xAB", 1e-10},  // U+212B, the sign of angstrom
    LengthUnit{"mm", 1e-3},
    LengthUnit{"millimeter", 1e-3},
    LengthUnit{"cm", 1e-2},
    LengthUnit{"dm", 1e-1},
    LengthUnit{"m", 1},
    LengthUnit{"meter", 1},
    LengthUnit{"km", 1e3},
    LengthUnit{"in", inch},
    LengthUnit{"inch", inch},
    LengthUnit{"thou", inch / 1000},
    LengthUnit{"ft", 12 * inch},
};

std::optional<double> metres_in(std::string_view unit) {
  for (const LengthUnit& each : units) {
    if (each.name == unit) return each.metres;
  }
  return std::nullopt;
}

// A quotient of two powers of ten is a whole number that rounding has changed.
double whole(double number) {
  const double nearest = std::round(number);
  return std::abs(number - nearest) < 1e-9 * number ? nearest : number;
}

}  // namespace

bool is_length_unit(std::string_view name) { return metres_in(name).has_value(); }

std::optional<double> converted(double length, std::string_view from, std::string_view to) {
  if (from == to) return length;
  const std::optional<double> given = metres_in(from);
  const std::optional<double> wanted = metres_in(to);
  if (!given || !wanted) return std::nullopt;
  return *given >= *wanted ? length * whole(*given / *wanted) : length / whole(*wanted / *given);
}

}  // namespace ungrain::io
