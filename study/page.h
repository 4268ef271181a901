// The page: the papers' tables beside ours, plots like their figures, pictures, and what follows from the
// measurements. src/page/study.js draws it.
#pragma once

#include <string>
#include <vector>

namespace ungrain::study {

struct PageRequest {
  std::string path;
  std::string commit;  // of the sources, named on the page; empty: not
};

// From files that `all` and the ladders' --json wrote. Ladders are taken as the files have them.
void write_page(const std::vector<std::string>& json_files, const PageRequest& request);

}  // namespace ungrain::study
