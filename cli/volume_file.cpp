#include "volume_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "io/packed_rows.h"
#include "io/scratch_file.h"
#include "row_bands.h"
#include "signals.h"
#include "ungrain/error.h"
#include "ungrain/volume.h"

namespace ungrain::cli {
namespace {

class PagesByVolume : public io::InputFile {
 public:
  PagesByVolume(std::unique_ptr<io::InputFile> file, const io::PageOrder& order)
      : file_(std::move(file)), info_(file_->info()), order_(order) {
    if (info_.stack) info_.stack->order.reset();
  }

  const io::FileInfo& info() const override { return info_; }
  const io::Metadata& metadata() const override { return file_->metadata(); }
  std::uint64_t decoding_bytes() const override { return file_->decoding_bytes(); }
  std::vector<int> selected_pages() const override { return file_->selected_pages(); }
  void select_page(int page) override {
    file_->select_page(order_.page(page / order_.depth, page % order_.depth));
  }
  void read_rows(int first, const ImageView& rows) override { file_->read_rows(first, rows); }
  void check_unchanged() override { file_->check_unchanged(); }

 private:
  std::unique_ptr<io::InputFile> file_;
  io::FileInfo info_;
  io::PageOrder order_;
};

// Pages go to the file as soon as it is their turn. With two channels whose pages alternate, those of the
// first wait until the second is filtered.
class PagesInTurn : public io::OutputFile {
 public:
  PagesInTurn(std::unique_ptr<io::OutputFile> file, const io::PageOrder& order, const ImageSpec& spec,
              std::filesystem::path path)
      : file_(std::move(file)),
        order_(order),
        spec_(spec),
        path_(std::move(path)),
        row_(io::row_bytes(spec)) {}

  void write_rows(int first, const ConstImageView& rows) override {
    if (page() == turn_) {
      start_page();
      file_->write_rows(first, rows);
      return;
    }
    for (int y = 0; y < rows.spec.height; ++y) {
      io::pack_row(rows, y, row_.data());
      scratch().write(row_.data(), row_.size(), place_of(slot(), first + y));
    }
  }

  void next_page() override {
    end_page();
    ++given_;
  }

  void commit() override {
    end_page();
    file_->commit();
  }

 private:
  int page() const { return order_.page(given_ / order_.depth, given_ % order_.depth); }

  // Once for each page of the file.
  void start_page() {
    if (started_ == turn_) return;
    if (turn_ > 0) file_->next_page();
    started_ = turn_;
  }

  void end_page() {
    if (page() != turn_) return;
    ++turn_;
    for (auto next = waiting_.find(turn_); next != waiting_.end(); next = waiting_.find(turn_)) {
      start_page();
      deliver(next->second);
      free_.push_back(next->second);
      waiting_.erase(next);
      ++turn_;
    }
  }

  void deliver(std::uint64_t slot) {
    ImageSpec band = spec_;
    band.height = band_rows(spec_, 0);
    Image memory(band);
    for (int top = 0; top < spec_.height; top += band.height) {
      if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
      const ImageView rows = memory.view().rows(0, std::min(band.height, spec_.height - top));
      scratch().read(rows.data, row_.size() * static_cast<std::size_t>(rows.spec.height),
                     place_of(slot, top));
      file_->write_rows(top, rows);
    }
  }

  // The place of this page in the scratch file.
  std::uint64_t slot() {
    const auto [entry, fresh] = waiting_.try_emplace(page(), 0);
    if (fresh && free_.empty()) {
      entry->second = slots_++;
    } else if (fresh) {
      entry->second = free_.back();
      free_.pop_back();
    }
    return entry->second;
  }
  std::uint64_t place_of(std::uint64_t slot, int row) const {
    return (slot * static_cast<std::uint64_t>(spec_.height) + static_cast<std::uint64_t>(row)) * row_.size();
  }
  io::ScratchFile& scratch() {
    if (!scratch_) scratch_.emplace(path_);
    return *scratch_;
  }

  std::unique_ptr<io::OutputFile> file_;
  io::PageOrder order_;
  ImageSpec spec_;  // of a page
  std::filesystem::path path_;
  std::vector<std::byte> row_;
  int given_ = 0;     // the page that is being written, in the order of volumes
  int turn_ = 0;      // the file's page whose turn it is
  int started_ = -1;  // the last page that the file was told of
  std::optional<io::ScratchFile> scratch_;
  std::map<int, std::uint64_t> waiting_;  // the file's pages and their places in the scratch file
  std::vector<std::uint64_t> free_;       // places whose pages were written
  std::uint64_t slots_ = 0;
};

}  // namespace

io::PageOrder volume_order(const io::FileInfo& info, std::optional<int> asked,
                           const std::string& shown_name) {
  if (!asked && info.stack && info.stack->order) return *info.stack->order;
  const int depth = asked.value_or(info.volume ? info.volume->depth : info.pages);
  if (depth >= 1 && info.pages % depth == 0) {
    return {.depth = depth, .frames = info.pages / depth, .frame_step = depth};
  }
  throw Error(ErrorCode::io, fmt::format("{}: its {} slices do not make volumes of {} (--slices)", shown_name,
                                         info.pages, depth));
}

std::optional<std::array<double, 3>> voxel_spacing(const io::FileInfo& info) {
  if (info.volume) return info.volume->spacing;
  return info.stack ? info.stack->spacing : std::nullopt;
}

std::unique_ptr<io::InputFile> in_order_of_volumes(std::unique_ptr<io::InputFile> file,
                                                   const io::PageOrder& order) {
  if (order.is_plain()) return file;
  return std::make_unique<PagesByVolume>(std::move(file), order);
}

std::unique_ptr<io::OutputFile> from_order_of_volumes(std::unique_ptr<io::OutputFile> file,
                                                      const io::PageOrder& order, const io::FileInfo& info,
                                                      const std::filesystem::path& path) {
  if (order.is_plain()) return file;
  return std::make_unique<PagesInTurn>(std::move(file), order, info.spec, path);
}

VolumeInput::VolumeInput(std::unique_ptr<io::InputFile> slices, int depth)
    : slices_(std::move(slices)), info_(slices_->info()) {
  info_.spec = volume_spec(info_.spec, depth);
  info_.pages /= depth;
}

void VolumeInput::read_rows(int first, const ImageView& rows) { read_lines(first, 0, rows); }

void VolumeInput::read_lines(int first, int line, const ImageView& rows) {
  for (int z = 0; z < rows.spec.height; ++z) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    const int page = volume_ * info_.spec.height + first + z;
    if (page != page_) slices_->select_page(page);
    page_ = page;
    slices_->read_rows(line, slice_view(rows.rows(z, 1)));
  }
}

Image read_volume(const std::filesystem::path& path) {
  io::OpenOptions options;
  options.axis = 0;
  auto file = io::InputFile::open(path, options);
  const io::PageOrder order = volume_order(file->info(), std::nullopt, path.string());
  VolumeInput volumes(in_order_of_volumes(std::move(file), order), order.depth);
  Image volume(volumes.info().spec);
  volumes.read_rows(0, volume.view());
  return volume;
}

io::FileInfo info_of_slices(const io::FileInfo& volumes) {
  io::FileInfo info = volumes;
  info.spec = slice_spec(volumes.spec);
  info.pages = volumes.pages * volumes.spec.height;
  return info;
}

void VolumeOutput::write_rows(int, const ConstImageView& rows) {
  for (int z = 0; z < rows.spec.height; ++z) {
    if (begun_) slices_->next_page();
    begun_ = true;
    slices_->write_rows(0, slice_view(rows.rows(z, 1)));
  }
}

}  // namespace ungrain::cli
