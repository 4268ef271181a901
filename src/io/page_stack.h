// What a TIFF file's description says about its pages: OME-XML, or ImageJ's lines.
#pragma once

#include <optional>
#include <string_view>

#include "io/image_file.h"

namespace ungrain::io {

// The file that has a description.
struct DescribedPages {
  int pages = 1;
  int samples = 1;   // a pixel
  int left_out = 0;  // directories that are no pages
  std::optional<Resolution> resolution = {};
};

// Nothing where neither OME-XML nor ImageJ describes a stack of several pages.
std::optional<PageStack> described_stack(std::string_view description, const DescribedPages& file);

}  // namespace ungrain::io
