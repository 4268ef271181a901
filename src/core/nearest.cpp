#include "core/nearest.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ungrain {
namespace {

// Edit distance: insertions, deletions, exchanges and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> here(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    here[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      here[j] = std::min({above[j] + 1, here[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        here[j] = std::min(here[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, here);
  }
  return above[b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, const std::vector<std::string>& names) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, typed.size() / 3) + 1;
  for (const std::string& name : names) {
    const std::size_t distance =
        typed.size() >= 3 && name.starts_with(typed) ? 1 : edit_distance(typed, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names) {
  const std::string near = nearest(typed, names);
  if (!near.empty()) return fmt::format("; did you mean '{}'?", near);
  return names.empty() ? "" : fmt::format("; there are: {}", fmt::join(names, ", "));
}

}  // namespace ungrain
