// HDF5 outputs. One that is made from an HDF5 file of the same shape starts as a copy of its bytes, so that
// all other objects, attributes, links and references are kept. Its samples are then written over the
// dataset's own, or into a dataset that takes its place where type or storage differ.
#include "io/hdf5_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "io/failure.h"
#include "io/hdf5_array.h"
#include "io/packed_rows.h"
#include "io/source_file.h"
#include "io/temporary_file.h"

namespace ungrain::io {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
constexpr std::uint64_t most_in_band = 32 * mib;
constexpr std::uint64_t most_in_box = 8 * mib;
constexpr std::string_view not_written = "cannot be written";

// The input whose file is kept, where the output has its shape.
const Hdf5Origin* kept_origin(const FileInfo& info, const InputFile* like, const SaveOptions& options) {
  if (like == nullptr || like->metadata().hdf5 == nullptr) return nullptr;
  if (!options.pages.empty() || !like->selected_pages().empty()) return nullptr;
  const FileInfo& before = like->info();
  const bool same = before.spec.width == info.spec.width && before.spec.height == info.spec.height &&
                    before.spec.channels == info.spec.channels && before.pages == info.pages;
  return same ? like->metadata().hdf5.get() : nullptr;
}

bool compresses(const std::filesystem::path& path, const SaveOptions& options) {
  if (!options.compression || *options.compression == TiffCompression::none) return false;
  if (*options.compression == TiffCompression::deflate) return true;
  fail(path, "HDF5 is written with --compression none or deflate");
}

// The axes of a dataset that has no model: (y, x), (z, y, x), (t, z, y, x), or (y, x, colours).
Hdf5Array new_array(const std::filesystem::path& path, const FileInfo& info) {
  Hdf5Array array;
  if (info.spec.channels > 1 && info.pages > 1) {
    fail(path, fmt::format("HDF5 holds one page of {} channels, not {}; write .tif", info.spec.channels,
                           info.pages));
  }
  const int depth = info.volume ? info.volume->depth : info.pages;
  if (info.pages > depth && depth > 1) array.shape.push_back(static_cast<hsize_t>(info.pages / depth));
  if (info.pages > 1 || info.volume) {
    array.shape.push_back(static_cast<hsize_t>(array.shape.empty() ? info.pages : depth));
  }
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) array.page_axes.push_back(axis);
  array.row_axis = array.shape.size();
  array.column_axis = array.row_axis + 1;
  array.shape.push_back(static_cast<hsize_t>(info.spec.height));
  array.shape.push_back(static_cast<hsize_t>(info.spec.width));
  if (info.spec.channels > 1) {
    array.channel_axis = array.shape.size();
    array.shape.push_back(static_cast<hsize_t>(info.spec.channels));
  }
  return array;
}

// About a MiB of one page.
Hdf5Sizes usual_chunk(const Hdf5Array& array, const ImageSpec& spec) {
  Hdf5Sizes chunk(array.shape.size(), 1);
  const std::uint64_t pixel = static_cast<std::uint64_t>(spec.channels) * bytes_per_sample(spec.type);
  if (array.channel_axis) chunk[*array.channel_axis] = array.shape[*array.channel_axis];
  hsize_t& columns = chunk[array.column_axis];
  columns = std::min<hsize_t>(array.shape[array.column_axis], mib / pixel);
  chunk[array.row_axis] = std::clamp<hsize_t>(mib / (columns * pixel), 1, array.shape[array.row_axis]);
  return chunk;
}

// Storage of a new dataset; an empty chunk: contiguous and uncompressed.
Hdf5Handle new_storage(const Hdf5Sizes& chunk) {
  Hdf5Handle storage(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (chunk.empty()) return storage;
  constexpr unsigned level = 4;
  H5Pset_chunk(storage.id(), static_cast<int>(chunk.size()), chunk.data());
  H5Pset_shuffle(storage.id());
  H5Pset_deflate(storage.id(), level);
  return storage;
}

// Whether this libhdf5 can encode the filters of a dataset, and they take samples of any type.
bool can_encode(hid_t storage) {
  const int count = H5Pget_nfilters(storage);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(storage, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
    if (filter < 0 || H5Zget_filter_info(filter, &config) < 0) return false;
    if ((config & H5Z_FILTER_CONFIG_ENCODE_ENABLED) == 0) return false;
  }
  return true;
}

bool follows_type(hid_t storage) {
  for (const H5Z_filter_t filter : {H5Z_FILTER_SCALEOFFSET, H5Z_FILTER_NBIT}) {
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t values = 0;
    if (H5Pget_filter_by_id2(storage, filter, &flags, &values, nullptr, 0, nullptr, &config) >= 0)
      return true;
  }
  return false;
}

struct Copying {
  hid_t to;
  bool failed;
};

herr_t copy_attribute(hid_t from, const char* name, const H5A_info_t*, void* data) {
  auto& copying = *static_cast<Copying*>(data);
  copying.failed = true;  // unless all goes well
  const Hdf5Handle attribute(H5Aopen(from, name, H5P_DEFAULT), H5Aclose);
  const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  const std::size_t size = H5Tget_size(type.id());
  constexpr std::size_t most_bytes = 64 * mib;
  if (!attribute || count < 0 || size == 0 || static_cast<std::size_t>(count) > most_bytes / size) return -1;
  std::vector<std::byte> bytes(std::max<std::size_t>(1, static_cast<std::size_t>(count) * size));
  const Hdf5Handle copy(H5Acreate2(copying.to, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                        H5Aclose);
  if (!copy) return -1;
  if (count > 0) {
    if (H5Aread(attribute.id(), type.id(), bytes.data()) < 0) return -1;
    const herr_t status = H5Awrite(copy.id(), type.id(), bytes.data());
    const bool by_pointer = H5Tdetect_class(type.id(), H5T_VLEN) > 0 || H5Tis_variable_str(type.id()) > 0;
    if (by_pointer) H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, bytes.data());
    if (status < 0) return -1;
  }
  copying.failed = false;
  return 0;
}

struct Links {
  haddr_t object;
  std::vector<std::string> names;
};

herr_t add_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  auto& links = *static_cast<Links*>(data);
  if (info->type == H5L_TYPE_HARD && info->u.address == links.object) links.names.emplace_back(name);
  return 0;
}

void set_text(hid_t object, const char* name, std::string_view text) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), text.size() + 1);
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(H5Acreate2(object, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
  H5Awrite(attribute.id(), type.id(), std::string(text).c_str());
}

class Hdf5Output final : public OutputFile {
 public:
  Hdf5Output(const std::filesystem::path& path, const FileInfo& info, const InputFile* like,
             const SaveOptions& options)
      : file_(path, info.access), spec_(info.spec), cursor_(path, info.spec.height, info.pages) {
    const bool compressed = compresses(path, options);
    const Hdf5Origin* origin = kept_origin(info, like, options);
    const Hdf5Lock lock;
    type_ = memory_type(spec_.type);
    if (origin != nullptr) {
      copy_bytes(origin->file);
      array_ = origin->array;
      open_copy(origin->dataset, options.compression.has_value(), compressed);
    } else {
      array_ = new_array(path, info);
      const bool named = like != nullptr && like->metadata().hdf5 != nullptr;
      create_new(named ? like->metadata().hdf5->dataset : "/data", compressed);
    }
  }
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;
  ~Hdf5Output() override {
    const Hdf5Lock lock;
    dataset_.close();
    h5_.close();
  }

  void write_rows(int first, const ConstImageView& rows) override {
    check_rows(file_.target(), spec_, first, rows);
    cursor_.take(first, rows.spec.height);
    const std::size_t row = row_bytes(spec_);
    const auto most = static_cast<int>(std::clamp<std::uint64_t>(most_in_box / row, 1, spec_.height));
    for (int done = 0; done < rows.spec.height;) {
      const int top = first + done;
      const Hdf5Band band = band_of(array_, cursor_.page(), top);
      int count = std::min(most, rows.spec.height - done);
      if (!has_plain_rows(array_)) count = std::min(count, band.first_row + band.rows - top);
      box_.resize(row * static_cast<std::size_t>(count));
      for (int y = 0; y < count; ++y) {
        pack_row(rows, done + y, box_.data() + static_cast<std::size_t>(y) * row);
      }
      take_rows(band, top, count);
      done += count;
    }
  }

  void next_page() override { cursor_.next_page(); }

  void commit() override {
    cursor_.check_complete();
    {
      const Hdf5Lock lock;
      const bool closed = dataset_.close();
      check(file_.target(), not_written, closed ? H5Fflush(h5_.id(), H5F_SCOPE_LOCAL) : -1);
      if (!h5_.close()) fail_hdf5(file_.target(), not_written);
    }
    file_.commit();
  }

 private:
  void copy_bytes(const std::filesystem::path& from) {
    const SourceFile source(from);
    std::vector<std::byte> block(std::size_t{4} * mib);
    for (std::uint64_t at = 0; at < source.size();) {
      const std::size_t got = source.read_some(block.data(), block.size(), at);
      if (got == 0) break;
      file_.write(block.data(), got, at);
      at += got;
    }
  }

  void open_copy(const std::string& name, bool storage_asked, bool compressed) {
    h5_ = open_hdf5_file(file_.path(), H5F_ACC_RDWR);
    dataset_ = open_hdf5_dataset(h5_.id(), name);
    if (!dataset_) fail_hdf5(file_.target(), not_written);
    const Hdf5Handle type = checked(file_.target(), not_written, H5Dget_type(dataset_.id()), H5Tclose);
    Hdf5Handle storage = checked(file_.target(), not_written, H5Dget_create_plist(dataset_.id()), H5Pclose);
    const Hdf5Handle in_memory(H5Tget_native_type(type.id(), H5T_DIR_DEFAULT), H5Tclose);
    const H5D_layout_t layout = H5Pget_layout(storage.id());
    const bool is_virtual = layout == H5D_VIRTUAL;
    const bool same_size = H5Tget_size(type.id()) == static_cast<std::size_t>(bytes_per_sample(spec_.type));
    const bool same_type = (same_size && H5Tequal(in_memory.id(), type_.id()) > 0) || is_half(type.id());
    const bool encodes = can_encode(storage.id());
    if (same_type && encodes && !is_virtual && !storage_asked) return;
    // Compact storage, in the dataset's header, has no room for larger samples.
    if (storage_asked || is_virtual || layout == H5D_COMPACT || !encodes || follows_type(storage.id())) {
      Hdf5Sizes chunk = array_.chunk;
      if (storage_asked && !compressed) chunk.clear();
      if (compressed && chunk.empty()) chunk = usual_chunk(array_, spec_);
      storage = new_storage(chunk);
      array_.chunk = chunk;
    }
    replace_dataset(storage.id());
  }

  bool is_half(hid_t type) const {
    const Hdf5Handle same_order(H5Tcopy(type), H5Tclose);
    H5Tset_order(same_order.id(), H5Tget_order(type_.id()));
    return spec_.type == PixelType::f16 && H5Tequal(same_order.id(), type_.id()) > 0;
  }

  // A new dataset with the attributes of the former, under all its names. What is freed of the former is used
  // for the new one.
  void replace_dataset(hid_t storage) {
    const Hdf5Handle type = stored_type(spec_.type);
    Hdf5Handle space = checked(file_.target(), not_written, H5Dget_space(dataset_.id()), H5Sclose);
    if (array_.chunk.empty()) space = simple_space();  // contiguous arrays cannot grow
    Hdf5Handle fresh =
        checked(file_.target(), not_written,
                H5Dcreate_anon(h5_.id(), type.id(), space.id(), storage, H5P_DEFAULT), H5Dclose);
    Copying copying{fresh.id(), false};
    hsize_t index = 0;
    const herr_t copied =
        H5Aiterate2(dataset_.id(), H5_INDEX_NAME, H5_ITER_INC, &index, copy_attribute, &copying);
    if (copied < 0 || copying.failed) fail_hdf5(file_.target(), "the attributes cannot be written");
    H5O_info_t info;
    check(file_.target(), not_written, H5Oget_info(dataset_.id(), &info));
    Links links{info.addr, {}};
    check(file_.target(), not_written, H5Lvisit(h5_.id(), H5_INDEX_NAME, H5_ITER_INC, add_link, &links));
    for (const std::string& name : links.names) {
      check(file_.target(), not_written, H5Ldelete(h5_.id(), name.c_str(), H5P_DEFAULT));
      check(file_.target(), not_written,
            H5Olink(fresh.id(), h5_.id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT));
    }
    dataset_ = std::move(fresh);
  }

  Hdf5Handle simple_space() const {
    return {H5Screate_simple(static_cast<int>(array_.shape.size()), array_.shape.data(), nullptr), H5Sclose};
  }

  void create_new(const std::string& name, bool compressed) {
    h5_ = checked(file_.target(), not_written,
                  H5Fcreate(file_.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    if (compressed) array_.chunk = usual_chunk(array_, spec_);
    const Hdf5Handle storage = new_storage(array_.chunk);
    const Hdf5Handle type = stored_type(spec_.type);
    const Hdf5Handle space = simple_space();
    const Hdf5Handle groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(groups.id(), 1);
    dataset_ = checked(
        file_.target(), not_written,
        H5Dcreate2(h5_.id(), name.c_str(), type.id(), space.id(), groups.id(), storage.id(), H5P_DEFAULT),
        H5Dclose);
    if (array_.channel_axis) {  // HDF5's specification of images
      set_text(dataset_.id(), "CLASS", "IMAGE");
      set_text(dataset_.id(), "IMAGE_VERSION", "1.2");
      set_text(dataset_.id(), "IMAGE_SUBCLASS", "IMAGE_TRUECOLOR");
      set_text(dataset_.id(), "INTERLACE_MODE", "INTERLACE_PIXEL");
    }
  }

  // Rows of the page, in box_.
  void take_rows(const Hdf5Band& band, int top, int count) {
    if (has_plain_rows(array_)) {
      const Hdf5Band rows{.first_page = cursor_.page(), .pages = 1, .first_row = top, .rows = count};
      for_each_box(array_, rows, bytes_per_sample(spec_.type), box_.size(),
                   [&](const Hdf5Box& box) { write_box(box); });
      return;
    }
    const std::uint64_t row = row_bytes(spec_);
    const auto lines = static_cast<std::uint64_t>(band.pages) * static_cast<std::uint64_t>(band.rows);
    if (!store_) store_ = std::make_unique<Hdf5BandStore>(file_.target(), lines * row, most_in_band);
    const std::uint64_t line =
        static_cast<std::uint64_t>(cursor_.page() - band.first_page) * static_cast<std::uint64_t>(band.rows) +
        static_cast<std::uint64_t>(top - band.first_row);
    store_->write(box_.data(), box_.size(), line * row);
    if (line + static_cast<std::uint64_t>(count) == lines) write_band(band);
  }

  void write_band(const Hdf5Band& band) {
    const std::size_t sample = bytes_per_sample(spec_.type);
    for_each_box(array_, band, sample, most_in_box, [&](const Hdf5Box& box) {
      box_.resize(box.samples() * sample);
      for_each_run(array_, band, box, sample,
                   [&](std::size_t in_box, std::uint64_t in_band, std::size_t bytes) {
                     store_->read(box_.data() + in_box, bytes, in_band);
                   });
      write_box(box);
    });
    store_.reset();
  }

  void write_box(const Hdf5Box& box) {
    reorder_box(array_, box, bytes_per_sample(spec_.type), false, box_);
    const Hdf5Lock lock;
    const Hdf5Handle in_file = file_space_of(file_.target(), dataset_.id(), box);
    const Hdf5Handle in_memory = memory_space_of(box);
    check(file_.target(), not_written,
          H5Dwrite(dataset_.id(), type_.id(), in_memory.id(), in_file.id(), H5P_DEFAULT, box_.data()));
  }

  TemporaryFile file_;
  ImageSpec spec_;
  Hdf5Array array_;
  RowCursor cursor_;
  Hdf5Handle type_;  // of the samples in memory
  Hdf5Handle h5_;
  Hdf5Handle dataset_;
  std::unique_ptr<Hdf5BandStore> store_;  // of a band that is not complete
  std::vector<std::byte> box_;
};

}  // namespace

std::unique_ptr<OutputFile> create_hdf5(const std::filesystem::path& path, const FileInfo& info,
                                        const InputFile* like, const SaveOptions& options) {
  return std::make_unique<Hdf5Output>(path, info, like, options);
}

}  // namespace ungrain::io
