#include "view/document.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "io/exif_iso.h"
#include "io/raw_file.h"
#include "opened_clip.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "ungrain/volume.h"
#include "view/clip_document.h"
#include "view/request.h"
#include "volume_file.h"

namespace ungrain::cli::view {
namespace {

constexpr std::array<std::string_view, 3> names = {"pages", "volume", "clip"};

void check_page(const Document& document, int page) {
  if (page < 0 || page >= document.pages())
    throw Error(ErrorCode::io, fmt::format("{}: there is no page {}", document.file().name, page + 1));
}

}  // namespace

std::string_view name(Treatment treatment) { return names[static_cast<std::size_t>(treatment)]; }

std::optional<Treatment> treatment_of(std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Treatment>(found - names.begin());
}

MethodOptions::For methods_of(Treatment treatment) {
  return treatment == Treatment::pages    ? MethodOptions::For::images
         : treatment == Treatment::volume ? MethodOptions::For::volumes
                                          : MethodOptions::For::clips;
}

PagesDocument::PagesDocument(const ShelfFile& file, std::size_t memory)
    : Document(file),
      usual_(MethodOptions::For::images),
      opened_(file.path, usual_.method(), usual_.settings(), memory) {}

bool PagesDocument::is_raw() const { return dynamic_cast<io::RawFile*>(&opened_.input()) != nullptr; }

Image PagesDocument::read(int page) {
  check_page(*this, page);
  const std::lock_guard lock(mutex_);
  opened_.input().select_page(page);
  Image pixels(info().spec);
  opened_.input().read_rows(0, pixels.view());
  return pixels;
}

NoiseModelOptions PagesDocument::noise_options(int page) {
  const std::lock_guard lock(mutex_);
  opened_.input().select_page(page);
  const io::Metadata& metadata = opened_.input().metadata();
  NoiseModelOptions options;
  options.iso = io::iso_speed(metadata);
  options.jpeg_steps = metadata.jpeg_steps;
  return options;
}

bool PagesDocument::is_volume() const {
  if (info().pages < 2) return false;
  if (info().volume) return info().volume->depth > 1;
  return info().stack && info().stack->order && info().stack->order->depth > 1;
}

RawDocument::RawDocument(const ShelfFile& file, std::size_t memory) : Document(file) {
  const DenoiseRequest usual(MethodOptions::For::images);
  OpenedFile opened(file.path, usual.method(), usual.settings(), memory);
  auto& raw = dynamic_cast<io::RawFile&>(opened.input());
  Image samples(raw.info().spec);
  raw.read_rows(0, samples.view());
  photograph_ = raw.develop(samples.view(), developed_type);
  info_ = opened.info();
  info_.spec = photograph_.spec();
}

Image RawDocument::read(int page) {
  check_page(*this, page);
  return photograph_.copy();
}

VolumeDocument::VolumeDocument(const ShelfFile& file, std::size_t memory)
    : Document(file),
      memory_(memory),
      usual_(read_request({}, MethodOptions::For::volumes)),
      opened_(file.path, usual_->method(), usual_->settings(), memory),
      info_(info_of_slices(opened_.info())) {
  const std::optional<std::array<double, 3>> spacing = voxel_spacing(opened_.file().info());
  info_.volume = {.depth = opened_.order()->depth, .spacing = spacing.value_or(std::array{1.0, 1.0, 1.0})};
}

Image VolumeDocument::read(int page) {
  check_page(*this, page);
  const int depth = info_.volume->depth;
  const int slice = page % depth;
  Image pixels(info_.spec);
  const std::lock_guard lock(mutex_);
  if (held_ && held_volume_ == page / depth) {
    const ConstImageView row = slice_view(std::as_const(*held_).view().rows(slice, 1));
    for (int y = 0; y < info_.spec.height; ++y) copy_pixels(row, y, pixels.view(), y);
    return pixels;
  }
  ImageSpec one = volume_spec();
  one.height = 1;
  opened_.input().select_page(page / depth);
  opened_.input().read_rows(slice, ImageView(pixels.view().data, one));
  return pixels;
}

PageSpan VolumeDocument::span_of(int page) {
  const int depth = info_.volume->depth;
  return {page / depth * depth, (page / depth + 1) * depth};
}

std::shared_ptr<const Image> VolumeDocument::whole(int volume) {
  const std::lock_guard lock(mutex_);
  if (held_ && held_volume_ == volume) return held_;
  const ImageSpec& spec = volume_spec();
  const double bytes =
      static_cast<double>(spec.width) * spec.height * spec.channels * bytes_per_sample(spec.type);
  if (bytes > static_cast<double>(memory_)) return nullptr;
  held_.reset();
  auto pixels = std::make_shared<Image>(spec);
  opened_.input().select_page(volume);
  opened_.input().read_rows(0, pixels->view());
  held_ = std::move(pixels);
  held_volume_ = volume;
  return held_;
}

MeasuredNoise* VolumeDocument::noise(int volume) {
  if (noise_ && measured_volume_ == volume) return &*noise_;
  const std::shared_ptr<const Image> pixels = whole(volume);
  if (!pixels) return nullptr;
  noise_.emplace(pixels->view());
  measured_volume_ = volume;
  return &*noise_;
}

std::vector<Treatment> treatments(const ShelfFile& file, std::size_t memory) {
  if (std::filesystem::is_directory(file.path)) return {Treatment::volume};  // of DICOM slices
  if (!io::can_read(file.path)) return {Treatment::clip};
  std::optional<PagesDocument> opened;
  try {
    opened.emplace(file, memory);
  } catch (const Error&) {  // an array whose pages are slices alone
    try {
      if (VolumeDocument(file, memory).pages() > 1) return {Treatment::volume};
    } catch (const Error&) {  // what was wrong at first is told
    }
    throw;
  }
  const PagesDocument& pages = *opened;
  if (pages.info().pages < 2) return {Treatment::pages};
  if (pages.is_volume()) return {Treatment::volume, Treatment::pages};
  return {Treatment::pages, Treatment::volume};
}

std::shared_ptr<Document> open_document(const ShelfFile& file, Treatment treatment, std::size_t memory) {
  if (treatment == Treatment::clip) return std::make_shared<ClipDocument>(file);
  if (treatment == Treatment::volume) return std::make_shared<VolumeDocument>(file, memory);
  auto pages = std::make_shared<PagesDocument>(file, memory);
  if (pages->is_raw()) return std::make_shared<RawDocument>(file, memory);
  return pages;
}

}  // namespace ungrain::cli::view
