// The C API's structs, which grow at their ends from version to version, and the C++ types they stand for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "c/guard.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain::c {

// Name of a struct, and its size in the first version that had it: less than that is a mistake of the caller.
template <class Struct>
struct Shape;
// NOLINTBEGIN(bugprone-macro-parentheses,bugprone-sizeof-expression): types and members; some members are
// pointers
#define UNGRAIN_SHAPE(type, last)                                                    \
  template <>                                                                        \
  struct Shape<type> {                                                               \
    static constexpr const char* name = #type;                                       \
    static constexpr std::size_t least = offsetof(type, last) + sizeof(type{}.last); \
  }
UNGRAIN_SHAPE(ungrain_image_spec, range);
UNGRAIN_SHAPE(ungrain_image, reserved);
UNGRAIN_SHAPE(ungrain_method_info, has_cuda);
UNGRAIN_SHAPE(ungrain_parameter_info, odd);
UNGRAIN_SHAPE(ungrain_preset_info, help);
UNGRAIN_SHAPE(ungrain_device_info, speed);
UNGRAIN_SHAPE(ungrain_options, cancel);
UNGRAIN_SHAPE(ungrain_report, choice);
UNGRAIN_SHAPE(ungrain_reach, after);
UNGRAIN_SHAPE(ungrain_rows, user);
UNGRAIN_SHAPE(ungrain_slices, user);
UNGRAIN_SHAPE(ungrain_noise_estimate, channels);
UNGRAIN_SHAPE(ungrain_metrics, fsimc);
#undef UNGRAIN_SHAPE
// NOLINTEND(bugprone-macro-parentheses,bugprone-sizeof-expression)

template <class Struct>
std::size_t checked_size(const Struct* given) {
  using std::string_literals::operator""s;
  check_there(given, Shape<Struct>::name);
  const std::size_t size = given->struct_size;
  if (size < Shape<Struct>::least) {
    invalid("struct_size of "s + Shape<Struct>::name + " is " + std::to_string(size) +
            ": set it to sizeof the struct");
  }
  return size;
}

// What the caller gave; fields that its version did not have are 0. Fields that this version does not know
// must be 0.
template <class Struct>
Struct read(const Struct* given) {
  const std::size_t size = checked_size(given);
  const auto* bytes = reinterpret_cast<const char*>(given);
  if (size > sizeof(Struct) &&
      std::any_of(bytes + sizeof(Struct), bytes + size, [](char byte) { return byte != 0; })) {
    throw Error(ErrorCode::unsupported, std::string(Shape<Struct>::name) +
                                            " has fields of a later version than " + ungrain_version() +
                                            " set");
  }
  Struct known{};
  std::memcpy(&known, given, std::min(size, sizeof(Struct)));
  return known;
}

// Fills what the caller's struct has room for.
template <class Struct>
void write(Struct value, Struct* to) {
  const std::size_t size = checked_size(to);
  value.struct_size = to->struct_size;
  std::memcpy(to, &value, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct))
    std::memset(reinterpret_cast<char*>(to) + sizeof(Struct), 0, size - sizeof(Struct));
}

ImageSpec spec_of(const ungrain_image_spec* given);
ungrain_image_spec c_spec(const ImageSpec& spec);

ImageView view_of(const ungrain_image* given);

// An image for a callback: it points to a spec of its own and stays where it is.
class CImage {
 public:
  explicit CImage(const ImageView& view);
  explicit CImage(const ConstImageView& view);
  CImage(const CImage&) = delete;
  CImage& operator=(const CImage&) = delete;
  const ungrain_image* image() const { return &image_; }

 private:
  ungrain_image_spec spec_;
  ungrain_image image_;
};

Options options_of(const ungrain_options* given);  // null: the defaults
void write_report(const Report& report, ungrain_report* to);

// Copies text into an array, cut where it is longer.
template <std::size_t Size>
void copy_text(const std::string& from, char (&to)[Size]) {
  const std::size_t length = std::min(from.size(), Size - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

}  // namespace ungrain::c
