#include "study/papers/tables.h"

#include "papers_data.h"

namespace ungrain::study {
namespace {

using nlohmann::json;

// add(rows, paper, table) for every table that has that member.
template <class Row, class Add>
std::vector<Row> rows_of(const char* member, Add add) {
  std::vector<Row> rows;
  for (const json& paper : papers()) {
    for (const json& table : paper.at("tables")) {
      if (table.contains(member)) add(rows, paper.at("paper"), table);
    }
  }
  return rows;
}

void add_times(std::vector<PaperTime>& rows, const std::string& paper, const json& table) {
  for (const json& block : table.at("times")) {
    const json naive_ms = block.value("naive_ms", json::array());
    for (std::size_t i = 0; i < block.at("radii").size(); ++i) {
      for (const json& version : block.at("ms")) {
        if (version.at(i + 1).is_null()) continue;  // not printed
        rows.push_back({paper, table.at("table"), block.at("image"), block.value("width", 0),
                        block.value("height", 0), block.at("ladder"), version.at(0), block.at("naive"),
                        block.at("radii").at(i), version.at(i + 1).get<double>(),
                        i < naive_ms.size() && !naive_ms.at(i).is_null() ? naive_ms.at(i).get<double>() : 0});
      }
    }
  }
}

void add_speed_ups(std::vector<PaperSpeedUp>& rows, const std::string& paper, const json& table) {
  const json& speed_ups = table.at("speed_ups");
  for (const json& row : speed_ups.at("factors")) {
    rows.push_back({paper, table.at("table"), row.at(0), row.at(1), row.at(2), speed_ups.at("ladder"),
                    row.at(3), speed_ups.at("over"), row.at(4), row.at(5)});
  }
}

void add_qualities(std::vector<PaperQuality>& rows, const std::string& paper, const json& table) {
  const json& qualities = table.at("qualities");
  for (const json& row : qualities.at("psnr_ssim_fsim")) {
    rows.push_back({paper, table.at("table"), qualities.at("version"), row.at(0), row.at(1), row.at(2),
                    row.at(3), row.at(4)});
  }
}

}  // namespace

const json& papers() {
  static const json all = json::parse(papers_json);
  return all;
}

const std::vector<PaperTime>& paper_times() {
  static const std::vector<PaperTime> rows = rows_of<PaperTime>("times", add_times);
  return rows;
}
const std::vector<PaperSpeedUp>& paper_speed_ups() {
  static const std::vector<PaperSpeedUp> rows = rows_of<PaperSpeedUp>("speed_ups", add_speed_ups);
  return rows;
}
const std::vector<PaperQuality>& paper_qualities() {
  static const std::vector<PaperQuality> rows = rows_of<PaperQuality>("qualities", add_qualities);
  return rows;
}

}  // namespace ungrain::study
