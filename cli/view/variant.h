// A page, volume or scene with settings: parameters with its noise, as a file is saved with them, and
// denoised parts of its pages.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "commands.h"
#include "denoiser_pool.h"
#include "ungrain/denoiser.h"
#include "view/picture.h"

namespace ungrain::cli::view {

// The denoisers of the thread that makes previews. Settings of one picture share them: their memory, slow to
// get on a GPU, is allocated once.
class Workbench {
 public:
  // `owner` tells whether the denoiser has the parameters already; `fresh` becomes true where it had not.
  Denoiser& denoiser(const std::shared_ptr<const int>& owner, const MethodParams& params,
                     const ImageSpec& spec, const Options& options, bool* fresh = nullptr);
  // Of a kind of work, by its last run; a guess where there was none.
  double seconds_per_pixel(const std::string& work) const;
  void note_speed(const std::string& work, double seconds_per_pixel) { speeds_[work] = seconds_per_pixel; }

 private:
  DenoiserPool pool_{3};
  DenoiserPool::Loan loan_;
  std::map<std::string, double> speeds_;
  std::weak_ptr<const int> owner_;
};

// Used by the thread that makes previews, but for params() and noise_text().
class Variant {
 public:
  virtual ~Variant() = default;

  const MethodParams& params() const { return *params_; }
  const std::string& noise_text() const { return noise_text_; }

  // Denoised pixels of a level of a page. Level 0 has the samples that are saved (of luma and chroma: as
  // they are shown); smaller ones are denoised as pictures of their own: a coarse preview.
  Image denoise(Workbench& bench, Picture& picture, int level, const Part& part);
  virtual bool needs_whole(Workbench& bench, const Picture& picture, int level) = 0;
  // For so many pixels of a result, by runs before.
  double seconds_for(const Workbench& bench, double pixels) const;

 protected:
  Variant(const Options& options, const Device& device);
  virtual Image make(Workbench& bench, Picture& picture, const Part& part) = 0;
  virtual Image make_coarse(Workbench& bench, Picture& picture, int level, const Part& part) = 0;
  // Pixels that are filtered for so many of a result.
  virtual double work_of(double pixels) const { return pixels; }
  virtual std::string work() const { return std::string(params_->method()); }
  const Options& options() const { return options_; }
  const std::shared_ptr<const int>& owner() const { return owner_; }
  // Notes the speed of a run that filters so many pixels.
  template <class Run>
  void timed(Workbench& bench, double pixels, Run run) const {
    const auto start = std::chrono::steady_clock::now();
    run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    constexpr double enough = 256.0 * 256.0;  // fewer tell more of the start than of the speed
    if (pixels >= enough) bench.note_speed(work(), seconds / pixels);
  }
  // A coarse preview of a part: it is filtered as if it were a picture of its own, with a little around it.
  Image denoised_alone(Workbench& bench, const MethodParams& params, const Image& image,
                       const Part& part) const;
  // A part of one image by itself.
  Image denoised(Workbench& bench, Denoiser& denoiser, const ConstImageView& image, const ImageSpec& written,
                 const Part& part) const;

  std::optional<MethodParams> params_;
  std::string noise_text_;

 private:
  Options options_;
  std::shared_ptr<const int> owner_ = std::make_shared<const int>(0);
};

// `words` name no files but those that the server has written itself. Throws Outdated where the clip is not
// read as far as that.
std::shared_ptr<Variant> make_variant(const std::shared_ptr<Picture>& picture, const Arguments& words,
                                      const Device& device);
// The same for pages that share variants: those of one volume, or of one scene.
std::string variant_scope(const Picture& picture);

}  // namespace ungrain::cli::view
