#include "study/page.h"

#include <filesystem>
#include <initializer_list>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "io/image_file.h"
#include "io/temporary_file.h"
#include "page/page.h"
#include "study/findings.h"
#include "study/measurements.h"
#include "study/papers/tables.h"

namespace ungrain::study {
namespace {

using nlohmann::json;

// A member that is missing would stop the page's script: it is an error here.
void require(const json& entries, std::initializer_list<const char*> members) {
  for (const json& entry : entries) {
    for (const char* member : members) static_cast<void>(entry.at(member));
  }
}

// Of all shapes only what the papers' figures are drawn from: the rest would be most of the page.
json with_fewer_shapes(json ladder) {
  require(ladder.value("cumulative_average_time", json::array()),
          {"rung", "width", "height", "pictures", "executions", "ms"});
  for (json& rung : ladder.at("rungs")) {
    const bool sides = rung.value("paper", "").find("[001] version") != std::string::npos;
    require(rung.at("results"), {"largest_error"});
    for (json& result : rung.at("results")) {
      json shapes = json::array();
      for (const json& shape : result.at("all")) {
        if (shape.contains("grid")) {
          shapes.push_back(
              {{"ms", shape.at("ms")}, {"grid", shape.at("grid")}, {"threads", shape.at("threads")}});
        } else if (sides && shape.contains("side")) {
          shapes.push_back(
              {{"ms", shape.at("ms")}, {"side", shape.at("side")}, {"tiling", shape.value("tiling", 1)}});
        }
      }
      result["all"] = std::move(shapes);
    }
  }
  return ladder;
}

json finding_json(const Finding& finding) {
  const char* kinds[] = {"idea", "together", "machine"};
  return {{"idea", finding.idea},
          {"ladder", finding.ladder},
          {"rung", finding.rung},
          {"without", finding.without},
          {"factor", finding.factor},
          {"smallest", finding.smallest},
          {"largest", finding.largest},
          {"cells", finding.cells},
          {"paper", finding.paper ? json(*finding.paper) : json(nullptr)},
          {"paper_name", finding.paper_name},
          {"kind", kinds[static_cast<int>(finding.kind)]}};
}

std::vector<page::Picture> pictures_of(const json& gallery, const std::filesystem::path& folder) {
  require(gallery.value("quality", json::array()), {"filter", "width", "height", "sigma", "noisy_psnr"});
  std::vector<page::Picture> pictures;
  for (const json& entry : gallery.at("images")) {
    const Image image = io::read_image(folder / entry.at("file").get<std::string>());
    pictures.push_back({entry.at("name"),
                        entry.contains("psnr") ? page::in_short(entry) : entry.value("setting", ""),
                        page::source_of(image.view(), {0, 0, image.spec().width, image.spec().height})});
  }
  return pictures;
}

std::string html_of(const std::vector<std::string>& files, const std::string& commit) {
  const Measurements ours(files);
  if (ours.ladders().empty()) throw std::runtime_error("no measurements among these files");
  json data = {{"title", "The study: five papers’ kernels, measured again"},
               {"commit", commit},
               {"papers", papers()},
               {"ladders", json::array()},
               {"findings", json::array()},
               {"gallery", nullptr}};
  for (const json& ladder : ours.ladders()) data["ladders"].push_back(with_fewer_shapes(ladder));
  for (const Finding& finding : findings(ours)) data["findings"].push_back(finding_json(finding));
  std::vector<page::Picture> pictures;
  for (const std::string& file : files) {
    const json document = read_json(file);
    if (!document.contains("images")) continue;
    data["gallery"] = document;
    pictures = pictures_of(document, std::filesystem::path(file).parent_path());
  }
  return page::render_page("study", data, pictures);
}

}  // namespace

void write_page(const std::vector<std::string>& json_files, const PageRequest& request) {
  std::string html;
  try {
    html = html_of(json_files, request.commit);
  } catch (const json::exception& error) {
    throw std::runtime_error(std::string("the results are not what --json writes: ") + error.what());
  }
  io::TemporaryFile file(request.path, {});
  file.write(html.data(), html.size(), 0);
  file.commit();
}

}  // namespace ungrain::study
