#include "io/wrapped_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "io/failure.h"
#include "io/packed_rows.h"
#include "platform/files.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

// Memory for a page, on the heap or in an unlinked file.
class PageMemory {
 public:
  PageMemory(std::uint64_t bytes, std::uint64_t most_on_heap) : bytes_(static_cast<std::size_t>(bytes)) {
    if (most_on_heap == 0 || bytes <= most_on_heap) {
      heap_.resize(bytes_);
    } else {
      map_file();
    }
  }
  PageMemory(const PageMemory&) = delete;
  PageMemory& operator=(const PageMemory&) = delete;
  ~PageMemory() {
    if (mapped_ != nullptr) platform::unmap(mapped_, bytes_);
  }

  std::byte* data() { return mapped_ != nullptr ? static_cast<std::byte*>(mapped_) : heap_.data(); }

 private:
  void map_file() {
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const int descriptor = platform::open_unnamed_file(folder);
    if (descriptor < 0) fail(folder, "no temporary file can be made", errno);
    mapped_ = platform::map_file(descriptor, bytes_);
    const int error = errno;
    platform::close_file(descriptor);
    if (mapped_ == nullptr) {
      fail(folder, fmt::format("no room for a temporary file of {} bytes", bytes_), error);
    }
  }

  std::size_t bytes_;
  std::vector<std::byte> heap_;
  void* mapped_ = nullptr;
};

// Maps a stored pixel to its place in the upright image: origin + x * across + y * down, in pixels.
struct Turn {
  std::ptrdiff_t origin = 0;
  std::ptrdiff_t across = 0;
  std::ptrdiff_t down = 0;
};

bool swaps_sides(int orientation) { return orientation >= 5; }

Turn turn_of(int orientation, int width, int height) {
  const std::ptrdiff_t w = width;
  const std::ptrdiff_t h = height;
  switch (orientation) {
    case 2:
      return {w - 1, -1, w};
    case 3:
      return {w * h - 1, -1, -w};
    case 4:
      return {w * (h - 1), 1, -w};
    case 5:
      return {0, h, 1};
    case 6:
      return {h - 1, h, -1};
    case 7:
      return {w * h - 1, -h, -1};
    case 8:
      return {h * (w - 1), -h, 1};
    default:
      return {0, 1, w};
  }
}

class UprightInput final : public InputFile {
 public:
  UprightInput(std::unique_ptr<InputFile> file, std::uint64_t memory)
      : file_(std::move(file)), info_(file_->info()), metadata_(file_->metadata()), memory_(memory) {
    if (swaps_sides(metadata_.orientation)) {
      std::swap(info_.spec.width, info_.spec.height);
      if (info_.stack && info_.stack->spacing) {
        std::swap(info_.stack->spacing->at(0), info_.stack->spacing->at(1));
      }
    }
    if (metadata_.resolution && swaps_sides(metadata_.orientation)) {
      std::swap(metadata_.resolution->x, metadata_.resolution->y);
    }
    if (metadata_.tiff_storage) metadata_.tiff_storage->turned = swaps_sides(metadata_.orientation);
    set_upright(metadata_);
    info_.turned = true;
  }

  const FileInfo& info() const override { return info_; }
  const Metadata& metadata() const override { return metadata_; }
  std::vector<int> selected_pages() const override { return file_->selected_pages(); }
  std::uint64_t decoding_bytes() const override {
    const std::uint64_t page = page_bytes();
    return file_->decoding_bytes() + (memory_ == 0 || page <= memory_ ? page : 0);
  }
  void check_unchanged() override { file_->check_unchanged(); }

  void select_page(int page) override {
    file_->select_page(page);
    if (page != page_) pixels_.reset();
    page_ = page;
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows({}, info_.spec, first, rows);
    if (!pixels_) decode();
    const std::size_t row = row_bytes(info_.spec);
    for (int y = 0; y < rows.spec.height; ++y) {
      unpack_row(pixels_->data() + static_cast<std::size_t>(first + y) * row, rows, y);
    }
  }

 private:
  std::uint64_t page_bytes() const {
    return static_cast<std::uint64_t>(row_bytes(info_.spec)) * static_cast<std::uint64_t>(info_.spec.height);
  }

  void decode() {
    const ImageSpec stored = file_->info().spec;
    auto pixels = std::make_unique<PageMemory>(page_bytes(), memory_);
    const Turn turn = turn_of(file_->metadata().orientation, stored.width, stored.height);
    const std::size_t pixel = row_bytes(stored) / static_cast<std::size_t>(stored.width);
    // Columns of the upright image are written several at a time, so that a cache line serves several.
    constexpr std::size_t band_bytes = std::size_t{8} << 20U;
    const int step = static_cast<int>(
        std::clamp<std::size_t>(band_bytes / row_bytes(stored), 1, static_cast<std::size_t>(stored.height)));
    ImageSpec band = stored;
    band.height = step;
    Image memory(band);
    for (int top = 0; top < stored.height; top += step) {
      const int count = std::min(step, stored.height - top);
      const ImageView rows = memory.view().rows(0, count);
      file_->read_rows(top, rows);
      const auto* from = static_cast<const std::byte*>(rows.data);
      constexpr int tile = 32;
      for (int left = 0; left < stored.width; left += tile) {
        for (int y = 0; y < count; ++y) {
          const std::byte* row = from + static_cast<std::size_t>(y) * row_bytes(stored);
          for (int x = left; x < std::min(left + tile, stored.width); ++x) {
            const std::ptrdiff_t place = turn.origin + x * turn.across + (top + y) * turn.down;
            std::memcpy(pixels->data() + static_cast<std::size_t>(place) * pixel,
                        row + static_cast<std::size_t>(x) * pixel, pixel);
          }
        }
      }
    }
    pixels_ = std::move(pixels);
  }

  std::unique_ptr<InputFile> file_;
  FileInfo info_;
  Metadata metadata_;
  std::uint64_t memory_;
  int page_ = 0;
  std::unique_ptr<PageMemory> pixels_;  // of the page; null: not decoded yet
};

// Slices of one volume among some pages of volumes with `depth` slices: whole volumes in a row keep their
// depth, neighbouring slices of one volume make a smaller one, and any other page stands alone.
int depth_of(const std::vector<int>& pages, int depth) {
  const int first = pages.front();
  const int last = pages.back();
  const auto count = static_cast<int>(pages.size());
  if (last - first + 1 != count) return 1;
  if (first % depth == 0 && count % depth == 0) return depth;
  return first / depth == last / depth ? count : 1;
}

class SomePages final : public InputFile {
 public:
  SomePages(std::unique_ptr<InputFile> file, std::vector<int> pages)
      : file_(std::move(file)), info_(file_->info()), metadata_(file_->metadata()), pages_(std::move(pages)) {
    info_.pages = static_cast<int>(pages_.size());
    if (info_.volume) info_.volume->depth = depth_of(pages_, info_.volume->depth);
    if (info_.stack && info_.stack->order && info_.pages < file_->info().pages) {
      info_.stack->order.reset();
      info_.stack->note = "--pages chooses some pages: they are slices of one volume";
    }
    if (!metadata_.delays.empty()) {
      std::vector<int> delays;
      for (const int page : pages_) {
        delays.push_back(metadata_.delays[std::min<std::size_t>(page, metadata_.delays.size() - 1)]);
      }
      metadata_.delays = std::move(delays);
    }
    file_->select_page(pages_.front());
  }

  const FileInfo& info() const override { return info_; }
  const Metadata& metadata() const override { return metadata_; }
  std::vector<int> selected_pages() const override { return pages_; }
  std::uint64_t decoding_bytes() const override { return file_->decoding_bytes(); }
  void check_unchanged() override { file_->check_unchanged(); }
  void select_page(int page) override { file_->select_page(pages_.at(static_cast<std::size_t>(page))); }
  void read_rows(int first, const ImageView& rows) override { file_->read_rows(first, rows); }

 private:
  std::unique_ptr<InputFile> file_;
  FileInfo info_;
  Metadata metadata_;
  std::vector<int> pages_;
};

}  // namespace

std::unique_ptr<InputFile> upright(std::unique_ptr<InputFile> file, std::uint64_t memory) {
  return std::make_unique<UprightInput>(std::move(file), memory);
}

std::unique_ptr<InputFile> with_pages(std::unique_ptr<InputFile> file, std::vector<int> pages) {
  return std::make_unique<SomePages>(std::move(file), std::move(pages));
}

}  // namespace ungrain::io
