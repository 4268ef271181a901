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

#include "denoise_request.h"
#include "denoiser_pool.h"
#include "ungrain/denoiser.h"
#include "view/picture.h"

namespace ungrain::cli::view {

inline constexpr int tile_side = 256;

class Workbench;

// A picture with settings: parameters with the noise of this picture, as a file is saved with them.
class Variant {
 public:
  // `words` name no files but those that the server has written itself.
  Variant(std::shared_ptr<Picture> picture, const Arguments& words, const Device& device);

  Picture& picture() { return *picture_; }
  const MethodParams& params() const { return *params_; }
  const std::string& noise_text() const { return noise_text_; }
  // Denoised pixels of a level. Level 0 has the samples that are saved; smaller ones are denoised as pictures
  // of their own: a coarse preview.
  Image denoise(Workbench& bench, int level, const Part& part);
  bool needs_whole(Workbench& bench, int level);  // whether no part can be denoised by itself
  double seconds_for(const Workbench& bench, double pixels) const;  // of level 0, by runs before

 private:
  friend class Workbench;
  struct Level {
    ImageSpec spec;
    MethodParams params;
  };
  const Level& prepared(int level);

  std::shared_ptr<Picture> picture_;
  std::unique_ptr<DenoiseRequest> request_;
  Device device_;
  ImageSpec written_;
  std::optional<MethodParams> params_;
  std::string noise_text_;
  std::map<int, Level> levels_;
  std::shared_ptr<const int> identity_ = std::make_shared<const int>(0);
};

// The denoisers of the thread that makes previews. Settings of one picture share them: their memory, slow to
// get on a GPU, is allocated once.
class Workbench {
 public:
  Denoiser& denoiser_for(Variant& variant, int level);
  // Of a method, by its last run; a guess where there was none.
  double seconds_per_pixel(const std::string& method) const;
  void note_speed(const std::string& method, double seconds_per_pixel) {
    speeds_[method] = seconds_per_pixel;
  }

 private:
  DenoiserPool pool_{3};
  DenoiserPool::Loan loan_;
  std::map<std::string, double> speeds_;
  std::weak_ptr<const int> variant_;  // whose parameters the denoiser has, and of which level
  int level_ = 0;
};

struct CleanTile {
  std::shared_ptr<const Image> pixels;  // of the part that was asked for
  bool exact = true;
};

// Thrown where newer requests of the same window have come, or where a tile takes so long that it is to be
// asked for again: nobody knows whether somebody still waits.
struct Outdated {};

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
  // The settings' parameters for a picture: for what the page says about them.
  std::shared_ptr<Variant> variant(const std::shared_ptr<Picture>& picture, const Arguments& words);

 private:
  struct Waiting;
  using Key = std::tuple<std::string, int, bool, int, int>;  // variant, level, exact, x, y

  void work();
  bool fulfil(Waiting& waiting);  // false: a part is done, the rest is for later
  bool is_outdated(const Wish& wish) const;
  std::shared_ptr<const Image> find(const Key& key);
  void keep(const Key& key, std::shared_ptr<const Image> tile);
  void compute_tiles(Variant& variant, const std::string& name, int level, bool exact, Part tiles);
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
