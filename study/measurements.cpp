#include "study/measurements.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "study/papers/tables.h"

namespace ungrain::study {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr Size car{570, 426};

double pixels(const Size& size) { return static_cast<double>(size.width) * size.height; }

}  // namespace

std::vector<std::string> result_files(const std::vector<std::string>& files_and_folders) {
  const std::vector<Ladder> known = all_ladders();
  const auto place = [&](const std::string& path) {
    const std::string name = fs::path(path).stem().string();
    return std::find_if(known.begin(), known.end(), [&](const Ladder& one) { return one.name == name; }) -
           known.begin();
  };
  std::vector<std::string> files;
  for (const std::string& path : files_and_folders) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".json") inside.push_back(entry.path().string());
    }
    if (inside.empty()) throw std::runtime_error(path + ": no results in this folder");
    std::sort(inside.begin(), inside.end());
    std::stable_sort(inside.begin(), inside.end(),
                     [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  try {
    return json::parse(file);
  } catch (const json::exception&) {
    throw std::runtime_error(path + ": not what --json writes");
  }
}

Measurements::Measurements(const std::vector<std::string>& json_files) {
  for (const std::string& path : json_files) {
    json document = read_json(path);
    if (!document.contains("ladder")) continue;
    try {
      for (const json& rung : document.at("rungs")) {
        for (const json& result : rung.at("results")) {
          const json& best = result.at("best");
          const Time time{{result.at("width"), result.at("height")},
                          best.at("ms").get<double>(),
                          best.value("share", 1.0)};
          // By its own radius, and for tables that have none.
          for (const int radius : {result.at("radius").get<int>(), any_radius})
            times_.insert({{document.at("ladder"), rung.at("name"), radius}, time});
        }
      }
    } catch (const json::exception&) {
      throw std::runtime_error(path + ": not what --json writes");
    }
    ladders_.push_back(std::move(document));
  }
}

const json* Measurements::ladder(const std::string& name) const {
  for (const json& one : ladders_) {
    if (one.at("ladder") == name) return &one;
  }
  return nullptr;
}

const Measurements::Time* Measurements::find(const std::string& ladder, const std::string& rung, int radius,
                                             const Size& size) const {
  const Size wanted = size.width > 0 ? size : car;
  const Time* best = nullptr;
  const auto [first, last] = times_.equal_range({ladder, rung, radius});
  for (auto it = first; it != last; ++it) {
    const Time& time = it->second;
    if (time.size == wanted) return &time;
    if (best == nullptr || pixels(time.size) > pixels(best->size)) best = &time;
  }
  return best;
}

const Measurements::Time* Measurements::exactly(const std::string& ladder, const std::string& rung,
                                                int radius, const Size& size) const {
  const Time* time = find(ladder, rung, radius, size);
  return time != nullptr && time->size == size ? time : nullptr;
}

double Measurements::ms_beside(const Time& like, const std::string& ladder, const std::string& rung,
                               int radius) const {
  const Time* time = exactly(ladder, rung, radius, like.size);
  return time != nullptr ? time->ms : 0;
}

}  // namespace ungrain::study
