#include "study/html_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/image_file.h"
#include "io/temporary_file.h"
#include "page/html.h"
#include "page/plot.h"
#include "page/viewer.h"
#include "study/findings.h"
#include "study/measurements.h"
#include "study/papers/p002.h"
#include "study/papers/tables.h"

namespace ungrain::study {
namespace {

using nlohmann::json;
using page::escaped;
using page::short_number;

constexpr Size size_of_the_car{570, 426};  // the one picture of [000] whose size it gives

constexpr const char* paper_titles[][2] = {
    {"[000]", "Edge-preserving filters on a GPU: bilateral, adaptive bilateral, NLM-bilateral"},
    {"[001]", "A case study of the bilateral filter"},
    {"[002]", "BM3D on a GPU"},
    {"[003]", "Non-local means over the whole image"},
    {"[004]", "Non-local means with a search window"},
};

std::string text_of(const json& document, const char* key) { return document.value(key, std::string()); }

std::string size_text(const Size& size) { return fmt::format("{} x {}", size.width, size.height); }

// A time in ms; a star where it was measured on a part of the picture and scaled.
std::string ms_text(double ms, double share = 1) { return short_number(ms) + (share < 1 ? "*" : ""); }

std::string times_text(double factor) { return short_number(factor) + "×"; }

const char* verdict(double factor) {
  if (factor >= difference_that_counts) return "good";
  return factor <= 1 / difference_that_counts ? "bad" : "even";
}

// A table whose first cell of each row names it.
class Table {
 public:
  struct Group {
    std::string name;
    std::size_t columns;
  };

  // Groups stand above the head, in its order, from the second column on.
  explicit Table(std::vector<std::string> head, std::vector<Group> groups = {})
      : head_(std::move(head)), groups_(std::move(groups)) {}

  void start_row(const std::string& name) { rows_.push_back("<th>" + escaped(name) + "</th>"); }
  void cell(const std::string& html, const char* kind = "") {
    rows_.back() +=
        *kind != '\0' ? fmt::format("<td class=\"{}\">{}</td>", kind, html) : "<td>" + html + "</td>";
  }
  bool empty() const { return rows_.empty(); }

  std::string html() const {
    std::string text = "<div class=\"scroll\"><table><thead>";
    if (!groups_.empty()) {
      text += "<tr class=\"groups\"><th></th>";
      for (const Group& group : groups_)
        text += fmt::format("<th colspan=\"{}\">{}</th>", group.columns, escaped(group.name));
      text += "</tr>\n";
    }
    text += "<tr>";
    for (const std::string& name : head_) text += "<th>" + escaped(name) + "</th>";
    text += "</tr></thead><tbody>\n";
    for (const std::string& row : rows_) text += "<tr>" + row + "</tr>\n";
    return text + "</tbody></table></div>\n";
  }

 private:
  std::vector<std::string> head_;
  std::vector<Group> groups_;
  std::vector<std::string> rows_;
};

std::string folded(const std::string& summary, const std::string& html) {
  return "<details><summary>" + escaped(summary) + "</summary>\n" + html + "</details>\n";
}

// ---- A table of a paper with times
// -------------------------------------------------------------------------

// A version: one of the table's columns.
struct Version {
  std::string ladder;
  std::string rung;
  std::string naive;
  std::string name = {};  // where it is not the rung's
  friend bool operator==(const Version&, const Version&) = default;
};

// The plot lies right of the table where there is room, else below.
std::string beside(const std::string& table, const std::string& plot) {
  return "<div class=\"beside\"><div>" + table + "</div>" + plot + "</div>\n";
}

// [002] compares its kernels with somebody else's programs: they stand beside our threads, or beside nothing.
Version beside_002(std::string_view program) {
  if (program == "CUDA") return {"bm3d", "2 batches", "1 own distances", "CUDA; ours: 2 batches"};
  if (program == "OpenMP")
    return {"bm3d", "threads", "1 own distances", "OpenMP, another program; ours: threads"};
  return {"bm3d", std::string(program), "1 own distances", std::string(program) + ", another program"};
}

// What it was measured on.
struct Cell {
  std::string image;
  Size size;
  int radius;
  friend bool operator==(const Cell&, const Cell&) = default;
};

template <class T>
void add_new(std::vector<T>& list, const T& one) {
  if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
}

class TimesTable {
 public:
  TimesTable(const Measurements& ours, const PaperTable& table) : ours_(ours), table_(table) {
    for (const PaperTime& time : paper_times()) {
      if (std::string_view(time.paper) != table.paper || std::string_view(time.table) != table.table)
        continue;
      const Version version{time.ladder, time.rung, time.naive_rung};
      const Cell cell{time.image, {time.width, time.height}, time.radius};
      add_new(versions_, version);
      add_new(cells_, cell);
      theirs_[key(version, cell)] = time.ms;
    }
    if (std::string_view(table.paper) == "[002]") {
      for (const Paper002Time& time : paper_002_times()) {
        if (std::string_view(time.table) != table.table) continue;
        const Version version = beside_002(time.version);
        const Cell cell{time.image, {time.width, time.height}, any_radius};
        add_new(versions_, version);
        add_new(cells_, cell);
        theirs_[key(version, cell)] = 1000 * time.seconds;
      }
    }
    for (const Version& version : std::vector<Version>(versions_)) {
      for (const Cell& cell : cells_) measured_ = measured_ || our_time(version, cell) != nullptr;
    }
    std::set<std::string> ladders;
    for (const Version& version : versions_) ladders.insert(version.ladder);
    several_ladders_ = ladders.size() > 1;
    for (const std::string& ladder : ladders) {
      if (const json* document = ours.ladder(ladder))
        products_.push_back({ladder, "ungrain", document->value("naive", "naive")});
    }
  }

  bool empty() const { return versions_.empty(); }

  std::string html() const {
    std::string text;
    if (!measured_) text += "<p class=\"small\">Not measured in this run; the paper's figures alone.</p>\n";
    return text + beside(across() ? by_version() : by_cell(), plots());
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, int, int>;
  static Key key(const Version& version, const Cell& cell) {
    return {version.ladder, version.rung, cell.image, cell.size.width, cell.radius};
  }

  // More versions than pictures and radii: the versions are the rows.
  bool across() const { return versions_.size() > 4 && versions_.size() > cells_.size(); }

  const double* their_time(const Version& version, const Cell& cell) const {
    const auto found = theirs_.find(key(version, cell));
    return found != theirs_.end() ? &found->second : nullptr;
  }
  // On a picture of the same size; where the paper does not give it, of its one picture whose size it gives.
  const Measurements::Time* our_time(const Version& version, const Cell& cell) const {
    return ours_.exactly(version.ladder, version.rung, cell.radius,
                         cell.size.width > 0 ? cell.size : size_of_the_car);
  }

  std::string label(const Version& version) const {
    const std::string& name = version.name.empty() ? version.rung : version.name;
    return several_ladders_ ? version.ladder + ": " + name : name;
  }
  std::string label(const Cell& cell) const {
    std::string text = cell.radius != any_radius ? fmt::format("r {}", cell.radius) : "";
    std::set<std::string> images;
    for (const Cell& other : cells_) images.insert(other.image);
    if (images.size() > 1 || text.empty()) {
      text = (cell.size.width > 0 ? cell.image + ", " + size_text(cell.size) : cell.image) +
             (text.empty() ? "" : ", " + text);
    }
    return text;
  }

  void add_cells(Table& table, const Version& version, const Cell& cell) const {
    const double* theirs = their_time(version, cell);
    table.cell(theirs != nullptr ? ms_text(*theirs) : "–");
    if (!measured_) return;
    const Measurements::Time* time = our_time(version, cell);
    if (time == nullptr) {
      table.cell("–");
      return;
    }
    std::string text = ms_text(time->ms, time->share);
    if (theirs != nullptr && cell.size.width > 0)
      text += fmt::format(" <small>{}</small>", times_text(*theirs / time->ms));
    table.cell(text, "ours");
  }

  std::string by_cell() const {
    std::vector<std::string> head = {"ms"};
    std::vector<Table::Group> groups;
    for (const Version& version : versions_) {
      groups.push_back({label(version), measured_ ? 2U : 1U});
      head.push_back("paper");
      if (measured_) head.push_back("ours");
    }
    if (measured_) {
      for (const Version& product : products_) {
        groups.push_back({label(product), 1});
        head.push_back("ours");
      }
    }
    Table table(std::move(head), std::move(groups));
    for (const Cell& cell : cells_) {
      table.start_row(label(cell));
      for (const Version& version : versions_) add_cells(table, version, cell);
      if (!measured_) continue;
      for (const Version& product : products_) {
        const Measurements::Time* time = our_time(product, cell);
        table.cell(time != nullptr ? ms_text(time->ms, time->share) : "–", "ours");
      }
    }
    return table.html();
  }

  std::string by_version() const {
    std::vector<std::string> head = {"ms"};
    std::vector<Table::Group> groups;
    for (const Cell& cell : cells_) {
      head.push_back("paper");
      if (measured_) head.insert(head.end(), {"ours", "over naive, paper", "ours"});
      groups.push_back({label(cell), measured_ ? 4U : 1U});
    }
    Table table(std::move(head), std::move(groups));
    std::vector<Version> rows = versions_;
    if (measured_) rows.insert(rows.end(), products_.begin(), products_.end());
    for (const Version& version : rows) {
      table.start_row(label(version));
      for (const Cell& cell : cells_) {
        add_cells(table, version, cell);
        if (!measured_) continue;
        const std::optional<double> theirs = their_factor(version, cell);
        const std::optional<double> ours = our_factor(version, cell);
        table.cell(theirs ? fmt::format("{:.2f}", *theirs) : "–", theirs ? verdict(*theirs) : "");
        table.cell(ours ? fmt::format("{:.2f}", *ours) : "–", ours ? verdict(*ours) : "");
      }
    }
    return table.html();
  }

  std::optional<double> their_factor(const Version& version, const Cell& cell) const {
    const double* time = their_time(version, cell);
    const double* naive = their_time({version.ladder, version.naive, version.naive}, cell);
    if (time == nullptr || naive == nullptr) return {};
    return *naive / *time;
  }
  std::optional<double> our_factor(const Version& version, const Cell& cell) const {
    const Measurements::Time* time = our_time(version, cell);
    if (time == nullptr) return {};
    const double naive = ours_.ms_beside(*time, version.ladder, version.naive, cell.radius);
    if (naive <= 0) return {};
    return naive / time->ms;
  }

  std::string plots() const {
    if (across()) return factors_plot();
    std::set<int> radii;
    std::set<std::pair<int, int>> sizes;
    for (const Cell& cell : cells_) {
      radii.insert(cell.radius);
      sizes.insert({cell.size.width, cell.size.height});
    }
    if (sizes.size() == 1 && radii.size() > 1) return times_plot("radius", *radii.rbegin(), false);
    if (sizes.size() > 1)
      return times_plot("side of the picture (root of its pixels)", *radii.rbegin(), true);
    return "";
  }

  // Over the radius, or over the size at the largest radius.
  std::string times_plot(const std::string& x_label, int largest_radius_shown, bool by_size) const {
    page::Plot plot{
        .title = fmt::format(
            "Table {}: theirs dashed, ours whole{}", table_.table,
            by_size && largest_radius_shown != any_radius ? fmt::format("; r {}", largest_radius_shown) : ""),
        .x_label = x_label,
        .y_label = "ms",
        .series = {},
        .log_x = by_size};
    int colour = 0;
    const auto series_of = [&](const Version& version, bool theirs) {
      page::Series series{.name = label(version) + (theirs ? ", paper" : ", ours"),
                          .points = {},
                          .colour = colour,
                          .dashed = theirs};
      std::set<double> seen;
      for (const Cell& cell : cells_) {
        if (by_size && cell.radius != largest_radius_shown) continue;
        const double x =
            by_size ? std::sqrt(static_cast<double>(cell.size.width) * cell.size.height) : cell.radius;
        const double* their = theirs ? their_time(version, cell) : nullptr;
        const Measurements::Time* our = theirs ? nullptr : our_time(version, cell);
        if ((their == nullptr && our == nullptr) || !seen.insert(x).second) continue;
        series.points.push_back({x, their != nullptr ? *their : our->ms});
      }
      plot.series.push_back(std::move(series));
    };
    for (const Version& version : versions_) {
      series_of(version, true);
      series_of(version, false);
      ++colour;
    }
    for (const Version& product : products_) {
      series_of(product, false);
      ++colour;
    }
    return page::line_plot(plot);
  }

  // How much faster than the naive kernel each version is.
  std::string factors_plot() const {
    page::Plot plot{
        .title = fmt::format("Table {}: times as fast as the naive kernel; theirs dashed, ours whole",
                             table_.table),
        .x_label = "version",
        .y_label = "over naive",
        .series = {},
        .log_y = false,
        .from_zero = false};
    int colour = 0;
    for (const Cell& cell : cells_) {
      page::Series theirs{.name = label(cell) + ", paper", .points = {}, .colour = colour, .dashed = true};
      page::Series ours{.name = label(cell) + ", ours", .points = {}, .colour = colour};
      for (std::size_t i = 0; i < versions_.size(); ++i) {
        const auto x = static_cast<double>(i + 1);
        if (const auto factor = their_factor(versions_[i], cell)) theirs.points.push_back({x, *factor});
        if (const auto factor = our_factor(versions_[i], cell)) ours.points.push_back({x, *factor});
      }
      plot.series.push_back(std::move(theirs));
      plot.series.push_back(std::move(ours));
      ++colour;
    }
    return page::line_plot(plot);
  }

  const Measurements& ours_;
  const PaperTable& table_;
  std::vector<Version> versions_;
  std::vector<Version> products_;
  std::vector<Cell> cells_;
  std::map<Key, double> theirs_;
  bool measured_ = false;
  bool several_ladders_ = false;
};

// ---- The page
// ----------------------------------------------------------------------------------------------

class Page {
 public:
  Page(const std::vector<std::string>& files, const PageRequest& request) : ours_(files), request_(request) {
    for (const std::string& file : files) {
      const json document = read_json(file);
      if (document.contains("images")) {
        pictures_ = document;
        pictures_folder_ = std::filesystem::path(file).parent_path();
      }
    }
    if (ours_.ladders().empty()) throw std::runtime_error("no measurements among these files");
  }

  std::string html() const {
    return page::document(
        "The study: five papers' kernels, measured again",
        head() + findings_part() + pictures_part() + papers_part() + ladders_part() + about());
  }

 private:
  const json& first() const { return ours_.ladders().front(); }
  bool gpu() const { return first().contains("gpu"); }
  std::string device() const { return gpu() ? text_of(first(), "gpu") : text_of(first(), "processor"); }

  std::string head() const {
    std::string text =
        "<h1>The study: five papers’ kernels, measured again</h1>\n"
        "<p class=\"lead\">Five papers asked what makes a denoiser fast on a GPU. Their kernel versions, "
        "rerun on one "
        "machine beside a product that went on from there, answer it again.</p>\n";
    text += fmt::format("<p><strong>{}</strong>{}. {}</p>\n", escaped(device()),
                        gpu() ? "; processor: " + escaped(text_of(first(), "processor")) : "", provenance());
    if (!gpu()) {
      text += fmt::format(
          "<p class=\"note\" id=\"no-gpu\">Without a GPU ({}): only the versions that run on the processor "
          "were measured. Left "
          "out: {}.</p>\n",
          escaped(text_of(first(), "no_gpu")), escaped(left_out()));
    }
    text += "<nav><ul><li><a href=\"#findings\">Findings</a></li>";
    if (!pictures_.is_null()) text += "<li><a href=\"#pictures\">Pictures</a></li>";
    for (const auto& [paper, title] : paper_titles)
      text += fmt::format("<li><a href=\"#{}\">{} {}</a></li>", anchor(paper), paper, escaped(title));
    for (const json& ladder : ours_.ladders()) {
      text +=
          fmt::format("<li><a href=\"#ladder-{0}\">Ladder {0}</a></li>", escaped(text_of(ladder, "ladder")));
    }
    return text + "<li><a href=\"#about\">How it was measured</a></li></ul></nav>\n";
  }

  std::string provenance() const {
    std::string text = fmt::format("ungrain {}", escaped(text_of(first(), "version")));
    if (!request_.commit.empty()) text += ", commit " + escaped(request_.commit);
    text += ", " + escaped(text_of(first(), "date"));
    const int toolkit = first().value("toolkit_cuda_version", 0);
    if (toolkit > 0) text += fmt::format(", CUDA {}.{}", toolkit / 1000, toolkit % 1000 / 10);
    const int driver = first().value("driver_cuda_version", 0);
    if (driver > 0) text += fmt::format(" (driver: up to {}.{})", driver / 1000, driver % 1000 / 10);
    return text + ", compiler " + escaped(text_of(first(), "compiler")) + ".";
  }

  std::string left_out() const {
    std::string text;
    for (const json& ladder : ours_.ladders()) {
      if (!ladder.contains("left_out")) continue;
      std::string rungs;
      for (const json& rung : ladder.at("left_out"))
        rungs += (rungs.empty() ? "" : "; ") + rung.get<std::string>();
      text += (text.empty() ? "" : ". ") + text_of(ladder, "ladder") + ": " + rungs;
    }
    return text;
  }

  static std::string anchor(const std::string& paper) { return "paper-" + paper.substr(1, 3); }

  // ---- Findings

  std::string findings_part() const {
    const std::vector<Finding> all = findings(ours_);
    std::string text =
        "<h2 id=\"findings\">What the measurements say</h2>\n<p>Each line is a rung of a ladder beside the "
        "one that "
        "differs from it by one idea: times as fast, the geometric mean over all pictures and radii "
        "measured, and the "
        "span. What differs by less than 5 % makes no difference.</p>\n";
    const auto item = [](const Finding& finding) {
      return fmt::format(
          "<li class=\"{}\"><b>{}</b>{}<br><span class=\"small\">{}: “{}” over “{}”, {} in {} "
          "cell{}{}</span></li>\n",
          verdict(finding.factor), times_text(finding.factor), escaped(finding.idea), escaped(finding.ladder),
          escaped(finding.rung), escaped(finding.without),
          finding.cells > 1 ? times_text(finding.smallest) + " to " + times_text(finding.largest)
                            : times_text(finding.factor),
          finding.cells, finding.cells == 1 ? "" : "s",
          finding.paper ? fmt::format("; {} measured {}", finding.paper_name, times_text(*finding.paper))
                        : "");
    };
    const auto group = [&](const char* title, const auto& belongs) {
      std::string items;
      for (const Finding& finding : all) {
        if (belongs(finding)) items += item(finding);
      }
      if (!items.empty())
        text += fmt::format("<h3>{}</h3>\n<ul class=\"findings\">\n{}</ul>\n", title, items);
    };
    const std::pair<const char*, const char*> ideas_by_verdict[] = {
        {"good", "Pays"}, {"even", "Makes no difference"}, {"bad", "Costs"}};
    for (const auto& [kind, title] : ideas_by_verdict) {
      group(title, [kind = std::string_view(kind)](const Finding& finding) {
        return finding.kind == Finding::Kind::idea && verdict(finding.factor) == kind;
      });
    }
    group("All ideas together",
          [](const Finding& finding) { return finding.kind == Finding::Kind::together; });
    group("One thread, all cores, the GPU",
          [](const Finding& finding) { return finding.kind == Finding::Kind::machine; });
    return text;
  }

  // ---- Pictures

  static std::optional<Metrics> metrics_of(const json& entry) {
    if (!entry.contains("psnr")) return {};
    Metrics metrics;
    metrics.psnr = entry.at("psnr").is_null() ? INFINITY : entry.at("psnr").get<double>();
    metrics.mse = entry.at("mse").get<double>();
    metrics.max_abs = entry.at("max_abs").get<double>();
    if (entry.contains("ssim")) metrics.ssim = entry.at("ssim").get<double>();
    if (entry.contains("fsim")) metrics.fsim = entry.at("fsim").get<double>();
    return metrics;
  }

  std::string pictures_part() const {
    if (pictures_.is_null()) return "";
    std::vector<page::Shown> shown;
    int noisy = 0;
    for (const json& entry : pictures_.at("images")) {
      const Image image = io::read_image(pictures_folder_ / text_of(entry, "file"));
      const page::Crop whole{0, 0, image.spec().width, image.spec().height};
      if (text_of(entry, "name") == "noisy") noisy = static_cast<int>(shown.size());
      shown.push_back({text_of(entry, "name"), page::png_of(image.view(), whole), metrics_of(entry),
                       text_of(entry, "setting")});
    }
    std::string text = fmt::format(
        "<h2 id=\"pictures\">What the filters make of a picture</h2>\n<p>Picture: {}, gray, with Gaussian "
        "noise of {} of "
        "255. Drag the line; “difference” shows what a filter took away, enlarged around gray: the less of "
        "the picture is "
        "seen in it, the better.</p>\n",
        escaped(text_of(pictures_, "picture")), pictures_.value("noise", 0.0));
    text += page::viewer(shown, noisy, static_cast<int>(shown.size()) - 1);
    text += page::metrics_table(shown);
    Table settings({"filter", "setting"});
    for (const page::Shown& one : shown) {
      if (one.note.empty()) continue;
      settings.start_row(one.name);
      settings.cell(escaped(one.note));
    }
    text += folded("Settings", settings.html());
    std::string missing;
    for (const json& one : pictures_.value("left_out", json::array()))
      missing += (missing.empty() ? "" : "; ") + one.get<std::string>();
    if (!missing.empty()) text += "<p class=\"small\">Left out: " + escaped(missing) + ".</p>\n";
    return text;
  }

  // ---- Papers

  std::string papers_part() const {
    std::string text;
    for (const auto& [paper, title] : paper_titles) {
      text += fmt::format("<h2 id=\"{}\">{} {}</h2>\n", anchor(paper), paper, escaped(title));
      for (const PaperMachine& machine : paper_machines()) {
        if (std::string_view(machine.paper) == paper)
          text +=
              fmt::format("<p>Its machine: {} Ours: {}.</p>\n", escaped(machine.machine), escaped(device()));
      }
      for (const PaperTable& table : paper_tables()) {
        if (std::string_view(table.paper) == paper) text += table_part(table);
      }
      if (std::string_view(paper) == "[001]") text += shape_figures("bilateral");
      if (std::string_view(paper) == "[003]") text += grid_figures();
    }
    return text;
  }

  std::string table_part(const PaperTable& table) const {
    std::string text = fmt::format("<section class=\"table\" data-table=\"{} {}\"><h3>Table {}: {}</h3>\n",
                                   table.paper, table.table, table.table, escaped(table.caption));
    if (*table.note != '\0') text += "<p class=\"note\">" + escaped(table.note) + "</p>\n";
    if (std::string_view(table.paper) == "[004]" && std::string_view(table.table) == "5") {
      text += cat_part();
    } else {
      const TimesTable times(ours_, table);
      if (!times.empty()) text += times.html();
    }
    return text + speed_ups_part(table) + quality_part(table) + psnr_part(table) + "</section>\n";
  }

  // [004]'s definition: the mean of all executions on all pictures of a size, copies included.
  const json* cat_of(const std::string& rung, const Size& size) const {
    const json* ladder = ours_.ladder("nlm");
    if (ladder == nullptr || !ladder->contains("cumulative_average_time")) return nullptr;
    for (const json& time : ladder->at("cumulative_average_time")) {
      if (time.at("rung") == rung && time.at("width") == size.width && time.at("height") == size.height)
        return &time;
    }
    return nullptr;
  }

  std::vector<std::string> cat_rungs() const {
    std::vector<std::string> names;
    const json* ladder = ours_.ladder("nlm");
    if (ladder == nullptr) return names;
    for (const json& time : ladder->value("cumulative_average_time", json::array()))
      add_new(names, time.at("rung").get<std::string>());
    return names;
  }

  std::string cat_part() const {
    const std::vector<std::string> rungs = cat_rungs();
    std::vector<std::string> head = {"CAT in s"};
    for (const char* images : {"natural", "medical"}) {
      head.push_back(fmt::format("NLM, {}, paper", images));
      head.push_back(fmt::format("parallelized, {}, paper", images));
    }
    for (const std::string& rung : rungs) head.push_back(rung + ", ours");
    Table cat(std::move(head));
    Table factors([&] {
      std::vector<std::string> names = {"speed-up factor", "natural, paper", "medical, paper"};
      for (const std::string& rung : rungs) names.push_back(rung + ", ours");
      return names;
    }());
    page::Plot plot{.title = "Cumulative average times: theirs dashed, ours whole",
                    .x_label = "side of the picture",
                    .y_label = "s",
                    .series = {{"NLM, paper", {}, 0, true}, {"parallelized, paper", {}, 1, true}},
                    .log_x = true};
    for (std::size_t i = 0; i < rungs.size(); ++i)
      plot.series.push_back({rungs[i] + ", ours",
                             {},
                             rungs[i] == "sequential"          ? 0
                             : rungs[i] == "one block a pixel" ? 1
                                                               : static_cast<int>(i) + 2,
                             false});
    int pictures = 0;
    int executions = 0;
    for (const int side : {128, 256, 512, 1024}) {
      cat.start_row(fmt::format("{0} x {0}", side));
      factors.start_row(fmt::format("{0} x {0}", side));
      for (const char* images : {"natural images", "medical images"}) {
        double basic = 0;
        double parallel = 0;
        for (const PaperTime& time : paper_times()) {
          if (std::string_view(time.paper) != "[004]" || std::string_view(time.image) != images ||
              time.width != side)
            continue;
          (std::string_view(time.rung) == "sequential" ? basic : parallel) = time.ms / 1000;
        }
        cat.cell(short_number(basic));
        cat.cell(short_number(parallel));
        factors.cell(fmt::format("{:.2f}", basic / parallel));
        if (std::string_view(images) == "natural images") {
          plot.series[0].points.push_back({static_cast<double>(side), basic});
          plot.series[1].points.push_back({static_cast<double>(side), parallel});
        }
      }
      const json* basic = cat_of("sequential", {side, side});
      for (std::size_t i = 0; i < rungs.size(); ++i) {
        const json* time = cat_of(rungs[i], {side, side});
        if (time == nullptr) {
          cat.cell("–");
          factors.cell("–");
          continue;
        }
        const double seconds = time->at("ms").get<double>() / 1000;
        pictures = time->at("pictures").get<int>();
        executions = time->at("executions").get<int>();
        cat.cell(ms_text(seconds, time->value("share", 1.0)), "ours");
        factors.cell(basic != nullptr ? short_number(basic->at("ms").get<double>() / 1000 / seconds) : "–",
                     "ours");
        plot.series[i + 2].points.push_back({static_cast<double>(side), seconds});
      }
    }
    std::string text =
        "<p>As the paper defines it: CAT = 1/(m n) Σ Σ T<sub>ij</sub>, the mean of the elapsed times of n "
        "executions on each "
        "of m pictures, copies to the GPU and back included; the speed-up factor is the CAT of basic NLM "
        "over that of a "
        "version.";
    if (pictures > 0) {
      text += fmt::format(
          " Ours: m = {} draws of noise on one picture (times do not depend on pixels), n = {}; theirs: m = "
          "30, n = 5.",
          pictures, executions);
    } else {
      text += " Not measured in this run; the paper's figures alone.";
    }
    return text + "</p>\n" + beside(cat.html(), page::line_plot(plot)) + factors.html();
  }

  std::string speed_ups_part(const PaperTable& table) const {
    std::vector<PaperSpeedUp> rows;
    std::set<std::string> rungs;
    std::set<int> radii;
    bool has_cat = false;
    for (const PaperSpeedUp& paper : paper_speed_ups()) {
      if (std::string_view(paper.paper) != table.paper || std::string_view(paper.table) != table.table)
        continue;
      rows.push_back(paper);
      rungs.insert(paper.rung);
      radii.insert(paper.radius);
      has_cat = has_cat || (std::string_view(paper.ladder) == "nlm" &&
                            cat_of(paper.rung, {paper.width, paper.height}) != nullptr);
    }
    if (rows.empty()) return "";
    std::vector<std::string> head = {"over sequential", "paper", "ours, kernels"};
    if (has_cat) head.push_back("ours, CAT");
    Table speed_ups(std::move(head));
    for (const PaperSpeedUp& paper : rows) {
      const Size size{paper.width, paper.height};
      speed_ups.start_row(size_text(size) + (rungs.size() > 1 ? fmt::format(", {}", paper.rung) : "") +
                          (radii.size() > 1 ? fmt::format(", r {}", paper.radius) : ""));
      speed_ups.cell(fmt::format("{:.2f}", paper.factor));
      const Measurements::Time* time = ours_.exactly(paper.ladder, paper.rung, paper.radius, size);
      const double sequential =
          time != nullptr ? ours_.ms_beside(*time, paper.ladder, paper.sequential_rung, paper.radius) : 0;
      speed_ups.cell(sequential > 0 ? short_number(sequential / time->ms) : "–", "ours");
      if (!has_cat) continue;
      const json* basic = cat_of(paper.sequential_rung, size);
      const json* cat = cat_of(paper.rung, size);
      speed_ups.cell(basic != nullptr && cat != nullptr
                         ? short_number(basic->at("ms").get<double>() / cat->at("ms").get<double>())
                         : "–",
                     "ours");
    }
    return speed_ups.html();
  }

  std::string quality_part(const PaperTable& table) const {
    Table qualities({"picture", "size", "PSNR dB", "SSIM", "FSIM"});
    for (const PaperQuality& paper : paper_qualities()) {
      if (std::string_view(paper.paper) != table.paper || std::string_view(paper.table) != table.table)
        continue;
      qualities.start_row(paper.image);
      qualities.cell(fmt::format("{0} x {0}", paper.side));
      qualities.cell(fmt::format("{:.1f}", paper.psnr));
      qualities.cell(fmt::format("{:.3f}", paper.ssim));
      qualities.cell(fmt::format("{:.3f}", paper.fsim));
    }
    if (qualities.empty()) return "";
    return our_quality("[004]", "with noise of 10, our picture in place of theirs") +
           folded("The paper's figures, picture by picture", qualities.html());
  }

  std::string psnr_part(const PaperTable& table) const {
    if (std::string_view(table.paper) != "[002]" || std::string_view(table.table) != "5.4") return "";
    Table psnrs({"PSNR dB", "noise", "version", "paper"});
    for (const Paper002Quality& paper : paper_002_qualities()) {
      psnrs.start_row(paper.image);
      psnrs.cell(fmt::format("{}", paper.sigma));
      psnrs.cell(paper.version);
      psnrs.cell(fmt::format("{:.2f}", paper.psnr));
    }
    return our_quality("[002]", "our picture in place of theirs") + psnrs.html();
  }

  std::string our_quality(const std::string& paper, const std::string& how) const {
    if (pictures_.is_null()) return "";
    Table ours({"ours", "size", "noise", "noisy dB", "PSNR dB", "SSIM", "FSIM"});
    for (const json& entry : pictures_.value("quality", json::array())) {
      if (text_of(entry, "paper") != paper) continue;
      const std::optional<Metrics> metrics = metrics_of(entry);
      if (!metrics) continue;
      ours.start_row(text_of(entry, "filter"));
      ours.cell(size_text({entry.at("width"), entry.at("height")}));
      ours.cell(short_number(entry.at("sigma")));
      ours.cell(fmt::format("{:.2f}", entry.at("noisy_psnr").get<double>()));
      ours.cell(fmt::format("{:.2f}", metrics->psnr), "ours");
      ours.cell(metrics->ssim ? fmt::format("{:.4f}", *metrics->ssim) : "–", "ours");
      ours.cell(metrics->fsim ? fmt::format("{:.4f}", *metrics->fsim) : "–", "ours");
    }
    if (ours.empty()) return "";
    return fmt::format(
               "<p>Picture: {}, {}. Figures of different pictures cannot be compared one by one.</p>\n",
               escaped(text_of(pictures_, "picture")), escaped(how)) +
           ours.html();
  }

  // [001]'s figures 6.1 and 6.2: block sides and tiling factors, smallest picture and radius; and again for
  // the largest radius.
  std::string shape_figures(const std::string& name) const {
    const json* ladder = ours_.ladder(name);
    if (ladder == nullptr) return "";
    std::set<std::pair<int, int>> radii_and_widths;
    for (const json& rung : ladder->at("rungs")) {
      for (const json& result : rung.at("results"))
        radii_and_widths.insert({result.at("radius").get<int>(), result.at("width").get<int>()});
    }
    if (radii_and_widths.empty()) return "";
    std::string text;
    const int smallest_width = radii_and_widths.begin()->second;
    const std::set<int> shown_radii = {radii_and_widths.begin()->first, radii_and_widths.rbegin()->first};
    for (const int radius : shown_radii) {
      page::Plot sides{.title = fmt::format("Like figure 6.1: side of the block; r {}, {} pixels wide",
                                            radius, smallest_width),
                       .x_label = "side of the block",
                       .y_label = "ms",
                       .series = {},
                       .log_x = true};
      page::Plot tilings{
          .title = fmt::format("Like figure 6.2: tiling factor, blocks of 16; r {}, {} pixels wide", radius,
                               smallest_width),
          .x_label = "tiling factor",
          .y_label = "ms",
          .series = {},
          .log_y = false};
      for (const json& rung : ladder->at("rungs")) {
        if (text_of(rung, "paper").find("[001] version") == std::string::npos) continue;
        for (const json& result : rung.at("results")) {
          if (result.at("radius") != radius || result.at("width") != smallest_width) continue;
          std::map<int, double> by_side;
          std::map<int, double> by_tiling;
          bool tiled = false;
          for (const json& shape : result.at("all")) {
            const int side = shape.value("side", 0);
            if (side == 0) continue;
            const double ms = shape.at("ms").get<double>();
            const auto [at, is_new] = by_side.insert({side, ms});
            if (!is_new) at->second = std::min(at->second, ms);
            tiled = tiled || shape.value("tiling", 1) > 1;
            if (side == 16) by_tiling[shape.value("tiling", 1)] = ms;
          }
          const auto add = [&](page::Plot& plot, const std::map<int, double>& values) {
            page::Series series{
                .name = text_of(rung, "name"), .points = {}, .colour = static_cast<int>(plot.series.size())};
            for (const auto& [x, ms] : values) series.points.push_back({static_cast<double>(x), ms});
            if (!series.points.empty()) plot.series.push_back(std::move(series));
          };
          add(sides, by_side);
          if (tiled) add(tilings, by_tiling);
        }
      }
      text += page::line_plot(sides) + page::line_plot(tilings);
    }
    return text.empty() ? "" : "<div class=\"plots\">" + text + "</div>\n";
  }

  // [003]'s figures 3 to 8: threads and blocks.
  std::string grid_figures() const {
    std::string plots;
    std::string tables;
    for (const json& ladder : ours_.ladders()) {
      for (const json& rung : ladder.at("rungs")) {
        int largest_paper_width = 0;
        for (const json& result : rung.at("results"))
          if (result.at("width").get<int>() <= 256)
            largest_paper_width = std::max(largest_paper_width, result.at("width").get<int>());
        for (const json& result : rung.at("results")) {
          std::map<int, std::map<int, double>> by_grid;  // ms by blocks and threads
          std::set<int> threads;
          for (const json& shape : result.at("all")) {
            if (!shape.contains("grid")) continue;
            by_grid[shape.at("grid").get<int>()][shape.at("threads").get<int>()] =
                shape.at("ms").get<double>();
            threads.insert(shape.at("threads").get<int>());
          }
          if (by_grid.empty()) continue;
          const std::string title =
              fmt::format("{}, {} x {}, patches of {}", text_of(rung, "name"), result.at("width").get<int>(),
                          result.at("height").get<int>(), 2 * result.at("radius").get<int>() + 1);
          if (result.at("width") == largest_paper_width && text_of(rung, "paper").find("[003] v") == 0) {
            page::Plot plot{
                .title = title, .x_label = "threads a block", .y_label = "ms", .series = {}, .log_x = true};
            for (const auto& [grid, by_threads] : by_grid) {
              page::Series series{.name = fmt::format("{} blocks", grid),
                                  .points = {},
                                  .colour = static_cast<int>(plot.series.size())};
              for (const auto& [count, ms] : by_threads)
                series.points.push_back({static_cast<double>(count), ms});
              plot.series.push_back(std::move(series));
            }
            plots += page::line_plot(plot);
          }
          std::vector<std::string> head = {"threads"};
          for (const auto& [grid, by_threads] : by_grid) head.push_back(fmt::format("{} blocks", grid));
          Table table(std::move(head));
          const double best = result.at("best").at("ms").get<double>();
          for (const int count : threads) {
            table.start_row(fmt::format("{}", count));
            for (const auto& [grid, by_threads] : by_grid) {
              const auto found = by_threads.find(count);
              if (found == by_threads.end()) {
                table.cell("–");
              } else {
                table.cell(ms_text(found->second), found->second <= best ? "best" : "");
              }
            }
          }
          tables += "<h4>" + escaped(title) + "</h4>\n" + table.html();
        }
      }
    }
    std::string text;
    if (!plots.empty())
      text += "<h3>Like figures 3 to 8: threads a block and blocks a grid</h3>\n<div class=\"plots\">" +
              plots + "</div>\n";
    if (!tables.empty()) text += folded("ms by threads a block and blocks, every picture and patch", tables);
    return text;
  }

  // ---- Ladders

  // Where rungs are shown side by side: 1080p where that was measured, else the largest picture; the radius
  // in the middle.
  static std::optional<std::pair<Size, int>> shown_cell(const json& ladder) {
    std::vector<std::pair<double, std::pair<Size, int>>> cells;
    std::vector<int> radii;
    for (const json& rung : ladder.at("rungs")) {
      for (const json& result : rung.at("results")) {
        const Size size{result.at("width"), result.at("height")};
        const double pixels = size == Size{1920, 1080} ? 1e12 : static_cast<double>(size.width) * size.height;
        cells.push_back({pixels, {size, result.at("radius").get<int>()}});
        add_new(radii, result.at("radius").get<int>());
      }
    }
    if (cells.empty()) return {};
    std::sort(radii.begin(), radii.end());
    const auto largest = std::max_element(cells.begin(), cells.end(),
                                          [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::pair{largest->second.first, radii[radii.size() / 2]};
  }

  static const json* result_at(const json& rung, const std::pair<Size, int>& cell) {
    for (const json& result : rung.at("results")) {
      if (result.at("width") == cell.first.width && result.at("height") == cell.first.height &&
          result.at("radius") == cell.second)
        return &result;
    }
    return nullptr;
  }

  std::string ladders_part() const {
    std::string text;
    for (const json& ladder : ours_.ladders()) {
      const std::string name = text_of(ladder, "ladder");
      text += fmt::format("<h2 id=\"ladder-{0}\">Ladder {0}</h2>\n<p>{1}; {2}. Picture: {3}.</p>\n",
                          escaped(name), escaped(text_of(ladder, "summary")),
                          escaped(text_of(ladder, "strengths")), escaped(text_of(ladder, "picture")));
      if (ladder.contains("not_built"))
        text += "<p class=\"note\">Left out: " + escaped(text_of(ladder, "not_built")) + ".</p>\n";
      const auto cell = shown_cell(ladder);
      if (!cell) continue;
      text += bars(ladder, *cell) + occupancy(ladder, *cell) + parts(ladder, *cell) + all_times(ladder);
    }
    return text;
  }

  std::string bars(const json& ladder, const std::pair<Size, int>& cell) const {
    const std::string naive_name = ladder.value("naive", "naive");
    const Measurements::Time* naive = ours_.exactly(ladder.at("ladder"), naive_name, cell.second, cell.first);
    const std::string base = naive != nullptr ? naive_name : ladder.value("sequential", "sequential");
    if (naive == nullptr) naive = ours_.exactly(ladder.at("ladder"), base, cell.second, cell.first);
    if (naive == nullptr) return "";
    page::BarPlot plot{
        .title = fmt::format("Times as fast as “{}”, {}, r {}", base, size_text(cell.first), cell.second),
        .unit = "×",
        .bars = {}};
    for (const json& rung : ladder.at("rungs")) {
      const json* result = result_at(rung, cell);
      // Beside kernels the processor's bars could not be seen.
      if (result == nullptr || (gpu() && !rung.value("gpu", true))) continue;
      const double ms = result->at("best").at("ms").get<double>();
      plot.bars.push_back({text_of(rung, "name"), naive->ms / ms,
                           text_of(rung, "paper") == "ours" && text_of(rung, "name").find("ungrain") == 0,
                           fmt::format("{} ms; {}", short_number(ms), text_of(rung, "idea"))});
    }
    return page::bar_plot(plot);
  }

  std::string occupancy(const json& ladder, const std::pair<Size, int>& cell) const {
    Table table({fmt::format("{}, r {}", size_text(cell.first), cell.second), "from", "ms", "block", "N",
                 "registers", "spilled bytes", "shared bytes", "blocks a multiprocessor", "occupancy",
                 "largest error"});
    bool kernels = false;
    for (const json& rung : ladder.at("rungs")) {
      const json* result = result_at(rung, cell);
      if (result == nullptr) continue;
      const json& best = result->at("best");
      const auto number = [&](const char* key) {
        return best.contains(key) ? fmt::format("{}", best.at(key).get<long long>()) : "–";
      };
      table.start_row(text_of(rung, "name"));
      table.cell(escaped(text_of(rung, "paper")));
      table.cell(ms_text(best.at("ms").get<double>(), best.value("share", 1.0)), "ours");
      table.cell(best.contains("batch")  ? escaped(text_of(best, "batch"))
                 : best.contains("side") ? number("side")
                                         : number("threads"));
      table.cell(best.contains("tiling") ? number("tiling") : number("grid"));
      table.cell(number("registers"));
      table.cell(number("spilled_bytes"));
      table.cell(number("shared_bytes"));
      table.cell(number("blocks"));
      table.cell(best.contains("occupancy")
                     ? fmt::format("{:.0f} %", 100 * best.at("occupancy").get<double>())
                     : "–");
      table.cell(result->at("largest_error").is_null()
                     ? "not written"
                     : fmt::format("{:.1e}", result->at("largest_error").get<double>()));
      kernels = kernels || best.contains("occupancy");
    }
    if (table.empty()) return "";
    std::string text = "<h3>Best shapes and occupancy</h3>\n" + table.html();
    if (kernels) {
      text +=
          "<p class=\"small\">Occupancy is the share of a multiprocessor's threads that a kernel's registers "
          "and shared memory "
          "leave room for, as CUDA tells it. The error is of 255, against the library's reference.</p>\n";
    }
    return text;
  }

  // Where a run's time goes, for rungs that say so.
  static std::string parts(const json& ladder, const std::pair<Size, int>& cell) {
    std::vector<std::string> names;
    for (const json& rung : ladder.at("rungs")) {
      const json* result = result_at(rung, cell);
      if (result == nullptr) continue;
      const json& best = result->at("best");
      if (!best.contains("parts_ms")) continue;
      for (const auto& [name, ms] : best.at("parts_ms").items()) add_new(names, std::string(name));
    }
    if (names.empty()) return "";
    std::vector<std::string> head = {"ms by part"};
    head.insert(head.end(), names.begin(), names.end());
    Table table(std::move(head));
    for (const json& rung : ladder.at("rungs")) {
      const json* result = result_at(rung, cell);
      if (result == nullptr || !result->at("best").contains("parts_ms")) continue;
      table.start_row(text_of(rung, "name"));
      for (const std::string& name : names) {
        const json& of_parts = result->at("best").at("parts_ms");
        table.cell(of_parts.contains(name) ? ms_text(of_parts.at(name).get<double>()) : "–");
      }
    }
    return "<h3>Where the time goes</h3>\n" + table.html() + parts_plot(ladder, cell);
  }

  // Of the first rung that tells them, which is the nearest to the paper's.
  static std::string parts_plot(const json& ladder, const std::pair<Size, int>& cell) {
    for (const json& rung : ladder.at("rungs")) {
      const json* result = result_at(rung, cell);
      if (result == nullptr || !result->at("best").contains("parts_ms")) continue;
      page::BarPlot plot{
          .title = fmt::format("Parts of “{}”, {}", text_of(rung, "name"), size_text(cell.first)),
          .unit = " ms",
          .mark = 0,
          .bars = {}};
      for (const auto& [name, ms] : result->at("best").at("parts_ms").items())
        plot.bars.push_back({name, ms.get<double>()});
      return page::bar_plot(plot);
    }
    return "";
  }

  static std::string all_times(const json& ladder) {
    std::vector<Size> sizes;
    std::set<int> radii;
    for (const json& rung : ladder.at("rungs")) {
      for (const json& result : rung.at("results")) {
        add_new(sizes, Size{result.at("width"), result.at("height")});
        radii.insert(result.at("radius").get<int>());
      }
    }
    std::string text;
    for (const Size& size : sizes) {
      std::vector<std::string> head = {"ms"};
      for (const int radius : radii) head.push_back(fmt::format("r {}", radius));
      Table table(std::move(head));
      std::map<int, double> fastest;
      for (const json& rung : ladder.at("rungs")) {
        for (const int radius : radii) {
          if (const json* result = result_at(rung, {size, radius})) {
            const double ms = result->at("best").at("ms").get<double>();
            const auto [at, is_new] = fastest.insert({radius, ms});
            if (!is_new) at->second = std::min(at->second, ms);
          }
        }
      }
      for (const json& rung : ladder.at("rungs")) {
        bool any = false;
        for (const int radius : radii) any = any || result_at(rung, {size, radius}) != nullptr;
        if (!any) continue;
        table.start_row(text_of(rung, "name"));
        for (const int radius : radii) {
          const json* result = result_at(rung, {size, radius});
          if (result == nullptr) {
            table.cell("–");
            continue;
          }
          const json& best = result->at("best");
          std::string cell = ms_text(best.at("ms").get<double>(), best.value("share", 1.0));
          if (result->contains("psnr"))
            cell += fmt::format(" <small>{:.2f} dB</small>", result->at("psnr").get<double>());
          table.cell(cell, best.at("ms").get<double>() <= fastest[radius] ? "best" : "");
        }
      }
      text += "<h4>" + size_text(size) + "</h4>\n" + table.html();
    }
    return folded("Every picture and radius", text);
  }

  static std::string about() {
    return "<h2 id=\"about\">How it was measured</h2>\n"
           "<ul>\n<li>Every rung is first held against the library's reference (double precision) with every "
           "block side and "
           "tiling factor, on a picture that no block divides; what is timed is held against the product's "
           "result on its "
           "first, middle and last rows.</li>\n"
           "<li>A kernel is timed by events around it, pictures in GPU memory: the median of three runs, or "
           "one run where the "
           "first takes more than 20 ms. The best block and tiling factor counts.</li>\n"
           "<li>A star marks a time that was measured on a part of the picture and scaled: sequential "
           "versions that would take "
           "more than two seconds, kernels of [004] beyond 64 launches, and searches of the whole "
           "image.</li>\n"
           "<li>The papers' pictures may not be shipped: the demo scene stands in at the same sizes, gray, "
           "with noise. [001] "
           "filters three channels, ours one. Pictures are held with mirrored pixels around them, so that no "
           "rung tests for "
           "borders.</li>\n"
           "<li>Only [004]'s times contain copies to the GPU and back; its cumulative average times are "
           "compared with ours that "
           "contain them too.</li>\n</ul>\n"
           "<p>Again, on your own card: <code>ungrain-study all --json results</code>, then "
           "<code>ungrain-study report results "
           "--html study.html</code>; with <code>--image FILE</code> on your own picture.</p>\n";
  }

  Measurements ours_;
  PageRequest request_;
  json pictures_;
  std::filesystem::path pictures_folder_;
};

}  // namespace

void write_page(const std::vector<std::string>& json_files, const PageRequest& request) {
  std::string html;
  try {
    html = Page(json_files, request).html();
  } catch (const json::exception& error) {
    throw std::runtime_error(std::string("the results are not what --json writes: ") + error.what());
  }
  io::TemporaryFile file(request.path, {});
  file.write(html.data(), html.size(), 0);
  file.commit();
}

}  // namespace ungrain::study
