#include "io/dicom_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "io/failure.h"
#include "io/sample_matrix.h"

namespace ungrain::io {
namespace {

constexpr std::int64_t most_frames = 1'000'000;

// Lengths in mm that can be meant. Others would make sums and quotients that are not finite.
constexpr double largest_length = 1e9;
constexpr double smallest_length = 1e-6;

bool is_distance(double mm) { return mm >= smallest_length && mm <= largest_length; }

constexpr DicomTag shared_groups = dicom_tag(0x5200, 0x9229);
constexpr DicomTag frame_groups = dicom_tag(0x5200, 0x9230);
constexpr DicomTag image_position = dicom_tag(0x0020, 0x0032);
constexpr DicomTag lookup_table = dicom_tag(0x0028, 0x3000);
constexpr std::array inner_groups = {
    dicom_tag(0x0020, 0x9111),  // content of the frame
    dicom_tag(0x0020, 0x9113),  // position
    dicom_tag(0x0020, 0x9116),  // orientation
    dicom_tag(0x0028, 0x9110),  // distances of pixels
    dicom_tag(0x0028, 0x9145),  // slope and intercept
};

bool is_inner_group(DicomTag tag) {
  return std::find(inner_groups.begin(), inner_groups.end(), tag) != inner_groups.end();
}

double length_of(const Vector3& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

// The attributes of one file, as they come.
class HeaderReader {
 public:
  HeaderReader(const SourceFile& source, DicomBytes& bytes) : bytes_(bytes) {
    file_.path = source.path();
    file_.stamp = source.stamp();
    file_.access = source.access();
  }

  std::optional<DicomFile> read() {
    const DicomPreface preface = read_dicom_preface(bytes_);
    std::uint64_t begin = preface.end;
    // Images of unknown syntaxes have explicit types; what is not needed does not matter.
    const DicomEncoding encoding = preface.syntax == nullptr ? DicomEncoding{} : preface.syntax->encoding;
    if (preface.syntax != nullptr && preface.syntax->deflated) {
      file_.pixels.data_begin = begin;
      bytes_.inflate_from(begin);
      begin = 0;
    }
    sop_class_ = preface.sop_class;
    visit_dicom_elements(
        bytes_, encoding, begin,
        {.enters =
             [](DicomTag tag) { return tag == shared_groups || tag == frame_groups || is_inner_group(tag); },
         .take = [this](const DicomElement& element,
                        std::span<const DicomItem> items) { return take(element, items); }});
    if (!data_) {
      check_that_none_is_missing();
      return std::nullopt;
    }
    check_syntax(preface);
    file_.pixels.syntax = preface.syntax;
    set_pixels();
    return std::move(file_);
  }

 private:
  // False at the pixels, behind which nothing is needed.
  bool take(const DicomElement& element, std::span<const DicomItem> items) {
    if (items.empty()) return take_own(element);
    if (items.size() == 2 && is_inner_group(items[1].sequence)) {
      if (items[0].sequence == shared_groups && items[0].index == 0) {
        take_frame(element, file_.common);
        shared_position_ = shared_position_ || element.tag == image_position;
      }
      if (items[0].sequence == frame_groups && items[0].index < static_cast<std::size_t>(frames_)) {
        if (file_.of_frames.size() <= items[0].index) file_.of_frames.resize(items[0].index + 1);
        take_frame(element, file_.of_frames[items[0].index]);
      }
    }
    return true;
  }

  bool take_own(const DicomElement& element) {
    switch (element.tag) {
      case dicom_tag(0x0008, 0x0008):
        image_type_ = dicom_text(bytes_, element);
        break;
      case dicom_tag(0x0008, 0x0018):
        file_.instance = dicom_text(bytes_, element);
        break;
      case dicom_tag(0x0008, 0x103e):
        file_.description = dicom_text(bytes_, element);
        break;
      case dicom_tag(0x0018, 0x0080):
        file_.repetition_ms = dicom_number(bytes_, element);
        break;
      case dicom_tag(0x0018, 0x0086):
        file_.echo = dicom_integer(bytes_, element);
        break;
      case dicom_tag(0x0020, 0x000e):
        file_.series = dicom_text(bytes_, element);
        break;
      case dicom_tag(0x0020, 0x0011):
        file_.series_number = dicom_integer(bytes_, element);
        break;
      case dicom_tag(0x0020, 0x0012):
        file_.acquisition = dicom_integer(bytes_, element);
        break;
      case dicom_tag(0x0020, 0x0013):
        file_.number = dicom_integer(bytes_, element);
        break;
      case dicom_tag(0x0028, 0x0002):
        channels_ = small(element);
        break;
      case dicom_tag(0x0028, 0x0004):
        colours_ = dicom_text(bytes_, element);
        break;
      case dicom_tag(0x0028, 0x0006):
        planar_ = small(element);
        break;
      case dicom_tag(0x0028, 0x0008):
        frames_ = dicom_integer(bytes_, element).value_or(1);
        if (frames_ < 1 || frames_ > most_frames) {
          fail_dicom(file_.path, fmt::format("{} frames: 1 to {} are possible", frames_, most_frames));
        }
        break;
      case dicom_tag(0x0028, 0x0010):
        height_ = small(element);
        break;
      case dicom_tag(0x0028, 0x0011):
        width_ = small(element);
        break;
      case dicom_tag(0x0028, 0x0100):
        allocated_ = small(element);
        break;
      case dicom_tag(0x0028, 0x0101):
        stored_ = small(element);
        break;
      case dicom_tag(0x0028, 0x0102):
        high_bit_ = small(element);
        break;
      case dicom_tag(0x0028, 0x0103):
        file_.pixels.is_signed = small(element) == 1;
        break;
      case lookup_table:
        file_.has_lookup_table = true;
        break;
      case dicom_tag(0x7fe0, 0x0008):
      case dicom_tag(0x7fe0, 0x0009):
        fail(file_.path, "its pixels are floats, which cannot be read from DICOM files");
      case dicom_tag(0x7fe0, 0x0010):
        data_ = element;
        return false;
      default:
        take_frame(element, file_.common);
    }
    return true;
  }

  void take_frame(const DicomElement& element, DicomFrame& frame) {
    switch (element.tag) {
      case dicom_tag(0x0018, 0x0050):
        frame.slice_thickness = distance(element);
        break;
      case dicom_tag(0x0018, 0x0088):
        frame.slice_distance = distance(element);
        break;
      case image_position:
        set_position(element, frame);
        break;
      case dicom_tag(0x0020, 0x0037):
        set_orientation(element, frame);
        break;
      case dicom_tag(0x0020, 0x0100):
        frame.time_index = dicom_integer(bytes_, element);
        break;
      case dicom_tag(0x0020, 0x9128):
        if (const std::optional<std::uint64_t> index = dicom_unsigned(bytes_, element))
          frame.time_index = static_cast<std::int64_t>(*index);
        break;
      case dicom_tag(0x0028, 0x0030):
        if (const std::vector<double> numbers = some_numbers(element, 2);
            !numbers.empty() && is_distance(numbers[0]) && is_distance(numbers[1])) {
          frame.row_distance = numbers[0];
          frame.column_distance = numbers[1];
        }
        break;
      case dicom_tag(0x0028, 0x1052):
        frame.intercept = dicom_number(bytes_, element);
        break;
      case dicom_tag(0x0028, 0x1053):
        frame.slope = dicom_number(bytes_, element);
        break;
      default:
        break;
    }
  }

  void set_position(const DicomElement& element, DicomFrame& frame) {
    const std::vector<double> numbers = some_numbers(element, 3);
    if (numbers.empty()) return;
    for (const double number : numbers) {
      if (std::abs(number) > largest_length) {
        fail_dicom(file_.path, fmt::format("a position of {:g} mm", number));
      }
    }
    frame.position = Vector3{numbers[0], numbers[1], numbers[2]};
  }

  // Unit vectors at a right angle, or an error.
  void set_orientation(const DicomElement& element, DicomFrame& frame) {
    const std::vector<double> numbers = some_numbers(element, 6);
    if (numbers.empty()) return;
    Vector3 row = {numbers[0], numbers[1], numbers[2]};
    Vector3 column = {numbers[3], numbers[4], numbers[5]};
    const double row_length = length_of(row);
    const double column_length = length_of(column);
    constexpr double tolerance = 0.02;
    double cosine = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      row[i] /= row_length;
      column[i] /= column_length;
      cosine += row[i] * column[i];
    }
    // Written so that NaN is refused.
    if (!(std::abs(row_length - 1) < tolerance && std::abs(column_length - 1) < tolerance &&
          std::abs(cosine) < tolerance)) {
      fail_dicom(file_.path, "the directions of its rows and columns are not unit vectors at a right angle");
    }
    frame.along_row = row;
    frame.along_column = column;
  }

  int small(const DicomElement& element) {
    return static_cast<int>(std::min<std::uint64_t>(dicom_unsigned(bytes_, element).value_or(0), 1U << 30U));
  }

  std::optional<double> distance(const DicomElement& element) {
    const std::optional<double> number = dicom_number(bytes_, element);
    if (!number || !is_distance(std::abs(*number))) return std::nullopt;
    return std::abs(*number);
  }

  // Empty, or so many.
  std::vector<double> some_numbers(const DicomElement& element, std::size_t count) {
    std::vector<double> numbers = dicom_numbers(bytes_, element);
    if (!numbers.empty() && numbers.size() != count) {
      fail_dicom(file_.path,
                 fmt::format("{} has {} numbers, not {}", tag_text(element.tag), numbers.size(), count));
    }
    return numbers;
  }

  // A file that was cut off between two elements looks like one without an image.
  void check_that_none_is_missing() const {
    constexpr std::string_view storage = "1.2.840.10008.5.1.4.1.1.";
    const std::string_view kind =
        sop_class_.starts_with(storage) ? std::string_view(sop_class_).substr(storage.size()) : "";
    if (kind == "4.2") return;  // spectroscopy: rows and columns of spectra
    static constexpr std::array images = {"1",   "2",   "2.1", "2.2", "4",   "4.1",   "4.3",
                                          "4.4", "6.1", "7",   "20",  "128", "128.1", "130"};
    const bool image = std::find(images.begin(), images.end(), kind) != images.end();
    if (image || (width_ > 0 && height_ > 0)) fail(file_.path, "truncated: it ends before its pixels");
  }

  void check_syntax(const DicomPreface& preface) const {
    if (preface.syntax == nullptr) {
      fail(file_.path, fmt::format("its transfer syntax {} is not known", one_line(preface.syntax_uid)));
    }
    if (preface.syntax->pixels == DicomPixelCoding::unknown) {
      fail(file_.path, fmt::format("its pixels are {} (transfer syntax {}), which is not decoded: {} makes a "
                                   "file that can be read",
                                   preface.syntax->name, preface.syntax->uid, preface.syntax->decompressor));
    }
    if (image_type_.find("MOSAIC") != std::string::npos) {
      fail(file_.path, "a mosaic, whose slices lie side by side in one picture: dcm2niix takes it apart");
    }
  }

  void set_pixels() {
    DicomPixels& pixels = file_.pixels;
    check_size(file_.path, width_, height_, channels_);
    pixels.width = width_;
    pixels.height = height_;
    pixels.channels = channels_;
    set_colours();
    if (allocated_ != 8 && allocated_ != 16 && allocated_ != 32) {
      fail(file_.path, fmt::format("its samples have {} bits: 8, 16 and 32 can be read", allocated_));
    }
    if (stored_ == 0) stored_ = allocated_;
    const int high = high_bit_.value_or(stored_ - 1);
    if (stored_ > allocated_ || high >= allocated_ || high < stored_ - 1) {
      fail_dicom(file_.path,
                 fmt::format("{} bits up to bit {}, in samples of {} bits", stored_, high, allocated_));
    }
    pixels.bytes = allocated_ / 8;
    pixels.bits = stored_;
    pixels.lowest_bit = high + 1 - stored_;
    pixels.planes = channels_ > 1 && planar_ == 1;
    file_.frames = static_cast<int>(frames_);
    if (pixels.syntax->pixels == DicomPixelCoding::rle) {
      set_fragments();
    } else {
      set_native();
    }
    // That of a file with several frames is the position of one of them.
    if (file_.frames > 1 && !shared_position_) file_.common.position.reset();
  }

  void set_colours() {
    DicomPixels& pixels = file_.pixels;
    if (colours_ == "MONOCHROME1" || colours_ == "MONOCHROME2" || colours_.empty()) {
      if (channels_ != 1) fail_dicom(file_.path, fmt::format("{} channels of gray", channels_));
      pixels.colours = colours_ == "MONOCHROME1" ? DicomColours::inverted_gray : DicomColours::gray;
      return;
    }
    if (colours_ != "RGB") {
      fail(file_.path,
           fmt::format("its colours are {}, which cannot be read: gray and RGB can", one_line(colours_)));
    }
    if (channels_ != 3) fail_dicom(file_.path, fmt::format("{} channels of RGB", channels_));
    pixels.colours = DicomColours::rgb;
  }

  void set_native() {
    DicomPixels& pixels = file_.pixels;
    if (data_->open_ended) fail_dicom(file_.path, "its pixels have no length");
    const std::uint64_t frame = pixels.frame_bytes();  // 65535² * 4 * 4 at most
    const std::uint64_t needed = frame * static_cast<std::uint64_t>(file_.frames);
    if (needed > data_->length) {
      fail(file_.path,
           fmt::format("truncated: the header promises {} bytes of pixels ({} x {}{}), the file has {}",
                       needed, width_, height_,
                       file_.frames > 1 ? fmt::format(", {} frames", file_.frames) : "", data_->length));
    }
    pixels.at = data_->at;
    pixels.swapped = data_->big_endian && pixels.bytes == 1 && data_->is_type("OW");
  }

  void set_fragments() {
    if (!data_->open_ended) fail_dicom(file_.path, "its RLE pixels are not in fragments");
    file_.pixels.fragments = read_dicom_fragments(bytes_, *data_).list;
    const std::size_t count = file_.pixels.fragments.size();
    if (count != static_cast<std::size_t>(file_.frames)) {
      fail_dicom(file_.path, fmt::format("{} RLE fragments for {} frame{}", count, file_.frames,
                                         file_.frames == 1 ? "" : "s"));
    }
    constexpr std::uint64_t largest_ratio = 64;  // 128 equal bytes in 2
    for (const DicomFragment& fragment : file_.pixels.fragments) {
      if (file_.pixels.frame_bytes() > fragment.length * largest_ratio) {
        fail(file_.path, fmt::format("truncated: {} bytes of RLE pixels cannot hold {} x {} pixels",
                                     fragment.length, width_, height_));
      }
    }
  }

  DicomBytes& bytes_;
  DicomFile file_;
  std::string sop_class_;
  std::string image_type_;
  std::string colours_;
  int width_ = 0;
  int height_ = 0;
  int channels_ = 1;
  int planar_ = 0;
  int allocated_ = 0;
  int stored_ = 0;
  std::optional<int> high_bit_;
  std::int64_t frames_ = 1;
  bool shared_position_ = false;
  std::optional<DicomElement> data_;  // the pixels
};

template <class Value>
void prefer(std::optional<Value>& value, const std::optional<Value>& other) {
  if (other) value = other;
}

}  // namespace

DicomFrame DicomFile::frame(int index) const {
  DicomFrame all = common;
  if (static_cast<std::size_t>(index) >= of_frames.size()) return all;
  const DicomFrame& own = of_frames[static_cast<std::size_t>(index)];
  prefer(all.position, own.position);
  prefer(all.along_row, own.along_row);
  prefer(all.along_column, own.along_column);
  prefer(all.row_distance, own.row_distance);
  prefer(all.column_distance, own.column_distance);
  prefer(all.slice_distance, own.slice_distance);
  prefer(all.slice_thickness, own.slice_thickness);
  prefer(all.slope, own.slope);
  prefer(all.intercept, own.intercept);
  prefer(all.time_index, own.time_index);
  return all;
}

std::optional<DicomFile> read_dicom_file(const SourceFile& file) {
  DicomBytes bytes(file);
  return HeaderReader(file, bytes).read();
}

}  // namespace ungrain::io
