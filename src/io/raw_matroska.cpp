#include "io/raw_matroska.h"

#include <cmath>
#include <string_view>

namespace ungrain::io {
namespace {

// Elements by their numbers in the Matroska specification.
enum Element : std::uint32_t {
  ebml = 0x1A45DFA3,
  doc_type = 0x4282,
  doc_type_version = 0x4287,
  doc_type_read_version = 0x4285,
  segment = 0x18538067,
  segment_info = 0x1549A966,
  timestamp_scale = 0x2AD7B1,
  muxing_app = 0x4D80,
  writing_app = 0x5741,
  tracks = 0x1654AE6B,
  track_entry = 0xAE,
  track_number = 0xD7,
  track_uid = 0x73C5,
  track_type = 0x83,
  flag_lacing = 0x9C,
  codec_id = 0x86,
  default_duration = 0x23E383,
  video = 0xE0,
  flag_interlaced = 0x9A,
  pixel_width = 0xB0,
  pixel_height = 0xBA,
  display_width = 0x54B0,
  display_height = 0x54BA,
  uncompressed_fourcc = 0x2EB524,
  cluster = 0x1F43B675,
  cluster_timestamp = 0xE7,
  simple_block = 0xA3,
};

using Bytes = std::vector<std::byte>;

void append_number(Bytes& to, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    to.push_back(static_cast<std::byte>(value >> static_cast<unsigned>(shift) & 0xffU));
}

void append_id(Bytes& to, Element id) {
  const auto number = static_cast<std::uint32_t>(id);
  append_number(to, number, number > 0xffffffU ? 4 : number > 0xffffU ? 3 : number > 0xffU ? 2 : 1);
}

// Sizes take eight bytes, the first of which says so.
constexpr std::uint64_t size_mark = std::uint64_t{1} << 56U;
constexpr std::uint64_t unknown_size = (std::uint64_t{1} << 57U) - 1;
void append_size(Bytes& to, std::uint64_t size) { append_number(to, size_mark | size, 8); }

void append(Bytes& to, Element id, const Bytes& content) {
  append_id(to, id);
  append_size(to, content.size());
  to.insert(to.end(), content.begin(), content.end());
}

void append(Bytes& to, Element id, std::uint64_t value) {
  append_id(to, id);
  append_size(to, 8);
  append_number(to, value, 8);
}

void append(Bytes& to, Element id, std::string_view text) {
  const auto* start = reinterpret_cast<const std::byte*>(text.data());
  append(to, id, Bytes(start, start + text.size()));
}

}  // namespace

std::string raw_code(const ImageSpec& spec) {
  const int bits = bits_of(spec);
  const auto code = [&](char kind, int shape) {
    return std::string{'Y', kind, static_cast<char>(shape), static_cast<char>(bits)};
  };
  if (is_float(spec.type) || spec.alpha) return "";
  if (spec.colour == Colour::gray) return bits == 8 ? "Y800" : code('1', 0);
  if (spec.colour == Colour::rgb)
    return bits == 8 || bits == 16 ? std::string{'R', 'G', 'B', static_cast<char>(3 * bits)} : "";
  if (spec.colour != Colour::ycbcr) return "";
  if (spec.chroma == Subsampling{2, 2}) return bits == 8 ? "I420" : code('3', 11);
  if (spec.chroma == Subsampling{2, 1}) return bits == 8 ? "Y42B" : code('3', 10);
  if (spec.chroma == Subsampling{1, 1}) return bits == 8 ? "444P" : code('3', 0);
  if (spec.chroma == Subsampling{4, 1} && bits == 8) return "Y41B";
  return "";
}

std::vector<std::byte> matroska_header(const ClipInfo& info) {
  const auto width = static_cast<std::uint64_t>(info.spec.width);
  const auto height = static_cast<std::uint64_t>(info.spec.height);
  Bytes picture;
  append(picture, flag_interlaced, 2);  // progressive
  append(picture, pixel_width, width);
  append(picture, pixel_height, height);
  if (info.aspect.known()) {
    append(picture, display_width, width * static_cast<std::uint64_t>(info.aspect.num));
    append(picture, display_height, height * static_cast<std::uint64_t>(info.aspect.den));
  }
  append(picture, uncompressed_fourcc, raw_code(info.spec));

  Bytes track;
  append(track, track_number, 1);
  append(track, track_uid, 1);
  append(track, track_type, 1);  // video
  append(track, flag_lacing, 0);
  append(track, codec_id, std::string_view("V_UNCOMPRESSED"));
  if (info.rate.known()) {
    append(track, default_duration,
           static_cast<std::uint64_t>(
               std::llround(1e9 * static_cast<double>(info.rate.den) / static_cast<double>(info.rate.num))));
  }
  append(track, video, picture);
  Bytes list;
  append(list, track_entry, track);

  Bytes about;
  append(about, timestamp_scale, 1);  // nanoseconds
  append(about, muxing_app, std::string_view("ungrain"));
  append(about, writing_app, std::string_view("ungrain"));

  Bytes kind;
  append(kind, doc_type, std::string_view("matroska"));
  append(kind, doc_type_version, 4);
  append(kind, doc_type_read_version, 2);

  Bytes header;
  append(header, ebml, kind);
  append_id(header, segment);
  append_number(header, unknown_size, 8);
  append(header, segment_info, about);
  append(header, tracks, list);
  return header;
}

void append_matroska_frame(const Image& frame, std::uint64_t nanoseconds, std::vector<std::byte>& to) {
  constexpr std::uint64_t timestamp_bytes = 1 + 8 + 8;
  constexpr std::uint64_t block_start = 4;  // track, relative time, flags
  const std::uint64_t frame_bytes = packed_bytes(frame.spec());
  append_id(to, cluster);
  append_size(to, timestamp_bytes + 1 + 8 + block_start + frame_bytes);
  append(to, cluster_timestamp, nanoseconds);
  append_id(to, simple_block);
  append_size(to, block_start + frame_bytes);
  append_number(to, 0x81, 1);  // track 1
  append_number(to, 0, 2);
  append_number(to, 0x80, 1);  // a key frame
  append_packed(frame, to);
}

}  // namespace ungrain::io
