#include "view/preview.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ungrain/convert.h"
#include "ungrain/error.h"

namespace ungrain::cli::view {
namespace {

constexpr std::size_t variants_held = 6;
constexpr double longest_before_coarse = 0.5;  // seconds
constexpr double seconds_of_chunk = 0.35;
constexpr std::chrono::seconds longest_wait(10);
constexpr std::size_t most_begun = 64;

Part tile_part(const ImageSpec& spec, int x, int y) {
  return {x * tile_side, y * tile_side, std::min(spec.width, (x + 1) * tile_side),
          std::min(spec.height, (y + 1) * tile_side)};
}

int tiles_along(int pixels) { return (pixels + tile_side - 1) / tile_side; }

double pixels_of(const Part& tiles) {
  return static_cast<double>(tiles.width()) * tiles.height() * tile_side * tile_side;
}

// Tiles that a request names, as far as there are any; `own` where it names none.
Part within(const Part& tiles, const ImageSpec& spec, const Part& own) {
  const int across = tiles_along(spec.width);
  const int down = tiles_along(spec.height);
  const Part part{std::clamp(tiles.x0, 0, across), std::clamp(tiles.y0, 0, down),
                  std::clamp(tiles.x1, 0, across), std::clamp(tiles.y1, 0, down)};
  const bool has_own = part.x0 <= own.x0 && own.x1 <= part.x1 && part.y0 <= own.y0 && own.y1 <= part.y1;
  return has_own ? part : own;
}

// About `count` tiles of a rectangle around one of them.
Part around(const Part& own, const Part& tiles, int count) {
  const int across = std::clamp(count, 1, tiles.width());
  const int down = std::clamp(count / across, 1, tiles.height());
  const int x = std::clamp(own.x0 - across / 2, tiles.x0, tiles.x1 - across);
  const int y = std::clamp(own.y0 - down / 2, tiles.y0, tiles.y1 - down);
  return {x, y, x + across, y + down};
}

// A part of an image 2^steps times as large, from pixel (x0, y0) of the small one on.
Image enlarged(const ConstImageView& small, int x0, int y0, int steps, int width, int height) {
  ImageSpec spec = small.spec;
  spec.width = width;
  spec.height = height;
  Image large(spec);
  const auto from = static_cast<std::size_t>(small.spec.width);
  std::vector<float> upper(from);
  std::vector<float> lower(from);
  std::vector<float> row(static_cast<std::size_t>(width));
  const float scale = 1.0F / static_cast<float>(1 << steps);
  // Where a large pixel lies between the middles of two small ones.
  const auto between = [&](int first, int at, int size, int& left, int& right) {
    const float place = static_cast<float>(first) + (static_cast<float>(at) + 0.5F) * scale - 0.5F;
    left = std::clamp(static_cast<int>(std::floor(place)), 0, size - 1);
    right = std::min(left + 1, size - 1);
    return std::clamp(place - static_cast<float>(left), 0.0F, 1.0F);
  };
  for (int y = 0; y < height; ++y) {
    int top = 0;
    int bottom = 0;
    const float down = between(y0, y, small.spec.height, top, bottom);
    for (int channel = 0; channel < spec.channels; ++channel) {
      load_row(small, top, channel, upper.data());
      load_row(small, bottom, channel, lower.data());
      for (int x = 0; x < width; ++x) {
        int left = 0;
        int right = 0;
        const float across = between(x0, x, small.spec.width, left, right);
        const auto mixed = [&](const std::vector<float>& line) {
          return line[static_cast<std::size_t>(left)] * (1 - across) +
                 line[static_cast<std::size_t>(right)] * across;
        };
        row[static_cast<std::size_t>(x)] = mixed(upper) * (1 - down) + mixed(lower) * down;
      }
      store_row(large.view(), y, channel, row.data());
    }
  }
  return large;
}

std::string tile_name(const Picture& picture, const Arguments& words) {
  return fmt::format("{}/{}/{}/{}", picture.file().number, name(picture.document().treatment()),
                     picture.page(), fmt::join(words, "\n"));
}

}  // namespace

struct Preview::Waiting {
  Wish wish;
  std::string name;
  bool done = false;
  bool abandoned = false;
  CleanTile result = {};
  std::exception_ptr error = {};
  std::condition_variable told;
};

Preview::Preview(Device device, std::size_t memory) : device_(device), memory_(memory) {
  thread_ = std::thread([this] { work(); });
}

Preview::~Preview() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Preview::is_outdated(const Wish& wish) const {
  const auto last = turns_.find(wish.client);
  return last != turns_.end() && last->second > wish.turn;
}

std::shared_ptr<Variant> Preview::variant(const std::shared_ptr<Picture>& picture, const Arguments& words) {
  const std::string name = fmt::format("{}/{}", variant_scope(*picture), fmt::join(words, "\n"));
  const std::lock_guard lock(variants_mutex_);
  for (auto it = variants_.begin(); it != variants_.end(); ++it) {
    if (it->first != name) continue;
    variants_.splice(variants_.begin(), variants_, it);
    return it->second;
  }
  std::shared_ptr<Variant> made = make_variant(picture, words, device_);
  variants_.emplace_front(name, made);
  if (variants_.size() > variants_held) variants_.pop_back();
  return made;
}

std::shared_ptr<const Image> Preview::find(const Key& key) {
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  tiles_.splice(tiles_.begin(), tiles_, place->second);
  return place->second->second;
}

void Preview::keep(const Key& key, std::shared_ptr<const Image> tile) {
  const std::lock_guard lock(mutex_);
  if (places_.count(key) > 0) return;
  held_ += tile->bytes();
  tiles_.emplace_front(key, std::move(tile));
  places_[key] = tiles_.begin();
  while (held_ > memory_ && tiles_.size() > 1) {
    held_ -= tiles_.back().second->bytes();
    places_.erase(tiles_.back().first);
    tiles_.pop_back();
  }
}

CleanTile Preview::tile(const Wish& wish) {
  const auto waiting = std::make_shared<Waiting>();
  waiting->wish = wish;
  waiting->name = tile_name(*wish.picture, wish.words);
  std::unique_lock lock(mutex_);
  constexpr std::size_t most_clients = 1000;
  if (turns_.size() > most_clients) turns_.clear();
  std::int64_t& last = turns_[wish.client];
  last = std::max(last, wish.turn);
  if (last > wish.turn) throw Outdated{};
  if (auto found = find({waiting->name, wish.level, true, wish.x, wish.y})) return {found, true};
  if (!wish.exact) {
    if (auto found = find({waiting->name, wish.level, false, wish.x, wish.y})) return {found, false};
  }
  queue_.push_back(waiting);
  wake_.notify_all();
  waiting->told.wait_for(lock, longest_wait, [&] { return waiting->done || stopping_; });
  if (!waiting->done) {
    queue_.remove(waiting);
    waiting->abandoned = true;
    throw Outdated{};
  }
  if (waiting->error) std::rethrow_exception(waiting->error);
  return waiting->result;
}

std::shared_ptr<const Image> Preview::known_tile(const Picture& picture, const Arguments& words, int x,
                                                 int y) {
  const std::lock_guard lock(mutex_);
  return find({tile_name(picture, words), 0, true, x, y});
}

// One wish after the other; what takes long is done in parts, with others in between. Wishes of older turns
// are answered as outdated.
void Preview::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) {
      for (const auto& waiting : queue_) waiting->told.notify_all();
      return;
    }
    const std::shared_ptr<Waiting> next = queue_.front();
    queue_.pop_front();
    if (is_outdated(next->wish)) {
      next->error = std::make_exception_ptr(Outdated{});
    } else {
      bool complete = true;
      lock.unlock();
      try {
        complete = fulfil(*next);
      } catch (...) {
        next->error = std::current_exception();
      }
      lock.lock();
      if (!complete) {
        if (!next->abandoned) queue_.push_back(next);
        continue;
      }
    }
    next->done = true;
    next->told.notify_all();
  }
}

bool Preview::fulfil(Waiting& waiting) {
  const Wish& wish = waiting.wish;
  const Key exact{waiting.name, wish.level, true, wish.x, wish.y};
  const Key coarse{waiting.name, wish.level, false, wish.x, wish.y};
  const auto found = [&](const Key& key) {
    const std::lock_guard lock(mutex_);
    return find(key);
  };
  const auto take = [&](const Key& key, bool is_exact) {
    waiting.result = {found(key), is_exact};
    return waiting.result.pixels != nullptr;
  };
  if (take(exact, true) || (!wish.exact && take(coarse, false))) return true;
  const std::shared_ptr<Variant> settings = variant(wish.picture, wish.words);
  const ImageSpec& spec = wish.picture->level(wish.level).spec();
  const Part own{wish.x, wish.y, wish.x + 1, wish.y + 1};
  const Part shown = within(wish.view, spec, own);
  const double seconds = settings->seconds_for(bench_, pixels_of(shown) * std::pow(4.0, wish.level));
  if (!wish.exact && seconds > longest_before_coarse && wish.picture->levels() > 1) {
    compute_coarse(*settings, waiting.name, wish, shown);
    if (!take(coarse, false)) throw Error(ErrorCode::internal, "a tile is missing");
    return true;
  }
  if (wish.level == 0) {
    const double a_tile = settings->seconds_for(bench_, 1.5 * tile_side * tile_side);
    const int at_once = static_cast<int>(std::clamp(seconds_of_chunk / a_tile, 1.0, 1e6));
    compute_tiles(*settings, *wish.picture, waiting.name, 0, true, around(own, shown, at_once));
  } else if (!compute_strip(*settings, waiting.name, wish)) {
    return false;
  }
  if (!take(exact, true)) throw Error(ErrorCode::internal, "a tile is missing");
  return true;
}

// Tiles [tiles.x0, tiles.x1) of a level, together.
void Preview::compute_tiles(Variant& variant, Picture& picture, const std::string& name, int level,
                            bool exact, Part tiles) {
  const ImageSpec& spec = picture.level(level).spec();
  if (variant.needs_whole(bench_, picture, level))
    tiles = {0, 0, tiles_along(spec.width), tiles_along(spec.height)};
  const Part pixels{tiles.x0 * tile_side, tiles.y0 * tile_side, std::min(spec.width, tiles.x1 * tile_side),
                    std::min(spec.height, tiles.y1 * tile_side)};
  const Image clean = variant.denoise(bench_, picture, level, pixels);
  for (int y = tiles.y0; y < tiles.y1; ++y) {
    for (int x = tiles.x0; x < tiles.x1; ++x) {
      Part part = tile_part(spec, x, y);
      part = {part.x0 - pixels.x0, part.y0 - pixels.y0, part.x1 - pixels.x0, part.y1 - pixels.y0};
      keep({name, level, exact, x, y}, std::make_shared<const Image>(copied(clean.view(), part)));
    }
  }
}

// From a smaller picture that is denoised in a short time: the level's own where that is one, else enlarged.
void Preview::compute_coarse(Variant& variant, const std::string& name, const Wish& wish, const Part& shown) {
  int level = std::max(1, wish.level);
  const auto seconds = [&] {
    return variant.seconds_for(bench_, pixels_of(shown) / std::pow(4.0, level - wish.level));
  };
  while (level + 1 < wish.picture->levels() && seconds() > longest_before_coarse) ++level;
  const int steps = level - wish.level;
  const Key source{name, level, false, wish.x >> steps, wish.y >> steps};
  const auto found = [&] {
    const std::lock_guard lock(mutex_);
    return find(source);
  };
  if (!found()) {
    const Part small{shown.x0 >> steps, shown.y0 >> steps, ((shown.x1 - 1) >> steps) + 1,
                     ((shown.y1 - 1) >> steps) + 1};
    compute_tiles(variant, *wish.picture, name, level, false, small);
  }
  if (steps == 0) return;
  const std::shared_ptr<const Image> tile = found();
  if (!tile) throw Error(ErrorCode::internal, "a tile is missing");
  const Part part = tile_part(wish.picture->level(wish.level).spec(), wish.x, wish.y);
  const int mask = (1 << steps) - 1;
  const int side = tile_side >> steps;
  const int x0 = (wish.x & mask) * side;
  const int y0 = (wish.y & mask) * side;
  keep({name, wish.level, false, wish.x, wish.y},
       std::make_shared<const Image>(enlarged(tile->view(), x0, y0, steps, part.width(), part.height())));
}

// The next rows of a tile of a smaller level, from the full size. True: the tile is complete.
bool Preview::compute_strip(Variant& variant, const std::string& name, const Wish& wish) {
  const Key key{name, wish.level, true, wish.x, wish.y};
  const ImageSpec& full = wish.picture->level(0).spec();
  const Part part = tile_part(wish.picture->level(wish.level).spec(), wish.x, wish.y);
  const int factor = 1 << wish.level;
  const double row_seconds = variant.seconds_for(bench_, 1.2 * part.width() * factor);
  int strip = static_cast<int>(seconds_of_chunk / std::max(1e-9, row_seconds)) / factor;
  strip = variant.needs_whole(bench_, *wish.picture, 0)
              ? part.height()
              : std::clamp(strip, std::min(16, part.height()), part.height());
  if (begun_.size() > most_begun) begun_.clear();
  Begun& begun = begun_[key];
  const int first = part.y0 + begun.rows;
  const int end = std::min(part.y1, first + strip);
  const Part pixels{part.x0 * factor, first * factor, std::min(full.width, part.x1 * factor),
                    std::min(full.height, end * factor)};
  Image clean = variant.denoise(bench_, *wish.picture, 0, pixels);
  for (int level = 0; level < wish.level; ++level) clean = halved(std::as_const(clean).view());
  if (!begun.tile) {
    ImageSpec spec = clean.spec();
    spec.width = part.width();
    spec.height = part.height();
    begun.tile = std::make_shared<Image>(spec);
  }
  for (int row = 0; row < end - first; ++row)
    copy_pixels(std::as_const(clean).view(), row, begun.tile->view(), begun.rows + row);
  begun.rows += end - first;
  if (end < part.y1) return false;
  keep(key, begun.tile);
  begun_.erase(key);
  return true;
}

}  // namespace ungrain::cli::view
