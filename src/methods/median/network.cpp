// Construction of a network. The window's values are merged list by list. Values that cannot be the median
// any more, because too many are known to be smaller or larger, are dropped at once. Merges that neighbouring
// windows share are done once: along a row, because a shifted list is the same list; down the columns,
// because the rows that several output rows share are merged first, and each output row's own rows after.
#include "methods/median/network.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace ungrain {
namespace {

// A value, shifted to the right.
struct ShiftedValue {
  int value;
  int shift;
};

// A sorted list of the possible medians, and how many values were dropped on either side.
struct SortedList {
  std::vector<ShiftedValue> values;
  int below = 0;
  int above = 0;
};

class Builder {
 public:
  Builder(int radius, int images, int rows)
      : side_(2 * radius + 1),
        images_(images),
        rows_of_image_(2 * radius + rows),
        inputs_(images * rows_of_image_),
        values_(inputs_) {
    std::vector<int> outputs(static_cast<std::size_t>(rows));
    const SortedList shared = sorted_block(rows - 1, side_ - 1);
    finish(shared, 0, rows, outputs);
    number(radius, rows, outputs);
  }

  MedianNetwork take() { return std::move(network_); }

 private:
  struct Made {
    ShiftedValue first;
    ShiftedValue second;
    int low;
    int high;
  };

  // Finishes the windows of `count` output rows from `top` on, which have the list `shared` in common.
  void finish(const SortedList& shared, int top, int count, std::vector<int>& outputs) {
    if (count == 1) {
      outputs[static_cast<std::size_t>(top)] = shared.values.front().value;
      return;
    }
    const int half = count / 2;
    finish(add(shared, sorted_block(top + half - 1, top + count - 2)), top, half, outputs);
    finish(add(shared, sorted_block(top + side_, top + side_ + half - 1)), top + half, half, outputs);
  }

  // All values of the window's columns in the rows first to last of every image, sorted.
  SortedList sorted_block(int first, int last) {
    std::vector<ShiftedValue> column;
    for (int image = 0; image < images_; ++image) {
      for (int row = first; row <= last; ++row) column.push_back({image * rows_of_image_ + row, 0});
    }
    std::vector<SortedList> wide{{sort(column)}};  // 1, 2, 4 … columns
    for (int columns = 1; 2 * columns <= side_; columns *= 2) {
      const SortedList& half = wide.back();
      wide.push_back(add(half, shifted(half, columns)));
    }
    int columns = 1 << (wide.size() - 1);
    SortedList all = wide.back();
    for (int power = static_cast<int>(wide.size()) - 2; power >= 0; --power) {
      if ((side_ & (1 << power)) == 0) continue;
      all = add(all, shifted(wide[static_cast<std::size_t>(power)], columns));
      columns += 1 << power;
    }
    return all;
  }

  static SortedList shifted(SortedList list, int by) {
    for (ShiftedValue& value : list.values) value.shift += by;
    return list;
  }

  SortedList add(const SortedList& a, const SortedList& b) {
    SortedList all{{}, a.below + b.below, a.above + b.above};
    const int count = static_cast<int>(a.values.size() + b.values.size());
    const int others = side_ * side_ * images_ / 2;  // on either side of the median
    const int drop_below = std::clamp(count + all.above - 1 - others, 0, count);
    const int drop_above = std::clamp(count + all.below - 1 - others, 0, count);
    if (drop_below + drop_above == count - 1) {
      all.values = {of_rank(a.values, b.values, drop_below)};
    } else {
      const std::vector<ShiftedValue> merged = merge(a.values, b.values);
      all.values.assign(merged.begin() + drop_below, merged.end() - drop_above);
    }
    all.below += drop_below;
    all.above += drop_above;
    return all;
  }

  // The value of this rank in two sorted lists. For every split of the smaller values between the lists, one
  // of the two next values is at least as large as it.
  ShiftedValue of_rank(const std::vector<ShiftedValue>& a, const std::vector<ShiftedValue>& b, int rank) {
    std::optional<ShiftedValue> least;
    const int a_size = static_cast<int>(a.size());
    const int b_size = static_cast<int>(b.size());
    for (int from_a = std::max(0, rank + 1 - b_size); from_a <= std::min(rank + 1, a_size); ++from_a) {
      const int from_b = rank + 1 - from_a;
      ShiftedValue larger = from_a == 0   ? b[static_cast<std::size_t>(from_b - 1)]
                            : from_b == 0 ? a[static_cast<std::size_t>(from_a - 1)]
                                          : exchange(a[static_cast<std::size_t>(from_a - 1)],
                                                     b[static_cast<std::size_t>(from_b - 1)])
                                                .second;
      least = least ? exchange(*least, larger).first : larger;
    }
    return *least;
  }

  // Batcher's odd-even merge, for lists of any length.
  std::vector<ShiftedValue> merge(const std::vector<ShiftedValue>& a, const std::vector<ShiftedValue>& b) {
    if (a.empty()) return b;
    if (b.empty()) return a;
    if (a.size() == 1 && b.size() == 1) {
      const auto [low, high] = exchange(a[0], b[0]);
      return {low, high};
    }
    const std::vector<ShiftedValue> odd = merge(every_second(a, 0), every_second(b, 0));
    const std::vector<ShiftedValue> even = merge(every_second(a, 1), every_second(b, 1));
    std::vector<ShiftedValue> merged{odd[0]};
    std::size_t place = 1;
    for (; place < odd.size() && place <= even.size(); ++place) {
      const auto [low, high] = exchange(even[place - 1], odd[place]);
      merged.push_back(low);
      merged.push_back(high);
    }
    for (std::size_t rest = place; rest < odd.size(); ++rest) merged.push_back(odd[rest]);
    for (std::size_t rest = place - 1; rest < even.size(); ++rest) merged.push_back(even[rest]);
    return merged;
  }

  static std::vector<ShiftedValue> every_second(const std::vector<ShiftedValue>& list, std::size_t from) {
    std::vector<ShiftedValue> half;
    for (std::size_t i = from; i < list.size(); i += 2) half.push_back(list[i]);
    return half;
  }

  std::vector<ShiftedValue> sort(const std::vector<ShiftedValue>& list) {
    if (list.size() <= 1) return list;
    const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
    return merge(sort({list.begin(), middle}), sort({middle, list.end()}));
  }

  // An exchange that was made before, at any shift, is reused.
  std::pair<ShiftedValue, ShiftedValue> exchange(ShiftedValue a, ShiftedValue b) {
    const int base = std::min(a.shift, b.shift);
    a.shift -= base;
    b.shift -= base;
    if (std::pair(b.value, b.shift) < std::pair(a.value, a.shift)) std::swap(a, b);
    const auto [place, is_new] =
        known_.try_emplace({a.value, a.shift, b.value, b.shift}, static_cast<int>(made_.size()));
    if (is_new) {
      made_.push_back({a, b, values_, values_ + 1});
      values_ += 2;
    }
    const Made& made = made_[static_cast<std::size_t>(place->second)];
    return {{made.low, base}, {made.high, base}};
  }

  // Removes unused exchanges and reuses the storage of values that are no longer needed.
  void number(int radius, int rows, const std::vector<int>& outputs) {
    std::vector<int> extent(static_cast<std::size_t>(values_), -1);  // -1: unwanted
    std::vector<int> last_use(static_cast<std::size_t>(values_), -1);
    for (const int output : outputs) {
      extent[static_cast<std::size_t>(output)] = 0;
      last_use[static_cast<std::size_t>(output)] = static_cast<int>(made_.size());
    }
    for (int i = static_cast<int>(made_.size()) - 1; i >= 0; --i) {
      const Made& made = made_[static_cast<std::size_t>(i)];
      const int needed =
          std::max(extent[static_cast<std::size_t>(made.low)], extent[static_cast<std::size_t>(made.high)]);
      if (needed < 0) continue;
      for (const ShiftedValue& from : {made.first, made.second}) {
        int& of_source = extent[static_cast<std::size_t>(from.value)];
        of_source = std::max(of_source, needed + from.shift);
        int& last = last_use[static_cast<std::size_t>(from.value)];
        last = std::max(last, i);
      }
    }

    std::vector<int> place(static_cast<std::size_t>(values_), -1);
    for (int input = 0; input < inputs_; ++input) place[static_cast<std::size_t>(input)] = input;
    std::vector<int> free;
    int places = inputs_;
    const auto place_for = [&](int value) -> std::uint16_t {
      if (extent[static_cast<std::size_t>(value)] < 0) return Exchange::unwanted;
      int& to = place[static_cast<std::size_t>(value)];
      if (free.empty()) {
        to = places++;
      } else {
        to = free.back();
        free.pop_back();
      }
      return static_cast<std::uint16_t>(to);
    };
    network_ = {radius, rows, inputs_, 0, {}, {}};
    for (int i = 0; i < static_cast<int>(made_.size()); ++i) {
      const Made& made = made_[static_cast<std::size_t>(i)];
      const int needed =
          std::max(extent[static_cast<std::size_t>(made.low)], extent[static_cast<std::size_t>(made.high)]);
      if (needed < 0) continue;
      Exchange step{};
      step.first = static_cast<std::uint16_t>(place[static_cast<std::size_t>(made.first.value)]);
      step.second = static_cast<std::uint16_t>(place[static_cast<std::size_t>(made.second.value)]);
      step.first_shift = static_cast<std::uint16_t>(made.first.shift);
      step.second_shift = static_cast<std::uint16_t>(made.second.shift);
      step.extent = static_cast<std::uint16_t>(needed);
      // Rows are read from left to right and never to the left, so a result may replace its operand.
      for (const int value : {made.first.value, made.second.value}) {
        const bool ends = last_use[static_cast<std::size_t>(value)] == i && value >= inputs_;
        const int at = place[static_cast<std::size_t>(value)];
        if (ends && (free.empty() || free.back() != at)) free.push_back(at);
      }
      step.low = place_for(made.low);
      step.high = place_for(made.high);
      network_.exchanges.push_back(step);
    }
    network_.values = places;
    for (const int output : outputs) {
      network_.outputs.push_back(static_cast<std::uint16_t>(place[static_cast<std::size_t>(output)]));
    }
  }

  int side_;
  int images_;
  int rows_of_image_;
  int inputs_;
  int values_;
  std::vector<Made> made_;
  std::map<std::array<int, 4>, int> known_;
  MedianNetwork network_{};
};

// Sharing between more rows saves nothing.
int rows_at_once(int radius) { return radius < 5 ? 2 : radius < 9 ? 4 : 8; }

}  // namespace

const MedianNetwork& median_network(int radius, int images) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, MedianNetwork> networks;
  const std::lock_guard lock(mutex);
  const std::pair key(radius, images);
  const auto found = networks.find(key);
  if (found != networks.end()) return found->second;
  return networks.emplace(key, Builder(radius, images, rows_at_once(radius)).take()).first->second;
}

}  // namespace ungrain
