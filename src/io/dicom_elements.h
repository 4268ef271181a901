// The data elements of a DICOM file (PS3.10, PS3.5): where they are and what they hold, sequences included.
// Nothing here knows what an image is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/gzip.h"
#include "io/source_file.h"

namespace ungrain::io {

// How the data elements are written.
struct DicomEncoding {
  bool explicit_types = true;  // each element names its type (value representation)
  bool big_endian = false;
};

enum class DicomPixelCoding : std::uint8_t { native, rle, unknown };

struct DicomSyntax {
  std::string_view uid;
  std::string_view name;
  DicomEncoding encoding = {};
  bool deflated = false;
  DicomPixelCoding pixels = DicomPixelCoding::unknown;
  std::string_view decompressor = {};  // another program that decodes the pixels
};

// The bytes of a file, or, from a place on, the content of deflated ones: their offsets count from 0 there.
class DicomBytes {
 public:
  explicit DicomBytes(const SourceFile& file) : file_(file) {}

  const std::filesystem::path& path() const { return file_.path(); }
  void inflate_from(std::uint64_t offset);
  // No byte lies behind it: the file's size, or the most that its deflated bytes can hold.
  std::uint64_t limit() const { return limit_ ? *limit_ : file_.size(); }
  bool deflated() const { return inflated_.has_value(); }

  // Up to `size` bytes; fewer at the end.
  std::size_t read_some(void* to, std::size_t size, std::uint64_t offset);
  // All of them, or "truncated".
  void read(void* to, std::size_t size, std::uint64_t offset);
  // The same for the few bytes of a header, from a block that is kept.
  std::size_t peek(void* to, std::size_t size, std::uint64_t offset);

 private:
  const SourceFile& file_;
  std::optional<GzipReader> inflated_;
  std::optional<std::uint64_t> limit_;
  std::vector<std::byte> block_;
  std::uint64_t block_at_ = 0;
};

// A tag is its group and its number within that.
using DicomTag = std::uint32_t;
constexpr DicomTag dicom_tag(unsigned group, unsigned number) { return group << 16U | number; }
std::string tag_text(DicomTag tag);  // "(0028,0010)"

struct DicomElement {
  DicomTag tag = 0;
  std::array<char, 2> type = {};  // as in the file; zeros where types are not written
  std::uint64_t at = 0;           // of the value
  std::uint64_t length = 0;       // bytes; 0 where `open_ended`
  bool open_ended = false;        // the value ends with a delimiter
  bool big_endian = false;

  bool is_type(std::string_view name) const { return std::string_view(type.data(), type.size()) == name; }
};

// An item that contains an element: which one of which sequence.
struct DicomItem {
  DicomTag sequence = 0;
  std::size_t index = 0;
};

struct DicomVisitor {
  // Whether the items of a sequence are to be visited. Those of sequences without a length always are.
  std::function<bool(DicomTag)> enters;
  // Called for each element that is not a sequence entered, from outside to inside: `items`. False: stop.
  std::function<bool(const DicomElement&, std::span<const DicomItem> items)> take;
};

// The group of elements before the data set.
struct DicomPreface {
  const DicomSyntax* syntax = nullptr;  // null: not known
  std::string syntax_uid;
  std::string sop_class;  // what kind of object the file is
  std::uint64_t end = 0;  // here the data set begins
};
DicomPreface read_dicom_preface(DicomBytes& bytes);

// Visits the elements from `begin` on. Throws where they are damaged or end inside an element.
void visit_dicom_elements(DicomBytes& bytes, const DicomEncoding& encoding, std::uint64_t begin,
                          const DicomVisitor& visitor);

// Fragments of encapsulated pixel data, without the table of offsets before them.
struct DicomFragment {
  std::uint64_t at = 0;
  std::uint64_t length = 0;
};
struct DicomFragments {
  std::vector<DicomFragment> list;
  std::uint64_t end = 0;  // behind the delimiter
};
DicomFragments read_dicom_fragments(DicomBytes& bytes, const DicomElement& pixels);

// Values. Text is without the spaces and zeros around it; of longer text the first KiB is given. Nothing: the
// value is empty. A value of another form than the element has is an error.
std::string dicom_text(DicomBytes& bytes, const DicomElement& element);
std::optional<std::int64_t> dicom_integer(DicomBytes& bytes, const DicomElement& element);  // decimal digits
std::optional<std::uint64_t> dicom_unsigned(DicomBytes& bytes,
                                            const DicomElement& element);  // 2 or 4 bytes, the first number
std::optional<double> dicom_number(DicomBytes& bytes, const DicomElement& element);
std::vector<double> dicom_numbers(DicomBytes& bytes, const DicomElement& element);

// "its DICOM header is damaged: ..."
[[noreturn]] void fail_dicom(const std::filesystem::path& file, const std::string& how);

}  // namespace ungrain::io
