// OME-XML, which microscopes' programs write into the description of a TIFF file's first page (OME-TIFF).
// What it says about the file's pages, and the same text for pages that were filtered.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/metadata.h"
#include "ungrain/image.h"

namespace ungrain::io {

bool is_ome_xml(std::string_view description);

struct OmeStack {
  std::int64_t slices = 1;
  std::int64_t channels = 1;  // that have pages of their own: three samples of a page are one
  std::int64_t frames = 1;
  std::string order = "zct";                          // of the pages: the axis that changes fastest first
  std::optional<std::array<double, 3>> spacing = {};  // of voxels along x, y and z, in one unit
  std::string problem = {};                           // why it does not tell the pages; empty: it does
};

// For a file of `pages` pages with `samples` samples a pixel. Nothing where the description is no OME-XML.
std::optional<OmeStack> parse_ome(std::string_view description, int pages, int samples);

// Whether OME-XML of a TIFF file still holds for the given pages of it (none given: all): it tells the planes
// of whole files, and a palette's colours become samples that it does not tell.
bool keeps_ome_xml(const Metadata& metadata, const std::vector<int>& pages);

// What becomes of the pages that OME-XML describes.
struct OmeChanges {
  PixelType type = PixelType::u8;
  bool turned = false;    // x and y are exchanged
  std::string file_name;  // of the file that has the pages
};

// The description with its type, and its own name, made true: some programs look for the pages in a file of
// the name that stands there. Everything else stays as it is. Damaged texts do not change.
std::string with_ome_changes(std::string_view description, const OmeChanges& changes);

}  // namespace ungrain::io
