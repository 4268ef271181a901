// The descriptions of TIFF stacks, OME-XML and ImageJ's. The input: a byte, the number of pages; a byte, the
// samples of a pixel and what the output changes; and the description.
#include <algorithm>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "io/ome_xml.h"
#include "io/page_stack.h"

namespace {

using namespace ungrain;

// Every page is a slice of exactly one volume.
void check(const io::PageOrder& order, int pages) {
  fuzz::require(order.depth > 1 && order.pages() == pages, "an order of another number of pages");
  std::vector<bool> seen(static_cast<std::size_t>(pages));
  for (int volume = 0; volume < order.volumes(); ++volume) {
    for (int slice = 0; slice < order.depth; ++slice) {
      const int page = order.page(volume, slice);
      fuzz::require(page >= 0 && page < pages && !seen[static_cast<std::size_t>(page)], "a page twice");
      seen[static_cast<std::size_t>(page)] = true;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const int pages = data[0] + 1;
  const int samples = data[1] % 5;
  const std::string_view description(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::optional<io::PageStack> stack = io::described_stack(
      description, {.pages = pages, .samples = samples, .resolution = io::Resolution{3, 4}});
  if (stack) {
    if (stack->order) check(*stack->order, pages);
    fuzz::require(stack->order || !stack->note.empty(), "a description that is left out without a word");
    if (stack->spacing) {
      const auto& [x, y, z] = *stack->spacing;
      fuzz::require(x > 0 && y > 0 && z > 0, "a voxel without a size");
    }
  }
  const io::OmeChanges changes{.type = samples == 1 ? PixelType::f32 : PixelType::u8,
                               .turned = (data[1] & 0x80U) != 0,
                               .file_name = "out & \"in\".tif"};
  const std::string changed = io::with_ome_changes(description, changes);
  fuzz::require(io::is_ome_xml(changed) == io::is_ome_xml(description), "OME-XML that is none any more");
  io::OmeChanges again = changes;
  again.turned = false;
  fuzz::require(io::with_ome_changes(changed, again) == changed, "changes that are not all made at once");
  return 0;
}
