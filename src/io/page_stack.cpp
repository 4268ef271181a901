#include "io/page_stack.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "io/imagej.h"
#include "io/length_unit.h"
#include "io/ome_xml.h"

namespace ungrain::io {
namespace {

using Spacing = std::optional<std::array<double, 3>>;

struct Axes {
  std::int64_t slices = 1;
  std::int64_t channels = 1;
  std::int64_t frames = 1;
  std::string order;  // the axis that changes fastest first: "czt"
};

// Whether the sizes multiply to the number of pages; the product may be too large for an integer.
bool fits(const Axes& axes, int pages) {
  return pages % axes.slices == 0 && pages / axes.slices % axes.channels == 0 &&
         pages / axes.slices / axes.channels == axes.frames;
}

PageOrder order_of(const Axes& axes) {
  PageOrder order{.depth = static_cast<int>(axes.slices),
                  .channels = static_cast<int>(axes.channels),
                  .frames = static_cast<int>(axes.frames)};
  int step = 1;
  for (const char axis : axes.order) {
    (axis == 'z' ? order.slice_step : axis == 'c' ? order.channel_step : order.frame_step) = step;
    step *= axis == 'z' ? order.depth : axis == 'c' ? order.channels : order.frames;
  }
  return order;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Where the pages are no slices, or cannot be told from channels, all are taken for slices of one volume.
PageStack stack_of(const Axes& axes, std::string problem, const DescribedPages& file) {
  const std::string others = counted(axes.channels, "channel") + ", " + counted(axes.frames, "time point");
  if (problem.empty() && !fits(axes, file.pages)) {
    problem = fmt::format("its description tells {}, {}, but the file has {} pages",
                          counted(axes.slices, "slice"), others, file.pages);
  }
  if (problem.empty() && axes.slices == 1)
    problem = fmt::format("its description tells {}, no slices", others);
  if (problem.empty() && file.left_out > 0) problem = "some of its directories are no pages";
  if (problem.empty()) return {.order = order_of(axes)};
  return {.note = std::move(problem) + ": all pages are slices of one volume"};
}

// Sizes of which a voxel's depth is less than a hundredth or more than a hundred times its width are no
// voxel's; methods do not take them either.
void set_spacing(PageStack& stack, const Spacing& spacing) {
  if (!spacing) return;
  const auto& [x, y, z] = *spacing;
  const double aspect = z / std::sqrt(x * y);
  if (aspect >= 0.01 && aspect <= 100 && x / y >= 0.01 && x / y <= 100) {
    stack.spacing = spacing;
  } else {
    stack.note +=
        fmt::format("{}its voxels' sizes are not plausible and not used", stack.note.empty() ? "" : "; ");
  }
}

// ImageJ's voxels are 1 / XResolution of its unit wide, and 1 of that unit deep where nothing else is said.
Spacing imagej_spacing(const ImageJStack& stack, const std::optional<Resolution>& resolution) {
  if (!stack.spacing && !is_length_unit(stack.unit)) return std::nullopt;
  // ImageJ takes 72 pixels an inch for a file that says nothing.
  const bool told = resolution && (resolution->unit != Resolution::Unit::inch || resolution->x != 72);
  const double distance = std::abs(stack.spacing.value_or(1));  // negative: from the top to the bottom
  const std::string& unit = stack.depth_unit.empty() ? stack.unit : stack.depth_unit;
  const std::optional<double> depth = converted(distance, unit, stack.unit);
  if (!depth) return std::nullopt;
  return told ? std::array{1 / resolution->x, 1 / resolution->y, *depth} : std::array{1.0, 1.0, *depth};
}

PageStack imagej_pages(const ImageJStack& stack, const DescribedPages& file) {
  Axes axes{.slices = stack.slices, .channels = stack.channels, .frames = stack.frames, .order = stack.order};
  // A stack without these counts has slices.
  if (axes.slices == 1 && axes.channels == 1 && axes.frames == 1) axes.slices = stack.images;
  PageStack pages = stack_of(axes, "", file);
  if (axes.slices > 1) set_spacing(pages, imagej_spacing(stack, file.resolution));
  return pages;
}

PageStack ome_pages(const OmeStack& stack, const DescribedPages& file) {
  PageStack pages = stack_of(
      {.slices = stack.slices, .channels = stack.channels, .frames = stack.frames, .order = stack.order},
      stack.problem, file);
  if (stack.slices > 1) set_spacing(pages, stack.spacing);
  return pages;
}

}  // namespace

std::optional<PageStack> described_stack(std::string_view description, const DescribedPages& file) {
  if (file.pages == 1) return std::nullopt;
  if (const std::optional<ImageJStack> stack = parse_imagej(description)) return imagej_pages(*stack, file);
  const std::optional<OmeStack> stack = parse_ome(description, file.pages, file.samples);
  return stack ? std::optional(ome_pages(*stack, file)) : std::nullopt;
}

}  // namespace ungrain::io
