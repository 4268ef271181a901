// The band planner by itself: every row computed once, and always from rows that are there.
#include "core/bands.h"

#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace ungrain {
namespace {

Stage stage(int reach_y, std::vector<int> reads, bool whole = false) {
  Stage s;
  s.reach = {.x = reach_y, .y = reach_y, .whole = whole};
  s.planes = 1;
  s.reads = std::move(reads);
  return s;
}

// Plays the schedule and checks each step against what the stages need.
void check_schedule(const Pipeline& pipeline, int height, RowRange output, int band_rows) {
  SCOPED_TRACE(::testing::Message() << "height " << height << " rows " << output.begin << "-" << output.end
                                    << " band " << band_rows << (pipeline.wraps ? " wraps" : ""));
  BandSchedule schedule(pipeline, height, output, band_rows);
  const std::vector<int> capacity = rows_held(pipeline, height, {band_rows});
  std::vector<std::set<int>> held(schedule.results());
  std::vector<std::set<int>> ever(schedule.results());
  int finished = output.begin;
  int steps = 0;
  while (const BandStep* step = schedule.next()) {
    ++steps;
    ASSERT_EQ(step->output.begin, finished);
    finished = step->output.end;
    for (int result = 0; result < schedule.results(); ++result) {
      held[result].erase(held[result].begin(), held[result].lower_bound(step->keep_from[result]));
      for (int y = step->compute[result].begin; y < step->compute[result].end; ++y) {
        ASSERT_TRUE(ever[result].insert(y).second)
            << "row " << y << " of result " << result << " computed twice";
        held[result].insert(y);
        if (result == 0) continue;
        const Stage& made_by = pipeline.stages[result - 1];
        for (const int source : made_by.reads) {
          const int from = made_by.reach.whole ? 0 : y - made_by.reach.y;
          const int to = made_by.reach.whole ? height - 1 : y + made_by.reach.y;
          for (int needed = from; needed <= to; ++needed) {
            if (!pipeline.wraps && (needed < 0 || needed >= height)) continue;
            ASSERT_TRUE(held[source].contains(needed))
                << "row " << y << " of result " << result << " needs row " << needed << " of " << source;
          }
        }
      }
      if (!held[result].empty()) {
        ASSERT_LE(*held[result].rbegin() - *held[result].begin() + 1, capacity[result]);
      }
    }
    for (int y = step->output.begin; y < step->output.end; ++y) ASSERT_TRUE(held.back().contains(y));
  }
  EXPECT_EQ(finished, output.end);
  EXPECT_EQ(steps, schedule.steps());
}

TEST(Bands, SimplePipelines) {
  for (const bool wraps : {false, true}) {
    for (const int reach : {0, 1, 5, 40}) {
      const Pipeline one{{stage(reach, {0})}, wraps};
      const Pipeline two{{stage(reach, {0}), stage(3, {1})}, wraps};
      const Pipeline both{{stage(reach, {0}), stage(2, {0, 1})}, wraps};  // as BM3D's second step
      for (const Pipeline& pipeline : {Pipeline{{}, wraps}, one, two, both}) {
        for (const int height : {1, 2, 17, 64}) {
          for (const int band : {1, 3, 16, 100}) check_schedule(pipeline, height, {0, height}, band);
        }
      }
    }
  }
}

// The sum of the height and the reach is more than an int holds.
TEST(Bands, ImagesAsHighAsAnIntTells) {
  constexpr int height = std::numeric_limits<int>::max();
  for (const bool wraps : {false, true}) {
    Pipeline pipeline{.stages = {stage(10, {0}), stage(7, {1})}};
    pipeline.wraps = wraps;
    for (const int rows : rows_held(pipeline, height, {64})) {
      EXPECT_GE(rows, 64);
      EXPECT_LE(rows, 64 + 4 * 17);
    }
    BandSchedule end(pipeline, height, {height - 100, height}, 64);
    int last = 0;
    while (const BandStep* step = end.next()) last = step->output.end;
    EXPECT_EQ(last, height);
  }
}

TEST(Bands, WholeImageStages) {
  for (const int band : {1, 7, 100}) {
    check_schedule({{stage(0, {0}, true)}}, 30, {0, 30}, band);
    check_schedule({{stage(2, {0}), stage(0, {1}, true), stage(3, {2, 0})}}, 30, {0, 30}, band);
  }
}

TEST(Bands, AnyPartOfTheImage) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Pipeline pipeline;
    const int stages = 1 + below(4);
    for (int s = 0; s < stages; ++s) {
      std::vector<int> reads{s};
      if (s > 0 && below(2) == 0) reads.push_back(below(s));
      pipeline.stages.push_back(stage(below(9), reads));
    }
    const int height = 1 + below(60);
    const int begin = below(height);
    check_schedule(pipeline, height, {begin, begin + 1 + below(height - begin)}, 1 + below(20));
  }
}

TEST(Bands, TotalReach) {
  const Pipeline both{{stage(4, {0}), stage(2, {0, 1})}};
  EXPECT_EQ(total_reach(both, {100, 100}).y, 6);
  EXPECT_EQ(total_reach(both, {100, 3}).y, 3);
  EXPECT_EQ(columns_for(both, 100, {50, 60})[0], (RowRange{44, 66}));
}

}  // namespace
}  // namespace ungrain
