// What --json wrote, read again: ladders whose names and rungs the reports need not know beforehand.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "study/rung.h"

namespace ungrain::study {

// Files as they are, a folder as the results in it: first the ladders that this program knows, in their
// order.
std::vector<std::string> result_files(const std::vector<std::string>& files_and_folders);

nlohmann::json read_json(const std::string& path);

class Measurements {
 public:
  struct Time {
    Size size;
    double ms = 0;
    double share = 1;  // of the picture that was filtered; the time is scaled
  };

  explicit Measurements(const std::vector<std::string>& json_files);

  const std::vector<nlohmann::json>& ladders() const { return ladders_; }
  const nlohmann::json* ladder(const std::string& name) const;

  // On the picture of this size where it was measured, else, where the paper gives no size (0), on [000]'s
  // car's, else on the largest; null: not at all.
  const Time* find(const std::string& ladder, const std::string& rung, int radius, const Size& size) const;
  // On that picture or not at all.
  const Time* exactly(const std::string& ladder, const std::string& rung, int radius, const Size& size) const;
  // Of another rung on the same picture; 0: not measured.
  double ms_beside(const Time& like, const std::string& ladder, const std::string& rung, int radius) const;

 private:
  std::vector<nlohmann::json> ladders_;
  std::multimap<std::tuple<std::string, std::string, int>, Time> times_;
};

}  // namespace ungrain::study
