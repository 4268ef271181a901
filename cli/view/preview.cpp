#include "view/preview.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/convert.h"
#include "files.h"
#include "ungrain/error.h"
#include "view/request.h"

namespace ungrain::cli::view {
namespace {

constexpr std::size_t variants_held = 6;
constexpr double longest_before_coarse = 0.5;  // seconds
constexpr double seconds_of_chunk = 0.35;

Part tile_part(const ImageSpec& spec, int x, int y) {
  return {x * tile_side, y * tile_side, std::min(spec.width, (x + 1) * tile_side),
          std::min(spec.height, (y + 1) * tile_side)};
}

Part all_of(const ImageSpec& spec) { return {0, 0, spec.width, spec.height}; }

template <class View>
View cut(View view, const Part& part, const ImageSpec& whole) {
  view.data = static_cast<std::conditional_t<std::is_same_v<View, ImageView>, std::byte*, const std::byte*>>(
                  view.data) +
              part.x0 * view.strides.x + part.y0 * view.strides.y;
  view.spec.width = part.width();
  view.spec.height = part.height();
  view.region = {part.x0, part.y0, whole.width, whole.height};
  return view;
}

Image copied(const ConstImageView& from, const Part& part) {
  ImageSpec spec = from.spec;
  spec.width = part.width();
  spec.height = part.height();
  Image copy(spec);
  ConstImageView view = from;
  view.data = static_cast<const std::byte*>(view.data) + part.x0 * view.strides.x + part.y0 * view.strides.y;
  view.spec = spec;
  for (int y = 0; y < spec.height; ++y) copy_pixels(view, y, copy.view(), y);
  return copy;
}

std::string variant_name(const Picture& picture, const Arguments& words) {
  return fmt::format("{}/{}/{}", picture.file().number, picture.page(), fmt::join(words, "\n"));
}

}  // namespace

Variant::Variant(std::shared_ptr<Picture> picture, const Arguments& words, const Device& device)
    : picture_(std::move(picture)),
      request_(read_request(words, MethodOptions::For::images)),
      device_(device) {
  Settings& settings = request_->settings();
  if (settings.options.device.kind != Device::Kind::automatic) device_ = settings.options.device;
  OpenedFile opened(picture_->file().path, request_->method(), settings, 0);
  const fs::path result = picture_->file().path.stem().string() + result_extension(picture_->file().path);
  written_ = output_info(opened.info(), result, settings).spec;
  opened.input().select_page(picture_->page());
  PageRows rows(opened.input(), false);
  const bool same = opened.spec() == picture_->spec();
  const std::lock_guard lock(picture_->noise_mutex());
  const bool measures = opened.params().needs_image() && same;
  MeasuredPage measured = opened.measure(rows, picture_->page(), measures ? &picture_->noise(0) : nullptr);
  noise_text_ = measured.text;
  const bool left = measured.noise && opened.visibility(*measured.noise, written_) != Visibility::visible;
  params_ = left ? without_effect(measured.params) : measured.params;
  Level& level = levels_[0];
  level.spec = opened.spec();
}

Variant::Level& Variant::prepared(int number) {
  Level& level = levels_[number];
  if (level.denoiser) return level;
  MethodParams params = *params_;
  if (number > 0) {
    level.spec = picture_->level(number).spec();
    const std::lock_guard lock(picture_->noise_mutex());
    MethodParams asked = request_->method().for_image(level.spec);
    NoiseHandling handling = request_->settings().noise.for_image(level.spec);
    handling.model = nullptr;  // of the full size
    asked.set_noise(std::move(handling));
    params = picture_->noise(number).resolve(asked).params;
  }
  Options options = request_->settings().options;
  options.device = device_;
  options.images = 0;
  level.denoiser.emplace(Denoiser::create(params, level.spec, options));
  return level;
}

bool Variant::needs_whole(int number) {
  const Reach reach = prepared(number).denoiser->reach();
  return reach.whole || reach.x > tile_side * 4;
}

double Variant::seconds_for(int, double pixels) const {
  constexpr double guess = 4e-7;  // bm3d on two processors
  return pixels * (seconds_per_pixel_ > 0 ? seconds_per_pixel_ : guess);
}

Image Variant::denoise(int number, const Part& part) {
  Level& level = prepared(number);
  const Reach reach = level.denoiser->reach();
  Part around{std::max(0, part.x0 - reach.x), std::max(0, part.y0 - reach.y),
              std::min(level.spec.width, part.x1 + reach.x), std::min(level.spec.height, part.y1 + reach.y)};
  if (reach.whole) around = all_of(level.spec);
  ConstImageView pixels = std::as_const(picture_->level(number)).view();
  pixels.spec = level.spec;
  ImageSpec out_spec = number == 0 ? written_ : level.spec;
  out_spec.width = part.width();
  out_spec.height = part.height();
  Image result(out_spec);
  ImageView out = result.view();
  out.region = {part.x0, part.y0, level.spec.width, level.spec.height};
  const auto start = std::chrono::steady_clock::now();
  level.denoiser->run(cut(pixels, around, level.spec), out);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double done = static_cast<double>(around.width()) * around.height();
  if (number == 0 && done >= tile_side * tile_side) seconds_per_pixel_ = seconds / done;
  return result;
}

struct Preview::Waiting {
  Wish wish;
  std::string name;
  bool done = false;
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
  const std::string name = variant_name(*picture, words);
  const std::lock_guard lock(variants_mutex_);
  for (auto it = variants_.begin(); it != variants_.end(); ++it) {
    if (it->first != name) continue;
    variants_.splice(variants_.begin(), variants_, it);
    return it->second;
  }
  auto made = std::make_shared<Variant>(picture, words, device_);
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
  waiting->name = variant_name(*wish.picture, wish.words);
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
  waiting->told.wait(lock, [&] { return waiting->done || stopping_; });
  if (!waiting->done) throw Outdated{};
  if (waiting->error) std::rethrow_exception(waiting->error);
  return waiting->result;
}

// The first wish of the newest turn; wishes of older turns are answered as outdated.
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
      lock.unlock();
      try {
        fulfil(*next);
      } catch (...) {
        next->error = std::current_exception();
      }
      lock.lock();
    }
    next->done = true;
    next->told.notify_all();
  }
}

void Preview::fulfil(Waiting& waiting) {
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
  if (take(exact, true) || (!wish.exact && take(coarse, false))) return;
  const std::shared_ptr<Variant> settings = variant(wish.picture, wish.words);
  const ImageSpec& spec = wish.picture->level(wish.level).spec();
  const Part own{wish.x, wish.y, wish.x + 1, wish.y + 1};
  const Part shown = wish.view.empty() ? own : wish.view;
  if (wish.level == 0) {
    compute_tiles(*settings, waiting.name, 0, true, shown);
    if (!take(exact, true)) compute_tiles(*settings, waiting.name, 0, true, own);
    if (!take(exact, true)) throw Error(ErrorCode::internal, "a tile is missing");
    return;
  }
  const double pixels =
      static_cast<double>(shown.width()) * shown.height() * tile_side * tile_side * std::pow(4.0, wish.level);
  const double all = static_cast<double>(spec.width) * spec.height * std::pow(4.0, wish.level);
  const bool quick = settings->seconds_for(0, std::min(pixels, all)) <= longest_before_coarse;
  if (!wish.exact && !quick) {
    compute_tiles(*settings, waiting.name, wish.level, false, shown);
    if (!take(coarse, false)) compute_tiles(*settings, waiting.name, wish.level, false, own);
    if (take(coarse, false)) return;
    throw Error(ErrorCode::internal, "a tile is missing");
  }
  compute_exact_small(*settings, waiting.name, wish);
  if (!take(exact, true)) throw Error(ErrorCode::internal, "a tile is missing");
}

// Tiles [tiles.x0, tiles.x1) of a level that are not held yet, as many at once as take a short time.
void Preview::compute_tiles(Variant& variant, const std::string& name, int level, bool exact,
                            const Part& tiles) {
  const ImageSpec& spec = variant.picture().level(level).spec();
  const int across = (spec.width + tile_side - 1) / tile_side;
  const int down = (spec.height + tile_side - 1) / tile_side;
  Part wanted{std::clamp(tiles.x0, 0, across), std::clamp(tiles.y0, 0, down), std::clamp(tiles.x1, 0, across),
              std::clamp(tiles.y1, 0, down)};
  if (variant.needs_whole(level)) wanted = {0, 0, across, down};
  if (wanted.empty()) return;
  const auto missing = [&](int x, int y) {
    const std::lock_guard lock(mutex_);
    return places_.count({name, level, exact, x, y}) == 0;
  };
  const double a_tile = variant.seconds_for(level, tile_side * tile_side * 1.5);
  int rows = std::max(1, static_cast<int>(seconds_of_chunk / std::max(1e-9, a_tile * wanted.width())));
  if (variant.needs_whole(level)) rows = down;
  for (int y = wanted.y0; y < wanted.y1;) {
    Part chunk{wanted.x1, y, wanted.x0, std::min(wanted.y1, y + rows)};
    for (int ty = chunk.y0; ty < chunk.y1; ++ty) {
      for (int tx = wanted.x0; tx < wanted.x1; ++tx) {
        if (!missing(tx, ty)) continue;
        chunk.x0 = std::min(chunk.x0, tx);
        chunk.x1 = std::max(chunk.x1, tx + 1);
      }
    }
    y = chunk.y1;
    if (chunk.empty()) continue;
    const Part pixels{chunk.x0 * tile_side, chunk.y0 * tile_side, std::min(spec.width, chunk.x1 * tile_side),
                      std::min(spec.height, chunk.y1 * tile_side)};
    const Image clean = variant.denoise(level, pixels);
    for (int ty = chunk.y0; ty < chunk.y1; ++ty) {
      for (int tx = chunk.x0; tx < chunk.x1; ++tx) {
        Part part = tile_part(spec, tx, ty);
        part = {part.x0 - pixels.x0, part.y0 - pixels.y0, part.x1 - pixels.x0, part.y1 - pixels.y0};
        keep({name, level, exact, tx, ty}, std::make_shared<const Image>(copied(clean.view(), part)));
      }
    }
  }
}

// A tile of a smaller level from the full size, in strips. Gives up where the wish is outdated.
void Preview::compute_exact_small(Variant& variant, const std::string& name, const Wish& wish) {
  const ImageSpec& full = variant.picture().level(0).spec();
  const ImageSpec& small = variant.picture().level(wish.level).spec();
  const Part part = tile_part(small, wish.x, wish.y);
  const int factor = 1 << wish.level;
  std::shared_ptr<Image> tile;
  const double row_seconds = variant.seconds_for(0, 1.2 * part.width() * factor);
  int strip = static_cast<int>(seconds_of_chunk / std::max(1e-9, row_seconds)) / factor;
  strip = variant.needs_whole(0) ? part.height() : std::clamp(strip, 16, part.height());
  for (int y = part.y0; y < part.y1; y += strip) {
    {
      const std::lock_guard lock(mutex_);
      if (is_outdated(wish) || stopping_) throw Outdated{};
    }
    const int end = std::min(part.y1, y + strip);
    const Part pixels{part.x0 * factor, y * factor, std::min(full.width, part.x1 * factor),
                      std::min(full.height, end * factor)};
    Image clean = variant.denoise(0, pixels);
    for (int level = 0; level < wish.level; ++level) clean = halved(std::as_const(clean).view());
    if (!tile) {
      ImageSpec spec = clean.spec();
      spec.width = part.width();
      spec.height = part.height();
      tile = std::make_shared<Image>(spec);
    }
    for (int row = 0; row < end - y; ++row)
      copy_pixels(std::as_const(clean).view(), row, tile->view(), y - part.y0 + row);
  }
  keep({name, wish.level, true, wish.x, wish.y}, tile);
}

}  // namespace ungrain::cli::view
