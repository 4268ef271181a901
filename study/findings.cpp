#include "study/findings.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "study/papers/ideas.h"
#include "study/papers/tables.h"

namespace ungrain::study {
namespace {

using nlohmann::json;

// Factors and their geometric mean.
class Mean {
 public:
  void add(double factor) {
    logarithms_ += std::log(factor);
    smallest_ = std::min(smallest_, factor);
    largest_ = std::max(largest_, factor);
    ++count_;
  }
  int count() const { return count_; }
  double value() const { return std::exp(logarithms_ / count_); }
  double smallest() const { return smallest_; }
  double largest() const { return largest_; }

 private:
  double logarithms_ = 0;
  double smallest_ = std::numeric_limits<double>::infinity();
  double largest_ = 0;
  int count_ = 0;
};

const json* rung_of(const json& ladder, const std::string& name) {
  for (const json& rung : ladder.at("rungs")) {
    if (rung.at("name") == name) return &rung;
  }
  return nullptr;
}

std::optional<Finding> compared(const Measurements& ours, const json& ladder, const std::string& rung,
                                const std::string& without, const std::string& idea,
                                Finding::Kind kind = Finding::Kind::idea) {
  const json* with = rung_of(ladder, rung);
  if (with == nullptr) return {};
  Mean mean;
  for (const json& result : with->at("results")) {
    const Measurements::Time* before = ours.exactly(ladder.at("ladder"), without, result.at("radius"),
                                                    {result.at("width"), result.at("height")});
    if (before != nullptr) mean.add(before->ms / result.at("best").at("ms").get<double>());
  }
  if (mean.count() == 0) return {};
  return Finding{.idea = idea,
                 .ladder = ladder.at("ladder"),
                 .rung = rung,
                 .without = without,
                 .factor = mean.value(),
                 .smallest = mean.smallest(),
                 .largest = mean.largest(),
                 .cells = mean.count(),
                 .paper = {},
                 .kind = kind};
}

bool same_cell(const PaperTime& a, const PaperTime& b) {
  return a.paper == b.paper && a.table == b.table && a.image == b.image && a.ladder == b.ladder &&
         a.radius == b.radius && a.width == b.width;
}

// The papers' own factor, where a table has both versions or the naive one beside.
void add_paper(Finding& finding) {
  Mean mean;
  for (const PaperTime& with : paper_times()) {
    if (finding.ladder != with.ladder || finding.rung != with.rung) continue;
    if (finding.without == with.naive_rung && with.naive_ms > 0) {
      mean.add(with.naive_ms / with.ms);
    } else {
      for (const PaperTime& before : paper_times()) {
        if (same_cell(with, before) && finding.without == before.rung) mean.add(before.ms / with.ms);
      }
    }
    if (mean.count() > 0) finding.paper_name = with.paper;
  }
  if (mean.count() > 0) finding.paper = mean.value();
}

}  // namespace

std::vector<Finding> findings(const Measurements& ours) {
  std::vector<Finding> all;
  const auto add = [&](const std::optional<Finding>& finding) {
    if (finding) all.push_back(*finding);
  };
  for (const json& ladder : ours.ladders()) {
    const std::string name = ladder.at("ladder");
    const std::string sequential = ladder.value("sequential", "sequential");
    const std::string naive = ladder.value("naive", "naive");
    bool known = false;
    for (const Idea& idea : ideas()) {
      if (name != idea.ladder) continue;
      known = true;
      const bool together = std::strcmp(idea.rung, "ungrain") == 0;
      add(compared(ours, ladder, idea.rung, idea.without, idea.name,
                   together ? Finding::Kind::together : Finding::Kind::idea));
    }
    if (!known) {
      for (const json& rung : ladder.at("rungs")) {
        if (rung.at("name") != naive && rung.value("gpu", true))
          add(compared(ours, ladder, rung.at("name"), naive, rung.value("idea", "")));
      }
    }
    add(compared(ours, ladder, "threads", sequential,
                 "all cores and vector instructions of the processor in place of one thread",
                 Finding::Kind::machine));
    // What the threads compute: of bm3d what [002] does, which the product's usual kernels do not.
    const char* of_paper = "ungrain, paper-002";
    add(compared(ours, ladder, rung_of(ladder, of_paper) != nullptr ? of_paper : "ungrain", "threads",
                 "the GPU in place of the processor, both through the product", Finding::Kind::machine));
  }
  for (Finding& finding : all) add_paper(finding);
  std::stable_sort(all.begin(), all.end(),
                   [](const Finding& a, const Finding& b) { return a.factor > b.factor; });
  return all;
}

}  // namespace ungrain::study
