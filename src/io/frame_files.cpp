#include "io/frame_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "io/failure.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;

constexpr int most_digits = 18;  // fit 64 bits

// The numbers of the files that exist.
std::set<std::int64_t> numbers_of(const FramePattern& pattern) {
  std::set<std::int64_t> numbers;
  std::error_code error;
  fs::path folder = pattern.file(0).parent_path();
  if (folder.empty()) folder = ".";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (const auto number = pattern.number_in(entry.path().filename().string())) numbers.insert(*number);
  }
  if (error) fail(pattern.name(), fmt::format("the folder cannot be read: {}", error.message()));
  return numbers;
}

class FrameFilesReader : public FrameReader {
 public:
  explicit FrameFilesReader(const FramePattern& pattern) : pattern_(pattern), numbers_(numbers_of(pattern)) {
    next_ = first_ = first_number(pattern);
    const std::unique_ptr<InputFile> file = InputFile::open(pattern_.file(first_));
    info_.spec = file->info().spec;
    info_.format = file->info().format;
    info_.access = file->access();
    // Up to the first gap.
    info_.frames = 0;
    while (numbers_.count(first_ + info_.frames) > 0) ++info_.frames;
    check_frame_memory(pattern_.name().string(), info_.spec);
  }

  const ClipInfo& info() const override { return info_; }

  bool read(Frame& frame) override {
    const fs::path path = pattern_.file(next_);
    std::error_code error;
    if (!fs::exists(path, error)) {
      const auto later = numbers_.upper_bound(next_);
      if (later == numbers_.end()) return false;
      fail(path, fmt::format("is missing, {} is there", pattern_.file(*later).filename().string()));
    }
    const std::unique_ptr<InputFile> file = InputFile::open(path);
    check_same(path, file->info());
    file->read_rows(0, frame.pixels.view());
    frame.words.clear();
    frame.number = static_cast<int>(next_++ - first_);
    return true;
  }

 private:
  void check_same(const fs::path& path, const FileInfo& file) const {
    const ImageSpec& spec = info_.spec;
    if (file.spec.width != spec.width || file.spec.height != spec.height) {
      fail(path, fmt::format("has {}x{} pixels, the frames before it {}x{}", file.spec.width,
                             file.spec.height, spec.width, spec.height));
    }
    if (file.spec != spec)
      fail(path, "has other channels, samples or another white level than the frames before it");
    if (file.pages > 1) fail(path, fmt::format("has {} pages, a frame has one", file.pages));
  }

  FramePattern pattern_;
  std::set<std::int64_t> numbers_;
  ClipInfo info_;
  std::int64_t first_ = 0;
  std::int64_t next_ = 0;
};

class FrameFilesWriter : public FrameWriter {
 public:
  FrameFilesWriter(FramePattern pattern, const ClipInfo& info, std::int64_t first,
                   std::optional<FramePattern> like, SaveOptions save)
      : pattern_(std::move(pattern)), first_(first), like_(std::move(like)), save_(std::move(save)) {
    const fs::path file = pattern_.file(first);
    std::string why_not;
    if (info.spec.colour == Colour::ycbcr) {
      fail(pattern_.name(),
           "image files hold no YCbCr frames: name a .y4m or video file, or convert the clip with ffmpeg "
           "-pix_fmt "
           "rgb24");
    }
    if (!can_write(file, info.spec, 1, &why_not)) fail(pattern_.name(), why_not);
    info_.spec = info.spec;
    info_.access = info.access;
    info_.spec.type = writable_type(file, info.spec);
    if (info_.spec.type != info.spec.type || (!is_float(info_.spec.type) && !keeps_white_level(file)))
      info_.spec.range = 0;
  }

  const ImageSpec& spec() const override { return info_.spec; }

  void write(const Frame& frame) override {
    const std::int64_t number = first_ + frame.number;
    const std::unique_ptr<InputFile> like = like_ ? InputFile::open(like_->file(number)) : nullptr;
    const std::unique_ptr<OutputFile> file =
        OutputFile::create(pattern_.file(number), info_, like.get(), save_);
    file->write_rows(0, frame.pixels.view());
    file->commit();
  }

  void finish() override {}

 private:
  FramePattern pattern_;
  std::int64_t first_;
  std::optional<FramePattern> like_;
  SaveOptions save_;
  FileInfo info_;
};

// Where a number's place is: from the percent sign to behind the d. Nothing: there is none.
struct Place {
  std::size_t from = 0;
  std::size_t to = 0;
  int digits = 0;
};
std::optional<Place> next_place(const std::string& name, std::size_t from) {
  for (std::size_t at = name.find('%', from); at != std::string::npos; at = name.find('%', at)) {
    std::size_t end = at + 1;
    if (end < name.size() && name[end] == '%') {
      at += 2;
      continue;
    }
    while (end < name.size() && end < at + 4 && name[end] >= '0' && name[end] <= '9') ++end;
    if (end < name.size() && name[end] == 'd') {
      int digits = 0;
      std::from_chars(name.data() + at + 1, name.data() + end, digits);
      return Place{at, end + 1, digits};
    }
    ++at;
  }
  return std::nullopt;
}

std::string without_escapes(std::string text) {
  for (std::size_t at = text.find("%%"); at != std::string::npos; at = text.find("%%", at + 1))
    text.erase(at, 1);
  return text;
}

}  // namespace

bool FramePattern::is_pattern(const fs::path& name) { return next_place(name.string(), 0).has_value(); }

FramePattern::FramePattern(const fs::path& name) : name_(name), folder_(name.parent_path()) {
  if (is_pattern(folder_)) fail(name_, "the number of a frame stands in the file's name, not in a folder's");
  folder_ = without_escapes(folder_.string());
  const std::string file = name.filename().string();
  const std::optional<Place> place = next_place(file, 0);
  if (!place) fail(name_, "names no place for a number, such as %05d");
  if (next_place(file, place->to)) fail(name_, "has two places for a number");
  if (place->digits > most_digits)
    fail(name_, fmt::format("the number has more than {} digits", most_digits));
  before_ = without_escapes(file.substr(0, place->from));
  after_ = without_escapes(file.substr(place->to));
  digits_ = place->digits;
}

fs::path FramePattern::file(std::int64_t number) const {
  return folder_ / fmt::format("{}{:0{}}{}", before_, number, digits_, after_);
}

std::optional<std::int64_t> FramePattern::number_in(const std::string& file_name) const {
  if (file_name.size() <= before_.size() + after_.size() || !file_name.starts_with(before_) ||
      !file_name.ends_with(after_)) {
    return std::nullopt;
  }
  const std::string digits =
      file_name.substr(before_.size(), file_name.size() - before_.size() - after_.size());
  if (digits.size() > most_digits || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (file(number).filename().string() != file_name) return std::nullopt;  // other zeros
  return number;
}

std::int64_t first_number(const FramePattern& pattern) {
  const std::set<std::int64_t> numbers = numbers_of(pattern);
  if (numbers.empty()) fail(pattern.name(), "no such files");
  return *numbers.begin();
}

std::unique_ptr<FrameReader> open_frame_files(const FramePattern& pattern) {
  return std::make_unique<FrameFilesReader>(pattern);
}

std::unique_ptr<FrameWriter> create_frame_files(const FramePattern& pattern, const ClipInfo& info,
                                                std::int64_t first, std::optional<FramePattern> like,
                                                const SaveOptions& save) {
  return std::make_unique<FrameFilesWriter>(pattern, info, first, std::move(like), save);
}

}  // namespace ungrain::io
