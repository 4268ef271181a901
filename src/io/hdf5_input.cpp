// HDF5 files. Where storage is chunked, chunks are decoded in bands (hdf5_array.h): all slices that one layer
// of chunks holds, in memory or in a scratch file, so that reading in order decodes each chunk once whatever
// the memory.
#include "io/hdf5_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "io/failure.h"
#include "io/gzip.h"
#include "io/hdf5_array.h"
#include "io/hdf5_dataset.h"
#include "io/packed_rows.h"

namespace ungrain::io {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

class Hdf5Input final : public InputFile {
 public:
  Hdf5Input(SourceFile file, const OpenOptions& options) : file_(std::move(file)) {
    const Hdf5Lock lock;
    h5_ = open_hdf5_file(file_.path(), H5F_ACC_RDONLY);
    name_ = find_dataset(file_.path(), h5_.id(), options.dataset);
    dataset_ = open_hdf5_dataset(h5_.id(), name_);
    if (!dataset_) fail(file_.path(), fmt::format("has no dataset {} (--dataset)", name_));
    sample_ = sample_of(file_.path(), dataset_.id(), name_);
    array_ = array_of(file_.path(), dataset_.id(), name_, options.axis);
    check_storage(file_.path(), h5_.id(), dataset_.id(), name_);
    check_claim();
    describe();
    // Half of what decoding may take is for the band, the rest for boxes and for libhdf5's own copy of a
    // chunk.
    const std::uint64_t most = options.memory == 0 ? 256 * mib : std::min(256 * mib, options.memory / 4);
    most_in_band_ = most / 2;
    most_in_box_ = std::max<std::uint64_t>(most / 8, 64 * 1024);
    type_ =
        sample_.from_double ? Hdf5Handle(H5Tcopy(H5T_NATIVE_DOUBLE), H5Tclose) : memory_type(sample_.type);
  }
  Hdf5Input(const Hdf5Input&) = delete;
  Hdf5Input& operator=(const Hdf5Input&) = delete;
  ~Hdf5Input() override {
    const Hdf5Lock lock;
    type_.close();
    dataset_.close();
    h5_.close();
  }

  const FileInfo& info() const override { return info_; }
  const Metadata& metadata() const override { return metadata_; }
  void check_unchanged() override { file_.check_unchanged(); }

  std::uint64_t decoding_bytes() const override {
    if (has_plain_rows(array_)) return most_in_box_;
    const Hdf5Band band = band_of(array_, 0, 0);
    const std::uint64_t stored = bytes_of(band);
    const std::uint64_t box = most_box_samples(array_, band, read_bytes(), most_in_box_) * read_bytes();
    std::uint64_t chunk = array_.chunk.empty() ? 0 : sample_.stored_bytes;
    for (const hsize_t length : array_.chunk) chunk *= length;
    return (stored <= most_in_band_ ? stored : 0) + 2 * box + 2 * chunk;
  }

  void select_page(int page) override {
    if (page < 0 || page >= info_.pages) fail(file_.path(), fmt::format("has no page {}", page + 1));
    page_ = page;
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows(file_.path(), info_.spec, first, rows);
    const std::size_t row = row_bytes(info_.spec);
    for (int y = 0; y < rows.spec.height;) {
      if (has_plain_rows(array_)) {
        load_rows(first + y, rows.spec.height - y);
      } else if (!store_ || !band_.contains(page_, first + y)) {
        load_band(band_of(array_, page_, first + y));
      }
      const int top = first + y - band_.first_row;
      const int count = std::min(rows.spec.height - y, band_.rows - top);
      row_.resize(row);
      for (int i = 0; i < count; ++i) {
        const std::uint64_t line =
            static_cast<std::uint64_t>(page_ - band_.first_page) * static_cast<std::uint64_t>(band_.rows) +
            static_cast<std::uint64_t>(top + i);
        if (store_) store_->read(row_.data(), row, line * row);
        unpack_row(store_ ? row_.data() : box_.data() + line * row, rows, y + i);
      }
      y += count;
    }
  }

 private:
  std::size_t read_bytes() const {
    return sample_.from_double ? sizeof(double) : bytes_per_sample(sample_.type);
  }

  std::uint64_t bytes_of(const Hdf5Band& band) const {
    return static_cast<std::uint64_t>(band.pages) * static_cast<std::uint64_t>(band.rows) *
           row_bytes(info_.spec);
  }

  // A few bytes may claim an array of any size.
  void check_claim() const {
    double bytes = static_cast<double>(sample_.stored_bytes);
    for (const hsize_t length : array_.shape) bytes *= static_cast<double>(length);
    if (H5Dget_storage_size(dataset_.id()) == 0 && H5Dget_offset(dataset_.id()) == HADDR_UNDEF &&
        array_.chunk.empty() && !is_virtual()) {
      fail(file_.path(), fmt::format("{} has no samples: none were written", name_));
    }
    const double most = static_cast<double>(file_.size()) * static_cast<double>(largest_gzip_ratio);
    if (bytes > most) {
      fail(file_.path(), fmt::format("damaged: {} of shape {} cannot be in a file of {} bytes", name_,
                                     shape_text(array_.shape), file_.size()));
    }
  }

  bool is_virtual() const {
    const Hdf5Handle storage(H5Dget_create_plist(dataset_.id()), H5Pclose);
    const H5D_layout_t layout = H5Pget_layout(storage.id());
    return layout == H5D_VIRTUAL || layout == H5D_COMPACT;
  }

  void describe() {
    info_.format = "HDF5";
    info_.note = sample_.note;
    ImageSpec& spec = info_.spec;
    spec.type = sample_.type;
    spec.range = sample_.range;
    info_.white_unknown = is_float(sample_.type);
    spec.width = static_cast<int>(array_.shape[array_.column_axis]);
    spec.height = static_cast<int>(array_.shape[array_.row_axis]);
    spec.channels = array_.channel_axis ? static_cast<int>(array_.shape[*array_.channel_axis]) : 1;
    spec.colour = spec.channels == 1 ? Colour::gray : spec.channels == 3 ? Colour::rgb : Colour::multi;
    info_.channel_axis = array_.channel_axis.has_value();
    for (const std::size_t axis : array_.page_axes) info_.pages *= static_cast<int>(array_.shape[axis]);
    if (array_.page_axes.size() == 1) info_.page_axis = static_cast<int>(array_.page_axes[0]);
    if (!array_.page_axes.empty()) {
      info_.volume = VolumeShape{.depth = array_.depth()};
      if (const auto spacing = spacing_of(h5_.id(), dataset_.id(), name_, array_))
        info_.volume->spacing = *spacing;
    }
    metadata_.hdf5 = std::make_shared<const Hdf5Origin>(Hdf5Origin{file_.path(), name_, array_});
  }

  // Rows of contiguous storage, as a band of as many as a box may have.
  void load_rows(int first, int wanted) {
    store_.reset();
    const std::uint64_t row =
        static_cast<std::uint64_t>(info_.spec.width) * info_.spec.channels * read_bytes();
    const auto most = static_cast<int>(std::clamp<std::uint64_t>(most_in_box_ / row, 1, wanted));
    band_ = {.first_page = page_, .pages = 1, .first_row = first, .rows = most};
    const std::uint64_t all = row * static_cast<std::uint64_t>(most);
    for_each_box(array_, band_, read_bytes(), all, [&](const Hdf5Box& box) { read_box(box); });
  }

  void load_band(const Hdf5Band& band) {
    store_.reset();  // before the next: only one is counted
    auto store = std::make_unique<Hdf5BandStore>(file_.path(), bytes_of(band), most_in_band_);
    band_ = band;
    for_each_box(array_, band, read_bytes(), most_in_box_, [&](const Hdf5Box& box) {
      read_box(box);
      for_each_run(array_, band, box, bytes_per_sample(sample_.type),
                   [&](std::size_t in_box, std::uint64_t in_band, std::size_t bytes) {
                     store->write(box_.data() + in_box, bytes, in_band);
                   });
    });
    store_ = std::move(store);
  }

  // Samples of the image's type, in its order, in box_.
  void read_box(const Hdf5Box& box) {
    box_.resize(box.samples() * read_bytes());
    {
      const Hdf5Lock lock;
      const Hdf5Handle in_file = file_space_of(file_.path(), dataset_.id(), box);
      const Hdf5Handle in_memory = memory_space_of(box);
      const herr_t status =
          H5Dread(dataset_.id(), type_.id(), in_memory.id(), in_file.id(), H5P_DEFAULT, box_.data());
      check(file_.path(), fmt::format("truncated or damaged: {} cannot be read", name_), status);
    }
    reorder_box(array_, box, read_bytes(), true, box_);
    if (sample_.from_double) to_float(box);
  }

  // In place, from the first sample on: a float never lies behind the double that it comes from.
  void to_float(const Hdf5Box& box) {
    const std::size_t count = box.samples();
    const std::size_t per_row = box.count[array_.column_axis] * static_cast<std::size_t>(info_.spec.channels);
    for (std::size_t i = 0; i < count; ++i) {
      double sample;
      std::memcpy(&sample, box_.data() + i * sizeof sample, sizeof sample);
      const auto value = static_cast<float>(sample);
      if (!std::isfinite(value) && std::isfinite(sample)) {
        const hsize_t row = box.first[array_.row_axis] + i / per_row % box.count[array_.row_axis];
        fail_beyond_float(file_.path(), static_cast<int>(row), sample);
      }
      std::memcpy(box_.data() + i * sizeof value, &value, sizeof value);
    }
  }

  SourceFile file_;
  Hdf5Handle h5_;
  std::string name_;
  Hdf5Handle dataset_;
  Hdf5Handle type_;  // of samples that libhdf5 gives
  Hdf5Sample sample_;
  Hdf5Array array_;
  FileInfo info_;
  Metadata metadata_;
  std::uint64_t most_in_band_ = 0;  // bytes
  std::uint64_t most_in_box_ = 0;
  int page_ = 0;
  Hdf5Band band_;  // what store_, or box_ where that is null, contains
  std::unique_ptr<Hdf5BandStore> store_;
  std::vector<std::byte> box_;
  std::vector<std::byte> row_;
};

}  // namespace

std::unique_ptr<InputFile> open_hdf5(SourceFile file, const OpenOptions& options) {
  return std::make_unique<Hdf5Input>(std::move(file), options);
}

}  // namespace ungrain::io
