#include "io/hdf5_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "io/failure.h"
#include "io/sample_matrix.h"

namespace ungrain::io {
namespace {

constexpr hsize_t most_values = 1'000'000;  // of an attribute or of the positions along an axis

Hdf5Sizes shape_of(hid_t space) {
  const int axes = H5Sget_simple_extent_ndims(space);
  if (axes <= 0) return {};
  Hdf5Sizes shape(static_cast<std::size_t>(axes));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  return shape;
}

Hdf5Sizes shape_of_dataset(hid_t dataset) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  return shape_of(space.id());
}

bool is_number(hid_t dataset) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

Hdf5Handle open_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  return {H5Aopen(object, name, H5P_DEFAULT), H5Aclose};
}

// The texts of an attribute; empty where it has none.
std::vector<std::string> texts_of(hid_t object, const char* name) {
  const Hdf5Handle attribute = open_attribute(object, name);
  if (!attribute) return {};
  const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  const std::size_t size = H5Tget_size(type.id());
  constexpr std::size_t most_bytes = 1U << 20U;
  if (H5Tget_class(type.id()) != H5T_STRING || count < 1 || size == 0) return {};
  if (static_cast<hsize_t>(count) > most_bytes / size) return {};
  std::vector<char> bytes(static_cast<std::size_t>(count) * size);
  if (H5Aread(attribute.id(), type.id(), bytes.data()) < 0) return {};
  std::vector<std::string> texts;
  const bool by_pointer = H5Tis_variable_str(type.id()) > 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const char* text = bytes.data() + i * size;
    std::size_t longest = size;
    if (by_pointer) {
      std::memcpy(static_cast<void*>(&text), bytes.data() + i * size, sizeof text);
      longest = text == nullptr ? 0 : std::strlen(text);
    }
    texts.emplace_back(text == nullptr ? "" : text, text == nullptr ? 0 : ::strnlen(text, longest));
    const std::size_t last = texts.back().find_last_not_of(' ');  // Fortran fills up with spaces
    texts.back().resize(last == std::string::npos ? 0 : last + 1);
  }
  if (by_pointer) H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, bytes.data());
  return texts;
}

std::string text_of(hid_t object, const char* name) {
  const std::vector<std::string> texts = texts_of(object, name);
  return texts.size() == 1 ? texts[0] : "";
}

std::vector<double> numbers_of(hid_t object, const char* name) {
  const Hdf5Handle attribute = open_attribute(object, name);
  if (!attribute) return {};
  const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || count < 1) return {};
  if (static_cast<hsize_t>(count) > most_values) return {};
  std::vector<double> numbers(static_cast<std::size_t>(count));
  if (H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, numbers.data()) < 0) return {};
  return numbers;
}

std::string joined(const std::string& group, const std::string& name) {
  if (name.starts_with('/')) return name;
  return group == "/" ? "/" + name : group + "/" + name;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

// NeXus names what is to be plotted: "default" leads from group to group, "signal" to the dataset.
std::string nexus_default(hid_t file) {
  std::string group = "/";
  constexpr int most_groups = 16;
  for (int i = 0; i < most_groups; ++i) {
    const Hdf5Handle opened = open_hdf5_group(file, group);
    if (!opened) return "";
    const std::string next = text_of(opened.id(), "default");
    if (next.empty()) {
      const std::string signal = text_of(opened.id(), "signal");
      return signal.empty() ? "" : joined(group, signal);
    }
    group = joined(group, next);
  }
  return "";
}

struct Found {
  std::vector<std::string> datasets;
  bool too_many = false;
};

herr_t add_dataset(hid_t, const char* name, const H5O_info_t* info, void* found) {
  auto& list = *static_cast<Found*>(found);
  constexpr std::size_t most = 100'000;
  if (info->type != H5O_TYPE_DATASET) return 0;
  list.too_many = list.datasets.size() == most;
  if (list.too_many) return 1;
  list.datasets.push_back(std::string("/") + name);
  return 0;
}

herr_t add_outside_link(hid_t, const char* name, const H5L_info_t* info, void* found) {
  if (info->type != H5L_TYPE_EXTERNAL) return 0;
  *static_cast<std::string*>(found) = std::string("/") + name;
  return 1;
}

bool is_candidate(hid_t file, const std::string& name) {
  const Hdf5Handle dataset = open_hdf5_dataset(file, name);
  return dataset && is_number(dataset.id()) && shape_of_dataset(dataset.id()).size() >= 2;
}

std::string list_text(hid_t file, const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
    const Hdf5Handle dataset = open_hdf5_dataset(file, names[i]);
    texts.push_back(fmt::format("{} {}", names[i], shape_text(shape_of_dataset(dataset.id()))));
  }
  if (names.size() > most) texts.push_back(fmt::format("and {} more", names.size() - most));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Names of filters that are common as plug-ins, where the file does not tell them.
std::string filter_name(H5Z_filter_t number, std::string_view told) {
  std::string_view name = told;
  if (name.empty()) {
    switch (number) {
      case H5Z_FILTER_SZIP:
        name = "szip";
        break;
      case 307:
        name = "bzip2";
        break;
      case 32000:
        name = "lzf";
        break;
      case 32001:
        name = "blosc";
        break;
      case 32004:
        name = "lz4";
        break;
      case 32008:
        name = "bitshuffle";
        break;
      case 32013:
        name = "zfp";
        break;
      case 32015:
        name = "zstd";
        break;
      case 32026:
        name = "blosc2";
        break;
      default:
        break;
    }
  }
  return name.empty() ? fmt::format("number {}", number)
                      : fmt::format("number {} ({})", number, one_line(name));
}

void check_filters(const std::filesystem::path& path, hid_t storage, const std::string& name) {
  const int count = H5Pget_nfilters(storage);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t values = 0;
    std::array<char, 128> text{};
    const H5Z_filter_t filter = H5Pget_filter2(storage, static_cast<unsigned>(i), &flags, &values, nullptr,
                                               text.size() - 1, text.data(), &config);
    if (filter < 0) fail_hdf5(path, fmt::format("the filters of {} cannot be read", name));
    if (H5Zfilter_avail(filter) > 0) continue;
    fail(path,
         fmt::format("{} is compressed by filter {}, which this libhdf5 lacks; a plug-in in the folder that "
                     "HDF5_PLUGIN_PATH names would do, or h5repack -f GZIP=4",
                     name, filter_name(filter, text.data())));
  }
}

[[noreturn]] void fail_outside(const std::filesystem::path& path, const std::string& name,
                               const std::string& other) {
  fail(path,
       fmt::format("the samples of {} are in another file ({}), and only the file itself is read: h5repack "
                   "or h5copy joins them",
                   name, other));
}

void check_own_samples(const std::filesystem::path& path, hid_t file, hid_t dataset, const std::string& name,
                       int depth);

// A virtual dataset shows parts of others, which may be virtual again.
void check_sources(const std::filesystem::path& path, hid_t file, hid_t storage, const std::string& name,
                   int depth) {
  constexpr int deepest = 4;
  constexpr std::size_t most = 10'000;
  std::size_t count = 0;
  check(path, fmt::format("{} cannot be read", name), H5Pget_virtual_count(storage, &count));
  if (depth == deepest || count > most) {
    fail(path, fmt::format("{} is a virtual dataset of too many parts", name));
  }
  std::string checked_last;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr std::size_t longest = 4096;
    std::vector<char> text(longest);
    if (H5Pget_virtual_filename(storage, i, text.data(), text.size()) < 0) {
      fail_hdf5(path, fmt::format("{} cannot be read", name));
    }
    text.back() = '\0';
    if (const std::string other = text.data(); other != ".") fail_outside(path, name, other);
    if (H5Pget_virtual_dsetname(storage, i, text.data(), text.size()) < 0) {
      fail_hdf5(path, fmt::format("{} cannot be read", name));
    }
    text.back() = '\0';
    const std::string source = text.data();
    if (source == checked_last) continue;
    const Hdf5Handle opened = open_hdf5_dataset(file, source);
    if (!opened)
      fail(path, fmt::format("{} is a virtual dataset of {}, which is not in the file", name, source));
    check_own_samples(path, file, opened.id(), source, depth + 1);
    checked_last = source;
  }
}

void check_own_samples(const std::filesystem::path& path, hid_t file, hid_t dataset, const std::string& name,
                       int depth) {
  const Hdf5Handle storage =
      checked(path, fmt::format("{} cannot be read", name), H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_external_count(storage.id()) > 0) {
    std::array<char, 4096> text{};
    off_t offset = 0;
    hsize_t size = 0;
    H5Pget_external(storage.id(), 0, text.size() - 1, text.data(), &offset, &size);
    fail_outside(path, name, text.data());
  }
  if (H5Pget_layout(storage.id()) == H5D_VIRTUAL) check_sources(path, file, storage.id(), name, depth);
  check_filters(path, storage.id(), name);
}

std::string_view class_name(H5T_class_t kind, hid_t type) {
  switch (kind) {
    case H5T_STRING:
      return "texts";
    case H5T_COMPOUND: {
      const bool pair = H5Tget_nmembers(type) == 2;
      return pair && H5Tget_member_index(type, "r") >= 0 && H5Tget_member_index(type, "i") >= 0
                 ? "complex numbers"
                 : "records of several values";
    }
    case H5T_ENUM:
      return "names of an enumeration";
    case H5T_REFERENCE:
      return "references";
    case H5T_ARRAY:
    case H5T_VLEN:
      return "lists";
    default:
      return "no numbers";
  }
}

// Colour, by HDF5's specification of images: (height, width, 3).
bool is_colour_image(hid_t dataset, const Hdf5Sizes& shape) {
  return shape.size() == 3 && (shape[2] == 3 || shape[2] == 4) && text_of(dataset, "CLASS") == "IMAGE" &&
         text_of(dataset, "INTERLACE_MODE") == "INTERLACE_PIXEL";
}

void set_axes(const std::filesystem::path& path, const std::string& name, std::optional<int> asked,
              Hdf5Array& array) {
  const auto axes = static_cast<int>(array.shape.size());
  const int given = asked.value_or(0);
  const int axis = given < 0 ? given + axes : given;
  if (axis < 0 || axis >= axes) {
    fail(path, fmt::format("{} of shape {} has no axis {}", name, shape_text(array.shape), given));
  }
  // What `ungrain volume` assumes is the first axis; of one or more than three axes that is no choice.
  if (axis != 0 && axes != 3) {
    fail(path,
         fmt::format("{} of shape {}: --axis is for arrays of three axes", name, shape_text(array.shape)));
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    if (axes != 3 || i != static_cast<std::size_t>(axis)) others.push_back(i);
  }
  array.column_axis = others.back();
  array.row_axis = others[others.size() - 2];
  others.resize(others.size() - 2);
  array.page_axes = axes == 3 ? std::vector<std::size_t>{static_cast<std::size_t>(axis)} : others;
}

// The distance between positions along an axis; 0: they are not even.
double even_distance(hid_t dataset, hsize_t length) {
  const Hdf5Sizes shape = shape_of_dataset(dataset);
  if (shape.size() != 1 || shape[0] < 2 || shape[0] > most_values || !is_number(dataset)) return 0;
  if (shape[0] != length && shape[0] != length + 1) return 0;  // the edges of the voxels
  const Hdf5Handle storage(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(storage.id()) == H5D_VIRTUAL || H5Pget_external_count(storage.id()) != 0) return 0;
  std::vector<double> positions(shape[0]);
  if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, positions.data()) < 0) return 0;
  const double mean = (positions.back() - positions.front()) / static_cast<double>(positions.size() - 1);
  for (std::size_t i = 1; i < positions.size(); ++i) {
    // Written so that NaN is not even.
    if (!(std::abs(positions[i] - positions[i - 1] - mean) <= 0.01 * std::abs(mean))) return 0;
  }
  return std::abs(mean);
}

std::vector<double> nexus_distances(hid_t file, const std::string& name, const Hdf5Sizes& shape) {
  const std::string parent = parent_of(name);
  const Hdf5Handle group = open_hdf5_group(file, parent);
  if (!group) return {};
  const std::vector<std::string> axes = texts_of(group.id(), "axes");
  if (axes.size() != shape.size()) return {};
  std::vector<double> distances;
  for (std::size_t axis = axes.size() - 3; axis < axes.size(); ++axis) {
    const Hdf5Handle positions = open_hdf5_dataset(file, joined(parent, axes[axis]));
    distances.push_back(positions ? even_distance(positions.id(), shape[axis]) : 0);
  }
  return distances;
}

}  // namespace

std::string find_dataset(const std::filesystem::path& path, hid_t file, const std::string& asked) {
  if (!asked.empty()) return joined("/", asked);
  if (const std::string name = nexus_default(file); !name.empty() && is_candidate(file, name)) return name;
  Found found;
  if (H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, add_dataset, &found) < 0) {
    fail_hdf5(path, "truncated or damaged: its objects cannot be listed");
  }
  if (found.too_many) fail(path, "holds more datasets than can be searched: --dataset names one");
  std::vector<std::string> names;
  for (const std::string& name : found.datasets) {
    if (is_candidate(file, name)) names.push_back(name);
  }
  if (names.size() == 1) return names[0];
  if (names.size() > 1) {
    fail(path, fmt::format("holds several arrays: {}; --dataset names one", list_text(file, names)));
  }
  std::string link;
  H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, add_outside_link, &link);
  if (!link.empty()) fail(path, fmt::format("holds no array of its own: {} is a link to another file", link));
  fail(path, "holds no array of numbers with two or more axes");
}

void check_storage(const std::filesystem::path& path, hid_t file, hid_t dataset, const std::string& name) {
  check_own_samples(path, file, dataset, name, 0);
}

Hdf5Sample sample_of(const std::filesystem::path& path, hid_t dataset, const std::string& name) {
  const Hdf5Handle type =
      checked(path, fmt::format("{} cannot be read", name), H5Dget_type(dataset), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  Hdf5Sample sample;
  sample.stored_bytes = H5Tget_size(type.id());
  const std::size_t bits = H5Tget_precision(type.id());
  if (kind == H5T_INTEGER) {
    const bool is_signed = H5Tget_sign(type.id()) == H5T_SGN_2;
    if (bits > 64) fail(path, fmt::format("{} has integers of {} bits, which cannot be read", name, bits));
    if (!is_signed && bits <= 16) {
      sample.type = bits <= 8 ? PixelType::u8 : PixelType::u16;
      return sample;
    }
    sample.type = PixelType::f32;
    sample.range = std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0)) - 1;
    sample.note = fmt::format("{}{} samples converted to f32", is_signed ? 'i' : 'u', bits);
    return sample;
  }
  if (kind != H5T_FLOAT) {
    fail(path, fmt::format("{} holds {}, not samples of an image", name, class_name(kind, type.id())));
  }
  const Hdf5Handle half = stored_type(PixelType::f16);
  const Hdf5Handle same_order(H5Tcopy(type.id()), H5Tclose);
  H5Tset_order(same_order.id(), H5T_ORDER_LE);
  if (H5Tequal(same_order.id(), half.id()) > 0) {
    sample.type = PixelType::f16;
    return sample;
  }
  sample.type = PixelType::f32;
  sample.from_double = sample.stored_bytes > 4;
  if (sample.stored_bytes != 4)
    sample.note = fmt::format("f{} samples converted to f32", 8 * sample.stored_bytes);
  return sample;
}

Hdf5Array array_of(const std::filesystem::path& path, hid_t dataset, const std::string& name,
                   std::optional<int> axis) {
  Hdf5Array array{.shape = shape_of_dataset(dataset)};
  if (array.shape.size() < 2) {
    fail(path,
         fmt::format("{} of shape {} is no image: that has two axes or more", name, shape_text(array.shape)));
  }
  const Hdf5Handle storage(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(storage.id()) == H5D_CHUNKED) {
    array.chunk.resize(array.shape.size());
    H5Pget_chunk(storage.id(), static_cast<int>(array.chunk.size()), array.chunk.data());
  }
  if (is_colour_image(dataset, array.shape)) {
    array.channel_axis = 2;
  } else {
    set_axes(path, name, axis, array);
  }
  const std::uint64_t pages_limit = std::numeric_limits<int>::max();
  std::uint64_t pages = 1;
  for (const std::size_t page_axis : array.page_axes) {
    const hsize_t length = array.shape[page_axis];
    if (length == 0) fail(path, fmt::format("{} of shape {} has no samples", name, shape_text(array.shape)));
    if (length > pages_limit / pages) {
      fail(path,
           fmt::format("{} of shape {}: more than {} slices", name, shape_text(array.shape), pages_limit));
    }
    pages *= length;
  }
  const auto length = [&](std::size_t of_axis) {
    return static_cast<std::int64_t>(
        std::min<hsize_t>(array.shape[of_axis], std::numeric_limits<std::int64_t>::max()));
  };
  check_size(path, length(array.column_axis), length(array.row_axis),
             array.channel_axis ? length(*array.channel_axis) : 1);
  return array;
}

std::optional<std::array<double, 3>> spacing_of(hid_t file, hid_t dataset, const std::string& name,
                                                const Hdf5Array& array) {
  if (array.page_axes.empty()) return std::nullopt;
  std::vector<double> sizes = numbers_of(dataset, "element_size_um");
  if (sizes.size() != 3) sizes = nexus_distances(file, name, array.shape);
  const auto usable = [](double size) { return std::isfinite(size) && size > 0; };
  if (sizes.size() != 3 || !std::all_of(sizes.begin(), sizes.end(), usable)) return std::nullopt;
  const std::size_t before = array.shape.size() - 3;  // the sizes are those of the last three axes
  return std::array{sizes[array.column_axis - before], sizes[array.row_axis - before],
                    sizes[array.page_axes.back() - before]};
}

}  // namespace ungrain::io
