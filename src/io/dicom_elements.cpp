#include "io/dicom_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "io/builtin_formats.h"
#include "io/failure.h"

namespace ungrain::io {
namespace {

constexpr std::uint64_t preamble_bytes = 128;
constexpr std::string_view magic = "DICM";
constexpr std::uint32_t no_length = 0xffffffffU;
constexpr DicomTag item_tag = dicom_tag(0xfffe, 0xe000);
constexpr DicomTag item_end = dicom_tag(0xfffe, 0xe00d);
constexpr DicomTag sequence_end = dicom_tag(0xfffe, 0xe0dd);
constexpr DicomTag pixel_data = dicom_tag(0x7fe0, 0x0010);
constexpr std::size_t deepest = 16;  // items in items
constexpr std::size_t longest_text = 1024;

const std::vector<DicomSyntax>& syntaxes() {
  using Coding = DicomPixelCoding;
  constexpr DicomEncoding implicit_types = {.explicit_types = false};
  constexpr DicomEncoding big = {.big_endian = true};
  // clang-format off
  static const std::vector<DicomSyntax> list = {
      {"1.2.840.10008.1.2", "implicit little endian", implicit_types, false, Coding::native},
      {"1.2.840.10008.1.2.1", "explicit little endian", {}, false, Coding::native},
      {"1.2.840.10008.1.2.1.99", "deflated", {}, true, Coding::native},
      {"1.2.840.10008.1.2.2", "explicit big endian", big, false, Coding::native},
      {"1.2.840.10008.1.2.5", "RLE", {}, false, Coding::rle},
      {"1.2.840.10008.1.2.4.50", "JPEG baseline", {}, false, Coding::unknown, "gdcmconv --raw or dcmdjpeg"},
      {"1.2.840.10008.1.2.4.51", "JPEG extended", {}, false, Coding::unknown, "gdcmconv --raw or dcmdjpeg"},
      {"1.2.840.10008.1.2.4.57", "lossless JPEG", {}, false, Coding::unknown, "gdcmconv --raw or dcmdjpeg"},
      {"1.2.840.10008.1.2.4.70", "lossless JPEG", {}, false, Coding::unknown, "gdcmconv --raw or dcmdjpeg"},
      {"1.2.840.10008.1.2.4.80", "lossless JPEG-LS", {}, false, Coding::unknown, "gdcmconv --raw or dcmdjpls"},
      {"1.2.840.10008.1.2.4.81", "JPEG-LS", {}, false, Coding::unknown, "gdcmconv --raw or dcmdjpls"},
      {"1.2.840.10008.1.2.4.90", "lossless JPEG 2000", {}, false, Coding::unknown, "gdcmconv --raw"},
      {"1.2.840.10008.1.2.4.91", "JPEG 2000", {}, false, Coding::unknown, "gdcmconv --raw"},
      {"1.2.840.10008.1.2.4.201", "lossless HTJ2K", {}, false, Coding::unknown, "pydicom decompress"},
      {"1.2.840.10008.1.2.4.202", "lossless HTJ2K", {}, false, Coding::unknown, "pydicom decompress"},
      {"1.2.840.10008.1.2.4.203", "HTJ2K", {}, false, Coding::unknown, "pydicom decompress"},
      {"1.2.840.10008.1.2.4.100", "MPEG-2 video", {}, false, Coding::unknown, "ffmpeg"},
      {"1.2.840.10008.1.2.4.102", "MPEG-4 video", {}, false, Coding::unknown, "ffmpeg"},
  };
  // clang-format on
  return list;
}

std::uint64_t number_at(const std::byte* bytes, std::size_t size, bool big_endian) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[big_endian ? i : size - 1 - i]);
  }
  return value;
}

// Types whose length has 4 bytes, behind 2 that are unused.
bool has_long_length(std::string_view type) {
  static constexpr std::array types = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ",
                                       "SV", "UC", "UN", "UR", "UT", "UV"};
  return std::find(types.begin(), types.end(), type) != types.end();
}

[[noreturn]] void fail_truncated(const std::filesystem::path& file, DicomTag tag) {
  fail(file, tag == 0 ? "truncated: it ends in its DICOM header"
                      : fmt::format("truncated: it ends in the element {}", tag_text(tag)));
}

struct ElementHead {
  DicomElement element;
  std::uint64_t end;  // of the head
};

// The head of an element or of a delimiter. Nothing where the bytes end exactly at `at`.
std::optional<ElementHead> read_head(DicomBytes& bytes, const DicomEncoding& encoding, std::uint64_t at) {
  std::array<std::byte, 12> head{};
  const std::size_t got = bytes.peek(head.data(), head.size(), at);
  if (got == 0) return std::nullopt;
  if (got < 8) fail_truncated(bytes.path(), 0);
  const bool big = encoding.big_endian;
  ElementHead found;
  found.element.tag = dicom_tag(static_cast<unsigned>(number_at(head.data(), 2, big)),
                                static_cast<unsigned>(number_at(head.data() + 2, 2, big)));
  found.element.big_endian = big;
  std::uint64_t length = 0;
  const bool delimiter = found.element.tag >> 16U == item_tag >> 16U;
  if (delimiter || !encoding.explicit_types) {
    length = number_at(head.data() + 4, 4, big);
    found.end = at + 8;
  } else {
    std::memcpy(found.element.type.data(), head.data() + 4, 2);
    for (const char letter : found.element.type) {
      if (letter < 'A' || letter > 'Z') {
        fail_dicom(bytes.path(), fmt::format("{} at byte {} has no type", tag_text(found.element.tag), at));
      }
    }
    if (has_long_length({found.element.type.data(), 2})) {
      if (got < head.size()) fail_truncated(bytes.path(), found.element.tag);
      length = number_at(head.data() + 8, 4, big);
      found.end = at + 12;
    } else {
      length = number_at(head.data() + 6, 2, big);
      found.end = at + 8;
      found.element.at = found.end;
      found.element.length = length;
      return found;
    }
  }
  found.element.at = found.end;
  found.element.open_ended = length == no_length;
  found.element.length = found.element.open_ended ? 0 : length;
  return found;
}

// Walks through data sets and sequences. Each step goes forward by at least 8 bytes.
class Walker {
 public:
  Walker(DicomBytes& bytes, const DicomVisitor& visitor) : bytes_(bytes), visitor_(visitor) {}

  // The data set of the whole file, to its end.
  void walk(const DicomEncoding& encoding, std::uint64_t begin) {
    for (std::uint64_t at = begin; !stopped_;) {
      const std::optional<ElementHead> head = read_head(bytes_, encoding, at);
      if (!head) {
        check_end(at, begin);
        return;
      }
      at = take(*head, encoding, bytes_.limit());
    }
  }

 private:
  // Where a value was skipped that goes beyond the end of deflated bytes, whose length is not known before.
  void check_end(std::uint64_t at, std::uint64_t begin) {
    std::byte last{};
    if (bytes_.deflated() && at > begin && bytes_.peek(&last, 1, at - 1) == 0)
      fail_truncated(bytes_.path(), 0);
  }

  // Visits an element and returns where the next begins. `end` is that of the item around it.
  std::uint64_t take(const ElementHead& head, const DicomEncoding& encoding, std::uint64_t end) {
    const DicomElement& element = head.element;
    if (element.tag >> 16U == item_tag >> 16U) {
      fail_dicom(bytes_.path(), fmt::format("a delimiter at byte {} outside of a sequence", head.end - 8));
    }
    if (element.length > end - std::min(end, head.end)) {
      if (end == bytes_.limit()) fail_truncated(bytes_.path(), element.tag);
      fail_dicom(bytes_.path(), fmt::format("{} is longer than the item around it", tag_text(element.tag)));
    }
    const bool typed = encoding.explicit_types;
    const bool pixels = element.tag == pixel_data;
    const bool sequence =
        !pixels && (element.is_type("SQ") || (element.open_ended && (!typed || element.is_type("UN"))));
    const bool wanted = (sequence || !typed) && visitor_.enters(element.tag);
    if (!(sequence && element.open_ended) && !wanted) {
      if (!visitor_.take(element, items_)) stopped_ = true;
      if (element.open_ended && !stopped_) {
        return read_dicom_fragments(bytes_, element).end;  // those of a small picture inside a sequence
      }
      return head.end + element.length;
    }
    DicomEncoding inner = encoding;
    if (element.is_type("UN")) inner = {.explicit_types = false};  // as PS3.5 says
    return take_sequence(head, inner, end);
  }

  std::uint64_t take_sequence(const ElementHead& head, const DicomEncoding& encoding, std::uint64_t end) {
    const DicomElement& sequence = head.element;
    if (items_.size() == deepest) {
      fail_dicom(bytes_.path(), fmt::format("sequences in sequences, more than {} deep", deepest));
    }
    const std::uint64_t sequence_stop = sequence.open_ended ? end : head.end + sequence.length;
    std::uint64_t at = head.end;
    for (std::size_t index = 0; !stopped_; ++index) {
      if (!sequence.open_ended && at == sequence_stop) return at;
      const ElementHead item = inner_head(encoding, at, sequence_stop);
      if (item.element.tag == sequence_end && sequence.open_ended) return item.end;
      if (item.element.tag != item_tag) {
        fail_dicom(bytes_.path(),
                   fmt::format("the sequence {} has no item at byte {}", tag_text(sequence.tag), at));
      }
      items_.push_back({sequence.tag, index});
      at = take_item(item, encoding, sequence_stop);
      items_.pop_back();
    }
    return at;
  }

  std::uint64_t take_item(const ElementHead& item, const DicomEncoding& encoding, std::uint64_t end) {
    if (item.element.length > end - std::min(end, item.end)) {
      if (end == bytes_.limit()) fail_truncated(bytes_.path(), items_.back().sequence);
      fail_dicom(bytes_.path(),
                 fmt::format("an item of {} is longer than the sequence", tag_text(items_.back().sequence)));
    }
    const bool open_ended = item.element.open_ended;
    const std::uint64_t stop = open_ended ? end : item.end + item.element.length;
    std::uint64_t at = item.end;
    while (!stopped_ && (open_ended || at != stop)) {
      const ElementHead head = inner_head(encoding, at, stop);
      if (open_ended && head.element.tag == item_end) return head.end;
      at = take(head, encoding, stop);
    }
    return at;
  }

  // Of something inside a sequence, before whose end the file must not end.
  ElementHead inner_head(const DicomEncoding& encoding, std::uint64_t at, std::uint64_t end) {
    const std::optional<ElementHead> head = read_head(bytes_, encoding, at);
    if (!head) fail_truncated(bytes_.path(), items_.empty() ? 0 : items_.back().sequence);
    if (head->end > end) {
      fail_dicom(bytes_.path(),
                 fmt::format("{} begins behind the end of what is around it", tag_text(head->element.tag)));
    }
    return *head;
  }

  DicomBytes& bytes_;
  const DicomVisitor& visitor_;
  std::vector<DicomItem> items_;
  bool stopped_ = false;
};

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\0' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

template <class Number>
Number parse_number(const DicomBytes& bytes, const DicomElement& element, std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  Number value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || stop != digits.data() + digits.size() ||
      !std::isfinite(static_cast<double>(value))) {
    fail_dicom(bytes.path(), fmt::format("{} is \"{}\", not a number", tag_text(element.tag), text));
  }
  return value;
}

}  // namespace

void fail_dicom(const std::filesystem::path& file, const std::string& how) {
  fail(file, fmt::format("its DICOM header is damaged: {}", one_line(how)));
}

std::string tag_text(DicomTag tag) { return fmt::format("({:04x},{:04x})", tag >> 16U, tag & 0xffffU); }

void DicomBytes::inflate_from(std::uint64_t offset) {
  inflated_.emplace(file_, GzipReader::Wrapping::none, offset);
  limit_ = (file_.size() - std::min(offset, file_.size())) * largest_gzip_ratio;
  block_.clear();
}

std::size_t DicomBytes::read_some(void* to, std::size_t size, std::uint64_t offset) {
  return inflated_ ? inflated_->read_some(to, size, offset) : file_.read_some(to, size, offset);
}

void DicomBytes::read(void* to, std::size_t size, std::uint64_t offset) {
  if (read_some(to, size, offset) < size) fail(file_.path(), "truncated: it ends in its pixels");
}

std::size_t DicomBytes::peek(void* to, std::size_t size, std::uint64_t offset) {
  constexpr std::size_t block_bytes = std::size_t{8} << 10U;
  const bool held = offset >= block_at_ && offset - block_at_ <= block_.size() &&
                    block_.size() - (offset - block_at_) >= size;
  if (!held) {
    block_.resize(std::max(size, block_bytes));
    block_.resize(read_some(block_.data(), block_.size(), offset));
    block_at_ = offset;
  }
  const auto skipped = static_cast<std::size_t>(offset - block_at_);
  const std::size_t there = std::min(size, block_.size() - skipped);
  if (there > 0) std::memcpy(to, block_.data() + skipped, there);
  return there;
}

bool is_dicom(const SourceFile& file) {
  std::array<char, magic.size()> found{};
  return file.read_some(found.data(), found.size(), preamble_bytes) == found.size() &&
         std::string_view(found.data(), found.size()) == magic;
}

DicomPreface read_dicom_preface(DicomBytes& bytes) {
  DicomPreface preface;
  std::uint64_t promised_end = 0;
  std::uint64_t at = preamble_bytes + magic.size();
  for (;;) {
    // Deflated bytes may look like an element of this group.
    if (preface.syntax != nullptr && preface.syntax->deflated && at == promised_end) break;
    std::array<std::byte, 2> group{};
    if (bytes.peek(group.data(), group.size(), at) < group.size() || number_at(group.data(), 2, false) != 2) {
      break;
    }
    const std::optional<ElementHead> head = read_head(bytes, {}, at);
    const DicomElement& element = head->element;
    if (element.open_ended || element.length > bytes.limit() - std::min(bytes.limit(), head->end)) {
      fail_truncated(bytes.path(), element.tag);
    }
    at = head->end + element.length;
    switch (element.tag) {
      case dicom_tag(2, 0):
        promised_end = at + dicom_unsigned(bytes, element).value_or(0);
        break;
      case dicom_tag(2, 2):
        preface.sop_class = dicom_text(bytes, element);
        break;
      case dicom_tag(2, 0x10):
        preface.syntax_uid = dicom_text(bytes, element);
        for (const DicomSyntax& syntax : syntaxes()) {
          if (syntax.uid == preface.syntax_uid) preface.syntax = &syntax;
        }
        break;
      default:
        break;
    }
  }
  preface.end = at;
  if (preface.syntax_uid.empty()) {
    if (at >= bytes.limit()) fail_truncated(bytes.path(), 0);
    fail_dicom(bytes.path(), "it does not name its transfer syntax");
  }
  return preface;
}

void visit_dicom_elements(DicomBytes& bytes, const DicomEncoding& encoding, std::uint64_t begin,
                          const DicomVisitor& visitor) {
  Walker(bytes, visitor).walk(encoding, begin);
}

DicomFragments read_dicom_fragments(DicomBytes& bytes, const DicomElement& pixels) {
  const DicomEncoding plain = {};  // the only one of encapsulated pixels
  DicomFragments fragments;
  std::uint64_t at = pixels.at;
  for (bool table = true;; table = false) {
    const std::optional<ElementHead> item = read_head(bytes, plain, at);
    if (!item) fail_truncated(bytes.path(), pixels.tag);
    if (item->element.tag == sequence_end) {
      fragments.end = item->end;
      return fragments;
    }
    if (item->element.tag != item_tag || item->element.open_ended) {
      fail_dicom(bytes.path(), fmt::format("no fragment of pixels at byte {}", at));
    }
    const std::uint64_t length = item->element.length;
    if (length > bytes.limit() - std::min(bytes.limit(), item->end)) fail_truncated(bytes.path(), pixels.tag);
    if (!table) fragments.list.push_back({item->end, length});
    at = item->end + length;
  }
}

std::string dicom_text(DicomBytes& bytes, const DicomElement& element) {
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(element.length, longest_text)), '\0');
  if (bytes.peek(text.data(), text.size(), element.at) < text.size()) {
    fail_truncated(bytes.path(), element.tag);
  }
  return std::string(trimmed(text));
}

std::optional<std::uint64_t> dicom_unsigned(DicomBytes& bytes, const DicomElement& element) {
  if (element.length == 0) return std::nullopt;
  std::array<std::byte, 4> value{};
  const std::size_t size = element.length == 2 || element.is_type("US") ? 2 : 4;
  if (element.length < size || element.length % size != 0) {
    fail_dicom(bytes.path(), fmt::format("{} has {} bytes", tag_text(element.tag), element.length));
  }
  if (bytes.peek(value.data(), size, element.at) < size) fail_truncated(bytes.path(), element.tag);
  return number_at(value.data(), size, element.big_endian);
}

std::optional<std::int64_t> dicom_integer(DicomBytes& bytes, const DicomElement& element) {
  const std::string text = dicom_text(bytes, element);
  const std::string_view first = trimmed(std::string_view(text).substr(0, text.find('\\')));
  if (first.empty()) return std::nullopt;
  return parse_number<std::int64_t>(bytes, element, first);
}

std::vector<double> dicom_numbers(DicomBytes& bytes, const DicomElement& element) {
  const std::string text = dicom_text(bytes, element);
  std::vector<double> numbers;
  for (std::string_view rest = text; !text.empty();) {
    const std::size_t end = std::min(rest.find('\\'), rest.size());
    numbers.push_back(parse_number<double>(bytes, element, trimmed(rest.substr(0, end))));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return numbers;
}

std::optional<double> dicom_number(DicomBytes& bytes, const DicomElement& element) {
  const std::vector<double> numbers = dicom_numbers(bytes, element);
  if (numbers.empty()) return std::nullopt;
  return numbers.front();
}

}  // namespace ungrain::io
