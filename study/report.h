// What a ladder's measurements look like to people (Markdown), to programs (JSON), and beside the papers.
#pragma once

#include <string>
#include <vector>

#include "study/harness.h"
#include "study/machine.h"

namespace ungrain::study {

void print_table(const Ladder& ladder, const std::vector<Measured>& results);
// Everything: every shape of every rung.
void write_json(const std::string& path, const Machine& machine, const std::string& picture,
                const Ladder& ladder, const std::vector<Measured>& results,
                const std::vector<CumulativeTime>& cumulative);
// From files that write_json() wrote: each figure of the papers' tables and, of times, ours for the same rung
// and radius.
void print_beside_papers(const std::vector<std::string>& json_files);

}  // namespace ungrain::study
