// Denoised parts of pictures, for the screen: what was asked for last comes first, and what nobody waits for
// any more is dropped.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "commands.h"
#include "ungrain/denoiser.h"
#include "view/variant.h"

namespace ungrain::cli::view {

inline constexpr int tile_side = 256;

struct CleanTile {
  std::shared_ptr<const Image> pixels;  // of the part that was asked for
  bool exact = true;
};

class Preview {
 public:
  Preview(Device device, std::size_t memory);
  ~Preview();
  Preview(const Preview&) = delete;
  Preview& operator=(const Preview&) = delete;

  struct Wish {
    std::shared_ptr<Picture> picture;
    Arguments words;
    int level = 0;
    int x = 0;  // of the tile
    int y = 0;
    bool exact = false;  // else a coarse one will do where the exact one takes long
    Part view = {};      // what the screen shows, in tiles of the level: done together; empty: not known
    std::string client;
    std::int64_t turn = 0;
  };
  // Waits for the tile. Throws Outdated, or what went wrong.
  CleanTile tile(const Wish& wish);
  // An exact tile of the full size that is there already; null: it is not.
  std::shared_ptr<const Image> known_tile(const Picture& picture, const Arguments& words, int x, int y);
  // The settings' parameters for a picture: for what the page says about them.
  std::shared_ptr<Variant> variant(const std::shared_ptr<Picture>& picture, const Arguments& words);

 private:
  struct Waiting;
  using Key = std::tuple<std::string, int, bool, int, int>;  // page and words, level, exact, x, y

  void work();
  bool fulfil(Waiting& waiting);  // false: a part is done, the rest is for later
  bool is_outdated(const Wish& wish) const;
  std::shared_ptr<const Image> find(const Key& key);
  void keep(const Key& key, std::shared_ptr<const Image> tile);
  void compute_tiles(Variant& variant, Picture& picture, const std::string& name, int level, bool exact,
                     Part tiles);
  void compute_coarse(Variant& variant, const std::string& name, const Wish& wish, const Part& shown);
  bool compute_strip(Variant& variant, const std::string& name, const Wish& wish);

  Device device_;
  std::size_t memory_;
  mutable std::mutex mutex_;  // for all that follows
  std::condition_variable wake_;
  std::list<std::shared_ptr<Waiting>> queue_;
  std::map<std::string, std::int64_t> turns_;                      // the last one of each client
  std::list<std::pair<Key, std::shared_ptr<const Image>>> tiles_;  // the last used first
  std::map<Key, decltype(tiles_)::iterator> places_;
  std::size_t held_ = 0;
  std::list<std::pair<std::string, std::shared_ptr<Variant>>> variants_;  // the last used first
  std::mutex variants_mutex_;
  bool stopping_ = false;
  // Of the thread alone:
  Workbench bench_;
  struct Begun {
    std::shared_ptr<Image> tile;
    int rows = 0;  // that are done
  };
  std::map<Key, Begun> begun_;  // tiles that are made in strips
  std::thread thread_;
};

}  // namespace ungrain::cli::view
