#include "view/variant.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include <fmt/format.h>

#include "clip_slices.h"
#include "denoise_raw.h"
#include "denoise_request.h"
#include "files.h"
#include "io/raw_file.h"
#include "opened_file.h"
#include "page_rows.h"
#include "signals.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "ungrain/video.h"
#include "ungrain/volume.h"
#include "video_request.h"
#include "view/clip_document.h"
#include "view/request.h"

namespace ungrain::cli::view {
namespace {

// Results whose pixels look farther than this are made as a whole.
constexpr int far_reach = 1024;

Part all_of(const ImageSpec& spec) { return {0, 0, spec.width, spec.height}; }

Part grown(const Part& part, const Reach& reach, const ImageSpec& spec) {
  if (reach.whole) return all_of(spec);
  return {std::max(0, part.x0 - reach.x), std::max(0, part.y0 - reach.y),
          std::min(spec.width, part.x1 + reach.x), std::min(spec.height, part.y1 + reach.y)};
}

ConstImageView cut(const ConstImageView& image, const Part& part, const ImageSpec& whole) {
  ConstImageView view = part_view(image, part);
  view.region = {part.x0, part.y0, whole.width, whole.height};
  return view;
}

ImageSpec sized(ImageSpec spec, const Part& part) {
  spec.width = part.width();
  spec.height = part.height();
  return spec;
}

// The settings of an image or a volume, and what a file with them is opened and saved with.
struct ImageSettings {
  std::unique_ptr<DenoiseRequest> request;
  std::unique_ptr<OpenedFile> opened;
  ImageSpec written;

  ImageSettings(const Document& document, const Arguments& words)
      : request(read_request(words, methods_of(document.treatment()))),
        opened(
            std::make_unique<OpenedFile>(document.file().path, request->method(), request->settings(), 0)) {
    const fs::path& path = document.file().path;
    const fs::path result = path.stem().string() + result_extension(path);
    written = output_info(opened->info(), result, request->settings()).spec;
  }

  // The parameters of a page or volume. `known` is its noise, where it was measured before. Where that is too
  // weak, the page is left as it is, unless it stands for all pages of the file.
  MeasuredPage measured(int page, MeasuredNoise* known, bool by_itself = true) {
    opened->input().select_page(page);
    PageRows rows(opened->input(), false);
    MeasuredPage found = opened->measure(rows, page, known);
    const bool left =
        by_itself && found.noise && opened->visibility(*found.noise, written) != Visibility::visible;
    if (left) found.params = without_effect(found.params);
    return found;
  }
};

// Parameters for a smaller copy, with the noise of that copy.
MethodParams coarse_params(const MethodOptions& method, const NoiseOptions& noise, Picture& picture,
                           int level) {
  const ImageSpec& spec = picture.level(level).spec();
  MethodParams asked = method.for_image(spec);
  NoiseHandling handling = noise.for_image(spec);
  handling.model = nullptr;  // of the full size
  asked.set_noise(std::move(handling));
  const std::lock_guard lock(picture.noise_mutex());
  return picture.noise(level).resolve(asked).params;
}

// ---- A page by itself

class PageVariant : public Variant {
 public:
  PageVariant(Picture& picture, ImageSettings settings, const Device& device)
      : Variant(settings.request->settings().options, device), settings_(std::move(settings)) {
    const bool same = settings_.opened->spec() == picture.spec();
    const std::lock_guard lock(picture.noise_mutex());
    const bool measures = settings_.opened->params().needs_image() && same;
    MeasuredPage found = settings_.measured(picture.page(), measures ? &picture.noise(0) : nullptr);
    noise_text_ = found.text;
    params_ = std::move(found.params);
    spec_ = settings_.opened->spec();
  }

  bool needs_whole(Workbench& bench, const Picture& /*picture*/, int level) override {
    if (level > 0) return false;
    const Reach reach = denoiser(bench).reach();
    return reach.whole || reach.x > far_reach;
  }

 protected:
  Image make(Workbench& bench, Picture& picture, const Part& part) override {
    return denoised(bench, denoiser(bench), picture.pixels().view(), settings_.written, part);
  }
  Image make_coarse(Workbench& bench, Picture& picture, int level, const Part& part) override {
    auto known = coarse_.find(level);
    if (known == coarse_.end()) {
      known = coarse_
                  .emplace(level, coarse_params(settings_.request->method(),
                                                settings_.request->settings().noise, picture, level))
                  .first;
    }
    return denoised_alone(bench, known->second, picture.level(level), part);
  }

 private:
  Denoiser& denoiser(Workbench& bench) { return bench.denoiser(owner(), *params_, spec_, options()); }

  ImageSettings settings_;
  ImageSpec spec_;
  std::map<int, MethodParams> coarse_;
};

// ---- Camera raw files: the mosaic is filtered, and developed

class RawVariant : public Variant {
 public:
  RawVariant(const Document& document, ImageSettings settings, const Device& device)
      : Variant(settings.request->settings().options, device), settings_(std::move(settings)) {
    params_ =
        params_for_mosaic(settings_.opened->params(), settings_.request->settings(), document.file().name);
    noise_text_ = "as the file says, or measured in the sensor's data";
  }

  bool needs_whole(Workbench& /*bench*/, const Picture& /*picture*/, int level) override {
    return level == 0;
  }

 protected:
  std::string work() const override { return std::string(params_->method()) + " of a mosaic"; }

  Image make(Workbench& bench, Picture& picture, const Part& part) override {
    if (!photograph_) {
      auto& raw = dynamic_cast<io::RawFile&>(settings_.opened->input());
      const ImageSpec& spec = picture.spec();
      Outcome outcome;
      timed(bench, static_cast<double>(spec.width) * spec.height, [&] {
        const Image samples = filter_mosaic(raw, *params_, options(), outcome);
        photograph_ = raw.develop(samples.view(), developed_type);
      });
    }
    return copied(std::as_const(*photograph_).view(), part);
  }

  Image make_coarse(Workbench& bench, Picture& picture, int level, const Part& part) override {
    const MethodParams params =
        coarse_params(settings_.request->method(), settings_.request->settings().noise, picture, level);
    return denoised_alone(bench, params, picture.level(level), part);
  }

 private:
  ImageSettings settings_;
  std::optional<Image> photograph_;
};

// ---- Pages with those before and after them: frames, slices, and images with --radius-t

// Parameters of a method that is to look at one image alone.
void look_at_one(MethodParams& params) {
  for (const ParamInfo& info : method_info(params.method()).params) {
    if (info.name == "radius_t") params.set("radius_t", 0.0);
  }
}

class SequenceVariant : public Variant, private SliceReader {
 public:
  struct Made {
    MethodParams params;
    std::string noise_text;
    MethodOptions const* method;
    NoiseOptions const* noise;
    ImageSpec spec;
    ImageSpec written;
    std::shared_ptr<const void> kept;  // what the pointers point into
  };

  SequenceVariant(std::shared_ptr<Document> document, int first, Made made, const Options& options,
                  const Device& device)
      : Variant(options, device), document_(std::move(document)), first_(first), made_(std::move(made)) {
    params_ = made_.params;
    noise_text_ = made_.noise_text;
  }

  bool needs_whole(Workbench& bench, const Picture& /*picture*/, int level) override {
    if (level > 0) return false;
    const Reach reach = full_denoiser(bench).reach();
    return reach.whole || reach.x > far_reach;
  }

 protected:
  std::string work() const override { return std::string(params_->method()) + " of a sequence"; }

  Image make(Workbench& bench, Picture& picture, const Part& part) override {
    const int page = picture.page();
    if (whole_page_ == page) return copied(std::as_const(*whole_).view(), part);
    Denoiser& denoiser = full_denoiser(bench);
    const Reach reach = denoiser.reach();
    span_ = span_around(page, reach);
    const double share = static_cast<double>(part.width()) * part.height() /
                         (static_cast<double>(made_.spec.width) * made_.spec.height);
    // Playing, and most of a frame: what one frame has in common with the next is kept.
    const bool whole = share > 0.5 || page == last_page_ + 1;
    last_page_ = page;
    if (!whole) return shown(window_result(bench, denoiser, page, reach, part), part);
    Image result(made_.written);
    const double pixels = static_cast<double>(made_.spec.width) * made_.spec.height;
    timed(bench, pixels, [&] { denoiser.run(*this, page - first_, result.view()); });
    whole_ = in_colours(std::move(result));
    whole_page_ = page;
    return copied(std::as_const(*whole_).view(), part);
  }

  Image make_coarse(Workbench& bench, Picture& picture, int level, const Part& part) override {
    MethodParams params = coarse_params(*made_.method, *made_.noise, picture, level);
    look_at_one(params);
    return denoised_alone(bench, params, picture.level(level), part);
  }

 private:
  struct Result {
    Image pixels;
    Part part;
  };

  Denoiser& full_denoiser(Workbench& bench) {
    bool fresh = false;
    Denoiser& denoiser = bench.denoiser(owner(), *params_, made_.spec, options(), &fresh);
    if (fresh) denoiser.forget_slices();
    return denoiser;
  }

  PageSpan span_around(int page, const Reach& reach) {
    if (auto* clip = dynamic_cast<ClipDocument*>(document_.get()))
      return clip->scene(page, page + reach.after + 2);
    if (document_->treatment() == Treatment::volume) return document_->span_of(page);
    return {0, document_->pages()};
  }

  Result window_result(Workbench& bench, Denoiser& denoiser, int page, const Reach& reach, Part part) {
    if (made_.spec.colour == Colour::ycbcr) {  // parts of such frames are full rows, from a row of chroma on
      const int step = made_.spec.chroma.y;
      part = {0, part.y0 / step * step, made_.spec.width,
              std::min(made_.spec.height, (part.y1 + step - 1) / step * step)};
    }
    Part around = grown(part, reach, made_.spec);
    if (made_.spec.colour == Colour::ycbcr) {
      const int step = made_.spec.chroma.y;
      around = {0, around.y0 / step * step, made_.spec.width,
                std::min(made_.spec.height, (around.y1 + step - 1) / step * step)};
    }
    const int begin = std::max(span_.first, page - reach.before);
    const int end = std::min(span_.end, page + reach.after + 1);
    std::vector<std::shared_ptr<const Image>> images;
    std::vector<ConstImageView> views;
    for (int each = begin; each < end; ++each) {
      images.push_back(page_pixels(each));
      ConstImageView view = images.back()->view();
      view.spec = made_.spec;
      views.push_back(cut(view, around, made_.spec));
    }
    Result result{Image(sized(made_.written, part)), part};
    ImageView out = result.pixels.view();
    out.region = {part.x0, part.y0, made_.spec.width, made_.spec.height};
    const double pixels = static_cast<double>(around.width()) * around.height();
    timed(bench, pixels, [&] { denoiser.run(views, page - begin, out); });
    return result;
  }

  Image in_colours(Image pixels) const {
    const std::optional<FrameColours> colours = document_->colours();
    if (!colours) return pixels;
    return to_rgb(std::as_const(pixels).view(), *colours);
  }
  Image shown(Result result, const Part& part) const {
    const Part inner{part.x0 - result.part.x0, part.y0 - result.part.y0, part.x1 - result.part.x0,
                     part.y1 - result.part.y0};
    const Image coloured = in_colours(std::move(result.pixels));
    return copied(coloured.view(), inner);
  }

  // The last pages that were looked at.
  std::shared_ptr<const Image> page_pixels(int page) {
    for (const auto& [number, pixels] : held_) {
      if (number == page) return pixels;
    }
    constexpr std::size_t most = 24;
    if (held_.size() >= most) held_.pop_front();
    held_.emplace_back(page, std::make_shared<const Image>(document_->read(page)));
    return held_.back().second;
  }

  bool has(int slice) override { return first_ + slice < span_.end; }
  void read_rows(int slice, int first, const ImageView& rows) override {
    const std::shared_ptr<const Image> pixels = page_pixels(first_ + slice);
    ConstImageView view = pixels->view();
    view.spec = made_.spec;
    copy_rows(view.rows(first, rows.spec.height), rows);
  }

  std::shared_ptr<Document> document_;
  int first_;  // page of the sequence
  Made made_;
  PageSpan span_;
  std::deque<std::pair<int, std::shared_ptr<const Image>>> held_;
  int last_page_ = -2;
  int whole_page_ = -1;
  std::optional<Image> whole_;  // the page that was made last
};

// ---- Volumes as solids

class SolidVariant : public Variant {
 public:
  SolidVariant(std::shared_ptr<VolumeDocument> document, int volume, ImageSettings settings,
               const Device& device)
      : Variant(settings.request->settings().options, device),
        document_(std::move(document)),
        volume_(volume),
        settings_(std::move(settings)),
        spec_(settings_.opened->spec()) {
    const std::lock_guard lock(document_->noise_mutex());
    const bool same = spec_ == document_->volume_spec();
    MeasuredNoise* const known =
        same && settings_.opened->params().needs_image() ? document_->noise(volume) : nullptr;
    MeasuredPage found = settings_.measured(volume, known);
    noise_text_ = found.text;
    params_ = std::move(found.params);
    // The reach does not depend on the size.
    Options cheap = options();
    cheap.device = {Device::Kind::cpu};
    constexpr int small = 8;
    const Part corner{0, 0, std::min(small, spec_.slice.width), std::min(small, spec_.slice.height)};
    reach_ = Denoiser::create(*params_, part_spec(spec_, corner), cheap).reach();
  }

  bool needs_whole(Workbench& /*bench*/, const Picture& /*picture*/, int /*level*/) override {
    return reach_.whole || reach_.x > far_reach;
  }

 protected:
  double work_of(double pixels) const override {
    return pixels * std::min(spec_.height, 2 * reach_.y + 1) * 1.5;
  }

  Image make(Workbench& bench, Picture& picture, const Part& part) override {
    const int slice = picture.page() % spec_.height;
    const Reach flat{.x = reach_.x, .y = reach_.x, .whole = reach_.whole};
    const Part around = grown(part, flat, slice_spec(spec_));
    const PageSpan slab = slab_of(slice);
    const ImageSpec held = part_spec(spec_, around);
    Denoiser& denoiser = bench.denoiser(nullptr, *params_, held, options());
    ImageSpec in_spec = held;
    in_spec.height = slab.count();
    Image in(in_spec);
    for (int z = slab.first; z < slab.end; ++z) copy_part(z, around, in.view().rows(z - slab.first, 1));
    ImageSpec out_spec = part_spec(settings_.written, around);
    out_spec.height = 1;
    Image out(out_spec);
    ConstImageView from = std::as_const(in).view();
    from.region = {0, slab.first, held.width, spec_.height};
    ImageView to = out.view();
    to.region = {0, slice, held.width, spec_.height};
    timed(bench, static_cast<double>(held.width) * slab.count(), [&] { denoiser.run(from, to); });
    const Part inner{part.x0 - around.x0, part.y0 - around.y0, part.x1 - around.x0, part.y1 - around.y0};
    return copied(slice_view(std::as_const(out).view()), inner);
  }

  // A slab of smaller slices, with its own noise.
  Image make_coarse(Workbench& bench, Picture& picture, int level, const Part& part) override {
    const int slice = picture.page() % spec_.height;
    const PageSpan slab = slab_of(slice);
    const ImageSpec small = picture.level(level).spec();
    const ImageSpec spec = ungrain::volume_spec(small, slab.count());
    if (coarse_level_ != level || coarse_slice_ != slice) {
      coarse_ = Image(spec);
      for (int z = slab.first; z < slab.end; ++z) {
        Image page = document_->read(volume_ * spec_.height + z);
        for (int step = 0; step < level; ++step) page = halved(std::as_const(page).view());
        const ImageView row = slice_view(coarse_.view().rows(z - slab.first, 1));
        for (int y = 0; y < small.height; ++y) copy_pixels(std::as_const(page).view(), y, row, y);
      }
      coarse_level_ = level;
      coarse_slice_ = slice;
      MethodParams asked = settings_.request->method().for_image(spec);
      NoiseHandling handling = settings_.request->settings().noise.for_image(spec);
      handling.model = nullptr;  // of the full size
      asked.set_noise(std::move(handling));
      coarse_params_ = resolve(asked, std::as_const(coarse_).view());
    }
    Denoiser& denoiser = bench.denoiser(nullptr, *coarse_params_, spec, options());
    ImageSpec out_spec = spec;
    out_spec.height = 1;
    Image out(out_spec);
    ImageView to = out.view();
    to.region = {0, slice - slab.first, spec.width, spec.height};
    denoiser.run(std::as_const(coarse_).view(), to);
    return copied(slice_view(std::as_const(out).view()), part);
  }

 private:
  PageSpan slab_of(int slice) const {
    if (reach_.whole) return {0, spec_.height};
    return {std::max(0, slice - reach_.y), std::min(spec_.height, slice + reach_.y + 1)};
  }

  // A rectangle of all slices.
  static ImageSpec part_spec(const ImageSpec& volume, const Part& part) {
    ImageSpec spec = volume;
    spec.width = part.width() * part.height();
    spec.slice = {.width = part.width(),
                  .height = part.height(),
                  .x = part.x0,
                  .y = part.y0,
                  .whole_width = volume.slice.width,
                  .whole_height = volume.slice.height};
    return spec;
  }

  void copy_part(int z, const Part& part, const ImageView& row) {
    const std::shared_ptr<const Image> whole = document_->whole(volume_);
    std::optional<Image> read;
    ConstImageView from;
    if (whole) {
      from = slice_view(whole->view().rows(z, 1));
    } else {
      read = document_->read(volume_ * spec_.height + z);
      from = std::as_const(*read).view();
    }
    from = part_view(from, part);
    const ImageView to = slice_view(row);
    for (int y = 0; y < part.height(); ++y) copy_pixels(from, y, to, y);
  }

  std::shared_ptr<VolumeDocument> document_;
  int volume_;
  ImageSettings settings_;
  ImageSpec spec_;  // of the volume
  Reach reach_;
  Image coarse_{ImageSpec{.width = 1, .height = 1}};
  int coarse_level_ = -1;
  int coarse_slice_ = -1;
  std::optional<MethodParams> coarse_params_;
};

// ---- Which of them it is

std::shared_ptr<Variant> clip_variant(const std::shared_ptr<Picture>& picture,
                                      const std::shared_ptr<ClipDocument>& clip, const Arguments& words,
                                      const Device& device) {
  const auto request = std::make_shared<VideoRequest>();
  if (!request->read(words)) throw UsageError("settings are a list of words");
  const ImageSpec& spec = clip->info().spec;
  const int first = clip->span_of(picture->page()).first;
  const MethodParams asked = request->params(spec);
  const std::lock_guard lock(clip->noise_mutex());
  Resolved found = asked.needs_image() ? resolve_frames(asked, spec, clip->noise(first))
                                       : Resolved{resolve_derived(asked, spec), std::nullopt};
  std::string text;
  if (found.noise) {
    for (const double deviation : found.noise->deviations)
      text += fmt::format("{}{:.1f}", text.empty() ? "" : " ", deviation * 255 / spec.white());
    text += " of 255 (the scene's)";
  }
  SequenceVariant::Made made{std::move(found.params),
                             std::move(text),
                             &request->method(),
                             &request->settings().noise,
                             spec,
                             spec,
                             request};
  return std::make_shared<SequenceVariant>(clip, first, std::move(made), request->settings().options, device);
}

std::shared_ptr<Variant> sequence_variant(const std::shared_ptr<Document>& document, int first,
                                          ImageSettings settings, const MeasuredPage& found,
                                          const Device& device) {
  const auto kept = std::make_shared<ImageSettings>(std::move(settings));
  SequenceVariant::Made made{found.params,
                             found.text,
                             &kept->request->method(),
                             &kept->request->settings().noise,
                             kept->opened->spec(),
                             kept->written,
                             kept};
  return std::make_shared<SequenceVariant>(document, first, std::move(made),
                                           kept->request->settings().options, device);
}

// Whether the method looks at the images before and after.
bool looks_along(const MethodParams& params) {
  const std::vector<ParamInfo> list = method_info(params.method()).params;
  return std::any_of(list.begin(), list.end(), [&](const ParamInfo& info) {
    return info.name == "radius_t" && params.get_text("radius_t") != "0";
  });
}

}  // namespace

Denoiser& Workbench::denoiser(const std::shared_ptr<const int>& owner, const MethodParams& params,
                              const ImageSpec& spec, const Options& options, bool* fresh) {
  if (loan_ && owner && owner_.lock() == owner) return *loan_;
  pool_.lend(loan_, params, spec, options);
  owner_ = owner;
  if (fresh != nullptr) *fresh = true;
  return *loan_;
}

double Workbench::seconds_per_pixel(const std::string& work) const {
  constexpr double guess = 4e-7;  // bm3d on two processors
  const auto known = speeds_.find(work);
  return known == speeds_.end() ? guess : known->second;
}

Variant::Variant(const Options& options, const Device& device) : options_(options) {
  if (options_.device.kind == Device::Kind::automatic) options_.device = device;
  options_.images = 0;
  options_.cancel = interrupted();
}

double Variant::seconds_for(const Workbench& bench, double pixels) const {
  return work_of(pixels) * bench.seconds_per_pixel(work());
}

Image Variant::denoise(Workbench& bench, Picture& picture, int level, const Part& part) {
  return level == 0 ? make(bench, picture, part) : make_coarse(bench, picture, level, part);
}

Image Variant::denoised(Workbench& bench, Denoiser& denoiser, const ConstImageView& image,
                        const ImageSpec& written, const Part& part) const {
  const ImageSpec& spec = denoiser.spec();
  const Part around = grown(part, denoiser.reach(), spec);
  ConstImageView pixels = image;
  pixels.spec = spec;
  Image result(sized(written, part));
  ImageView out = result.view();
  out.region = {part.x0, part.y0, spec.width, spec.height};
  timed(bench, static_cast<double>(around.width()) * around.height(),
        [&] { denoiser.run(cut(pixels, around, spec), out); });
  return result;
}

Image Variant::denoised_alone(Workbench& bench, const MethodParams& params, const Image& image,
                              const Part& part) const {
  constexpr int margin = 24;
  const Part around = grown(part, {.x = margin, .y = margin}, image.spec());
  const Image cut_out = copied(image.view(), around);
  Image result(cut_out.spec());
  Denoiser& denoiser = bench.denoiser(nullptr, params, cut_out.spec(), options());
  timed(bench, static_cast<double>(around.width()) * around.height(),
        [&] { denoiser.run(cut_out.view(), result.view()); });
  const Part inner{part.x0 - around.x0, part.y0 - around.y0, part.x1 - around.x0, part.y1 - around.y0};
  return copied(std::as_const(result).view(), inner);
}

std::shared_ptr<Variant> make_variant(const std::shared_ptr<Picture>& picture, const Arguments& words,
                                      const Device& device) {
  const std::shared_ptr<Document> document = picture->shared_document();
  const int page = picture->page();
  if (const auto clip = std::dynamic_pointer_cast<ClipDocument>(document))
    return clip_variant(picture, clip, words, device);
  ImageSettings settings(*document, words);
  if (const auto volume = std::dynamic_pointer_cast<VolumeDocument>(document)) {
    const PageSpan slices = volume->span_of(page);
    const int number = slices.first / slices.count();
    if (settings.opened->spec().is_volume())
      return std::make_shared<SolidVariant>(volume, number, std::move(settings), device);
    const std::lock_guard lock(volume->noise_mutex());
    MeasuredNoise* const known = settings.opened->params().needs_image() ? volume->noise(number) : nullptr;
    const MeasuredPage found = settings.measured(slices.first, known);
    return sequence_variant(document, slices.first, std::move(settings), found, device);
  }
  if (dynamic_cast<const RawDocument*>(document.get()) != nullptr)
    return std::make_shared<RawVariant>(*document, std::move(settings), device);
  if (document->pages() > 1 && looks_along(settings.opened->params())) {
    const MeasuredPage found = settings.measured(0, nullptr, false);
    return sequence_variant(document, 0, std::move(settings), found, device);
  }
  return std::make_shared<PageVariant>(*picture, std::move(settings), device);
}

std::string variant_scope(const Picture& picture) {
  Document& document = picture.document();
  const int first =
      document.treatment() == Treatment::pages ? picture.page() : document.span_of(picture.page()).first;
  return fmt::format("{}/{}/{}", picture.file().number, name(document.treatment()), first);
}

}  // namespace ungrain::cli::view
