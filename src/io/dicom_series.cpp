#include "io/dicom_series.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "io/failure.h"

namespace ungrain::io {
namespace {

constexpr std::size_t most_listed = 20;

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

Vector3 plus(const Vector3& a, const Vector3& b, double factor) {
  return {a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]};
}

double length(const Vector3& a) { return std::sqrt(dot(a, a)); }

std::string count_of(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string shown_name(const DicomFile& file) { return one_line(file.path.filename().string()); }

// A description may be in any character set.
std::string plain_text(std::string text) {
  constexpr std::size_t longest = 48;
  text.resize(std::min(text.size(), longest));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

std::string number_of(const DicomFile& file) {
  return file.series_number ? std::to_string(*file.series_number) : plain_text(file.series);
}

std::size_t images_in(const std::vector<DicomFile>& files) {
  std::size_t count = 0;
  for (const DicomFile& file : files) count += static_cast<std::size_t>(file.frames);
  return count;
}

// "2 (localizer, 3 images), 3 (T1, 176 images)"
std::string list_of_series(const std::vector<std::vector<DicomFile>>& all) {
  std::vector<std::string> texts;
  for (const std::vector<DicomFile>& files : all) {
    const DicomFile& first = files.front();
    // Numbers need not differ; identifiers do.
    const auto same = std::count_if(all.begin(), all.end(), [&](const std::vector<DicomFile>& other) {
      return number_of(other.front()) == number_of(first);
    });
    texts.push_back(fmt::format("{} ({}{}{})", number_of(first), plain_text(first.description),
                                first.description.empty() ? "" : ", ", count_of(images_in(files), "image")));
    if (same > 1) texts.back().insert(texts.back().size() - 1, ", " + plain_text(first.series));
    if (texts.size() == most_listed && all.size() > most_listed) {
      texts.push_back(fmt::format("and {} more", all.size() - most_listed));
      break;
    }
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<std::vector<DicomFile>> split_by_series(std::vector<DicomFile> files) {
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<DicomFile>> all;
  for (DicomFile& file : files) {
    const auto [place, fresh] = places.emplace(file.series, all.size());
    if (fresh) all.emplace_back();
    all[place->second].push_back(std::move(file));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.front().series_number.value_or(-1) < b.front().series_number.value_or(-1);
  });
  return all;
}

// An image with what tells its place.
struct Image {
  DicomSlice slice;
  const DicomFile* file = nullptr;
  DicomFrame frame;
  double depth = 0;  // the place along the slices' normal, in mm

  // The order of images at one position, and of those without one.
  auto key() const {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
    return std::tuple(frame.time_index.value_or(none), file->acquisition.value_or(none),
                      file->echo.value_or(none), file->number.value_or(none), slice.file, slice.frame);
  }
  auto key_without_position() const {
    return std::tuple(file->number.value_or(std::numeric_limits<std::int64_t>::max()), slice.file,
                      slice.frame);
  }
};

// "the patient's axis that a normal is nearest to", as radiologists name the planes.
std::string_view plane_name(const Vector3& normal) {
  const std::array<double, 3> sizes = {std::abs(normal[0]), std::abs(normal[1]), std::abs(normal[2])};
  const auto largest = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  return largest == 0 ? "sagittal" : largest == 1 ? "coronal" : "axial";
}

DicomScaling scaling_of(const Image& image) {
  if (image.file->pixels.channels > 1) return {};  // colours have none
  const DicomScaling scaling = {image.frame.slope.value_or(1), image.frame.intercept.value_or(0)};
  const double largest =
      std::ldexp(std::abs(scaling.slope), image.file->pixels.bits) + std::abs(scaling.intercept);
  if (scaling.slope == 0 || !(largest <= static_cast<double>(std::numeric_limits<float>::max()))) {
    fail_dicom(image.file->path,
               fmt::format("a slope of {:g} and an intercept of {:g}", scaling.slope, scaling.intercept));
  }
  return scaling;
}

class Arrangement {
 public:
  Arrangement(const std::filesystem::path& name, std::vector<DicomFile> files) : name_(name) {
    volumes_.files = std::move(files);
  }

  DicomVolumes arrange() {
    check_sizes();
    check_duplicates();
    list_images();
    if (images_.front().frame.position && images_.front().frame.along_row) {
      check_orientations();
      order_by_position();
    } else {
      order_by_number();
    }
    for (const DicomFile& file : volumes_.files) {
      if (file.pixels.colours == DicomColours::inverted_gray) {
        note("MONOCHROME1: large values are dark, as in the file");
        break;
      }
    }
    for (const DicomFile& file : volumes_.files) {
      if (!file.has_lookup_table) continue;
      note("a lookup table for the values is not applied");
      break;
    }
    return std::move(volumes_);
  }

 private:
  void note(std::string text) { volumes_.notes.push_back(std::move(text)); }

  // "5 of 512 x 512 (first a.dcm), 3 of 256 x 256 (first b.dcm)"
  template <class Kind>
  static std::string list_of_kinds(const std::vector<std::tuple<Kind, std::size_t, const DicomFile*>>& kinds,
                                   std::string (*text)(const Kind&)) {
    std::vector<std::string> texts;
    for (const auto& [kind, count, first] : kinds) {
      if (texts.size() == most_listed) break;
      texts.push_back(fmt::format("{} {} (first {})", count, text(kind), shown_name(*first)));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  void check_sizes() const {
    using Size = std::tuple<int, int, int, int>;
    std::vector<std::tuple<Size, std::size_t, const DicomFile*>> kinds;
    for (const DicomFile& file : volumes_.files) {
      const DicomPixels& pixels = file.pixels;
      const Size size = {pixels.width, pixels.height, pixels.channels, pixels.bytes};
      const auto same = std::find_if(kinds.begin(), kinds.end(),
                                     [&](const auto& kind) { return std::get<0>(kind) == size; });
      if (same == kinds.end()) {
        kinds.emplace_back(size, 1, &file);
      } else {
        ++std::get<1>(*same);
      }
    }
    if (kinds.size() == 1) return;
    fail(name_,
         fmt::format("its images are not slices of one volume: {}; keep those of one size in a folder of "
                     "their own",
                     list_of_kinds<Size>(kinds, [](const Size& size) {
                       const auto& [width, height, channels, bytes] = size;
                       return fmt::format("of {} x {}, {} bits{}", width, height, 8 * bytes,
                                          channels == 3 ? " RGB" : "");
                     })));
  }

  void check_duplicates() const {
    std::map<std::string_view, const DicomFile*> known;
    for (const DicomFile& file : volumes_.files) {
      if (file.instance.empty()) continue;
      const auto [place, fresh] = known.emplace(file.instance, &file);
      if (fresh) continue;
      fail(name_, fmt::format("{} and {} are the same image: remove one", shown_name(*place->second),
                              shown_name(file)));
    }
  }

  void list_images() {
    const DicomFile* without = nullptr;
    for (std::size_t i = 0; i < volumes_.files.size(); ++i) {
      const DicomFile& file = volumes_.files[i];
      for (int frame = 0; frame < file.frames; ++frame) {
        images_.push_back({.slice = {.file = i, .frame = frame}, .file = &file, .frame = file.frame(frame)});
        Image& image = images_.back();
        image.slice.scaling = scaling_of(image);
        if (!image.frame.position || !image.frame.along_row) without = &file;
      }
    }
    constexpr std::size_t most = std::numeric_limits<int>::max();
    if (images_.size() > most) fail(name_, "holds more images than can be counted");
    const bool some = std::any_of(images_.begin(), images_.end(), [](const Image& image) {
      return image.frame.position && image.frame.along_row;
    });
    if (some && without != nullptr) {
      fail(name_, fmt::format("some of its images have a position in space and some have none (such as {})",
                              shown_name(*without)));
    }
  }

  void check_orientations() const {
    using Directions = std::pair<Vector3, Vector3>;
    constexpr double smallest_cosine = 0.9999;  // 0.8 degrees
    std::vector<std::tuple<Directions, std::size_t, const DicomFile*>> kinds;
    for (const Image& image : images_) {
      const Directions own = {*image.frame.along_row, *image.frame.along_column};
      const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
        const Directions& other = std::get<0>(kind);
        return dot(own.first, other.first) > smallest_cosine &&
               dot(own.second, other.second) > smallest_cosine;
      });
      if (same != kinds.end()) {
        ++std::get<1>(*same);
      } else if (kinds.size() < most_listed) {
        kinds.emplace_back(own, 1, image.file);
      }
    }
    if (kinds.size() == 1) return;
    fail(name_,
         fmt::format("its images have several orientations: {}; keep those of one in a folder of their own",
                     list_of_kinds<Directions>(kinds, [](const Directions& directions) {
                       return std::string(plane_name(cross(directions.first, directions.second)));
                     })));
  }

  // Slices at one position belong to several volumes.
  void order_by_position() {
    const DicomFrame& first = images_.front().frame;
    const Vector3 normal = cross(*first.along_row, *first.along_column);
    for (Image& image : images_) image.depth = dot(*image.frame.position, normal);
    std::sort(images_.begin(), images_.end(), [](const Image& a, const Image& b) {
      return std::tuple(a.depth, a.key()) < std::tuple(b.depth, b.key());
    });
    const double pixel = first.column_distance && first.row_distance
                             ? std::min(*first.column_distance, *first.row_distance)
                             : 0.1;
    const double tolerance = 0.01 * pixel;
    std::vector<std::vector<const Image*>> positions;
    for (const Image& image : images_) {
      if (positions.empty() || image.depth - positions.back().front()->depth > tolerance)
        positions.emplace_back();
      positions.back().push_back(&image);
    }
    for (std::vector<const Image*>& same : positions) {
      std::sort(same.begin(), same.end(), [](const Image* a, const Image* b) { return a->key() < b->key(); });
    }
    check_counts(positions);
    for (std::size_t volume = 0; volume < positions.front().size(); ++volume) {
      for (const std::vector<const Image*>& same : positions) volumes_.slices.push_back(same[volume]->slice);
    }
    volumes_.depth = static_cast<int>(positions.size());
    std::vector<const Image*> line;
    for (const std::vector<const Image*>& same : positions) line.push_back(same.front());
    set_space(line, normal);
    set_time(positions.front());
  }

  void check_counts(const std::vector<std::vector<const Image*>>& positions) const {
    std::map<std::size_t, std::size_t> counts;
    for (const auto& same : positions) ++counts[same.size()];
    if (counts.size() == 1) return;
    const std::size_t usual =
        std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    std::vector<std::string> unusual;
    std::size_t left = 0;
    for (const auto& same : positions) {
      if (same.size() == usual) continue;
      constexpr std::size_t most = 4;
      if (unusual.size() == most) {
        ++left;
        continue;
      }
      unusual.push_back(fmt::format("{} at {:.6g} mm ({})", same.size(), same.front()->depth,
                                    shown_name(*same.front()->file)));
    }
    fail(name_, fmt::format("its {} at {} do not make whole volumes: {} at most positions, but {}{}",
                            count_of(images_.size(), "image"), count_of(positions.size(), "position"),
                            count_of(usual, "image"), fmt::join(unusual, ", "),
                            left > 0 ? fmt::format(" and at {} more positions", left) : ""));
  }

  // `line`: an image of each position, in order.
  void set_space(const std::vector<const Image*>& line, const Vector3& normal) {
    const DicomFrame& first = line.front()->frame;
    const Vector3 begin = *first.position;
    Vector3 direction = normal;  // for each mm along the normal: differs where slices are sheared
    double distance = first.slice_distance.value_or(first.slice_thickness.value_or(1));
    if (line.size() > 1) {
      const double whole = line.back()->depth - line.front()->depth;
      for (std::size_t i = 0; i < 3; ++i)
        direction[i] = ((*line.back()->frame.position)[i] - begin[i]) / whole;
      distance = distance_of(line);
      check_line(line, direction);
    }
    if (length(plus(direction, normal, -1)) > 0.005) note("its slices are sheared (a tilted gantry)");
    volumes_.spacing = {first.column_distance.value_or(1), first.row_distance.value_or(1),
                        distance * length(direction)};
    volumes_.millimetres = first.row_distance.has_value();
    if (!volumes_.millimetres) return;
    VoxelAffine affine{};
    for (std::size_t i = 0; i < 3; ++i) {
      const double side = i < 2 ? -1 : 1;  // from left and back to right and front
      affine[i] = {side * (*first.along_row)[i] * volumes_.spacing[0],
                   side * (*first.along_column)[i] * volumes_.spacing[1], side * direction[i] * distance,
                   side * begin[i]};
    }
    volumes_.affine = affine;
  }

  // Along the normal. The median where the distances differ.
  double distance_of(const std::vector<const Image*>& line) {
    std::vector<double> distances;
    for (std::size_t i = 1; i < line.size(); ++i) distances.push_back(line[i]->depth - line[i - 1]->depth);
    std::vector<double> sorted = distances;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[(sorted.size() - 1) / 2];
    if (sorted.back() - sorted.front() <= 0.01 * median) {
      return (line.back()->depth - line.front()->depth) / static_cast<double>(distances.size());
    }
    const auto widest = std::max_element(distances.begin(), distances.end());
    if (*widest > 1.5 * median) {
      double missing = 0;
      for (const double distance : distances) missing += std::max(0.0, std::round(distance / median) - 1);
      note(
          fmt::format("slices are missing: {:.0f}, such as behind slice {}, where the next is {:.4g} mm away "
                      "instead of {:.4g}",
                      missing, widest - distances.begin() + 1, *widest, median));
    } else {
      note(fmt::format("distances of its slices vary from {:.4g} to {:.4g} mm: the median is taken",
                       sorted.front(), sorted.back()));
    }
    return median;
  }

  void check_line(const std::vector<const Image*>& line, const Vector3& direction) {
    const Vector3 begin = *line.front()->frame.position;
    double worst = 0;
    for (const Image* image : line) {
      const Vector3 expected = plus(begin, direction, image->depth - line.front()->depth);
      worst = std::max(worst, length(plus(*image->frame.position, expected, -1)));
    }
    const DicomFrame& first = line.front()->frame;
    if (worst > 0.5 * first.column_distance.value_or(1)) {
      note(fmt::format("its slices do not lie in a straight line: up to {:.3g} mm beside it", worst));
    }
  }

  // `same`: the images of one position.
  void set_time(const std::vector<const Image*>& same) {
    const bool one_echo = std::all_of(same.begin(), same.end(), [&](const Image* image) {
      return image->file->echo == same.front()->file->echo;
    });
    const double milliseconds = same.front()->file->repetition_ms.value_or(0);
    if (same.size() > 1 && one_echo && milliseconds > 0) volumes_.seconds = milliseconds / 1000;
  }

  void order_by_number() {
    std::sort(images_.begin(), images_.end(), [](const Image& a, const Image& b) {
      return a.key_without_position() < b.key_without_position();
    });
    for (const Image& image : images_) volumes_.slices.push_back(image.slice);
    volumes_.depth = static_cast<int>(images_.size());
    const DicomFrame& first = images_.front().frame;
    volumes_.spacing = {first.column_distance.value_or(1), first.row_distance.value_or(1),
                        first.slice_distance.value_or(first.slice_thickness.value_or(1))};
    volumes_.millimetres = first.row_distance.has_value();
    if (images_.size() == 1) return;
    const bool numbered = std::all_of(images_.begin(), images_.end(),
                                      [](const Image& image) { return image.file->number.has_value(); });
    note(fmt::format("no positions of slices: in the order of {}", volumes_.files.size() == 1 ? "frames"
                                                                   : numbered ? "their numbers"
                                                                              : "the files' names"));
  }

  const std::filesystem::path& name_;
  DicomVolumes volumes_;
  std::vector<Image> images_;
};

}  // namespace

std::vector<DicomFile> choose_series(const std::filesystem::path& name, std::vector<DicomFile> files,
                                     const std::string& asked) {
  std::vector<std::vector<DicomFile>> all = split_by_series(std::move(files));
  if (asked.empty()) {
    if (all.size() == 1) return std::move(all.front());
    fail(name, fmt::format("holds {} series: {}; --series {} chooses the first of them", all.size(),
                           list_of_series(all), number_of(all.front().front())));
  }
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const DicomFile& first = all[i].front();
    if (first.series == asked) return std::move(all[i]);
    if (number_of(first) == asked) fitting.push_back(i);
  }
  if (fitting.size() == 1) return std::move(all[fitting.front()]);
  fail(name,
       fmt::format("--series {}: {}: {}", one_line(asked),
                   fitting.empty() ? "there is none, but" : "several have this number, give the identifier",
                   list_of_series(all)));
}

DicomVolumes arrange_volumes(const std::filesystem::path& name, std::vector<DicomFile> files) {
  return Arrangement(name, std::move(files)).arrange();
}

}  // namespace ungrain::io
