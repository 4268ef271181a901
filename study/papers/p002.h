// [002]'s tables 5.1 to 5.4, as it prints them, and ours beside them. The first step of BM3D; every time was
// measured at least five times: the mean, and the largest deviation from it in per cent. Noise is "around"
// the sigma that table 5.4 gives.
#pragma once

#include <string>
#include <vector>

namespace ungrain::study {

// From files that write_json() wrote for the ladder bm3d; nothing of ours where none of them is.
void print_beside_paper_002(const std::vector<std::string>& json_files);

}  // namespace ungrain::study
