#include "io/ome_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "io/length_unit.h"
#include "io/tiff_tags.h"
#include "io/xml_tags.h"

namespace ungrain::io {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

// A whole number from 0 on. Nothing where it is none or cannot count pages.
std::optional<std::int64_t> count_of(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc{} || stop != end || number < 0 || number > most) return std::nullopt;
  return number;
}

// A positive size, in the unit of a voxel's width.
std::optional<double> size_of(const XmlTag& pixels, std::string_view attribute) {
  const std::optional<std::string_view> text = pixels.raw(attribute);
  if (!text) return std::nullopt;
  double size = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, size);
  if (error != std::errc{} || stop != end || !std::isfinite(size) || size <= 0) return std::nullopt;
  const auto unit = [&](std::string_view of) {
    return without_entities(pixels.raw(fmt::format("{}Unit", of)).value_or("um"));
  };
  return converted(size, unit(attribute), unit("PhysicalSizeX"));
}

std::optional<std::array<double, 3>> spacing_of(const XmlTag& pixels) {
  const std::optional<double> x = size_of(pixels, "PhysicalSizeX");
  const std::optional<double> y = size_of(pixels, "PhysicalSizeY");
  const std::optional<double> z = size_of(pixels, "PhysicalSizeZ");
  return x && y && z ? std::optional(std::array{*x, *y, *z}) : std::nullopt;
}

// <TiffData>: some planes, which are the directories of a file from one on.
struct PlanesInFile {
  std::optional<std::int64_t> first_slice = 0;  // nothing, here and below: damaged
  std::optional<std::int64_t> first_channel = 0;
  std::optional<std::int64_t> first_frame = 0;
  std::optional<std::int64_t> directory = 0;
  std::optional<std::int64_t> count = 0;
};

PlanesInFile planes_of(const XmlTag& tag, std::int64_t pages) {
  const auto number = [&](std::string_view attribute, std::int64_t otherwise) {
    return tag.raw(attribute) ? count_of(tag.raw(attribute)) : std::optional(otherwise);
  };
  PlanesInFile planes;
  planes.first_slice = number("FirstZ", 0);
  planes.first_channel = number("FirstC", 0);
  planes.first_frame = number("FirstT", 0);
  planes.directory = number("IFD", 0);
  // Older versions of the schema say NumPlanes.
  const std::string_view counted = tag.raw("PlaneCount") ? "PlaneCount" : "NumPlanes";
  planes.count = number(counted, tag.raw("IFD") ? 1 : pages);
  return planes;
}

class OmeParser {
 public:
  OmeParser(std::string_view description, int pages, int samples)
      : tags_(description), pages_(pages), samples_(samples) {}

  std::optional<OmeStack> parse() {
    std::optional<XmlTag> tag = tags_.next();
    if (!tag || tag->name != "OME") return std::nullopt;
    for (; tag; tag = tags_.next()) {
      if (!tag->ends) {
        take(*tag);
      } else if (tag->name == "UUID" && tag->parent == "TiffData" && !file_is_named_) {
        add_file(tag->text_before);
      }
    }
    if (tags_.damaged()) {
      stack_ = {};
      fail("its OME-XML is damaged");
    } else {
      find_problems();
    }
    if (images_ != 1) stack_.spacing.reset();
    return std::move(stack_);
  }

 private:
  void fail(std::string problem) {
    if (stack_.problem.empty()) stack_.problem = std::move(problem);
  }

  void take(const XmlTag& tag) {
    if (tag.name == "BinaryOnly") fail("its OME-XML is in another file");
    if (tag.name == "Image" && tag.parent == "OME") ++images_;
    if (tag.name == "Pixels" && tag.parent == "Image" && images_ == 1) take_pixels(tag);
    if (images_ != 1 || tag.parent == "OME") return;
    if (tag.name == "Channel" && tag.parent == "Pixels" && tag.raw("SamplesPerPixel")) {
      const std::int64_t samples = count_of(tag.raw("SamplesPerPixel")).value_or(0);
      if (samples_told_ && *samples_told_ != samples) fail("its channels have different numbers of samples");
      samples_told_ = samples;
    }
    if (tag.name == "TiffData" && tag.parent == "Pixels") planes_.push_back(planes_of(tag, pages_));
    if (tag.name == "UUID" && tag.parent == "TiffData") {
      file_is_named_ = tag.raw("FileName").has_value();
      if (file_is_named_) add_file(*tag.raw("FileName"));
    }
  }

  void take_pixels(const XmlTag& tag) {
    const auto size = [&](std::string_view attribute) {
      const std::optional<std::int64_t> number = count_of(tag.raw(attribute));
      if (!number || *number == 0) fail(fmt::format("its OME-XML has no valid {}", attribute));
      return number.value_or(0);
    };
    stack_.slices = size("SizeZ");
    stack_.channels = size("SizeC");
    stack_.frames = size("SizeT");
    stack_.spacing = spacing_of(tag);
    stack_.order.clear();
    const std::string_view order = tag.raw("DimensionOrder").value_or("");
    if (order.size() == 5 && order.starts_with("XY")) {
      for (const char axis : order.substr(2))
        stack_.order.push_back(axis == 'Z' ? 'z' : axis == 'C' ? 'c' : 't');
    }
    std::string sorted(order.substr(std::min<std::size_t>(2, order.size())));
    std::sort(sorted.begin(), sorted.end());
    if (stack_.order.empty() || sorted != "CTZ") fail("its OME-XML has no valid DimensionOrder");
  }

  // A text with the name, or the identifier, of the file that has the planes.
  void add_file(std::string_view file) {
    if (!file_.empty() && file_ != file) fail("its planes are in several files");
    file_ = file;
  }

  void find_problems() {
    if (images_ != 1) fail(fmt::format("its OME-XML describes {} images", images_));
    if (!stack_.problem.empty()) return;
    // Without a word about it the file's own samples are channels of one page, where they can be.
    const std::int64_t samples = samples_told_.value_or(stack_.channels % samples_ == 0 ? samples_ : 1);
    if (samples < 1 || stack_.channels % samples != 0) {
      return fail(fmt::format("its OME-XML has {} channels of {} samples", stack_.channels, samples));
    }
    stack_.channels /= samples;
    if (!planes_.empty()) check_planes();
  }

  // Whether the pages are the planes in the order of DimensionOrder.
  void check_planes() {
    std::int64_t told = 0;
    for (const PlanesInFile& planes : planes_) {
      const auto& [slice, channel, frame, directory, count] = planes;
      if (!slice || !channel || !frame || !directory || !count)
        return fail("its OME-XML has a damaged TiffData");
      if (*directory >= pages_ || *count > pages_ - *directory || *slice >= stack_.slices ||
          *channel >= stack_.channels || *frame >= stack_.frames) {
        return fail("its OME-XML tells planes that are not in the file");
      }
      if (plane_of(*slice, *channel, *frame) != static_cast<double>(*directory)) {
        return fail("its pages are in another order than its OME-XML's planes");
      }
      told += *count;
    }
    if (told != pages_) fail(fmt::format("its OME-XML tells {} planes, the file has {} pages", told, pages_));
  }

  // Its number in the order of the axes; a double, since three sizes of 31 bits are too large for an integer.
  // Numbers that pages can have are exact.
  double plane_of(std::int64_t slice, std::int64_t channel, std::int64_t frame) const {
    double plane = 0;
    double step = 1;
    for (const char axis : stack_.order) {
      const auto [at, size] = axis == 'z'   ? std::pair(slice, stack_.slices)
                              : axis == 'c' ? std::pair(channel, stack_.channels)
                                            : std::pair(frame, stack_.frames);
      plane += step * static_cast<double>(at);
      step *= static_cast<double>(size);
    }
    return plane;
  }

  XmlTags tags_;
  std::int64_t pages_;
  std::int64_t samples_;
  OmeStack stack_;
  std::int64_t images_ = 0;
  std::optional<std::int64_t> samples_told_;
  std::vector<PlanesInFile> planes_;
  std::string_view file_;       // of the first planes that name one
  bool file_is_named_ = false;  // by an attribute of the element that is open
};

std::string_view type_name(PixelType type) {
  switch (type) {
    case PixelType::u8:
      return "uint8";
    case PixelType::u16:
      return "uint16";
    case PixelType::f16:  // OME has no name for halves; its readers make floats of them
    case PixelType::f32:
      return "float";
  }
  return "float";
}

// Replaces parts of a text, which are told in the order in which they stand there.
class Replacements {
 public:
  explicit Replacements(std::string_view text) : text_(text) {}

  void add(std::string_view part, std::string_view by) {
    const auto begin = static_cast<std::size_t>(part.data() - text_.data());
    result_ += text_.substr(done_, begin - done_);
    result_ += by;
    done_ = begin + part.size();
  }
  std::string finish() {
    result_ += text_.substr(done_);
    return std::move(result_);
  }

 private:
  std::string_view text_;
  std::string result_;
  std::size_t done_ = 0;
};

// The attribute whose value an attribute gets where x and y are exchanged.
std::string exchanged(std::string_view attribute) {
  std::string name(attribute);
  for (const std::string_view before : {"Size", "PhysicalSize"}) {
    if (!name.starts_with(before) || name.size() == before.size()) continue;
    char& axis = name[before.size()];
    axis = axis == 'X' ? 'Y' : axis == 'Y' ? 'X' : axis;
  }
  return name;
}

void change_pixels(const XmlTag& tag, const OmeChanges& changes, Replacements& text) {
  const std::string_view type = type_name(changes.type);
  const std::string_view type_attribute = tag.raw("Type") ? "Type" : "PixelType";  // the latter until 2010
  const bool other_type = tag.raw(type_attribute).value_or(type) != type;
  const std::string bits = std::to_string(8 * bytes_per_sample(changes.type));
  for (const auto& [name, old] : tag.attributes) {
    if (tag.raw(name)->data() != old.data()) continue;  // of another namespace
    std::string_view now = old;
    if (name == type_attribute && other_type) now = type;
    if (name == "SignificantBits" && other_type) now = bits;
    if (changes.turned && exchanged(name) != name) now = tag.raw(exchanged(name)).value_or(old);
    if (now != old) text.add(old, now);
  }
}

// Whether every plane is in one file. Otherwise names tell files beside this one.
bool is_one_file(std::string_view description) {
  std::string_view file;
  XmlTags tags(description);
  while (const std::optional<XmlTag> tag = tags.next()) {
    if (tag->name != "UUID" || tag->ends || !tag->raw("FileName")) continue;
    if (!file.empty() && file != *tag->raw("FileName")) return false;
    file = *tag->raw("FileName");
  }
  return !tags.damaged();
}

}  // namespace

bool is_ome_xml(std::string_view description) {
  const std::optional<XmlTag> tag = XmlTags(description).next();
  return tag && tag->name == "OME";
}

std::optional<OmeStack> parse_ome(std::string_view description, int pages, int samples) {
  return OmeParser(description, pages, std::max(1, samples)).parse();
}

bool keeps_ome_xml(const Metadata& metadata, const std::vector<int>& pages) {
  constexpr int palette = 3;  // TIFF's PhotometricInterpretation
  const bool whole = pages.empty() || !metadata.tiff_tags ||
                     pages.size() == static_cast<std::size_t>(metadata.tiff_tags->pages());
  return whole && !(metadata.tiff_storage && metadata.tiff_storage->photometric == palette);
}

std::string with_ome_changes(std::string_view description, const OmeChanges& changes) {
  const bool one_file = is_one_file(description);
  Replacements text(description);
  XmlTags tags(description);
  while (const std::optional<XmlTag> tag = tags.next()) {
    if (tag->ends) continue;
    if (tag->name == "Pixels" && tag->parent == "Image") change_pixels(*tag, changes, text);
    if (one_file && tag->name == "UUID" && tag->parent == "TiffData" && tag->raw("FileName")) {
      text.add(*tag->raw("FileName"), with_entities(changes.file_name));
    }
  }
  return tags.damaged() ? std::string(description) : text.finish();
}

}  // namespace ungrain::io
