#include "io/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "io/tiff_exif.h"
#include "io/tiff_tags.h"

namespace ungrain::io {
namespace {

constexpr std::string_view resource_mark = "8BIM";
constexpr unsigned iptc_resource = 0x0404;

unsigned byte_at(const Bytes& bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

// One of Photoshop's resources: mark, number, name (Pascal string, padded to even), size, data (padded).
struct Resource {
  std::size_t begin = 0;
  std::size_t data = 0;
  std::size_t size = 0;
  std::size_t end = 0;
  unsigned number = 0;
};

std::optional<Resource> resource_at(const Bytes& bytes, std::size_t at) {
  constexpr std::size_t before_name = 6;
  if (bytes.size() - at < before_name + 2 + 4) return std::nullopt;
  for (std::size_t i = 0; i < resource_mark.size(); ++i) {
    if (byte_at(bytes, at + i) != static_cast<unsigned char>(resource_mark[i])) return std::nullopt;
  }
  Resource found{.begin = at};
  found.number = byte_at(bytes, at + 4) << 8U | byte_at(bytes, at + 5);
  const std::size_t name_bytes = (byte_at(bytes, at + before_name) + 2) / 2 * 2;
  const std::size_t size_at = at + before_name + name_bytes;
  if (size_at + 4 > bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < 4; ++i) found.size = found.size << 8U | byte_at(bytes, size_at + i);
  found.data = size_at + 4;
  if (found.size > bytes.size() - found.data) return std::nullopt;
  found.end = std::min(bytes.size(), found.data + (found.size + 1) / 2 * 2);
  return found;
}

std::vector<Resource> resources_of(const Bytes& bytes) {
  std::vector<Resource> list;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::optional<Resource> found = resource_at(bytes, at);
    if (!found) break;
    list.push_back(*found);
    at = found->end;
  }
  return list;
}

void append(Bytes& to, const Bytes& from, std::size_t begin, std::size_t end) {
  to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
            from.begin() + static_cast<std::ptrdiff_t>(end));
}

// tiff:Orientation="6" and <tiff:Orientation>6</...>. Only the digit changes, so that no byte moves.
void set_upright_in_xmp(Bytes& xmp) {
  constexpr std::string_view name = "tiff:Orientation";
  const auto same = [](std::byte a, char b) { return a == static_cast<std::byte>(b); };
  auto at = xmp.begin();
  while (true) {
    at = std::search(at, xmp.end(), name.begin(), name.end(), same);
    if (at == xmp.end()) return;
    at += static_cast<std::ptrdiff_t>(name.size());
    const auto value = std::find_if(at, xmp.end(), [](std::byte b) {
      return std::string_view("=\"'> \n\r\t").find(static_cast<char>(b)) == std::string_view::npos;
    });
    if (value != xmp.end() && *value >= std::byte{'1'} && *value <= std::byte{'8'}) *value = std::byte{'1'};
  }
}

}  // namespace

unsigned kinds_of(const Metadata& metadata) {
  unsigned kinds = 0;
  const auto add = [&](bool there, MetadataKind kind) {
    if (there) kinds |= kind;
  };
  add(!metadata.exif.empty(), keeps_exif);
  add(!metadata.xmp.empty(), keeps_xmp);
  add(!metadata.iptc.empty(), keeps_iptc);
  add(!metadata.photoshop.empty() && metadata.iptc.empty(), keeps_photoshop);
  add(!metadata.icc.empty(), keeps_icc);
  add(metadata.resolution.has_value(), keeps_resolution);
  add(!metadata.description.empty(), keeps_description);
  add(!metadata.png_texts.empty(), keeps_png_texts);
  add(!metadata.jpeg_comments.empty(), keeps_comments);
  add(!metadata.fits_cards.empty(), keeps_fits_cards);
  add(!metadata.delays.empty(), keeps_animation);
  add(metadata.tiff_tags != nullptr && metadata.tiff_tags->has_private_tags(), keeps_tiff_tags);
  add(metadata.nifti.has_value(), keeps_nifti);
  add(metadata.hdf5 != nullptr, keeps_hdf5);
  return kinds;
}

std::string kinds_text(unsigned kinds) {
  constexpr std::array names = {
      std::pair{keeps_exif, "EXIF"},
      std::pair{keeps_xmp, "XMP"},
      std::pair{keeps_iptc, "IPTC"},
      std::pair{keeps_icc, "ICC profile"},
      std::pair{keeps_resolution, "resolution"},
      std::pair{keeps_description, "description"},
      std::pair{keeps_png_texts, "PNG text"},
      std::pair{keeps_fits_cards, "FITS header"},
      std::pair{keeps_animation, "animation delays"},
      std::pair{keeps_tiff_tags, "TIFF tags"},
      std::pair{keeps_photoshop, "Photoshop resources"},
      std::pair{keeps_comments, "comment"},
      std::pair{keeps_nifti, "NIfTI header"},
      std::pair{keeps_hdf5, "HDF5 attributes and other datasets"},
  };
  std::vector<std::string_view> list;
  for (const auto& [kind, name] : names) {
    if ((kinds & kind) != 0) list.emplace_back(name);
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

Bytes iptc_in_photoshop(const Bytes& photoshop) {
  Bytes iptc;
  for (const Resource& resource : resources_of(photoshop)) {
    if (resource.number == iptc_resource) {
      append(iptc, photoshop, resource.data, resource.data + resource.size);
      break;
    }
  }
  return iptc;
}

Bytes photoshop_with_iptc(const Bytes& photoshop, const Bytes& iptc) {
  Bytes result;
  for (const Resource& resource : resources_of(photoshop)) {
    if (resource.number == iptc_resource) continue;
    append(result, photoshop, resource.begin, resource.end);
    if (result.size() % 2 != 0) result.push_back(std::byte{0});  // the last one may lack its padding
  }
  if (iptc.empty()) return result;
  for (const char c : resource_mark) result.push_back(static_cast<std::byte>(c));
  for (const std::size_t byte :
       {std::size_t{iptc_resource >> 8U}, std::size_t{iptc_resource & 0xffU}, std::size_t{0}, std::size_t{0},
        iptc.size() >> 24U, iptc.size() >> 16U, iptc.size() >> 8U, iptc.size()}) {
    result.push_back(static_cast<std::byte>(byte & 0xffU));
  }
  result.insert(result.end(), iptc.begin(), iptc.end());
  if (iptc.size() % 2 != 0) result.push_back(std::byte{0});
  return result;
}

void set_upright(Metadata& metadata) {
  metadata.orientation = 1;
  set_exif_upright(metadata.exif);
  set_upright_in_xmp(metadata.xmp);
}

}  // namespace ungrain::io
