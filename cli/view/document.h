// A file that is open for looking at: its pages as images of their own, as slices of volumes, or as frames of
// a clip.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "denoise_request.h"
#include "opened_file.h"
#include "ungrain/image.h"
#include "ungrain/measured_noise.h"
#include "view/frame_colours.h"
#include "view/shelf.h"

namespace ungrain::cli::view {

enum class Treatment : std::uint8_t { pages, volume, clip };
std::string_view name(Treatment treatment);
std::optional<Treatment> treatment_of(std::string_view name);
MethodOptions::For methods_of(Treatment treatment);

// Thrown where newer requests of the same window have come, or where something takes so long that it is to be
// asked for again: nobody knows whether somebody still waits.
struct Outdated {};

// Pages that are filtered together: [first, end).
struct PageSpan {
  int first = 0;
  int end = 0;
  int count() const { return end - first; }
  friend bool operator==(const PageSpan&, const PageSpan&) = default;
};

// Any thread may use it.
class Document {
 public:
  virtual ~Document() = default;

  const ShelfFile& file() const { return file_; }
  virtual Treatment treatment() const = 0;
  virtual const io::FileInfo& info() const = 0;  // its spec is that of a page
  virtual int pages() const { return info().pages; }
  virtual bool complete() const { return true; }  // false: there may be more pages than pages()
  virtual double rate() const { return 0; }       // frames a second; 0: none
  // How frames of luma and chroma are shown; nothing: pages have none.
  virtual std::optional<FrameColours> colours() const { return std::nullopt; }

  // Throws Error(io) where there is no such page, and Outdated where it is not there yet.
  virtual Image read(int page) = 0;
  // The pages that have their noise in common with this one.
  virtual PageSpan span_of(int page) = 0;
  // Of measurements on a page.
  virtual NoiseModelOptions noise_options(int /*page*/) { return {}; }

 protected:
  explicit Document(ShelfFile file) : file_(std::move(file)) {}

 private:
  ShelfFile file_;
};

// Pages of an image file.
class PagesDocument : public Document {
 public:
  PagesDocument(const ShelfFile& file, std::size_t memory);
  Treatment treatment() const override { return Treatment::pages; }
  const io::FileInfo& info() const override { return opened_.info(); }
  Image read(int page) override;
  PageSpan span_of(int page) override { return {page, page + 1}; }
  NoiseModelOptions noise_options(int page) override;
  // Whether the file says that its pages are slices.
  bool is_volume() const;
  bool is_raw() const;

 private:
  DenoiseRequest usual_;
  mutable OpenedFile opened_;
  std::mutex mutex_;
};

// A camera's raw file, shown as it is developed.
inline constexpr PixelType developed_type = PixelType::u8;
class RawDocument : public Document {
 public:
  RawDocument(const ShelfFile& file, std::size_t memory);
  Treatment treatment() const override { return Treatment::pages; }
  const io::FileInfo& info() const override { return info_; }
  Image read(int page) override;
  PageSpan span_of(int page) override { return {page, page + 1}; }

 private:
  io::FileInfo info_;
  Image photograph_;
};

// Slices of volumes. Page numbers go through the slices of the first volume, then through the second ...
class VolumeDocument : public Document {
 public:
  VolumeDocument(const ShelfFile& file, std::size_t memory);
  Treatment treatment() const override { return Treatment::volume; }
  const io::FileInfo& info() const override { return info_; }
  Image read(int page) override;
  PageSpan span_of(int page) override;

  const ImageSpec& volume_spec() const { return opened_.spec(); }
  // The volume, where it fits into the memory; null: it does not.
  std::shared_ptr<const Image> whole(int volume);
  // Its noise, measured once; null: it is not held, and is measured anew for all settings. Hold
  // noise_mutex() while using it.
  MeasuredNoise* noise(int volume);
  std::mutex& noise_mutex() { return noise_mutex_; }

 private:
  std::size_t memory_;
  std::unique_ptr<DenoiseRequest> usual_;
  OpenedFile opened_;
  io::FileInfo info_;
  std::mutex mutex_;
  int held_volume_ = -1;
  std::shared_ptr<const Image> held_;
  std::mutex noise_mutex_;
  int measured_volume_ = -1;
  std::optional<MeasuredNoise> noise_;
};

// What a file can be taken for, what it says of itself first.
std::vector<Treatment> treatments(const ShelfFile& file, std::size_t memory);
std::shared_ptr<Document> open_document(const ShelfFile& file, Treatment treatment, std::size_t memory);

}  // namespace ungrain::cli::view
